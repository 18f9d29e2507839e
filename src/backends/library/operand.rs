//! Operands of library calls: where tensors lie in a device's memory, copies that make strided ones dense, and the ops that are
//! nothing but copies.

use super::calls::{Copy, Piece, unsupported};
use super::machine::Machine;
use crate::diag::Result;
use crate::dialects::{Args, Outputs, one};
use crate::tensor::{DType, Layout, Storage, Tensor, view};

/// `MemoryFormat` as ops take it: dense in the order of the dimensions.
const CONTIGUOUS: i64 = 0;
/// As the operand is, where that is dense.
const PRESERVE: i64 = 1;

/// A tensor of a floating dtype with elements, which libraries take.
pub(super) fn floating(tensor: &Tensor) -> Result<&Tensor> {
    let plain = tensor.is_plain() && tensor.numel() > 0;
    match tensor.dtype() {
        DType::F32 | DType::F64 | DType::F16 | DType::BF16 if plain => Ok(tensor),
        _ => Err(unsupported("tensors of such a kind")),
    }
}

/// A tensor with elements that are real numbers, which can be copied.
fn plain(tensor: &Tensor) -> Result<&Tensor> {
    let real = tensor.is_plain() && !tensor.dtype().is_complex();
    if real && tensor.numel() > 0 { Ok(tensor) } else { Err(unsupported("tensors of such a kind")) }
}

/// Where a tensor lies on the device.
pub(super) fn piece(machine: &dyn Machine, tensor: &Tensor) -> Result<Piece> {
    let (storage, first, dtype) = tensor.with_meta(|m| (m.storage.clone(), m.layout.offset, m.dtype));
    Ok(Piece { buffer: storage.resident(machine.memory())?, first, dtype })
}

/// A tensor with the same elements that is dense: itself where it is.
pub(super) fn dense(machine: &dyn Machine, tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_contiguous() {
        return Ok(tensor.clone());
    }
    copied(machine, tensor)
}

/// A dense tensor with its elements in memory as strides of a dense tensor say.
pub(super) fn with_strides(machine: &dyn Machine, tensor: Tensor, strides: &[i64]) -> Result<Tensor> {
    let layout = tensor.layout();
    let same =
        layout.sizes.iter().zip(layout.strides.iter().zip(strides)).all(|(n, (a, b))| *n == 1 || a == b);
    if same {
        return tensor.with_layout(Layout { strides: strides.into(), ..layout });
    }
    let mut order: Vec<usize> = (0..strides.len()).collect();
    order.sort_by_key(|dim| std::cmp::Reverse(strides[*dim]));
    let walked = tensor.with_layout(view::reorder(&layout, &order))?;
    let layout = Layout { strides: strides.into(), sizes: layout.sizes, offset: 0 };
    copied(machine, &walked)?.with_layout(layout)
}

fn copied(machine: &dyn Machine, tensor: &Tensor) -> Result<Tensor> {
    let out = empty(machine, tensor.dtype(), &tensor.sizes())?;
    copy(machine, tensor, &out)?;
    Ok(out)
}

/// Copies the elements of one tensor to another of the same sizes.
fn copy(machine: &dyn Machine, from: &Tensor, to: &Tensor) -> Result<()> {
    let copy = Copy::of([from.dtype(), to.dtype()], &from.layout(), &to.layout())?;
    machine.copy(&copy, &piece(machine, from)?, &piece(machine, to)?)
}

/// A new dense tensor on the device, with whatever is in it.
pub(super) fn empty(machine: &dyn Machine, dtype: DType, sizes: &[i64]) -> Result<Tensor> {
    let layout = Layout::contiguous(sizes)?;
    let nbytes = layout.numel().saturating_mul(dtype.size());
    let storage = Storage::away(machine.memory().allocate(nbytes)?)?;
    Tensor::from_storage(storage, dtype, layout)
}

/// Whether the storage of a tensor is on the device already, where copying it costs little.
fn is_there(tensor: &Tensor) -> Result<()> {
    if tensor.storage().is_away() { Ok(()) } else { Err(unsupported("tensors that the host has")) }
}

/// The one result of an op.
pub(super) fn results(tensor: Tensor) -> Result<Option<Outputs>> {
    one(tensor).map(Some)
}

/// `aten::contiguous`
pub(super) fn contiguous(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let tensor = a.tensor(0)?;
    if tensor.is_contiguous() && a.int(1)? == CONTIGUOUS {
        return Ok(None);
    }
    is_there(plain(tensor)?)?;
    if a.int(1)? != CONTIGUOUS {
        return Err(unsupported("such a memory format"));
    }
    results(copied(machine, tensor)?)
}

/// `aten::to` another dtype: a copy that converts, laid out as its operand is.
pub(super) fn to_dtype(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let (tensor, dtype) = (a.tensor(0)?, a.dtype(1)?);
    if a.opt_int(4)?.is_some_and(|format| format != PRESERVE) {
        return Err(unsupported("such a memory format"));
    }
    if !a.bool(3)? && dtype == tensor.dtype() {
        return Ok(None);
    }
    is_there(plain(tensor)?)?;
    let layout = view::dense_like(&tensor.layout());
    let out = empty(machine, dtype, &tensor.sizes())?.with_layout(layout)?;
    copy(machine, tensor, &out)?;
    results(out)
}

/// `aten::clone`
pub(super) fn clone(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let tensor = plain(a.tensor(0)?)?;
    is_there(tensor)?;
    match a.opt_int(1)? {
        Some(CONTIGUOUS) => results(copied(machine, tensor)?),
        None | Some(PRESERVE) if tensor.is_contiguous() => results(copied(machine, tensor)?),
        _ => Err(unsupported("such a memory format")),
    }
}

/// `aten::reshape` of what is not dense: a copy. What has a view is left to the row, which gives the view.
pub(super) fn reshape(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let tensor = a.tensor(0)?;
    reshaped(machine, tensor, &view::infer_size(&a.ints(1)?, tensor.numel())?)
}

/// `aten::flatten`, likewise.
pub(super) fn flatten(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let tensor = a.tensor(0)?;
    reshaped(machine, tensor, &view::flatten_sizes(&tensor.sizes(), a.int(1)?, a.int(2)?)?)
}

fn reshaped(machine: &dyn Machine, tensor: &Tensor, sizes: &[i64]) -> Result<Option<Outputs>> {
    if view::try_view(&tensor.layout(), sizes).is_some() {
        return Ok(None);
    }
    is_there(plain(tensor)?)?;
    results(copied(machine, tensor)?.with_layout(Layout::contiguous(sizes)?)?)
}

/// `aten::pad` by nothing: a copy.
pub(super) fn pad(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let tensor = plain(a.tensor(0)?)?;
    is_there(tensor)?;
    if a.ints(1)?.iter().any(|width| *width != 0) || !tensor.is_contiguous() {
        return Err(unsupported("padding"));
    }
    results(copied(machine, tensor)?)
}

/// `aten::roll`: a copy for each of the parts that stay together.
pub(super) fn roll(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let tensor = plain(a.tensor(0)?)?;
    is_there(tensor)?;
    let (shifts, dims) = (a.ints(1)?, a.ints(2)?);
    if shifts.len() != dims.len() || dims.len() > 3 {
        return Err(unsupported("rolls of such dimensions"));
    }
    let out = empty(machine, tensor.dtype(), &tensor.sizes())?;
    // Pairs of layouts: where parts come from and where they go.
    let mut parts = vec![(tensor.layout(), out.layout())];
    for (shift, dim) in shifts.iter().zip(view::wrap_dims(&dims, tensor.rank())?) {
        let (size, at) = (tensor.sizes()[dim], dim as i64);
        let shift = shift.rem_euclid(size);
        let mut split = Vec::with_capacity(parts.len() * 2);
        for (from, to) in &parts {
            for (source, target, length) in [(0, shift, size - shift), (size - shift, 0, shift)] {
                if length > 0 {
                    split.push((
                        view::narrow(from, at, source, length)?,
                        view::narrow(to, at, target, length)?,
                    ));
                }
            }
        }
        parts = split;
    }
    for (from, to) in parts {
        copy(machine, &tensor.with_layout(from)?, &out.with_layout(to)?)?;
    }
    results(out)
}

/// `aten::cat` of tensors of one dtype: a copy for each.
pub(super) fn cat(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let tensors = a.tensors(0)?;
    let first = plain(tensors.first().ok_or_else(|| unsupported("lists without tensors"))?)?;
    // What only channels-last tensors give is as they are.
    if !tensors.iter().any(Tensor::is_contiguous) && first.rank() > 3 {
        return Err(unsupported("such a memory format"));
    }
    if !tensors.iter().any(|tensor| tensor.storage().is_away()) {
        return Err(unsupported("tensors that the host has"));
    }
    let dim = view::wrap_dims(&[a.int(1)?], first.rank())?[0];
    let mut sizes = first.sizes();
    let mut length = 0i64;
    for tensor in &tensors {
        let own = plain(tensor)?.sizes();
        let fits = own.len() == sizes.len() && (0..own.len()).all(|d| d == dim || own[d] == sizes[d]);
        if !fits || tensor.dtype() != first.dtype() {
            return Err(unsupported("such tensors together"));
        }
        length = length.checked_add(own[dim]).ok_or_else(|| unsupported("such tensors together"))?;
    }
    sizes[dim] = length;
    let out = empty(machine, first.dtype(), &sizes)?;
    let (whole, mut at) = (out.layout(), 0);
    for tensor in &tensors {
        let length = tensor.sizes()[dim];
        copy(machine, tensor, &out.with_layout(view::narrow(&whole, dim as i64, at, length)?)?)?;
        at += length;
    }
    results(out)
}
