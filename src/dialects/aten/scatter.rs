//! Gathering and scattering along a dimension by an index tensor, with the ways to combine what meets.

use super::index::vector_indices;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, trial};
use crate::dialects::{Args, OpDef, Outputs, gather, one};
use crate::kernels::create::range::not_implemented;
use crate::kernels::index::indexing::{Combine, add_rows, along, at_least_1d, combine, combine_stepwise};
use crate::kernels::index::place::{identity, positions};
use crate::kernels::wide::{Wide, dispatch_wide, store, wide};
use crate::resources::{Collect, Scratch};
use crate::tensor::{DType, Dims, Layout, Scalar, Tensor, check_fill, wrap_dim};

/// The rows.
pub static OPS: &[OpDef] = &[
    gather("aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", gather_kernel).rare("u").quantized(crate::dialects::Quantized::Integers).infer(joins::gather)
        .apart(&[0, 2]).out_exact("out"),
    gather("aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", |a| {
        scatter_value(a, None)
    }).infer(joins::same_sizes)
    .apart(&[2]).inplace()
    .out("value_out"),
    gather("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", |a| {
        scatter(a, a.tensor(3)?, None, true)
    }).rare("u").infer(joins::same_sizes)
    .apart(&[2, 3]).inplace()
    .out_exact("src_out"),
    gather("aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", |a| {
        scatter(a, a.tensor(3)?, Some(legacy_reduce(a.str(4)?)?), true)
    }).infer(joins::same_sizes)
    .apart(&[2, 3]).inplace()
    .out("reduce_out"),
    gather(
        "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
        |a| scatter_value(a, Some(legacy_reduce(a.str(4)?)?)),
    ).infer(joins::same_sizes)
    .apart(&[2]).inplace()
    .out("value_reduce_out"),
    gather("aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", |a| {
        scatter(a, a.tensor(3)?, Some(Combine::Sum), true)
    }).rare("u").infer(joins::same_sizes)
    .apart(&[2, 3]).inplace()
    .out_exact("out"),
    gather(
        "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
        scatter_reduce,
    ).infer(joins::same_sizes)
    .apart(&[2, 3]).inplace()
    .out_exact("two_out"),
    gather("aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", index_add).infer(joins::same_sizes)
        .apart(&[2, 3]).inplace()
        .out("out"),
    gather(
        "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
        index_reduce,
    ).infer(trial::stand_ins)
    .apart(&[2, 3]).inplace()
    .out_exact("out"),
];

fn expect_index(name: &str, index: &Tensor) -> Result<()> {
    if matches!(index.dtype(), DType::I32 | DType::I64) || (index.numel() == 0 && name == "gather") {
        return Ok(());
    }
    Err(Diagnostic::runtime(format!("{name}(): Expected dtype int32/int64 for index")))
}

fn gather_kernel(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, index) = (a.tensor(0)?, a.tensor(2)?);
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    expect_index("gather", index)?;
    if index.numel() == 0 {
        return one(Tensor::zeros(tensor.dtype(), &index.sizes())?);
    }
    let (own, shape) = (at_least_1d(&tensor.sizes()), at_least_1d(&index.sizes()));
    if own.len() != shape.len() {
        return Err(Diagnostic::runtime(
            "Index tensor must have the same number of dimensions as input tensor",
        ));
    }
    if let Some(d) = (0..own.len()).find(|d| *d != dim && shape[*d] > own[*d]) {
        return Err(Diagnostic::runtime(format!(
            "Size does not match at dimension {d} expected index {:?} to be no larger than self {:?} apart from dimension \
             {dim}",
            index.sizes().as_slice(),
            tensor.sizes().as_slice()
        )));
    }
    one(tensor.take_positions(&along(&own, dim, index, false)?, &index.sizes())?)
}

/// The older names of two ways to combine.
fn legacy_reduce(name: &str) -> Result<Combine> {
    match name {
        "add" => Ok(Combine::Sum),
        "multiply" => Ok(Combine::Product),
        _ => Err(Diagnostic::runtime("reduce argument must be either add or multiply.")),
    }
}

fn scatter_value(a: &Args<'_>, how: Option<Combine>) -> Result<Outputs> {
    let (tensor, index, value) = (a.tensor(0)?, a.tensor(2)?, a.scalar(3)?);
    check_fill(value, tensor.dtype())?;
    let source = Tensor::full(tensor.dtype(), &[], value)?.broadcast_to(&index.sizes())?;
    scatter_checked(a, &source, how, true, false)
}

fn scatter(a: &Args<'_>, source: &Tensor, how: Option<Combine>, include_self: bool) -> Result<Outputs> {
    scatter_checked(a, source, how, include_self, true)
}

fn scatter_checked(
    a: &Args<'_>,
    source: &Tensor,
    how: Option<Combine>,
    include_self: bool,
    from_tensor: bool,
) -> Result<Outputs> {
    let (tensor, index) = (a.tensor(0)?, a.tensor(2)?);
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    if index.numel() != 0 {
        expect_index("scatter", index)?;
    }
    if tensor.dtype() != source.dtype() {
        return Err(Diagnostic::runtime("scatter(): Expected self.dtype to be equal to src.dtype"));
    }
    if index.numel() == 0 {
        return one(tensor.copy()?);
    }
    let (own, shape) = (at_least_1d(&tensor.sizes()), at_least_1d(&index.sizes()));
    let have = at_least_1d(&source.sizes());
    if own.len() != shape.len() {
        return Err(Diagnostic::runtime(
            "Index tensor must have the same number of dimensions as self tensor",
        ));
    }
    if have.len() != shape.len() {
        return Err(Diagnostic::runtime(
            "Index tensor must have the same number of dimensions as src tensor",
        ));
    }
    let too_large = |d: usize| shape[d] > have[d] || (d != dim && shape[d] > own[d]);
    if (0..own.len()).any(too_large) {
        let suffix = if from_tensor {
            format!(" and to be no larger size than src {:?}", source.sizes().as_slice())
        } else {
            String::new()
        };
        return Err(Diagnostic::runtime(format!(
            "Expected index {:?} to be no larger than self {:?} apart from dimension {dim}{suffix}",
            index.sizes().as_slice(),
            tensor.sizes().as_slice()
        )));
    }
    if tensor.dtype().is_complex() && matches!(how, Some(Combine::Max | Combine::Min)) {
        let name = if how == Some(Combine::Max) { "amax" } else { "amin" };
        return Err(not_implemented(&format!("scatter_gather_tensor_cpu_reduce_{name}"), tensor.dtype()));
    }
    if tensor.dtype() == DType::Bool && how == Some(Combine::Mean) {
        return Err(not_implemented("scatter_gather_tensor_cpu_reduce_mean", tensor.dtype()));
    }
    let places = along(&own, dim, index, false)?;
    let strides: Dims = if source.rank() == 0 { Dims::from_slice(&[1]) } else { source.strides() };
    let used = source.with_layout(Layout::strided(&shape, &strides, source.layout().offset)?)?;
    one(match how {
        Some(how) => combine(tensor, &places, &used, how, include_self)?,
        None => {
            let result = tensor.copy()?;
            result.put_positions(&places, &used)?;
            result
        }
    })
}

fn scatter_reduce(a: &Args<'_>) -> Result<Outputs> {
    let how = match a.str(4)? {
        "sum" => Combine::Sum,
        "prod" => Combine::Product,
        "mean" => Combine::Mean,
        "amax" => Combine::Max,
        "amin" => Combine::Min,
        other => {
            return Err(Diagnostic::runtime(format!(
                "reduce argument must be either sum, prod, mean, amax or amin, got {other}"
            )));
        }
    };
    scatter(a, a.tensor(3)?, Some(how), a.bool(5)?)
}

/// Checks that index_add and index_reduce share; gives the dimension and for each of the source's places in it the target's.
fn index_rows(a: &Args<'_>, name: &str) -> Result<(usize, Scratch<usize>)> {
    let (tensor, index, source) = (a.tensor(0)?, a.tensor(2)?, a.tensor(3)?);
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    if index.rank() > 1 {
        return Err(Diagnostic::raised(
            "IndexError",
            format!(
                "{name}(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {:?}",
                index.rank(),
                index.dtype().type_name(),
                index.sizes().as_slice()
            ),
        ));
    }
    if !matches!(index.dtype(), DType::I32 | DType::I64) {
        return Err(Diagnostic::runtime(format!(
            "{name}(): Expected dtype int32/int64 for index but got: {}",
            index.dtype().type_name()
        )));
    }
    if tensor.dtype() != source.dtype() {
        return Err(Diagnostic::runtime(format!(
            "{name}(): self ({}) and source ({}) must have the same scalar type",
            tensor.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    let (own, have) = (tensor.sizes(), source.sizes());
    let count = index.numel() as i64;
    let length = if have.is_empty() { 1 } else { have.get(dim).copied().unwrap_or(1) };
    if count != length {
        return Err(Diagnostic::runtime(format!(
            "{name}(): Number of indices ({count}) should be equal to source.size(dim): ({length}), for dim: {dim}"
        )));
    }
    let same = own.len() == have.len() && (0..own.len()).all(|d| d == dim || own[d] == have[d]);
    if !same {
        return Err(Diagnostic::runtime(format!(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {:?} \
             source.shape = {:?}",
            own.as_slice(),
            have.as_slice()
        )));
    }
    let sizes = at_least_1d(&own);
    let rows = vector_indices(index, sizes[dim], |i| {
        if name == "index_reduce_" {
            return Diagnostic::raised("IndexError", "index out of range in self");
        }
        Diagnostic::runtime(format!(
            "index {i} is out of bounds for dimension {dim} with size {}",
            sizes[dim]
        ))
    })?;
    Ok((dim, rows))
}

/// The positions of the source's elements in a target of some sizes.
fn index_places(sizes: &[i64], (dim, rows): (usize, Scratch<usize>)) -> Result<Scratch<usize>> {
    let sizes = at_least_1d(sizes);
    let mut maps = identity(&sizes)?;
    maps[dim] = rows;
    positions(&sizes, &maps)
}

fn index_add(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, source, alpha) = (a.tensor(0)?, a.tensor(3)?, a.scalar(4)?);
    let (dim, rows) = index_rows(a, "index_add_")?;
    check_fill(alpha, source.dtype())?;
    let scaled = if alpha == Scalar::Int(1) { source.clone() } else { scale(source, alpha)? };
    if tensor.dtype() == DType::F32 {
        return one(add_rows(tensor, (dim, &rows), &scaled)?);
    }
    let places = index_places(&tensor.sizes(), (dim, rows))?;
    one(combine(tensor, &places, &scaled, Combine::Sum, true)?)
}

fn scale(source: &Tensor, alpha: Scalar) -> Result<Tensor> {
    dispatch_wide!(source.dtype(), W => {
        let factor = wide::<W>(alpha);
        let scaled = source.elements_as::<W>()?.into_iter().map(|x| x.times(factor)).scratch()?;
        store::<W>(&scaled, &source.sizes(), source.dtype())
    })
}

fn index_reduce(a: &Args<'_>) -> Result<Outputs> {
    let how = match a.str(4)? {
        "prod" => Combine::Product,
        "mean" => Combine::Mean,
        "amax" => Combine::Max,
        "amin" => Combine::Min,
        other => {
            return Err(Diagnostic::runtime(format!(
                "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {other}."
            )));
        }
    };
    if a.tensor(0)?.dtype().is_complex() {
        return Err(not_implemented("index_reduce", a.tensor(0)?.dtype()));
    }
    if a.tensor(0)?.dtype() == DType::Bool && !a.bool(5)? {
        return Err(not_implemented("index_reduce_func_exclude_input_init", DType::Bool));
    }
    let places = index_places(&a.tensor(0)?.sizes(), index_rows(a, "index_reduce_")?)?;
    one(combine_stepwise(a.tensor(0)?, &places, a.tensor(3)?, how, a.bool(5)?)?)
}
