//! Lets fusion groups store results where tensors lie that these are copied to: `copy_(%x, %result)` after a group becomes part of
//! it, and the result needs no memory of its own. So an optimizer's step, which `functionalize` has made of writes, reads
//! and writes each parameter once.
//!
//! A copy goes into the group where dtype and sizes of both are known to be the same, where nothing between the two uses the tensor,
//! and where the group's other operands are known not to be views of it. What arguments of a function share with each other only
//! the run knows: the runtime of the group checks for it, and runs it op by op in that case.

use super::fuse_rows::row_work;
use super::{Context, constants, functionalize, subgraphs};
use crate::diag::Result;
use crate::dialects::{fusion, resolve};
use crate::ir::{Attr, Graph, OpId, ValueDef, ValueId};
use std::sync::Arc;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for copy in graph.block_ops(graph.root()).collect::<Vec<_>>() {
        let Some(found) = absorbable(graph, context, copy) else { continue };
        if !context.step(|| format!("stores in place for {}", graph.op_line(copy).trim())) {
            break;
        }
        absorb(graph, copy, found);
        changed = true;
    }
    Ok(changed)
}

/// A copy that a group can do.
struct Found {
    group: OpId,
    /// The group's result that is copied, and where.
    result: usize,
    target: ValueId,
}

fn absorbable(graph: &Graph, context: &Context<'_>, copy: OpId) -> Option<Found> {
    let value = functionalize::copied_back(graph, copy)?;
    let target = graph.operand(copy, 0)?;
    let group = graph.def_op(value)?;
    let result = graph.results(group).iter().position(|result| *result == value)?;
    let body = fusion::subgraph(graph, group)?;
    let fits = graph.parent(group) == graph.parent(copy)
        && functionalize::are_alike(graph, target, value)
        && takes_writes(body, context)
        && !writes(body).any(|written| is_operand(graph, group, body, written, target))
        && graph.operands(group).iter().all(|v| *v == target || is_apart(graph, context, *v))
        && is_apart(graph, context, target)
        && graph.results(copy).iter().all(|same| !graph.has_uses(*same))
        && !is_used_between(graph, group, copy, target);
    fits.then_some(Found { group, result, target })
}

/// Whether kernels of the group go element by element.
fn takes_writes(body: &Graph, context: &Context<'_>) -> bool {
    body.block_ops(body.root()).all(|op| {
        let kind = body.kind(op);
        let whole = kind != fusion::CHUNK && kind != fusion::CONCAT && kind != fusion::sums::BLOCK_SUMS;
        whole && row_work(body, context, op).is_none()
    })
}

/// The tensors that a group's work writes to, as it knows them.
fn writes(body: &Graph) -> impl Iterator<Item = ValueId> {
    let copies = body.block_ops(body.root()).filter(|op| body.kind(*op) == fusion::COPY);
    copies.filter_map(|op| body.operand(op, 0))
}

fn is_operand(graph: &Graph, group: OpId, body: &Graph, inner: ValueId, outer: ValueId) -> bool {
    let place = body.inputs().iter().position(|input| *input == inner);
    place.and_then(|n| graph.operand(group, n)) == Some(outer)
}

/// Whether a value is a number, an argument of the function, or what an op has made anew: no view of what another value is.
fn is_apart(graph: &Graph, context: &Context<'_>, value: ValueId) -> bool {
    if !graph.ty(value).is_tensor() {
        return true;
    }
    match graph.def(value) {
        ValueDef::Param(block, _) => block == graph.root(),
        ValueDef::Result(op, index) => {
            let is_new = |op: OpId| {
                let row = resolve(context.registry, graph, op).ok()?;
                Some(row.marked_schema().ok()?.returns.get(index)?.alias.is_none())
            };
            graph.kind(op) == "prim::Constant" || fusion::is_group(graph.kind(op)) || is_new(op) == Some(true)
        }
    }
}

/// Whether anything between two ops of a block uses a value.
fn is_used_between(graph: &Graph, first: OpId, last: OpId, value: ValueId) -> bool {
    let Some(block) = graph.parent(first) else { return true };
    // What a nested block uses counts as used by the op that it belongs to.
    let users: Vec<OpId> = graph.uses(value).filter_map(|used| graph.ancestor_in(used.op, block)).collect();
    let mut at = graph.next(first);
    while let Some(op) = at.filter(|op| *op != last) {
        if users.contains(&op) {
            return true;
        }
        at = graph.next(op);
    }
    false
}

fn absorb(graph: &mut Graph, copy: OpId, Found { group, result, target }: Found) {
    let Some(body) = fusion::subgraph(graph, group) else { return };
    let mut body = Graph::clone(body);
    let place = graph.operands(group).iter().position(|operand| *operand == target);
    let inner = match place.and_then(|n| body.inputs().get(n).copied()) {
        Some(inner) => inner,
        None => {
            graph.add_operand(group, target);
            body.add_input(graph.ty(target).clone())
        }
    };
    let Some(value) = body.outputs().get(result).copied() else { return };
    let (root, kind, ty) = (body.root(), graph.kind(copy), graph.ty(target).clone());
    let written = body.create(kind, &[inner, value], &[ty]);
    body.append(root, written);
    if let Some(no) = constants::insert_before(&mut body, written, &false.into()) {
        body.add_operand(written, no);
    }
    graph.erase(copy);
    subgraphs::drop_unused_results(graph, group, &mut body);
    graph.set_attr(group, "Subgraph", Attr::Graph(Arc::new(body)));
}
