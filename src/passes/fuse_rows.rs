//! Which ops that combine the elements of a row (a sum, softmax) a group can take: those with a meaning along rows,
//! over a dimension that is known to be the last. What is not known until the program runs, the lowering refuses.

use super::Context;
use crate::dialects::fusion::sums::BLOCK_SUMS;
use crate::dialects::rows::RowMeaning;
use crate::dialects::{Family, Variant, resolve};
use crate::ir::{Attr, Graph, OpId, Type, ValueId};

/// What a group must know of an op along rows.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct RowWork {
    /// Whether the result lacks the dimension: places of it correspond to none of its operand's.
    pub(super) drops: bool,
}

/// The work along rows that an op is, if a group can take it.
pub(super) fn row_work(graph: &Graph, context: &Context<'_>, op: OpId) -> Option<RowWork> {
    if graph.kind(op) == *BLOCK_SUMS {
        let fixed = graph.operands(op).iter().skip(1).all(|value| constant(graph, *value).is_some());
        return fixed.then_some(RowWork { drops: true });
    }
    let row = resolve(context.registry, graph, op).ok()?;
    let meaning = row.def().rows?;
    let schema = row.schema().ok()?;
    if row.variant() != Variant::Plain || graph.result_count(op) != 1 {
        return None;
    }
    let (mut last, mut keeps) = (false, matches!(meaning, RowMeaning::Row(_)));
    for (argument, value) in schema.arguments.iter().zip(graph.operands(op)) {
        let fits = match argument.name.as_str() {
            "dim" => {
                last = dims_of(graph, context, *value).is_some_and(|dims| is_last(graph, op, &dims));
                last
            }
            "keepdim" => {
                let keep = constant(graph, *value).and_then(Attr::as_int);
                keeps |= keep == Some(1);
                keep.is_some()
            }
            "dtype" => is_none(graph, *value),
            _ => graph.ty(*value).is_tensor() || constant(graph, *value).is_some() || is_none(graph, *value),
        };
        if !fits {
            return None;
        }
    }
    last.then_some(RowWork { drops: !keeps })
}

fn is_last(graph: &Graph, op: OpId, dims: &[i64]) -> bool {
    let ty = graph.operand(op, 0).map(|v| graph.ty(v));
    let rank = ty.and_then(Type::as_tensor).and_then(|t| t.sizes.as_ref()).map(|sizes| sizes.len() as i64);
    match dims {
        [dim] => *dim == -1 || rank.is_some_and(|rank| *dim == rank - 1),
        _ => false,
    }
}

fn constant(graph: &Graph, value: ValueId) -> Option<&Attr> {
    let def = graph.def_op(value).filter(|op| graph.kind(*op) == "prim::Constant")?;
    graph.attr(def, "value")
}

fn is_none(graph: &Graph, value: ValueId) -> bool {
    let def = graph.def_op(value).filter(|op| graph.kind(*op) == "prim::Constant");
    def.is_some_and(|op| graph.attr(op, "value").is_none_or(|attr| matches!(attr, Attr::None)))
}

/// Dimensions that an operand names: an int, or a list of ints that only such ops use, so that it is never changed.
pub(super) fn dims_of(graph: &Graph, context: &Context<'_>, value: ValueId) -> Option<Vec<i64>> {
    match constant(graph, value) {
        Some(Attr::Ints(dims)) => return Some(dims.to_vec()),
        Some(other) => return other.as_int().map(|dim| vec![dim]),
        None => {}
    }
    let list = graph.def_op(value).filter(|op| graph.kind(*op) == "prim::ListConstruct")?;
    let reads =
        |op: OpId| resolve(context.registry, graph, op).is_ok_and(|row| row.def().family == Family::Reduce);
    if !graph.uses(value).all(|used| reads(used.op)) {
        return None;
    }
    graph.operands(list).iter().map(|v| constant(graph, *v)?.as_int()).collect()
}
