//! The Rust types of elements: which dtype each is of, and how it is made of a number and becomes one.

use super::float8::{E4m3fn, E4m3fnuz, E5m2, E5m2fnuz, E8m0fnu};
use super::{Bool, DType, Scalar};
use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;

/// A Rust type that is the element of a dtype.
pub trait Element: Pod + Copy + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    /// The dtype.
    const DTYPE: DType;
    /// From any scalar, as PyTorch converts (truncation for integers, non-zero for bool).
    fn from_scalar(value: Scalar) -> Self;
    /// To a scalar of the widest type of its kind.
    fn to_scalar(self) -> Scalar;
}

macro_rules! element {
    ($type:ty, $dtype:expr, $from:expr, $to:expr) => {
        impl Element for $type {
            const DTYPE: DType = $dtype;
            // Loops over elements stand in other crates.
            #[inline]
            fn from_scalar(value: Scalar) -> Self {
                let from: fn(Scalar) -> $type = $from;
                from(value)
            }
            #[inline]
            fn to_scalar(self) -> Scalar {
                let to: fn($type) -> Scalar = $to;
                to(self)
            }
        }
    };
}

macro_rules! float8 {
    ($($type:ident, $dtype:ident;)*) => {
        $(element!($type, DType::$dtype, |s| $type::from_f32(s.to_f32()), |x| Scalar::Float(x.to_f32().into()));)*
    };
}

float8! {
    E4m3fn, F8E4m3fn;
    E5m2, F8E5m2;
    E4m3fnuz, F8E4m3fnuz;
    E5m2fnuz, F8E5m2fnuz;
    E8m0fnu, F8E8m0fnu;
}

element!(u16, DType::U16, |s| s.to_i32() as u16, |x| Scalar::Int(x.into()));
element!(u32, DType::U32, |s| s.to_i64() as u32, |x| Scalar::Int(x.into()));
// What has the highest bit is taken for negative until it becomes a float.
element!(u64, DType::U64, |s| s.to_u64(), |x| Scalar::Int(x as i64));
// PyTorch goes by 64 bits here, and by 32 to all other integers that are smaller.
element!(u8, DType::U8, |s| s.to_i64() as u8, |x| Scalar::Int(x.into()));
element!(i8, DType::I8, |s| s.to_i32() as i8, |x| Scalar::Int(x.into()));
element!(i16, DType::I16, |s| s.to_i32() as i16, |x| Scalar::Int(x.into()));
element!(i32, DType::I32, |s| s.to_i32(), |x| Scalar::Int(x.into()));
element!(i64, DType::I64, |s| s.to_i64(), Scalar::Int);
element!(f16, DType::F16, |s| f16::from_f32(s.to_f32()), |x| Scalar::Float(x.to_f64()));
element!(bf16, DType::BF16, |s| bf16::from_f32(s.to_f32()), |x| Scalar::Float(x.to_f64()));
element!(f32, DType::F32, |s| s.to_f32(), |x| Scalar::Float(x.into()));
element!(f64, DType::F64, |s| s.to_f64(), Scalar::Float);
element!(Bool, DType::Bool, |s| Bool::new(s.to_bool()), |x| Scalar::Bool(x.get()));
element!(
    Complex<f32>,
    DType::C64,
    |s| match s {
        Scalar::Complex(c) => Complex::new(c.re as f32, c.im as f32),
        real => Complex::new(real.to_f32(), 0.0),
    },
    |x| Scalar::Complex(Complex::new(x.re.into(), x.im.into()))
);
element!(Complex<f64>, DType::C128, |s| s.to_complex(), Scalar::Complex);
