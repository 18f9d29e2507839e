//! Elementary functions of f32 as polynomials, emitted inline: they fuse with their neighbours, need no
//! library, and are the same on CPU vectors and on a GPU.
//!
//! Error bounds, in units in the last place against f64, found by running all 2^32 inputs
//! (`examples/ulp`; the tests sample): see docs/math.md. Special values are exact: NaN stays NaN, infinities
//! and signed zeros come out as in C. The coefficients were fitted by Remez exchange in 50 digits.

use super::ir::{Ir, V};
use crate::diag::Result;
use inkwell::{FloatPredicate as F, IntPredicate as I};

use super::ir::Opcode;

/// log2(e)
const LOG2E: f64 = std::f64::consts::LOG2_E;
/// ln 2 in two parts, the first exact in 15 bits so that its products with small integers are exact.
const LN2_HI: f64 = 0.693_145_751_953_125;
const LN2_LO: f64 = 1.428_606_820_309_417_2e-6;
/// 1.5 * 2^23: adding it rounds a small float to an integer, which then stands in the low bits.
pub(super) const MAGIC: f64 = 12_582_912.0;

/// (e^r - 1 - r) / r² on |r| ≤ ln2/2.
const EXP: [f64; 5] = [
    4.999_999_344_760_416_9e-1,
    1.666_652_063_131_173_8e-1,
    4.166_838_807_864_925_4e-2,
    8.368_716_916_278_863_6e-3,
    1.381_459_723_748_655_7e-3,
];

/// The same, weighted for e^r - 1.
const EXPM1: [f64; 6] = [
    5.000_000_046_413_686e-1,
    1.666_666_681_709_672e-1,
    4.166_635_466_400_359e-2,
    8.333_273_045_156_043e-3,
    1.394_100_827_861_586_3e-3,
    1.991_417_270_839_810_6e-4,
];

/// (tanh(√u)/√u - 1)/u on u ≤ 0.8².
const TANH: [f64; 6] = [
    -0.3333329959278762,
    0.13332270203457855,
    -0.053855852969964466,
    0.021314007543626275,
    -0.007425213544604117,
    0.0015930375000195287,
];

/// (ln(1+f) - f + f²/2)/f³ on √½-1 ≤ f ≤ √2-1.
const LOG: [f64; 9] = [
    3.333_331_044_556_958e-1,
    -2.499_998_657_542_743_5e-1,
    2.000_222_630_860_550_2e-1,
    -1.666_925_185_524_149_9e-1,
    1.421_866_403_452_328_2e-1,
    -1.238_433_451_237_936_4e-1,
    1.187_292_380_232_508_5e-1,
    -1.178_986_825_895_406_4e-1,
    6.915_549_450_216_732e-2,
];

/// erf(√u)/√u - 1 on u ≤ 0.9².
const ERF: [f64; 7] = [
    0.12837916680250433,
    -0.37612635311297193,
    0.11283719732076836,
    -0.02686075312392207,
    0.005204436472577092,
    -0.0008181929583122457,
    8.538839889336253e-05,
];

/// ln erfc(x) on 0.9 ≤ x ≤ 4.
const LOG_ERFC: [f64; 8] = [
    0.0001705507942300526,
    -1.1294951527060704,
    -0.6333866602834497,
    -0.10823660320291797,
    0.025091485649986475,
    -0.004160522489539955,
    0.0004323020167004201,
    -2.0909464883590664e-05,
];

/// Emits functions of f32, scalar or vector.
pub(super) struct Math<'a, 'c> {
    pub(super) ir: &'a Ir<'c>,
}

impl<'c> Math<'_, 'c> {
    pub(super) fn poly(&self, x: V<'c>, coefficients: &[f64]) -> Result<V<'c>> {
        let mut sum: Option<V<'c>> = None;
        for c in coefficients.iter().rev() {
            let c = self.ir.fconst(x, *c);
            sum = Some(match sum {
                Some(sum) => self.ir.fma(sum, x, c)?,
                None => c,
            });
        }
        Ok(sum.unwrap_or(x))
    }

    pub(super) fn bits(&self, x: V<'c>) -> Result<V<'c>> {
        self.ir.cast(Opcode::BitCast, x, self.ir.i32())
    }

    pub(super) fn float(&self, x: V<'c>) -> Result<V<'c>> {
        self.ir.cast(Opcode::BitCast, x, self.ir.f32().into())
    }

    pub(super) fn int(&self, like: V<'c>, value: i64) -> V<'c> {
        self.ir.iconst(like, self.ir.i32(), value)
    }

    pub(super) fn abs(&self, x: V<'c>) -> Result<V<'c>> {
        self.ir.intrinsic("llvm.fabs", &[x.get_type()], &[x])
    }

    pub(super) fn copysign(&self, magnitude: V<'c>, sign: V<'c>) -> Result<V<'c>> {
        self.ir.intrinsic("llvm.copysign", &[magnitude.get_type()], &[magnitude, sign])
    }

    /// `x` limited from above; NaN stays.
    fn at_most(&self, x: V<'c>, limit: f64) -> Result<V<'c>> {
        let limit = self.ir.fconst(x, limit);
        self.ir.select(self.ir.fcmp(F::OGT, x, limit)?, limit, x)
    }

    fn at_least(&self, x: V<'c>, limit: f64) -> Result<V<'c>> {
        let limit = self.ir.fconst(x, limit);
        self.ir.select(self.ir.fcmp(F::OLT, x, limit)?, limit, x)
    }

    fn at_most_int(&self, n: V<'c>, limit: i64) -> Result<V<'c>> {
        self.ir.intrinsic("llvm.smin", &[n.get_type()], &[n, self.int(n, limit)])
    }

    /// The integer nearest to x * scale: with its bits in the low end of the first value, as a float in the second.
    pub(super) fn nearest(&self, x: V<'c>, scale: f64) -> Result<(V<'c>, V<'c>)> {
        let magic = self.ir.fconst(x, MAGIC);
        let shifted = self.ir.fma(x, self.ir.fconst(x, scale), magic)?;
        Ok((shifted, self.ir.sub(shifted, magic)?))
    }

    /// x * 2^n for an n that `nearest` gave, |n| < 127 below and any above as far as the result is finite or
    /// rightly infinite.
    fn scale(&self, x: V<'c>, n: V<'c>) -> Result<V<'c>> {
        let n = self.ir.cast(Opcode::FPToSI, n, self.ir.i32())?;
        self.ir.intrinsic("llvm.ldexp", &[x.get_type(), n.get_type()], &[x, n])
    }

    /// x * 2^n in two exact steps: right for subnormal results and on any hardware.
    fn scale_in_two(&self, x: V<'c>, n: V<'c>) -> Result<V<'c>> {
        let n = self.ir.cast(Opcode::FPToSI, n, self.ir.i32())?;
        let half = self.ir.op(Opcode::AShr, n, self.int(x, 1))?;
        let rest = self.ir.sub(n, half)?;
        let x = self.ir.mul(x, self.power(x, half)?)?;
        self.ir.mul(x, self.power(x, rest)?)
    }

    /// 2^n as a float, -126 ≤ n ≤ 127.
    fn power(&self, like: V<'c>, n: V<'c>) -> Result<V<'c>> {
        let biased = self.ir.add(n, self.int(like, 127))?;
        self.float(self.ir.op(Opcode::Shl, biased, self.int(like, 23))?)
    }

    /// 2^n from the low bits of what `nearest` gave first.
    fn power_of_shifted(&self, shifted: V<'c>) -> Result<V<'c>> {
        let bits = self.ir.op(Opcode::Shl, self.bits(shifted)?, self.int(shifted, 23))?;
        self.float(self.ir.add(bits, self.int(shifted, 0x3f80_0000))?)
    }

    /// Whether an exponent is below `least`, where the power is 0, and the exponent that is computed instead: 0 there, so that nothing
    /// underflows. Some machines take a hundred cycles for what does, and masks give many.
    fn unless_zero(&self, x: V<'c>, least: f64) -> Result<(V<'c>, V<'c>)> {
        let vanishes = self.ir.fcmp(F::OLT, x, self.ir.fconst(x, least))?;
        Ok((vanishes, self.ir.select(vanishes, self.ir.fconst(x, 0.0), x)?))
    }

    /// x * 2^n, or 0 where [`Self::unless_zero`] has found that it vanishes.
    fn scale_or_zero(&self, x: V<'c>, n: V<'c>, vanishes: V<'c>, native: bool) -> Result<V<'c>> {
        let scaled = if native { self.scale(x, n)? } else { self.scale_in_two(x, n)? };
        self.ir.select(vanishes, self.ir.fconst(x, 0.0), scaled)
    }

    /// e^x
    pub(super) fn exp(&self, x: V<'c>, native_scale: bool) -> Result<V<'c>> {
        let (vanishes, x) = self.unless_zero(self.at_most(x, 89.0)?, -104.0)?;
        let (_, n) = self.nearest(x, LOG2E)?;
        let r = self.ir.fma(n, self.ir.fconst(x, -LN2_HI), x)?;
        let r = self.ir.fma(n, self.ir.fconst(x, -LN2_LO), r)?;
        self.scale_or_zero(self.exp_of_reduced(r)?, n, vanishes, native_scale)
    }

    /// e^r for |r| ≤ ln2/2: 1 + (r + r² q(r)).
    fn exp_of_reduced(&self, r: V<'c>) -> Result<V<'c>> {
        let q = self.poly(r, &EXP)?;
        let tail = self.ir.fma(self.ir.mul(r, r)?, q, r)?;
        self.ir.add(tail, self.ir.fconst(r, 1.0))
    }

    /// 2^x
    pub(super) fn exp2(&self, x: V<'c>, native_scale: bool) -> Result<V<'c>> {
        let (vanishes, x) = self.unless_zero(self.at_most(x, 129.0)?, -151.0)?;
        let (_, n) = self.nearest(x, 1.0)?;
        let f = self.ir.sub(x, n)?;
        // f ln 2 in two parts, so that the reduced argument is as good as for exp.
        let hi = self.ir.mul(f, self.ir.fconst(x, std::f64::consts::LN_2))?;
        let lo = self.ir.fma(f, self.ir.fconst(x, f64::from(std::f32::consts::LN_2)), self.ir.fneg(hi)?)?;
        let slack = std::f64::consts::LN_2 - f64::from(std::f32::consts::LN_2);
        let lo = self.ir.fma(f, self.ir.fconst(x, slack), lo)?;
        let q = self.poly(hi, &EXP)?;
        let tail = self.ir.fma(self.ir.mul(hi, hi)?, q, lo)?;
        let y = self.ir.add(self.ir.add(hi, tail)?, self.ir.fconst(x, 1.0))?;
        self.scale_or_zero(y, n, vanishes, native_scale)
    }

    /// e^x - 1
    pub(super) fn expm1(&self, x: V<'c>) -> Result<V<'c>> {
        let limited = self.at_least(self.at_most(x, 89.0)?, -18.0)?;
        let (_, n) = self.nearest(limited, LOG2E)?;
        // The reduced argument in two parts: near x = ln2/2 the result is smaller than its terms.
        let high = self.ir.fma(n, self.ir.fconst(x, -LN2_HI), limited)?;
        let r = self.ir.fma(n, self.ir.fconst(x, -LN2_LO), high)?;
        let r_low = self.ir.fma(n, self.ir.fconst(x, -LN2_LO), self.ir.sub(high, r)?)?;
        let q = self.poly(r, &EXPM1)?;
        let tail = self.ir.fma(self.ir.mul(r, r)?, q, r_low)?;
        let p = self.ir.add(r, tail)?;
        // 2^n (r + tail) + (2^n - 1), with 2^(n-1) so that n = 128 does not overflow before the end. Where
        // 2^n - 1 is about to be rounded, the 1 goes into the tail.
        let n = self.ir.cast(Opcode::FPToSI, n, self.ir.i32())?;
        let half = self.power(x, self.ir.sub(n, self.int(x, 1))?)?;
        let is_large = self.ir.icmp(I::SGT, n, self.int(x, 12))?;
        let inverse = self.power(x, self.ir.sub(self.int(x, 0), self.at_most_int(n, 126)?)?)?;
        let tail = self.ir.select(is_large, self.ir.sub(tail, inverse)?, tail)?;
        let less = self.ir.select(is_large, half, self.ir.sub(half, self.ir.fconst(x, 0.5))?)?;
        let sum = self.ir.fma(r, half, less)?;
        let lost = self.ir.fma(r, half, self.ir.sub(less, sum)?)?;
        let y = self.ir.add(sum, self.ir.fma(tail, half, lost)?)?;
        let y = self.ir.add(y, y)?;
        // Near 0 the polynomial alone is exact enough.
        let zero = self.ir.icmp(I::EQ, n, self.int(x, 0))?;
        let y = self.ir.select(zero, p, y)?;
        // -0 stays -0.
        self.ir.select(self.ir.fcmp(F::OEQ, x, self.ir.fconst(x, 0.0))?, x, y)
    }

    /// Hyperbolic tangent: an odd polynomial below 0.8, 1 - 2/(e^2x + 1) above.
    pub(super) fn tanh(&self, x: V<'c>) -> Result<V<'c>> {
        let one = self.ir.fconst(x, 1.0);
        let t = self.abs(x)?;
        let u = self.ir.mul(x, x)?;
        let p = self.poly(u, &TANH)?;
        let small = self.ir.fma(self.ir.mul(u, t)?, p, t)?;
        let limited = self.at_most(t, 9.5)?;
        let (shifted, n) = self.nearest(limited, 2.0 * LOG2E)?;
        // n (ln 2)/2 as one product: its error is far below what 1 - 2/(e+1) can see.
        let r = self.ir.fma(n, self.ir.fconst(x, -0.5 * std::f64::consts::LN_2), limited)?;
        let sum = self.exp_of_half_plus_one(r, self.power_of_shifted(shifted)?)?;
        let quotient = self.ir.fdiv(self.ir.fconst(x, 2.0), sum)?;
        let large = self.ir.sub(one, quotient)?;
        let is_small = self.ir.fcmp(F::OLT, t, self.ir.fconst(x, 0.8))?;
        self.copysign(self.ir.select(is_small, small, large)?, x)
    }

    /// 2^n e^2r + 1 for |r| ≤ ln2/4, given 2^n; rounded once at the end.
    fn exp_of_half_plus_one(&self, r: V<'c>, power: V<'c>) -> Result<V<'c>> {
        let scaled = |(n, c): (usize, &f64)| c * 4.0 * f64::powi(2.0, n as i32);
        let q = self.poly(r, &EXP.iter().enumerate().map(scaled).collect::<Vec<f64>>())?;
        let tail = self.ir.mul(self.ir.fma(r, q, self.ir.fconst(r, 2.0))?, r)?;
        self.ir.fma(tail, power, self.ir.add(power, self.ir.fconst(r, 1.0))?)
    }

    /// Splits a positive number into an exponent (a float) and f with x = 2^e (1+f), √½ ≤ 1+f < √2.
    fn split(&self, x: V<'c>) -> Result<(V<'c>, V<'c>)> {
        // Subnormals are brought up first.
        let tiny = self.ir.fcmp(F::OLT, x, self.ir.fconst(x, f64::from(f32::MIN_POSITIVE)))?;
        let lifted = self.ir.mul(x, self.ir.fconst(x, 8_388_608.0))?;
        let lift = self.ir.select(tiny, self.ir.fconst(x, -23.0), self.ir.fconst(x, 0.0))?;
        let bits = self.bits(self.ir.select(tiny, lifted, x)?)?;
        let offset = self.ir.sub(bits, self.int(x, 0x3f35_04f3))?;
        let e = self.ir.op(Opcode::AShr, offset, self.int(x, 23))?;
        let mantissa = self.ir.sub(bits, self.ir.op(Opcode::Shl, e, self.int(x, 23))?)?;
        let f = self.ir.sub(self.float(mantissa)?, self.ir.fconst(x, 1.0))?;
        let e = self.ir.cast(Opcode::SIToFP, e, self.ir.f32().into())?;
        Ok((self.ir.add(e, lift)?, f))
    }

    /// NaN below 0, -inf at 0, +inf at +inf, else `y`.
    fn log_specials(&self, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        let infinity = self.ir.fconst(x, f64::INFINITY);
        let y = self.ir.select(self.ir.fcmp(F::OEQ, x, infinity)?, x, y)?;
        let zero = self.ir.fconst(x, 0.0);
        let y = self.ir.select(self.ir.fcmp(F::OEQ, x, zero)?, self.ir.fconst(x, f64::NEG_INFINITY), y)?;
        // Unordered or below zero: also keeps NaN.
        let invalid = self.ir.fcmp(F::ULT, x, zero)?;
        self.ir.select(invalid, self.ir.fconst(x, f64::NAN), y)
    }

    /// Natural logarithm.
    pub(super) fn log(&self, x: V<'c>) -> Result<V<'c>> {
        let (e, f) = self.split(x)?;
        let (head, tail) = self.log_of_reduced(f)?;
        // e ln2_hi + (f + (tail + e ln2_lo))
        let tail = self.ir.fma(e, self.ir.fconst(x, LN2_LO), tail)?;
        let y = self.ir.fma(e, self.ir.fconst(x, LN2_HI), self.ir.add(head, tail)?)?;
        self.log_specials(x, y)
    }

    /// ln(1+f) as a sum of two.
    fn log_of_reduced(&self, f: V<'c>) -> Result<(V<'c>, V<'c>)> {
        let q = self.poly(f, &LOG)?;
        let square = self.ir.mul(f, f)?;
        let half = self.ir.fma(self.ir.mul(f, q)?, square, self.ir.mul(square, self.ir.fconst(f, -0.5))?)?;
        Ok((f, half))
    }

    /// Logarithm of another base, given 1/ln(base) .
    pub(super) fn log_base(&self, x: V<'c>, inverse: f64, log2_of_2: f64) -> Result<V<'c>> {
        let (e, f) = self.split(x)?;
        let (head, tail) = self.log_of_reduced(f)?;
        // The logarithm of the mantissa times the constant, in two parts.
        let sum = self.ir.add(head, tail)?;
        let rest = self.ir.add(self.ir.sub(head, sum)?, tail)?;
        let (hi, lo) = split_constant(inverse);
        let product = self.ir.mul(sum, self.ir.fconst(x, hi))?;
        let error = self.ir.fma(sum, self.ir.fconst(x, hi), self.ir.fneg(product)?)?;
        let error = self.ir.fma(sum, self.ir.fconst(x, lo), error)?;
        let error = self.ir.fma(rest, self.ir.fconst(x, hi), error)?;
        // e times the constant of one binade (1 for base 2), likewise.
        let (hi, lo) = split_constant(log2_of_2);
        let error = self.ir.fma(e, self.ir.fconst(x, lo), error)?;
        let whole = self.ir.mul(e, self.ir.fconst(x, hi))?;
        let missed = self.ir.fma(e, self.ir.fconst(x, hi), self.ir.fneg(whole)?)?;
        let y = self.ir.add(whole, product)?;
        // |whole| ≥ |product| or whole is 0, so this difference is exact.
        let lost = self.ir.sub(product, self.ir.sub(y, whole)?)?;
        let y = self.ir.add(y, self.ir.add(lost, self.ir.add(error, missed)?)?)?;
        self.log_specials(x, y)
    }

    /// ln(1 + x)
    pub(super) fn log1p(&self, x: V<'c>) -> Result<V<'c>> {
        let one = self.ir.fconst(x, 1.0);
        let sum = self.ir.add(x, one)?;
        let (e, f) = self.split(sum)?;
        // What the sum lost, relative to it: ln(s + d) = ln s + d/s.
        let back = self.ir.sub(sum, one)?;
        let lost_small = self.ir.sub(x, back)?;
        let lost_large = self.ir.sub(one, self.ir.sub(sum, x)?)?;
        let is_large = self.ir.fcmp(F::OGT, x, one)?;
        let lost = self.ir.select(is_large, lost_large, lost_small)?;
        let correction = self.ir.fdiv(lost, sum)?;
        // Without an exponent the argument itself is the reduced one: nothing is lost.
        let direct = self.ir.fcmp(F::OEQ, e, self.ir.fconst(x, 0.0))?;
        let f = self.ir.select(direct, x, f)?;
        let correction = self.ir.select(direct, self.ir.fconst(x, 0.0), correction)?;
        let (head, tail) = self.log_of_reduced(f)?;
        let tail = self.ir.fma(e, self.ir.fconst(x, LN2_LO), self.ir.add(tail, correction)?)?;
        let y = self.ir.fma(e, self.ir.fconst(x, LN2_HI), self.ir.add(head, tail)?)?;
        let y = self.log_specials(sum, y)?;
        // -0 stays -0.
        self.ir.select(self.ir.fcmp(F::OEQ, x, self.ir.fconst(x, 0.0))?, x, y)
    }

    /// Error function: an odd polynomial below 0.9, 1 - e^(polynomial) above.
    pub(super) fn erf(&self, x: V<'c>) -> Result<V<'c>> {
        let one = self.ir.fconst(x, 1.0);
        let t = self.abs(x)?;
        let u = self.ir.mul(x, x)?;
        let small = self.ir.fma(t, self.poly(u, &ERF)?, t)?;
        let limited = self.at_most(t, 4.0)?;
        let z = self.poly(limited, &LOG_ERFC)?;
        let (shifted, n) = self.nearest(z, LOG2E)?;
        let r = self.ir.fma(n, self.ir.fconst(x, -LN2_HI), z)?;
        let r = self.ir.fma(n, self.ir.fconst(x, -LN2_LO), r)?;
        let e = self.ir.mul(self.exp_of_reduced(r)?, self.power_of_shifted(shifted)?)?;
        let large = self.ir.sub(one, e)?;
        let is_small = self.ir.fcmp(F::OLT, t, self.ir.fconst(x, 0.9))?;
        self.copysign(self.ir.select(is_small, small, large)?, x)
    }
}

/// A constant as the sum of a float and what that misses.
fn split_constant(c: f64) -> (f64, f64) {
    let hi = f64::from(c as f32);
    (hi, c - hi)
}
