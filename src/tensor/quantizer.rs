//! How the integers of a quantized tensor stand for real numbers: `real = (integer - zero_point) * scale`, with one
//! scale and zero point for all elements or one a channel. It knows no operator and converts no elements.

use super::DType;
use crate::diag::{Diagnostic, Result};

/// The scheme and its numbers. Tensors share one behind an `Arc`; it never changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantizer {
    /// One scale and zero point (`torch.per_tensor_affine`).
    PerTensor {
        /// Distance of neighbouring integers.
        scale: f64,
        /// The integer that stands for 0.
        zero_point: i64,
    },
    /// One scale and zero point for each index of a dimension (`torch.per_channel_affine`).
    PerChannel {
        /// One a channel.
        scales: Vec<f64>,
        /// One a channel.
        zero_points: Vec<i64>,
        /// The dimension, not negative.
        axis: usize,
    },
    /// As before with zero points in float32, `real = integer * scale + bias` where the bias is
    /// `-scale * zero_point` (`torch.per_channel_affine_float_qparams`, of embeddings).
    PerChannelFloat {
        /// One a channel.
        scales: Vec<f32>,
        /// One a channel.
        zero_points: Vec<f32>,
        /// The dimension, not negative.
        axis: usize,
    },
}

impl Quantizer {
    /// The scheme's name in Python, without `torch.`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Quantizer::PerTensor { .. } => "per_tensor_affine",
            Quantizer::PerChannel { .. } => "per_channel_affine",
            Quantizer::PerChannelFloat { .. } => "per_channel_affine_float_qparams",
        }
    }

    /// PyTorch's code of the scheme, which is what programs see of it.
    pub fn scheme_code(&self) -> i64 {
        match self {
            Quantizer::PerTensor { .. } => 0,
            Quantizer::PerChannel { .. } => 1,
            Quantizer::PerChannelFloat { .. } => 4,
        }
    }

    /// Whether all elements have the same scale and zero point.
    pub fn is_uniform(&self) -> bool {
        matches!(self, Quantizer::PerTensor { .. })
    }

    /// The dimension of the channels.
    pub fn axis(&self) -> Option<usize> {
        match self {
            Quantizer::PerTensor { .. } => None,
            Quantizer::PerChannel { axis, .. } | Quantizer::PerChannelFloat { axis, .. } => Some(*axis),
        }
    }

    /// Scale and zero point of all elements.
    pub fn uniform(&self) -> Result<(f64, i64)> {
        match self {
            Quantizer::PerTensor { scale, zero_point } => Ok((*scale, *zero_point)),
            other => Err(Diagnostic::runtime(format!(
                "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got {}.",
                other.scheme()
            ))),
        }
    }

    /// Fails unless the numbers fit a tensor of these sizes: as many channels as the dimension has indices, zero points of
    /// 32 bits.
    pub fn check(&self, sizes: &[i64]) -> Result<()> {
        let (scales, zero_points, axis) = match self {
            Quantizer::PerTensor { zero_point, .. } => return within(&[*zero_point]),
            Quantizer::PerChannel { scales, zero_points, axis } => {
                within(zero_points)?;
                (scales.len(), zero_points.len(), *axis)
            }
            Quantizer::PerChannelFloat { scales, zero_points, axis } => {
                (scales.len(), zero_points.len(), *axis)
            }
        };
        if scales != zero_points {
            return Err(Diagnostic::runtime("number of elements in scales and zero_points must match"));
        }
        match sizes.get(axis) {
            Some(size) if usize::try_from(*size) == Ok(scales) => Ok(()),
            Some(size) => Err(Diagnostic::runtime(format!(
                "length of scales must equal to channel, expected {size} got, {scales}"
            ))),
            None => Err(Diagnostic::runtime("Channel axis out of range in per channel affine quantization.")),
        }
    }
}

/// Fails for a zero point that no integer of a quantized tensor can be.
fn within(zero_points: &[i64]) -> Result<()> {
    match zero_points.iter().find(|z| i32::try_from(**z).is_err()) {
        None => Ok(()),
        Some(z) => {
            Err(Diagnostic::runtime(format!("the zero point {z} of a quantized tensor is beyond 32 bits")))
        }
    }
}

impl DType {
    /// The integer type of a quantized one's elements; itself for others. Types with several elements a byte are bytes.
    pub fn integer_repr(self) -> DType {
        match self {
            DType::QI8 => DType::I8,
            DType::QU8 | DType::QU4x2 | DType::QU2x4 => DType::U8,
            DType::QI32 => DType::I32,
            other => other,
        }
    }

    /// qint8, quint8, qint32, quint4x2, quint2x4.
    pub fn is_quantized(self) -> bool {
        self.integer_repr() != self
    }

    /// The least and the greatest integer of a quantized type of whole elements.
    pub fn quantized_range(self) -> Option<(i64, i64)> {
        match self {
            DType::QI8 => Some((i8::MIN.into(), i8::MAX.into())),
            DType::QU8 => Some((0, u8::MAX.into())),
            DType::QI32 => Some((i32::MIN.into(), i32::MAX.into())),
            DType::QU4x2 => Some((0, 15)),
            DType::QU2x4 => Some((0, 3)),
            _ => None,
        }
    }
}
