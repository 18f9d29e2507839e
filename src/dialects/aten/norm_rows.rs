//! What normalizations have in common: moments of numbers, work on each row, and the dtypes of parameters. No op is known here.

use crate::diag::{Diagnostic, Result};
use crate::kernels::compute::Real;
use crate::kernels::float::rows;
use crate::kernels::rows::vector::sum_wide;
use crate::resources::pool;
use crate::tensor::{DType, Tensor};

pub(super) fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// Mean and variance (divided by the count) of many numbers, in double precision, by pairs of passes.
#[inline(always)]
pub(super) fn moments<R: Real>(
    parts: impl Iterator<Item = impl AsRef<[R]>> + Clone,
    count: usize,
) -> (f64, f64) {
    // Loops, not sums of iterators: those are functions of their own, compiled for the oldest machine.
    let (n, mut sum, mut squares) = (count as f64, 0.0, 0.0);
    for part in parts.clone() {
        sum += sum_wide(part.as_ref(), |x| x);
    }
    let mean = sum / n;
    for part in parts {
        squares += sum_wide(part.as_ref(), |x| (x - mean) * (x - mean));
    }
    (mean, squares / n)
}

/// The same of one row, which PyTorch computes in float32 if that is the type of its numbers: squares may overflow.
#[inline(always)]
pub(super) fn row_moments<R: Real>(row: &[R]) -> (f64, f64) {
    let (mean, variance) = moments(std::iter::once(row), row.len());
    // Far below the square root of the largest float32.
    let small = mean.abs() < 1e18 && variance * (row.len() as f64) < 1e36;
    if small || size_of::<R>() != size_of::<f32>() {
        return (mean, variance);
    }
    let (mean, variance) = rows::moments_of(row, |x| x.wide() as f32, (mean as f32, variance as f32));
    (f64::from(mean), f64::from(variance))
}

/// Parameters have the input's dtype, or are float32 where the input has 16 bits. The first one that is there decides
/// which of the two is meant.
pub(super) fn check_mixed(input: &Tensor, parameters: &[Option<&Tensor>]) -> Result<()> {
    let mut dtypes = parameters.iter().flatten().map(|p| p.dtype());
    let x = input.dtype();
    let Some(first) = dtypes.next() else { return Ok(()) };
    if first == x {
        return match dtypes.find(|p| *p != x) {
            Some(p) => fail(format!("expected scalar type {} but found {}", x.type_name(), p.type_name())),
            None => Ok(()),
        };
    }
    if first != DType::F32 || dtypes.any(|p| p != DType::F32) {
        return fail("mixed dtype (CPU): expect parameter to have scalar type of Float");
    }
    if !matches!(x, DType::F16 | DType::BF16) {
        return fail("mixed dtype (CPU): all inputs must share same datatype.");
    }
    Ok(())
}

/// Runs `work` on each row of `out` with something kept of it, on several threads where there is much of it.
pub(super) fn each_row<T: Send, S: Send>(
    out: &mut [T],
    length: usize,
    kept: &mut [S],
    work: impl Fn(usize, &mut [T], &mut S) + Sync,
) {
    if out.len() > 1 << 16 {
        let rows: Vec<_> = out.chunks_mut(length.max(1)).zip(kept).enumerate().collect();
        pool::each(rows, |(at, (out, kept))| work(at, out, kept));
    } else {
        let rows = out.chunks_mut(length.max(1));
        rows.zip(kept).enumerate().for_each(|(at, (out, kept))| work(at, out, kept));
    }
}
