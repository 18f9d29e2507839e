//! Planes of images: pooled, scaled by channel, brought to another size.

pub mod bilinear;
pub mod channels;
pub mod groups;
pub mod linear;
pub mod pool;
pub mod resample;
pub mod resize;
