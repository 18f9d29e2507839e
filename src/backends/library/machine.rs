//! What a device with libraries is: it computes the calls that it is given. Knows no op.

use super::calls::{Convolution, Copy, Piece, Pool, Product};
use crate::diag::Result;
use crate::tensor::DeviceMemory;

/// What the libraries of a device compute. Tensors are dense where no strides are given; each call checks that what it
/// touches lies in the pieces. `Unsupported`: the library has no code for such sizes, and nothing was computed.
pub trait Machine: Send + Sync {
    /// The memory that pieces lie in.
    fn memory(&self) -> &dyn DeviceMemory;
    /// `out = alpha * a @ b`, and `+ bias` in each row where there is one.
    fn product(
        &self,
        product: &Product,
        factors: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()>;
    /// A convolution of dense tensors, and its bias, one number a channel.
    fn convolution(
        &self,
        layer: &Convolution,
        operands: [&Piece; 2],
        bias: Option<&Piece>,
        out: &Piece,
    ) -> Result<()>;
    /// Pooling of a dense tensor.
    fn pool(&self, layer: &Pool, input: &Piece, out: &Piece) -> Result<()>;
    /// `softmax` of each of `rows` dense rows.
    fn softmax(&self, rows: usize, columns: usize, input: &Piece, out: &Piece) -> Result<()>;
    /// Copies elements from one strided tensor to another, and converts them to its dtype: [`super::Copies`] do.
    fn copy(&self, copy: &Copy, input: &Piece, out: &Piece) -> Result<()>;
}
