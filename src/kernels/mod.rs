//! CPU kernels over slices and sizes: what an op's row calls to compute. They know tensors at most; no op, no schema, no
//! graph.

pub mod complex;
mod depthwise;
pub mod fake_quantize;
pub mod float;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod narrow;
pub mod qconv;
pub mod qgemm;
pub mod quantize;
pub mod resize;
mod stage;
#[cfg(test)]
mod tests;

pub use stage::{Affine, Engine};
