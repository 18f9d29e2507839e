//! Matrices transposed eight by eight in registers. Knows slices only.
#![allow(
    unsafe_code,
    reason = "blocks go through pointers; `Transpose::new` proves them inside their slices"
)]

use super::vector::{Isa, Lanes, Work, with};
use crate::diag::{Diagnostic, Result};

/// Rows and columns of a block.
const SIDE: usize = 8;

/// A matrix to be transposed.
pub(super) struct Transpose<'a> {
    from: &'a [f32],
    /// Rows and columns of `from`.
    rows: usize,
    columns: usize,
    /// Floats from row to row of `from`, and of `to`.
    stride: usize,
    to: &'a mut [f32],
    pitch: usize,
}

impl<'a> Transpose<'a> {
    /// `rows` of `columns` floats that lie `stride` apart in `from`, to be written as columns of `to`, whose rows lie `pitch` apart.
    /// Fails where they do not fit.
    pub fn new(
        from: &'a [f32],
        [rows, columns]: [usize; 2],
        stride: usize,
        to: &'a mut [f32],
        pitch: usize,
    ) -> Result<Transpose<'a>> {
        let end = |rows: usize, step: usize, width: usize| match rows.min(width) {
            0 => Some(0),
            _ => (rows - 1).checked_mul(step)?.checked_add(width),
        };
        let fits = end(rows, stride, columns).is_some_and(|end| end <= from.len())
            && end(columns, pitch, rows).is_some_and(|end| end <= to.len());
        // Rows that overlap would be written in an order that shows.
        let apart = pitch >= rows || columns <= 1;
        match fits && apart {
            true => Ok(Transpose { from, rows, columns, stride, to, pitch }),
            false => Err(Diagnostic::internal(format!(
                "a matrix of {rows} by {columns} in slices that are too small"
            ))),
        }
    }

    /// Does it.
    pub fn run_with(self, isa: Isa) {
        with(isa, self);
    }
}

impl Work for Transpose<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let (from, to) = (self.from.as_ptr(), self.to.as_mut_ptr());
        for row in (0..self.rows).step_by(SIDE) {
            for column in (0..self.columns).step_by(SIDE) {
                let rows = SIDE.min(self.rows - row);
                let columns = SIDE.min(self.columns - column);
                // SAFETY: `row + rows` and `column + columns` are at most those of the matrix, which `new` has found inside of
                // both slices.
                unsafe {
                    let from = from.add(row * self.stride + column);
                    let to = to.add(column * self.pitch + row);
                    if rows == SIDE && columns == SIDE {
                        l.transpose8(from, self.stride, to, self.pitch);
                        continue;
                    }
                    for n in 0..rows {
                        for i in 0..columns {
                            *to.add(i * self.pitch + n) = *from.add(n * self.stride + i);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_of_any_size_are_transposed_and_nothing_else_is_written() {
        for isa in Isa::supported() {
            for [rows, columns] in [[0, 3], [1, 1], [7, 9], [8, 8], [17, 24], [32, 5], [33, 40]] {
                let (stride, pitch) = (columns + 3, rows + 2);
                let from: Vec<f32> = (0..rows * stride + 1).map(|n| n as f32).collect();
                let mut to = vec![-1.0; columns * pitch + 1];
                let work = Transpose::new(&from, [rows, columns], stride, &mut to, pitch).expect("it fits");
                work.run_with(isa);
                for (n, x) in to.iter().enumerate() {
                    let (column, row) = (n / pitch, n % pitch);
                    let inside = row < rows && column < columns;
                    assert_eq!(
                        *x,
                        if inside { from[row * stride + column] } else { -1.0 },
                        "{isa:?} {rows} {columns}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (from, mut to) = ([0.0; 12], [0.0; 12]);
        assert!(Transpose::new(&from, [3, 4], 4, &mut to, 3).is_ok());
        assert!(Transpose::new(&from, [3, 5], 4, &mut to, 3).is_err());
        assert!(Transpose::new(&from, [3, 4], usize::MAX, &mut to, 3).is_err());
        assert!(Transpose::new(&from, [3, 4], 4, &mut to, 2).is_err());
        assert!(Transpose::new(&from, [3, 4], 4, &mut to[..11], 3).is_err());
    }
}
