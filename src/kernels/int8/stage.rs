//! What follows an integer product: zero points are taken out, bias comes in, and the sum is rounded to 8 bits or becomes
//! float32. The order of the float operations is that of the libraries behind PyTorch, as answers agree to the bit.

use super::quantization::{Affine, Quantization};
use crate::diag::Result;
use crate::resources::{Scratch, memory};

/// Whose order of operations the rounding of a sum follows. PyTorch's engine for x86 uses both libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Bias is divided by the product of scales and added to the integer sum, which is then scaled and rounded.
    Fbgemm,
    /// The sum is scaled by input and weight, bias is added, the result scaled and moved by the zero point, then rounded.
    OneDnn,
}

impl Engine {
    /// The engine that PyTorch takes for a convolution.
    pub fn of_convolution(groups: usize, weights: &Quantization) -> Engine {
        const MOST_GROUPS: usize = 100;
        let symmetric = weights.zero_points().iter().all(|z| *z == 0);
        if symmetric && groups <= MOST_GROUPS { Engine::OneDnn } else { Engine::Fbgemm }
    }
}

/// What becomes of the sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finish {
    /// `round(fma(a, b, sum) * c) + zero_point`
    Fbgemm,
    /// `round(((sum * input) * a + b) * inverse + zero_point)`
    OneDnn { input: f32, inverse: f32 },
    /// `fma(sum, a, b)` as float32.
    Float,
}

/// The output stage of one product: numbers of each column, padded to whole panels.
pub(super) struct Stage {
    pub finish: Finish,
    /// Added to the sum: what the input's zero point contributes.
    pub correction: Scratch<i32>,
    /// Zero points of the columns' weights, where there are any: times the sum of a row's inputs they are taken off.
    pub weight_zeros: Scratch<i32>,
    /// Numbers of `finish`.
    pub a: Scratch<f32>,
    pub b: Scratch<f32>,
    pub c: Scratch<f32>,
    /// Bounds of the rounded number before the zero point is added (OneDnn: after), as floats.
    pub bounds: (f32, f32),
    /// Added after rounding (OneDnn: before).
    pub zero_point: i32,
    /// Negative results become 0 before the zero point is added.
    pub relu: bool,
    /// Whether numbers may be too large for the 32-bit integers that they are rounded to, or have a bound of their own: where
    /// neither holds, saturating to bytes is all the bounds there are.
    pub bounded: bool,
    /// Terms of a sum.
    depth: usize,
}

/// What the stage is made of.
pub(super) struct Plan<'a, O: Fn(usize) -> usize> {
    pub input: Affine,
    pub weights: &'a Quantization,
    /// Sum of each output's weights.
    pub sums: &'a [i32],
    /// Weights of an output.
    pub depth: usize,
    pub bias: Option<&'a [f32]>,
    /// The output whose weights stand at a column of the panels; none such pads.
    pub order: O,
    pub columns: usize,
    pub relu: bool,
}

/// Numbers below this, and their zero points, are rounded to 32-bit integers.
const FAR: f32 = 1e9;

/// Adding it to a float of up to 22 bits rounds that to an integer, half to even, which then stands in the low bits.
const MAGIC: f32 = 12_582_912.0;

impl Stage {
    /// Sums become 8-bit numbers.
    pub fn rounding<O: Fn(usize) -> usize>(
        plan: Plan<'_, O>,
        output: Affine,
        engine: Engine,
    ) -> Result<Stage> {
        let (input, out) = (plan.input.scale, output.scale as f32);
        let zero = output.zero_point as f32;
        match engine {
            Engine::Fbgemm => {
                let low = if plan.relu { 0.0 } else { -zero };
                let one_scale = !plan.weights.is_per_channel();
                let mut stage = Stage::with(plan, |weight, bias| {
                    let both = input as f32 * weight;
                    // One scale: its reciprocal, and the product is not rounded before it is added.
                    let (a, b) = if one_scale { (bias, 1.0 / both) } else { (bias / both, 1.0) };
                    if bias == 0.0 { [0.0, 1.0, both / out] } else { [a, b, both / out] }
                })?;
                stage.bounds = (low, 255.0 - zero);
                stage.zero_point = output.zero_point;
                let largest =
                    stage.largest(|sum, [a, b, c]| (a * b).abs().max(sum + (a * b).abs()) * c.abs());
                stage.bounded = stage.relu || !(largest < FAR);
                Ok(stage)
            }
            Engine::OneDnn => {
                // The library is given reciprocals, and takes reciprocals of them.
                let input = 1.0 / ((1.0 / input) as f32);
                let inverse = 1.0 / (1.0 / ((1.0 / output.scale) as f32));
                let mut stage = Stage::with(plan, |weight, bias| [weight, bias, 0.0])?;
                stage.finish = Finish::OneDnn { input, inverse };
                stage.bounds = (0.0, 255.0);
                stage.zero_point = output.zero_point;
                let largest = stage.largest(|sum, [a, b, _]| (sum * input * a.abs() + b.abs()) * inverse);
                stage.bounded = stage.relu || !(largest < FAR);
                Ok(stage)
            }
        }
    }

    /// Sums become float32.
    pub fn float<O: Fn(usize) -> usize>(plan: Plan<'_, O>) -> Result<Stage> {
        let input = plan.input.scale as f32;
        let mut stage = Stage::with(plan, |weight, bias| [input * weight, bias, 0.0])?;
        stage.finish = Finish::Float;
        Ok(stage)
    }

    fn with<O: Fn(usize) -> usize>(
        plan: Plan<'_, O>,
        numbers: impl Fn(f32, f32) -> [f32; 3],
    ) -> Result<Stage> {
        let n = plan.columns;
        let any_zero = plan.weights.zero_points().iter().any(|z| *z != 0);
        let mut stage = Stage {
            finish: Finish::Fbgemm,
            correction: memory::filled(n, 0)?,
            weight_zeros: memory::filled(if any_zero { n } else { 0 }, 0)?,
            a: memory::filled(n, 0.0)?,
            b: memory::filled(n, 0.0)?,
            c: memory::filled(n, 0.0)?,
            bounds: (0.0, 0.0),
            zero_point: 0,
            relu: plan.relu,
            bounded: true,
            depth: plan.depth,
        };
        let input_zero = plan.input.zero_point;
        for at in 0..n {
            let column = (plan.order)(at);
            let Some(sum) = plan.sums.get(column) else { continue };
            let (scale, zero) = plan.weights.of(column);
            let bias = plan.bias.map_or(0.0, |b| b[column]);
            let [a, b, c] = numbers(scale, bias);
            (stage.a[at], stage.b[at], stage.c[at]) = (a, b, c);
            // Σ (x - x0)(w - w0) = Σ x w - w0 Σ x - x0 (Σ w - depth w0); all modulo 2^32, as the sums themselves.
            let weights = sum.wrapping_sub((plan.depth as i32).wrapping_mul(zero));
            stage.correction[at] = input_zero.wrapping_mul(weights).wrapping_neg();
            if any_zero {
                stage.weight_zeros[at] = zero;
            }
        }
        Ok(stage)
    }

    /// The largest number that a column may be before its zero point is added: `number` of the largest sum and the column's
    /// numbers. NaN where one of them is.
    fn largest(&self, number: impl Fn(f32, [f32; 3]) -> f32) -> f32 {
        // Each term is the product of two differences of bytes, and sums are modulo 2^32.
        let sum = (self.depth as f32 * 65536.0).min(i32::MAX as f32);
        let columns = self.a.iter().zip(&self.b).zip(&self.c);
        // Bits of numbers from 0 on are ordered as the numbers, NaN above all; integers have a maximum in vectors.
        let bits = columns.map(|((a, b), c)| number(sum, [*a, *b, *c]).abs().to_bits());
        f32::from_bits(bits.fold(0, u32::max))
    }

    /// Numbers that all columns share: whether they follow OneDnn, its factors, and what is the lowest number (OneDnn: before it
    /// is scaled). Without a bound of its own that is the lowest float: what is below 0 becomes 0 when it is packed to bytes.
    #[cfg(target_arch = "x86_64")]
    pub fn shared(&self) -> (bool, [f32; 2], f32) {
        let (one_dnn, factors) = match self.finish {
            Finish::OneDnn { input, inverse } => (true, [input, inverse]),
            Finish::Fbgemm | Finish::Float => (false, [0.0, 0.0]),
        };
        let low = if one_dnn { 0.0 } else { self.bounds.0 };
        (one_dnn, factors, if self.relu { low } else { f32::NEG_INFINITY })
    }

    /// Whether the sums of rows are needed.
    pub fn needs_row_sums(&self) -> bool {
        !self.weight_zeros.is_empty()
    }

    /// The sum without zero points, as float, for column `at`.
    #[inline(always)]
    fn exact(&self, sum: i32, at: usize, row: i32) -> f32 {
        let mut sum = sum.wrapping_add(self.correction[at]);
        if let Some(zero) = self.weight_zeros.get(at) {
            sum = sum.wrapping_sub(zero.wrapping_mul(row));
        }
        sum as f32
    }

    /// Sums of the columns from `at` on as 8-bit numbers. `row`: the sum of the row's inputs.
    #[inline(always)]
    pub fn round(&self, sums: &[i32], at: usize, row: i32, out: &mut [u8]) {
        let (low, high) = self.bounds;
        match self.finish {
            Finish::OneDnn { input, inverse } => {
                let (zero, floor) = (self.zero_point as f32, if self.relu { 0.0 } else { f32::NEG_INFINITY });
                for (i, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                    let at = at + i;
                    let real = (self.exact(*sum, at, row) * input) * self.a[at] + self.b[at];
                    let real = if real > floor { real } else { floor };
                    let moved = (real * inverse + zero).max(low).min(high);
                    *out = (moved + MAGIC).to_bits() as u8;
                }
            }
            Finish::Fbgemm | Finish::Float => {
                for (i, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                    let at = at + i;
                    let sum = self.a[at].mul_add(self.b[at], self.exact(*sum, at, row));
                    let scaled = (sum * self.c[at]).max(low).min(high);
                    *out = (scaled + MAGIC).to_bits().wrapping_add(self.zero_point as u32) as u8;
                }
            }
        }
    }

    /// Sums of the columns from `at` on as float32.
    #[inline(always)]
    pub fn real(&self, sums: &[i32], at: usize, row: i32, out: &mut [f32]) {
        for (i, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
            let at = at + i;
            let real = self.exact(*sum, at, row).mul_add(self.a[at], self.b[at]);
            *out = if self.relu { real.max(0.0) } else { real };
        }
    }
}
