//! Copies and conversions: `to`, `clone`, `contiguous`, `copy_`, `fill_`; views of complex numbers; the dtype tests.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, pointwise, views};
use crate::dialects::{Args, Fact, OpDef, Outputs, composite, one, opaque, view};
use crate::dispatch_dtype;
use crate::tensor::cast_row;
use crate::tensor::overlap::refuse_partial_overlap;
use crate::tensor::pointwise::{is_dense, map_rows, map1};
use crate::tensor::{
    DType, Device, Dims, Element, Layout, Scalar, Storage, Tensor, broadcast_sizes, channels_last_strides,
    check_fill, contiguous_strides,
};

/// What conversions are besides views.
const MAY_CONVERT: &[Fact] = &[Fact::MayConvert];

/// The rows.
pub static OPS: &[OpDef] = &[
    view(
        "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, \
         MemoryFormat? memory_format=None) -> Tensor(a)",
        |a| to(a, a.opt_device(1)?, a.opt_dtype(2)?, a.bool(4)?, a.opt_int(5)?),
    ).facts(MAY_CONVERT).infer(views::to),
    view(
        "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? \
         memory_format=None) -> Tensor(a)",
        |a| to(a, None, a.opt_dtype(1)?, a.bool(3)?, a.opt_int(4)?),
    ).facts(MAY_CONVERT).infer(views::to),
    view(
        "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? \
         memory_format=None) -> Tensor(a)",
        |a| to(a, Some(a.tensor(1)?.device()), Some(a.tensor(1)?.dtype()), a.bool(3)?, a.opt_int(4)?),
    ).facts(MAY_CONVERT).infer(views::to_other),
    view(
        "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
        |a| to(a, a.opt_device(3)?, a.opt_dtype(1)?, a.bool(6)?, a.opt_int(7)?),
    ).facts(MAY_CONVERT).infer(views::to),
    view(
        "aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) \
         -> Tensor(b|a)",
        |a| to(a, a.opt_device(1)?, a.opt_dtype(2)?, a.bool(4)?, None),
    ).facts(MAY_CONVERT).infer(views::to),
    view(
        "aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
        |a| to(a, None, a.opt_dtype(1)?, a.bool(3)?, None),
    ).facts(MAY_CONVERT).infer(views::to),
    view(
        "aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
        |a| to(a, None, None, a.bool(2)?, None),
    ).facts(MAY_CONVERT).infer(views::to_other),
    opaque("aten::type_as(Tensor self, Tensor other) -> Tensor", |a| {
        to(a, Some(a.tensor(1)?.device()), Some(a.tensor(1)?.dtype()), false, None)
    }).quantized(crate::dialects::Quantized::Own)
    .hidden_marks("aten::type_as(Tensor(a) self, Tensor other) -> Tensor(a)")
    .facts(MAY_CONVERT)
    .infer(views::to_other),
    opaque(
        "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
        |a| to(a, a.opt_device(3)?, a.opt_dtype(1)?, true, a.opt_int(6)?),
    ).infer(views::to),
    view("aten::cpu(Tensor(a) self) -> Tensor(b|a)", |a| to(a, Some(Device::CPU), None, false, None)),
    view("aten::cuda(Tensor(a) self) -> Tensor(b|a)", |a| to(a, Some(Device::cuda(0)), None, false, None)),
    opaque("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", |a| {
        one(copy_as(a.tensor(0)?, None, a.opt_int(1)?)?)
    }).rare("u8").quantized(crate::dialects::Quantized::Integers).facts(&[Fact::KeepsLayout]).infer(pointwise::like_first)
    .grad("self: grad")
    .out_exact("out"),
    view("aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", contiguous).quantized(crate::dialects::Quantized::Integers).facts(&[Fact::MayCopy]).infer(views::contiguous)
        .grad("self: grad"),
    opaque("aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", copy_).rare("u8").quantized_kernel(crate::dialects::quantized::moves::copy),
    opaque("aten::copy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", copy_).rare("u8").quantized_kernel(crate::dialects::quantized::moves::copy),
    opaque("aten::copy_.int(Tensor(a!) self, int other) -> Tensor(a!)", fill_number).rare("u8"),
    opaque("aten::copy_.float(Tensor(a!) self, float other) -> Tensor(a!)", fill_number).rare("u8"),
    opaque("aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", |a| {
        let result = copy_as(a.tensor(0)?, None, None)?;
        checked_copy(&result, a.tensor(1)?)?;
        one(result)
    })
    .quantized_kernel(crate::dialects::quantized::moves::copied)
    .out_exact("out"),
    opaque("aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", fill_number).rare("u8").quantized(crate::dialects::Quantized::IntegersAndNumber(1)),
    opaque("aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", |a| {
        let value = fill_value(a)?;
        a.tensor(0)?.fill(value)?;
        one(a.tensor(0)?.clone())
    }).rare("u8").quantized(crate::dialects::Quantized::IntegersAndNumber(1)),
    opaque("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor", |a| filled(a, a.scalar(1)?)).rare("u8").quantized(crate::dialects::Quantized::IntegersAndNumber(1)).infer(joins::same_sizes)
        .out_exact("Scalar_out"),
    opaque("aten::fill.Tensor(Tensor self, Tensor value) -> Tensor", |a| filled(a, fill_value(a)?)).rare("u8").quantized(crate::dialects::Quantized::IntegersAndNumber(1)).infer(joins::same_sizes)
        .out_exact("Tensor_out"),
    opaque("aten::zero_(Tensor(a!) self) -> Tensor(a!)", |a| {
        a.tensor(0)?.fill(Scalar::Int(0))?;
        one(a.tensor(0)?.clone())
    }).rare("u8"),
    opaque("aten::zero(Tensor self) -> Tensor", |a| filled(a, Scalar::Int(0))).out_exact("out"),
    view("aten::detach(Tensor(a) self) -> Tensor(a)", |a| one(a.tensor(0)?.detach())).infer(pointwise::same)
        .facts(&[Fact::Detached]),
    opaque("aten::detach_(Tensor(a!) self) -> Tensor(a!)", |a| {
        let tensor = a.tensor(0)?;
        tensor.set_requires_grad(false)?;
        tensor.set_grad_node(None);
        one(tensor.clone())
    }).quantized(crate::dialects::Quantized::Own).infer(views::nothing)
    .facts(&[Fact::Detached]),
    view("aten::alias(Tensor(a) self) -> Tensor(a)", |a| one(a.tensor(0)?.detach())).infer(pointwise::same).grad("self: grad"),
    view("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", same).infer(pointwise::same),
    view("aten::positive(Tensor(a) self) -> Tensor(a)", positive).infer(pointwise::same),
    view("aten::real(Tensor(a) self) -> Tensor(a)", |a| {
        if a.tensor(0)?.dtype().is_complex() { component(a.tensor(0)?, 0) } else { same(a) }
    }),
    view("aten::imag(Tensor(a) self) -> Tensor(a)", |a| {
        if a.tensor(0)?.dtype().is_complex() {
            return component(a.tensor(0)?, 1);
        }
        Err(Diagnostic::raised("TypeError", "imag is not implemented for tensors with non-complex dtypes."))
    }),
    view("aten::conj(Tensor(a) self) -> Tensor(a)", conj)
        .grad("self: grad.conj()")
        .doc("The conjugate; of complex tensors a copy, where PyTorch marks a view"),
    view("aten::_conj(Tensor(a) self) -> Tensor(a)", conj).grad("self: grad.conj()"),
    view("aten::resolve_conj(Tensor(a) self) -> Tensor(a)", same).infer(pointwise::same).grad("self: grad"),
    view("aten::resolve_neg(Tensor(a) self) -> Tensor(a)", same).infer(pointwise::same).grad("self: grad"),
    opaque("aten::is_floating_point(Tensor self) -> bool", |a| {
        let dtype = a.tensor(0)?.dtype();
        one(dtype.is_floating() || dtype.is_float8())
    }).quantized(crate::dialects::Quantized::Own).infer(views::is_floating_point).facts(&[crate::dialects::Fact::Metadata]),
    opaque("aten::is_complex(Tensor self) -> bool", |a| one(a.tensor(0)?.dtype().is_complex())).quantized(crate::dialects::Quantized::Own).infer(views::is_complex).facts(&[crate::dialects::Fact::Metadata]),
    opaque("aten::is_signed(Tensor self) -> bool", |a| one(a.tensor(0)?.dtype().is_signed())).quantized(crate::dialects::Quantized::Own).facts(&[crate::dialects::Fact::Metadata]),
    view(
        "aten::_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a)",
        |a| autocast(a, &[DType::F16, DType::BF16], |_| Ok(Some(DType::F32))),
    )
    .quantized(crate::dialects::Quantized::Own)
    .doc("float32 of a tensor in half precision, where the device's flag says so; other tensors themselves"),
    view(
        "aten::_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype, \
         ScalarType cpu_dtype) -> Tensor(a)",
        |a| autocast(a, &[DType::F32], |a| a.opt_dtype(4)),
    )
    .quantized(crate::dialects::Quantized::Own)
    .doc("float32 in the dtype of the tensor's device, where the device's flag says so; other tensors themselves"),
    composite(
        "aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
        LDEXP,
    )
    .out("out"),
    composite(
        "aten::ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    if not self.is_floating_point() or other.is_floating_point() or other.is_complex():
        return self.mul_(torch.pow(2.0, other))
    return self.copy_(torch.ldexp(self, other))
",
    ),
    composite(
        "aten::_cast_Byte(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Byte(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.uint8)\n",
    )
    .hidden_marks("aten::_cast_Byte(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
    composite(
        "aten::_cast_Char(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Char(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.int8)\n",
    )
    .hidden_marks("aten::_cast_Char(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
    composite(
        "aten::_cast_Short(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Short(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.int16)\n",
    )
    .hidden_marks("aten::_cast_Short(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
    composite(
        "aten::_cast_Int(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Int(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.int32)\n",
    )
    .hidden_marks("aten::_cast_Int(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
    composite(
        "aten::_cast_Long(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Long(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.int64)\n",
    )
    .hidden_marks("aten::_cast_Long(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
    composite(
        "aten::_cast_Half(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Half(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.float16)\n",
    )
    .hidden_marks("aten::_cast_Half(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
    composite(
        "aten::_cast_Float(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Float(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.float32)\n",
    )
    .hidden_marks("aten::_cast_Float(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
    composite(
        "aten::_cast_Double(Tensor self, bool non_blocking=False) -> Tensor",
        "def _cast_Double(self: Tensor, non_blocking: bool=False) -> Tensor:\n    return self.to(torch.float64)\n",
    )
    .hidden_marks("aten::_cast_Double(Tensor(a) self, bool non_blocking=False) -> Tensor(a)"),
];

/// PyTorch's codes of memory formats.
const PRESERVE: i64 = 1;
const CHANNELS_LAST: i64 = 2;
const CHANNELS_LAST_3D: i64 = 3;

/// Whole exponents are C ints. What is exact as a float64 is rounded once; a float64 is scaled in three steps, as one
/// factor would overflow.
const LDEXP: &str = include_str!("composites/ldexp.py");

fn same(args: &Args<'_>) -> Result<Outputs> {
    one(args.tensor(0)?.clone())
}

/// Converts where something differs; otherwise the tensor itself, unless a copy is demanded.
/// The tensor in another dtype, if it has one of `from`. All tensors that ops see are on the CPU: the flag and dtype of
/// other devices mean nothing.
fn autocast(
    args: &Args<'_>,
    from: &[DType],
    wanted: fn(&Args<'_>) -> Result<Option<DType>>,
) -> Result<Outputs> {
    match args.bool(2)? && from.contains(&args.tensor(0)?.dtype()) {
        true => to(args, None, wanted(args)?, false, None),
        false => same(args),
    }
}

fn to(
    args: &Args<'_>,
    device: Option<Device>,
    dtype: Option<DType>,
    copy: bool,
    format: Option<i64>,
) -> Result<Outputs> {
    let tensor = args.tensor(0)?;
    if let Some(device) = device
        && !device.is_cpu()
    {
        return Err(Diagnostic::unsupported(format!("{} to the device {device}", args.op.name())));
    }
    if tensor.is_quantized() {
        crate::dialects::quantized::moves::same_dtype(tensor, dtype)?;
    }
    let dtype = dtype.unwrap_or(tensor.dtype());
    let format = format.unwrap_or(PRESERVE);
    let fits = format == PRESERVE || suggests_format(&tensor.layout(), format)?;
    if !copy && dtype == tensor.dtype() && fits {
        return one(tensor.clone());
    }
    one(copy_as(tensor, Some(dtype), Some(format))?)
}

fn contiguous(args: &Args<'_>) -> Result<Outputs> {
    let (tensor, format) = (args.tensor(0)?, args.int(1)?);
    if format == PRESERVE {
        return Err(Diagnostic::runtime("preserve memory format is unsupported by the contiguous operator"));
    }
    if has_format(&tensor.layout(), format)? {
        return one(tensor.clone());
    }
    one(copy_as(tensor, None, Some(format))?)
}

/// `result` with its channels last in memory where the strides of all the images `like` it suggest that: so PyTorch
/// lays out the results of convolutions, pooling and the like.
pub fn in_format_of(result: Tensor, like: &[&Tensor]) -> Result<Tensor> {
    let rank = result.rank();
    let suggested = |image: &&Tensor| image.rank() == rank && image.layout().suggests_channels_last();
    if like.is_empty() || !like.iter().all(suggested) || lies_channels_last(&result) {
        return Ok(result);
    }
    channels_last(&result)
}

/// Whether a tensor has the very strides that [`channels_last`] gives, those of dimensions of size 1 too.
fn lies_channels_last(tensor: &Tensor) -> bool {
    tensor.with_meta(|meta| {
        meta.layout.rank() >= 4
            && meta.layout.offset == 0
            && meta.layout.strides == channels_last_strides(&meta.layout.sizes)
    })
}

/// A copy of a tensor with its very strides and offset, gaps included; one whose elements share memory becomes dense.
pub fn copy_keeping_strides(tensor: &Tensor) -> Result<Tensor> {
    let layout = tensor.layout();
    if layout.has_internal_overlap() {
        return copy_as(tensor, None, None);
    }
    let reach =
        |d: usize| layout.sizes[d].saturating_sub(1).saturating_mul(layout.strides[d]).max(0) as usize;
    let length = match layout.numel() {
        0 => 0,
        _ => (0..layout.rank()).fold(layout.offset.saturating_add(1), |n, d| n.saturating_add(reach(d))),
    };
    let storage = Storage::zeroed(length.saturating_mul(tensor.dtype().size()))?;
    let result = Tensor::from_storage(storage, tensor.dtype(), layout)?;
    result.copy_from(tensor)?;
    Ok(result)
}

/// A tensor of rank 4 or 5 with its channels last in memory; one of another rank as it is.
pub fn channels_last(tensor: &Tensor) -> Result<Tensor> {
    match tensor.rank() {
        4 => copy_as(tensor, None, Some(CHANNELS_LAST)),
        5 => copy_as(tensor, None, Some(CHANNELS_LAST_3D)),
        _ => Ok(tensor.clone()),
    }
}

/// A copy in new memory, converted, in a memory format (None: preserved).
pub(super) fn copy_as(tensor: &Tensor, dtype: Option<DType>, format: Option<i64>) -> Result<Tensor> {
    if let Some(quantizer) = tensor.quantizer() {
        return Tensor::quantized(&copy_as(&tensor.integers(), None, format)?, tensor.dtype(), quantizer);
    }
    let dtype = dtype.unwrap_or(tensor.dtype());
    let layout = tensor.layout();
    match format.unwrap_or(PRESERVE) {
        PRESERVE => {
            let result = converted(tensor, dtype)?;
            if is_dense(&layout) && layout.strides != result.strides() {
                // Dense tensors keep their strides, those of dimensions of size 1 too: the order in memory is the same.
                return result.with_layout(Layout { offset: 0, ..layout });
            }
            Ok(result)
        }
        format => {
            let strides = format_strides(&layout.sizes, format)?;
            let storage = Storage::for_writing(layout.numel().saturating_mul(dtype.size()))?;
            let result = Tensor::from_storage(storage, dtype, Layout::strided(&layout.sizes, &strides, 0)?)?;
            result.copy_from(tensor)?;
            Ok(result)
        }
    }
}

/// Converts every element, in new memory laid out as elementwise results are.
fn converted(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    if dtype == tensor.dtype() {
        return dispatch_dtype!(dtype, T => map1::<T, T>(tensor, |x| x));
    }
    dispatch_dtype!(tensor.dtype(), S => convert_from::<S>(tensor, dtype))
}

fn convert_from<S: Element>(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    dispatch_dtype!(dtype, T => map_rows::<S>(tensor, dtype, &|row, out| cast_row::<S, T>(row, bytemuck::cast_slice_mut(out))))
}

/// Strides of a memory format: 0 row-major, 2 channels last, 3 channels last in three dimensions.
fn format_strides(sizes: &[i64], format: i64) -> Result<Dims> {
    let (rank, name) = match format {
        0 => return Ok(contiguous_strides(sizes)),
        2 => (4, "channels_last"),
        3 => (5, "channels_last_3d"),
        _ => return Err(Diagnostic::runtime(format!("unknown memory format {format}"))),
    };
    if sizes.len() != rank {
        return Err(Diagnostic::runtime(format!("required rank {rank} tensor to use {name} format")));
    }
    let mut strides = Dims::from_elem(1, rank);
    let mut step = 1i64;
    for dim in std::iter::once(1).chain((2..rank).rev()).chain([0]) {
        strides[dim] = step;
        step = step.saturating_mul(sizes[dim].max(1));
    }
    Ok(strides)
}

/// Whether PyTorch takes a layout for one of a memory format; whatever is not channels last counts as row-major.
fn suggests_format(layout: &Layout, format: i64) -> Result<bool> {
    format_strides(&layout.sizes, format)?;
    Ok(layout.suggests_channels_last() == (format != 0))
}

/// Whether a layout is in a memory format; dimensions of size 1 may have any stride.
fn has_format(layout: &Layout, format: i64) -> Result<bool> {
    let strides = format_strides(&layout.sizes, format)?;
    let dims = layout.sizes.iter().zip(layout.strides.iter().zip(&strides));
    Ok(layout.numel() == 0 || dims.into_iter().all(|(size, (has, wants))| *size == 1 || has == wants))
}

fn copy_(args: &Args<'_>) -> Result<Outputs> {
    checked_copy(args.tensor(0)?, args.tensor(1)?)?;
    same(args)
}

fn checked_copy(target: &Tensor, source: &Tensor) -> Result<()> {
    let (to, from) = (target.sizes(), source.sizes());
    let both = broadcast_sizes(&to, &from)?;
    if both != to {
        return Err(Diagnostic::runtime(format!(
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            to.as_slice(),
            both.as_slice()
        )));
    }
    target.layout().refuse_overlap()?;
    refuse_partial_overlap(&target.snapshot(), &source.snapshot())?;
    target.copy_from(source)
}

fn fill_number(args: &Args<'_>) -> Result<Outputs> {
    let tensor = args.tensor(0)?;
    let value = args.scalar(1)?;
    check_fill(value, tensor.dtype())?;
    tensor.fill(value)?;
    same(args)
}

fn fill_value(args: &Args<'_>) -> Result<Scalar> {
    let value = args.tensor(1)?;
    if value.rank() != 0 {
        return Err(Diagnostic::runtime(format!(
            "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
            value.rank()
        )));
    }
    value.item()
}

fn filled(args: &Args<'_>, value: Scalar) -> Result<Outputs> {
    let result = copy_as(args.tensor(0)?, None, None)?;
    check_fill(value, result.dtype())?;
    result.fill(value)?;
    one(result)
}

fn positive(args: &Args<'_>) -> Result<Outputs> {
    if args.tensor(0)?.dtype() == DType::Bool {
        return Err(Diagnostic::raised(
            "NotImplementedError",
            "The `+` operator, on a bool tensor is not supported.",
        ));
    }
    same(args)
}

/// The real (0) or imaginary (1) parts of a complex tensor as a view.
fn component(tensor: &Tensor, part: usize) -> Result<Outputs> {
    let mut layout = tensor.layout();
    layout.strides.iter_mut().for_each(|stride| *stride = stride.saturating_mul(2));
    layout.offset = layout.offset.saturating_mul(2).saturating_add(part);
    one(tensor.with_dtype_layout(tensor.dtype().to_real(), layout)?)
}

fn conj(args: &Args<'_>) -> Result<Outputs> {
    let tensor = args.tensor(0)?;
    match tensor.dtype() {
        DType::C64 => conjugate(tensor, map1::<num_complex::Complex<f32>, _>(tensor, |z| z.conj())?),
        DType::C128 => conjugate(tensor, map1::<num_complex::Complex64, _>(tensor, |z| z.conj())?),
        _ => same(args),
    }
}

/// The conjugate elements in memory of their own, with the strides of the tensor, as PyTorch's are a view of it.
fn conjugate(tensor: &Tensor, dense: Tensor) -> Result<Outputs> {
    let layout = tensor.layout();
    if layout.strides == dense.strides() || layout.has_internal_overlap() {
        return one(dense);
    }
    let result = copy_keeping_strides(tensor)?;
    result.copy_from(&dense)?;
    one(result)
}
