//! Making and taking apart lists and dictionaries.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Effects, OpDef, Outputs, container, one};
use crate::ir::{Type, TypeKind};
use crate::value::{Dict, Value};

/// What takes a list apart.
pub const UNPACK: &str = "prim::ListUnpack";

/// The rows.
pub static OPS: &[OpDef] = &[
    container("prim::ListConstruct(...) -> Any", list).effects(Effects::IDENTITY).doc("a new list"),
    container("prim::ListUnpack(Any list) -> ...", unpack)
        .effects(Effects::MAY_RAISE)
        .doc("the elements of a list of known length"),
    container("prim::DictConstruct(...) -> Any", dict)
        .effects(Effects::IDENTITY)
        .doc("a new dictionary of alternating keys and values"),
];

fn list(args: &Args<'_>) -> Result<Outputs> {
    let element = match args.result_type(0).map(Type::kind) {
        Some(TypeKind::List(element)) => element.clone(),
        _ => args.values.first().map_or_else(Type::tensor, Value::ty),
    };
    one(Value::list(element, args.values.to_vec()))
}

fn unpack(args: &Args<'_>) -> Result<Outputs> {
    let items = args.list(0)?.items();
    let wanted = args.node.result_types.len();
    if wanted != items.len() {
        return Err(Diagnostic::runtime(format!(
            "Expected {wanted} elements in a list but found {}",
            items.len()
        )));
    }
    Ok(items.iter().cloned().collect())
}

fn dict(args: &Args<'_>) -> Result<Outputs> {
    let (key, value) = match (args.result_type(0).map(Type::kind), args.values) {
        (Some(TypeKind::Dict(key, value)), _) => (key.clone(), value.clone()),
        (_, [key, value, ..]) => (key.ty(), value.ty()),
        _ => (Type::str(), Type::tensor()),
    };
    let out = Dict::new(key, value);
    for pair in args.values.chunks(2) {
        match pair {
            [key, value] => out.insert(key, value.clone())?,
            _ => return Err(Diagnostic::verify("prim::DictConstruct needs a value for each key")),
        }
    }
    one(Value::Dict(out))
}
