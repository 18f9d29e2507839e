//! Removes pairs of making and taking apart a tuple: `TupleUnpack(TupleConstruct(a, b))` is `a, b`, and
//! `TupleIndex(TupleConstruct(a, b), 0)` is `a`. Tuples at the borders of the graph stay.

use super::Context;
use crate::diag::Result;
use crate::ir::{Attr, Graph, OpId, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if !graph.is_live(op) {
            continue;
        }
        let replacement = match graph.kind(op).as_str() {
            "prim::TupleUnpack" => parts(graph, op),
            "prim::TupleIndex" => index(graph, op).map(|value| vec![value]),
            _ => None,
        };
        if let Some(values) = replacement
            && context.step(|| format!("takes the parts for {}", graph.op_line(op)))
        {
            graph.replace_op(op, &values);
            changed = true;
        }
    }
    Ok(changed)
}

/// What the tuple that the op takes was made of.
fn parts(graph: &Graph, op: OpId) -> Option<Vec<ValueId>> {
    let def = graph.def_op(graph.operand(op, 0)?)?;
    (graph.kind(def) == "prim::TupleConstruct").then(|| graph.operands(def).to_vec())
}

fn index(graph: &Graph, op: OpId) -> Option<ValueId> {
    let parts = parts(graph, op)?;
    let index = graph.def_op(graph.operand(op, 1)?)?;
    let n = graph.attr(index, "value").and_then(Attr::as_int)?;
    let n = if n < 0 { n + parts.len() as i64 } else { n };
    parts.get(usize::try_from(n).ok()?).copied()
}
