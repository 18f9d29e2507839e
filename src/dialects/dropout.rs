//! Work of training that draws random numbers for an input: dropout in all its forms, and leaky units with random slopes.
//! Every step is rounded to the dtype of the input, as PyTorch's steps are.

use super::draw::{bernoulli, empty_like, fill, with_generator};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Outputs, one};
use crate::dispatch_dtype;
use crate::kernels::wide::store;
use crate::tensor::pointwise::{map1, map2};
use crate::tensor::{DType, Element, Scalar, Tensor};
use smallvec::smallvec;

/// What is not above zero is scaled: by the middle of the range, in training by a number drawn for each element.
pub fn rrelu(a: &Args<'_>) -> Result<Outputs> {
    let (input, lower, upper) = (a.tensor(0)?, a.scalar(1)?.to_f64(), a.scalar(2)?.to_f64());
    if lower > upper {
        return Err(Diagnostic::runtime("Lower bound should be less than or equal to the upper bound"));
    }
    let dtype = input.dtype();
    let training = a.bool(3)?;
    if !dtype.is_floating() {
        let kernel = if training { "rrelu_with_noise_out_cpu" } else { "leaky_relu_cpu" };
        return Err(crate::kernels::create::range::not_implemented(kernel, dtype));
    }
    // Products of float32 and wider are rounded once, in the dtype of the input.
    let rounded = |x: f64| if dtype == DType::F64 { x } else { f64::from(x as f32) };
    let mut values = input.elements_as::<f64>()?;
    if training {
        if !input.is_contiguous() {
            return Err(Diagnostic::unsupported(format!(
                "{} in training of a tensor that is not contiguous",
                a.op.name()
            )));
        }
        let (from, range) = (rounded(lower), rounded(upper) - rounded(lower));
        with_generator(a, |g| {
            for x in values.iter_mut().filter(|x| **x <= 0.0) {
                *x *= rounded(g.uniform() * range + from);
            }
            Ok(())
        })?;
    } else {
        let slope = rounded((lower + upper) / 2.0);
        values.iter_mut().filter(|x| !(**x > 0.0)).for_each(|x| *x *= slope);
    }
    one(store::<f64>(&values, &input.sizes(), dtype)?)
}

/// Each element changed by a function of real numbers, rounded to the tensor's dtype.
fn each(x: &Tensor, f: impl Fn(f64) -> f64 + Sync) -> Result<Tensor> {
    dispatch_dtype!(x.dtype(), T => map1::<T, T>(x, |x| T::from_scalar(Scalar::Float(f(x.to_scalar().to_f64())))))
}

/// The product or the sum of two tensors of one dtype.
pub(super) fn combined(x: &Tensor, y: &Tensor, product: bool) -> Result<Tensor> {
    let combine = |x: Scalar, y: Scalar| match (x, y) {
        (Scalar::Complex(x), y) if product => Scalar::Complex(x * y.to_complex()),
        (Scalar::Complex(x), y) => Scalar::Complex(x + y.to_complex()),
        (x, y) if product => Scalar::Float(x.to_f64() * y.to_f64()),
        (x, y) => Scalar::Float(x.to_f64() + y.to_f64()),
    };
    dispatch_dtype!(x.dtype(), T => map2::<T, T>(x, y, |x, y| T::from_scalar(combine(x.to_scalar(), y.to_scalar()))))
}

/// Dropout in training, in any of its forms: what is dropped becomes zero (or, in the alpha forms, the value that keeps
/// mean and variance of SELU), the rest is scaled up. `features` drops whole channels.
pub fn drop_out(a: &Args<'_>, input: &Tensor, p: f64, features: bool, alpha: bool) -> Result<Tensor> {
    let (sizes, dtype) = (input.sizes(), input.dtype());
    if features && sizes.len() < 2 {
        return Err(Diagnostic::runtime("Feature dropout requires at least 2 dimensions in the input"));
    }
    if p == 1.0 {
        // A product and not zeros: NaN stays.
        return combined(input, &Tensor::zeros(dtype, &[])?, true);
    }
    if !dtype.is_floating() && !dtype.is_complex() {
        return Err(Diagnostic::runtime(format!(
            "result type Float can't be cast to the desired output type {}",
            dtype.type_name()
        )));
    }
    let noise = if features {
        let sizes: Vec<i64> = sizes.iter().enumerate().map(|(d, n)| if d < 2 { *n } else { 1 }).collect();
        Tensor::zeros(dtype, &sizes)?
    } else {
        empty_like(input, dtype)?
    };
    throw(a, &noise, 1.0 - p)?;
    if !alpha {
        return combined(input, &each(&noise, |kept| kept / (1.0 - p))?, true);
    }
    const ALPHA: f64 = 1.758_099_340_847_376_6;
    let scale = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    let (step, shift) = (each(&noise, |kept| kept - 1.0)?, ALPHA * scale * p);
    let bias = each(&each(&step, |x| x * (ALPHA * scale))?, |x| x + shift)?;
    combined(&combined(input, &each(&noise, |kept| kept * scale)?, true)?, &bias, false)
}

/// Makes elements 1 with a chance, else 0. Of complex numbers the imaginary parts stay 0.
fn throw(a: &Args<'_>, target: &Tensor, chance: f64) -> Result<()> {
    if !target.dtype().is_complex() {
        return fill(a, target, |g, draw| bernoulli(g, draw.count, chance));
    }
    let real = empty_like(target, target.dtype().to_real())?;
    throw(a, &real, chance)?;
    target.copy_from(&real)
}

/// The result and the mask of `native_dropout`.
pub fn native_dropout(a: &Args<'_>, input: &Tensor, p: f64) -> Result<Outputs> {
    let dtype = input.dtype();
    if !dtype.is_floating() && !dtype.is_complex() {
        let dtype = dtype.type_name();
        let text = format!("result type Float can't be cast to the desired output type {dtype}");
        return Err(Diagnostic::runtime(text));
    }
    let (kept, scale) = if p == 1.0 { (0.0, 0.0) } else { (1.0 - p, 1.0 / (1.0 - p)) };
    let mask = empty_like(input, DType::Bool)?;
    throw(a, &mask, kept)?;
    let product = combined(input, &mask_as(&mask, dtype)?, true)?;
    let scaled = match dtype.is_complex() {
        true => combined(&product, &Tensor::from_vec(&[scale], &[])?.to_dtype(dtype)?, true)?,
        false => each(&product, |x| x * scale)?,
    };
    Ok(smallvec![scaled.into(), mask.into()])
}

/// A mask as numbers of a dtype, laid out as it is.
fn mask_as(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    dispatch_dtype!(dtype, T => map1::<crate::tensor::Bool, T>(mask, |x| T::from_scalar(x.to_scalar())))
}
