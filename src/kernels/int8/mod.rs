//! Quantization, and products and convolutions of 8-bit integers on the instructions that a machine has for them.

mod depthwise;
pub mod fake_quantize;
mod job;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod narrow;
pub mod qconv;
pub mod qgemm;
mod quantization;
pub mod quantize;
mod stage;
#[cfg(test)]
mod tests;

pub use quantization::Affine;
pub use stage::Engine;
