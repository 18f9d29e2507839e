//! Powers of f32: 2^(y log2 x) in float64, rounded once, so that they are as good as rounded ones. Special values are those of C.

use super::ir::{Opcode, T, V};
use super::math::Math;
use crate::diag::Result;
use inkwell::FloatPredicate as F;

/// 2 (atanh(√v)/√v - 1)/(v ln 2) on √v ≤ (√2 - 1)/(√2 + 1).
const LOG2: [f64; 5] = [
    0.961796694058412636,
    0.577077952943824938,
    0.412208430615278492,
    0.319933481655202242,
    0.282559451948973077,
];
/// 2 / ln 2
const TWO_LOG2E: f64 = 2.0 * std::f64::consts::LOG2_E;

/// (2^t - 1)/t on |t| ≤ 1/2.
const EXP2: [f64; 7] = [
    0.693147180704764125,
    0.240226510670018779,
    0.0555041036538777812,
    0.00961803805976500009,
    0.00133339353602278321,
    0.000154667814885632192,
    0.0000151961331238605167,
];

/// 1.5 * 2^52: adding it rounds a small float64 to an integer, which then stands in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
/// The bits of √½ in float64.
const ROOT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
/// Beyond 2^±160 results are infinite or 0.
const MOST: f64 = 160.0;

impl<'c> Math<'_, 'c> {
    /// x^y
    pub(super) fn pow(&self, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        let (zero, one) = (self.ir.fconst(x, 0.0), self.ir.fconst(x, 1.0));
        let a = self.abs(x)?;
        let result = self.power_of_positive(a, y)?;
        // Of a negative number only whole powers are numbers; an odd one has its sign.
        let whole = |v: V<'c>| -> Result<V<'c>> {
            let trunc = self.ir.intrinsic("llvm.trunc", &[x.get_type()], &[v])?;
            self.ir.fcmp(F::OEQ, trunc, v)
        };
        let half = self.ir.mul(y, self.ir.fconst(x, 0.5))?;
        let is_whole = whole(y)?;
        let is_odd = self.ir.op(Opcode::Xor, is_whole, self.ir.op(Opcode::And, whole(half)?, is_whole)?)?;
        let signed = self.ir.select(is_odd, self.copysign(result, x)?, result)?;
        let is_negative = self.ir.fcmp(F::OLT, x, zero)?;
        let is_finite = self.ir.fcmp(F::OLT, a, self.ir.fconst(x, f64::INFINITY))?;
        let is_none =
            self.ir.op(Opcode::And, self.ir.op(Opcode::And, is_negative, is_finite)?, self.not(is_whole)?)?;
        let signed = self.ir.select(is_none, self.ir.fconst(x, f64::NAN), signed)?;
        let is_nan = self.ir.fcmp(F::UNO, x, y)?;
        let signed = self.ir.select(is_nan, self.ir.fconst(x, f64::NAN), signed)?;
        // To the power of 0 everything is 1, and 1 to every power; -1 to an infinite one.
        let is_one = self.ir.fcmp(F::OEQ, x, one)?;
        let is_one = self.ir.op(Opcode::Or, is_one, self.ir.fcmp(F::OEQ, y, zero)?)?;
        let endless = self.ir.fcmp(F::OEQ, self.abs(y)?, self.ir.fconst(x, f64::INFINITY))?;
        let endless = self.ir.op(Opcode::And, endless, self.ir.fcmp(F::OEQ, a, one)?)?;
        self.ir.select(self.ir.op(Opcode::Or, is_one, endless)?, one, signed)
    }

    fn not(&self, truth: V<'c>) -> Result<V<'c>> {
        self.ir.op(Opcode::Xor, truth, self.ir.iconst(truth, self.ir.i1(), 1))
    }

    /// Of a number that is not negative; anything of NaN.
    fn power_of_positive(&self, a: V<'c>, y: V<'c>) -> Result<V<'c>> {
        let ir = self.ir;
        let wide: T<'c> = ir.ctx.f64_type().into();
        let (x, y) = (ir.cast(Opcode::FPExt, a, wide)?, ir.cast(Opcode::FPExt, y, wide)?);
        let lane: T<'c> = ir.i64().into();
        let int = |n: i64| ir.iconst(x, lane, n);
        let float = |v: V<'c>| ir.cast(Opcode::BitCast, v, wide);
        // x = 2^e m with m between the roots of 1/2 and 2: no float32 is subnormal there.
        let bits = ir.cast(Opcode::BitCast, x, lane)?;
        let above = ir.sub(bits, int(ROOT_HALF))?;
        let e = ir.op(Opcode::AShr, above, int(52))?;
        let m = float(ir.sub(bits, ir.op(Opcode::Shl, e, int(52))?)?)?;
        let e = ir.cast(Opcode::SIToFP, e, wide)?;
        let one = ir.fconst(x, 1.0);
        let s = ir.fdiv(ir.sub(m, one)?, ir.add(m, one)?)?;
        let v = ir.mul(s, s)?;
        let log = ir.fma(v, self.poly(v, &LOG2)?, ir.fconst(x, TWO_LOG2E))?;
        let log = ir.fma(s, log, e)?;
        let (zero, infinity) = (ir.fconst(x, 0.0), ir.fconst(x, f64::INFINITY));
        let log = ir.select(ir.fcmp(F::OEQ, x, infinity)?, infinity, log)?;
        let log = ir.select(ir.fcmp(F::OEQ, x, zero)?, ir.fconst(x, f64::NEG_INFINITY), log)?;
        let t = ir.mul(y, log)?;
        let (most, least) = (ir.fconst(x, MOST), ir.fconst(x, -MOST));
        let t = ir.select(ir.fcmp(F::OGT, t, most)?, most, t)?;
        let t = ir.select(ir.fcmp(F::OLT, t, least)?, least, t)?;
        let shifted = ir.add(t, ir.fconst(x, MAGIC))?;
        let rest = ir.sub(t, ir.sub(shifted, ir.fconst(x, MAGIC))?)?;
        let p = ir.fma(rest, self.poly(rest, &EXP2)?, one)?;
        // 2^n goes into the exponent.
        let n = ir.op(Opcode::Shl, ir.cast(Opcode::BitCast, shifted, lane)?, int(52))?;
        let p = float(ir.add(ir.cast(Opcode::BitCast, p, lane)?, n)?)?;
        ir.cast(Opcode::FPTrunc, p, ir.f32().into())
    }
}
