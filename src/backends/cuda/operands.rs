//! What cuBLASLt and cuDNN are both given: how factors are rounded, and where pieces lie on the device.

use super::driver::own;
use crate::backends::library::Piece;
use crate::diag::Result;

/// How products and convolutions round the factors of float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Not at all.
    Float32,
    /// To the 10 bits of mantissa of TF32, as PyTorch rounds those of convolutions on GPUs by default.
    Tf32,
}

/// The device address of a piece's first element, for work that is queued or recorded now.
pub(super) fn address(piece: &Piece) -> Result<u64> {
    let buffer = own(&*piece.buffer)?;
    buffer.context().keep(&piece.buffer);
    Ok(buffer.address(piece.first * piece.dtype.size()))
}
