//! What integers mean: scales and zero points, of all numbers or of each output. No product is known here.

use crate::diag::{Diagnostic, Result};

/// Real numbers as integers: `real = scale * (integer - zero_point)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    /// Distance of neighbouring numbers; above 0.
    pub scale: f64,
    /// The integer that stands for 0.
    pub zero_point: i32,
}

/// What signed weights mean: one scale and zero point for all, or one for each output.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    scales: Vec<f32>,
    zero_points: Vec<i32>,
    per_channel: bool,
}

impl Quantization {
    /// The same for all weights.
    pub fn per_tensor(all: Affine) -> Quantization {
        Quantization { scales: vec![all.scale as f32], zero_points: vec![all.zero_point], per_channel: false }
    }

    /// One of each a channel of outputs. Fails if their numbers differ.
    pub fn per_channel(scales: &[f64], zero_points: &[i32]) -> Result<Quantization> {
        if scales.len() != zero_points.len() {
            return Err(Diagnostic::runtime(format!(
                "{} scales and {} zero points given for the channels of weights",
                scales.len(),
                zero_points.len()
            )));
        }
        let scales = scales.iter().map(|s| *s as f32).collect();
        Ok(Quantization { scales, zero_points: zero_points.to_vec(), per_channel: true })
    }

    /// Whether each output has its own.
    pub fn is_per_channel(&self) -> bool {
        self.per_channel
    }

    /// Those of some outputs.
    pub(super) fn part(&self, first: usize, count: usize) -> Quantization {
        if !self.per_channel {
            return self.clone();
        }
        let range = first..first + count;
        Quantization {
            scales: self.scales[range.clone()].to_vec(),
            zero_points: self.zero_points[range].to_vec(),
            per_channel: true,
        }
    }

    /// Zero points: one, or one an output.
    pub fn zero_points(&self) -> &[i32] {
        &self.zero_points
    }

    pub(super) fn fits(&self, outputs: usize) -> bool {
        self.scales.len() == if self.per_channel { outputs } else { 1 }
    }

    pub(super) fn of(&self, output: usize) -> (f32, i32) {
        let at = if self.per_channel { output } else { 0 };
        (self.scales[at], self.zero_points[at])
    }
}
