//! Matrix products over plain slices behind one trait: a library's kernels for floats and complex numbers, own
//! loops for integers. Everything is checked before the library is called; this is the one file that calls it.
#![allow(unsafe_code, reason = "the library's one entry takes pointers; bounds are checked just before")]

use crate::diag::{Diagnostic, Result};
use crate::kernels::number::Number;
use crate::resources::{Scratch, budget, memory, pool};
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
/// Multiplications after which a product, and one by loops of our own, looks whether a limit of the run is reached: some tenth of
/// a second.
const LONG_WORK: usize = 1 << 30;
const LONG_LOOP: usize = 1 << 26;
/// Terms of a sum after which a product checks the limits: some seconds at most of one part. The same for any number of
/// threads, as the rounding of long sums depends on it.
const LONG_DEPTH: usize = 1 << 18;
/// Rows or columns, and elements of the result, that a part of a shared product has at least. The library takes other loops for
/// products below 65 rows and columns or 257 elements, whose sums round otherwise: each element is the same to the bit in
/// however many parts a product is computed.
const PART: (usize, usize) = (96, 257);

/// Columns of the second factor are read as they lie, not packed, up to this many rows of the first.
const TURNED_ROWS: usize = 96;
/// Rows of the first factor up to which reading the second one several times is cheaper than packing it.
const TURNED_MOST: usize = 4 * TURNED_ROWS;
/// Elements of the second factor from which packing it costs more than turning the result, and the same for few rows.
const TURNED_FROM: usize = 1 << 17;
const TURNED_FROM_FEW: (usize, usize) = (1 << 12, 48);
/// Columns whose distance is a multiple of this many elements meet in few sets of the cache, so that the library packs them
/// slowly: from this many elements on they are copied as rows first.
const MEETING: (usize, usize) = (512, 1 << 14);
/// Elements of a turned block of the result: what fits into a second-level cache.
const TURNED_BLOCK: usize = 1 << 16;

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
    /// Whether the library computes it.
    #[doc(hidden)]
    const LIBRARY: bool;
    /// The product itself, unchecked: safe callers go through [`matmul`]. `strides`: elements of the result from row to
    /// row, and from column to column.
    ///
    /// # Safety
    /// `a.cols == b.rows`; every element of `a` and `b` that their sizes and strides name lies within its slice. Every element
    /// of the `a.rows` by `b.cols` result that `out` points to can be written, no two of them lie at the same place, and
    /// nothing else accesses them.
    #[doc(hidden)]
    #[allow(unsafe_code, reason = "the library's kernel checks nothing")]
    unsafe fn kernel(
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        out: *mut Self,
        strides: (usize, usize),
        onto: Onto,
    );
}

/// A part of a result that one thread writes.
struct Part<T>(*mut T);

// SAFETY: parts have no element in common, and `shared` waits for all of them.
unsafe impl<T: Send> Send for Part<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Part<T> {}

/// A product in parts, on several threads where it is large. Ends early where a limit of the run is reached.
///
/// # Safety
/// As [`Gemm::kernel`] says.
unsafe fn shared<T: Gemm>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: *mut T,
    strides: (usize, usize),
    onto: Onto,
    threads: usize,
) {
    let work = a.rows.saturating_mul(b.cols).saturating_mul(a.cols);
    // Loops of our own have parts of whole rows.
    let by_rows = a.rows >= b.cols || !T::LIBRARY;
    let (count, across) = if by_rows { (a.rows, b.cols) } else { (b.cols, a.rows) };
    let most = if T::LIBRARY { count / PART.0.max(PART.1.div_ceil(across.max(1))) } else { count };
    let threads = if work < PARALLEL_WORK { 1 } else { threads };
    let parts = threads.max(work / if T::LIBRARY { LONG_WORK } else { LONG_LOOP }).min(most);
    if parts < 2 {
        // SAFETY: the caller's promise.
        return unsafe { in_depth(a, b, out, strides, onto) };
    }
    let out = Part(out);
    pool::for_each(parts, |n| {
        let (from, to) = (n * count / parts, (n + 1) * count / parts);
        let whole = &out;
        // SAFETY: rows or columns from `from` to `to` of factors and result that the caller promised; no other part has them.
        unsafe {
            if by_rows {
                let rows = Matrix { data: &a.data[from * a.row_stride..], rows: to - from, ..a };
                in_depth(rows, b, whole.0.add(from * strides.0), strides, onto);
            } else {
                let columns = Matrix { data: &b.data[from * b.col_stride..], cols: to - from, ..b };
                in_depth(a, columns, whole.0.add(from * strides.1), strides, onto);
            }
        }
    });
}

/// A part of a product, a block of terms of its sums at a time. Ends early where a limit of the run is reached.
///
/// # Safety
/// As [`Gemm::kernel`] says.
unsafe fn in_depth<T: Gemm>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: *mut T,
    strides: (usize, usize),
    mut onto: Onto,
) {
    for from in (0..a.cols).step_by(LONG_DEPTH) {
        if from > 0 && budget::is_stopped() {
            return;
        }
        let cols = LONG_DEPTH.min(a.cols - from);
        let left = Matrix { data: &a.data[from * a.col_stride..], cols, ..a };
        let right = Matrix { data: &b.data[from * b.row_stride..], rows: cols, ..b };
        // SAFETY: columns and rows of factors that the caller promised, and the same result.
        unsafe { T::kernel(left, right, out, strides, onto) };
        onto = Onto::Existing;
    }
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
    let columns_are_dense = T::LIBRARY && b.row_stride == 1 && b.col_stride > 1;
    let numel = b.rows.saturating_mul(b.cols);
    let meets = b.col_stride.is_multiple_of(MEETING.0) && numel >= MEETING.1 && a.rows > TURNED_ROWS;
    let is_few = a.rows <= TURNED_FROM_FEW.1 && numel >= TURNED_FROM_FEW.0;
    let is_large = a.rows <= TURNED_MOST && numel >= TURNED_FROM;
    if columns_are_dense && meets {
        let copy = as_rows(b)?;
        let b = Matrix::dense(&copy, b.rows, b.cols);
        // SAFETY: as below; the copy has the size of what it is a copy of.
        unsafe { shared(a, b, out.as_mut_ptr(), (stride, 1), onto, pool::threads()) };
    } else if columns_are_dense && a.rows > 1 && (is_few || is_large) {
        // Few rows times the transpose of a matrix of weights.
        turned(a, b, out, stride, onto);
    } else {
        // SAFETY: sizes and ends were checked above, and rows do not overlap as the stride is at least the number of
        // columns.
        unsafe { shared(a, b, out.as_mut_ptr(), (stride, 1), onto, pool::threads()) };
    }
    Ok(())
}

/// A copy, row after row, of a matrix whose columns lie densely.
fn as_rows<T: Gemm>(b: Matrix<'_, T>) -> Result<Scratch<T>> {
    const TILE: usize = 16;
    let mut out = memory::filled(b.rows * b.cols, T::default())?;
    let tile = TILE * b.cols;
    pool::chunks(&mut out, tile, |at, rows| {
        let top = at * TILE;
        let height = rows.len() / b.cols.max(1);
        for left in (0..b.cols).step_by(TILE) {
            let mut block = [[T::default(); TILE]; TILE];
            let width = TILE.min(b.cols - left);
            for (j, column) in block.iter_mut().take(width).enumerate() {
                let start = (left + j) * b.col_stride + top;
                column[..height].copy_from_slice(&b.data[start..start + height]);
            }
            for i in 0..height {
                for (j, column) in block.iter().take(width).enumerate() {
                    rows[i * b.cols + left + j] = column[i];
                }
            }
        }
    });
    Ok(out)
}

/// The product of few rows and a matrix whose columns lie densely, computed as its transpose block by block: so the
/// library reads the large factor in place, where it would rearrange all of it for a result in rows.
fn turned<T: Gemm>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T], stride: usize, onto: Onto) {
    let mut top = 0;
    while top < a.rows {
        let rows = TURNED_ROWS.min(a.rows - top);
        let part = Matrix { data: &a.data[top * a.row_stride..], rows, ..a };
        let width = (TURNED_BLOCK / rows).max(1).min(b.cols);
        let mut block = vec![T::default(); rows * width];
        let mut left = 0;
        while left < b.cols {
            let cols = width.min(b.cols - left);
            let columns = Matrix { data: &b.data[left * b.col_stride..], cols, ..b };
            let block = &mut block[..rows * cols];
            // SAFETY: these are parts of factors that `matmul` checked, and a block of exactly rows times columns.
            unsafe { shared(part, columns, block.as_mut_ptr(), (1, rows), Onto::Nothing, pool::threads()) };
            turn(block, rows, &mut out[top * stride + left..], stride, onto);
            left += cols;
        }
        top += rows;
    }
}

/// Writes or adds columns of `rows` elements as rows that begin `stride` apart.
fn turn<T: Gemm>(block: &[T], rows: usize, out: &mut [T], stride: usize, onto: Onto) {
    const TILE: usize = 16;
    let cols = block.len() / rows.max(1);
    for left in (0..cols).step_by(TILE) {
        let right = (left + TILE).min(cols);
        for i in 0..rows {
            let row = &mut out[i * stride + left..i * stride + right];
            let column = block[left * rows + i..].iter().step_by(rows);
            match onto {
                Onto::Nothing => row.iter_mut().zip(column).for_each(|(y, x)| *y = *x),
                Onto::Existing => row.iter_mut().zip(column).for_each(|(y, x)| *y = y.plus(*x)),
            }
        }
    }
}

macro_rules! library {
    ($($T:ty),*) => {
        $(impl Gemm for $T {
            const LIBRARY: bool = true;
            unsafe fn kernel(a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: *mut Self, strides: (usize, usize), onto: Onto) {
                // SAFETY: the caller's promise.
                unsafe {
                    gemm::gemm(
                        a.rows,
                        b.cols,
                        a.cols,
                        out,
                        strides.1 as isize,
                        strides.0 as isize,
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
                        // Threads of the library's own would not survive a fork; `shared` has the team's.
                        gemm::Parallelism::None,
                    );
                }
            }
        })*
    };
}

library!(f32, f64, Complex<f32>, Complex<f64>);

/// Term after term; what is there comes last.
fn in_order<T: Number>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T], stride: usize, onto: Onto) {
    let mut sums = vec![T::default(); b.cols];
    for i in 0..a.rows {
        sums.fill(T::default());
        for p in 0..a.cols {
            let factor = a.data[i * a.row_stride + p * a.col_stride];
            for (j, x) in sums.iter_mut().enumerate() {
                *x = x.plus(factor.times(b.data[p * b.row_stride + j * b.col_stride]));
            }
        }
        let row = &mut out[i * stride..i * stride + b.cols];
        match onto {
            Onto::Nothing => row.copy_from_slice(&sums),
            Onto::Existing => row.iter_mut().zip(&sums).for_each(|(y, x)| *y = y.plus(*x)),
        }
    }
}

macro_rules! loops {
    ($($T:ty),*) => {
        $(impl Gemm for $T {
            const LIBRARY: bool = false;
            unsafe fn kernel(a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: *mut Self, strides: (usize, usize), onto: Onto) {
                // Rows are dense: only the library is asked for others.
                let end = (a.rows - 1) * strides.0 + b.cols;
                // SAFETY: the caller's promise; `matmul` lets no empty product through, and lent this much of a slice.
                in_order(a, b, unsafe { std::slice::from_raw_parts_mut(out, end) }, strides.0, onto);
            }
        })*
    };
}

loops!(u8, i8, i16, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_times_a_large_transpose_are_what_they_are_in_parts() {
        // Turned; of a stride whose columns meet; few rows.
        for (m, k, n) in [(101, 130, 1100), (101, 512, 70), (3, 130, 67)] {
            few_rows(m, k, n);
        }
    }

    fn few_rows(m: usize, k: usize, n: usize) {
        let number = |i: usize| ((i * 7919) % 17) as f32 - 8.0;
        let a: Vec<f32> = (0..m * k).map(number).collect();
        let w: Vec<f32> = (0..n * k).map(|i| number(i + 3)).collect();
        let (x, weights) = (Matrix::dense(&a, m, k), Matrix::dense(&w, n, k));
        let stride = n + 5;
        let mut out = vec![1f32; m * stride];
        matmul(x, weights.t(), &mut out, stride, Onto::Existing).expect("fits");
        for (i, j) in [(0, 0), (95, 681), (96, 682), (100, 1099), (50, 0), (2, 66), (100, 69), (77, 16)] {
            let (i, j) = (i.min(m - 1), j.min(n - 1));
            let sum: f32 = (0..k).map(|p| a[i * k + p] * w[j * k + p]).sum();
            assert_eq!(out[i * stride + j], sum + 1.0, "{i} {j}");
        }
        assert_eq!(out[n], 1.0);
    }

    #[test]
    fn products_in_parts_are_the_same_to_the_bit() {
        let number = |i: usize| (((i * 7919) % 1013) as f32 - 500.0) * 0.37e-2;
        for (m, k, n) in [
            (1024, 70, 67),
            (33, 300, 1600),
            (1, 2100, 2048),
            (2051, 2053, 1),
            (1100, 1030, 5),
            (520, 4100, 2),
            (1537, 3, 1030),
            (193, 300, 100),
            (128, 16_500, 2),
            (197, 768, 3072),
            (1, 16_500, 514),
        ] {
            let a: Vec<f32> = (0..m * k).map(number).collect();
            let b: Vec<f32> = (0..k * n).map(|i| number(i + 5)).collect();
            let dense = (Matrix::dense(&a, m, k), Matrix::dense(&b, k, n));
            let turned = (Matrix::dense(&a, k, m).t(), Matrix::dense(&b, n, k).t());
            for (x, y) in [dense, (dense.0, turned.1), (turned.0, dense.1), turned] {
                for strides in [(n, 1), (1, m)] {
                    let product = |threads| {
                        let mut out = vec![0f32; m * n];
                        // SAFETY: the factors have these sizes, and the result has room for all rows and columns.
                        unsafe { shared(x, y, out.as_mut_ptr(), strides, Onto::Nothing, threads) };
                        out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                    };
                    let whole = product(1);
                    for threads in [2, 3] {
                        assert!(product(threads) == whole, "{m} {k} {n} {strides:?} in {threads} parts");
                    }
                }
            }
        }
    }

    #[test]
    fn long_sums_come_in_parts_and_end_at_a_limit() {
        let (m, k, n) = (2, 2 * LONG_DEPTH + 3, 3);
        let one = [1f64];
        let of_ones = |rows, cols| Matrix { data: &one, rows, cols, row_stride: 0, col_stride: 0 };
        let mut out = vec![1.0; m * n];
        matmul(of_ones(m, k), of_ones(k, n), &mut out, n, Onto::Nothing).expect("fits");
        assert_eq!(out, vec![k as f64; m * n]);
        matmul(of_ones(m, k), of_ones(k, n), &mut out, n, Onto::Existing).expect("fits");
        assert_eq!(out, vec![2.0 * k as f64; m * n]);
        let budget = std::sync::Arc::new(budget::Budget::new(crate::resources::Limits::default()));
        let _installed = budget.install();
        budget.cancel();
        // Days of work, of which the first part is done.
        matmul(of_ones(1, 1 << 50), of_ones(1 << 50, 1), &mut out, 1, Onto::Nothing).expect("fits");
        assert_eq!(out[0], LONG_DEPTH as f64);
    }

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
