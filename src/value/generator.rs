//! The random generator: PyTorch's on the CPU. A Mersenne twister (Matsumoto and Nishimura, MT19937, 1998)
//! gives 32 bits at a time; distributions take from them what PyTorch's kernels take, so that seeded programs draw the
//! same numbers. Knows no op.

use crate::diag::{Diagnostic, Result};

/// Words of the twister's state.
const WORDS: usize = 624;
/// Bytes of the state in PyTorch's form.
const STATE_BYTES: usize = 5056;

/// A seeded generator.
pub struct Generator {
    seed: u64,
    state: Box<[u32; WORDS]>,
    next: usize,
    /// Normal numbers are made in pairs; the second of a pair waits here.
    normal: Option<f64>,
}

/// Binomially distributed numbers in the arithmetic of a type.
macro_rules! binomial {
    ($T:ty, $generator:expr, $count:expr, $p:expr) => {{
        let (g, count, p): (&mut Generator, $T, $T) = ($generator, $count, $p);
        if count.is_nan() || p.is_nan() {
            return <$T>::NAN;
        }
        if count <= 0.0 || p <= 0.0 {
            return 0.0;
        }
        // That many draws would not terminate.
        if p >= 1.0 || count.is_infinite() {
            return count;
        }
        let rare = if p <= 0.5 { p } else { 1.0 - p };
        let drawn = if count * rare >= 10.0 {
            // Constants are doubles, and what they are in rounds to the type at its end.
            let d = |x: $T| f64::from(x);
            let deviation = (count * rare * (1.0 - rare)).sqrt();
            let b = (1.15 + 2.53 * d(deviation)) as $T;
            let a = (-0.0873 + 0.0248 * d(b) + 0.01 * d(rare)) as $T;
            let center = (d(count * rare) + 0.5) as $T;
            let quick = (0.92 - 4.2 / d(b)) as $T;
            let odds = rare / (1.0 - rare);
            let alpha = ((2.83 + 5.1 / d(b)) * d(deviation)) as $T;
            let mode = ((count + 1.0) * rare).floor();
            loop {
                let u = (d(g.uniform() as $T) - 0.5) as $T;
                let v = g.uniform() as $T;
                let us = (0.5 - d(u.abs())) as $T;
                let k = ((2.0 * a / us + b) * u + center).floor();
                if d(us) >= 0.07 && v <= quick {
                    break k;
                }
                if k < 0.0 || k > count {
                    continue;
                }
                let height = (v * alpha / (a / (us * us) + b)).ln();
                let tail = |k: $T| d(stirling(d(k), d((k + 1.0) * (k + 1.0))) as $T);
                let (n, r, from_mode, from_k) =
                    (d(count), d(odds), d(count - mode + 1.0), d(count - k + 1.0));
                let bound = (d(mode) + 0.5) * ((d(mode) + 1.0) / (r * from_mode)).ln()
                    + (n + 1.0) * (from_mode / from_k).ln()
                    + (d(k) + 0.5) * (r * from_k / (d(k) + 1.0)).ln()
                    + tail(mode)
                    + tail(count - mode)
                    - tail(k)
                    - tail(count - k);
                let bound = bound as $T;
                if height <= bound {
                    break k;
                }
            }
        } else {
            let (mut sum, mut successes, log) = (0.0, 0.0, (-rare).ln_1p());
            loop {
                sum += ((g.uniform() as $T).ln() / log).ceil();
                // A probability that rounds away would leave no end but NaN.
                if sum > count || sum.is_nan() {
                    break successes;
                }
                successes += 1.0;
            }
        };
        if p <= 0.5 { drawn } else { count - drawn }
    }};
}

impl Generator {
    /// What PyTorch seeds a generator with that a program makes without a seed.
    pub const DEFAULT_SEED: u64 = 67_280_421_310_721;

    /// The generator after `torch.manual_seed(seed)`; the low 32 bits count.
    pub fn new(seed: u64) -> Generator {
        let mut state = Box::new([seed as u32; WORDS]);
        for i in 1..WORDS {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Generator { seed, state, next: WORDS, normal: None }
    }

    /// A generator seeded from the system's entropy, as an unseeded program of PyTorch has it.
    pub fn from_entropy() -> Result<Generator> {
        let seed = getrandom::u64().map_err(|e| {
            Diagnostic::runtime(format!("the system gives no entropy to seed the random generator: {e}"))
                .hint("give a seed (`--seed`), or call torch.manual_seed first")
        })?;
        // What PyTorch shows of such a seed is below 2^53, so that it survives as a float.
        Ok(Generator::new(seed & ((1 << 53) - 1)))
    }

    /// What it was seeded with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The state as `torch.get_rng_state()` gives it: 5,056 bytes.
    pub fn state(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let left = WORDS + 1 - self.next.max(1);
        out.extend(self.seed.to_le_bytes());
        out.extend((left as u32).to_le_bytes());
        out.extend(1u32.to_le_bytes()); // it is seeded
        out.extend((self.next as u64).to_le_bytes());
        self.state.iter().for_each(|word| out.extend(u64::from(*word).to_le_bytes()));
        let normals = [0.0, self.normal.unwrap_or(0.0), 0.0];
        normals.iter().for_each(|x: &f64| out.extend(x.to_le_bytes()));
        out.extend(u32::from(self.normal.is_some()).to_le_bytes());
        // A number in single precision that waits: never one here.
        out.resize(STATE_BYTES, 0);
        out
    }

    /// A generator in a state of `torch.get_rng_state()`. Fails for invalid bytes.
    pub fn from_state(bytes: &[u8]) -> Result<Generator> {
        let wrong = || Diagnostic::input("the state of the random generator is not PyTorch's");
        let long = |at: usize| -> Result<u64> {
            let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
            word.map(u64::from_le_bytes).ok_or_else(wrong)
        };
        if bytes.len() != STATE_BYTES {
            return Err(wrong());
        }
        let (seed, counts, next) = (long(0)?, long(8)?, long(16)?);
        // A generator that has drawn all words, or none yet, makes new ones next.
        let next = if counts as u32 == 1 { WORDS } else { usize::try_from(next).map_err(|_| wrong())? };
        if next == 0 || next > WORDS {
            return Err(wrong());
        }
        let mut state = Box::new([0u32; WORDS]);
        for (n, word) in state.iter_mut().enumerate() {
            *word = u32::try_from(long(24 + 8 * n)?).map_err(|_| wrong())?;
        }
        let after = 24 + 8 * WORDS;
        let waits = long(after + 24)? as u32 != 0;
        let normal = if waits { Some(f64::from_bits(long(after + 8)?)) } else { None };
        Ok(Generator { seed, state, next, normal })
    }

    fn twist(&mut self) {
        for i in 0..WORDS {
            let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + 397) % WORDS] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// 32 random bits.
    pub fn bits32(&mut self) -> u32 {
        if self.next == WORDS {
            self.twist();
        }
        let mut x = self.state[self.next];
        self.next += 1;
        x ^= x >> 11;
        x ^= (x << 7) & 0x9d2c_5680;
        x ^= (x << 15) & 0xefc6_0000;
        x ^ (x >> 18)
    }

    /// 64 random bits, the high half first.
    pub fn bits64(&mut self) -> u64 {
        let high = u64::from(self.bits32());
        high << 32 | u64::from(self.bits32())
    }

    /// In [0, 1), a multiple of 2^-24.
    pub fn uniform_single(&mut self) -> f64 {
        f64::from(self.bits32() & 0x00ff_ffff) / 16_777_216.0
    }

    /// In [0, 1), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits64() & ((1 << 53) - 1)) as f64 / 9_007_199_254_740_992.0
    }

    /// Normally distributed (Box and Muller, 1958), one at a time.
    pub fn normal(&mut self) -> f64 {
        if let Some(waiting) = self.normal.take() {
            return waiting;
        }
        let angle = std::f64::consts::TAU * self.uniform();
        let radius = (-2.0 * (-self.uniform()).ln_1p()).sqrt();
        self.normal = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Many normally distributed numbers, one after the other.
    pub fn normals_each(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.normal()).collect()
    }

    /// Many normally distributed numbers for a dense tensor: from 16 on they are made sixteen at a time from numbers that
    /// `uniform` draws. `blockwise` draws those of a block when it is reached (floats of 16 bits) and not all before.
    pub fn normals(&mut self, count: usize, uniform: fn(&mut Generator) -> f64, blockwise: bool) -> Vec<f64> {
        if count < 16 {
            return self.normals_each(count);
        }
        let drawn = if blockwise { count / 16 * 16 } else { count };
        let mut out: Vec<f64> = (0..drawn).map(|_| uniform(self)).collect();
        out.resize(count, 0.0);
        out.chunks_exact_mut(16).for_each(sixteen);
        if !count.is_multiple_of(16) {
            // The last sixteen are drawn anew, as a block that overlaps the one before.
            let last = &mut out[count - 16..];
            last.iter_mut().for_each(|x| *x = uniform(self));
            sixteen(last);
        }
        out
    }

    /// Exponentially distributed with rate 1.
    pub fn exponential(&mut self) -> f64 {
        -(-self.uniform()).ln_1p()
    }

    /// Poisson distributed: by products of uniform numbers below a rate of 10, above by transformed rejection (Hörmann,
    /// The transformed rejection method for generating Poisson random variables, 1993).
    pub fn poisson(&mut self, rate: f64) -> f64 {
        if rate == 0.0 || !rate.is_finite() {
            return rate;
        }
        if rate < 10.0 {
            let (floor, mut product, mut count) = ((-rate).exp(), 1.0, 0.0);
            loop {
                product *= self.uniform();
                if product <= floor {
                    return count;
                }
                count += 1.0;
            }
        }
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse = 1.1239 + 1.1328 / (b - 3.4);
        let quick = 0.9277 - 3.6224 / (b - 2.0);
        loop {
            let u = self.uniform() - 0.5;
            let v = self.uniform();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
            if us >= 0.07 && v <= quick {
                return k;
            }
            if k < 0.0 || (us < 0.013 && v > us) {
                continue;
            }
            let height = v.ln() + inverse.ln() - (a / (us * us) + b).ln();
            if height <= -rate + k * rate.ln() - libm::lgamma(k + 1.0) {
                return k;
            }
        }
    }

    /// Gamma distributed with scale 1, by rejection from a cube of a normal number (Marsaglia and Tsang, A simple method for
    /// generating gamma variables, 2000); shapes below 1 are drawn one higher and scaled down. NaN for a shape that is one.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape == 0.0 || shape.is_nan() {
            return shape;
        }
        let (mut scale, mut shape) = (1.0, shape);
        if shape < 1.0 {
            scale = (1.0 - self.uniform()).powf(1.0 / shape);
            shape += 1.0;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let (x, y) = loop {
                let x = self.normal();
                let y = 1.0 + c * x;
                if y > 0.0 || y.is_nan() {
                    break (x, y);
                }
            };
            let (v, u, xx) = (y * y * y, 1.0 - self.uniform(), x * x);
            // Written so that NaN ends it.
            let rejected = u >= 1.0 - 0.0331 * xx * xx && u.ln() >= 0.5 * xx + d * (1.0 - v + v.ln());
            if !rejected {
                return scale * d * v;
            }
        }
    }

    /// Successes in `count` throws of probability `p`: below ten expected ones by geometric gaps, above by transformed rejection
    /// (Hörmann, The generation of binomial random variates, 1993). NaN where an argument is one.
    pub fn binomial(&mut self, count: f64, p: f64) -> f64 {
        binomial!(f64, self, count, p)
    }

    /// As [`Generator::binomial`], computed in float32.
    pub fn binomial_single(&mut self, count: f32, p: f32) -> f32 {
        binomial!(f32, self, count, p)
    }

    /// From 0 below `range`; ranges from 2^28 on take 64 bits.
    pub fn below(&mut self, range: u64) -> u64 {
        if range >= 1 << 28 { self.bits64() % range } else { u64::from(self.bits32()) % range.max(1) }
    }
}

/// What Stirling's formula for ln k! leaves: small numbers by its definition, others by the series.
/// `square` is that of k + 1.
fn stirling(k: f64, square: f64) -> f64 {
    let n = k + 1.0;
    if k <= 9.0 {
        let half_log_tau = 0.918_938_533_204_672_8;
        return libm::lgamma(n) - ((k + 0.5) * n.ln() - n + half_log_tau);
    }
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / n
}

/// Sixteen uniform numbers become normal ones: the first eight give radii, the last eight angles.
fn sixteen(block: &mut [f64]) {
    let (radii, angles) = block.split_at_mut(8);
    for (x, y) in radii.iter_mut().zip(angles) {
        let radius = (-2.0 * (1.0 - *x).ln()).sqrt();
        let angle = std::f64::consts::TAU * *y;
        *x = radius * angle.cos();
        *y = radius * angle.sin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_go_on_where_they_were_taken() {
        for draws in [0, 1, 5, 623, 624, 625] {
            let mut one = Generator::new(7);
            (0..draws).for_each(|_| {
                one.bits32();
            });
            one.normal();
            let mut other = Generator::from_state(&one.state()).expect("a state");
            assert_eq!(other.state(), one.state());
            let next = |g: &mut Generator| (g.normal().to_bits(), g.bits64(), g.seed());
            assert_eq!(next(&mut one), next(&mut other));
        }
        assert!(Generator::from_state(&[0; 5056]).is_err());
        assert!(Generator::from_state(&[]).is_err());
    }

    #[test]
    fn it_is_the_mersenne_twister() {
        // The published test: the 10,000th number from the seed 5489.
        let mut g = Generator::new(5489);
        let last = (0..10_000).map(|_| g.bits32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn numbers_are_those_of_torch_manual_seed_0() {
        let mut g = Generator::new(0);
        let close = |x: f64, y: f64| (x - y).abs() < 5e-5;
        assert!(close(g.uniform_single(), 0.4963) && close(g.uniform_single(), 0.7682));
        assert!(close(g.uniform_single(), 0.0885));
        assert!(close(g.uniform(), 0.0562) && close(g.uniform(), 0.0726) && close(g.uniform(), 0.1716));
        assert!(close(g.normal(), 0.6472) && close(g.normal(), 0.2490) && close(g.normal(), -0.3354));
    }
}
