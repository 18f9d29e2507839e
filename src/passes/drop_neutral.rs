//! Leaves out `x * 1`, `x + 0` and `x - 0` of tensors, as PyTorch's executor does before it knows dtypes: what was a tensor of
//! bools stays one, where the op would give ints. It does so where it is unobservable that two tensors became one, which the
//! alias analysis answers; where it does not, the op stays and computes.

use super::Context;
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::ir::{Graph, OpId, TypeKind, ValueId};
use crate::tensor::DType;

/// Looks at the graph, each after all changes of the one before: one that was left out may let others go.
const MAX_ROUNDS: usize = 16;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for _ in 0..MAX_ROUNDS {
        let ops: Vec<OpId> = graph.all_ops().into_iter().filter(|op| is_neutral(graph, *op)).collect();
        if ops.is_empty() {
            break;
        }
        let db = context.analysis::<AliasDb>(graph);
        // What the analysis says of values that became one holds no more.
        let mut merged: Vec<ValueId> = Vec::new();
        for op in ops {
            let (x, result) = (graph.operands(op)[0], graph.results(op)[0]);
            let stale = merged.iter().any(|other| db.may_alias(*other, x) || db.may_alias(*other, result));
            if !stale
                && db.safe_to_change_aliasing(graph, x, result)
                && context.step(|| format!("drops the neutral op on %{}", graph.display_name(x)))
            {
                graph.replace_op(op, &[x]);
                merged.extend([x, result]);
            }
        }
        if merged.is_empty() {
            break;
        }
        changed = true;
        context.changed();
    }
    Ok(changed)
}

/// Whether a graph has such an op.
pub fn has_neutral(graph: &Graph) -> bool {
    graph.all_ops().into_iter().any(|op| is_neutral(graph, op))
}

/// Whether an op takes a tensor that is not known to be of bools, and the int that leaves it as it is.
fn is_neutral(graph: &Graph, op: OpId) -> bool {
    let (neutral, scale) = match graph.kind(op).as_str() {
        "aten::mul" => (1, None),
        "aten::add" | "aten::sub" => (0, graph.operand(op, 2)),
        _ => return false,
    };
    let number = |value: Option<ValueId>| {
        let made = graph.def_op(value?).filter(|made| graph.kind(*made) == "prim::Constant")?;
        graph.attr(made, "value")?.as_int()
    };
    let Some(x) = graph.operand(op, 0) else { return false };
    let is_tensor = match graph.ty(x).kind() {
        TypeKind::Tensor(ty) => ty.dtype != Some(DType::Bool),
        _ => false,
    };
    is_tensor
        && number(graph.operand(op, 1)) == Some(neutral)
        && scale.is_none_or(|s| number(Some(s)) == Some(1))
}
