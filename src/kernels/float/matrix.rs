//! Linear layers: products of float32 rows with weights packed once, with an epilogue. Knows layers, no ops.

use super::channels::transpose;
use super::conv::PackedConv;
use super::epilogue::Epilogue;
use super::shape::{ConvShape, Images, Layout};
use crate::diag::Result;
use crate::resources::memory;

/// Weights of a linear layer, packed.
#[derive(Debug)]
pub struct PackedMatrix(PackedConv);

impl PackedMatrix {
    /// Packs weights in the order of `torch.nn.Linear`: outputs, then inputs. Fails where sizes do not fit, or without memory.
    pub fn new(outputs: usize, inputs: usize, weights: &[f32]) -> Result<PackedMatrix> {
        let shape = ConvShape {
            in_channels: inputs,
            out_channels: outputs,
            kernel: [1; 2],
            stride: [1; 2],
            padding: [[0; 2]; 2],
            dilation: [1; 2],
            groups: 1,
        };
        Ok(PackedMatrix(PackedConv::new(shape, weights, Layout::ChannelsLast)?))
    }

    /// Packs weights in the order of `torch.addmm`: inputs, then outputs. Fails as `new`.
    pub fn from_columns(inputs: usize, outputs: usize, weights: &[f32]) -> Result<PackedMatrix> {
        let mut turned = memory::filled(weights.len(), 0f32)?;
        transpose(weights, 1, inputs, outputs, &mut turned)?;
        PackedMatrix::new(outputs, inputs, &turned)
    }

    /// Features of a row.
    pub fn inputs(&self) -> usize {
        self.0.shape().in_channels
    }

    /// Features of a result.
    pub fn outputs(&self) -> usize {
        self.0.shape().out_channels
    }

    /// Multiplies `rows` rows that lie `x_pitch` floats apart into rows of `out` that lie `pitch` floats apart. Fails where
    /// sizes do not fit, or without memory.
    pub fn run(
        &self,
        (x, rows, x_pitch): (&[f32], usize, usize),
        epilogue: &Epilogue<'_>,
        out: &mut [f32],
        pitch: usize,
    ) -> Result<()> {
        let images = Images { values: x, batch: rows.min(1), sizes: [1, rows.max(1)], pitch: x_pitch };
        self.0.run(images, epilogue, out, pitch)
    }
}
