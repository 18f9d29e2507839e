//! Running results along a dimension: sums, products, extremes.

use super::rule::into;
use crate::diag::Result;
use crate::dialects::shapes::reductions;
use crate::dialects::{Args, OpDef, OutRule, Outputs, one, reduce};
use crate::kernels::compute::{Dense, build_whole};
use crate::kernels::create::range::not_implemented;
use crate::kernels::rows::Rows;
use crate::kernels::wide::{Wide, dispatch_wide};
use crate::resources::{memory, pool};
use crate::tensor::{DType, Tensor, wrap_dim};
use crate::value::Value;
use num_complex::Complex64;
use std::cmp::Ordering;

/// In place scans give the dtype that they are given.
const IN_PLACE: OutRule = OutRule::Says(
    "Bad in-place call: input tensor dtype {to_cpp} and output tensor dtype {from_cpp} should match",
);

/// The rows.
pub static OPS: &[OpDef] = &[
    reduce("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", |a| {
        cumulative(a, true)
    })
    .rare("u")
    .infer(reductions::scan)
    .inplace_as(IN_PLACE)
    .out("out"),
    reduce("aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", |a| {
        cumulative(a, false)
    })
    .rare("u")
    .infer(reductions::scan)
    .inplace_as(IN_PLACE)
    .out("out"),
    reduce("aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", |a| {
        extreme(a, Ordering::Greater)
    })
    .infer(reductions::scan_with_index),
    reduce(
        "aten::cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
        |a| into(a, 2, |a| extreme(a, Ordering::Greater)),
    ),
    reduce("aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", |a| {
        extreme(a, Ordering::Less)
    })
    .infer(reductions::scan_with_index),
    reduce(
        "aten::cummin.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
        |a| into(a, 2, |a| extreme(a, Ordering::Less)),
    ),
    reduce("aten::logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp)
        .infer(reductions::normalized)
        .out("out"),
];

/// Replaces each row by what `step` writes for it, running from its first element.
fn scan<W: Wide>(
    tensor: &Tensor,
    dim: usize,
    dtype: DType,
    step: impl Fn(&[W], &mut [W]) + Sync,
) -> Result<Tensor> {
    let rows = Rows::along(tensor, dim)?;
    if tensor.numel() == 0 {
        return Tensor::zeros(dtype, &tensor.sizes());
    }
    let scanned = rows.map_wide::<W, W>(rows.length, |row, out| {
        step(row, out);
        Ok(())
    })?;
    rows.restore::<W>(&scanned, rows.length, dtype)
}

fn cumulative(a: &Args<'_>, sum: bool) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    let dtype = a.opt_dtype(2)?.unwrap_or(match tensor.dtype() {
        d if d.is_floating() || d.is_complex() => d,
        _ => DType::I64,
    });
    if dtype == DType::Bool {
        return Err(not_implemented(if sum { "cumsum_out_cpu" } else { "cumprod_out_cpu" }, dtype));
    }
    let tensor = tensor.to_dtype(dtype)?;
    if sum && dtype == DType::F32 && tensor.rank() > 0 {
        return one(running_sums(&tensor, dim)?);
    }
    one(dispatch_wide!(dtype, W => scan::<W>(&tensor, dim, dtype, |row, out| {
        let mut total = if sum { W::ZERO } else { W::ONE };
        for (x, out) in row.iter().zip(out) {
            total = if sum { total.plus(*x) } else { total.times(*x) };
            *out = total;
        }
    })?))
}

/// Running sums of float32 in double precision, read and written where the elements lie in row-major order: beside each other those of
/// all that the dimension's elements have within them.
fn running_sums(tensor: &Tensor, dim: usize) -> Result<Tensor> {
    let sizes = tensor.sizes();
    let inner: usize = sizes[dim + 1..].iter().map(|size| *size as usize).product();
    let whole = inner * sizes[dim] as usize;
    let elements = Dense::<f32>::new(tensor)?;
    let elements = elements.open()?;
    let block = |from: &[f32], out: &mut [f32], sums: &mut [f64]| {
        sums.fill(0.0);
        for (out, from) in out.chunks_exact_mut(inner).zip(from.chunks_exact(inner)) {
            for ((sum, x), out) in sums.iter_mut().zip(from).zip(out) {
                *sum += f64::from(*x);
                *out = *sum as f32;
            }
        }
    };
    build_whole::<f32>(&sizes, DType::F32, |out| {
        if whole == 0 {
            return Ok(());
        }
        let piece = whole * (PIECE / whole).max(1);
        pool::try_chunks(out, piece, |at, out| {
            let mut sums = memory::filled(inner, 0f64)?;
            let from = &elements[at * piece..at * piece + out.len()];
            for (out, from) in out.chunks_exact_mut(whole).zip(from.chunks_exact(whole)) {
                block(from, out, &mut sums);
            }
            Ok(())
        })
    })
}

/// Elements that a thread sums at a time, at least.
const PIECE: usize = 1 << 14;

/// The extreme so far and its place; of equal ones the last, and a NaN stays.
fn extreme(a: &Args<'_>, wanted: Ordering) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    let dtype = tensor.dtype();
    if dtype.is_complex() {
        return Err(not_implemented(
            if wanted == Ordering::Greater { "cummax_cpu" } else { "cummin_cpu" },
            dtype,
        ));
    }
    if tensor.numel() == 0 {
        let values = Tensor::zeros(dtype, &tensor.sizes())?;
        let places = Tensor::zeros(DType::I64, &tensor.sizes())?;
        return Ok([Value::Tensor(values), Value::Tensor(places)].into_iter().collect());
    }
    let rows = Rows::along(tensor, dim)?;
    let places = dispatch_wide!(dtype, W => rows.map_wide::<W, i64>(rows.length, |row, places| {
        let mut best = 0;
        for (i, (x, place)) in row.iter().zip(places).enumerate() {
            let takes = x.is_nan() || (!row[best].is_nan() && matches!(x.order(row[best]), o if o == wanted || o == Ordering::Equal));
            if takes {
                best = i;
            }
            *place = best as i64;
        }
        Ok(())
    })?);
    let values = rows.pick(&places, rows.length, dtype)?;
    let places = rows.restore::<i64>(&places, rows.length, DType::I64)?;
    Ok([Value::Tensor(values), Value::Tensor(places)].into_iter().collect())
}

fn logcumsumexp(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    let dtype = tensor.dtype();
    if dtype.is_complex() {
        return one(scan::<Complex64>(tensor, dim, dtype, |row, out| {
            let mut total = Complex64::new(f64::NEG_INFINITY, 0.0);
            for (x, out) in row.iter().zip(out) {
                total = complex_log_add(*x, total);
                *out = total;
            }
        })?);
    }
    if !dtype.is_floating() {
        return Err(not_implemented("logcumsumexp_out_cpu", dtype));
    }
    one(scan::<f64>(tensor, dim, dtype, |row, out| {
        let mut total = f64::NEG_INFINITY;
        for (x, out) in row.iter().zip(out) {
            total = log_add(total, *x);
            *out = total;
        }
    })?)
}

/// ln(e^x + e^y).
fn log_add(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (small, large) = (x.min(y), x.max(y));
    if small != large || small.is_finite() { (small - large).exp().ln_1p() + large } else { x }
}

/// ln(e^x + e^y) of complex numbers. NaN in any part makes both NaN; of two numbers of size zero the angle is undefined.
fn complex_log_add(x: Complex64, y: Complex64) -> Complex64 {
    if x.is_nan() || y.is_nan() {
        return Complex64::new(f64::NAN, f64::NAN);
    }
    let (small, large) = if x.re < y.re { (x, y) } else { (y, x) };
    if small.re == large.re && small.re.is_infinite() {
        return if small.re < 0.0 { small } else { (small.exp() + large.exp()).ln() };
    }
    let z = (small - large).exp();
    let log1p = Complex64::new(0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p(), z.im.atan2(1.0 + z.re));
    large + log1p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_run_along_the_dimension() {
        let t = crate::kernels::wide::store::<i64>(&[1, 2, 3, 4, 5, 6], &[2, 3], DType::I32).expect("small");
        let down = scan::<i64>(&t, 0, DType::I64, |row, out| {
            (out[0], out[1]) = (row[0], row[0] + row[1]);
        })
        .expect("scans");
        assert_eq!(down.to_vec::<i64>().expect("i64"), [1, 2, 3, 5, 7, 9]);
    }

    #[test]
    fn running_sums_are_those_of_rows() {
        let values: Vec<f32> = (0..3 * 70 * 90).map(|n| (n * 37 % 101) as f32 * 0.125 - 6.0).collect();
        let t = Tensor::from_vec(&values, &[3, 70, 90]).expect("small");
        let turned = t.look(|l| Ok(crate::tensor::view::reorder(l, &[2, 0, 1]))).expect("a view");
        for (t, dim) in [(&t, 0), (&t, 1), (&t, 2), (&turned, 0), (&turned, 1), (&turned, 2)] {
            let sums = running_sums(t, dim).expect("small");
            let rows = scan::<f64>(t, dim, DType::F32, |row, out| {
                let mut total = 0.0;
                row.iter().zip(out).for_each(|(x, out)| {
                    total += x;
                    *out = total;
                });
            });
            let rows = rows.expect("small").to_vec::<f32>().expect("f32");
            assert_eq!((sums.to_vec::<f32>().expect("f32"), sums.is_contiguous()), (rows, true));
        }
        assert_eq!(
            running_sums(&Tensor::zeros(DType::F32, &[0, 3]).expect("none"), 1).expect("none").numel(),
            0
        );
    }

    #[test]
    fn logarithms_add() {
        assert_eq!(log_add(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert!((log_add(0.0, 0.0) - 2f64.ln()).abs() < 1e-15);
    }
}
