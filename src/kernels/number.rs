//! Numbers as sums and products see them: integers that wrap, floats, complex numbers. No kernel is known here.

use crate::tensor::Element;
use num_complex::Complex;

/// Numbers that can be summed and multiplied; integers wrap.
pub trait Number: Element + Default {
    /// 1
    const ONE: Self;
    /// Sum.
    fn plus(self, other: Self) -> Self;
    /// Product.
    fn times(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once where the machine does so at no cost.
    #[inline(always)]
    fn fused(self, factor: Self, term: Self) -> Self {
        self.times(factor).plus(term)
    }
    /// Complex conjugate; a real number itself.
    #[inline(always)]
    fn conjugate(self) -> Self {
        self
    }
}

macro_rules! integers {
    ($($T:ty),*) => {
        $(impl Number for $T {
            const ONE: Self = 1;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        })*
    };
}

integers!(u8, i8, i16, i32, i64);

macro_rules! floats {
    ($($T:ident),*) => {
        $(impl Number for $T {
            const ONE: Self = 1.0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn fused(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term)
            }
        }

        impl Number for Complex<$T> {
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn conjugate(self) -> Self {
                self.conj()
            }
        })*
    };
}

floats!(f32, f64);
