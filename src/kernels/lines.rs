//! Where in memory kernels with packed weights find their inputs and their weights.

/// Where packed weights begin: vectors that lie in two lines of the cache take twice as long to load.
pub(super) const CACHE_LINE: usize = 64;

/// Where the inputs of rows begin: lines of rows, each so far from the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// The first row's begin.
    pub start: usize,
    /// Lines, and from line to line.
    pub count: usize,
    pub step: usize,
    /// Rows of a line, and from row to row.
    pub rows: usize,
    pub stride: usize,
}

impl Lines {
    /// One line.
    pub fn one(rows: usize, stride: usize) -> Lines {
        Lines { start: 0, count: 1, step: 0, rows, stride }
    }

    /// All rows. None: too many for a number.
    pub fn all(&self) -> Option<usize> {
        self.count.checked_mul(self.rows)
    }

    /// The begin of the last row. None: too far for a number.
    pub fn last(&self) -> Option<usize> {
        let line = self.count.saturating_sub(1).checked_mul(self.step)?;
        let row = self.rows.saturating_sub(1).checked_mul(self.stride)?;
        self.start.checked_add(line)?.checked_add(row)
    }

    /// The begin of a row of a line.
    #[inline(always)]
    pub fn at(&self, line: usize, row: usize) -> usize {
        self.start + line * self.step + row * self.stride
    }
}
