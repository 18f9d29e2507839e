//! Scales and zero points of single channels: which channel an element is of, its integer, its real number. No op is known here.

use super::ints::Params;
use crate::diag::Result;
use crate::resources::{Collect, Scratch};
use crate::tensor::{DType, Quantizer, Tensor};

/// The integer of a number of a channel.
pub fn channel_rounder(
    quantizer: &Quantizer,
    dtype: DType,
    low: i64,
    high: i64,
) -> impl Fn(f32, usize) -> i64 {
    let rounders: Vec<_> = match quantizer {
        Quantizer::PerChannel { scales, zero_points, .. } => {
            let each = scales.iter().zip(zero_points);
            each.map(|(s, z)| Params { scale: *s, zero_point: *z }.channel_rounder(dtype)).collect()
        }
        _ => Vec::new(),
    };
    let floats: Vec<(f32, f32)> = match quantizer {
        Quantizer::PerChannelFloat { scales, zero_points, .. } => {
            let inverse = |s: f32| if s == 0.0 { 1.0 } else { 1.0 / s };
            scales.iter().zip(zero_points).map(|(s, z)| (inverse(*s), *z)).collect()
        }
        _ => Vec::new(),
    };
    move |real, channel| match (rounders.get(channel), floats.get(channel)) {
        (Some(rounder), _) => rounder.integer(real),
        (_, Some((inverse, zero_point))) => {
            ((real * inverse + zero_point).round_ties_even() as i64).clamp(low, high)
        }
        _ => 0,
    }
}

/// The channel of each element of a dense tensor in memory order.
pub fn channel_of_each(tensor: &Tensor, axis: usize) -> Result<Scratch<usize>> {
    let layout = tensor.layout();
    let (stride, size) = (layout.strides[axis].max(1) as usize, layout.sizes[axis].max(1) as usize);
    (0..layout.numel()).map(|at| at / stride % size).scratch()
}

/// What an integer of a channel stands for.
pub fn channel_real(quantizer: &Quantizer, integer: i32, channel: usize) -> f32 {
    match quantizer {
        Quantizer::PerTensor { scale, zero_point } => {
            Params { scale: *scale, zero_point: *zero_point }.real(integer)
        }
        Quantizer::PerChannel { scales, zero_points, .. } => {
            let scale = scales.get(channel).copied().unwrap_or(1.0);
            Params { scale, zero_point: zero_points.get(channel).copied().unwrap_or(0) }.real(integer)
        }
        Quantizer::PerChannelFloat { scales, zero_points, .. } => {
            let scale = scales.get(channel).copied().unwrap_or(1.0);
            (integer as f32 - zero_points.get(channel).copied().unwrap_or(0.0)) * scale
        }
    }
}
