//! What a lowering is. Knows none, nor where they are kept.

use super::{OpCall, Ops, Rewriter};
use crate::diag::Result;
use crate::ir::ValueId;

/// How ops become kernels.
///
/// A lowering reads what is known of a call ([`OpCall`]), writes the host code that the kernels need around them
/// (allocation, sizes, contiguous operands) and launches them ([`Rewriter::launch`]). It refuses what it does not handle with
/// an error: then what it wrote is taken back, the next lowering is asked, and the reason is kept.
pub trait Lowering: Send + Sync {
    /// What refusals call it: `bincount-by-accumulate`.
    fn name(&self) -> &str;

    /// The ops that it handles.
    fn ops(&self) -> Ops;

    /// Of several that handle an op, the one with the greatest benefit is asked first; among equals, the one that was added
    /// last. Built-in ones have 1.
    fn benefit(&self) -> u32 {
        1
    }

    /// Writes what the op becomes; gives one value for each of its results.
    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>>;
}
