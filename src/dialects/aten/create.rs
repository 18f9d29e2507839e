//! Tensors from sizes and numbers. Memory that PyTorch leaves undefined (`empty`) is zero here, so that
//! results repeat.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, trial};
use crate::dialects::{Args, Fact, OpDef, Outputs, create, one};
use crate::ir::{Type, TypeKind};
use crate::kernels::create::fill::{full_checked, strided};
use crate::kernels::create::range;
use crate::kernels::create::range::Shape;
use crate::resources::Collect;
use crate::tensor::{DType, Scalar, Tensor, check_fill, view};
use crate::value::{List, Value};

/// Facts of ops whose results are made like their first operand.
pub(super) const LIKE: &[Fact] = &[Fact::LikeFirst];

/// The rows.
pub static OPS: &[OpDef] = &[
    create(
        "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| filled(a, 0, 1, Scalar::Int(0)),
    ).infer(joins::create),
    create("aten::zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        refill(a, 0, 1, Scalar::Int(0))
    }),
    create(
        "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| filled(a, 0, 1, Scalar::Int(1)),
    ).infer(joins::create),
    create("aten::ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        refill(a, 0, 1, Scalar::Int(1))
    }),
    create(
        "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        empty,
    ).infer(joins::create),
    create(
        "aten::empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        |a| refill(a, 0, 2, Scalar::Int(0)),
    ),
    create(
        "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(strided(&a.ints(0)?, &a.ints(1)?, dtype_or(a, 2, DType::F32)?)?),
    ),
    create(
        "aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        empty_permuted,
    ),
    create(
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        full,
    ).infer(joins::full),
    create("aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        refill(a, 0, 2, a.scalar(1)?)
    }),
    create(
        "aten::_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| filled(a, 0, 1, Scalar::Int(0)),
    ),
    create(
        "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |a| like(a, 1, Scalar::Int(0)),
    ).facts(LIKE).infer(joins::like),
    create(
        "aten::zeros_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        |a| refill_like(a, 2, Scalar::Int(0)),
    ),
    create(
        "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |a| like(a, 1, Scalar::Int(1)),
    ).facts(LIKE).infer(joins::like),
    create(
        "aten::ones_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        |a| refill_like(a, 2, Scalar::Int(1)),
    ),
    create(
        "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |a| like(a, 1, Scalar::Int(0)),
    ).quantized(crate::dialects::Quantized::Integers).facts(LIKE).infer(joins::like),
    create(
        "aten::empty_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        |a| refill_like(a, 2, Scalar::Int(0)),
    ),
    create(
        "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |a| like(a, 2, a.scalar(1)?),
    ).quantized_kernel(crate::dialects::quantized::moves::full_like).facts(LIKE).infer(joins::like),
    create(
        "aten::full_like.out(Tensor self, Scalar fill_value, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        |a| refill_like(a, 3, a.scalar(1)?),
    ),
    create(
        "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| new(a, 2, Scalar::Int(0)),
    ).facts(LIKE).infer(joins::new),
    create("aten::new_zeros.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        refill(a, 1, 2, Scalar::Int(0))
    }),
    create(
        "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| new(a, 2, Scalar::Int(1)),
    ).facts(LIKE).infer(joins::new),
    create("aten::new_ones.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        refill(a, 1, 2, Scalar::Int(1))
    }),
    create(
        "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| new(a, 2, Scalar::Int(0)),
    ).facts(LIKE).infer(joins::new),
    create("aten::new_empty.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        refill(a, 1, 2, Scalar::Int(0))
    }),
    create(
        "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| new(a, 3, a.scalar(2)?),
    ).facts(LIKE).infer(joins::new),
    create(
        "aten::new_full.out(Tensor self, SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)",
        |a| refill(a, 1, 3, a.scalar(2)?),
    ),
    create(
        "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(strided(&a.ints(1)?, &a.ints(2)?, dtype_or(a, 3, a.tensor(0)?.dtype())?)?),
    ).facts(LIKE),
    create(
        "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(range::arange(Scalar::Int(0), a.scalar(0)?, Scalar::Int(1), asked(a, 1)?)?),
    ).infer(joins::arange),
    create(
        "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(range::arange(a.scalar(0)?, a.scalar(1)?, Scalar::Int(1), asked(a, 2)?)?),
    ).infer(joins::arange),
    create(
        "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(range::arange(a.scalar(0)?, a.scalar(1)?, a.scalar(2)?, asked(a, 3)?)?),
    ).infer(joins::arange),
    create(
        "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
        |a| range_out(a, a.scalar(0)?, a.scalar(1)?, a.scalar(2)?, 3),
    ),
    create("aten::arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        range_out(a, Scalar::Int(0), a.scalar(0)?, Scalar::Int(1), 1)
    }),
    create(
        "aten::range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(range::closed(a.scalar(0)?, a.scalar(1)?, a.scalar(2)?, dtype_or(a, 3, DType::F32)?)?),
    ),
    create(
        "aten::range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(range::closed(a.scalar(0)?, a.scalar(1)?, Scalar::Int(1), dtype_or(a, 2, DType::F32)?)?),
    ),
    create(
        "aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 3, None),
    ).infer(trial::kernel),
    create(
        "aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 3, None),
    ).infer(trial::kernel),
    create(
        "aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 3, None),
    ).infer(trial::kernel),
    create(
        "aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 3, None),
    ).infer(trial::kernel),
    create(
        "aten::linspace.Tensor_Tensor_out(Tensor start, Tensor end, int steps, *, Tensor(a!) out) -> Tensor(a!)",
        |a| spaced_out(a, 3, None),
    ),
    create(
        "aten::linspace.Tensor_Scalar_out(Tensor start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)",
        |a| spaced_out(a, 3, None),
    ),
    create(
        "aten::linspace.Scalar_Tensor_out(Scalar start, Tensor end, int steps, *, Tensor(a!) out) -> Tensor(a!)",
        |a| spaced_out(a, 3, None),
    ),
    create("aten::linspace.out(Scalar start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        spaced_out(a, 3, None)
    }),
    create(
        "aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 4, Some(a.float(3)?)),
    ).infer(trial::kernel),
    create(
        "aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 4, Some(a.float(3)?)),
    ).infer(trial::kernel),
    create(
        "aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 4, Some(a.float(3)?)),
    ).infer(trial::kernel),
    create(
        "aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| spaced(a, 4, Some(a.float(3)?)),
    ).infer(trial::kernel),
    create(
        "aten::logspace.Tensor_Tensor_out(Tensor start, Tensor end, int steps, float base=10., *, Tensor(a!) out) -> Tensor(a!)",
        |a| spaced_out(a, 4, Some(a.float(3)?)),
    ),
    create(
        "aten::logspace.Tensor_Scalar_out(Tensor start, Scalar end, int steps, float base=10., *, Tensor(a!) out) -> Tensor(a!)",
        |a| spaced_out(a, 4, Some(a.float(3)?)),
    ),
    create(
        "aten::logspace.Scalar_Tensor_out(Scalar start, Tensor end, int steps, float base=10., *, Tensor(a!) out) -> Tensor(a!)",
        |a| spaced_out(a, 4, Some(a.float(3)?)),
    ),
    create(
        "aten::logspace.out(Scalar start, Scalar end, int steps, float base=10., *, Tensor(a!) out) -> Tensor(a!)",
        |a| spaced_out(a, 4, Some(a.float(3)?)),
    ),
    create(
        "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(eye(a.int(0)?, a.int(0)?, dtype_or(a, 1, DType::F32)?)?),
    ),
    create(
        "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| one(eye(a.int(0)?, a.int(1)?, dtype_or(a, 2, DType::F32)?)?),
    ),
    create("aten::eye.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        eye_out(a, a.int(0)?, a.int(0)?, 1)
    }),
    create("aten::eye.m_out(SymInt n, SymInt m, *, Tensor(a!) out) -> Tensor(a!)", |a| {
        eye_out(a, a.int(0)?, a.int(1)?, 2)
    }),
    create(
        "aten::tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
        tensor,
    ),
    create(
        "aten::tensor.float(float t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
        tensor,
    ),
    create(
        "aten::tensor.int(int t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
        tensor,
    ),
    create(
        "aten::tensor.complex(complex t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
        tensor,
    ),
    create(
        "aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
        tensor,
    ),
    create("aten::as_tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None) -> Tensor", tensor),
    create(
        "aten::as_tensor.float(float t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        tensor,
    ),
    create("aten::as_tensor.int(int t, *, ScalarType? dtype=None, Device? device=None) -> Tensor", tensor),
    create(
        "aten::as_tensor.complex(complex t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        tensor,
    ),
    create(
        "aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a)",
        as_tensor,
    ),
    create(
        "aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        tensor,
    ),
    create(
        "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        scalar_tensor,
    )
    .facts(&[crate::dialects::Fact::WrapsNumber]),
    create(
        "aten::hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 1, Shape::Hann),
    ),
    create(
        "aten::hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 2, Shape::Hann),
    ),
    create(
        "aten::bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 1, Shape::Bartlett),
    ),
    create(
        "aten::bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 2, Shape::Bartlett),
    ),
    create(
        "aten::blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 1, Shape::Blackman),
    ),
    create(
        "aten::blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 2, Shape::Blackman),
    ),
    create(
        "aten::hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 1, Shape::Hamming(0.54, 0.46)),
    ),
    create(
        "aten::hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 2, Shape::Hamming(0.54, 0.46)),
    ),
    create(
        "aten::hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 3, Shape::Hamming(a.float(2)?, 0.46)),
    ),
    create(
        "aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 4, Shape::Hamming(a.float(2)?, a.float(3)?)),
    ),
    create(
        "aten::kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 1, Shape::Kaiser(12.0)),
    ),
    create(
        "aten::kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 2, Shape::Kaiser(12.0)),
    ),
    create(
        "aten::kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |a| window(a, 3, Shape::Kaiser(a.float(2)?)),
    ),
];

/// The dtype asked for at argument `n`; layout, device and pinning follow it and must be what there is.
pub fn asked(a: &Args<'_>, n: usize) -> Result<Option<DType>> {
    if let Some(layout) = a.opt_int(n + 1)?
        && layout != 0
    {
        return Err(Diagnostic::unsupported(format!("{} with layout code {layout}", a.op.name())));
    }
    on_cpu(a, n + 2)?;
    a.opt_dtype(n)
}

/// Refuses any device but the host.
fn on_cpu(a: &Args<'_>, n: usize) -> Result<()> {
    match a.opt_device(n)? {
        Some(device) if !device.is_cpu() => {
            Err(Diagnostic::unsupported(format!("{} on device {device}", a.op.name())))
        }
        _ => Ok(()),
    }
}

fn dtype_or(a: &Args<'_>, n: usize, default: DType) -> Result<DType> {
    Ok(asked(a, n)?.unwrap_or(default))
}

/// Sizes of a new tensor, with the op's own message for a negative one.
fn sizes(a: &Args<'_>, n: usize) -> Result<Vec<i64>> {
    let sizes = a.ints(n)?;
    match sizes.iter().find(|s| **s < 0) {
        Some(_) if a.op.name() == "aten::zeros" => {
            Err(Diagnostic::runtime("zeros: Dimension size must be non-negative."))
        }
        Some(size) => Err(Diagnostic::runtime(format!(
            "Trying to create tensor with negative dimension {size}: {sizes:?}"
        ))),
        None => Ok(sizes),
    }
}

fn filled(a: &Args<'_>, size: usize, options: usize, value: Scalar) -> Result<Outputs> {
    one(Tensor::full(dtype_or(a, options, DType::F32)?, &sizes(a, size)?, value)?)
}

/// The `out=` forms: gives `out` the sizes and fills it.
fn refill(a: &Args<'_>, size: usize, out: usize, value: Scalar) -> Result<Outputs> {
    refill_sizes(a.tensor(out)?, &sizes(a, size)?, value)
}

/// The `out=` forms of `*_like`.
fn refill_like(a: &Args<'_>, out: usize, value: Scalar) -> Result<Outputs> {
    refill_sizes(a.tensor(out)?, &a.tensor(0)?.sizes(), value)
}

fn refill_sizes(out: &Tensor, sizes: &[i64], value: Scalar) -> Result<Outputs> {
    check_fill(value, out.dtype())?;
    out.give_sizes(sizes)?;
    out.fill(value)?;
    one(out.clone())
}

fn empty(a: &Args<'_>) -> Result<Outputs> {
    let (dtype, sizes) = (dtype_or(a, 1, DType::F32)?, sizes(a, 0)?);
    let dense = Tensor::zeros(dtype, &sizes)?;
    match a.opt_int(5)? {
        Some(format @ (2 | 3)) => {
            let layout = view::in_format(&dense.layout(), format)?;
            one(strided(&layout.sizes, &layout.strides, dtype)?)
        }
        _ => one(dense),
    }
}

fn empty_permuted(a: &Args<'_>) -> Result<Outputs> {
    let (sizes, order) = (sizes(a, 0)?, a.ints(1)?);
    if order.len() != sizes.len() {
        return Err(Diagnostic::runtime(format!(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {} is not \
             equal to len(physical_layout) = {}",
            sizes.len(),
            order.len()
        )));
    }
    let mut seen = vec![false; sizes.len()];
    for (at, d) in order.iter().enumerate() {
        match usize::try_from(*d).ok().and_then(|d| seen.get_mut(d)) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(Diagnostic::runtime("Duplicate dim not allowed")),
            None => {
                return Err(Diagnostic::runtime(format!(
                    "Dimension out of range (expected to be between 0 and {}, but got {d} at index {at}).  NB: negative dims \
                     not currently supported; file an issue if you want it.",
                    sizes.len() as i64 - 1
                )));
            }
        }
    }
    let order: Vec<usize> = order.into_iter().map(|d| d as usize).collect();
    let mut strides = vec![1; sizes.len()];
    let mut step: i64 = 1;
    for d in order.iter().rev() {
        strides[*d] = step;
        step = step.saturating_mul(sizes[*d].max(1));
    }
    one(strided(&sizes, &strides, dtype_or(a, 2, DType::F32)?)?)
}

/// The dtype of a tensor made of a number when none is asked for.
fn default_dtype(value: Scalar) -> DType {
    match value {
        Scalar::Float(_) => DType::F32,
        Scalar::Complex(_) => DType::C64,
        other => other.dtype(),
    }
}

fn full(a: &Args<'_>) -> Result<Outputs> {
    let value = a.scalar(1)?;
    let dtype = dtype_or(a, 2, default_dtype(value))?;
    one(full_checked(&sizes(a, 0)?, value, dtype)?)
}

/// `*_like`: sizes, dtype and, unless given otherwise, the order of dimensions in memory of the first argument.
/// A tensor of the first argument's sizes and order in memory, filled; `options` is where dtype and layout stand.
pub fn like(a: &Args<'_>, options: usize, value: Scalar) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dtype = dtype_or(a, options, tensor.dtype())?;
    check_fill(value, dtype)?;
    let layout = view::in_format(&tensor.layout(), a.opt_int(options + 4)?.unwrap_or(1))?;
    let result = strided(&layout.sizes, &layout.strides, dtype)?;
    result.fill(value)?;
    one(result)
}

fn new(a: &Args<'_>, options: usize, value: Scalar) -> Result<Outputs> {
    one(full_checked(&sizes(a, 1)?, value, dtype_or(a, options, a.tensor(0)?.dtype())?)?)
}

fn range_out(a: &Args<'_>, start: Scalar, end: Scalar, step: Scalar, out: usize) -> Result<Outputs> {
    let out = a.tensor(out)?;
    replace(out, &range::arange(start, end, step, Some(out.dtype()))?)
}

/// The ends of linspace and logspace, which may be tensors of rank 0.
fn ends(a: &Args<'_>, name: &str) -> Result<(Scalar, Scalar)> {
    let rank = |n: usize| a.value(n).map(|v| if let Value::Tensor(t) = v { Some(t.rank()) } else { None });
    let ranks: Vec<String> = [("start", rank(0)?), ("end", rank(1)?)]
        .into_iter()
        .filter_map(|(what, rank)| Some(format!("{what} with {} dimension(s)", rank?)))
        .collect();
    if rank(0)?.is_some_and(|n| n > 0) || rank(1)?.is_some_and(|n| n > 0) {
        return Err(Diagnostic::runtime(format!(
            "{name} only supports 0-dimensional start and end tensors, but got {}.",
            ranks.join(" and ")
        )));
    }
    let end = |n: usize| match a.value(n)? {
        Value::Tensor(t) => t.item(),
        _ => a.scalar(n),
    };
    Ok((end(0)?, end(1)?))
}

/// linspace and (with a base) logspace.
fn spaced(a: &Args<'_>, options: usize, base: Option<f64>) -> Result<Outputs> {
    let (start, end) = ends(a, if base.is_some() { "logspace" } else { "linspace" })?;
    let complex = matches!(start, Scalar::Complex(_)) || matches!(end, Scalar::Complex(_));
    let dtype = dtype_or(a, options, if complex { DType::C64 } else { DType::F32 })?;
    if complex && !dtype.is_complex() {
        return Err(Diagnostic::runtime(format!(
            "torch.{}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype {}",
            if base.is_some() { "logspace" } else { "linspace" },
            dtype.type_name()
        )));
    }
    one(range::spaced(start, end, a.int(2)?, base, dtype)?)
}

fn spaced_out(a: &Args<'_>, out: usize, base: Option<f64>) -> Result<Outputs> {
    let (start, end) = ends(a, if base.is_some() { "logspace" } else { "linspace" })?;
    let out = a.tensor(out)?;
    replace(out, &range::spaced(start, end, a.int(2)?, base, out.dtype())?)
}

fn eye_out(a: &Args<'_>, n: i64, m: i64, out: usize) -> Result<Outputs> {
    let out = a.tensor(out)?;
    replace(out, &eye(n, m, out.dtype())?)
}

/// Gives an `out` argument the result's sizes and elements.
fn replace(out: &Tensor, result: &Tensor) -> Result<Outputs> {
    out.give_sizes(&result.sizes())?;
    out.copy_from(result)?;
    one(out.clone())
}

fn eye(n: i64, m: i64, dtype: DType) -> Result<Tensor> {
    for (size, name) in [(n, "n"), (m, "m")] {
        if size < 0 {
            return Err(Diagnostic::runtime(format!("{name} must be greater or equal to 0, got {size}")));
        }
    }
    let result = Tensor::zeros(dtype, &[n, m])?;
    result.look(|l| view::diagonal(l, 0, 0, 1))?.fill(Scalar::Int(1))?;
    Ok(result)
}

/// A number as a tensor of rank 0. As in PyTorch floats of 16 bits become infinite where others are refused.
fn scalar_tensor(a: &Args<'_>) -> Result<Outputs> {
    let (value, dtype) = (a.scalar(0)?, dtype_or(a, 1, DType::F32)?);
    let overflows = matches!(dtype, DType::F16 | DType::BF16) && !matches!(value, Scalar::Complex(_));
    one(if overflows { Tensor::full(dtype, &[], value)? } else { full_checked(&[], value, dtype)? })
}

fn window(a: &Args<'_>, options: usize, shape: Shape) -> Result<Outputs> {
    let (length, periodic) = (a.int(0)?, if options > 1 { a.bool(1)? } else { true });
    let name = a.op.name().as_str().trim_start_matches("aten::");
    if length < 0 {
        return Err(Diagnostic::runtime(format!(
            "{name} requires non-negative window_length, got window_length={length}"
        )));
    }
    let dtype = dtype_or(a, options, DType::F32)?;
    if dtype.is_complex() && length > 1 {
        return Err(Diagnostic::unsupported(format!("aten::{name} of dtype {}", dtype.name())));
    }
    if !(dtype.is_floating() || dtype.is_complex()) {
        return Err(Diagnostic::runtime(format!(
            "{name} expects floating point dtypes, got: {}",
            dtype.name()
        )));
    }
    one(range::window(length, periodic, shape, dtype)?)
}

/// `torch.tensor` and `torch.as_tensor` of numbers and nested lists of numbers.
fn tensor(a: &Args<'_>) -> Result<Outputs> {
    on_cpu(a, 2)?;
    // Values have the dtype that they would have by default before they have the one that is asked for: floats are rounded
    // to float32 on the way to float64.
    let natural = match a.value(0)? {
        Value::List(list) => {
            let (sizes, mut elements) = (nested_sizes(list)?, Vec::new());
            let dtype = leaf_dtype(list)?;
            flatten(a.value(0)?, &sizes, 0, &mut elements)?;
            crate::dispatch_dtype!(dtype, T => {
                let elements = elements.iter().map(|x| range::wrapped::<T>(*x)).scratch()?;
                Tensor::from_vec::<T>(&elements, &sizes)
            })?
        }
        Value::Tensor(t) if t.rank() != 0 => {
            return Err(Diagnostic::runtime(
                "Cannot input a tensor of dimension other than 0 as a scalar argument",
            ));
        }
        number => {
            let number = number.to_scalar()?;
            full_checked(&[], number, default_dtype(number))?
        }
    };
    let result = match a.opt_dtype(1)? {
        Some(dtype) if dtype != natural.dtype() => natural.to_dtype(dtype)?,
        _ => natural,
    };
    if a.values.len() > 3 && a.bool(3)? {
        result.set_requires_grad(true)?;
    }
    one(result)
}

/// The deepest nesting that a tensor's rank allows.
const MAX_DEPTH: usize = 64;

/// Sizes as the first list of each level gives them.
fn nested_sizes(list: &List) -> Result<Vec<i64>> {
    let mut sizes = Vec::new();
    let mut next = Some(list.clone());
    while let Some(list) = next {
        if sizes.len() == MAX_DEPTH {
            return Err(Diagnostic::runtime("lists nested too deeply for a tensor"));
        }
        sizes.push(list.len() as i64);
        next = list.items().first().and_then(|v| v.to_list().ok().cloned());
    }
    Ok(sizes)
}

/// The dtype of the numbers that the nested list's type names.
fn leaf_dtype(list: &List) -> Result<DType> {
    let mut ty = list.element_type().clone();
    for _ in 0..MAX_DEPTH {
        let inner = match ty.kind() {
            TypeKind::List(inner) => inner.clone(),
            TypeKind::Int => return Ok(DType::I64),
            TypeKind::Float => return Ok(DType::F32),
            TypeKind::Bool => return Ok(DType::Bool),
            TypeKind::Complex => break,
            TypeKind::Tensor(_) if list.is_empty() => return Err(not_a_number(EMPTY_LIST)),
            TypeKind::Tensor(_) => return Err(not_a_number("Tensor")),
            TypeKind::Str => return Err(not_a_number("str")),
            TypeKind::None => return Err(not_a_number("NoneType")),
            TypeKind::Union(members) if members.iter().all(is_number) => break,
            _ => return Err(not_a_number(&ty.annotation().to_string())),
        };
        ty = inner;
    }
    Err(Diagnostic::runtime(format!("Add new condition, expected Float, Complex, Int, or Bool but got{ty}")))
}

fn is_number(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::Int | TypeKind::Float | TypeKind::Complex)
}

/// A list of tensors is most often an empty list.
const EMPTY_LIST: &str = "Tensor\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements in the list for Python 2)";

fn not_a_number(what: &str) -> Diagnostic {
    Diagnostic::runtime(format!("Input must be of ints, floats, or bools, got {what}"))
}

/// Appends the numbers in order; every list of a level must have the size of the first. Depth is bounded by `sizes`.
fn flatten(value: &Value, sizes: &[i64], depth: usize, out: &mut Vec<Scalar>) -> Result<()> {
    let Value::List(list) = value else {
        out.push(value.to_scalar()?);
        return Ok(());
    };
    let expected = sizes.get(depth).copied().unwrap_or(0);
    let items = list.to_vec();
    if items.len() as i64 != expected || depth >= sizes.len() {
        return Err(Diagnostic::runtime(format!(
            "Expected sequence of length {expected} at dim {depth} (got {})",
            items.len()
        )));
    }
    items.iter().try_for_each(|item| flatten(item, sizes, depth + 1, out))
}

fn as_tensor(a: &Args<'_>) -> Result<Outputs> {
    on_cpu(a, 2)?;
    let tensor = a.tensor(0)?;
    one(tensor.to_dtype(a.opt_dtype(1)?.unwrap_or(tensor.dtype()))?)
}
