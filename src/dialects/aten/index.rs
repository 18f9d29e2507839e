//! Elements by index: advanced indexing, selection along a dimension, masks, and the forms that write there.

use super::convert::copy_keeping_strides;
use super::view::as_strided_within;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, trial};
use crate::dialects::{Args, Fact, OpDef, OutRule, Outputs, gather, one, opaque};
use crate::kernels::index::indexing::{
    Combine, Outside, Plan, add_at, advanced, along, at_least_1d, combine, nonzero, truths,
};
use crate::kernels::index::place::{identity, pick, positions, remap_as_it_lies};
use crate::kernels::strided::{laid_out_as, with_strides};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::pointwise::Walk;
use crate::tensor::{
    Blocks, DType, Dims, Layout, Scalar, Storage, Tensor, broadcast_all, check_fill, view, wrap_dim,
};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    gather("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index).rare("u8").quantized(crate::dialects::Quantized::Integers).infer(joins::indexed)
        .out("Tensor_out"),
    gather("aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor", index).rare("u8").infer(joins::indexed),
    gather("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", unsafe_index)
        .overloads(&["Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor"]),
    gather(
        "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        index_put,
    ).infer(joins::same_sizes)
    .quantized_kernel(crate::dialects::quantized::moves::put)
    .apart(&[1, 2])
    .unless(fills_by_mask)
    .facts(&[Fact::Fills(2, "tensor[indices] = tensor")])
    .inplace()
    .out_exact("out"),
    gather(
        "aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
        index_put,
    ).infer(joins::same_sizes)
    .quantized_kernel(crate::dialects::quantized::moves::put)
    .apart(&[1, 2])
    .unless(fills_by_mask)
    .facts(&[Fact::Fills(2, "tensor[indices] = tensor")])
    .inplace(),
    opaque(
        "aten::_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)",
        index_put_impl,
    )
        .overloads(&["hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)"]),
    gather(
        "aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        index_put,
    )
        .overloads(&["hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor"]),
    gather(
        "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
        masked_index,
    ).infer(trial::stand_ins),
    gather(
        "aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
        masked_index_put,
    ),
    gather("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select).rare("u8").quantized(crate::dialects::Quantized::Integers).infer(joins::index_select)
        .apart(&[0, 2]).out_as("out", OutRule::Says("index_select(): self and result must have the same scalar type")),
    gather(
        "aten::index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
        index_select_backward,
    ),
    gather("aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", index_fill).infer(joins::same_sizes)
        .facts(&[Fact::Fills(3, "tensor[mask] = scalar")])
        .inplace()
        .out_exact("int_Tensor_out"),
    gather("aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", index_fill).infer(joins::same_sizes)
        .facts(&[Fact::Fills(3, "tensor[mask] = scalar")])
        .inplace()
        .out_exact("int_Scalar_out"),
    gather("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", index_copy).infer(joins::same_sizes)
        .apart(&[2, 3]).inplace()
        .out_exact("out"),
    gather("aten::take(Tensor self, Tensor index) -> Tensor", take).infer(trial::stand_ins)
        .apart(&[0, 1])
        .out_as("out", OutRule::Says("take(): self and out expected to have the same dtype, but got self.dtype = {from} and out.dtype = {to}")),
    gather("aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along_dim).quantized(crate::dialects::Quantized::Integers).infer(trial::stand_ins).out_exact("out"),
    gather("aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put).infer(joins::same_sizes)
        .apart(&[1, 2]).inplace()
        .out_exact("out"),
    gather("aten::masked_select(Tensor self, Tensor mask) -> Tensor", masked_select).rare("8").quantized(crate::dialects::Quantized::Integers).infer(joins::picked).apart(&[0, 1]).out("out"),
    gather("aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", masked_scatter).infer(joins::same_sizes)
        .inplace()
        .out_exact("out"),
    gather("aten::nonzero(Tensor self) -> Tensor", |a| one(rows_of(a.tensor(0)?)?)).infer(joins::places).out_exact("out"),
    gather("aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", nonzero_static).infer(trial::kernel).out_exact("out"),
    gather("aten::nonzero_numpy(Tensor self) -> Tensor[]", |a| one(columns_of(a.tensor(0)?)?)),
    gather("aten::argwhere(Tensor self) -> Tensor", |a| one(rows_of(a.tensor(0)?)?)).infer(joins::places),
    gather("aten::where(Tensor condition) -> Tensor[]", |a| one(columns_of(a.tensor(0)?)?)).infer(joins::choose),
    gather("aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", |a| {
        into_view(a, |l| view::select(l, a.int(2)?, a.int(3)?))
    }).infer(joins::same_sizes)
    .grad("self: grad.select_scatter(torch.zeros_like(src), dim, index)\nsrc: grad.select(dim, index)")
    .out_exact("out"),
    gather(
        "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
        |a| into_view(a, |l| view::slice(l, a.int(2)?, a.opt_int(3)?, a.opt_int(4)?, a.int(5)?)),
    ).infer(joins::same_sizes)
    .grad(
        "self: grad.slice_scatter(torch.zeros_like(src), dim, start, end, step)\nsrc: torch.slice_copy(grad, dim, start, end, step)",
    )
    .out_exact("out"),
    gather("aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", |a| {
        into_view(a, |l| view::diagonal(l, a.int(2)?, a.int(3)?, a.int(4)?))
    }).infer(joins::same_sizes)
    .grad(
        "self: grad.diagonal_scatter(torch.zeros_like(src), offset, dim1, dim2)\nsrc: grad.diagonal(offset, dim1, dim2)",
    )
    .out("out"),
    gather(
        "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        as_strided_scatter,
    ).infer(joins::same_sizes)
    .out_exact("out"),
    gather("aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor", unfold_backward)
        .out_exact("out"),
];

fn index_error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::raised("IndexError", message)
}

fn unsafe_index(a: &Args<'_>) -> Result<Outputs> {
    for index in a.opt_tensors(1)?.iter().flatten() {
        if !matches!(index.dtype(), DType::I64 | DType::I32) {
            let name = index.dtype().type_name();
            return Err(Diagnostic::runtime(format!("_unsafe_index found unexpected index type {name}")));
        }
    }
    index(a)
}

fn index(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, indices) = (a.tensor(0)?, a.opt_tensors(1)?);
    if indices.is_empty() {
        return Err(index_error("at least one index must be provided"));
    }
    if let Some(result) = masked(tensor, &indices)? {
        return one(result);
    }
    let plan = advanced(tensor, &indices, Outside::Raise)?;
    let result = match slices(tensor, &indices)? {
        Some(result) => result,
        None => plan.take(tensor)?,
    };
    one(with_strides(result, &Walk::new(&plan.operands)?.result.strides)?)
}

/// What one mask of the first dimensions takes of a row-major tensor, without a list of places for each dimension. None for other indices.
fn masked(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Option<Tensor>> {
    let [Some(mask)] = indices else { return Ok(None) };
    let (own, sizes) = (tensor.sizes(), mask.sizes());
    let is_mask = mask.dtype() == DType::Bool && !sizes.is_empty() && own.starts_with(&sizes);
    if !is_mask || !tensor.is_contiguous() {
        return Ok(None);
    }
    let length = own[sizes.len()..].iter().product::<i64>() as usize;
    let kept = kept(&truths(mask)?, length)?;
    // PyTorch's strides of no elements follow from its iterator.
    if kept.is_empty() {
        return Ok(None);
    }
    let mut result = Dims::from_slice(&[kept.len() as i64]);
    result.extend_from_slice(&own[sizes.len()..]);
    tensor.take_blocks(&Blocks { outer: &kept, inner: &[0], length }, &result).map(Some)
}

/// Where blocks of `length` elements begin that a mask keeps.
fn kept(mask: &[bool], length: usize) -> Result<Scratch<usize>> {
    let count = mask.iter().filter(|keep| **keep).count();
    memory::built(count, |all| {
        all.extend(mask.iter().enumerate().filter(|(_, keep)| **keep).map(|(n, _)| n * length));
    })
}

/// What one list of places along one dimension takes of a tensor that is not row-major: it is read as it lies. None for other
/// indices, which must have been checked.
fn slices(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Option<Tensor>> {
    let mut given = indices.iter().enumerate().filter_map(|(dim, index)| Some((dim, index.as_ref()?)));
    let (Some((dim, index)), None) = (given.next(), given.next()) else { return Ok(None) };
    if tensor.is_contiguous() || index.rank() != 1 || !matches!(index.dtype(), DType::I64 | DType::I32) {
        return Ok(None);
    }
    let size = tensor.sizes()[dim];
    // Another thread may have written to them since.
    let last = (size - 1).max(0);
    let wrap = |at: i64| if at < 0 { (at + size).max(0) } else { at.min(last) } as usize;
    let mut maps = identity(&tensor.sizes())?;
    maps[dim] = index.elements_as::<i64>()?.into_iter().map(wrap).scratch()?;
    remap_as_it_lies(tensor, &maps).map(Some)
}

/// A single value under a single mask is converted; everything else must have the target's dtype.
fn values_like(
    tensor: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    if tensor.dtype() == values.dtype() {
        return Ok(values.clone());
    }
    let mut given = indices.iter().flatten();
    let mask =
        given.next().is_some_and(|t| matches!(t.dtype(), DType::Bool | DType::U8)) && given.next().is_none();
    if mask && !accumulate && values.numel() == 1 {
        return values.to_dtype(tensor.dtype());
    }
    Err(Diagnostic::runtime(format!(
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        tensor.dtype().type_name(),
        values.dtype().type_name()
    )))
}

fn wrong_sizes(plan: &Plan, values: &Layout) -> Diagnostic {
    Diagnostic::runtime(format!(
        "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
        values.sizes.as_slice(),
        plan.sizes.as_slice()
    ))
}

/// Fails where values do not broadcast to what a plan selects: PyTorch checks that before dtypes.
fn refuse_sizes(plan: &Plan, values: &Tensor) -> Result<()> {
    let layout = values.layout();
    layout.broadcast_to(&plan.sizes).map(|_| ()).ok_or_else(|| wrong_sizes(plan, &layout))
}

/// A dense copy of the tensor with values written, or added, where the plan says.
fn put_plan(tensor: &Tensor, plan: &Plan, values: &Tensor, accumulate: bool) -> Result<Tensor> {
    let layout = values.layout();
    let spread = layout.broadcast_to(&plan.sizes).ok_or_else(|| wrong_sizes(plan, &layout))?;
    let values = values.with_layout(spread)?;
    if accumulate {
        return add_at(tensor, &plan.positions()?, &values);
    }
    let result = tensor.copy()?;
    result.put_positions(&plan.positions()?, &values)?;
    Ok(result)
}

fn index_put(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, indices, accumulate) = (a.tensor(0)?, a.opt_tensors(1)?, a.bool(3)?);
    let plan = advanced(tensor, &indices, Outside::Raise)?;
    refuse_sizes(&plan, a.tensor(2)?)?;
    let values = values_like(tensor, &indices, a.tensor(2)?, accumulate)?;
    one(laid_out_as(put_plan(tensor, &plan, &values, accumulate)?, tensor)?)
}

/// Whether a number is written where one mask is true: PyTorch reads the number first, so that all may be one memory.
fn fills_by_mask(values: &[Value]) -> bool {
    let [_, Value::List(indices), Value::Tensor(value), rest @ ..] = values else { return false };
    let indices = indices.items();
    let mut given = indices.iter().filter(|index| !index.is_none());
    let accumulates = matches!(rest.first(), Some(Value::Bool(true)));
    let is_mask =
        |index: &Value| matches!(index, Value::Tensor(t) if matches!(t.dtype(), DType::Bool | DType::U8));
    !accumulates && value.numel() == 1 && given.next().is_some_and(is_mask) && given.next().is_none()
}

fn index_put_impl(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    for result in index_put(a)? {
        tensor.copy_from(result.to_tensor()?)?;
    }
    one(tensor.clone())
}

fn masked_index(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, mask, fill) = (a.tensor(0)?, a.tensor(1)?, a.scalar(3)?);
    let indices = a.opt_tensors(2)?;
    check_fill(fill, tensor.dtype())?;
    if tensor.numel() == 0 {
        let shape = broadcast_all(indices.iter().flatten())?;
        return one(Tensor::full(
            tensor.dtype(),
            &crate::tensor::broadcast_sizes(&shape, &mask.sizes())?,
            fill,
        )?);
    }
    let plan = advanced(tensor, &indices, Outside::Clamp)?;
    let taken = plan.take(tensor)?;
    let sizes = crate::tensor::broadcast_sizes(&plan.sizes, &mask.sizes())?;
    let result = taken.broadcast_to(&sizes)?.copy()?;
    let keep = truths(&mask.broadcast_to(&sizes)?)?;
    let filled = keep.iter().enumerate().filter(|(_, k)| !**k).map(|(i, _)| i).scratch()?;
    result.put_positions(&filled, &Tensor::full(tensor.dtype(), &[filled.len() as i64], fill)?)?;
    one(result)
}

fn masked_index_put(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, mask, values) = (a.tensor(0)?, a.tensor(1)?, a.tensor(3)?);
    if tensor.numel() == 0 {
        return one(tensor.copy()?);
    }
    let plan = advanced(tensor, &a.opt_tensors(2)?, Outside::Clamp)?;
    let values = &values_like(tensor, &[], values, true)?;
    let values = values.broadcast_to(&plan.sizes)?;
    let keep = truths(&mask.broadcast_to(&plan.sizes)?)?;
    let kept = keep.iter().enumerate().filter(|(_, k)| **k).map(|(i, _)| i).scratch()?;
    let positions = plan.positions()?;
    let to = kept.iter().map(|i| positions[*i]).scratch()?;
    one(add_at(tensor, &to, &values.take_positions(&kept, &[kept.len() as i64])?)?)
}

/// Indices of a vector (or rank 0) of int32 or int64 along a dimension of `size`.
pub fn vector_indices(
    index: &Tensor,
    size: i64,
    error: impl Fn(i64) -> Diagnostic,
) -> Result<Scratch<usize>> {
    let check = |i: i64| if (0..size).contains(&i) { Ok(i as usize) } else { Err(error(i)) };
    index.elements_as::<i64>()?.into_iter().map(check).try_scratch()
}

fn index_select(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, index) = (a.tensor(0)?, a.tensor(2)?);
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    if index.rank() > 1 {
        return Err(index_error("index_select(): Index is supposed to be a vector"));
    }
    if !matches!(index.dtype(), DType::I32 | DType::I64) {
        return Err(Diagnostic::runtime("index_select(): Expected dtype int32 or int64 for index"));
    }
    if tensor.rank() == 0 && index.numel() != 1 {
        return Err(Diagnostic::runtime(format!(
            "index_select(): Index to scalar can have only 1 value, got {} value(s)",
            index.numel()
        )));
    }
    let sizes = at_least_1d(&tensor.sizes());
    let indices = vector_indices(index, sizes[dim], |_| index_error("index out of range in self"))?;
    let picked = pick(&tensor.reshaped(&sizes)?, dim, &indices)?;
    one(if tensor.rank() == 0 { picked.reshaped(&[])? } else { picked })
}

fn index_select_backward(a: &Args<'_>) -> Result<Outputs> {
    let (grad, sizes, index) = (a.tensor(0)?, a.ints(1)?, a.tensor(3)?);
    let dim = wrap_dim(a.int(2)?, sizes.len())?;
    let zeros = Tensor::zeros(grad.dtype(), &sizes)?;
    let sizes = at_least_1d(&sizes);
    let mut maps = identity(&sizes)?;
    maps[dim] = vector_indices(index, sizes[dim], |_| index_error("index out of range in self"))?;
    one(combine(&zeros, &positions(&sizes, &maps)?, grad, Combine::Sum, true)?)
}

fn index_fill(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, index) = (a.tensor(0)?, a.tensor(2)?);
    if let Value::Tensor(value) = a.value(3)?
        && value.rank() != 0
    {
        return Err(Diagnostic::runtime(format!(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.rank()
        )));
    }
    let value = a.scalar(3)?;
    if index.dtype() != DType::I64 {
        return Err(index_error("index_fill_(): Expected dtype int64 for index."));
    }
    if index.rank() > 1 {
        return Err(Diagnostic::runtime("Index has to be a vector/scalar"));
    }
    if matches!(value, Scalar::Complex(_)) && !tensor.dtype().is_complex() {
        return Err(Diagnostic::runtime(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported",
        ));
    }
    let sizes = at_least_1d(&tensor.sizes());
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    let size = sizes[dim];
    let wrapped: Vec<usize> = index
        .elements::<i64>()?
        .into_iter()
        .map(|i| match i {
            i if i < -size || i >= size => {
                Err(index_error(format!("index {i} is out of bounds for dimension {dim} with size {size}")))
            }
            i => Ok(if i < 0 { i + size } else { i } as usize),
        })
        .collect::<Result<_>>()?;
    check_fill(value, tensor.dtype())?;
    let result = tensor.copy()?;
    let flat = result.with_layout(crate::tensor::Layout::contiguous(&sizes)?)?;
    for i in wrapped {
        flat.look(|l| view::select(l, dim as i64, i as i64))?.fill(value)?;
    }
    one(laid_out_as(result, tensor)?)
}

fn index_copy(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, index, source) = (a.tensor(0)?, a.tensor(2)?, a.tensor(3)?);
    let dim = wrap_dim(a.int(1)?, tensor.rank())?;
    if index.rank() > 1 {
        return Err(index_error(format!(
            "index_copy_(): Index should have dimension 1 or 0 (got {})",
            index.rank()
        )));
    }
    let count = index.numel();
    if source.rank() == 0 && count != 1 {
        return Err(index_error(format!(
            "index_copy_(): When source is scalar, index should have one element (got {count})"
        )));
    }
    if source.rank() != tensor.rank() && source.rank() != 0 && tensor.rank() != 0 {
        return Err(index_error(format!(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source \
             dimensionality ({}), destination dimensionality ({})",
            source.rank(),
            tensor.rank()
        )));
    }
    if index.dtype() != DType::I64 {
        return Err(Diagnostic::runtime(format!(
            "index_copy_(): Expected a long tensor for index, but got {}",
            index.dtype().type_name()
        )));
    }
    if tensor.dtype() != source.dtype() {
        return Err(Diagnostic::runtime(format!(
            "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
            tensor.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    let without = |sizes: &[i64]| -> Dims {
        sizes.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, s)| *s).collect()
    };
    let (to, from) = (without(&tensor.sizes()), without(&source.sizes()));
    if to != from && !(tensor.rank() == 0 || source.rank() == 0) {
        return Err(Diagnostic::runtime(format!(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension \
             {dim} and source slice shape: {} at dimension 0.",
            spaced(&to),
            spaced(&from)
        )));
    }
    let have = at_least_1d(&source.sizes()).get(dim).copied().unwrap_or(1);
    if source.rank() > 0 && have != count as i64 {
        return Err(index_error(format!(
            "index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({have})"
        )));
    }
    let sizes = at_least_1d(&tensor.sizes());
    let mut maps = identity(&sizes)?;
    maps[dim] = vector_indices(index, sizes[dim], |i| {
        index_error(format!(
            "index_copy_(): index {i} is out of bounds for dimension {dim} with size {}",
            sizes[dim]
        ))
    })?;
    let places = positions(&sizes, &maps)?;
    if places.len() != source.numel() {
        return Err(Diagnostic::unsupported("aten::index_copy of a source of rank 0 into several elements"));
    }
    let result = tensor.copy()?;
    result.put_positions(&places, source)?;
    one(result)
}

/// Sizes as an older part of PyTorch prints them.
fn spaced(sizes: &[i64]) -> String {
    sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

/// Positions in the flattened tensor; negative ones count from its end.
fn flat_positions(tensor: &Tensor, index: &Tensor) -> Result<Scratch<usize>> {
    let n = tensor.numel() as i64;
    index
        .elements::<i64>()?
        .into_iter()
        .map(|i| match i {
            i if i < -n || i >= n => Err(index_error(format!(
                "out of range: tried to access index {i} on a tensor of {n} elements."
            ))),
            i => Ok(if i < 0 { i + n } else { i } as usize),
        })
        .try_scratch()
}

fn expect_long(name: &str, index: &Tensor) -> Result<()> {
    if index.dtype() != DType::I64 {
        return Err(Diagnostic::runtime(format!(
            "{name}(): Expected a long tensor for index, but got {}",
            index.dtype().type_name()
        )));
    }
    Ok(())
}

fn take(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, index) = (a.tensor(0)?, a.tensor(1)?);
    expect_long("take", index)?;
    if tensor.numel() == 0 && index.numel() != 0 {
        return Err(index_error("take(): tried to take from an empty tensor"));
    }
    one(tensor.take_positions(&flat_positions(tensor, index)?, &index.sizes())?)
}

fn put(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, index, source) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    expect_long("put_", index)?;
    if tensor.dtype() != source.dtype() {
        return Err(Diagnostic::runtime(format!(
            "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
            tensor.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    if source.numel() != index.numel() {
        return Err(index_error(format!(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
             index.numel() = {}",
            source.numel(),
            index.numel()
        )));
    }
    if tensor.numel() == 0 && index.numel() != 0 {
        return Err(index_error("put_(): Tried to put elements into an empty tensor"));
    }
    let places = flat_positions(tensor, index)?;
    if a.bool(3)? {
        return one(laid_out_as(add_at(tensor, &places, source)?, tensor)?);
    }
    let result = tensor.copy()?;
    result.put_positions(&places, source)?;
    one(laid_out_as(result, tensor)?)
}

fn take_along_dim(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, indices) = (a.tensor(0)?, a.tensor(1)?);
    if indices.dtype() != DType::I64 {
        return Err(Diagnostic::runtime(format!(
            "torch.take_along_dim(): dtype of indices should be Long but got {}",
            indices.dtype().type_name()
        )));
    }
    let Some(dim) = a.opt_int(2)? else {
        let (flat, index) =
            (tensor.reshaped(&[tensor.numel() as i64])?, indices.reshaped(&[indices.numel() as i64])?);
        return one(flat.take_positions(&along(&flat.sizes(), 0, &index, false)?, &index.sizes())?);
    };
    if tensor.rank() != indices.rank() {
        return Err(Diagnostic::runtime(format!(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for \
             input, and {} dimensions for indices",
            tensor.rank(),
            indices.rank()
        )));
    }
    let dim = view::wrap_dim_strict(dim, tensor.rank())?;
    let (mut own, mut wanted) = (tensor.sizes(), indices.sizes());
    if tensor.rank() > 0 {
        // Both are broadcast in all dimensions but the one.
        let (size, count) = (own[dim], wanted[dim]);
        own[dim] = count;
        let shape = crate::tensor::broadcast_sizes(&own, &wanted)?;
        (own, wanted) = (shape.clone(), shape);
        own[dim] = size;
    }
    let (tensor, indices) = (tensor.broadcast_to(&own)?, indices.broadcast_to(&wanted)?);
    one(tensor.take_positions(&along(&own, dim, &indices, true)?, &wanted)?)
}

fn masked_select(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, mask) = (a.tensor(0)?, a.tensor(1)?);
    if mask.dtype() != DType::Bool {
        return Err(Diagnostic::runtime("masked_select: expected BoolTensor for mask"));
    }
    let sizes = broadcast_all([mask, tensor])?;
    let keep = truths(&mask.broadcast_to(&sizes)?)?;
    let kept = kept(&keep, 1)?;
    one(tensor.broadcast_to(&sizes)?.take_positions(&kept, &[kept.len() as i64])?)
}

fn masked_scatter(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, mask, source) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let sizes = broadcast_all([mask, tensor])?;
    if tensor.dtype() != source.dtype() {
        return Err(Diagnostic::runtime(format!(
            "masked_scatter: expected self and source to have same dtypes but got{} and {}",
            tensor.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    if mask.dtype() != DType::Bool {
        return Err(Diagnostic::runtime(format!(
            "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype().type_name()
        )));
    }
    let result = tensor.broadcast_to(&sizes)?.copy()?;
    let keep = truths(&mask.broadcast_to(&sizes)?)?;
    let kept = kept(&keep, 1)?;
    if kept.len() > source.numel() {
        return Err(Diagnostic::runtime("Number of elements of source < number of ones in mask"));
    }
    let order = (0..kept.len()).scratch()?;
    result.put_positions(&kept, &source.take_positions(&order, &[order.len() as i64])?)?;
    one(result)
}

/// One row for each non-zero element.
fn rows_of(tensor: &Tensor) -> Result<Tensor> {
    let columns = nonzero(tensor)?;
    let count = match columns.first() {
        Some(column) => column.len(),
        None => usize::from(truths(tensor)?.first() == Some(&true)),
    };
    // Column after column, as PyTorch lays them out.
    joined(&columns, count)?.look(|l| view::transpose(l, 0, 1))
}

/// Columns of `count` elements as the rows of a matrix.
fn joined(columns: &[Scratch<i64>], count: usize) -> Result<Tensor> {
    let all = columns.iter().flatten().copied().scratch()?;
    Tensor::from_vec(&all, &[columns.len() as i64, count as i64])
}

/// One vector of indices for each dimension; rank 0 counts as one dimension.
fn columns_of(tensor: &Tensor) -> Result<Value> {
    let columns = nonzero(&tensor.reshaped(&at_least_1d(&tensor.sizes()))?)?;
    let count = columns.first().map_or(0, |column| column.len());
    let dense = joined(&columns, count)?;
    let column = |n: usize| dense.look(|l| view::select(l, 0, n as i64));
    Ok(Value::tensors((0..columns.len()).map(column).collect::<Result<Vec<Tensor>>>()?))
}

fn nonzero_static(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, size, fill) = (a.tensor(0)?, a.int(1)?, a.int(2)?);
    if size < 0 {
        return Err(Diagnostic::runtime("nonzero_static: 'size' must be an non-negative integer"));
    }
    let found = rows_of(tensor)?;
    let result = Tensor::full(DType::I64, &[size, tensor.rank() as i64], Scalar::Int(fill))?;
    let kept = size.min(found.sizes()[0]);
    result.look(|l| view::narrow(l, 0, 0, kept))?.copy_from(&found.look(|l| view::narrow(l, 0, 0, kept))?)?;
    one(result)
}

/// A copy of the tensor with the source written through a view of it.
fn into_view(
    a: &Args<'_>,
    rule: impl FnOnce(&crate::tensor::Layout) -> Result<crate::tensor::Layout>,
) -> Result<Outputs> {
    let (tensor, source) = (a.tensor(0)?, a.tensor(1)?);
    let result = copy_keeping_strides(tensor)?;
    write_slot(&result.look(rule)?, source)?;
    one(result)
}

/// Strides mean the source's storage, so all of it is copied.
fn as_strided_scatter(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, source) = (a.tensor(0)?, a.tensor(1)?);
    let layout = tensor.layout();
    let storage = tensor.storage();
    let result = match layout.has_internal_overlap() {
        true => copy_keeping_strides(tensor)?,
        false => Tensor::from_storage(Storage::from_bytes(&storage.read()?)?, tensor.dtype(), layout)?,
    };
    let slot = as_strided_within(&result, &a.ints(2)?, &a.ints(3)?, a.opt_int(4)?)?;
    let slot = result.with_layout(slot)?;
    write_slot(&slot, source)?;
    one(result)
}

fn write_slot(slot: &Tensor, source: &Tensor) -> Result<()> {
    if slot.sizes() != source.sizes() {
        return Err(Diagnostic::runtime(format!(
            "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
            source.sizes().as_slice(),
            slot.sizes().as_slice()
        )));
    }
    slot.copy_from(source)
}

/// Adds each window's elements back to where `unfold` took them from.
fn unfold_backward(a: &Args<'_>) -> Result<Outputs> {
    let (grad, sizes) = (a.tensor(0)?, a.ints(1)?);
    let zeros = Tensor::zeros(grad.dtype(), &sizes)?;
    let windows = view::unfold(&zeros.layout(), a.int(2)?, a.int(3)?, a.int(4)?)?;
    if windows.sizes != grad.sizes() {
        return Err(Diagnostic::runtime(format!(
            "unfold_backward: expected a gradient of sizes {:?} but got {:?}",
            windows.sizes.as_slice(),
            grad.sizes().as_slice()
        )));
    }
    let places = memory::built(windows.numel(), |places| windows.for_each_index(|i| places.push(i)))?;
    one(combine(&zeros, &places, grad, Combine::Sum, true)?)
}
