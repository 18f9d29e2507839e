//! CPU kernels over slices and sizes: what an op's row calls to compute. They know tensors at most; no op, no schema, no
//! graph.

pub mod fake_quantize;
mod depthwise;
pub mod float;
mod lanes;
pub mod qconv;
pub mod qgemm;
pub mod quantize;
pub mod resize;
mod stage;
#[cfg(test)]
mod tests;

pub use stage::{Affine, Engine};

use crate::diag::{Diagnostic, Result};

/// `count` copies of `value`; an error where memory for them cannot be had.
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| {
        Diagnostic::runtime(format!(
            "out of memory: a kernel needs room for {count} elements of {} bytes",
            size_of::<T>()
        ))
    })?;
    room.resize(count, value);
    Ok(room)
}
