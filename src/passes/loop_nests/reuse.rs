//! `loop-reuse-buffers`: buffers of a kernel's own whose lives do not overlap become one.
//!
//! A buffer lives from the first op of its block that uses it, or has such an op within, to the last one. What it holds before a
//! store is any number, so that it may hold what another one left.

use crate::diag::Result;
use crate::dialects::loops::is_kernel;
use crate::dialects::loops::nest::alloc_size;
use crate::ir::{Attr, BlockId, Graph, OpId, ValueId};
use crate::passes::Context;

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    if !is_kernel(graph) {
        return Ok(false);
    }
    let mut blocks = vec![graph.root()];
    blocks.extend(graph.all_ops().iter().flat_map(|op| graph.nested_blocks(*op).to_vec()));
    let mut changed = false;
    for block in blocks {
        changed |= reuse(graph, context, block);
    }
    Ok(changed)
}

/// A buffer, and the first and last place in its block where it is used.
struct Life {
    alloc: OpId,
    buffer: ValueId,
    size: i64,
    first: usize,
    last: usize,
}

/// Joins buffers of a block: each takes the first buffer of its type that is free again.
fn reuse(graph: &mut Graph, context: &Context<'_>, block: BlockId) -> bool {
    let mut lives = lives(graph, block);
    lives.sort_by_key(|life| life.first);
    let mut kept: Vec<Life> = Vec::new();
    let mut changed = false;
    for life in lives {
        let free = kept
            .iter_mut()
            .find(|other| other.last < life.first && graph.ty(other.buffer) == graph.ty(life.buffer));
        let Some(other) = free else {
            kept.push(life);
            continue;
        };
        let names = [life.buffer, other.buffer].map(|buffer| graph.display_name(buffer).to_string());
        if !context.step(|| format!("stores what %{} holds in %{}", names[0], names[1])) {
            return changed;
        }
        context.count("buffers reused", 1);
        changed = true;
        (other.size, other.last) = (other.size.max(life.size), life.last);
        graph.set_attr(other.alloc, "size", Attr::Int(other.size));
        graph.replace_all_uses(life.buffer, other.buffer);
        graph.erase(life.alloc);
    }
    changed
}

/// The buffers that are made in a block and used.
fn lives(graph: &Graph, block: BlockId) -> Vec<Life> {
    let ops: Vec<OpId> = graph.block_ops(block).collect();
    let mut found = Vec::new();
    for alloc in &ops {
        let Some(buffer) = graph.result(*alloc, 0) else { continue };
        let Some(size) = alloc_size(graph, buffer) else { continue };
        let mut places = ops.iter().enumerate().filter(|(_, op)| uses(graph, **op, buffer)).map(|(n, _)| n);
        let Some(first) = places.next() else { continue };
        let last = places.next_back().unwrap_or(first);
        found.push(Life { alloc: *alloc, buffer, size, first, last });
    }
    found
}

/// Whether an op uses a buffer, or has an op within that does.
fn uses(graph: &Graph, op: OpId, buffer: ValueId) -> bool {
    let mut work = vec![op];
    while let Some(op) = work.pop() {
        if graph.operands(op).contains(&buffer) {
            return true;
        }
        work.extend(graph.nested_blocks(op).iter().flat_map(|block| graph.block_ops(*block)));
    }
    false
}
