//! What a code file of an archive declares, as text: classes with their attributes and methods, functions. Nothing is
//! resolved or compiled.

use super::ast::{Class, Def, Expr, ExprKind, Item, Stmt, StmtKind};
use super::parse_library;
use crate::diag::{Result, Source, Span};
use std::sync::Arc;

/// The declarations of a code file.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Classes in the order of the text.
    pub classes: Vec<ClassOutline>,
    /// Free functions in the order of the text.
    pub functions: Vec<FunctionOutline>,
}

/// A class.
#[derive(Clone, Debug, Default)]
pub struct ClassOutline {
    /// Name without its package.
    pub name: String,
    /// `Module`, `NamedTuple`, `Enum`, `Interface`, `ModuleInterface`, or empty.
    pub base: String,
    /// Names in `__parameters__`.
    pub parameters: Vec<String>,
    /// Names in `__buffers__`.
    pub buffers: Vec<String>,
    /// Attributes with their types as written.
    pub attributes: Vec<(String, String)>,
    /// Methods.
    pub methods: Vec<FunctionOutline>,
}

/// A function or method.
#[derive(Clone, Debug)]
pub struct FunctionOutline {
    /// Name without its package.
    pub name: String,
    /// `(self: T, x: Tensor) -> Tensor`
    pub signature: String,
}

/// Reads the declarations of a code file.
pub fn outline(source: &Arc<Source>) -> Result<Outline> {
    let module = parse_library(source)?;
    let mut out = Outline::default();
    for item in &module.items {
        match item {
            Item::Def(def) => out.functions.push(function(def)),
            Item::Class(class) => out.classes.push(describe(class)),
        }
    }
    Ok(out)
}

fn function(def: &Def) -> FunctionOutline {
    let text = def.decl.span.text();
    let words: Vec<&str> = text.trim().trim_end_matches(':').split_whitespace().collect();
    FunctionOutline { name: def.name.name.clone(), signature: words.join(" ") }
}

fn describe(class: &Class) -> ClassOutline {
    let base = class.base.as_ref().map_or(String::new(), |base| base.span.text().to_string());
    let mut out = ClassOutline { name: class.name.name.clone(), base, ..ClassOutline::default() };
    for stmt in &class.body {
        member(&mut out, stmt);
    }
    out
}

fn member(out: &mut ClassOutline, stmt: &Stmt) {
    let (targets, annotation, value) = match &stmt.kind {
        StmtKind::Def(def) => return out.methods.push(function(def)),
        StmtKind::Assign { targets, annotation, value } => (targets, annotation, value),
        _ => return,
    };
    let Some(target) = targets.first() else { return };
    match (&target.kind, annotation, value) {
        (ExprKind::Name(name), None, Some(list)) if name == "__parameters__" => {
            out.parameters = strings(list)
        }
        (ExprKind::Name(name), None, Some(list)) if name == "__buffers__" => out.buffers = strings(list),
        (ExprKind::Name(name), Some(ty), _) => out.attributes.push((name.clone(), to_line_end(&ty.span))),
        (ExprKind::Subscript { indices, .. }, None, Some(ty)) => {
            if let Some(Expr { kind: ExprKind::Str(name), .. }) = indices.first() {
                out.attributes.push((name.clone(), to_line_end(&ty.span)));
            }
        }
        _ => {}
    }
}

/// The text from the start of a place to the end of its line, without a value after it.
fn to_line_end(span: &Span) -> String {
    let rest = span.source().text().get(span.start()..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default();
    line.split(" = ").next().unwrap_or(line).trim().to_string()
}

fn strings(list: &Expr) -> Vec<String> {
    let ExprKind::List(items) = &list.kind else { return Vec::new() };
    let text = |item: &Expr| match &item.kind {
        ExprKind::Str(text) => Some(text.clone()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_listed_as_written() {
        let text = "class M(Module):\n  __parameters__ = [\"w\", ]\n  __buffers__ = []\n  w : Tensor\n  k : Final[int] = 3\n  __annotations__[\"0\"] = List[int]\n  def forward(self: __torch__.M,\n    x: Tensor) -> List[Tensor]:\n    return [x]\ndef f(x: int=1) -> int:\n  return x\n";
        let out = outline(&Source::new("code/__torch__.py", text)).expect("parses");
        let class = &out.classes[0];
        assert_eq!((class.name.as_str(), class.base.as_str()), ("M", "Module"));
        assert_eq!(class.parameters, ["w"]);
        let attributes: Vec<String> = class.attributes.iter().map(|(n, t)| format!("{n}:{t}")).collect();
        assert_eq!(attributes, ["w:Tensor", "k:Final[int]", "0:List[int]"]);
        assert_eq!(class.methods[0].signature, "(self: __torch__.M, x: Tensor) -> List[Tensor]");
        assert_eq!(out.functions[0].signature, "(x: int=1) -> int");
    }
}
