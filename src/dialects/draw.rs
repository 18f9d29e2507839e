//! Numbers drawn for the elements of a tensor, in the order in which they lie in memory: what all ops that draw have in common.
//! No row is known here.

use crate::diag::{Diagnostic, Result};
use crate::dialects::Args;
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::pointwise::Walk;
use crate::tensor::view::dense_like;
use crate::tensor::{DType, Element, Scalar, Tensor};
use crate::value::Value;
use crate::value::generator::Generator;

pub(super) fn fail<T>(text: String) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// What is drawn at once: numbers for the elements of one tensor.
pub(super) struct Draw {
    pub(super) dtype: DType,
    /// How many.
    pub(super) count: usize,
    /// Whether they lie in row-major order.
    dense: bool,
}

pub(super) fn uniform(g: &mut Generator, draw: &Draw) -> Result<Scratch<f64>> {
    let double = draw.dtype == DType::F64;
    if double { each(draw.count, || g.uniform()) } else { each(draw.count, || g.uniform_single()) }
}

pub(super) fn normal(g: &mut Generator, draw: &Draw) -> Result<Scratch<f64>> {
    memory::expect::<f64>(draw.count)?;
    if !draw.dense {
        return Ok(memory::taken(g.normals_each(draw.count)));
    }
    let uniform = if draw.dtype == DType::F64 { Generator::uniform } else { Generator::uniform_single };
    Ok(memory::taken(g.normals(draw.count, uniform, matches!(draw.dtype, DType::F16 | DType::BF16))))
}

pub(super) fn bernoulli(g: &mut Generator, n: usize, p: f64) -> Result<Scratch<f64>> {
    if !(0.0..=1.0).contains(&p) {
        return fail(format!("bernoulli_ expects p to be in [0, 1], but got p={p}"));
    }
    each(n, || f64::from(u8::from(g.uniform() < p)))
}

pub(super) fn each(n: usize, mut draw: impl FnMut() -> f64) -> Result<Scratch<f64>> {
    (0..n).map(|_| draw()).scratch()
}

pub(super) fn scaled(mut numbers: Scratch<f64>, factor: f64, term: f64) -> Scratch<f64> {
    numbers.iter_mut().for_each(|x| *x = *x * factor + term);
    numbers
}

pub(super) fn deviation(std: f64) -> Result<f64> {
    if std < 0.0 { fail(format!("normal expects std >= 0.0, but found std {std}")) } else { Ok(std) }
}

/// Gives every element of a tensor a drawn number, in the order in which they lie in memory; the parts of complex numbers
/// are elements of their own.
pub(super) fn fill(
    a: &Args<'_>,
    target: &Tensor,
    draw: impl FnOnce(&mut Generator, &Draw) -> Result<Scratch<f64>>,
) -> Result<()> {
    let target = real_parts(target)?;
    let layout = target.layout();
    layout.refuse_overlap()?;
    let wanted = Draw { dtype: target.dtype(), count: target.numel(), dense: target.is_contiguous() };
    let numbers = with_generator(a, |g| draw(g, &wanted))?;
    write_floats(&target, &numbers)
}

/// Apart from what draws, for each of which that is compiled.
fn write_floats(target: &Tensor, numbers: &[f64]) -> Result<()> {
    write_all(target, numbers.iter().map(|x| Scalar::Float(*x)))
}

/// Writes whole numbers in the order in which elements lie in memory.
pub(super) fn write_ints(target: &Tensor, numbers: &[i64]) -> Result<()> {
    write_all(target, numbers.iter().map(|x| Scalar::Int(*x)))
}

fn write_all(target: &Tensor, numbers: impl Iterator<Item = Scalar>) -> Result<()> {
    crate::dispatch_dtype!(target.dtype(), T => target.write::<T, _>(|storage, layout| {
        let mut numbers = numbers;
        Walk::writing(layout).for_each_index(|at| {
            if let Some(x) = numbers.next() {
                storage[at] = T::from_scalar(x);
            }
        });
    }))
}

/// A complex tensor as one of its real and imaginary parts, in a dimension more.
fn real_parts(tensor: &Tensor) -> Result<Tensor> {
    if !tensor.dtype().is_complex() {
        return Ok(tensor.clone());
    }
    let mut layout = tensor.layout();
    layout.strides.iter_mut().for_each(|stride| *stride = stride.saturating_mul(2));
    layout.offset = layout.offset.saturating_mul(2);
    layout.sizes.push(2);
    layout.strides.push(1);
    tensor.with_dtype_layout(tensor.dtype().to_real(), layout)
}

/// A new tensor of drawn numbers, in row-major order.
pub(super) fn make(
    a: &Args<'_>,
    sizes: &[i64],
    dtype: DType,
    draw: impl FnOnce(&mut Generator, &Draw) -> Result<Scratch<f64>>,
) -> Result<Tensor> {
    let result = Tensor::zeros(dtype, sizes)?;
    fill(a, &result, draw)?;
    Ok(result)
}

/// A new tensor of the sizes of another, its dimensions in the same order in memory.
pub(super) fn empty_like(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    let layout = dense_like(&tensor.layout());
    Tensor::zeros(dtype, &[layout.numel() as i64])?.with_layout(layout)
}

/// Draws from the generator among the arguments of an op, or from that of the run.
pub(super) fn with_generator<T>(a: &Args<'_>, work: impl FnOnce(&mut Generator) -> Result<T>) -> Result<T> {
    let given = a.values.iter().find_map(|value| match value {
        Value::Generator(generator) => Some(generator),
        _ => None,
    });
    match given {
        Some(generator) => generator.with(work),
        None => a.run.with_generator(work),
    }
}

/// Rounds a number as storing it in a floating dtype and reading it back does.
pub(super) fn rounded_to(dtype: DType) -> impl Fn(f64) -> f64 {
    move |x| match dtype {
        DType::F32 => f64::from(x as f32),
        DType::F16 => half::f16::from_f64(x).to_f64(),
        DType::BF16 => half::bf16::from_f64(x).to_f64(),
        _ => x,
    }
}

/// Draws real numbers.
pub(super) type DrawReal = fn(&mut Generator, &Draw) -> Result<Scratch<f64>>;
