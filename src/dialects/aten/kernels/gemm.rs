//! Matrix products over plain slices behind one trait: a library's kernels for floats and complex numbers, own
//! loops for integers. Everything is checked before the library is called; this is the one file that calls it.
#![allow(unsafe_code, reason = "the library's one entry takes pointers; bounds are checked just before")]

use super::compute::Number;
use crate::diag::{Diagnostic, Result};
use num_complex::Complex;

/// A matrix inside a slice: element (i, j) at `i * row_stride + j * col_stride`.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    /// From element (0, 0) on.
    pub data: &'a [T],
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements from a row to the next.
    pub row_stride: usize,
    /// Elements from a column to the next.
    pub col_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows one after the other.
    pub fn dense(data: &'a [T], rows: usize, cols: usize) -> Matrix<'a, T> {
        Matrix { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// Rows and columns exchanged.
    pub fn t(self) -> Matrix<'a, T> {
        Matrix {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Whether every element lies within the slice.
    fn fits(&self) -> bool {
        let reach = |count: usize, stride: usize| count.saturating_sub(1).checked_mul(stride);
        let last = reach(self.rows, self.row_stride)
            .zip(reach(self.cols, self.col_stride))
            .and_then(|(r, c)| r.checked_add(c));
        self.rows == 0 || self.cols == 0 || last.is_some_and(|last| last < self.data.len())
    }
}

/// Multiplications below which a product is not shared among threads.
const PARALLEL_WORK: usize = 1 << 22;

/// Products of so few multiplications, and fewer rows or columns than these, are summed as PyTorch's library sums them:
/// each product rounded, then added. Larger ones are fused there and here, so that the answers agree to the last bit
/// more often than not (measured with its x86 build, all shapes up to 16 x 16 x 24).
const SMALL_WORK: usize = 1 << 13;
const FUSED_ROWS: usize = 4;
const FUSED_COLS: usize = 11;

/// Whether a product writes over what is there or adds to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// Write.
    Nothing,
    /// Add.
    Existing,
}

/// Numbers with a matrix product.
pub trait Gemm: Number {
    /// The product itself; `matmul` has checked sizes and bounds.
    #[doc(hidden)]
    fn kernel(a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: &mut [Self], stride: usize, onto: Onto);
}

/// `out = a b` or `out += a b`; row i of `out` starts at `i * stride`. Fails if sizes do not fit.
pub fn matmul<T: Gemm>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut [T],
    stride: usize,
    onto: Onto,
) -> Result<()> {
    let (rows, cols) = (a.rows, b.cols);
    let end = rows.saturating_sub(1).checked_mul(stride).and_then(|n| n.checked_add(cols));
    let fits = a.cols == b.rows && a.fits() && b.fits() && (stride >= cols || rows <= 1);
    if !fits || end.is_none_or(|end| end > out.len() && rows > 0 && cols > 0) {
        return Err(Diagnostic::internal(format!(
            "product of {}x{} and {}x{} with row stride {stride} in {} elements",
            a.rows,
            a.cols,
            b.rows,
            b.cols,
            out.len()
        )));
    }
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    if a.cols == 0 {
        if onto == Onto::Nothing {
            out.chunks_mut(stride.max(1)).take(rows).for_each(|row| row[..cols].fill(T::default()));
        }
        return Ok(());
    }
    T::kernel(a, b, out, stride, onto);
    Ok(())
}

macro_rules! library {
    ($($T:ty),*) => {
        $(impl Gemm for $T {
            fn kernel(a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: &mut [Self], stride: usize, onto: Onto) {
                let work = a.rows.saturating_mul(b.cols).saturating_mul(a.cols);
                if work <= SMALL_WORK && (a.rows < FUSED_ROWS || b.cols < FUSED_COLS) {
                    return in_order(a, b, out, stride, onto);
                }
                let parallelism =
                    if work >= PARALLEL_WORK { gemm::Parallelism::Rayon(0) } else { gemm::Parallelism::None };
                // SAFETY: `matmul`, the only caller, has checked that every element of `a` and `b` and every
                // element of the result's rows lies within its slice; `out` is borrowed exclusively, and its
                // rows do not overlap as `stride` is at least the number of columns.
                unsafe {
                    gemm::gemm(
                        a.rows,
                        b.cols,
                        a.cols,
                        out.as_mut_ptr(),
                        1,
                        stride as isize,
                        onto == Onto::Existing,
                        a.data.as_ptr(),
                        a.col_stride as isize,
                        a.row_stride as isize,
                        b.data.as_ptr(),
                        b.col_stride as isize,
                        b.row_stride as isize,
                        <$T as Number>::ONE,
                        <$T as Number>::ONE,
                        false,
                        false,
                        false,
                        parallelism,
                    );
                }
            }
        })*
    };
}

library!(f32, f64, Complex<f32>, Complex<f64>);

/// Term after term, each product rounded before it is added.
fn in_order<T: Number>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T], stride: usize, onto: Onto) {
    for i in 0..a.rows {
        let row = &mut out[i * stride..i * stride + b.cols];
        if onto == Onto::Nothing {
            row.fill(T::default());
        }
        for p in 0..a.cols {
            let factor = a.data[i * a.row_stride + p * a.col_stride];
            for (j, x) in row.iter_mut().enumerate() {
                *x = x.plus(factor.times(b.data[p * b.row_stride + j * b.col_stride]));
            }
        }
    }
}

macro_rules! loops {
    ($($T:ty),*) => {
        $(impl Gemm for $T {
            fn kernel(a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: &mut [Self], stride: usize, onto: Onto) {
                in_order(a, b, out, stride, onto);
            }
        })*
    };
}

loops!(u8, i8, i16, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_take_any_strides_and_check_bounds() {
        let a: Vec<f32> = (0..6).map(|x| x as f32).collect();
        let mut out = [1f32; 9];
        let m = Matrix::dense(&a, 2, 3);
        matmul(m.t(), m, &mut out, 3, Onto::Existing).expect("fits");
        assert_eq!(out, [10.0, 13.0, 16.0, 13.0, 18.0, 23.0, 16.0, 23.0, 30.0]);
        assert!(matmul(m, m, &mut out, 3, Onto::Nothing).is_err());
        assert!(matmul(m.t(), m, &mut out[..8], 3, Onto::Nothing).is_err());
        let short = Matrix { row_stride: 4, ..m };
        assert!(matmul(short, m.t(), &mut out, 3, Onto::Nothing).is_err());
        let i = [1i8, 100, -100, 2];
        let mut wrapped = [0i8; 4];
        matmul(Matrix::dense(&i, 2, 2), Matrix::dense(&i, 2, 2), &mut wrapped, 2, Onto::Nothing)
            .expect("fits");
        assert_eq!(wrapped, [-15, 44, -44, -12]);
    }
}
