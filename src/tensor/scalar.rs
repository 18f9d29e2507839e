//! A number of any kind, as TorchScript's `Scalar` (`number`) arguments carry them.

use super::DType;
use num_complex::Complex64;

/// A number: int, float, complex or bool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// 64-bit signed integer.
    Int(i64),
    /// 64-bit float.
    Float(f64),
    /// Two 64-bit floats.
    Complex(Complex64),
    /// Truth value.
    Bool(bool),
}

impl Scalar {
    /// The dtype that a tensor made of it has before promotion: int64, float64, complex128, bool.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(_) => DType::C128,
            Scalar::Bool(_) => DType::Bool,
        }
    }

    /// To a float; the imaginary part is dropped.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Int(x) => x as f64,
            Scalar::Float(x) => x,
            Scalar::Complex(x) => x.re,
            Scalar::Bool(x) => f64::from(u8::from(x)),
        }
    }

    /// To a float of 32 bits, rounded once: an integer does not become a float of 64 bits before.
    pub fn to_f32(self) -> f32 {
        match self {
            Scalar::Int(x) => x as f32,
            other => other.to_f64() as f32,
        }
    }

    /// To an integer, as C++ truncates on x86-64: NaN and what does not fit give the smallest integer.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Int(x) => x,
            Scalar::Float(x) => f64_to_i64(x),
            Scalar::Complex(x) => f64_to_i64(x.re),
            Scalar::Bool(x) => i64::from(x),
        }
    }

    /// To an integer of at most 32 bits: integers keep their low bits, floats are truncated as by C++ on x86-64,
    /// where what does not fit into 32 bits gives the smallest integer.
    pub fn to_i32(self) -> i32 {
        match self {
            Scalar::Int(x) => x as i32,
            Scalar::Float(x) => f64_to_i32(x),
            Scalar::Complex(x) => f64_to_i32(x.re),
            Scalar::Bool(x) => i32::from(x),
        }
    }

    /// To an unsigned integer, as C++ truncates on x86-64: negative numbers wrap.
    pub fn to_u64(self) -> u64 {
        match self {
            Scalar::Float(x) if x >= 9_223_372_036_854_775_808.0 => x as u64,
            other => other.to_i64() as u64,
        }
    }

    /// To a complex number.
    pub fn to_complex(self) -> Complex64 {
        match self {
            Scalar::Complex(x) => x,
            other => Complex64::new(other.to_f64(), 0.0),
        }
    }

    /// Whether it differs from zero (NaN does).
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Int(x) => x != 0,
            Scalar::Float(x) => x != 0.0,
            Scalar::Complex(x) => x.re != 0.0 || x.im != 0.0,
            Scalar::Bool(x) => x,
        }
    }
}

/// Truncation as the x86-64 conversion instruction does it.
pub fn f64_to_i64(x: f64) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if x >= -limit && x < limit { x as i64 } else { i64::MIN }
}

/// As [`f64_to_i64`], for 32 bits.
fn f64_to_i32(x: f64) -> i32 {
    if x > -2_147_483_649.0 && x < 2_147_483_648.0 { x as i32 } else { i32::MIN }
}
