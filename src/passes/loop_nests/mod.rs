//! Passes over kernels of the `loop` dialect: what changes the order of their loops and how they run. Each names its loops by
//! the name of their index (`loop=i`) and leaves graphs that are not kernels alone.
//!
//! Order is changed only where [`independence`] proves that iterations do not meet in memory.

mod bounds;
mod canonicalize;
mod fuse;
mod hoist;
mod independence;
mod interchange;
mod marks;
mod reuse;
mod tile;
mod unroll;

pub use bounds::check_bounds;
pub(super) use bounds::run as check_bounds_pass;
pub(super) use canonicalize::run as canonicalize;
pub(super) use fuse::run as fuse;
pub(super) use hoist::run as hoist;
pub(super) use interchange::run as interchange;
pub(super) use marks::{OPTIONS as MARK_OPTIONS, parallelize, vectorize};
pub(super) use reuse::run as reuse_buffers;
pub(super) use tile::{OPTIONS as TILE_OPTIONS, run as tile};
pub(super) use unroll::{OPTIONS as UNROLL_OPTIONS, run as unroll};

use super::{Context, PassOption};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::is_kernel;
use crate::dialects::loops::nest::Loop;
use crate::ir::Graph;

/// The option by which a loop is named.
pub(super) const LOOP_OPTIONS: &[PassOption] = &[LOOP];

const LOOP: PassOption =
    PassOption::text("loop", "", "name of the index of the loops to transform; all legal ones if empty");

/// The loops that a pass is asked to change, and whether they are named: a named loop that cannot be changed is an error.
fn chosen(graph: &Graph, context: &Context<'_>) -> Result<(Vec<Loop>, bool)> {
    if !is_kernel(graph) {
        return Ok((Vec::new(), false));
    }
    let name = context.text("loop")?;
    let mut loops = Loop::all(graph);
    if !name.is_empty() {
        loops.retain(|l| graph.display_name(l.iv) == name);
        if loops.is_empty() {
            return Err(Diagnostic::input(format!("{}: the kernel has no loop over %{name}", context.name)));
        }
    }
    Ok((loops, !name.is_empty()))
}

/// Why a loop stays unchanged: an error where it was named, a line of the log otherwise.
fn refuse(graph: &Graph, context: &Context<'_>, which: Loop, named: bool, why: &str) -> Result<bool> {
    let text = format!("{}: the loop over %{} {why}", context.name, graph.display_name(which.iv));
    if named {
        let at = graph.location(which.op).and_then(|l| l.span());
        return Err(Diagnostic::unsupported(text).at_opt(at));
    }
    context.debug(|| text);
    Ok(false)
}
