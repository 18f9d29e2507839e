//! Quantization, and products and convolutions of 8-bit integers on the instructions that a machine has for them.

mod depthwise;
pub mod fake_quantize;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod narrow;
pub mod qconv;
pub mod qgemm;
pub mod quantize;
mod stage;
#[cfg(test)]
mod tests;

pub use stage::{Affine, Engine};
