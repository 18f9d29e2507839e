//! What follows an integer product: zero points are taken out, bias comes in, the sum is rounded to the output's scale or
//! becomes float32. The order of float operations is that of the libraries behind PyTorch, as answers agree to the bit.

use super::ints::{Params, quantizer};
use crate::diag::{Diagnostic, Result};
use crate::kernels::Affine;
use crate::kernels::int8::qgemm::Quantization;
use crate::tensor::{DType, Quantizer, Tensor};

/// What is done to the result before it is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// Nothing.
    None,
    /// Negative numbers become 0.
    Relu,
}

/// Scales of weights: one, or one an output.
pub struct WeightScales {
    scales: Vec<f32>,
    zero_points: Vec<i32>,
    per_channel: bool,
}

impl WeightScales {
    /// Those of a weight. Fails for float scales.
    pub fn of(weight: &Tensor) -> Result<WeightScales> {
        match &*quantizer(weight)? {
            Quantizer::PerTensor { scale, zero_point } => Ok(WeightScales {
                scales: vec![*scale as f32],
                zero_points: vec![*zero_point as i32],
                per_channel: false,
            }),
            Quantizer::PerChannel { scales, zero_points, .. } => Ok(WeightScales {
                scales: scales.iter().map(|s| *s as f32).collect(),
                zero_points: zero_points.iter().map(|z| *z as i32).collect(),
                per_channel: true,
            }),
            other @ Quantizer::PerChannelFloat { .. } => {
                Err(Diagnostic::runtime(format!("Unsupported qscheme: {}", other.scheme())))
            }
        }
    }

    /// Whether all zero points are 0.
    pub fn is_symmetric(&self) -> bool {
        self.zero_points.iter().all(|z| *z == 0)
    }

    /// As the kernels of packed weights take them.
    pub fn quantization(&self) -> Result<Quantization> {
        if self.per_channel {
            let scales: Vec<f64> = self.scales.iter().map(|s| f64::from(*s)).collect();
            return Quantization::per_channel(&scales, &self.zero_points);
        }
        Ok(Quantization::per_tensor(Affine { scale: self.scale(0).into(), zero_point: self.zero_point(0) }))
    }

    fn scale(&self, output: usize) -> f32 {
        let at = if self.per_channel { output } else { 0 };
        self.scales.get(at).copied().unwrap_or(1.0)
    }

    /// The integer of an output's weights that stands for 0.
    pub fn zero_point(&self, output: usize) -> i32 {
        let at = if self.per_channel { output } else { 0 };
        self.zero_points.get(at).copied().unwrap_or(0)
    }
}

enum Finish {
    /// `round((sum + bias / (input * weight)) * (input * weight / output)) + zero point`
    Fbgemm { input: f32, output: f32 },
    /// `round((sum * input * weight + bias) / output + zero point)`
    OneDnn { input: f32, inverse: f32 },
    /// `sum * input * weight + bias`
    Float { input: f32 },
}

/// The stage of one call.
pub struct Stage<'a> {
    finish: Finish,
    out: Params,
    scales: &'a WeightScales,
    bias: Option<&'a [f32]>,
    epilogue: Epilogue,
    range: (i64, i64),
}

impl<'a> Stage<'a> {
    /// The order of fbgemm: linear layers, and convolutions with unsymmetric weights. Results are quint8.
    pub fn fbgemm(
        input: Params,
        out: Params,
        scales: &'a WeightScales,
        bias: Option<&'a [f32]>,
        epilogue: Epilogue,
    ) -> Stage<'a> {
        let finish = Finish::Fbgemm { input: input.scale as f32, output: out.scale as f32 };
        Stage { finish, out, scales, bias, epilogue, range: (0, 255) }
    }

    /// The order of oneDNN: other convolutions. Results are of the input's dtype.
    pub fn onednn(
        input: Params,
        out: Params,
        scales: &'a WeightScales,
        bias: Option<&'a [f32]>,
        epilogue: Epilogue,
        dtype: DType,
    ) -> Stage<'a> {
        // The library is given reciprocals, and takes reciprocals of them.
        let finish = Finish::OneDnn {
            input: 1.0 / ((1.0 / input.scale) as f32),
            inverse: 1.0 / (1.0 / ((1.0 / out.scale) as f32)),
        };
        let range = dtype.quantized_range().unwrap_or((0, 255));
        Stage { finish, out, scales, bias, epilogue, range }
    }

    /// Float32 results.
    pub fn float(
        input: Params,
        scales: &'a WeightScales,
        bias: Option<&'a [f32]>,
        epilogue: Epilogue,
    ) -> Stage<'a> {
        let finish = Finish::Float { input: input.scale as f32 };
        let out = Params { scale: 1.0, zero_point: 0 };
        Stage { finish, out, scales, bias, epilogue, range: (0, 0) }
    }

    /// A sum without zero points as an integer of the output.
    pub fn round(&self, sum: i32, output: usize) -> i64 {
        let (weight, bias) =
            (self.scales.scale(output), self.bias.and_then(|b| b.get(output)).copied().unwrap_or(0.0));
        let (zero, sum) = (self.out.zero_point, sum as f32);
        let relu = self.epilogue == Epilogue::Relu;
        match self.finish {
            Finish::Fbgemm { input, output } => {
                let both = input * weight;
                let sum = if bias == 0.0 {
                    sum
                } else if self.scales.per_channel {
                    sum + bias / both
                } else {
                    // One scale: its reciprocal, and the product is not rounded before it is added.
                    bias.mul_add(1.0 / both, sum)
                };
                let low = if relu { zero } else { self.range.0 };
                let rounded = (sum * (both / output)).round_ties_even() as i64;
                rounded.saturating_add(zero).max(low).min(self.range.1)
            }
            Finish::OneDnn { input, inverse } => {
                let real = (sum * input) * weight + bias;
                let real = if relu && real <= 0.0 { 0.0 } else { real };
                ((real * inverse + zero as f32).round_ties_even() as i64).clamp(self.range.0, self.range.1)
            }
            Finish::Float { .. } => 0,
        }
    }

    /// A sum without zero points as a real number.
    pub fn real(&self, sum: i32, output: usize) -> f32 {
        let Finish::Float { input } = self.finish else { return 0.0 };
        let (weight, bias) =
            (self.scales.scale(output), self.bias.and_then(|b| b.get(output)).copied().unwrap_or(0.0));
        let real = (sum as f32).mul_add(input * weight, bias);
        if self.epilogue == Epilogue::Relu { real.max(0.0) } else { real }
    }
}
