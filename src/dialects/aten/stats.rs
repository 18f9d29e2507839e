//! Spread and size of rows: variance, norms, log-sum-exp.

use super::reduce::{rows_in, sum_row};
use super::rule::into;
use crate::diag::{Diagnostic, Result};
use crate::dialects::rows::RowProgram;
use crate::dialects::scalar::Sv;
use crate::dialects::shapes::{reductions, views};
use crate::dialects::{Alias, Args, OpDef, Outputs, one, reduce};
use crate::kernels::compute::{Dense, build_whole, rounding};
use crate::kernels::images::pool::each_plane;
use crate::kernels::rows::{Rows, beside, reduced_dims};
use crate::kernels::wide::{Wide, store};
use crate::kernels::wide_loops;
use crate::resources::Collect;
use crate::tensor::{DType, Layout, Scalar, Tensor, view};
use crate::value::Value;
use num_complex::Complex64;

/// The rows.
pub static OPS: &[OpDef] = &[
    reduce("aten::var(Tensor self, bool unbiased=True) -> Tensor", |a| spread(a, None, unbiased(a, 1)?, false, &[VAR])).infer(reductions::magnitude),
    reduce("aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", |a| {
        spread(a, a.opt_ints(1)?, unbiased(a, 2)?, a.bool(3)?, &[VAR])
    }).infer(reductions::magnitude)
    .reduces_rows(|p, x| row_spread(p, x, false))
    .out("out"),
    reduce("aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", |a| {
        spread(a, a.opt_ints(1)?, correction(a)?, a.bool(3)?, &[VAR])
    }).infer(reductions::magnitude)
    .reduces_rows(|p, x| row_corrected(p, x, false))
    .out("correction_out"),
    reduce("aten::std(Tensor self, bool unbiased=True) -> Tensor", |a| spread(a, None, unbiased(a, 1)?, false, &[STD])).quantized(crate::dialects::Quantized::RealsBack).infer(reductions::magnitude),
    reduce("aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", |a| {
        spread(a, a.opt_ints(1)?, unbiased(a, 2)?, a.bool(3)?, &[STD])
    }).quantized(crate::dialects::Quantized::RealsBack).infer(reductions::magnitude)
    .reduces_rows(|p, x| row_spread(p, x, true))
    .out("out"),
    reduce("aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", |a| {
        spread(a, a.opt_ints(1)?, correction(a)?, a.bool(3)?, &[STD])
    }).quantized(crate::dialects::Quantized::RealsBack).infer(reductions::magnitude)
    .reduces_rows(|p, x| row_corrected(p, x, true))
    .out("correction_out"),
    reduce("aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", |a| {
        spread(a, None, unbiased(a, 1)?, false, &[VAR, MEAN])
    }).infer(reductions::pair),
    reduce("aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", |a| {
        spread(a, a.opt_ints(1)?, unbiased(a, 2)?, a.bool(3)?, &[VAR, MEAN])
    }).infer(reductions::pair),
    reduce(
        "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        |a| spread(a, a.opt_ints(1)?, correction(a)?, a.bool(3)?, &[VAR, MEAN]),
    ).infer(reductions::pair),
    reduce("aten::var_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))", |a| into(a, 4, |a| spread(a, a.opt_ints(1)?, correction(a)?, a.bool(3)?, &[VAR, MEAN]))),
    reduce("aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", |a| {
        spread(a, None, unbiased(a, 1)?, false, &[STD, MEAN])
    }).infer(reductions::pair),
    reduce("aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", |a| {
        spread(a, a.opt_ints(1)?, unbiased(a, 2)?, a.bool(3)?, &[STD, MEAN])
    }).infer(reductions::pair),
    reduce(
        "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        |a| spread(a, a.opt_ints(1)?, correction(a)?, a.bool(3)?, &[STD, MEAN]),
    ).infer(reductions::pair),
    reduce("aten::std_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))", |a| into(a, 4, |a| spread(a, a.opt_ints(1)?, correction(a)?, a.bool(3)?, &[STD, MEAN]))),
    reduce("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", |a| norm(a, Some(a.scalar(1)?), Vec::new(), false, None)).infer(reductions::magnitude)
        .out_exact("Scalar_out"),
    reduce("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", |a| {
        norm(a, a.opt_scalar(1)?, a.ints(2)?, a.bool(3)?, None)
    }).infer(reductions::magnitude)
    .out_exact("out"),
    reduce("aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor", |a| {
        norm(a, a.opt_scalar(1)?, a.ints(2)?, a.bool(3)?, a.opt_dtype(4)?)
    }).infer(reductions::magnitude)
    .out_exact("dtype_out"),
    reduce("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", |a| {
        norm(a, a.opt_scalar(1)?, Vec::new(), false, a.opt_dtype(2)?)
    }).infer(reductions::magnitude)
    .out_exact("ScalarOpt_dtype_out"),
    reduce("aten::native_norm(Tensor self, Scalar p=2) -> Tensor", |a| norm(a, Some(a.scalar(1)?), Vec::new(), false, None)).infer(reductions::magnitude),
    reduce("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", |a| {
        norm(a, None, a.ints(1)?, a.bool(2)?, None)
    }).infer(reductions::magnitude)
    .out_exact("out"),
    reduce(
        "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        |a| {
            let dims = a.opt_ints(2)?.unwrap_or_default();
            if matches!(a.scalar(1)?, Scalar::Complex(_)) {
                return Err(Diagnostic::runtime("linalg.vector_norm: Expected a non-complex scalar as the order of norm."));
            }
            one(vector_norm(a.tensor(0)?, a.scalar(1)?.to_f64(), dims, a.bool(3)?, a.opt_dtype(4)?)?)
        },
    ).infer(reductions::magnitude)
    .out_exact("out"),
    reduce("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp).infer(views::nothing)
        .out("out").aliases(&[Alias::new("special_logsumexp")]),
];

const VAR: u8 = 0;
const STD: u8 = 1;
const MEAN: u8 = 2;

fn unbiased(a: &Args<'_>, n: usize) -> Result<f64> {
    Ok(if a.bool(n)? { 1.0 } else { 0.0 })
}

fn correction(a: &Args<'_>) -> Result<f64> {
    Ok(a.opt_scalar(2)?.map_or(1.0, Scalar::to_f64))
}

/// Variance or deviation along rows; the one static argument is `unbiased`.
fn row_spread(p: &mut RowProgram, x: &[Sv], root: bool) -> Option<Sv> {
    let correction = if p.bool_arg(0) { 1.0 } else { 0.0 };
    row_moment(p, x[0], correction, root)
}

/// The same with `correction`, the second operand, which must be known.
fn row_corrected(p: &mut RowProgram, x: &[Sv], root: bool) -> Option<Sv> {
    let correction = p.known(x.get(1))?.unwrap_or(1.0);
    row_moment(p, x[0], correction, root)
}

fn row_moment(p: &mut RowProgram, x: Sv, correction: f64, root: bool) -> Option<Sv> {
    let variance = p.variance(x, correction)?;
    let value = if root { p.sqrt(variance) } else { variance };
    let dtype = p.dtype(x);
    Some(p.convert(value, dtype))
}

/// Variance, deviation and mean over some dimensions; what is asked for, in that order. The mean is taken first, so
/// that differences from it lose nothing.
fn spread(
    a: &Args<'_>,
    dims: Option<Vec<i64>>,
    correction: f64,
    keepdim: bool,
    wanted: &[u8],
) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dtype = tensor.dtype();
    if !(dtype.is_floating() || dtype.is_complex()) {
        let name = match wanted {
            [_] => "std and var".to_string(),
            _ => a.op.name().as_str().trim_start_matches("aten::").to_string(),
        };
        return Err(Diagnostic::raised(
            "NotImplementedError",
            format!("{name} only support floating point and complex dtypes"),
        ));
    }
    let (rows, times) = Rows::once_each(tensor, &reduced_dims(dims, tensor.rank())?)?;
    let times = times as f64;
    let moments = rows.map::<Complex64, (f64, Complex64)>(|row| {
        let mean = sum_row(row) / row.len() as f64;
        let divisor = (row.len() as f64 * times - correction).max(0.0);
        let squared = |part: fn(&Complex64) -> f64| {
            let squares: Vec<f64> = row.iter().map(|x| (part(x) - part(&mean)).powi(2)).collect();
            sum_row(&squares) * times / divisor
        };
        // Part by part: where nothing is left to divide by, a part without spread is not a number.
        let imaginary = if dtype.is_complex() { squared(|z| z.im) } else { 0.0 };
        let finite = mean.re.is_finite() || dtype.is_complex() || row.is_empty();
        (squared(|z| z.re) + imaginary, if finite { mean } else { Complex64::new(running_mean(row), 0.0) })
    })?;
    let sizes = rows.result_sizes(keepdim);
    let mut out = Outputs::new();
    for what in wanted {
        out.push(Value::Tensor(match *what {
            MEAN => {
                let means = moments.iter().map(|(_, mean)| *mean).scratch()?;
                match dtype.is_complex() {
                    true => store::<Complex64>(&means, sizes, dtype)?,
                    false => store::<f64>(&means.iter().map(|m| m.re).collect::<Vec<f64>>(), sizes, dtype)?,
                }
            }
            kind => {
                let values: Vec<f64> =
                    moments.iter().map(|(var, _)| if kind == STD { var.sqrt() } else { *var }).collect();
                store::<f64>(&values, sizes, dtype.to_real())?
            }
        }));
    }
    Ok(out)
}

/// The mean as PyTorch updates it element by element, which is not a number once anything follows an infinite one.
fn running_mean(row: &[Complex64]) -> f64 {
    row.iter().enumerate().fold(0.0, |mean, (n, x)| mean + (x.re - mean) / (n + 1) as f64)
}

/// The older norm: p = None is 2, and its own messages for wrong dtypes.
fn norm(
    a: &Args<'_>,
    p: Option<Scalar>,
    dims: Vec<i64>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let ok = |d: DType| d.is_floating() || d.is_complex();
    if !ok(tensor.dtype()) {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            format!(
                "norm(): input dtype should be either floating point or complex. Got {} instead.",
                tensor.dtype().type_name()
            ),
        ));
    }
    if let Some(dtype) = dtype.filter(|d| !ok(*d)) {
        return Err(Diagnostic::runtime(format!(
            "norm(): the desired output dtype should be either floating point or complex. Got {} instead.",
            dtype.type_name()
        )));
    }
    one(vector_norm(tensor, p.map_or(2.0, Scalar::to_f64), dims, keepdim, dtype)?)
}

/// (sum |x|^p)^(1/p) over some dimensions (all of an empty list); 0 counts, infinities are extremes.
pub fn vector_norm(
    tensor: &Tensor,
    p: f64,
    dims: Vec<i64>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let own = tensor.dtype();
    check_norm_dtypes(own, dtype)?;
    let listed = reduced_dims(Some(dims.clone()), tensor.rank())?;
    if tensor.numel() == 0 && (p < 0.0 || p == f64::INFINITY) {
        let shown = if p == f64::INFINITY { "inf".to_string() } else { format!("{p}") };
        let what = format!("linalg.vector_norm cannot compute the {shown} norm on");
        if dims.is_empty() {
            return Err(Diagnostic::runtime(format!(
                "{what} an empty tensor because the operation does not have an identity"
            )));
        }
        let sizes = tensor.sizes();
        if let Some(d) = listed.iter().find(|d| sizes[**d] == 0) {
            return Err(Diagnostic::runtime(format!(
                "{what} the dimension {d}because this dimension is empty and the operation does not have an identity"
            )));
        }
    }
    let compute = dtype.unwrap_or(own);
    let is_once =
        |layout: &Layout| !layout.strides.iter().zip(&layout.sizes).any(|(by, n)| *by == 0 && *n > 1);
    if p == 2.0 && compute == DType::F32 && own == DType::F32 && is_once(&tensor.layout()) {
        return euclidean(tensor, &listed, keepdim);
    }
    let (rows, times) = rows_in(tensor, &listed, compute)?;
    // Powers are numbers of the dtype that sums have.
    let is_wide = matches!(compute, DType::F64 | DType::C128);
    let rounded = move |x: f64| if is_wide { x } else { f64::from(x as f32) };
    let power = rounded(p);
    let norm = move |sizes: &[f64]| -> f64 {
        let times = times as f64;
        let total =
            |f: &dyn Fn(f64) -> f64| sum_row(&sizes.iter().map(|x| f(*x)).collect::<Vec<f64>>()) * times;
        match p {
            0.0 => total(&|x| f64::from(u8::from(x != 0.0))),
            // A single number has its size as length, whatever its power would be.
            _ if sizes.len() == 1 && times == 1.0 => sizes[0],
            1.0 => sum_row(sizes) * times,
            2.0 => rounded(total(&|x| rounded(x * x))).sqrt(),
            f64::INFINITY => sizes.iter().fold(0.0, |m: f64, x| m.most(*x)),
            f64::NEG_INFINITY => sizes.iter().fold(f64::INFINITY, |m: f64, x| m.least(*x)),
            _ => rounded(total(&|x| rounded(x.powf(power)))).powf(1.0 / power),
        }
    };
    let norms = if compute.is_complex() {
        rows.map::<Complex64, f64>(|row| norm(&row.iter().map(|x| x.norm()).collect::<Vec<f64>>()))?
    } else {
        rows.map::<f64, f64>(|row| norm(&row.iter().map(|x| x.abs()).collect::<Vec<f64>>()))?
    };
    store::<f64>(&norms, rows.result_sizes(keepdim), compute.to_real())
}

/// The 2-norm of float32, read as it lies in memory where the dimensions that are summed lie side by side there. Squares are
/// numbers of float32, as is their sum, which is added up in float64: what overflows in PyTorch does so here.
fn euclidean(tensor: &Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    let layout = tensor.layout();
    let is_summed = |d: &usize| dims.contains(d);
    let mut order: Vec<usize> = (0..layout.rank()).collect();
    order.sort_by_key(|d| std::cmp::Reverse(layout.strides[*d]));
    order.sort_by_key(|d| layout.sizes[*d] == 1 && !is_summed(d));
    let kept: Vec<usize> = order.iter().copied().filter(|d| !is_summed(d) && layout.sizes[*d] != 1).collect();
    let ends = |order: &[usize]| {
        let end = order.iter().rposition(is_summed).map_or(order.len(), |last| last + 1);
        (order.iter().position(is_summed).unwrap_or(end), end)
    };
    let (mut first, mut end) = ends(&order);
    if !kept.is_sorted() || !order[first..end].iter().all(is_summed) {
        let others = (0..layout.rank()).filter(|d| !is_summed(d));
        order = others.chain((0..layout.rank()).filter(is_summed)).collect();
        (first, end) = ends(&order);
    }
    let count = |dims: &[usize]| dims.iter().map(|d| layout.sizes[*d] as usize).product::<usize>();
    let (length, inner) = (count(&order[first..end]), count(&order[end..]));
    let sizes: Vec<i64> = (0..layout.rank())
        .filter(|d| keepdim || !is_summed(d))
        .map(|d| if is_summed(&d) { 1 } else { layout.sizes[d] })
        .collect();
    let x = Dense::<f32>::new(&tensor.look(|l| Ok(view::reorder(l, &order)))?)?;
    let x = x.open()?;
    build_whole::<f32>(&sizes, DType::F32, |out| {
        if inner == 1 && length > 1 {
            each_plane(out, beside::ROWS, length, |at, out| {
                beside::euclidean(&x[at * beside::ROWS * length..][..out.len() * length], length, out);
            });
            return Ok(());
        }
        each_plane(out, inner, length, |at, out| {
            let x = &x[at * length * inner..][..length * inner];
            wide_loops(
                #[inline(always)]
                || lengths(x, inner, out),
            );
        });
        Ok(())
    })
}

/// The lengths of `out.len()` vectors whose elements lie `inner` apart.
#[inline(always)]
fn lengths(x: &[f32], inner: usize, out: &mut [f32]) {
    const LANES: usize = 32;
    if x.len() == inner {
        // A single number has its size as length, whatever its square would be.
        out.iter_mut().zip(x).for_each(|(y, x)| *y = x.abs());
        return;
    }
    for (n, out) in out.chunks_mut(LANES).enumerate() {
        let mut sums = [0f64; LANES];
        for line in x.chunks_exact(inner) {
            let part = &line[n * LANES..][..out.len()];
            sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += f64::from(*x * *x));
        }
        out.iter_mut().zip(sums).for_each(|(y, sum)| *y = (sum as f32).sqrt());
    }
}

fn check_norm_dtypes(own: DType, dtype: Option<DType>) -> Result<()> {
    if !(own.is_floating() || own.is_complex()) {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            format!(
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
                own.type_name()
            ),
        ));
    }
    let Some(dtype) = dtype else { return Ok(()) };
    if !(dtype.is_floating() || dtype.is_complex()) {
        return Err(Diagnostic::runtime(format!(
            "linalg.vector_norm: dtype should be floating point or complex, but got {}",
            dtype.type_name()
        )));
    }
    if own.is_complex() != dtype.is_complex() {
        let kind = if own.is_complex() { "complex" } else { "real" };
        return Err(Diagnostic::runtime(format!(
            "linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {}",
            dtype.type_name()
        )));
    }
    if crate::tensor::promote_types(own, dtype) != dtype {
        return Err(Diagnostic::runtime(format!(
            "linalg.vector_norm: the dtype of the input ({}) should be convertible without narrowing to the specified dtype \
             ({})",
            own.type_name(),
            dtype.type_name()
        )));
    }
    Ok(())
}

/// ln(sum e^x), shifted by the largest element so that nothing overflows.
pub fn logsumexp_row(row: &[f64]) -> f64 {
    let largest = row.iter().fold(f64::NEG_INFINITY, |m: f64, x| m.most(*x));
    let shift = if largest.is_infinite() { 0.0 } else { largest };
    sum_row(&row.iter().map(|x| (x - shift).exp()).collect::<Vec<f64>>()).ln() + shift
}

fn logsumexp(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, keepdim) = (a.tensor(0)?, a.bool(2)?);
    let dtype = match tensor.dtype() {
        d if d.is_floating() || d.is_complex() => d,
        _ => DType::F32,
    };
    let (rows, times) = rows_in(tensor, &reduced_dims(Some(a.ints(1)?), tensor.rank())?, dtype)?;
    let times = times as f64;
    if matches!(dtype, DType::F16 | DType::BF16) {
        let round = rounding(dtype);
        return one(rows.reduce::<f64>(keepdim, dtype, move |row| {
            let largest = row.iter().fold(f64::NEG_INFINITY, |m: f64, x| m.most(*x));
            let shift = if largest.is_infinite() { 0.0 } else { largest };
            // A function of 16 bits after the other.
            let powers: Vec<f64> = row.iter().map(|x| round(round(x - shift).exp())).collect();
            round(round(sum_row(&powers) * times).ln()) + shift
        })?);
    }
    if dtype == DType::F32 {
        let values = rows.fold_f32(|rows, length, out| beside::log_sum_exp(rows, length, times, out))?;
        return one(Tensor::from_vec(&values, rows.result_sizes(keepdim))?);
    }
    one(if dtype.is_complex() {
        rows.reduce::<Complex64>(keepdim, dtype, |row| {
            let largest = row.iter().fold(f64::NEG_INFINITY, |m, x| m.most(x.re));
            let shift = if largest.is_infinite() { 0.0 } else { largest };
            let sum = sum_row(&row.iter().map(|x| (x - shift).exp()).collect::<Vec<Complex64>>());
            (sum * times).ln() + shift
        })?
    } else {
        rows.reduce::<f64>(keepdim, dtype, |row| logsumexp_row(row) + times.ln())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_logical_dimensions_however_they_lie() {
        let numbers: Vec<f64> = (0..2 * 3 * 5 * 70).map(|n| f64::from(n % 23) - 11.0).collect();
        let x =
            Tensor::from_vec(&numbers, &[2, 3, 5, 70]).expect("valid").to_dtype(DType::F32).expect("float32");
        let orders: [[i64; 4]; 4] = [[0, 1, 2, 3], [0, 3, 1, 2], [3, 2, 1, 0], [1, 0, 3, 2]];
        for order in orders {
            let seen = x.look(|l| view::permute(l, &order)).expect("a permutation");
            for dims in [vec![], vec![0], vec![3], vec![1, 2], vec![2, 3], vec![0, 2], vec![0, 1, 2, 3]] {
                for keepdim in [false, true] {
                    let found = vector_norm(&seen, 2.0, dims.clone(), keepdim, None).expect("a norm");
                    let wide = seen.to_dtype(DType::F64).expect("float64");
                    let expected = vector_norm(&wide, 2.0, dims.clone(), keepdim, None).expect("a norm");
                    assert_eq!(found.sizes(), expected.sizes());
                    let (found, expected) = (found.elements_as::<f64>(), expected.elements_as::<f64>());
                    let (found, expected) = (found.expect("numbers"), expected.expect("numbers"));
                    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b;
                    assert!(found.iter().zip(expected.iter()).all(close), "{order:?} {dims:?}");
                }
            }
        }
        let none = Tensor::zeros(DType::F32, &[3, 0]).expect("empty");
        assert_eq!(
            vector_norm(&none, 2.0, vec![1], false, None).expect("zeros").to_vec::<f32>().expect("f32"),
            [0.0; 3]
        );
    }
}
