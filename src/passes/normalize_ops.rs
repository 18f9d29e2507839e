//! One name for each op: `absolute` is `abs`, `special.erf` is `erf`, as rows say. Also `x - y` reversed becomes a plain difference.
//!
//! Both names stand for one function of the same arguments, so that results are equal. A name is changed only if the
//! other one takes the operands.
//!
//! This is not a group of rules: rows say the names, for all overloads at once, and an op that is renamed keeps its place and the
//! name of its result.

use super::Context;
use crate::diag::Result;
use crate::dialects::{Variant, resolve};
use crate::ir::{Graph, OpId, Symbol};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        changed |= rename(graph, context, op) || reversed_difference(graph, context, op);
    }
    Ok(changed)
}

fn rename(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let kind = graph.kind(op);
    let named = context.registry.overloads(kind).iter().find_map(|row| {
        let form = if row.variant() == Variant::InPlace { "_" } else { "" };
        Some(format!("{}::{}{form}", kind.namespace(), row.def().alias_of?))
    });
    let Some(name) = named else { return false };
    graph.set_kind(op, Symbol::new(&name));
    if resolve(context.registry, graph, op).is_err()
        || !context.step(|| format!("renames {kind}: {}", graph.op_line(op)))
    {
        graph.set_kind(op, kind);
        return false;
    }
    true
}

/// `rsub(x, y, alpha)` is `sub(y, x, alpha)`, where y is a tensor.
fn reversed_difference(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let kind = graph.kind(op);
    let &[x, y, alpha] = graph.operands(op) else { return false };
    if kind != "aten::rsub" || !graph.ty(y).is_tensor() {
        return false;
    }
    graph.set_kind(op, Symbol::new("aten::sub"));
    graph.set_operands(op, &[y, x, alpha]);
    if resolve(context.registry, graph, op).is_err()
        || !context.step(|| format!("swaps the operands of {kind}: {}", graph.op_line(op)))
    {
        graph.set_kind(op, kind);
        graph.set_operands(op, &[x, y, alpha]);
        return false;
    }
    true
}
