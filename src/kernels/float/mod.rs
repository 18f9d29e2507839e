//! float32 kernels of whole models: layers with packed weights over images whose channels are innermost, and what stands
//! between them. A layer's epilogue (bias, batch norm, residual, activation) is applied before its results leave the
//! registers. Results are the same for any number of threads. Knows slices and sizes; no op, no graph.

mod conv;
mod epilogue;
mod math;
mod matrix;
mod scratch;
#[cfg(test)]
mod tests;
mod tile;
mod vector;

pub use conv::{ConvShape, Images, Layout, PackedConv, Plane};
pub use epilogue::{Activation, Epilogue, Residual};
pub use matrix::PackedMatrix;
