//! Plain functions on tensors that rows of several families share. They know tensors, not schemas.

pub mod channels;
pub mod compute;
pub mod conv;
pub mod conv_gradient;
mod depthwise;
pub mod fill;
pub mod fourier;
pub mod fourier_layout;
pub mod gemm;
pub mod groups;
pub mod pool;
pub mod linalg;
pub mod product;
pub mod range;
pub mod images;
pub mod indexing;
pub mod place;
pub mod resample;
pub mod rows;
pub mod rule;
pub mod special;
pub mod select;
pub mod vector_rows;
pub mod wide;

/// Runs loops compiled for the widest vectors of this machine. What they call must be inlined to profit, and the closure
/// itself too: write `wide_loops(#[inline(always)] || ...)`, as what is not inlined is compiled for the oldest machine.
#[inline(always)]
pub fn wide_loops<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}
