//! What a library is asked for: pieces of a device's memory, and copies, products, convolutions and pooling of them, each with
//! a check that what it touches lies in its pieces. Knows neither ops nor what computes them.

use crate::diag::{Diagnostic, Result};
use crate::tensor::{DType, DeviceBuffer, Layout};
use smallvec::SmallVec;
use std::sync::Arc;

/// Dimensions of a copy at most.
const MAX_RANK: usize = 8;

/// Part of a buffer, from an element of its dtype.
#[derive(Clone)]
pub struct Piece {
    /// Where it lies.
    pub buffer: Arc<dyn DeviceBuffer>,
    /// Its first element.
    pub first: usize,
    /// What its elements are.
    pub dtype: DType,
}

impl Piece {
    /// A piece that begins at another element.
    pub fn at(&self, elements: i64) -> Result<Piece> {
        let first = i64::try_from(self.first).ok().and_then(|first| first.checked_add(elements));
        let first = first.and_then(|first| usize::try_from(first).ok());
        let first = first.ok_or_else(|| Diagnostic::internal("a piece before its buffer"))?;
        Ok(Piece { buffer: Arc::clone(&self.buffer), first, dtype: self.dtype })
    }

    /// Fails unless this many elements from its first one are within the buffer.
    pub fn check(&self, elements: usize) -> Result<()> {
        let end = self.first.checked_add(elements).and_then(|end| end.checked_mul(self.dtype.size()));
        match end {
            Some(end) if end <= self.buffer.nbytes() => Ok(()),
            _ => Err(Diagnostic::internal("a library call that reaches outside of its memory")),
        }
    }
}

/// Elements that are copied from one strided tensor to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    /// What the elements are that are read.
    pub from: DType,
    /// What they become.
    pub to: DType,
    /// Sizes, at least one and none of them 0, and the strides of what is read, none negative, and of what is written, all positive; neighbours that walk as
    /// one are one dimension.
    pub dims: SmallVec<[(i64, [i64; 2]); 4]>,
}

impl Copy {
    /// How the elements of one layout are copied to those of another of the same sizes.
    pub(super) fn of(dtypes: [DType; 2], from: &Layout, to: &Layout) -> Result<Copy> {
        let mut dims: SmallVec<[(i64, [i64; 2]); 4]> = SmallVec::new();
        for (n, size) in from.sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
            let steps = [from.strides[n], to.strides[n]];
            match dims.last_mut() {
                Some(last) if (0..2).all(|i| last.1[i] == size * steps[i]) => *last = (last.0 * size, steps),
                _ => dims.push((*size, steps)),
            }
        }
        if dims.is_empty() {
            dims.push((1, [1, 1]));
        }
        let walks = |(size, [read, written]): &(i64, [i64; 2])| *size > 0 && *read >= 0 && *written > 0;
        if dims.len() > MAX_RANK || !dims.iter().all(walks) {
            return Err(unsupported("copies of such strides"));
        }
        let [from, to] = dtypes;
        Ok(Copy { from, to, dims })
    }

    /// Elements that are copied.
    pub fn numel(&self) -> usize {
        self.dims.iter().map(|(size, _)| *size as usize).product()
    }

    /// Elements from the first to the last of what is read (0) or written (1).
    pub fn reach(&self, side: usize) -> usize {
        1 + self.dims.iter().map(|(size, steps)| ((size - 1) * steps[side]) as usize).sum::<usize>()
    }

    /// Fails unless all that is touched lies in the pieces, no element is written twice, and none that is read.
    pub fn check(&self, input: &Piece, out: &Piece) -> Result<()> {
        input.check(self.reach(0))?;
        out.check(self.reach(1))?;
        let mut written: SmallVec<[(i64, i64); 4]> =
            self.dims.iter().map(|(size, [_, step])| (*step, *size)).collect();
        written.sort_unstable();
        // What the dimensions with smaller strides reach, each of which must end before the next begins again.
        let mut reach = 1;
        for (step, size) in written {
            if step < reach {
                return Err(Diagnostic::internal("a copy that writes an element twice"));
            }
            reach += (size - 1) * step;
        }
        if Arc::ptr_eq(&input.buffer, &out.buffer) {
            return Err(Diagnostic::internal("a copy within one buffer"));
        }
        Ok(())
    }
}

/// Products of `batch` pairs of matrices, `m` by `k` and `k` by `n`, into dense results `n` apart in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// Of factors, bias and result. Sums are kept in float32 at least.
    pub dtype: DType,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// What is summed over.
    pub k: usize,
    /// How many products.
    pub batch: usize,
    /// The left factor.
    pub a: Matrix,
    /// The right factor.
    pub b: Matrix,
    /// Elements from one result to the next.
    pub out_stride: usize,
    /// What products are multiplied with.
    pub alpha: f64,
}

/// How a factor lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Whether columns are dense rather than rows.
    pub transposed: bool,
    /// Elements from one dense row, or column, to the next.
    pub leading: usize,
    /// Elements from one matrix of the batch to the next; 0: all products take the same.
    pub stride: usize,
}

impl Matrix {
    /// A matrix of `rows` by `columns` with these strides; None where neither rows nor columns are dense.
    pub(super) fn of([rows, columns]: [i64; 2], [down, across]: [i64; 2]) -> Option<Matrix> {
        let (transposed, leading) = if (across == 1 || columns == 1) && (down >= columns || rows == 1) {
            (false, if rows == 1 { columns } else { down })
        } else if (down == 1 || rows == 1) && (across >= rows || columns == 1) {
            (true, if columns == 1 { rows } else { across })
        } else {
            return None;
        };
        Some(Matrix { transposed, leading: usize::try_from(leading).ok()?, stride: 0 })
    }

    /// Elements from the first to the last of a batch of matrices.
    fn reach(&self, batch: usize, rows: usize, columns: usize) -> usize {
        let (lines, line) = if self.transposed { (columns, rows) } else { (rows, columns) };
        (batch - 1) * self.stride + (lines - 1) * self.leading + line
    }
}

impl Product {
    /// Elements from the first to the last of a factor.
    pub fn reach(&self, factor: usize) -> usize {
        match factor {
            0 => self.a.reach(self.batch, self.m, self.k),
            _ => self.b.reach(self.batch, self.k, self.n),
        }
    }

    /// Fails unless all that is touched lies in the pieces.
    pub fn check(&self, [a, b]: [&Piece; 2], bias: Option<&Piece>, out: &Piece) -> Result<()> {
        a.check(self.reach(0))?;
        b.check(self.reach(1))?;
        bias.map_or(Ok(()), |bias| bias.check(self.n))?;
        out.check((self.batch - 1) * self.out_stride + self.m * self.n)
    }
}

/// A convolution of dense tensors over two or three dimensions, groups apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Of all tensors. Sums are kept in float32 at least.
    pub dtype: DType,
    /// Sizes of the input: samples, channels, height, width (or depth, height, width).
    pub input: Vec<usize>,
    /// Sizes of the weight: channels of the result, channels of a group, and the window.
    pub weight: Vec<usize>,
    /// Sizes of the result.
    pub output: Vec<usize>,
    /// For each dimension of the window.
    pub stride: Vec<usize>,
    /// On both sides.
    pub padding: Vec<usize>,
    /// Elements from one of the window to the next.
    pub dilation: Vec<usize>,
    /// Groups of channels.
    pub groups: usize,
}

impl Convolution {
    /// Fails unless all that is touched lies in the pieces.
    pub fn check(&self, [input, weight]: [&Piece; 2], bias: Option<&Piece>, out: &Piece) -> Result<()> {
        input.check(self.input.iter().product())?;
        weight.check(self.weight.iter().product())?;
        bias.map_or(Ok(()), |bias| bias.check(self.output[1]))?;
        out.check(self.output.iter().product())
    }
}

/// Pooling of a dense tensor of four dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Of both tensors.
    pub dtype: DType,
    /// The greatest of a window instead of the mean.
    pub max: bool,
    /// Whether padding counts for the mean.
    pub counts_padding: bool,
    /// Sizes of the input: samples, channels, height, width.
    pub input: [usize; 4],
    /// Height and width of the result.
    pub output: [usize; 2],
    /// Height and width of a window.
    pub window: [usize; 2],
    /// From window to window.
    pub stride: [usize; 2],
    /// On both sides.
    pub padding: [usize; 2],
}

impl Pool {
    /// Fails unless all that is touched lies in the pieces.
    pub fn check(&self, input: &Piece, out: &Piece) -> Result<()> {
        input.check(self.input.iter().product())?;
        out.check(self.input[0] * self.input[1] * self.output[0] * self.output[1])
    }
}

/// The refusal of what the libraries have no code for.
pub(super) fn unsupported(why: &str) -> Diagnostic {
    Diagnostic::unsupported(format!("the device's libraries take no {why}"))
}
