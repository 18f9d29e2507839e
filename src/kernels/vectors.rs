//! Loops compiled for the widest vectors that a machine has.

/// Runs loops compiled for the widest vectors of this machine. What they call must be inlined to profit, and the closure
/// itself too: write `wide_loops(#[inline(always)] || ...)`, as what is not inlined is compiled for the oldest machine.
#[inline(always)]
pub fn wide_loops<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}
