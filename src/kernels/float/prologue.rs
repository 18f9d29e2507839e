//! What is done to a layer's inputs before they are multiplied: an inference batch norm and an activation that stand in front
//! of it, gates of channels. It is done while inputs are copied to where they are multiplied from, so that it costs no pass
//! over memory of its own. Knows channels, no layers.

use super::epilogue::Activation;
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
            "the prologue of a layer of {channels} channels needs as many factors"
        )))
    }

    /// Copies channels of pixels of an image as `place` says; `check` must have passed.
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
    /// Floats from pixel to pixel of what is read, and of what is written.
    pub pitch: usize,
    pub to_pitch: usize,
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
        let own = p.first..p.first + p.count;
        let gate = gate.map(|gate| &gate[p.image * p.channels..][own.clone()]);
        let norm = norm.map(|(scale, shift)| (&scale[own.clone()], &shift[own.clone()]));
        let pixels = self.to.chunks_mut(p.to_pitch.max(1)).zip(self.from.chunks(p.pitch.max(1)));
        // Loops and no closures, which would pass vectors through memory.
        match (norm, activation.bounds(), gate) {
            (None, Some((f32::NEG_INFINITY, f32::INFINITY)), Some(gate)) => {
                for (to, from) in pixels {
                    gated(l, &from[..p.count], gate, &mut to[..p.count]);
                }
            }
            (Some(norm), Some(bounds), None) => {
                for (to, from) in pixels {
                    bounded(l, &from[..p.count], norm, bounds, &mut to[..p.count]);
                }
            }
            _ => {
                for (to, from) in pixels {
                    whole(l, &from[..p.count], (norm, activation, gate), &mut to[..p.count]);
                }
            }
        }
    }
}

/// A pixel's channels times their gates.
#[inline(always)]
fn gated<L: Lanes>(l: L, from: &[f32], gate: &[f32], to: &mut [f32]) {
    for ((from, gate), to) in from.chunks(LANES).zip(gate.chunks(LANES)).zip(to.chunks_mut(LANES)) {
        l.store_some(to, l.mul(l.load_some(from, 0.0), l.load_some(gate, 0.0)));
    }
}

/// A batch norm and bounds.
#[inline(always)]
fn bounded<L: Lanes>(
    l: L,
    from: &[f32],
    (scale, shift): (&[f32], &[f32]),
    (low, high): (f32, f32),
    to: &mut [f32],
) {
    let (low, high) = (l.splat(low), l.splat(high));
    let norm = scale.chunks(LANES).zip(shift.chunks(LANES));
    for ((from, (scale, shift)), to) in from.chunks(LANES).zip(norm).zip(to.chunks_mut(LANES)) {
        let x = l.fma(l.load_some(from, 0.0), l.load_some(scale, 0.0), l.load_some(shift, 0.0));
        l.store_some(to, l.at_most(high, l.at_least(low, x)));
    }
}

/// A batch norm and a gate, where they are there, and any activation between them.
#[inline(always)]
fn whole<L: Lanes>(l: L, from: &[f32], (norm, activation, gate): Parts<'_>, to: &mut [f32]) {
    for (i, (from, to)) in from.chunks(LANES).zip(to.chunks_mut(LANES)).enumerate() {
        let at = i * LANES..i * LANES + from.len();
        let mut x = l.load_some(from, 0.0);
        if let Some((scale, shift)) = norm {
            x = l.fma(x, l.load_some(&scale[at.clone()], 0.0), l.load_some(&shift[at.clone()], 0.0));
        }
        x = activation.apply(l, x);
        if let Some(gate) = gate {
            x = l.mul(x, l.load_some(&gate[at], 0.0));
        }
        l.store_some(to, x);
    }
}

/// The parts of a prologue for some channels.
type Parts<'a> = (Option<(&'a [f32], &'a [f32])>, Activation, Option<&'a [f32]>);
