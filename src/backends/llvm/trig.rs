//! Trigonometric functions of f32 and their inverses, emitted inline; see [`super::math`], whose bounds and special values they have.
//!
//! The argument of sine and cosine is brought to |r| ≤ π/4 by subtracting n quarter turns, in two parts. Up to [`LARGE`] this takes three
//! products with π/2 in parts (W. J. Cody, W. Waite, Software Manual for the Elementary Functions, 1980). Beyond, the bits of 2/π
//! that matter are multiplied with the mantissa in integers (M. Payne, R. Hanek, Radian Reduction for Trigonometric Functions, 1983):
//! rare, so that it stands behind a branch, which is taken where any lane needs it.

use super::ir::{Opcode, V};
use super::math::Math;
use crate::diag::Result;
use inkwell::{FloatPredicate as F, IntPredicate as I};

/// From here on n times the parts of π/2 is no longer exact enough.
const LARGE: f64 = 100_000.0;
/// π/2 as a sum of floats.
const HALF_PI: [f64; 3] = [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_510_005_882e-15];
/// The bits of 2/π after 32 zeros, in words.
const TWO_OVER_PI: [i64; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];
/// Words that a product reads: three, and the bits that a shift brings in.
const WORDS: usize = 4;

/// (sin(√u)/√u - 1)/u on u ≤ (π/4)².
const SIN: [f64; 4] =
    [-0.166666666405882671, 0.00833332928053375234, -0.000198393044187383395, 2.71804650402209494e-6];

/// (cos(√u) - 1 + u/2)/u² on u ≤ (π/4)².
const COS: [f64; 3] = [0.0416666455544816002, -0.0013887309867675393, 0.0000244324131413395203];

/// (atan(√u)/√u - 1)/u on u ≤ 1.
const ATAN: [f64; 9] = [
    -0.333332990893888859,
    0.1999854829398085,
    -0.142642417670509971,
    0.109521861035243649,
    -0.0840345092623553595,
    0.057957598277052974,
    -0.0311778457466797198,
    0.010914603456760264,
    -0.00179362075975160567,
];

/// (tan(√u)/√u - 1)/u on u ≤ (π/4)².
const TAN: [f64; 7] = [
    0.333333500296626878,
    0.133326535300884544,
    0.0540610663556158669,
    0.0212760583405501306,
    0.0108521780745686584,
    0.0000682058880587072528,
    0.00438707517712710766,
];

/// (asin(√u)/√u - 1)/u on u ≤ 1/4.
const ASIN: [f64; 6] = [
    0.166666599912389556,
    0.0750050418772902326,
    0.044516954480652717,
    0.0318077246602892944,
    0.0144385803150637619,
    0.0375164855159649201,
];

/// Which of the two, as the number of quarter turns that is added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Sine = 0,
    Cosine = 1,
}

/// An argument without its quarter turns: their number, as far as its last two bits, and the rest in two parts.
struct Reduced<'c> {
    turns: V<'c>,
    high: V<'c>,
    low: V<'c>,
}

/// See [`Math::half_angle`].
struct Half<'c> {
    is_large: V<'c>,
    s: V<'c>,
    tail: V<'c>,
}

impl<'c> Math<'_, 'c> {
    /// Sine or cosine.
    pub(super) fn sine(&self, x: V<'c>, turn: Turn) -> Result<V<'c>> {
        let Reduced { turns, high, low } = self.reduced(x)?;
        let turns = self.ir.add(turns, self.int(x, turn as i64))?;
        let u = self.ir.mul(high, high)?;
        // r + (low + r³ S(u))
        let cube = self.ir.mul(high, u)?;
        let sine = self.ir.add(high, self.ir.fma(cube, self.poly(u, &SIN)?, low)?)?;
        // 1 - u/2 rounded, with what that lost.
        let one = self.ir.fconst(x, 1.0);
        let half = self.ir.mul(u, self.ir.fconst(x, 0.5))?;
        let head = self.ir.sub(one, half)?;
        let lost = self.ir.sub(self.ir.sub(one, head)?, half)?;
        let square = self.ir.mul(u, u)?;
        let lost = self.ir.sub(lost, self.ir.mul(high, low)?)?;
        let cosine = self.ir.add(head, self.ir.fma(square, self.poly(u, &COS)?, lost)?)?;
        let odd = self.ir.op(Opcode::And, turns, self.int(x, 1))?;
        let is_even = self.ir.icmp(I::EQ, odd, self.int(x, 0))?;
        let chosen = self.ir.select(is_even, sine, cosine)?;
        let sign =
            self.ir.op(Opcode::Shl, self.ir.op(Opcode::And, turns, self.int(x, 2))?, self.int(x, 30))?;
        let y = self.float(self.ir.op(Opcode::Xor, self.bits(chosen)?, sign)?)?;
        match turn {
            // -0 stays -0.
            Turn::Sine => self.ir.select(self.ir.fcmp(F::OEQ, x, self.ir.fconst(x, 0.0))?, x, y),
            Turn::Cosine => Ok(y),
        }
    }

    /// Tangent: an odd polynomial, or its inverse in every other quarter turn.
    pub(super) fn tan(&self, x: V<'c>) -> Result<V<'c>> {
        let Reduced { turns, high, low } = self.reduced(x)?;
        let u = self.ir.mul(high, high)?;
        let low = self.ir.fma(low, u, low)?;
        let tail = self.ir.fma(self.ir.mul(high, u)?, self.poly(u, &TAN)?, low)?;
        let t = self.ir.add(high, tail)?;
        let odd = self.ir.op(Opcode::And, turns, self.int(x, 1))?;
        let is_even = self.ir.icmp(I::EQ, odd, self.int(x, 0))?;
        // The inverse, with what the sum and the quotient lost.
        let lost = self.ir.sub(tail, self.ir.sub(t, high)?)?;
        let inverse = self.ir.fdiv(self.ir.fconst(x, -1.0), t)?;
        let missing = self.ir.fma(inverse, t, self.ir.fconst(x, 1.0))?;
        let missing = self.ir.fma(inverse, lost, missing)?;
        let inverse = self.ir.fma(inverse, missing, inverse)?;
        let y = self.ir.select(is_even, t, inverse)?;
        // -0 stays -0.
        self.ir.select(self.ir.fcmp(F::OEQ, x, self.ir.fconst(x, 0.0))?, x, y)
    }

    fn reduced(&self, x: V<'c>) -> Result<Reduced<'c>> {
        let (shifted, n) = self.nearest(x, std::f64::consts::FRAC_2_PI)?;
        let part = |part: usize| self.ir.fconst(x, -HALF_PI[part]);
        // The first difference is exact; of the second what rounding lost is kept, as either side may be the larger.
        let first = self.ir.fma(n, part(0), x)?;
        let second = self.ir.mul(n, part(1))?;
        let high = self.ir.add(first, second)?;
        let back = self.ir.sub(high, first)?;
        let of_first = self.ir.sub(first, self.ir.sub(high, back)?)?;
        let lost = self.ir.add(of_first, self.ir.sub(second, back)?)?;
        let of_product = self.ir.fma(n, part(1), self.ir.fneg(second)?)?;
        let low = self.ir.fma(n, part(2), self.ir.add(lost, of_product)?)?;
        let turns = self.ir.sub(self.bits(shifted)?, self.bits(self.ir.fconst(x, super::math::MAGIC))?)?;
        // NaN is not large: it came through.
        let is_large = self.ir.fcmp(F::OGE, self.abs(x)?, self.ir.fconst(x, LARGE))?;
        let [turns, high, low] = self.ir.rarely(is_large, [turns, high, low], || {
            let Reduced { turns, high, low } = self.reduced_by_bits(x)?;
            Ok([turns, high, low])
        })?;
        Ok(Reduced { turns, high, low })
    }

    /// For |x| of at least [`LARGE`]; other lanes get anything.
    fn reduced_by_bits(&self, x: V<'c>) -> Result<Reduced<'c>> {
        let ir = self.ir;
        let wide = |v: V<'c>| ir.cast(Opcode::ZExt, v, ir.i64().into());
        let number = |v: i64| ir.iconst(x, ir.i64().into(), v);
        let bits = self.bits(x)?;
        let exponent = ir.op(Opcode::And, ir.op(Opcode::LShr, bits, self.int(x, 23))?, self.int(x, 255))?;
        let mantissa = ir.op(Opcode::And, bits, self.int(x, 0x7f_ffff))?;
        let mantissa = wide(ir.op(Opcode::Or, mantissa, self.int(x, 0x80_0000))?)?;
        // |x| is the mantissa times 2^k, k = exponent - 150; bits of 2/π before the k-1st give whole turns. There are 32 zeros before
        // the first, which is number 0.
        let first = ir.sub(exponent, self.int(x, 150 - 32 + 2))?;
        let word = ir.op(Opcode::LShr, first, self.int(x, 5))?;
        let shift = ir.op(Opcode::And, first, self.int(x, 31))?;
        let mut words = Vec::with_capacity(WORDS);
        for at in 0..WORDS {
            words.push(self.word(word, at)?);
        }
        let ty = bits.get_type();
        let window = |at: usize| ir.intrinsic("llvm.fshl", &[ty], &[words[at], words[at + 1], shift]);
        // 64 bits of the product, from two above the point of a quarter turn on.
        let carry = ir.op(Opcode::LShr, ir.mul(mantissa, wide(window(2)?)?)?, number(32))?;
        let middle = ir.mul(mantissa, wide(window(1)?)?)?;
        let top = ir.op(Opcode::Shl, ir.mul(mantissa, wide(window(0)?)?)?, number(32))?;
        let product = ir.add(ir.add(top, middle)?, carry)?;
        let turns = ir.op(Opcode::LShr, ir.add(product, number(1 << 61))?, number(62))?;
        let rest = ir.sub(product, ir.op(Opcode::Shl, turns, number(62))?)?;
        let turns = ir.cast(Opcode::Trunc, turns, ir.i32())?;
        let rest = ir.cast(Opcode::SIToFP, rest, ir.ctx.f64_type().into())?;
        let quarter = std::f64::consts::FRAC_PI_2 / (1u64 << 62) as f64;
        let rest = ir.mul(rest, ir.fconst(rest, quarter))?;
        let high = ir.cast(Opcode::FPTrunc, rest, ir.f32().into())?;
        let low = ir.sub(rest, ir.cast(Opcode::FPExt, high, ir.ctx.f64_type().into())?)?;
        let low = ir.cast(Opcode::FPTrunc, low, ir.f32().into())?;
        // The sign of x, and of infinities NaN.
        let is_negative = ir.icmp(I::SLT, bits, self.int(x, 0))?;
        let turns = ir.select(is_negative, ir.sub(self.int(x, 0), turns)?, turns)?;
        let signed = |v: V<'c>| ir.select(is_negative, ir.fneg(v)?, v);
        let is_finite = ir.icmp(I::NE, exponent, self.int(x, 255))?;
        let high = ir.select(is_finite, signed(high)?, ir.fconst(x, f64::NAN))?;
        Ok(Reduced { turns, high, low: signed(low)? })
    }

    /// Of [`TWO_OVER_PI`] the word that comes `after` others behind the one of a number.
    fn word(&self, number: V<'c>, after: usize) -> Result<V<'c>> {
        let all = &TWO_OVER_PI[after..];
        let count = TWO_OVER_PI.len() + 1 - WORDS;
        let constant = |at: usize| self.int(number, all.get(at).copied().unwrap_or_default());
        let mut chosen = constant(0);
        for at in 1..count {
            let is_it = self.ir.icmp(I::EQ, number, self.int(number, at as i64))?;
            chosen = self.ir.select(is_it, constant(at), chosen)?;
        }
        Ok(chosen)
    }

    /// Arc tangent.
    pub(super) fn atan(&self, x: V<'c>) -> Result<V<'c>> {
        let (zero, one) = (self.ir.fconst(x, 0.0), self.ir.fconst(x, 1.0));
        let t = self.abs(x)?;
        let is_large = self.ir.fcmp(F::OGT, t, one)?;
        let inverse = self.ir.fdiv(self.ir.fconst(x, -1.0), t)?;
        let z = self.ir.select(is_large, inverse, t)?;
        let u = self.ir.mul(z, z)?;
        // What the quotient lost. An infinity loses nothing.
        let lost = self.ir.mul(z, self.ir.fma(t, inverse, one)?)?;
        let [high, low, _] = HALF_PI.map(|part| self.ir.fconst(x, part));
        let low = self.ir.fma(lost, self.slope(u)?, low)?;
        let low = self.ir.select(self.ir.fcmp(F::ONE, inverse, zero)?, low, zero)?;
        let base = [high, low].map(|part| self.ir.select(is_large, part, zero));
        let [high, low] = base;
        self.copysign(self.angle(z, u, high?, low?)?, x)
    }

    /// The angle of a point, from -π to π.
    pub(super) fn atan2(&self, y: V<'c>, x: V<'c>) -> Result<V<'c>> {
        let (zero, one) = (self.ir.fconst(x, 0.0), self.ir.fconst(x, 1.0));
        let (a, b) = (self.abs(y)?, self.abs(x)?);
        let is_steep = self.ir.fcmp(F::OGT, a, b)?;
        let (less, more) = (self.ir.select(is_steep, b, a)?, self.ir.select(is_steep, a, b)?);
        let z = self.ir.fdiv(less, more)?;
        let missing = self.ir.fma(self.ir.fneg(z)?, more, less)?;
        let lost = self.ir.fdiv(missing, more)?;
        // Of infinities and zeros nothing is lost.
        let lost = self.ir.select(self.ir.fcmp(F::ORD, lost, lost)?, lost, zero)?;
        // 0/0 is 0, and ∞/∞ is 1.
        let z = self.ir.select(self.ir.fcmp(F::OEQ, more, zero)?, zero, z)?;
        let z = self.ir.select(self.ir.fcmp(F::OEQ, less, self.ir.fconst(x, f64::INFINITY))?, one, z)?;
        // From a quarter turn back where y is the larger, from half a turn back to the left, and from a quarter on where both.
        let is_left = self.ir.icmp(I::SLT, self.bits(x)?, self.int(x, 0))?;
        let is_back = self.ir.op(Opcode::Xor, is_steep, is_left)?;
        let turned = |v: V<'c>| self.ir.select(is_back, self.ir.fneg(v)?, v);
        let (z, lost) = (turned(z)?, turned(lost)?);
        let u = self.ir.mul(z, z)?;
        let lost = self.ir.mul(lost, self.slope(u)?)?;
        let base = |part: usize| -> Result<V<'c>> {
            let turned = |quarters: f64| self.ir.fconst(x, quarters * HALF_PI[part]);
            self.ir.select(is_steep, turned(1.0), self.ir.select(is_left, turned(2.0), zero)?)
        };
        let angle = self.angle(z, u, base(0)?, self.ir.add(base(1)?, lost)?)?;
        let angle = self.copysign(angle, y)?;
        let is_nan = self.ir.fcmp(F::UNO, y, x)?;
        self.ir.select(is_nan, self.ir.fconst(x, f64::NAN), angle)
    }

    /// Arc sine.
    pub(super) fn asin(&self, x: V<'c>) -> Result<V<'c>> {
        let Half { is_large, s, tail } = self.half_angle(x)?;
        let [high, low, _] = HALF_PI.map(|part| self.ir.fconst(x, part));
        let twice = |v: V<'c>| self.ir.mul(v, self.ir.fconst(x, -2.0));
        let large = self.sum(high, twice(s)?, self.ir.add(low, twice(tail)?)?)?;
        let small = self.ir.add(s, tail)?;
        self.copysign(self.ir.select(is_large, large, small)?, x)
    }

    /// Arc cosine.
    pub(super) fn acos(&self, x: V<'c>) -> Result<V<'c>> {
        let zero = self.ir.fconst(x, 0.0);
        let Half { is_large, s, tail } = self.half_angle(x)?;
        // π/2 - asin x; near 1 twice the half angle, near -1 what that is short of half a turn.
        let is_negative = self.ir.fcmp(F::OLT, x, zero)?;
        let factor = self.ir.select(is_large, self.ir.fconst(x, 2.0), self.ir.fconst(x, 1.0))?;
        let is_back = self.ir.op(Opcode::Xor, is_large, is_negative)?;
        let factor = self.ir.select(is_back, factor, self.ir.fneg(factor)?)?;
        let base = |part: usize| -> Result<V<'c>> {
            let turned = |quarters: f64| self.ir.fconst(x, quarters * HALF_PI[part]);
            let large = self.ir.select(is_negative, turned(2.0), zero)?;
            self.ir.select(is_large, large, turned(1.0))
        };
        let tail = self.ir.fma(factor, tail, base(1)?)?;
        self.sum(base(0)?, self.ir.mul(factor, s)?, tail)
    }

    /// asin |x| as a sum of two, or, where |x| is larger than 1/2, half of the angle that is missing to a quarter turn: the arc
    /// sine of √((1 - |x|)/2).
    fn half_angle(&self, x: V<'c>) -> Result<Half<'c>> {
        let (zero, half) = (self.ir.fconst(x, 0.0), self.ir.fconst(x, 0.5));
        let t = self.abs(x)?;
        let is_large = self.ir.fcmp(F::OGT, t, half)?;
        let rest = self.ir.fma(t, self.ir.fconst(x, -0.5), half)?;
        let u = self.ir.select(is_large, rest, self.ir.mul(t, t)?)?;
        let root = self.ir.intrinsic("llvm.sqrt", &[x.get_type()], &[rest])?;
        let s = self.ir.select(is_large, root, t)?;
        // What the root lost.
        let missing = self.ir.fma(self.ir.fneg(root)?, root, rest)?;
        let lost = self.ir.fdiv(self.ir.mul(missing, half)?, root)?;
        let has_lost = self.ir.op(Opcode::And, is_large, self.ir.fcmp(F::OGT, root, zero)?)?;
        let lost = self.ir.select(has_lost, lost, zero)?;
        let tail = self.ir.fma(self.ir.mul(s, u)?, self.poly(u, &ASIN)?, lost)?;
        Ok(Half { is_large, s, tail })
    }

    /// About 1/(1 + u), the slope of the arc tangent, for what rounding lost.
    fn slope(&self, u: V<'c>) -> Result<V<'c>> {
        self.ir.fma(u, self.ir.fconst(u, -0.5), self.ir.fconst(u, 1.0))
    }

    /// high + (z + z³ P(u) + low), where |z| ≤ 1, u = z², and `high` is 0 or larger than z; rounded about once.
    fn angle(&self, z: V<'c>, u: V<'c>, high: V<'c>, low: V<'c>) -> Result<V<'c>> {
        let tail = self.ir.fma(self.ir.mul(z, u)?, self.poly(u, &ATAN)?, low)?;
        self.sum(high, z, tail)
    }

    /// high + z + tail, where `high` is 0 or larger than z, and `tail` is small; rounded about once.
    fn sum(&self, high: V<'c>, z: V<'c>, tail: V<'c>) -> Result<V<'c>> {
        let sum = self.ir.add(high, z)?;
        let lost = self.ir.sub(z, self.ir.sub(sum, high)?)?;
        self.ir.add(sum, self.ir.add(lost, tail)?)
    }
}
