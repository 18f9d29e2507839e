//! The integers of quantized tensors: in memory order, to and from real numbers, element by element. It knows no op.

use crate::diag::{Diagnostic, Result};
use crate::kernels::create::fill;
use crate::resources::Collect;
use crate::tensor::{DType, Element, Quantizer, Tensor, view};
use std::sync::Arc;

/// An integer that stands for a real number.
pub trait Quant: Element {
    /// Widened.
    fn wide(self) -> i32;
    /// Cut off at the ends of its range.
    fn narrow(wide: i64) -> Self;
    /// The element whose lowest byte has these bits: of types of one byte, the element with these bits.
    fn of_byte(byte: u8) -> Self;
}

macro_rules! quant {
    ($type:ty) => {
        impl Quant for $type {
            fn wide(self) -> i32 {
                self.into()
            }
            fn narrow(wide: i64) -> Self {
                wide.clamp(<$type>::MIN.into(), <$type>::MAX.into()) as $type
            }
            fn of_byte(byte: u8) -> Self {
                byte as $type
            }
        }
    };
}
quant!(u8);
quant!(i8);
quant!(i32);

/// Runs `$body` with `$T` bound to the integer type of a quantized dtype of whole elements.
macro_rules! dispatch_quant {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::tensor::DType::QU8 => {
                type $T = u8;
                $body
            }
            $crate::tensor::DType::QI8 => {
                type $T = i8;
                $body
            }
            $crate::tensor::DType::QI32 => {
                type $T = i32;
                $body
            }
            other => Err($crate::dialects::quantized::ints::not_supported(other)),
        }
    };
}
pub(crate) use dispatch_quant;

/// The refusal of a dtype.
pub fn not_supported(dtype: DType) -> Diagnostic {
    Diagnostic::unsupported(format!("quantized kernels on tensors of dtype {}", dtype.name()))
}

/// Scale and zero point of a whole tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Distance of neighbouring integers.
    pub scale: f64,
    /// The integer that stands for 0.
    pub zero_point: i64,
}

impl Params {
    /// Those of a tensor quantized as a whole.
    pub fn of(tensor: &Tensor) -> Result<Params> {
        let (scale, zero_point) = quantizer(tensor)?.uniform()?;
        Ok(Params { scale, zero_point })
    }

    /// As kernels of bytes take them.
    pub fn affine(self) -> Result<crate::kernels::Affine> {
        let zero_point = i32::try_from(self.zero_point).map_err(|_| {
            Diagnostic::runtime(format!("zero_point {} does not fit into 32 bits", self.zero_point))
        })?;
        Ok(crate::kernels::Affine { scale: self.scale, zero_point })
    }

    /// As the quantizer of a tensor.
    pub fn quantizer(self) -> Arc<Quantizer> {
        Arc::new(Quantizer::PerTensor { scale: self.scale, zero_point: self.zero_point })
    }

    /// The conversion of real numbers to integers.
    pub fn rounder(self, dtype: DType) -> Rounder {
        let (low, high) = dtype.quantized_range().unwrap_or((0, 0));
        let (in_floats, nan) = (dtype == DType::QI32, i64::from(i32::MIN));
        Rounder { inverse: 1.0 / self.scale as f32, zero_point: self.zero_point, low, high, in_floats, nan }
    }

    /// The same of the numbers of one channel of several.
    pub fn channel_rounder(self, dtype: DType) -> Rounder {
        // The low bits of the smallest integer of 32 bits.
        let nan = if dtype == DType::QI32 { i64::from(i32::MIN) } else { 0 };
        Rounder { in_floats: true, nan, ..self.rounder(dtype) }
    }

    /// What an integer stands for, as PyTorch computes it one by one.
    pub fn real(self, integer: i32) -> f32 {
        i64::from(integer).saturating_sub(self.zero_point) as f32 * self.scale as f32
    }

    /// The same as PyTorch computes it in vectors: one fused step.
    pub fn real_fused(self, integer: i32) -> f32 {
        let scale = self.scale as f32;
        scale.mul_add(integer as f32, scale * -(self.zero_point as f32))
    }

    /// Fails unless a tensor of the dtype can have these.
    pub fn check(self, dtype: DType, function: &str) -> Result<()> {
        let (low, high) = dtype.quantized_range().ok_or_else(|| not_supported(dtype))?;
        if self.zero_point < low {
            return Err(Diagnostic::runtime(format!(
                "{function} zero_point {} is below lower bound.",
                self.zero_point
            )));
        }
        if self.zero_point > high {
            return Err(Diagnostic::runtime(format!(
                "{function} zero_point {} is above upper bound.",
                self.zero_point
            )));
        }
        Ok(())
    }
}

/// Rounds real numbers to integers: to the nearest, ties to even, cut off at the ends.
#[derive(Clone, Copy, Debug)]
pub struct Rounder {
    inverse: f32,
    zero_point: i64,
    low: i64,
    high: i64,
    /// Whether the zero point is added in float32: of 32 bits, and where each channel has a scale of its own.
    in_floats: bool,
    /// What NaN gives then.
    nan: i64,
}

impl Rounder {
    /// The integer of a real number, at the ends what PyTorch's vectors give.
    pub fn integer(&self, real: f32) -> i64 {
        let scaled = (real * self.inverse).round_ties_even();
        if self.in_floats {
            let moved = scaled + self.zero_point as f32;
            return if moved.is_nan() {
                self.nan
            } else {
                i64::from(moved as i32).clamp(self.low, self.high)
            };
        }
        // Above, what is cut off is the greatest float32 below 2^31, and NaN with it; below, sums go round.
        let cut = if scaled < 2_147_483_520.0 { scaled } else { 2_147_483_520.0 };
        i64::from((cut as i32).wrapping_add(self.zero_point as i32)).clamp(self.low, self.high)
    }
}

/// How the integers of a quantized tensor stand for numbers; PyTorch's error where it is not quantized.
pub fn quantizer(tensor: &Tensor) -> Result<Arc<Quantizer>> {
    tensor.quantizer().ok_or_else(|| {
        Diagnostic::raised(
            "NotImplementedError",
            "an operator of quantized tensors was called with arguments from the 'CPU' backend.",
        )
        .hint("quantize the tensor before, with torch.quantize_per_tensor")
    })
}

/// The tensor if its elements lie without gaps in some order of dimensions, else a copy that does.
pub fn dense(tensor: &Tensor) -> Result<Tensor> {
    let own = tensor.layout();
    let wanted = view::dense_like(&own);
    if wanted.strides == own.strides {
        return Ok(tensor.clone());
    }
    let copy = fill::strided(&wanted.sizes, &wanted.strides, tensor.dtype().integer_repr())?;
    copy.copy_from(&tensor.integers())?;
    match tensor.quantizer() {
        Some(quantizer) => Tensor::quantized(&copy, tensor.dtype(), quantizer),
        None => Ok(copy),
    }
}

/// The tensor, or a copy, in a memory format by PyTorch's code.
pub fn in_format(tensor: &Tensor, format: i64) -> Result<Tensor> {
    let own = tensor.layout();
    let wanted = view::in_format(&own, format)?;
    let lies_so = |d: usize| own.sizes[d] == 1 || own.strides[d] == wanted.strides[d];
    if (0..own.rank()).all(lies_so) {
        return Ok(tensor.clone());
    }
    let copy = fill::strided(&wanted.sizes, &wanted.strides, tensor.dtype().integer_repr())?;
    copy.copy_from(&tensor.integers())?;
    match tensor.quantizer() {
        Some(quantizer) => Tensor::quantized(&copy, tensor.dtype(), quantizer),
        None => Ok(copy),
    }
}

/// Runs work on the elements of a dense tensor in memory order. `T` must be the type of its elements.
pub fn in_memory<T: Element, R>(tensor: &Tensor, work: impl FnOnce(&[T]) -> R) -> Result<R> {
    tensor.integers().read::<T, R>(|view| {
        let count = view.layout.numel();
        let start = if count == 0 { 0 } else { view.layout.offset };
        work(view.storage.get(start..start + count).unwrap_or(&[]))
    })
}

/// A quantized tensor from its integers in memory order; it lies as `like`, which is dense.
pub fn from_memory<T: Quant>(
    like: &Tensor,
    integers: &[T],
    dtype: DType,
    quantizer: Arc<Quantizer>,
) -> Result<Tensor> {
    let flat = Tensor::from_vec(integers, &[integers.len() as i64])?;
    let mut layout = like.layout();
    layout.offset = 0;
    Tensor::quantized(&flat.with_layout(layout)?, dtype, quantizer)
}

/// A tensor of other scales whose integers follow one by one from the operand's, in the same dtype and layout.
pub fn map(tensor: &Tensor, out: Params, rule: impl Fn(i32) -> i64) -> Result<Tensor> {
    let source = dense(tensor)?;
    let dtype = source.dtype();
    dispatch_quant!(dtype, T => {
        let integers = in_memory::<T, _>(&source, |items| {
            // Of a byte there are 256: what is long is looked up.
            if size_of::<T>() == 1 && items.len() > 256 {
                let table: Vec<T> = (0..=255).map(|byte| T::narrow(rule(T::of_byte(byte).wide()))).collect();
                return items.iter().map(|x| table[usize::from(x.wide() as u8)]).scratch();
            }
            items.iter().map(|x| T::narrow(rule(x.wide()))).scratch()
        })??;
        from_memory(&source, &integers, dtype, out.quantizer())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `quantize_per_tensor` and `quantize_per_channel` of PyTorch 2.15 give.
    #[test]
    fn extremes_are_pytorchs() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let reals = [nan, inf, -inf, 3e9, -3e9, 1e20, -1e20, 2147483500.0, 0.5, 300.0];
        let params = |scale, zero_point| Params { scale, zero_point };
        let (top, bottom) = (i64::from(i32::MAX), i64::from(i32::MIN));
        let check = |rounder: Rounder, wanted: [i64; 10]| {
            assert_eq!(reals.map(|x| rounder.integer(x)), wanted, "{rounder:?}");
        };
        check(params(0.1, 0).rounder(DType::QI8), [127, 127, -128, 127, -128, 127, -128, 127, 5, 127]);
        check(params(0.1, -7).rounder(DType::QI8), [127, 127, 127, 127, 127, 127, 127, 127, -2, 127]);
        check(
            params(0.1, -7).channel_rounder(DType::QI8),
            [0, 127, -128, 127, -128, 127, -128, 127, -2, 127],
        );
        check(params(1.0, 3).rounder(DType::QU8), [255, 255, 0, 255, 0, 255, 0, 255, 3, 255]);
        check(params(1.0, 3).channel_rounder(DType::QU8), [0, 255, 0, 255, 0, 255, 0, 255, 3, 255]);
        let wide = [bottom, top, bottom, top, bottom, top, bottom, 2147483520, 3, 303];
        check(params(1.0, 3).rounder(DType::QI32), wide);
        check(params(1.0, 3).channel_rounder(DType::QI32), wide);
    }
}
