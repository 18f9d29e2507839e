//! What is done to a layer's inputs before they are multiplied: an inference batch norm and an activation that stand in front
//! of it, gates of channels. It is done while inputs are copied to where they are multiplied from, so that it costs no pass
//! over memory of its own. Knows channels, no layers.

use super::epilogue::{Activation, Column, Epilogue};
use super::vector::{Isa, LANES, Lanes, Work, with};
use crate::diag::{Diagnostic, Result};

/// All that is applied to a layer's inputs, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prologue<'a> {
    /// Each channel's factor and what is added then.
    pub norm: Option<(&'a [f32], &'a [f32])>,
    /// Applied to the sums.
    pub activation: Activation,
    /// Factors of each image's channels: a row of channels for each image.
    pub gate: Option<&'a [f32]>,
}

impl Prologue<'_> {
    /// Fails unless all parts have `channels` channels, the gate of `batch` images.
    pub(super) fn check(&self, batch: usize, channels: usize) -> Result<()> {
        let norm = self.norm.is_none_or(|(scale, shift)| scale.len() == channels && shift.len() == channels);
        let gate = self.gate.is_none_or(|gate| batch.checked_mul(channels) == Some(gate.len()));
        if norm && gate {
            return Ok(());
        }
        Err(Diagnostic::runtime(format!(
            "what stands before a layer of {channels} channels needs as many factors"
        )))
    }

    /// Copies neighbouring channels from `first` on of as many pixels of an image as `to` has, each of `to.len() / pixels`
    /// channels; pixels of `from` lie `pitch` apart. `check` must have passed.
    pub(super) fn copy(&self, isa: Isa, from: &[f32], to: &mut [f32], place: Place) {
        with(isa, Copy { prologue: self, from, to, place });
    }
}

/// Which inputs are copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub image: usize,
    /// Channels of the layer.
    pub channels: usize,
    /// The first channel that is copied, and how many of each pixel.
    pub first: usize,
    pub count: usize,
    /// Floats from pixel to pixel of what is read.
    pub pitch: usize,
}

struct Copy<'a, 'p> {
    prologue: &'a Prologue<'p>,
    from: &'a [f32],
    to: &'a mut [f32],
    place: Place,
}

impl Work for Copy<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Prologue { norm, activation, gate } = *self.prologue;
        let p = self.place;
        let before = Epilogue { norm, activation, ..Epilogue::default() };
        let gate = gate.map(|gate| &gate[p.image * p.channels + p.first..][..p.count]);
        for (n, to) in self.to.chunks_mut(p.count.max(1)).enumerate() {
            let from = &self.from[n * p.pitch..][..to.len()];
            for (i, (from, to)) in from.chunks(LANES).zip(to.chunks_mut(LANES)).enumerate() {
                let column = Column::of(l, &before, p.first + i * LANES, from.len());
                let mut x = column.finish(l, &before, l.load_some(from, 0.0), 0);
                if let Some(gate) = gate {
                    x = l.mul(x, l.load_some(&gate[i * LANES..][..from.len()], 0.0));
                }
                l.store_some(to, x);
            }
        }
    }
}
