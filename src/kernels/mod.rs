//! CPU kernels over slices and sizes: what an op's row calls to compute. They know tensors at most; no op, no schema, no
//! graph.

pub mod complex;
pub mod compute;
pub mod conv;
pub mod create;
pub mod float;
pub mod fourier;
pub mod images;
pub mod index;
pub mod int8;
pub mod linalg;
mod lines;
pub mod matrix;
mod number;
pub mod rows;
pub mod special;
pub mod strided;
mod vectors;
pub mod wide;

pub use int8::{Affine, Engine};
pub use vectors::wide_loops;
