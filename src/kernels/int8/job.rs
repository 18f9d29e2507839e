//! A product of bytes as its loops are given it: the instructions, what is read, and where results go. No loop is known here.

use super::stage::{Finish, Stage};
use crate::diag::{Diagnostic, Result};
use crate::kernels::lines::Lines;
use std::sync::OnceLock;

/// Columns of a panel of packed weights.
pub(super) const PANEL: usize = 16;
/// Terms of a sum that one instruction adds up.
pub(super) const QUAD: usize = 4;

/// Instructions that products are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// AVX-512 with byte products.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 with byte products.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// AVX2: products of 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What rustc makes of a loop.
    Portable,
}

impl Isa {
    /// All that this machine has, best first.
    pub fn supported() -> Vec<Isa> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            if wide && is_x86_feature_detected!("avx512vnni") {
                all.push(Isa::Avx512);
            }
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avxvnni") {
                all.push(Isa::AvxVnni);
            }
            if avx2 {
                all.push(Isa::Avx2);
            }
        }
        all.push(Isa::Portable);
        all
    }

    /// Columns of a vector of sums.
    pub fn columns(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni | Isa::Avx2 => PANEL / 2,
            _ => PANEL,
        }
    }

    /// The best that this machine has.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::supported().first().copied().unwrap_or(Isa::Portable))
    }
}

/// Where results go; rows lie `Job::out_stride` apart.
pub(super) enum Out<'a> {
    /// Rounded to bytes.
    Bytes(&'a mut [u8]),
    /// float32.
    Floats(&'a mut [f32]),
}

impl Out<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Out::Bytes(out) => out.len(),
            Out::Floats(out) => out.len(),
        }
    }
}

/// A product of some rows and some panels.
pub(super) struct Job<'a> {
    /// Inputs, and where in them rows begin.
    pub inputs: &'a [u8],
    pub lines: Lines,
    /// Where in a row each of its quads lies: `quads` numbers.
    pub offsets: &'a [usize],
    /// Packed weights: panel after panel, in it for each quad 16 columns of 4 bytes.
    pub weights: &'a [i8],
    /// Inputs up to it make, with the weights of a pair of neighbours, sums of 16 bits.
    pub limit: u8,
    pub quads: usize,
    /// First column, a multiple of `PANEL`, and number of columns.
    pub first: usize,
    pub columns: usize,
    /// Sum of each row's inputs; empty where the stage needs none.
    pub row_sums: &'a [i32],
    pub stage: &'a Stage,
    /// Element of the first result, and from row to row.
    pub out_start: usize,
    pub out_stride: usize,
}

impl Job<'_> {
    /// Whether all that the loops touch lies inside the slices.
    pub(super) fn check(&self, out: &Out<'_>) -> Result<()> {
        let depth = self.quads.checked_mul(QUAD);
        let rows = self.lines.all();
        let end = self.first.checked_add(self.columns).and_then(|n| n.checked_next_multiple_of(PANEL));
        let fits = || {
            let (depth, end, rows) = (depth?, end?, rows?);
            let row = self.offsets.iter().max().map_or(Some(0), |at| at.checked_add(QUAD))?;
            let inputs = self.lines.last()?.checked_add(row)?;
            let results = rows.saturating_sub(1).checked_mul(self.out_stride)?.checked_add(self.columns)?;
            let results = results.checked_add(self.out_start)?;
            let sums = if self.stage.needs_row_sums() { rows } else { 0 };
            let padded =
                [self.stage.a.len(), self.stage.b.len(), self.stage.c.len(), self.stage.correction.len()];
            let zeros = self.stage.weight_zeros.len();
            let kind = matches!(out, Out::Floats(_)) == (self.stage.finish == Finish::Float);
            Some(
                inputs <= self.inputs.len()
                    && end.checked_mul(depth)? <= self.weights.len()
                    && results <= out.len()
                    && sums <= self.row_sums.len()
                    && padded.iter().all(|n| end <= *n)
                    && (zeros == 0 || end <= zeros)
                    && self.first.is_multiple_of(PANEL)
                    && self.offsets.len() == self.quads
                    && kind,
            )
        };
        if rows == Some(0) || self.columns == 0 || fits() == Some(true) {
            return Ok(());
        }
        Err(Diagnostic::internal(format!(
            "an integer product of {:?}, {} columns and {} quads in slices that are too small",
            self.lines, self.columns, self.quads
        )))
    }
}

/// The largest inputs whose products with two neighbouring weights add up to a sum of 16 bits, whichever two these are.
pub(super) fn pair_limit(weights: &[i8]) -> u8 {
    let sum = |pair: &[i8], sign: i32| pair.iter().map(|w| (sign * i32::from(*w)).max(0)).sum::<i32>();
    let most = |pair: &[i8]| {
        let (high, low) = (sum(pair, 1).max(1), sum(pair, -1).max(1));
        (i32::from(i16::MAX) / high).min(-i32::from(i16::MIN) / low)
    };
    let all = weights.chunks_exact(2).map(most).fold(i32::from(u8::MAX), i32::min);
    u8::try_from(all).unwrap_or(u8::MAX)
}
