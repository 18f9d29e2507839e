//! In-place arithmetic becomes arithmetic, for backends that know no writes.
//!
//! `y = add_(x, z)` becomes `y = add(x, z)`, and later uses of `x` become uses of `y`. That is right only if nothing
//! else holds the memory of `x`: not for inputs that the caller reads afterwards, nor for views. Nothing of it is
//! checked, as in PyTorch; remove-mutation is the pass that makes only unobservable changes.

use super::{Context, remove_mutation};
use crate::diag::Result;
use crate::ir::{Graph, OpId};

/// What backends without writes ask for.
const OPS: &[&str] = &["aten::add_", "aten::sub_", "aten::mul_", "aten::div_", "aten::zero_", "aten::fill_"];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let ops: Vec<OpId> =
        graph.all_ops().into_iter().filter(|op| OPS.contains(&graph.kind(*op).as_str())).collect();
    let mut changed = false;
    for op in ops {
        if context.is_spent() {
            break;
        }
        let Some(written) = graph.operand(op, 0) else { continue };
        let Some(new) = remove_mutation::functional(graph, context.registry, op, false) else { continue };
        context.step(|| format!("writes no more: {}", graph.op_line(op)));
        remove_mutation::replace_uses_behind(graph, written, new, op);
        graph.replace_op(op, &[new]);
        changed = true;
    }
    Ok(changed)
}
