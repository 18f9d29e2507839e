//! Plain functions on tensors that rows of several families share. They know tensors, not schemas.

pub mod compute;
pub mod fill;
pub mod gemm;
pub mod product;
pub mod range;
pub mod indexing;
pub mod place;
pub mod rows;
pub mod rule;
pub mod special;
pub mod select;
pub mod wide;
