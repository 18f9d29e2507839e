//! Dense linear algebra on small matrices, in float64 or complex128 whatever the tensor's dtype, so that results are
//! rounded once. Conventions (pivots, signs, packed factors) are LAPACK's, since programs see them. Knows tensors, no
//! schema. Loops over rows or columns end early where a limit of the run is reached; callers fail then.

pub mod eigen;
mod eigen_complex;
mod eigen_real;
pub mod factor;
pub mod hermitian;
pub mod indefinite;
pub mod orthogonal;
pub mod singular;
pub mod solve;

use super::wide::{Wide, store};
use crate::diag::{Diagnostic, Result};
use crate::kernels::strided::by_columns;
use crate::resources::{Collect, Scratch, budget, memory};
use crate::tensor::{DType, Dims, Tensor, numel};
use num_complex::Complex64;
use std::ops::{Add, Div, Index, IndexMut, Mul, Neg, Sub};

/// The two kinds of numbers in which matrices are computed.
pub trait Field:
    Wide + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// Complex conjugate.
    fn conj(self) -> Self;
    /// Real part.
    fn re(self) -> f64;
    /// Absolute value.
    fn modulus(self) -> f64;
    /// |re| + |im|, by which LAPACK compares pivots.
    fn size(self) -> f64;
    /// From a real number.
    fn of(x: f64) -> Self;
    /// As a complex number.
    fn complex(self) -> Complex64;
    /// Rounded to float32. Sums and products so rounded are those of float32 arithmetic.
    fn single(self) -> Self;
}

impl Field for f64 {
    fn conj(self) -> f64 {
        self
    }
    fn re(self) -> f64 {
        self
    }
    fn modulus(self) -> f64 {
        self.abs()
    }
    fn size(self) -> f64 {
        self.abs()
    }
    fn of(x: f64) -> f64 {
        x
    }
    fn complex(self) -> Complex64 {
        Complex64::new(self, 0.0)
    }
    fn single(self) -> f64 {
        f64::from(self as f32)
    }
}

impl Field for Complex64 {
    fn conj(self) -> Complex64 {
        Complex64::conj(&self)
    }
    fn re(self) -> f64 {
        self.re
    }
    fn modulus(self) -> f64 {
        self.norm()
    }
    fn size(self) -> f64 {
        self.re.abs() + self.im.abs()
    }
    fn of(x: f64) -> Complex64 {
        Complex64::new(x, 0.0)
    }
    fn complex(self) -> Complex64 {
        self
    }
    fn single(self) -> Complex64 {
        Complex64::new(self.re.single(), self.im.single())
    }
}

/// Runs `$body` with `$F` bound to the field in which matrices of a dtype are computed.
macro_rules! with_field {
    ($dtype:expr, $F:ident => $body:expr) => {{
        if $dtype.is_complex() {
            type $F = num_complex::Complex64;
            $body
        } else {
            type $F = f64;
            $body
        }
    }};
}
pub(crate) use with_field;

/// A matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Mat<F> {
    /// How many rows.
    pub rows: usize,
    /// How many columns.
    pub cols: usize,
    /// The elements.
    pub data: Scratch<F>,
}

impl<F> Index<(usize, usize)> for Mat<F> {
    type Output = F;
    fn index(&self, (i, j): (usize, usize)) -> &F {
        &self.data[i * self.cols + j]
    }
}

impl<F> IndexMut<(usize, usize)> for Mat<F> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut F {
        &mut self.data[i * self.cols + j]
    }
}

impl<F: Field> Mat<F> {
    /// Zeros.
    pub fn zeros(rows: usize, cols: usize) -> Mat<F> {
        Mat { rows, cols, data: memory::taken(vec![F::ZERO; rows * cols]) }
    }

    /// Ones on the diagonal.
    pub fn identity(rows: usize, cols: usize) -> Mat<F> {
        Mat::from_fn(rows, cols, |i, j| if i == j { F::ONE } else { F::ZERO })
    }

    /// Element by element.
    pub fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> F) -> Mat<F> {
        // A shape may name 2^40 empty rows.
        let rows_walked = if cols == 0 { 0 } else { rows };
        let data =
            (0..rows_walked).flat_map(|i| (0..cols).map(move |j| (i, j))).map(|(i, j)| f(i, j)).collect();
        Mat { rows, cols, data: memory::taken(data) }
    }

    /// The conjugate transpose.
    pub fn adjoint(&self) -> Mat<F> {
        Mat::from_fn(self.cols, self.rows, |i, j| self[(j, i)].conj())
    }

    /// The transpose.
    pub fn transpose(&self) -> Mat<F> {
        Mat::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// The product with another matrix of as many rows as this has columns.
    pub fn times(&self, other: &Mat<F>) -> Mat<F> {
        let mut out = Mat::zeros(self.rows, other.cols);
        if out.data.is_empty() || self.cols == 0 {
            return out;
        }
        for i in (0..self.rows).take_while(|_| !budget::is_stopped()) {
            for k in 0..self.cols {
                let x = self[(i, k)];
                for j in 0..other.cols {
                    out[(i, j)] = out[(i, j)] + x * other[(k, j)];
                }
            }
        }
        out
    }

    /// Exchanges two rows.
    pub fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            for j in 0..self.cols {
                self.data.swap(a * self.cols + j, b * self.cols + j);
            }
        }
    }

    /// The first columns.
    pub fn first_columns(&self, count: usize) -> Mat<F> {
        Mat::from_fn(self.rows, count, |i, j| self[(i, j)])
    }
}

/// What a matrix of a batch takes besides its elements, about, with its factors.
const BYTES_OF_MATRIX: usize = 512;

/// Matrices of a tensor's last two dimensions.
pub struct Batch<F> {
    /// Sizes of the other dimensions.
    pub sizes: Dims,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub cols: usize,
    /// One after the other.
    pub items: Vec<Mat<F>>,
}

impl<F: Field> Batch<F> {
    /// Reads a tensor of rank 2 at least.
    pub fn new(tensor: &Tensor) -> Result<Batch<F>> {
        let sizes = tensor.sizes();
        let [batch @ .., rows, cols] = &sizes[..] else {
            return Err(Diagnostic::internal("a matrix needs two dimensions"));
        };
        let (rows, cols) = (*rows as usize, *cols as usize);
        let elements = tensor.elements_as::<F>()?;
        let count = numel(batch);
        // Each matrix, however small, and what is made of it are lists of their own; a shape may name 2^40 empty ones.
        memory::expect::<[u8; BYTES_OF_MATRIX]>(count)?;
        let items = (0..count)
            .map(|n| {
                let data = memory::copied(&elements[n * rows * cols..(n + 1) * rows * cols])?;
                Ok(Mat { rows, cols, data })
            })
            .collect::<Result<_>>()?;
        Ok(Batch { sizes: Dims::from_slice(batch), rows, cols, items })
    }

    /// As [`Batch::new`], repeated to other sizes of the batch.
    pub fn broadcast(tensor: &Tensor, batch: &[i64]) -> Result<Batch<F>> {
        let sizes = tensor.sizes();
        let mut full = Dims::from_slice(batch);
        full.extend_from_slice(&sizes[sizes.len().saturating_sub(2)..]);
        Batch::new(&tensor.broadcast_to(&full)?)
    }
}

/// A tensor of matrices of the same size, rounded to a dtype; in memory column after column, as PyTorch's are.
pub fn stack<F: Field>(
    items: &[Mat<F>],
    batch: &[i64],
    rows: usize,
    cols: usize,
    dtype: DType,
) -> Result<Tensor> {
    let mut sizes = Dims::from_slice(batch);
    sizes.extend([rows as i64, cols as i64]);
    let elements = items.iter().flat_map(|m| m.data.iter().copied()).scratch()?;
    by_columns(store::<F>(&elements, &sizes, dtype)?)
}

/// A tensor of vectors of the same length.
pub fn stack_vectors<W: Wide>(
    items: &[Vec<W>],
    batch: &[i64],
    length: usize,
    dtype: DType,
) -> Result<Tensor> {
    let mut sizes = Dims::from_slice(batch);
    sizes.push(length as i64);
    store::<W>(&items.iter().flatten().copied().scratch()?, &sizes, dtype)
}
