//! Convolutions of float and complex numbers over plain slices, in all dtypes and up to three spatial dimensions.

mod dense;
mod depthwise;
mod geometry;
mod gradient;

pub use dense::{forward, transposed};
pub use geometry::Geometry;
pub use gradient::weight_gradient;
