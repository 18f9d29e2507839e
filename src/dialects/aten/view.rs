//! Other views of the same storage, their copying forms (`*_copy`) and the forms that change a tensor's own look
//! (`t_`, `unsqueeze_`). The rules from layout to layout stand in `tensor::view`; no element is touched here.

use super::rule::{copied, in_place, look};
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{pointwise, trial, views};
use crate::dialects::{Alias, Args, Fact, LayerPart, OpDef, Outputs, gather, one, opaque, view};
use crate::kernels::strided::with_strides;
use crate::resources::Collect;
use crate::tensor::{DType, Element, Layout, Tensor, view as layout};
use num_complex::Complex;

/// The rows.
pub static OPS: &[OpDef] = &[
    view("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", |a| look(a, sizes_as)).facts(&[Fact::SeesLayout]).part(LayerPart::Reshape).infer(views::reshape)
        .grad("self: grad.reshape(self.size())"),
    // There is no `view.dtype`: programs cannot distinguish a dtype from a size, so it is never chosen.
    view("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", |a| reshape(a, &a.ints(1)?)).facts(&[Fact::MayCopy]).part(LayerPart::Reshape).infer(views::reshape)
        .grad("self: grad.reshape(self.size())"),
    view("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", |a| reshape(a, &a.tensor(1)?.sizes())).facts(&[Fact::MayCopy, Fact::AsOther("aten::reshape")]).infer(views::as_other),
    view("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)", |a| {
        look(a, |a| layout::view(&own(a)?, &a.tensor(1)?.sizes()))
    }).facts(&[Fact::SeesLayout, Fact::AsOther("aten::view")]).infer(views::as_other),
    view("aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", |a| look(a, sizes_as)).facts(&[Fact::SeesLayout]).infer(views::reshape),
    view("aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor", |a| look(a, sizes_as)).hidden_marks("aten::_unsafe_view(Tensor(a) self, SymInt[] size) -> Tensor(a)").facts(&[Fact::SeesLayout]).part(LayerPart::Reshape).infer(views::reshape)
        .grad("self: grad.reshape(self.size())"),
    view("aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", |a| look(a, expand)).facts(&[Fact::Broadcasts]).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::expand)
        .grad("self: grad.sum_to_size(self.size())"),
    view("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", |a| {
        one(a.tensor(0)?.broadcast_to(&a.tensor(1)?.sizes())?)
    }).facts(&[Fact::Broadcasts]).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::as_other),
    view("aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", |a| look(a, expand)).facts(&[Fact::Broadcasts]).infer(views::expand)
        .grad("self: grad.sum_to_size(self.size())"),
    view("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", |a| look(a, transpose)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::transpose)
        .grad("self: grad.transpose(dim0, dim1)"),
    view("aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", |a| look(a, transpose)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::transpose)
        .grad("self: grad.transpose(axis0, axis1)").alias_of("transpose"),
    view("aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", |a| look(a, transpose)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::transpose)
        .grad("self: grad.transpose(dim0, dim1)").alias_of("transpose"),
    view("aten::t(Tensor(a) self) -> Tensor(a)", |a| look(a, t)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::t).grad("self: grad.t()"),
    view("aten::mT(Tensor(a) self) -> Tensor(a)", |a| look(a, matrix_t)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::last_two).grad("self: grad.transpose(-2, -1)"),
    view("aten::mT.a(Tensor(a) self) -> Tensor(a)", |a| look(a, matrix_t)).infer(views::last_two).grad("self: grad.transpose(-2, -1)"),
    view("aten::mH(Tensor(a) self) -> Tensor(a)", |a| one(adjoint(a, "mH")?)).infer(views::last_two),
    view("aten::mH.a(Tensor(a) self) -> Tensor(a)", |a| one(adjoint(a, "mH")?)).infer(views::last_two),
    view("aten::matrix_H(Tensor(a) self) -> Tensor(a)", |a| one(adjoint(a, "H")?)).infer(views::last_two),
    view("aten::matrix_H.a(Tensor(a) self) -> Tensor(a)", |a| one(adjoint(a, "H")?)).infer(views::last_two),
    view("aten::adjoint(Tensor(a) self) -> Tensor(a)", |a| one(adjoint(a, "adjoint()")?)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::last_two),
    view("aten::numpy_T(Tensor(a) self) -> Tensor(a)", |a| look(a, reverse)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::t),
    view("aten::numpy_T.a(Tensor(a) self) -> Tensor(a)", |a| look(a, reverse)).infer(views::t),
    view("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", |a| look(a, permute)).quantized_kernel(crate::dialects::quantized::moves::uniform).infer(views::permute)
        .grad("self: grad.movedim([i for i in range(len(dims))], dims)"),
    view("aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", |a| look(a, movedim)).quantized_kernel(crate::dialects::quantized::moves::uniform)
        .grad("self: grad.movedim(destination, source)").aliases(&[Alias::new("moveaxis")]),
    view("aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", |a| look(a, movedim)).quantized_kernel(crate::dialects::quantized::moves::uniform)
        .grad("self: grad.movedim(destination, source)").aliases(&[Alias::new("moveaxis")]),
    view("aten::squeeze(Tensor(a) self) -> Tensor(a)", |a| look(a, squeeze)).infer(views::squeeze).grad("self: grad.reshape(self.size())"),
    view("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", |a| look(a, squeeze_dims)).infer(views::squeeze)
        .grad("self: grad.reshape(self.size())"),
    view("aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", |a| look(a, squeeze_dims)).infer(views::squeeze)
        .grad("self: grad.reshape(self.size())"),
    view("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", |a| look(a, unsqueeze)).infer(views::unsqueeze).grad("self: grad.squeeze(dim)"),
    view("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", |a| look(a, select)).quantized_kernel(crate::dialects::quantized::moves::select).infer(views::select),
    view(
        "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
        |a| look(a, slice),
    ).infer(views::slice),
    view("aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", |a| look(a, narrow)).infer(views::narrow),
    view("aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", |a| {
        look(a, narrow_tensor)
    }),
    view(
        "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
        |a| look(a, as_strided),
    ).quantized_kernel(crate::dialects::quantized::moves::uniform).facts(&[Fact::SeesLayout]).infer(views::as_strided),
    view("aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", |a| look(a, diagonal)).quantized_kernel(crate::dialects::quantized::moves::uniform),
    view("aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", |a| {
        look(a, diagonal)
    })
    .grad("A: grad.new_zeros(A.size()).diagonal_scatter(grad, offset, dim1, dim2)"),
    view("aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", |a| look(a, unfold)).quantized_kernel(crate::dialects::quantized::moves::uniform),
    view("aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", |a| {
        let tensor = a.tensor(0)?;
        let sizes = layout::flatten_sizes(&tensor.sizes(), a.int(1)?, a.int(2)?)?;
        // One dimension alone: the tensor itself.
        if sizes.len() == tensor.rank() { one(tensor.clone()) } else { reshape(a, &sizes) }
    }).facts(&[Fact::MayCopy]).infer(views::flatten)
    .grad("self: grad.reshape(self.size())"),
    view("aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", |a| {
        look(a, |a| {
            let sizes = layout::unflatten_sizes(&a.tensor(0)?.sizes(), a.int(1)?, &a.ints(2)?)?;
            layout::view(&own(a)?, &sizes)
        })
    })
    .facts(&[Fact::SeesLayout])
    .grad("self: grad.reshape(self.size())"),
    view("aten::ravel(Tensor(a) self) -> Tensor(a)", |a| {
        reshape(a, &[-1]).and_then(|mut out| match out.pop() {
            Some(value) => one(value.to_tensor()?.contiguous()?),
            None => Ok(out),
        })
    }).facts(&[Fact::MayCopy]).infer(views::ravel)
    .grad("self: grad.reshape(self.size())"),
    view("aten::view_as_real(Tensor(a) self) -> Tensor(a)", |a| one(view_as_real(a.tensor(0)?)?)),
    view("aten::view_as_complex(Tensor(a) self) -> Tensor(a)", |a| one(view_as_complex(a.tensor(0)?)?))
        .facts(&[Fact::SeesLayout]),
    view("aten::lift(Tensor self) -> Tensor", |a| one(a.tensor(0)?.clone())).hidden_marks("aten::lift(Tensor(a) self) -> Tensor(a)").grad("self: grad"),
    view("aten::data(Tensor self) -> Tensor", |a| one(a.tensor(0)?.detach())).hidden_marks("aten::data(Tensor(a) self) -> Tensor(a)").facts(&[Fact::Detached]),
    // Copying forms.
    gather("aten::view_copy(Tensor self, SymInt[] size) -> Tensor", reshape_copy).infer(views::reshape)
        .out_exact("out")
        .grad("self: grad.reshape(self.size())"),
    gather("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", bits_copied).infer(trial::kernel).out_exact("dtype_out"),
    gather("aten::_reshape_copy(Tensor self, SymInt[] size) -> Tensor", reshape_copy).infer(views::reshape)
    .grad("self: grad.reshape(self.size())"),
    gather("aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", |a| copied(a, expand)).infer(views::expand)
        .out_exact("out")
        .grad("self: grad.sum_to_size(self.size())"),
    gather("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", |a| copied(a, transpose)).infer(views::transpose)
        .out_exact("int_out")
        .grad("self: grad.transpose(dim0, dim1)"),
    gather("aten::t_copy(Tensor self) -> Tensor", |a| copied(a, t)).infer(views::t).out_exact("out").grad("self: grad.t()"),
    gather("aten::permute_copy(Tensor self, int[] dims) -> Tensor", |a| copied(a, permute)).infer(views::permute)
        .out_exact("out")
        .grad("self: grad.movedim([i for i in range(len(dims))], dims)"),
    gather("aten::squeeze_copy(Tensor self) -> Tensor", |a| copied(a, squeeze)).infer(views::squeeze)
        .out_exact("out")
        .grad("self: grad.reshape(self.size())"),
    gather("aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor", |a| copied(a, squeeze_dims)).infer(views::squeeze)
        .out_exact("dim_out")
        .grad("self: grad.reshape(self.size())"),
    gather("aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", |a| copied(a, squeeze_dims)).infer(views::squeeze)
        .out_exact("dims_out")
        .grad("self: grad.reshape(self.size())"),
    gather("aten::unsqueeze_copy(Tensor self, int dim) -> Tensor", |a| copied(a, unsqueeze)).infer(views::unsqueeze)
        .out_exact("out")
        .grad("self: grad.squeeze(dim)"),
    gather("aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", |a| copied(a, select)).infer(views::select)
        .out_exact("int_out"),
    gather(
        "aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
        |a| copied(a, slice),
    ).infer(views::slice)
    .out_exact("Tensor_out"),
    gather(
        "aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        |a| copied(a, as_strided),
    ).infer(views::as_strided)
    .out_exact("out"),
    gather("aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", |a| copied(a, diagonal)).infer(trial::kernel)
        .out_exact("out"),
    gather("aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", |a| copied(a, unfold)).infer(trial::kernel)
        .out_exact("out"),
    gather("aten::alias_copy(Tensor self) -> Tensor", |a| copied(a, own)).infer(pointwise::same).out_exact("out").grad("self: grad"),
    gather("aten::detach_copy(Tensor self) -> Tensor", |a| copied(a, own)).infer(pointwise::same).facts(&[Fact::Detached]).out_exact("out"),
    gather("aten::lift_fresh_copy(Tensor self) -> Tensor", |a| copied(a, own)).infer(pointwise::same).out_exact("out").grad("self: grad"),
    gather("aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", |a| copied(a, narrow_of_copy)).infer(views::narrow)
        .out("out"),
    gather("aten::view_as_real_copy(Tensor self) -> Tensor", |a| one(view_as_real(a.tensor(0)?)?.copy()?)).out("out"),
    gather("aten::view_as_complex_copy(Tensor self) -> Tensor", |a| one(view_as_complex(a.tensor(0)?)?.copy()?))
        .out("out"),
    // Forms that change the tensor's own look.
    opaque(
        "aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
        |a| in_place(a, as_strided),
    ).facts(&[Fact::Reshapes]).infer(views::as_strided),
    opaque("aten::t_(Tensor(a!) self) -> Tensor(a!)", |a| in_place(a, t)).facts(&[Fact::Reshapes]).infer(views::t),
    opaque("aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", |a| in_place(a, transpose)).facts(&[Fact::Reshapes]).infer(views::transpose).aliases(&[Alias::new("swapdims_")]),
    opaque("aten::swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", |a| in_place(a, transpose)).facts(&[Fact::Reshapes]).infer(views::transpose).alias_of("transpose_"),
    opaque("aten::squeeze_(Tensor(a!) self) -> Tensor(a!)", |a| in_place(a, squeeze)).facts(&[Fact::Reshapes]).infer(views::squeeze),
    opaque("aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", |a| in_place(a, squeeze_dims)).facts(&[Fact::Reshapes]).infer(views::squeeze),
    opaque("aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", |a| in_place(a, squeeze_dims)).facts(&[Fact::Reshapes]).infer(views::squeeze),
    opaque("aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", |a| in_place(a, unsqueeze)).facts(&[Fact::Reshapes]).infer(views::unsqueeze),
    opaque(
        "aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        |a| resize(a, &a.ints(1)?),
    ).quantized(crate::dialects::Quantized::Own).facts(&[Fact::Reshapes]).infer(views::nothing),
    opaque(
        "aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        |a| resize(a, &a.tensor(1)?.sizes()),
    ).facts(&[Fact::Reshapes]).infer(views::nothing),
    opaque("aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", |a| {
        a.tensor(0)?.set_data(a.tensor(1)?);
        one(a.tensor(0)?.clone())
    }).quantized(crate::dialects::Quantized::Own).facts(&[Fact::Reshapes]).infer(views::nothing),
    opaque("aten::set_(Tensor(a!) self) -> Tensor(a!)", |a| {
        a.tensor(0)?.set_data(&Tensor::zeros(a.tensor(0)?.dtype(), &[0])?);
        one(a.tensor(0)?.clone())
    }).facts(&[Fact::Reshapes]).infer(views::nothing),
    opaque(
        "aten::set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
        set_strided,
    ).facts(&[Fact::Reshapes]).infer(views::nothing),
];

/// The tensor's own layout.
fn own(a: &Args<'_>) -> Result<Layout> {
    Ok(a.tensor(0)?.layout())
}

fn sizes_as(a: &Args<'_>) -> Result<Layout> {
    layout::view(&own(a)?, &a.ints(1)?)
}

fn expand(a: &Args<'_>) -> Result<Layout> {
    layout::expand(&own(a)?, &a.ints(1)?, a.tensor(0)?.dtype())
}

fn transpose(a: &Args<'_>) -> Result<Layout> {
    layout::transpose(&own(a)?, a.int(1)?, a.int(2)?)
}

fn t(a: &Args<'_>) -> Result<Layout> {
    let own = own(a)?;
    match own.rank() {
        0 | 1 => Ok(own),
        2 => layout::transpose(&own, 0, 1),
        n => Err(Diagnostic::runtime(format!(
            "{}() expects a tensor with <= 2 dimensions, but self is {n}D",
            bare(a).trim_end_matches("_copy")
        ))),
    }
}

fn matrix_t(a: &Args<'_>) -> Result<Layout> {
    let own = own(a)?;
    match own.rank() {
        0 => Ok(own),
        1 => Err(not_matrices("mT", 1)),
        _ => layout::transpose(&own, -2, -1),
    }
}

fn not_matrices(name: &str, rank: usize) -> Diagnostic {
    Diagnostic::runtime(match name {
        "H" => format!(
            "tensor.H is only supported on matrices (2-D tensors). Got {rank}-D tensor.{}",
            if rank > 2 { " For batches of matrices, consider using tensor.mH" } else { "" }
        ),
        _ => format!(
            "tensor.{name} is only supported on matrices or batches of matrices. Got {rank}-D tensor."
        ),
    })
}

/// Transposed and conjugated. Complex elements are conjugated in a copy: there is no lazy conjugation here.
fn adjoint(a: &Args<'_>, name: &str) -> Result<Tensor> {
    let tensor = a.tensor(0)?;
    match tensor.rank() {
        0 => conj(tensor),
        1 => Err(not_matrices(name, 1)),
        n if n > 2 && name == "H" => Err(not_matrices(name, n)),
        _ => conj(&tensor.look(|l| layout::transpose(l, -2, -1))?),
    }
}

/// A copy that lies as the tensor does: PyTorch only marks it as conjugated.
fn conj(tensor: &Tensor) -> Result<Tensor> {
    fn copy<T: Element>(tensor: &Tensor, flip: impl Fn(T) -> T) -> Result<Tensor> {
        let elements = tensor.elements::<T>()?.into_iter().map(flip).scratch()?;
        let strides = layout::dense_like(&tensor.layout()).strides;
        with_strides(Tensor::from_vec(&elements, &tensor.sizes())?, &strides)
    }
    match tensor.dtype() {
        DType::C64 => copy(tensor, |x: Complex<f32>| x.conj()),
        DType::C128 => copy(tensor, |x: Complex<f64>| x.conj()),
        _ => Ok(tensor.clone()),
    }
}

fn reverse(a: &Args<'_>) -> Result<Layout> {
    let own = own(a)?;
    let dims: Vec<usize> = (0..own.rank()).rev().collect();
    Ok(layout::reorder(&own, &dims))
}

fn permute(a: &Args<'_>) -> Result<Layout> {
    layout::permute(&own(a)?, &a.ints(1)?)
}

fn movedim(a: &Args<'_>) -> Result<Layout> {
    layout::movedim(&own(a)?, &a.ints(1)?, &a.ints(2)?)
}

fn squeeze(a: &Args<'_>) -> Result<Layout> {
    layout::squeeze(&own(a)?, None)
}

fn squeeze_dims(a: &Args<'_>) -> Result<Layout> {
    layout::squeeze(&own(a)?, Some(&a.ints(1)?))
}

fn unsqueeze(a: &Args<'_>) -> Result<Layout> {
    layout::unsqueeze(&own(a)?, a.int(1)?)
}

fn select(a: &Args<'_>) -> Result<Layout> {
    layout::select(&own(a)?, a.int(1)?, a.int(2)?)
}

fn slice(a: &Args<'_>) -> Result<Layout> {
    layout::slice(&own(a)?, a.int(1)?, a.opt_int(2)?, a.opt_int(3)?, a.int(4)?)
}

fn narrow(a: &Args<'_>) -> Result<Layout> {
    layout::narrow(&own(a)?, a.int(1)?, a.int(2)?, a.int(3)?)
}

/// As [`narrow`], with the refusals of the form that copies.
fn narrow_of_copy(a: &Args<'_>) -> Result<Layout> {
    let (own, dim, start, length) = (own(a)?, a.int(1)?, a.int(2)?, a.int(3)?);
    if dim >= own.rank() as i64 {
        return Err(Diagnostic::runtime(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error message be \
             improved?  If so, please report an enhancement request to PyTorch.)",
        ));
    }
    let size = own.sizes.get(crate::tensor::wrap_dim(dim, own.rank())?).copied().unwrap_or(1);
    if length < 0 {
        return Err(Diagnostic::runtime(format!(
            "start ({start}) + length ({length}) exceeds dimension size ({size})."
        )));
    }
    narrow(a)
}

fn narrow_tensor(a: &Args<'_>) -> Result<Layout> {
    let start = a.tensor(2)?;
    if start.rank() != 0 || !start.dtype().is_integral() {
        return Err(Diagnostic::runtime("start must be an 0-dim integral Tensor."));
    }
    layout::narrow(&own(a)?, a.int(1)?, start.item()?.to_i64(), a.int(3)?)
}

fn as_strided(a: &Args<'_>) -> Result<Layout> {
    as_strided_within(a.tensor(0)?, &a.ints(1)?, &a.ints(2)?, a.opt_int(3)?)
}

/// Another view of the memory of a tensor, which must hold it.
pub(super) fn as_strided_within(
    tensor: &Tensor,
    sizes: &[i64],
    strides: &[i64],
    offset: Option<i64>,
) -> Result<Layout> {
    let layout = layout::as_strided(&tensor.layout(), sizes, strides, offset)?;
    let (nbytes, itemsize) = (tensor.storage().nbytes(), tensor.dtype().size());
    layout.check_within(nbytes / itemsize).map_err(|_| {
        let reach: i128 =
            layout.sizes.iter().zip(&layout.strides).map(|(n, s)| (i128::from(*n) - 1) * i128::from(*s)).sum();
        Diagnostic::runtime(format!(
            "setStorage: sizes {:?}, strides {:?}, storage offset {}, and itemsize {itemsize} requiring a storage size \
             of {} are out of bounds for storage of size {nbytes}",
            layout.sizes.as_slice(),
            layout.strides.as_slice(),
            layout.offset,
            (reach + layout.offset as i128 + 1) * itemsize as i128
        ))
    })?;
    Ok(layout)
}

fn diagonal(a: &Args<'_>) -> Result<Layout> {
    layout::diagonal(&own(a)?, a.int(1)?, a.int(2)?, a.int(3)?)
}

fn unfold(a: &Args<'_>) -> Result<Layout> {
    layout::unfold(&own(a)?, a.int(1)?, a.int(2)?, a.int(3)?)
}

/// A view where strides allow it, else a copy; the tensor itself if nothing changes.
fn reshape(a: &Args<'_>, shape: &[i64]) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let sizes = layout::infer_size(shape, tensor.numel())?;
    one(tensor.reshaped(&sizes)?)
}

fn reshape_copy(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let sizes = layout::infer_size(&a.ints(1)?, tensor.numel())?;
    one(tensor.reshaped(&sizes)?.copy()?)
}

/// The op's name without its namespace, for messages.
fn bare(a: &Args<'_>) -> &'static str {
    a.op.name().as_str().trim_start_matches("aten::")
}

/// The same bytes as elements of another dtype; the last size changes with the size of an element.
fn bits_copied(a: &Args<'_>) -> Result<Outputs> {
    let view = bits_as(a)?;
    if view.is_quantized() {
        return Err(Diagnostic::runtime("Quantized copy only works with kFloat as source Tensor"));
    }
    one(view.copy()?)
}

fn bits_as(a: &Args<'_>) -> Result<Tensor> {
    let (tensor, dtype) = (a.tensor(0)?, a.dtype(1)?);
    let (from, to) = (tensor.dtype().size(), dtype.size());
    let own = tensor.layout();
    if from == to {
        return tensor.with_dtype_layout(dtype, own);
    }
    let what =
        format!("to view {} as {} (different element sizes)", tensor.dtype().type_name(), dtype.type_name());
    let (Some(size), Some(stride)) = (own.sizes.last().copied(), own.strides.last().copied()) else {
        return Err(Diagnostic::runtime(format!("self.dim() cannot be 0 {what}")));
    };
    if from < to && size % (to / from) as i64 != 0 {
        let ratio = to / from;
        return Err(Diagnostic::runtime(format!(
            "self.size(-1) must be divisible by {ratio} {what}, but got {size}"
        )));
    }
    if stride != 1 {
        return Err(Diagnostic::runtime(format!("self.stride(-1) must be 1 {what}, but got {stride}")));
    }
    let mut out = own;
    let last = out.rank() - 1;
    let bytes = out.offset.saturating_mul(from);
    if bytes % to != 0 {
        let (offset, ratio) = (out.offset, to / from);
        return Err(Diagnostic::runtime(format!(
            "self.storage_offset() must be divisible by {ratio} {what}, but got {offset}"
        )));
    }
    for d in 0..last {
        let bytes = out.strides[d].saturating_mul(from as i64);
        if bytes % to as i64 != 0 {
            let (stride, ratio) = (out.strides[d], to / from);
            return Err(Diagnostic::runtime(format!(
                "self.stride({d}) must be divisible by {ratio} {what}, but got {stride}"
            )));
        }
        out.strides[d] = bytes / to as i64;
    }
    out.sizes[last] = size.saturating_mul(from as i64) / to as i64;
    out.offset = bytes / to;
    tensor.with_dtype_layout(dtype, out)
}

/// A last dimension of two: real and imaginary parts.
fn view_as_real(tensor: &Tensor) -> Result<Tensor> {
    if !tensor.dtype().is_complex() {
        return Err(Diagnostic::raised("TypeError", "view_as_real is only supported for complex tensors"));
    }
    let mut out = tensor.layout();
    out.strides.iter_mut().for_each(|s| *s *= 2);
    out.sizes.push(2);
    out.strides.push(1);
    out.offset *= 2;
    tensor.with_dtype_layout(tensor.dtype().to_real(), out)
}

/// The last dimension, of two, as one complex number.
fn view_as_complex(tensor: &Tensor) -> Result<Tensor> {
    let dtype = match tensor.dtype() {
        DType::F32 => DType::C64,
        DType::F64 => DType::C128,
        DType::F16 => return Err(Diagnostic::unsupported("aten::view_as_complex of a Half tensor")),
        DType::C64 | DType::C128 => {
            return Err(Diagnostic::raised(
                "TypeError",
                "view_as_complex is not supported for complex tensors",
            ));
        }
        other => {
            return Err(Diagnostic::raised(
                "NotImplementedError",
                format!(
                    "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar \
                     type: {}",
                    other.type_name()
                ),
            ));
        }
    };
    let mut out = tensor.layout();
    let (size, stride) = match (out.sizes.pop(), out.strides.pop()) {
        (Some(size), Some(stride)) => (size, stride),
        _ => return Err(Diagnostic::runtime("Input tensor must have one or more dimensions")),
    };
    if size != 2 {
        return Err(Diagnostic::runtime("Tensor must have a last dimension of size 2"));
    }
    if stride != 1 {
        return Err(Diagnostic::runtime("Tensor must have a last dimension with stride 1"));
    }
    if out.strides.iter().any(|s| s % 2 != 0) {
        return Err(Diagnostic::runtime(
            "Tensor must have a stride divisible by 2 for all but last dimension",
        ));
    }
    if !out.offset.is_multiple_of(2) {
        return Err(Diagnostic::runtime("Tensor must have a storage_offset divisible by 2"));
    }
    out.strides.iter_mut().for_each(|s| *s /= 2);
    out.offset /= 2;
    tensor.with_dtype_layout(dtype, out)
}

/// Other sizes, dense; elements stay where they are, new ones are zero.
fn resize(a: &Args<'_>, sizes: &[i64]) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    if tensor.sizes().as_slice() == sizes {
        return one(tensor.clone());
    }
    tensor.give_sizes(sizes)?;
    one(tensor.clone())
}

/// `set_` with sizes: the source's storage through another layout.
fn set_strided(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, source) = (a.tensor(0)?, a.tensor(1)?);
    let sizes = a.ints(3)?;
    let mut strides = a.ints(4)?;
    if strides.is_empty() {
        strides = crate::tensor::contiguous_strides(&sizes).to_vec();
    }
    let layout = layout::as_strided(&source.layout(), &sizes, &strides, Some(a.int(2)?))?;
    tensor.set_data(&source.with_layout(layout)?);
    one(tensor.clone())
}
