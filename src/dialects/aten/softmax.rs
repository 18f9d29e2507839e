//! Softmax and its logarithm along a dimension, with their derivatives. Results of float32 and less are computed in
//! vectors of float32, all else in double precision.

use super::reduce::sum_row;
use crate::diag::{Diagnostic, Result};
use crate::dialects::rows::RowProgram;
use crate::dialects::scalar::{Binary, Sv};
use crate::dialects::shapes::{reductions, views};
use crate::dialects::{Args, LayerPart, OpDef, Outputs, one, reduce};
use crate::kernels::compute::{Dense, build_whole, rounding};
use crate::kernels::create::range::not_implemented;
use crate::kernels::images::pool::each_plane;
use crate::kernels::rows::{Rows, beside, vector};
use crate::resources::{Collect, memory};
use crate::tensor::{DType, Tensor, wrap_dim};

/// The rows.
pub static OPS: &[OpDef] = &[
    reduce("aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", |a| {
        converted(a, Which::Softmax)
    }).part(LayerPart::Softmax)
    .infer(reductions::normalized)
    .maps_rows(row_softmax)
    .out_exact("int_out"),
    reduce("aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", |a| {
        converted(a, Which::Log)
    }).infer(reductions::normalized)
    .maps_rows(row_log_softmax)
    .out_exact("int_out"),
    reduce("aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", |a| plain(a, Which::Softmax)).infer(reductions::normalized)
        .out_exact("out"),
    reduce("aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", |a| {
        plain(a, Which::Log)
    }).infer(reductions::normalized)
    .out_exact("out"),
    reduce("aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", |a| {
        converted(a, Which::Safe)
    }).infer(reductions::normalized),
    reduce("aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", |a| {
        converted(a, Which::Softmax)
    }).infer(reductions::normalized).alias_of("softmax"),
    reduce("aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", |a| {
        converted(a, Which::Log)
    }).infer(reductions::normalized).alias_of("log_softmax"),
    reduce(
        "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        |a| backward(a, |grad, out, total| out * (grad - total), |grad, out| grad * out),
    ).infer(views::nothing),
    reduce(
        "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        |a| backward(a, |grad, out, total| grad - out.exp() * total, |grad, _| grad),
    ).infer(views::nothing),
];

/// The exponentials of the elements less the largest, and the sum of them in float64.
fn row_exponentials(p: &mut RowProgram, x: Sv) -> Option<(Sv, Sv, Sv)> {
    if !p.dtype(x).is_floating() {
        return None;
    }
    let largest = p.extreme(Binary::Max, x);
    let less = p.sub(x, largest);
    let power = p.exp(less);
    let total = p.sum(power);
    Some((less, power, total))
}

fn row_softmax(p: &mut RowProgram, x: &[Sv]) -> Option<Sv> {
    let (_, power, total) = row_exponentials(p, x[0])?;
    let one = p.constant_like(total, 1.0);
    let factor = p.div(one, total);
    let dtype = p.dtype(power);
    let factor = p.convert(factor, dtype);
    Some(p.mul(power, factor))
}

fn row_log_softmax(p: &mut RowProgram, x: &[Sv]) -> Option<Sv> {
    let (less, _, total) = row_exponentials(p, x[0])?;
    let dtype = p.dtype(less);
    let total = p.convert(total, dtype);
    let log = p.log(total);
    Some(p.sub(less, log))
}

/// Which function of a row.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    Softmax,
    /// Zeros where all elements are minus infinity.
    Safe,
    Log,
}

impl Which {
    fn wide(self, row: &[f64], out: &mut [f64]) {
        match self {
            Which::Softmax => softmax(row, out),
            Which::Safe if row.iter().all(|x| *x == f64::NEG_INFINITY) => out.fill(0.0),
            Which::Safe => softmax(row, out),
            Which::Log => log_softmax(row, out),
        }
    }

    /// Rows of `length` elements.
    fn narrow(self, rows: &[f32], length: usize, out: &mut [f32]) {
        match self {
            Which::Softmax => beside::softmax(rows, length, out),
            Which::Safe => {
                beside::softmax(rows, length, out);
                for (row, out) in rows.chunks(length).zip(out.chunks_mut(length)) {
                    if row.iter().all(|x| *x == f32::NEG_INFINITY) {
                        out.fill(0.0);
                    }
                }
            }
            Which::Log => beside::log_softmax(rows, length, out, |total| total.ln() as f32),
        }
    }

    /// Rows of 16 bits that lie along the last dimension: there PyTorch keeps the sum and its logarithm in 16 bits.
    fn narrow_last(self, rows: &[f32], length: usize, out: &mut [f32], dtype: DType) {
        match self {
            Which::Log if matches!(dtype, DType::F16 | DType::BF16) => {
                let round = rounding(dtype);
                beside::log_softmax(rows, length, out, |total| round(round(total).ln()) as f32);
            }
            _ => self.narrow(rows, length, out),
        }
    }
}

/// Writes the powers of e, relative to the largest element; gives that element and the powers' sum.
fn powers(row: &[f64], out: &mut [f64]) -> (f64, f64) {
    let largest = row.iter().fold(f64::NEG_INFINITY, |m, x| if x.is_nan() || *x > m { *x } else { m });
    out.iter_mut().zip(row).for_each(|(out, x)| *out = (x - largest).exp());
    (largest, sum_row(out))
}

fn softmax(row: &[f64], out: &mut [f64]) {
    let (_, total) = powers(row, out);
    out.iter_mut().for_each(|p| *p /= total);
}

fn log_softmax(row: &[f64], out: &mut [f64]) {
    let (largest, total) = powers(row, out);
    let log = total.ln();
    // Where the largest is infinite the differences are not numbers, as in PyTorch.
    out.iter_mut().zip(row).for_each(|(out, x)| *out = (x - largest) - log);
}

fn converted(a: &Args<'_>, which: Which) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    one(by_rows(a, &tensor.to_dtype(a.opt_dtype(2)?.unwrap_or(tensor.dtype()))?, which)?)
}

fn plain(a: &Args<'_>, which: Which) -> Result<Outputs> {
    if a.bool(2)? {
        return Err(Diagnostic::runtime("softmax with half to float conversion is not supported on CPU"));
    }
    one(by_rows(a, a.tensor(0)?, which)?)
}

/// Columns from which on row-major ones are read as they lie instead of being made rows.
const FEW: usize = 16;

/// In float32, of a dimension within which others lie.
fn by_columns(tensor: &Tensor, dim: usize, columns: usize, which: Which) -> Result<Tensor> {
    let sizes = tensor.sizes();
    let block = sizes[dim] as usize * columns;
    let source = Dense::<f32>::new(tensor)?;
    let source = source.open()?;
    let log: Option<fn(f64) -> f32> = (which == Which::Log).then_some(|total| total.ln() as f32);
    build_whole::<f32>(&sizes, DType::F32, |out| {
        each_plane(out, block, 4, |at, out| {
            vector::softmax_columns(&source[at * block..][..block], columns, out, log);
        });
        Ok(())
    })
}

fn by_rows(a: &Args<'_>, tensor: &Tensor, which: Which) -> Result<Tensor> {
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    let dtype = tensor.dtype();
    if tensor.numel() == 0 {
        return Tensor::zeros(dtype, &tensor.sizes());
    }
    if !dtype.is_floating() {
        let last = if dim + 1 >= tensor.rank() { "lastdim_" } else { "" };
        let log = if a.op.name().as_str().contains("log_softmax") { "log_" } else { "" };
        return Err(not_implemented(&format!("{log}softmax_{last}kernel_impl"), dtype));
    }
    if dtype == DType::F64 {
        let rows = Rows::along(tensor, dim)?;
        let results = rows.map_wide::<f64, f64>(rows.length, |row, out| {
            which.wide(row, out);
            Ok(())
        })?;
        return rows.restore::<f64>(&results, rows.length, dtype);
    }
    let columns: usize = tensor.sizes().iter().skip(dim + 1).map(|size| *size as usize).product();
    if dtype == DType::F32 && columns >= FEW && which != Which::Safe && tensor.is_contiguous() {
        return by_columns(tensor, dim, columns, which);
    }
    let inner = dim + 1 >= tensor.rank();
    let rows = if inner { None } else { Some(Rows::along(tensor, dim)?) };
    let source = Dense::<f32>::new(rows.as_ref().map_or(tensor, |rows| &rows.dense))?;
    let source = source.open()?;
    let sizes = rows.as_ref().map_or_else(|| tensor.sizes(), |rows| rows.dense.sizes());
    let length = sizes.last().map_or(1, |n| *n as usize);
    let kept = if inner { dtype } else { DType::F32 };
    let result = build_whole::<f32>(&sizes, kept, |out| {
        let some = length.saturating_mul(beside::ROWS);
        each_plane(out, some, 4, |at, out| {
            let rows = &source[at * some..][..out.len()];
            match inner {
                true => which.narrow_last(rows, length, out, dtype),
                false => which.narrow(rows, length, out),
            }
        });
        Ok(())
    })?;
    match rows {
        Some(rows) => rows.back(&result)?.to_dtype(dtype),
        None => Ok(result),
    }
}

/// Both derivatives: a total over each row, then each element from its gradient, its output and the total.
fn backward(a: &Args<'_>, element: fn(f64, f64, f64) -> f64, term: fn(f64, f64) -> f64) -> Result<Outputs> {
    let (grad, output) = (a.tensor(0)?, a.tensor(1)?);
    let dim = wrap_dim(a.int(2)?, grad.rank())?;
    if grad.sizes() != output.sizes() {
        return Err(Diagnostic::runtime(format!(
            "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but {:?} does \
             not equal {:?} (while checking arguments for softmax_backward)",
            grad.sizes().as_slice(),
            output.sizes().as_slice()
        )));
    }
    if grad.dtype() != output.dtype() {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type {} but found {}",
            grad.dtype().type_name(),
            output.dtype().type_name()
        )));
    }
    let dtype: DType = a.dtype(3)?;
    if grad.numel() == 0 {
        return one(Tensor::zeros(dtype, &grad.sizes())?);
    }
    let (grads, outs) = (Rows::along(grad, dim)?, Rows::along(output, dim)?);
    let (gs, os) = (grads.dense.elements_as::<f64>()?, outs.dense.elements_as::<f64>()?);
    let length = grads.length.max(1);
    let mut result = memory::reserved(gs.len())?;
    for (g, o) in gs.chunks(length).zip(os.chunks(length)) {
        let terms = g.iter().zip(o).map(|(g, o)| term(*g, *o)).scratch()?;
        let total = sum_row(&terms);
        result.extend(g.iter().zip(o).map(|(g, o)| element(*g, *o, total)))?;
    }
    one(grads.restore::<f64>(&result, grads.length, dtype)?)
}
