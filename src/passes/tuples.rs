//! Taking tuples apart where they were made. Shared by the passes that lower tuples; no pass itself.

use super::constants;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, ValueId};

/// The values that a tuple was made of.
pub(super) fn parts(graph: &Graph, tuple: ValueId) -> Option<Vec<ValueId>> {
    let def = graph.def_op(tuple)?;
    (graph.kind(def) == "prim::TupleConstruct").then(|| graph.operands(def).to_vec())
}

/// Makes a tuple before `anchor`; its type keeps the names of fields where it has any.
pub(super) fn construct_before(graph: &mut Graph, anchor: OpId, parts: &[ValueId], ty: Type) -> ValueId {
    let op = graph.create(Symbol::new("prim::TupleConstruct"), parts, &[ty]);
    graph.insert_before(op, anchor);
    // An op made with one result type has one result.
    graph.results(op)[0]
}

/// The type of a tuple of values.
pub(super) fn type_of(graph: &Graph, parts: &[ValueId]) -> Type {
    Type::tuple(parts.iter().map(|value| graph.ty(*value).clone()).collect::<Vec<_>>())
}

/// Where the op takes apart a tuple that was made in sight, its results are replaced by the parts. The op stays,
/// dead. False where the tuple was not made in sight, or `may` says no, which is asked last.
pub(super) fn take_apart(graph: &mut Graph, op: OpId, may: &dyn Fn(&Graph) -> bool) -> bool {
    let Some(parts) = graph.operand(op, 0).and_then(|tuple| parts(graph, tuple)) else { return false };
    match graph.kind(op).as_str() {
        "prim::TupleUnpack" => {
            if !may(graph) {
                return false;
            }
            for (old, new) in graph.results(op).into_iter().zip(&parts) {
                graph.replace_all_uses(old, *new);
            }
            true
        }
        "prim::TupleIndex" => {
            let index = graph.operand(op, 1).and_then(|value| constants::int_of(graph, value));
            let part = index.and_then(|n| {
                let n = if n < 0 { n + parts.len() as i64 } else { n };
                parts.get(usize::try_from(n).ok()?).copied()
            });
            let (Some(part), Some(result)) = (part, graph.result(op, 0)) else { return false };
            if !may(graph) {
                return false;
            }
            graph.replace_all_uses(result, part);
            true
        }
        "prim::TupleSlice" => {
            let bound = |name: &str, default: usize| {
                let n = graph.attr(op, name).and_then(Attr::as_int);
                n.map_or(default, |n| usize::try_from(n).unwrap_or(0).min(parts.len()))
            };
            let (begin, end) = (bound("beg", 0), bound("end", parts.len()));
            let Some(slice) = parts.get(begin..end).filter(|_| may(graph)) else { return false };
            let slice = slice.to_vec();
            let ty = type_of(graph, &slice);
            let tuple = construct_before(graph, op, &slice, ty);
            if let Some(result) = graph.result(op, 0) {
                graph.replace_all_uses(result, tuple);
            }
            true
        }
        _ => false,
    }
}
