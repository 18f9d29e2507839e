//! Tensors made of numbers: ranges, window functions, one number everywhere.

pub mod fill;
pub mod range;
