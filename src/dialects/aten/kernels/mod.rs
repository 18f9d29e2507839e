//! Plain functions on tensors that rows of several families share. They know tensors, not schemas.

pub mod fill;
pub mod range;
pub mod place;
pub mod rule;
pub mod special;
