//! Functions of floats that are exact, or rounded once: the remainder, the neighbour, the hypotenuse.

use super::ir::{Opcode, T, V};
use super::math::Math;
use crate::diag::Result;
use inkwell::FloatPredicate as F;

impl<'c> Math<'_, 'c> {
    /// x - n y for the n towards zero from x/y, with the sign of x; exact. Where the quotient has more digits than a float, and of what
    /// has no quotient, `library` gives it.
    pub(super) fn remainder(
        &self,
        (x, y): (V<'c>, V<'c>),
        digits: i32,
        library: impl FnOnce() -> Result<V<'c>>,
    ) -> Result<V<'c>> {
        let zero = self.ir.fconst(x, 0.0);
        let (a, b) = (self.abs(x)?, self.abs(y)?);
        let quotient = self.ir.fdiv(a, b)?;
        let n = self.ir.intrinsic("llvm.trunc", &[x.get_type()], &[quotient])?;
        // A quotient that was rounded up to a number makes the rest negative, and small: both are exact.
        let rest = self.ir.fma(self.ir.fneg(n)?, b, a)?;
        let rest = self.ir.select(self.ir.fcmp(F::OLT, rest, zero)?, self.ir.add(rest, b)?, rest)?;
        let rest = self.ir.select(self.ir.fcmp(F::OLT, a, b)?, a, rest)?;
        let rest = self.copysign(rest, x)?;
        let limit = self.ir.fconst(x, f64::powi(2.0, digits - 1));
        let is_rare = self.ir.fcmp(F::UGE, quotient, limit)?;
        let [rest] = self.ir.rarely(is_rare, [rest], || Ok([library()?]))?;
        Ok(rest)
    }

    /// The next number after x towards y, of floats as wide as the integers of `lane`.
    pub(super) fn next_after(&self, x: V<'c>, y: V<'c>, lane: T<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        let number = |n: i64| ir.iconst(x, lane, n);
        let float = |bits: V<'c>| ir.cast(Opcode::BitCast, bits, super::ir::lane_type(x.get_type()));
        let bits = ir.cast(Opcode::BitCast, x, lane)?;
        let zero = ir.fconst(x, 0.0);
        // Away from zero the bits, as an integer without sign, grow.
        let grows = ir.op(Opcode::Xor, ir.fcmp(F::OLT, x, y)?, ir.fcmp(F::OLT, x, zero)?)?;
        let step = ir.select(grows, number(1), number(-1))?;
        let next = float(ir.add(bits, step)?)?;
        let smallest = self.copysign(float(number(1))?, y)?;
        let next = ir.select(ir.fcmp(F::OEQ, x, zero)?, smallest, next)?;
        let next = ir.select(ir.fcmp(F::OEQ, x, y)?, y, next)?;
        ir.select(ir.fcmp(F::UNO, x, y)?, ir.add(x, y)?, next)
    }

    /// The root of x² + y² of float32, which float64 has without overflow; infinite where one of them is, whatever the other.
    pub(super) fn hypotenuse(&self, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        let wide: T<'c> = ir.ctx.f64_type().into();
        let (a, b) = (ir.cast(Opcode::FPExt, x, wide)?, ir.cast(Opcode::FPExt, y, wide)?);
        let sum = ir.fma(a, a, ir.mul(b, b)?)?;
        let root = ir.intrinsic("llvm.sqrt", &[sum.get_type()], &[sum])?;
        let root = ir.cast(Opcode::FPTrunc, root, ir.f32().into())?;
        let infinity = ir.fconst(x, f64::INFINITY);
        let is_infinite = |v: V<'c>| ir.fcmp(F::OEQ, self.abs(v)?, infinity);
        let either = ir.op(Opcode::Or, is_infinite(x)?, is_infinite(y)?)?;
        ir.select(either, infinity, root)
    }
}
