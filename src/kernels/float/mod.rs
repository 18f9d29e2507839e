//! float32 kernels of whole models: layers with packed weights over images whose channels are innermost, and what stands
//! between them. A layer's epilogue (bias, batch norm, residual, activation) is applied before its results leave the
//! registers. Results are the same for any number of threads. Knows slices and sizes; no op, no graph.

mod attention;
pub mod bands;
pub mod channels;
mod conv;
mod depthwise;
mod epilogue;
mod gelu;
mod math;
mod matrix;
mod pool;
mod prologue;
pub mod rows;
mod scratch;
mod shape;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_rows;
mod tile;
mod transpose;
mod vector;
mod weights;
mod winograd;

pub use attention::{AttentionShape, Heads, Scores, attention};
pub use conv::PackedConv;
pub use epilogue::{Activation, Epilogue, Residual};
pub use matrix::PackedMatrix;
pub use pool::{PoolKind, Pooling};
pub use prologue::Prologue;
pub use shape::{ConvShape, Images, Layout, Plane};
pub use weights::Source;
