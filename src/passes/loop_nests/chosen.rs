//! Which loops of a kernel a pass is asked to change, and what becomes of one that it cannot change. Changes none.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::is_kernel;
use crate::dialects::loops::nest::Loop;
use crate::ir::Graph;
use crate::passes::{Context, PassOption};

/// The option by which a loop is named.
pub(in crate::passes) const LOOP_OPTIONS: &[PassOption] = &[LOOP];

/// As it stands among others.
pub(super) const LOOP: PassOption =
    PassOption::text("loop", "", "name of the index of the loops to transform; all legal ones if empty");

/// The loops that a pass is asked to change, and whether they are named: a named loop that cannot be changed is an error.
pub(super) fn chosen(graph: &Graph, context: &Context<'_>) -> Result<(Vec<Loop>, bool)> {
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
pub(super) fn refuse(
    graph: &Graph,
    context: &Context<'_>,
    which: Loop,
    named: bool,
    why: &str,
) -> Result<bool> {
    let text = format!("{}: the loop over %{} {why}", context.name, graph.display_name(which.iv));
    if named {
        let at = graph.location(which.op).and_then(|l| l.span());
        return Err(Diagnostic::unsupported(text).at_opt(at));
    }
    context.debug(|| text);
    Ok(false)
}
