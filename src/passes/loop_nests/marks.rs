//! `loop-vectorize` and `loop-parallelize`: say of loops whose iterations do not meet in memory how they may run.
//!
//! The marks are the schedule that backends obey: `vector` in vector registers, `parallel` across cores or a GPU's threads.

use super::chosen::{LOOP, chosen, refuse};
use super::independence::independent;
use crate::diag::Result;
use crate::dialects::loops::Mark;
use crate::dialects::loops::nest::{Loop, alloc_size, constant_index};
use crate::ir::{Graph, OpId};
use crate::passes::{Context, PassOption};

pub(in crate::passes) const OPTIONS: &[PassOption] = &[LOOP];

/// Marks innermost loops, or those that are named, which may have loops within that run one iteration after the other.
pub(in crate::passes) fn vectorize(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (loops, named) = chosen(graph, context)?;
    let mut changed = false;
    for l in loops {
        let marked = match l.mark(graph) {
            Mark::Serial => Mark::Vector,
            Mark::Parallel => Mark::ParallelVector,
            _ => continue,
        };
        let inner = inner_loops(graph, l);
        let why = match independent(graph, l) {
            Err(why) => why,
            Ok(()) if has_buffer(graph, l) => "has a buffer of its own, which iterations would share".into(),
            Ok(()) if !named && !inner.is_empty() => "has loops within".into(),
            Ok(()) if inner.iter().any(|inner| inner.mark(graph) != Mark::Serial) => {
                "has loops within that are marked".into()
            }
            Ok(()) if inner.iter().any(|inner| !is_uniform(graph, l, *inner)) => {
                "has loops within whose bounds differ between iterations".into()
            }
            Ok(()) if constant_index(graph, l.step) != Some(1) => "has steps that are not 1".into(),
            Ok(()) => String::new(),
        };
        changed |= mark(graph, context, l, marked, &why, named)?;
    }
    Ok(changed)
}

/// Marks outermost loops from 0 to a parameter.
pub(in crate::passes) fn parallelize(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (loops, named) = chosen(graph, context)?;
    let mut changed = false;
    let mut taken = Loop::all(graph).iter().any(|l| l.mark(graph).is_parallel());
    for l in loops {
        let marked = match l.mark(graph) {
            Mark::Serial => Mark::Parallel,
            Mark::Vector => Mark::ParallelVector,
            _ => continue,
        };
        let is = |value, n| constant_index(graph, value) == Some(n);
        let why = match independent(graph, l) {
            Err(why) => why,
            Ok(()) if graph.parent(l.op) != Some(graph.root()) => "is within another loop".into(),
            Ok(()) if has_buffer_around(graph) => {
                "shares a buffer of the kernel's own with other iterations".into()
            }
            Ok(()) if taken => "is not the first parallel loop of its kernel".into(),
            Ok(()) if !is(l.begin, 0) || !is(l.step, 1) || !graph.inputs().contains(&l.end) => {
                "does not run from 0 to a parameter in steps of 1".into()
            }
            Ok(()) => String::new(),
        };
        let done = mark(graph, context, l, marked, &why, named)?;
        taken |= done;
        changed |= done;
    }
    Ok(changed)
}

/// Marks a loop, unless there is something to say against it.
fn mark(
    graph: &mut Graph,
    context: &Context<'_>,
    l: Loop,
    mark: Mark,
    why: &str,
    named: bool,
) -> Result<bool> {
    if !why.is_empty() {
        return refuse(graph, context, l, named, why);
    }
    let name = graph.display_name(l.iv);
    if !context.step(|| format!("marks the loop over %{name} {}", mark.name())) {
        return Ok(false);
    }
    l.set_mark(graph, mark);
    Ok(true)
}

/// Whether a buffer of the kernel's own is made within a loop.
fn has_buffer(graph: &Graph, l: Loop) -> bool {
    let made = |op: &OpId| graph.results(*op).iter().any(|value| alloc_size(graph, *value).is_some());
    let within = |op: &OpId| graph.parent(*op).is_some_and(|block| graph.is_within(block, l.block));
    graph.all_ops().into_iter().any(|op| made(&op) && within(&op))
}

/// Whether a buffer of the kernel's own stands outside of all loops: a kernel with a parallel loop has none.
fn has_buffer_around(graph: &Graph) -> bool {
    let mut ops = graph.block_ops(graph.root());
    ops.any(|op| graph.results(op).iter().any(|value| alloc_size(graph, *value).is_some()))
}

fn inner_loops(graph: &Graph, l: Loop) -> Vec<Loop> {
    let within = |inner: &Loop| {
        inner.op != l.op && graph.parent(inner.op).is_some_and(|b| graph.is_within(b, l.block))
    };
    Loop::all(graph).into_iter().filter(within).collect()
}

/// Whether the bounds of an inner loop are the same in all iterations.
fn is_uniform(graph: &Graph, l: Loop, inner: Loop) -> bool {
    [inner.begin, inner.end, inner.step].iter().all(|bound| graph.is_visible(*bound, l.op))
}
