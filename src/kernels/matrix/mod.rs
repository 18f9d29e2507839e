//! Products of matrices: over plain slices, and of tensors.

pub mod gemm;
pub mod product;
