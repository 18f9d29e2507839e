//! Types as bytecode writes them: annotations of Python, and named tuples with their fields
//! (`__torch__.P[NamedTuple, [[a, Tensor], [b, int]]]`).

use crate::diag::{Diagnostic, Result};
use crate::frontend::script::parse_annotation;

use crate::ir::{Module, NamedTupleDef, Symbol, Type};

/// Longer texts are refused.
const MAX_TEXT: usize = 64 << 10;

/// Notes the named tuples that a text describes; later texts name them alone.
pub(super) fn define_named_tuple(module: &mut Module, text: &str) -> Result<()> {
    let Some((name, fields)) = named_tuple(text) else { return Ok(()) };
    let name = Symbol::new(name);
    if module.named_tuples.contains_key(&name) {
        return Ok(());
    }
    let mut names = Vec::new();
    let mut elements = Vec::new();
    for field in split(fields) {
        let field = field.trim().strip_prefix('[').and_then(|f| f.strip_suffix(']'));
        let Some((field, ty)) = field.and_then(|f| f.split_once(',')) else {
            return Err(malformed(text));
        };
        names.push(Symbol::new(field.trim()));
        elements.push(parse(module, ty.trim())?);
    }
    let ty = Type::named_tuple(name, names, elements);
    module.named_tuples.insert(name, NamedTupleDef { ty, defaults: Vec::new() });
    Ok(())
}

/// The type that a text means.
pub(super) fn parse(module: &Module, text: &str) -> Result<Type> {
    if text.len() > MAX_TEXT {
        return Err(Diagnostic::input(format!(
            "a type has {} bytes, and the limit is {MAX_TEXT}",
            text.len()
        )));
    }
    if let Some((name, _)) = named_tuple(text) {
        let known = module.named_tuples.get(&Symbol::new(name));
        return known.map(|def| def.ty.clone()).ok_or_else(|| malformed(text));
    }
    parse_annotation(module, text)
}

/// Name and text of the fields of a named tuple.
fn named_tuple(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('[')?;
    let fields = rest.trim().strip_prefix("NamedTuple")?.trim_start().strip_prefix(',')?;
    Some((name, fields.trim().strip_suffix(']')?.trim().strip_prefix('[')?.strip_suffix(']')?))
}

/// The parts between commas that stand in no bracket.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

fn malformed(text: &str) -> Diagnostic {
    let shown: String = text.chars().take(120).collect();
    Diagnostic::input(format!("unknown type `{}`", shown.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_tuples_have_their_fields_in_the_text() {
        let mut module = Module::default();
        let text = "__torch__.P[NamedTuple, [[a, Tensor],[b, Dict[str, int]]]]";
        define_named_tuple(&mut module, text).expect("a named tuple");
        let ty = parse(&module, text).expect("a type");
        assert_eq!(ty.tuple_elements().map(<[Type]>::len), Some(2));
        assert_eq!(parse(&module, "List[__torch__.P]").expect("a list").element(), Some(&ty));
        for bad in ["", "[", "__torch__.Q[NamedTuple, [[a]]]", "List[", "NamedTuple, ["] {
            let mut module = Module::default();
            let read = define_named_tuple(&mut module, bad).and_then(|()| parse(&module, bad));
            assert!(read.is_err(), "{bad}");
        }
    }
}
