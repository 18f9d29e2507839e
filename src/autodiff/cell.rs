//! Cells: what a row says of its derivative, read and made into functions.
//!
//! A cell is a list of entries, each a line that names one or more arguments and says their gradients:
//!
//! ```text
//! self: grad * other              an expression
//! input, weight: both(grad, input, weight, needs)
//! mat2:                           or a block that returns it
//!     if alpha == 1:
//!         return self.t().mm(grad)
//!     return self.t().mm(grad) * alpha
//! index: none                     not differentiable
//! other: missing "why"            it is not written yet
//! results: 0                      only these results are differentiable
//! ```
//!
//! or one function, which computes the op from ops that have derivatives and takes its place where gradients are wanted.
//!
//! Cells of ops on lists of tensors ([`Cells::items`]) say how gradients of elements go: `Item` is the type of one, and `former` the
//! gradient of the argument so far.
//!
//! Names that an entry sees: arguments of the schema; `grad`, the gradient of the only (or first) result, `grad0`,
//! `grad1` and so on, `grads` (all of them); `result`, `result0`, `result1`, and results by their names in the schema; `needs`, which of the entry's arguments
//! want a gradient; `sizes(xs)`, the sizes of a list of tensors. What an entry names is what is saved. Of a tensor that
//! it only asks for its type and sizes, no element is kept.

use crate::diag::{Diagnostic, Result};
use crate::dialects::constraint::Law;
use crate::dialects::grads::words;
use crate::dialects::{Family, Op, Registry, Variant};
use crate::ir::{Schema, Type, TypeKind};
use hashbrown::HashMap;
use std::sync::{Arc, OnceLock};

/// How an op is differentiated.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// By what its meaning consists of.
    Inner,
    /// By a function that computes it from other ops.
    Unfold(Arc<str>),
    /// By a cell.
    Cell(Arc<Cell>),
    /// Not at all, for this reason.
    Missing(Arc<str>),
}

/// A cell, read.
#[derive(Debug)]
pub struct Cell {
    /// What it says of arguments.
    pub entries: Vec<Entry>,
    /// Arguments that have no gradient.
    pub none: Vec<usize>,
    /// Arguments without a derivative, with the reason.
    pub missing: Vec<(usize, String)>,
    /// The differentiable results; None: all of a floating point or complex dtype.
    pub results: Option<Vec<usize>>,
}

/// The gradient of one or more arguments.
#[derive(Debug)]
pub struct Entry {
    /// Which arguments.
    pub targets: Vec<usize>,
    /// The function: TorchScript.
    pub text: String,
    /// What it takes.
    pub parameters: Vec<Parameter>,
}

/// What a function of an entry takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// The gradient of a result.
    Grad(usize),
    /// The gradients of all results.
    Grads,
    /// The gradient of the target so far: of ops on lists.
    Former,
    /// Which targets want a gradient.
    Needs,
    /// An argument.
    Argument { index: usize, keep: Keep },
    /// The sizes of the tensors of a list.
    Sizes(usize),
    /// A result.
    Result { index: usize, keep: Keep },
    /// An attribute of the node, among those that the row declares.
    Attribute(usize),
}

/// How much of a tensor a function reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Its elements.
    All,
    /// Type, sizes and strides.
    Layout,
    /// Type and sizes.
    Sizes,
}

/// What entries ask of a tensor without reading its elements.
const QUESTIONS: &[&str] = &[
    "size",
    "dim",
    "numel",
    "dtype",
    "device",
    "shape",
    "ndim",
    "is_complex",
    "is_floating_point",
    "layout",
    "ndimension",
];

/// The recipes of all ops of a registry, read when first asked for.
pub struct Cells {
    rows: HashMap<usize, Row>,
}

struct Row {
    op: Op,
    text: Option<Arc<str>>,
    /// Of an op on lists of tensors: how gradients of elements go.
    items: Option<Arc<str>>,
    /// Of a form that writes: the row's form that does not.
    plain: Option<Op>,
    recipe: OnceLock<Recipe>,
    items_cell: OnceLock<Result<Arc<Cell>>>,
    helpers: Arc<crate::dialects::grads::Grads>,
}

impl Cells {
    /// Those of a registry.
    pub fn of(registry: &Registry) -> Arc<Cells> {
        registry.derived(|registry| {
            let helpers = Arc::new(registry.grads().clone());
            let row = |op: &Op| {
                let plain = plain_form(registry, op);
                let text = filed(registry, op)
                    .or_else(|| filed(registry, plain.as_ref()?))
                    .or_else(|| carried(op))
                    .or_else(|| carried(plain.as_ref()?));
                let row = Row {
                    op: op.clone(),
                    text,
                    items: registry.grads().items(op.full_name()).map(Arc::clone),
                    items_cell: OnceLock::new(),
                    plain,
                    recipe: OnceLock::new(),
                    helpers: Arc::clone(&helpers),
                };
                (op.id(), row)
            };
            Cells { rows: registry.iter().map(row).collect() }
        })
    }

    /// How an op is differentiated.
    pub fn recipe(&self, op: &Op) -> Recipe {
        match self.rows.get(&op.id()) {
            Some(row) => row.recipe.get_or_init(|| row.read()).clone(),
            None => Recipe::Missing("it was registered without one".into()),
        }
    }

    /// How gradients of a list's elements go through an op on lists of tensors; None where unspecified. In the texts of entries
    /// `Item` stands for the type of an element's gradient.
    pub fn items(&self, op: &Op) -> Option<Result<Arc<Cell>>> {
        let row = self.rows.get(&op.id())?;
        let text = row.items.as_ref()?;
        let read = || read_as(&row.op, text, &row.helpers, true).map(Arc::new);
        Some(row.items_cell.get_or_init(read).clone())
    }

    /// All ops that have a cell, with the functions that must compile; None where the cell cannot be read.
    pub fn texts(&self) -> Vec<(Op, Result<Vec<String>>)> {
        let mut all: Vec<(Op, Result<Vec<String>>)> = Vec::new();
        for row in self.rows.values().filter(|row| row.text.is_some()) {
            let texts = match row.recipe.get_or_init(|| row.read()) {
                Recipe::Unfold(text) => Ok(vec![text.to_string()]),
                Recipe::Cell(cell) => Ok(cell.entries.iter().map(|entry| entry.text.clone()).collect()),
                Recipe::Missing(why) => Err(Diagnostic::syntax(why.to_string())),
                Recipe::Inner => Ok(Vec::new()),
            };
            all.push((row.op.clone(), texts));
        }
        // Their texts depend on what is known of gradients where they are used; here they must be readable.
        for row in self.rows.values() {
            if let Some(Err(error)) = self.items(&row.op) {
                all.push((row.op.clone(), Err(error)));
            }
        }
        all.sort_by(|a, b| a.0.schema_text().cmp(b.0.schema_text()));
        all
    }

    /// The form of an op that does not write to its arguments, if it is one that does.
    pub fn plain(&self, op: &Op) -> Option<&Op> {
        self.rows.get(&op.id())?.plain.as_ref()
    }
}

/// `add_` → `add`, of the same overload.
fn plain_form(registry: &Registry, op: &Op) -> Option<Op> {
    let name = op.name().as_str().strip_suffix('_')?;
    let schema = op.schema().ok()?;
    if !schema.arguments.first()?.alias.as_ref()?.is_write {
        return None;
    }
    let plain = registry.find(name, schema.overload.as_str()).filter(|plain| plain.is_built())?;
    let types = |schema: &Schema| schema.arguments.iter().map(|a| a.ty.clone()).collect::<Vec<_>>();
    (types(plain.schema().ok()?) == types(schema)).then(|| plain.clone())
}

/// The cell of an op in a file of derivatives.
fn filed(registry: &Registry, op: &Op) -> Option<Arc<str>> {
    registry.grads().cell(op.full_name()).map(Arc::clone)
}

/// The cell that an op's row carries.
fn carried(op: &Op) -> Option<Arc<str>> {
    if op.variant() == Variant::Out { None } else { op.def().grad.map(Arc::from) }
}

impl Row {
    fn read(&self) -> Recipe {
        let def = self.op.def();
        match &self.text {
            Some(text) if text.starts_with("def ") => {
                Recipe::Unfold((self.helpers.with_helpers(text) + "\n").into())
            }
            Some(text) => match read(&self.op, text, &self.helpers) {
                Ok(cell) => Recipe::Cell(Arc::new(cell)),
                Err(error) => Recipe::Missing(error.message().into()),
            },
            None if def.eval.is_none() && def.scalar.is_none() && def.meaning.is_some() => Recipe::Inner,
            None if matches!(
                def.family,
                Family::Host | Family::Container | Family::Control | Family::Create
            ) =>
            {
                Recipe::Inner
            }
            None => Recipe::Missing("".into()),
        }
    }
}

/// Reads a cell.
pub fn read(op: &Op, text: &str, helpers: &crate::dialects::grads::Grads) -> Result<Cell> {
    read_as(op, text, helpers, false)
}

/// The same; says whether it is one of `items`.
fn read_as(op: &Op, text: &str, helpers: &crate::dialects::grads::Grads, items: bool) -> Result<Cell> {
    let schema = op.schema()?;
    let mut cell = Cell { entries: Vec::new(), none: Vec::new(), missing: Vec::new(), results: None };
    for part in parts(text) {
        let fault = |message: String| Diagnostic::syntax(format!("{}: {message}", op.full_name()));
        let Some((head, body)) = part.split_once(':') else {
            return Err(fault(format!("expected `argument: gradient`, not '{part}'")));
        };
        let body = body.trim_end();
        if head.trim() == "results" {
            let parsed = body.split(',').filter(|n| !n.trim().is_empty()).map(|n| n.trim().parse());
            cell.results =
                Some(parsed.collect::<Result<_, _>>().map_err(|_| fault("expected numbers".into()))?);
            continue;
        }
        let mut targets = Vec::new();
        for name in head.split(',').map(str::trim) {
            let found = schema.argument_index(name);
            targets.push(found.ok_or_else(|| fault(format!("there is no argument '{name}'")))?);
        }
        let said = body.trim();
        if said == "none" {
            cell.none.extend(targets);
        } else if let Some(why) = said.strip_prefix("missing") {
            let why = why.trim().trim_matches('"');
            cell.missing.extend(targets.into_iter().map(|target| (target, why.to_string())));
        } else {
            cell.entries.push(entry((op, schema, items), targets, body, helpers)?);
        }
    }
    Ok(cell)
}

/// Lines of a cell with what is indented below them.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match parts.last_mut() {
            Some(part) if line.starts_with(' ') => {
                part.push('\n');
                part.push_str(line);
            }
            _ => parts.push(line.to_string()),
        }
    }
    parts
}

fn entry(
    (op, schema, items): (&Op, &Schema, bool),
    targets: Vec<usize>,
    body: &str,
    helpers: &crate::dialects::grads::Grads,
) -> Result<Entry> {
    let body = with_sizes(schema, body);
    let mut parameters: Vec<(Parameter, String, String)> = Vec::new();
    for word in words(&body) {
        if parameters.iter().any(|(_, name, _)| name == word) {
            continue;
        }
        let of_items = items.then(|| item_parameter(schema, word)).flatten();
        if let Some((parameter, ty)) = of_items.or_else(|| parameter(op, schema, word, &body)) {
            parameters.push((parameter, word.to_string(), ty));
        }
    }
    let list: Vec<String> = parameters.iter().map(|(_, name, ty)| format!("{name}: {ty}")).collect();
    let (first, rest) = body.split_once('\n').unwrap_or((&body, ""));
    let code = if first.trim().is_empty() {
        rest.to_string()
    } else if rest.is_empty() {
        format!("    return {}", first.trim())
    } else {
        format!("    return ({}\n{rest})", first.trim())
    };
    let text = format!("def gradient({}):\n{code}\n", list.join(", "));
    let parameters = parameters.into_iter().map(|(parameter, _, _)| parameter).collect();
    Ok(Entry { targets, text: with_parts(helpers, &text), parameters })
}

fn with_parts(helpers: &crate::dialects::grads::Grads, text: &str) -> String {
    helpers.with_helpers(text)
}

/// `sizes(xs)` of an argument becomes a name.
fn with_sizes(schema: &Schema, body: &str) -> String {
    let mut body = body.to_string();
    for argument in &schema.arguments {
        let name = argument.name.as_str();
        body = body.replace(&format!("sizes({name})"), &format!("{name}__sizes"));
    }
    body
}

/// The same in a cell of an op on lists of tensors.
fn item_parameter(schema: &Schema, word: &str) -> Option<(Parameter, String)> {
    let gives_list =
        schema.returns.first().is_some_and(|result| matches!(result.ty.kind(), TypeKind::List(_)));
    match word {
        "former" => Some((Parameter::Former, "List[Optional[Tensor]]".into())),
        "grad" if gives_list => Some((Parameter::Grad(0), "List[Item]".into())),
        "grad" => Some((Parameter::Grad(0), "Item".into())),
        _ => {
            let index = schema.argument_index(word)?;
            let is_list = matches!(schema.arguments.get(index)?.ty.kind(), TypeKind::List(_));
            let keep = Keep::Layout;
            is_list.then(|| (Parameter::Argument { index, keep }, "List[Tensor]".into()))
        }
    }
}

/// The parameter that a name denotes, with its annotation; None for other names.
fn parameter(op: &Op, schema: &Schema, word: &str, body: &str) -> Option<(Parameter, String)> {
    let tensor = || "Tensor".to_string();
    if let Some(index) = schema.argument_index(word) {
        let ty = schema.arguments.get(index).map(|a| annotation(&a.ty))?;
        return Some((Parameter::Argument { index, keep: keeps(word, body) }, ty));
    }
    if let Some(index) = word.strip_suffix("__sizes").and_then(|name| schema.argument_index(name)) {
        return Some((Parameter::Sizes(index), "List[List[int]]".into()));
    }
    let result_type = |n: usize| schema.returns.get(n).map_or_else(tensor, |r| annotation(&r.ty));
    match word {
        "grad" => return Some((Parameter::Grad(0), tensor())),
        "grads" => return Some((Parameter::Grads, "List[Tensor]".into())),
        "needs" => return Some((Parameter::Needs, "List[bool]".into())),
        "result" => {
            return Some((Parameter::Result { index: 0, keep: keeps(word, body) }, result_type(0)));
        }
        _ => {}
    }
    if let Some(index) = word.strip_prefix("grad").and_then(|n| n.parse().ok()) {
        return Some((Parameter::Grad(index), tensor()));
    }
    if let Some(index) = word.strip_prefix("result").and_then(|n| n.parse().ok()) {
        return Some((Parameter::Result { index, keep: keeps(word, body) }, result_type(index)));
    }
    if let Some(index) = schema.returns.iter().position(|r| r.name == word) {
        return Some((Parameter::Result { index, keep: keeps(word, body) }, result_type(index)));
    }
    let attributes = op.def().laws.iter().filter_map(|law| match law {
        Law::Attribute(parameter) => Some(parameter),
        _ => None,
    });
    let (index, attribute) = attributes.enumerate().find(|(_, attribute)| attribute.name == word)?;
    let ty = match attribute.kind.to_string().as_str() {
        "tensor" => tensor(),
        "int[]" => "List[int]".into(),
        "float[]" => "List[float]".into(),
        "str[]" => "List[str]".into(),
        other => other.to_string(),
    };
    Some((Parameter::Attribute(index), ty))
}

/// How much a text reads of a tensor that it names.
fn keeps(name: &str, body: &str) -> Keep {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut keep = Keep::Sizes;
    for (at, _) in body.match_indices(name) {
        let (before, after) = (&body[..at], &body[at + name.len()..]);
        if before.ends_with(|c: char| is_word(c) || c == '.') || after.starts_with(is_word) {
            continue;
        }
        let question = after.strip_prefix('.').map(|rest| rest.split(|c| !is_word(c)).next().unwrap_or(""));
        match question {
            Some("stride" | "storage_offset") => keep = Keep::Layout,
            Some(question) if QUESTIONS.contains(&question) => {}
            _ => return Keep::All,
        }
    }
    keep
}

/// A type as the source of a cell writes it.
pub fn annotation(ty: &Type) -> String {
    match ty.kind() {
        TypeKind::Number => "number".to_string(),
        TypeKind::Tensor(_) => "Tensor".to_string(),
        TypeKind::Optional(inner) => format!("Optional[{}]", annotation(inner)),
        TypeKind::List(inner) => format!("List[{}]", annotation(inner)),
        _ => ty.annotation(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_keep_no_elements() {
        assert_eq!(keeps("self", "grad.expand(self.size()).to(self.dtype)"), Keep::Sizes);
        assert_eq!(keeps("self", "grad * self"), Keep::All);
        assert_eq!(keeps("self", "x.self + selfish"), Keep::Sizes);
        assert_eq!(keeps("self", "f(self.size(), self)"), Keep::All);
        assert_eq!(keeps("self", "f(self.size(), self.stride())"), Keep::Layout);
    }

    #[test]
    fn blocks_belong_to_their_line() {
        let found = parts("a: grad\nb:\n    x = 1\n    return x\nc: none");
        assert_eq!(found, ["a: grad", "b:\n    x = 1\n    return x", "c: none"]);
    }
}
