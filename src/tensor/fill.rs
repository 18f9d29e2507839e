//! Whether a number can be an element of a dtype.

use super::{DType, Scalar};
use crate::diag::{Diagnostic, Result};

/// Fails, in PyTorch's wording, if the value does not fit the dtype.
pub fn check_fill(value: Scalar, dtype: DType) -> Result<()> {
    if fits(value, dtype) {
        return Ok(());
    }
    let name = match dtype {
        DType::U8 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int",
        DType::I64 => "int64_t",
        DType::F16 => "c10::Half",
        DType::BF16 => "c10::BFloat16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "c10::complex<float>",
        DType::Bool => "bool",
        DType::U16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F8E4m3fn => "c10::Float8_e4m3fn",
        DType::F8E5m2 => "c10::Float8_e5m2",
        DType::F8E4m3fnuz => "c10::Float8_e4m3fnuz",
        DType::F8E5m2fnuz => "c10::Float8_e5m2fnuz",
        DType::F8E8m0fnu => "c10::Float8_e8m0fnu",
        other => other.name(),
    };
    Err(Diagnostic::runtime(format!("value cannot be converted to type {name} without overflow")))
}

fn fits(value: Scalar, dtype: DType) -> bool {
    if dtype == DType::Bool {
        return true;
    }
    if let Scalar::Complex(c) = value {
        return match dtype {
            DType::C64 => fits_float(c.re, f64::from(f32::MAX)) && fits_float(c.im, f64::from(f32::MAX)),
            DType::C128 => true,
            _ => c.im == 0.0 && fits(Scalar::Float(c.re), dtype),
        };
    }
    let (low, high) = match dtype {
        // Negative numbers wrap as two's complement does, as long as their magnitude fits.
        DType::U8 => (if matches!(value, Scalar::Float(_)) { 0.0 } else { -255.0 }, 255.0),
        DType::U16 => (if matches!(value, Scalar::Float(_)) { 0.0 } else { -65535.0 }, 65535.0),
        DType::U32 => {
            (if matches!(value, Scalar::Float(_)) { 0.0 } else { -f64::from(u32::MAX) }, f64::from(u32::MAX))
        }
        DType::F8E4m3fn => return fits_float(value.to_f64(), 448.0),
        DType::F8E5m2 | DType::F8E5m2fnuz => return fits_float(value.to_f64(), 57344.0),
        DType::F8E4m3fnuz => return fits_float(value.to_f64(), 240.0),
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::I64 => {
            let limit = 9_223_372_036_854_775_808.0;
            return !matches!(value, Scalar::Float(x) if !(-limit..limit).contains(&x));
        }
        DType::F16 => return fits_float(value.to_f64(), 65504.0),
        DType::BF16 => return fits_float(value.to_f64(), f64::from(half::bf16::MAX)),
        DType::F32 | DType::C64 => return fits_float(value.to_f64(), f64::from(f32::MAX)),
        _ => return true,
    };
    let x = value.to_f64();
    x >= low && x <= high
}

/// Infinities and NaN always fit.
fn fits_float(x: f64, max: f64) -> bool {
    !x.is_finite() || x.abs() <= max
}
