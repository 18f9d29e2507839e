//! The kernels of a group that stand in its module: `lower-fusion` put them there, and passes may have changed them since.
//!
//! They are trusted with nothing: their parameters must be those that the group's own lowering has, and what they touch is
//! computed for the tensors of a call. Where it cannot be, their form with checks runs.

use super::{Arg, Backend, Buffer, Executable};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::reach::reach;
use crate::dialects::loops::{self, Kernel, Ty};
use crate::ir::Graph;
use crate::lowering::{self, GroupProgram, Lowered, Part};
use crate::passes::loop_nests::check_bounds;
use std::sync::Arc;

/// A kernel with the arguments that its form with checks takes further.
pub(super) struct Ready {
    pub(super) kernel: Arc<dyn Executable>,
    pub(super) lengths: Vec<i64>,
}

/// The kernel of a module for part `n` of a call, whose buffers and integers these are. Fails with `Verify` where it does not
/// take what the group gives.
pub(super) fn ready(
    lowered: &Lowered,
    (group, part, n): (&GroupProgram, &Part, usize),
    (buffers, integers): (&[Buffer], &[i64]),
    backend: &dyn Backend,
) -> Result<Ready> {
    let Some((name, graph)) = lowered.kernels.get(n) else {
        return Err(Diagnostic::internal("a launch without its kernel"));
    };
    let named = |why: &str| Diagnostic::verify(format!("the kernel '{name}' {why}"));
    let kernel = loops::decode(graph)?;
    let own = loops::decode(&lowering::lower(&part.nest(group), lowered.target)?)?;
    let types = |kernel: &Kernel| kernel.params.iter().map(|param| param.ty).collect::<Vec<Ty>>();
    if types(&kernel) != types(&own) {
        return Err(named(
            "does not take what its group gives: buffers, sizes, strides and numbers in order",
        ));
    }
    if kernel.params.iter().zip(&own.params).any(|(mine, own)| mine.written && !own.written) {
        return Err(named("stores to an input of its group"));
    }
    if stays_within(&kernel, buffers, integers) {
        return Ok(Ready { kernel: backend.compile(&kernel)?, lengths: Vec::new() });
    }
    if buffers.iter().any(|buffer| buffer.low < buffer.first) {
        return Err(Diagnostic::unsupported(format!("the kernel '{name}' may reach outside of its buffers")));
    }
    let lengths = buffers.iter().map(|buffer| (buffer.end - buffer.first) as i64).collect();
    let mut checked = Graph::clone(graph);
    check_bounds(&mut checked);
    Ok(Ready { kernel: backend.compile(&loops::decode(&checked)?)?, lengths })
}

/// Whether all that a kernel touches is known to lie in the spans of its buffers.
fn stays_within(kernel: &Kernel, buffers: &[Buffer], integers: &[i64]) -> bool {
    let none = buffers.iter().map(|_| None);
    let known = none.chain(integers.iter().map(|n| Some(*n))).chain(std::iter::repeat(None));
    let known: Vec<Option<i64>> = known.take(kernel.params.len()).collect();
    let Some(reach) = reach(kernel, &known) else { return false };
    reach.iter().zip(buffers).all(|(touched, buffer)| {
        let element = |index: i64| i128::from(index) + buffer.first as i128;
        touched.is_none_or(|[low, high]| {
            element(low) >= buffer.low as i128 && element(high) < buffer.end as i128
        })
    })
}

/// The same as arguments.
pub(super) fn arguments(lengths: &[i64]) -> impl Iterator<Item = Arg> {
    lengths.iter().map(|n| Arg::Int(*n))
}
