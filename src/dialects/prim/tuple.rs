//! Tuples.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, container, one};
use crate::ir::{Attr, TypeKind};
use crate::value::{Tuple, Value};
use std::sync::Arc;

/// The rows.
pub static OPS: &[OpDef] = &[
    container("prim::TupleConstruct(...) -> Any", construct).doc("a tuple, named if its type is"),
    container("prim::TupleUnpack(Any tup) -> ...", unpack).doc("the items of a tuple"),
    container("prim::TupleIndex(Any tup, int i) -> Any", index).doc("one item of a tuple"),
    container("prim::TupleSlice(Any tup) -> Any", slice).doc("a part of a tuple, from `beg` to `end`"),
];

fn construct(args: &Args<'_>) -> Result<Outputs> {
    let items = args.values.to_vec();
    one(Value::Tuple(match args.result_type(0).map(|t| t.kind()) {
        Some(TypeKind::Tuple(_, Some(names))) => Tuple::named(Arc::clone(names), items),
        _ => Tuple::new(items),
    }))
}

fn unpack(args: &Args<'_>) -> Result<Outputs> {
    let items = args.value(0)?.to_tuple()?.items();
    let wanted = args.node.result_types.len();
    if wanted != 0 && wanted != items.len() {
        return Err(Diagnostic::runtime(format!(
            "Expected a tuple of {wanted} elements, but got {} elements",
            items.len()
        )));
    }
    Ok(items.iter().cloned().collect())
}

fn index(args: &Args<'_>) -> Result<Outputs> {
    let items = args.value(0)?.to_tuple()?.items();
    let n = args.int(1)?;
    let at = if n < 0 { n + items.len() as i64 } else { n };
    match usize::try_from(at).ok().and_then(|at| items.get(at)) {
        Some(item) => one(item.clone()),
        None => Err(Diagnostic::runtime("Tuple list index out of range")),
    }
}

fn slice(args: &Args<'_>) -> Result<Outputs> {
    let items = args.value(0)?.to_tuple()?.items();
    let bound = |name: &str, default: usize| {
        args.attr(name).and_then(Attr::as_int).map_or(default, |n| {
            let n = if n < 0 { n + items.len() as i64 } else { n };
            n.clamp(0, items.len() as i64) as usize
        })
    };
    let (begin, end) = (bound("beg", 0), bound("end", items.len()));
    one(Value::tuple(items.get(begin..end.max(begin)).unwrap_or(&[]).to_vec()))
}
