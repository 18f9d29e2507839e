//! Reductions to one number a row: sums, products, means, truth, extremes.

use super::rule::into;
use crate::diag::{Diagnostic, Result};
use crate::dialects::rows::RowProgram;
use crate::dialects::scalar::{Binary, Sv};
use crate::dialects::shapes::{reductions, views};
use crate::dialects::{Args, Fact, OpDef, OutRule, Outputs, one, opaque, reduce};
use crate::kernels::compute::rounding;
use crate::kernels::create::range::not_implemented;
use crate::kernels::rows::vector::place_of_extreme;
use crate::kernels::rows::{Rows, beside, column_extremes, column_sums, non_empty_dim, reduced_dims, vector};
use crate::kernels::wide::{Wide, dispatch_wide, store};
use crate::resources::{Collect, Scratch};
use crate::tensor::{DType, Layout, Tensor, promote_types, view};
use crate::value::Value;
use std::cmp::Ordering;

/// The rows.
pub static OPS: &[OpDef] = &[
    reduce("aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |a| {
        one(sum(a.tensor(0)?, a.opt_ints(1)?, a.bool(2)?, a.opt_dtype(3)?)?)
    }).rare("u").infer(reductions::sum)
    .reduces_rows(row_sum)
    .out("IntList_out"),
    reduce("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", |a| {
        one(sum(a.tensor(0)?, None, false, a.opt_dtype(1)?)?)
    }).rare("u").infer(reductions::sum)
    .out_exact("out"),
    reduce("aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", nansum).infer(reductions::sum)
        .out("out"),
    reduce("aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", |a| {
        one(mean(a.tensor(0)?, None, false, a.opt_dtype(1)?)?)
    }).rare("u").infer(reductions::reduce)
    .quantized_kernel(|a| one(crate::dialects::quantized::pool::mean(a.tensor(0)?, None, false, a.opt_dtype(1)?, mean)?))
    .out("dtype_out"),
    reduce("aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |a| {
        one(mean(a.tensor(0)?, a.opt_ints(1)?, a.bool(2)?, a.opt_dtype(3)?)?)
    }).rare("u").infer(reductions::reduce)
    .quantized_kernel(|a| {
        one(crate::dialects::quantized::pool::mean(a.tensor(0)?, a.opt_ints(1)?, a.bool(2)?, a.opt_dtype(3)?, mean)?)
    })
    .reduces_rows(|p, x| p.mean(x[0]))
    .out("out"),
    reduce("aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", nanmean).infer(reductions::reduce)
        .out("out"),
    reduce("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", |a| {
        one(prod(a.tensor(0)?, None, false, a.opt_dtype(1)?)?)
    }).rare("u").infer(reductions::sum)
    .out_exact("out"),
    reduce("aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |a| {
        one(prod(a.tensor(0)?, Some(a.int(1)?), a.bool(2)?, a.opt_dtype(3)?)?)
    }).rare("u").infer(reductions::sum)
    .out("int_out"),
    reduce("aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", |a| extreme(a, Side::Max)).quantized(crate::dialects::Quantized::Integers).infer(reductions::reduce).reduces_rows(|p, x| row_extreme(p, Binary::Max, x[0])).out_as("out", OutRule::Input),
    reduce("aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", |a| extreme(a, Side::Min)).quantized(crate::dialects::Quantized::Integers).infer(reductions::reduce).reduces_rows(|p, x| row_extreme(p, Binary::Min, x[0])).out_as("out", OutRule::Input),
    reduce("aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", |a| {
        aminmax(a.tensor(0)?, a.opt_int(1)?, a.bool(2)?)
    }).infer(reductions::twice),
    reduce("aten::aminmax.out(Tensor self, *, int? dim=None, bool keepdim=False, Tensor(a!) min, Tensor(b!) max) -> (Tensor(a!) min, Tensor(b!) max)", |a| into(a, 3, |a| aminmax(a.tensor(0)?, a.opt_int(1)?, a.bool(2)?))),
    reduce("aten::_aminmax(Tensor self) -> (Tensor, Tensor)", |a| aminmax(a.tensor(0)?, None, false)).infer(reductions::twice),
    reduce("aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", |a| {
        aminmax(a.tensor(0)?, Some(a.int(1)?), a.bool(2)?)
    }).infer(reductions::twice),
    reduce("aten::max(Tensor self) -> Tensor", |a| extreme_all(a, Side::Max)).quantized(crate::dialects::Quantized::Integers).infer(reductions::reduce).out("unary_out"),
    reduce("aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| {
        extreme_dim(a, Side::Max)
    }).quantized(crate::dialects::Quantized::Integers).infer(reductions::with_index),
    reduce("aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 3, |a| extreme_dim(a, Side::Max))),
    reduce("aten::min(Tensor self) -> Tensor", |a| extreme_all(a, Side::Min)).quantized(crate::dialects::Quantized::Integers).infer(reductions::reduce).out("unary_out"),
    reduce("aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| {
        extreme_dim(a, Side::Min)
    }).quantized(crate::dialects::Quantized::Integers).infer(reductions::with_index),
    reduce("aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices) -> (Tensor(a!) values, Tensor(b!) indices)", |a| into(a, 3, |a| extreme_dim(a, Side::Min))),
    reduce("aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", |a| arg_extreme(a, Side::Max)).infer(reductions::index).out_exact("out"),
    reduce("aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", |a| arg_extreme(a, Side::Min)).infer(reductions::index).out_exact("out"),
    reduce("aten::all(Tensor self) -> Tensor", |a| truth(a, Some(Vec::new()), false, true)).rare("u8").infer(reductions::truth).out_as("all_out", OutRule::Truth),
    reduce("aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", |a| {
        truth(a, Some(vec![a.int(1)?]), a.bool(2)?, true)
    }).rare("u8").infer(reductions::truth)
    .out_as("out", OutRule::Truth),
    reduce("aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", |a| truth_dims(a, true)).rare("u8").infer(reductions::truth).out_as("dims_out", OutRule::Truth),
    reduce("aten::_is_all_true(Tensor self) -> Tensor", |a| of_booleans(a, true)).infer(reductions::truth),
    reduce("aten::_is_any_true(Tensor self) -> Tensor", |a| of_booleans(a, false)).infer(reductions::truth),
    reduce("aten::any(Tensor self) -> Tensor", |a| truth(a, Some(Vec::new()), false, false)).rare("u8").infer(reductions::truth).out_as("all_out", OutRule::Truth),
    reduce("aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", |a| {
        truth(a, Some(vec![a.int(1)?]), a.bool(2)?, false)
    }).rare("u8").infer(reductions::truth)
    .out_as("out", OutRule::Truth),
    reduce("aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", |a| truth_dims(a, false)).rare("u8").infer(reductions::truth).out_as("dims_out", OutRule::Truth),
    reduce("aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", |a| {
        count_nonzero(a.tensor(0)?, a.opt_int(1)?.map(|d| vec![d]))
    }).infer(reductions::index)
    .out_exact("out"),
    reduce("aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", |a| {
        count_nonzero(a.tensor(0)?, Some(a.ints(1)?))
    }).infer(reductions::index)
    .out_exact("dim_IntList_out"),
    reduce("aten::hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", hash)
        .infer(reductions::bits)
        .out_exact("out")
        .doc("the exclusive or of all elements along the dimensions, as the bits of float64 or int64"),
    reduce("aten::trace(Tensor self) -> Tensor", |a| {
        let tensor = a.tensor(0)?;
        if tensor.rank() == 2 && tensor.dtype() == DType::Bool {
            return Err(not_implemented("trace", DType::Bool));
        }
        if tensor.rank() != 2 {
            return Err(Diagnostic::runtime(format!(
                "trace: expected a matrix, but got tensor with dim {}",
                tensor.rank()
            )));
        }
        one(sum(&tensor.look(|l| view::diagonal(l, 0, 0, 1))?, None, false, None)?)
    }).infer(views::nothing)
    .out_exact("out"),
    reduce("aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor", |a| sum_to_size(a.tensor(0)?, &a.ints(1)?)).facts(&[Fact::SumsToSize]).infer(reductions::to_size)
        .hidden_marks("aten::sum_to_size(Tensor(a) self, SymInt[] size) -> Tensor(a)")
        .grad("self: grad.expand(self.size())"),
    opaque("aten::equal(Tensor self, Tensor other) -> bool", equal).rare("u").quantized_kernel(crate::dialects::quantized::moves::equal),
];

/// The dtype of a sum or product: what was asked for, int64 for integers and bools.
fn sum_dtype(tensor: &Tensor, dtype: Option<DType>) -> DType {
    dtype.unwrap_or(match tensor.dtype() {
        d if d.is_integral() || d == DType::Bool => DType::I64,
        d => d,
    })
}

fn row_sum(p: &mut RowProgram, x: &[Sv]) -> Option<Sv> {
    let dtype = p.dtype(x[0]);
    let sum = p.sum(x[0]);
    Some(if dtype.is_floating() { p.convert(sum, dtype) } else { sum })
}

fn row_extreme(p: &mut RowProgram, op: Binary, x: Sv) -> Option<Sv> {
    (p.dtype(x) != DType::Bool).then(|| p.extreme(op, x))
}

/// A sum by halves, so that rounding errors do not grow with the number of terms.
pub fn sum_row<W: Wide>(row: &[W]) -> W {
    if row.len() <= 256 {
        return row.iter().fold(W::ZERO, |s, x| s.plus(*x));
    }
    let (low, high) = row.split_at(row.len() / 2);
    sum_row(low).plus(sum_row(high))
}

/// The sum over some dimensions (all without a list).
pub fn sum(tensor: &Tensor, dims: Option<Vec<i64>>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = sum_dtype(tensor, dtype);
    let dims = reduced_dims(dims, tensor.rank())?;
    if dtype == DType::F32
        && let Some(sums) = column_sums(tensor, &dims, |sum| sum as f32)?
    {
        return sums.tensor((&tensor.sizes(), &dims), keepdim);
    }
    let (rows, times) = rows_in(tensor, &dims, dtype)?;
    if dtype == DType::Bool {
        return rows.reduce::<i64>(keepdim, dtype, |row| i64::from(row.iter().any(|x| *x != 0)));
    }
    if dtype == DType::F32 {
        let sums = rows.sums()?.into_iter().map(|s| s * times as f64).scratch()?;
        return store::<f64>(&sums, rows.result_sizes(keepdim), dtype);
    }
    if times == 1 {
        return dispatch_wide!(dtype, W => rows.reduce::<W>(keepdim, dtype, sum_row::<W>));
    }
    dispatch_wide!(dtype, W => rows.reduce::<W>(keepdim, dtype, |row| sum_row(row).times(W::count(times))))
}

/// Rows of the tensor in a dtype, and how often each of their elements stands in its row.
pub fn rows_in(tensor: &Tensor, dims: &[usize], dtype: DType) -> Result<(Rows, usize)> {
    let (mut rows, times) = match tensor.dtype() == dtype {
        true => Rows::once_each(tensor, dims)?,
        // A view that repeats its elements is converted after the repetitions are gone.
        false if tensor.is_contiguous() => (Rows::new(&tensor.to_dtype(dtype)?, dims)?, 1),
        false => Rows::once_each(tensor, dims)?,
    };
    rows.dense = rows.dense.to_dtype(dtype)?;
    Ok((rows, times))
}

fn nansum(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    if tensor.dtype().is_complex() {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            "nansum on CPU does not support complex inputs",
        ));
    }
    let (dims, keepdim, dtype) = (a.opt_ints(1)?, a.bool(2)?, sum_dtype(tensor, a.opt_dtype(3)?));
    if dtype.is_complex() && tensor.dtype().is_floating() {
        return Err(not_implemented("nansum_cpu", dtype));
    }
    if !dtype.is_floating() {
        return one(sum(tensor, dims, keepdim, Some(dtype))?);
    }
    let (rows, times) = rows_in(tensor, &reduced_dims(dims, tensor.rank())?, dtype)?;
    one(rows.reduce::<f64>(keepdim, dtype, |row| {
        let numbers: Vec<f64> = row.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
        sum_row(&numbers) * times as f64
    })?)
}

/// The mean over some dimensions (all without a list); NaN of no elements.
pub fn mean(tensor: &Tensor, dims: Option<Vec<i64>>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let result = dtype.unwrap_or(tensor.dtype());
    if !(result.is_floating() || result.is_complex()) {
        let what = if dtype.is_some() { "Optional" } else { "Input" };
        return Err(Diagnostic::raised(
            "NotImplementedError",
            format!(
                "mean(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. Got: {}",
                result.type_name()
            ),
        ));
    }
    let dims = reduced_dims(dims, tensor.rank())?;
    let sizes = tensor.sizes();
    let count: f64 = dims.iter().map(|d| sizes[*d] as f64).product();
    if result == DType::F32
        && let Some(means) = column_sums(tensor, &dims, |sum| (f64::from(sum as f32) / count) as f32)?
    {
        return means.tensor((&sizes, &dims), keepdim);
    }
    let (rows, times) = rows_in(tensor, &dims, result)?;
    if result == DType::F32 {
        let mean = |s: f64| f64::from((s * times as f64) as f32) / (rows.length as f64 * times as f64);
        let means = rows.sums()?.into_iter().map(mean).scratch()?;
        return store::<f64>(&means, rows.result_sizes(keepdim), result);
    }
    // The sum is rounded before it is divided, in single precision for the 16-bit dtypes too: a mean is bit for bit
    // the sum over the count.
    let single = !matches!(result.to_real(), DType::F64);
    dispatch_wide!(result, W => rows.reduce::<W>(keepdim, result, |row| {
        let sum = if times == 1 { sum_row(row) } else { sum_row(row).times(W::count(times)) };
        let count = W::count(row.len().saturating_mul(times));
        if single { sum.as_single().over(count).as_single() } else { sum.over(count) }
    }))
}

fn nanmean(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    if tensor.dtype().is_complex() {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            "nansum on CPU does not support complex inputs",
        ));
    }
    if !tensor.dtype().is_floating() {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            format!(
                "nanmean(): expected input to have floating point or complex dtype but got {}",
                tensor.dtype().type_name()
            ),
        ));
    }
    let dtype = a.opt_dtype(3)?.unwrap_or(tensor.dtype());
    let (rows, _) = Rows::once_each(tensor, &reduced_dims(a.opt_ints(1)?, tensor.rank())?)?;
    one(rows.reduce::<f64>(a.bool(2)?, dtype, |row| {
        let numbers: Vec<f64> = row.iter().copied().filter(|x| !x.is_nan()).collect();
        sum_row(&numbers) / numbers.len() as f64
    })?)
}

fn prod(tensor: &Tensor, dim: Option<i64>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = sum_dtype(tensor, dtype);
    let dims = reduced_dims(dim.map(|d| vec![d]), tensor.rank())?;
    let (rows, times) = rows_in(tensor, &dims, dtype)?;
    // Each product is rounded: one that overflows stays infinite, whatever it is multiplied by.
    if dtype == DType::F32 {
        let products = rows.map_f32(|row| power(vector::product(row), times, 1.0, |x, y| x * y))?;
        return Tensor::from_vec(&products, rows.result_sizes(keepdim));
    }
    if dtype.is_floating() {
        let round = rounding(dtype);
        let product = |row: &[f64]| row.iter().fold(1.0, |p, x| round(p * x));
        return rows
            .reduce::<f64>(keepdim, dtype, |row| power(product(row), times, 1.0, |x, y| round(x * y)));
    }
    dispatch_wide!(dtype, W => rows.reduce::<W>(keepdim, dtype, |row| {
        power(row.iter().fold(W::ONE, |p, x| p.times(*x)), times, W::ONE, W::times)
    }))
}

/// `x` multiplied by itself, `times` factors in all.
fn power<W: Copy>(mut x: W, mut times: usize, one: W, multiply: impl Fn(W, W) -> W) -> W {
    let mut product = one;
    while times > 1 {
        if times % 2 == 1 {
            product = multiply(product, x);
        }
        x = multiply(x, x);
        times /= 2;
    }
    if times == 1 { multiply(product, x) } else { product }
}

/// Which end of the order.
#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Side {
    fn name(self) -> &'static str {
        if self == Side::Max { "max" } else { "min" }
    }

    /// The place of the extreme element of each row, as `place` says.
    fn places(self, rows: &Rows, dtype: DType) -> Result<Scratch<i64>> {
        if dtype == DType::F32 {
            return rows.map_f32(|row| place_of_extreme(row, self == Side::Min) as i64);
        }
        dispatch_wide!(dtype, W => rows.map::<W, i64>(|row| self.place(row) as i64))
    }

    /// The place of the first extreme element; the first NaN if there is one. The row is not empty.
    fn place<W: Wide>(self, row: &[W]) -> usize {
        let mut best = 0;
        for (i, x) in row.iter().enumerate() {
            if x.is_nan() {
                return i;
            }
            let wanted = if self == Side::Max { Ordering::Greater } else { Ordering::Less };
            if x.order(row[best]) == wanted {
                best = i;
            }
        }
        best
    }
}

/// Dimensions of an extreme, which has no value for no elements.
fn extreme_dims(tensor: &Tensor, dims: Vec<i64>, name: &str) -> Result<Vec<usize>> {
    if dims.is_empty() && tensor.numel() == 0 {
        return Err(Diagnostic::runtime(format!(
            "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
             'dim' argument."
        )));
    }
    let dims = reduced_dims(Some(dims), tensor.rank())?;
    for d in &dims {
        non_empty_dim(tensor, *d as i64, name)?;
    }
    Ok(dims)
}

fn values_at(tensor: &Tensor, dims: &[usize], keepdim: bool, side: Side) -> Result<Tensor> {
    if let Some(extremes) = column_extremes(tensor, dims, side == Side::Min)? {
        return extremes.tensor((&tensor.sizes(), dims), keepdim);
    }
    let (rows, _) = Rows::once_each(tensor, dims)?;
    if tensor.dtype() == DType::F32 {
        let values =
            rows.fold_f32(|rows, length, out| beside::extremes(rows, length, side == Side::Min, out))?;
        return Tensor::from_vec(&values, rows.result_sizes(keepdim));
    }
    dispatch_wide!(tensor.dtype(), W => rows.reduce::<W>(keepdim, tensor.dtype(), |row| row[side.place(row)]))
}

fn extreme(a: &Args<'_>, side: Side) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dims = extreme_dims(tensor, a.ints(1)?, if side == Side::Max { "amax" } else { "amin" })?;
    if tensor.dtype().is_complex() {
        return Err(not_implemented(&format!("{}_values_cpu", side.name()), tensor.dtype()));
    }
    one(values_at(tensor, &dims, a.bool(2)?, side)?)
}

fn extreme_all(a: &Args<'_>, side: Side) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dims = extreme_dims(tensor, Vec::new(), side.name())?;
    if tensor.dtype().is_complex() {
        return Err(not_implemented(&format!("{}_all", side.name()), tensor.dtype()));
    }
    one(values_at(tensor, &dims, false, side)?)
}

fn aminmax(tensor: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Outputs> {
    if tensor.dtype().is_complex() {
        return Err(Diagnostic::raised(
            "TypeError",
            format!("aminmax not implemented for {}", tensor.dtype().type_name()),
        ));
    }
    if dim.is_none() && tensor.numel() == 0 {
        return Err(Diagnostic::runtime(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
        ));
    }
    let mut dims = reduced_dims(dim.map(|d| vec![d]), tensor.rank())?;
    if let Some(d) = dim {
        let d = non_empty_dim(tensor, d, "aminmax").map_err(|error| {
            match error.message().strip_prefix("aminmax()") {
                Some(rest) => Diagnostic::raised("IndexError", format!("aminmax{rest}")),
                None => error,
            }
        })?;
        dims = if tensor.rank() == 0 { Vec::new() } else { vec![d] };
    }
    let side = |side: Side| values_at(tensor, &dims, keepdim, side).map(Value::Tensor);
    Ok([side(Side::Min)?, side(Side::Max)?].into_iter().collect())
}

fn no_complex(tensor: &Tensor, name: &str) -> Result<()> {
    if tensor.dtype().is_complex() {
        return Err(Diagnostic::raised("TypeError", format!("{name}(): does not support complex input")));
    }
    Ok(())
}

fn extreme_dim(a: &Args<'_>, side: Side) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dim = non_empty_dim(tensor, a.int(1)?, side.name())?;
    no_complex(tensor, side.name())?;
    let dims = if tensor.rank() == 0 { &[][..] } else { &[dim] };
    let (rows, _) = Rows::once_each(tensor, dims)?;
    let sizes = rows.result_sizes(a.bool(2)?);
    if tensor.dtype() == DType::F32 {
        let found = rows.map_f32(|row| {
            let place = place_of_extreme(row, side == Side::Min);
            (row[place], place as i64)
        })?;
        let (values, places): (Vec<f32>, Vec<i64>) = found.into_iter().unzip();
        let results = [Tensor::from_vec(&values, sizes)?, Tensor::from_vec(&places, sizes)?];
        return Ok(results.map(Value::Tensor).into_iter().collect());
    }
    let (values, places) = dispatch_wide!(tensor.dtype(), W => {
        let found = rows.map::<W, (W, i64)>(|row| {
            let place = side.place(row);
            (row[place], place as i64)
        })?;
        let (values, places): (Vec<W>, Vec<i64>) = found.into_iter().unzip();
        (store::<W>(&values, sizes, tensor.dtype())?, Tensor::from_vec(&places, sizes)?)
    });
    Ok([Value::Tensor(values), Value::Tensor(places)].into_iter().collect())
}

fn arg_extreme(a: &Args<'_>, side: Side) -> Result<Outputs> {
    let (tensor, dim, keepdim) = (a.tensor(0)?, a.opt_int(1)?, a.bool(2)?);
    let name = if side == Side::Max { "argmax" } else { "argmin" };
    let dims = match dim {
        Some(dim) => {
            let d = non_empty_dim(tensor, dim, name)?;
            if tensor.rank() == 0 { Vec::new() } else { vec![d] }
        }
        None if tensor.numel() == 0 => {
            return Err(Diagnostic::raised(
                "IndexError",
                format!("{name}(): Expected reduction dim to be specified for input.numel() == 0."),
            ));
        }
        None => (0..tensor.rank()).collect(),
    };
    no_complex(tensor, name)?;
    if tensor.dtype() == DType::Bool {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            format!("{name}(): does not support bool input"),
        ));
    }
    // Of repeated elements the first is the place.
    let (rows, times) = Rows::once_each(tensor, &dims)?;
    let mut places = side.places(&rows, tensor.dtype())?;
    if dim.is_none() && times > 1 {
        places.iter_mut().for_each(|place| *place = place_among_all(&tensor.layout(), *place));
    }
    one(Tensor::from_vec(&places, rows.result_sizes(keepdim))?)
}

/// The place among all elements of one that was found where each dimension of stride 0 counted once.
fn place_among_all(layout: &Layout, mut found: i64) -> i64 {
    let (mut place, mut step) = (0, 1);
    for d in (0..layout.rank()).rev() {
        if layout.strides[d] != 0 {
            place += found % layout.sizes[d] * step;
            found /= layout.sizes[d];
        }
        step *= layout.sizes[d];
    }
    place
}

/// Without a list all dimensions are reduced; an empty list reduces none.
fn truth_dims(a: &Args<'_>, all: bool) -> Result<Outputs> {
    match a.opt_ints(1)? {
        Some(dims) if dims.is_empty() => truth(a, None, false, all),
        dims => truth(a, Some(dims.unwrap_or_default()), a.bool(2)?, all),
    }
}

/// Whether all, or any, of a tensor of booleans are true.
fn of_booleans(a: &Args<'_>, all: bool) -> Result<Outputs> {
    if a.tensor(0)?.dtype() != DType::Bool {
        let message = "_is_all_true and _is_any_true take tensors of booleans";
        return Err(Diagnostic::runtime(message).hint("compare it with 0 before"));
    }
    truth(a, Some(Vec::new()), false, all)
}

/// `all` and `any`: uint8 of uint8, bool of everything else.
fn truth(a: &Args<'_>, dims: Option<Vec<i64>>, keepdim: bool, all: bool) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dims = match dims {
        Some(dims) => reduced_dims(Some(dims), tensor.rank())?,
        None => Vec::new(),
    };
    let dtype = if tensor.dtype() == DType::U8 { DType::U8 } else { DType::Bool };
    let (rows, _) = Rows::once_each(tensor, &dims)?;
    let truths = dispatch_wide!(tensor.dtype(), W => rows.map::<W, i64>(|row| {
        let is = |x: &W| *x != W::ZERO;
        i64::from(if all { row.iter().all(is) } else { row.iter().any(is) })
    })?);
    one(store::<i64>(&truths, rows.result_sizes(keepdim), dtype)?)
}

fn count_nonzero(tensor: &Tensor, dims: Option<Vec<i64>>) -> Result<Outputs> {
    let (rows, times) = Rows::once_each(tensor, &reduced_dims(dims, tensor.rank())?)?;
    let counts = dispatch_wide!(tensor.dtype(), W => {
        rows.map::<W, i64>(|row| (row.iter().filter(|x| **x != W::ZERO).count() * times) as i64)?
    });
    one(Tensor::from_vec(&counts, rows.result_sizes(false))?)
}

fn hash(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, dims) = (a.tensor(0)?, a.ints(1)?);
    if a.int(3)? != 0 {
        return Err(Diagnostic::runtime(format!("Unknown hash_tensor mode: {}", a.int(3)?)));
    }
    if dims.is_empty() && tensor.numel() == 0 {
        return Err(Diagnostic::runtime(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with \
             the 'dim' argument.",
        ));
    }
    let dtype = tensor.dtype();
    if dtype.is_complex() || matches!(dtype, DType::U16 | DType::U32 | DType::U64) {
        return Err(not_implemented("xor_sum_cpu", dtype));
    }
    let dims = reduced_dims(Some(dims), tensor.rank())?;
    if let Some(d) = dims.iter().find(|d| tensor.sizes().get(**d) == Some(&0)) {
        return Err(Diagnostic::raised(
            "IndexError",
            format!("hash_tensor: Expected reduction dim {d} to have non-zero size."),
        ));
    }
    let is_real = dtype.is_floating();
    let tensor = tensor.to_dtype(if is_real { DType::F64 } else { DType::I64 })?;
    let (rows, times) = Rows::once_each(&tensor, &dims)?;
    // What is read an even number of times cancels out.
    let joined = |bits: u64| if times % 2 == 0 { 0 } else { bits };
    let hashes = match is_real {
        true => rows.map::<f64, u64>(|row| joined(row.iter().fold(0, |all, x| all ^ x.to_bits())))?,
        false => rows.map::<i64, u64>(|row| joined(row.iter().fold(0, |all, x| all ^ (*x as u64))))?,
    };
    one(Tensor::from_vec(&hashes, rows.result_sizes(a.bool(2)?))?)
}

/// Sums what broadcasting to the tensor's sizes would have repeated.
fn sum_to_size(tensor: &Tensor, sizes: &[i64]) -> Result<Outputs> {
    if sizes.is_empty() {
        return one(sum(tensor, None, false, None)?);
    }
    let own = tensor.sizes();
    let lead = own.len().checked_sub(sizes.len());
    let fits = lead.is_some_and(|lead| own[lead..].iter().zip(sizes).all(|(x, y)| x == y || *y == 1));
    let Some(lead) = lead.filter(|_| fits) else {
        return Err(Diagnostic::runtime(format!(
            "size {{{}}} is not expandable to size {{{}}}.",
            show(sizes),
            show(&own)
        )));
    };
    let dims: Vec<i64> = (0..own.len())
        .filter(|d| *d < lead || (sizes[*d - lead] == 1 && own[*d] != 1))
        .map(|d| d as i64)
        .collect();
    if dims.is_empty() {
        return one(tensor.clone());
    }
    one(sum(tensor, Some(dims), true, None)?.reshaped(sizes)?)
}

fn show(sizes: &[i64]) -> String {
    format!("{sizes:?}")
}

/// Same sizes and equal elements, of dtypes that differ as their common one; a NaN equals nothing.
fn equal(a: &Args<'_>) -> Result<Outputs> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    if x.sizes() != y.sizes() {
        return one(false);
    }
    if x.dtype() != y.dtype() {
        let dtype = promote_types(x.dtype(), y.dtype());
        let (x, y) = without_common_repeats(x, y)?;
        return equal_elements(&x.to_dtype(dtype)?, &y.to_dtype(dtype)?);
    }
    let (x, y) = without_common_repeats(x, y)?;
    equal_elements(&x, &y)
}

fn equal_elements(x: &Tensor, y: &Tensor) -> Result<Outputs> {
    one(dispatch_wide!(x.dtype(), W => x.elements_as::<W>()? == y.elements_as::<W>()?))
}

/// Tensors of the same sizes at one index of each dimension in which both repeat their elements.
fn without_common_repeats(x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
    let (mut a, mut b) = (x.layout(), y.layout());
    for d in 0..a.rank().min(b.rank()) {
        if a.sizes[d] > 1 && a.strides[d] == 0 && b.strides[d] == 0 {
            (a.sizes[d], b.sizes[d]) = (1, 1);
        }
    }
    Ok((x.with_layout(a)?, y.with_layout(b)?))
}
