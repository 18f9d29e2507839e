//! Kernels of one dtype over plain slices: which dtypes a kernel computes in, dense reading, and rounding back.
//! Floats of 16 bits are computed as float32. Knows tensors, no schema.

use crate::diag::Result;
use crate::resources::Scratch;
use crate::tensor::{DType, Element, Storage, Tensor};
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Deref, Div, Mul, MulAssign, Neg, Sub, SubAssign};

pub use super::number::Number;

macro_rules! floats {
    ($($T:ident),*) => {
        $(impl Real for $T {
            const ZERO: Self = 0.0;
            const INFINITY: Self = $T::INFINITY;
            const EPSILON: Self = $T::EPSILON;
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $T
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                self.exp()
            }
            #[inline(always)]
            fn ln(self) -> Self {
                self.ln()
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                self.tanh()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                self.powf(exponent)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self.floor()
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        })*
    };
}

floats!(f32, f64);

/// float32 and float64.
#[allow(missing_docs, reason = "the functions of their names")]
pub trait Real:
    Number
    + super::matrix::gemm::Gemm
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + std::iter::Sum
{
    const ZERO: Self;
    const INFINITY: Self;
    const EPSILON: Self;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn tanh(self) -> Self;
    fn abs(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
    fn floor(self) -> Self;
    fn mul_add(self, factor: Self, term: Self) -> Self;
    fn is_nan(self) -> bool;

    /// The logistic function.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }

    /// The larger; NaN if either is.
    #[inline(always)]
    fn greater(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }
}

/// The dtype in which a kernel computes elements of a floating dtype.
pub fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// Rounds to a floating dtype of 16 bits, for kernels that keep what lies between their steps in it; other dtypes leave
/// numbers as they are.
pub fn rounding(dtype: DType) -> fn(f64) -> f64 {
    match dtype {
        DType::F16 => |x| half::f16::from_f64(x).to_f64(),
        DType::BF16 => |x| half::bf16::from_f64(x).to_f64(),
        _ => |x| x,
    }
}

/// Runs `$body` with `$R` bound to the dtype in which a floating dtype is computed; `$name` is the kernel in PyTorch's
/// refusal of other dtypes.
#[macro_export]
macro_rules! dispatch_real {
    ($dtype:expr, $name:expr, $R:ident => $body:expr) => {{
        use $crate::tensor::DType;
        match $dtype {
            DType::F16 | DType::BF16 | DType::F32 => {
                type $R = f32;
                $body
            }
            DType::F64 => {
                type $R = f64;
                $body
            }
            other => Err($crate::kernels::create::range::not_implemented($name, other)),
        }
    }};
}

/// As [`dispatch_real!`], for all numbers: integers, floats, complex numbers.
#[macro_export]
macro_rules! dispatch_number {
    ($dtype:expr, $name:expr, $N:ident => $body:expr) => {{
        use $crate::tensor::DType;
        match $dtype {
            DType::U8 => {
                type $N = u8;
                $body
            }
            DType::I8 => {
                type $N = i8;
                $body
            }
            DType::I16 => {
                type $N = i16;
                $body
            }
            DType::I32 => {
                type $N = i32;
                $body
            }
            DType::I64 => {
                type $N = i64;
                $body
            }
            DType::C64 => {
                type $N = num_complex::Complex<f32>;
                $body
            }
            DType::C128 => {
                type $N = num_complex::Complex<f64>;
                $body
            }
            other => $crate::dispatch_real!(other, $name, $N => $body),
        }
    }};
}

/// A tensor's elements in logical order as one stretch of memory; copied only where they do not lie so.
pub struct Dense<T> {
    storage: Storage,
    start: usize,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Dense<T> {
    /// The elements of a tensor, converted to `T`.
    pub fn new(tensor: &Tensor) -> Result<Dense<T>> {
        let dense = tensor.to_dtype(T::DTYPE)?.contiguous()?;
        let len = dense.numel();
        let start = if len == 0 { 0 } else { dense.layout().offset };
        Ok(Dense { storage: dense.storage(), start, len, element: PhantomData })
    }

    /// Opens them for reading.
    pub fn open(&self) -> Result<Open<T>> {
        Ok(Open {
            bytes: self.storage.read()?,
            start: self.start * size_of::<T>(),
            end: (self.start + self.len) * size_of::<T>(),
            element: PhantomData,
        })
    }
}

/// Elements open for reading.
pub struct Open<T> {
    bytes: crate::tensor::ReadBytes,
    start: usize,
    end: usize,
    element: PhantomData<T>,
}

impl<T: Element> Deref for Open<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes[self.start..self.end])
    }
}

/// A new dense tensor whose elements `fill` writes (they start as zeros), rounded to `dtype`.
pub fn build<T: Element>(
    sizes: &[i64],
    dtype: DType,
    fill: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<Tensor> {
    let result = Tensor::zeros(T::DTYPE, sizes)?;
    result.write::<T, _>(|out, _| fill(out))??;
    result.to_dtype(dtype)
}

/// As [`build`], for a `fill` that writes every element: what it finds may be the content of a freed tensor.
pub fn build_whole<T: Element>(
    sizes: &[i64],
    dtype: DType,
    fill: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<Tensor> {
    let result = Tensor::for_writing(T::DTYPE, sizes)?;
    result.write::<T, _>(|out, _| fill(out))??;
    result.to_dtype(dtype)
}

/// The elements of an optional tensor.
pub fn dense_opt<T: Element>(tensor: Option<&Tensor>) -> Result<Option<Scratch<T>>> {
    tensor.map(Tensor::elements_as::<T>).transpose()
}
