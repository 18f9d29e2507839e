//! Weights of convolutions as kernels read them: matrices, transformed ones, channels one by one. Each form is packed when the
//! first call needs it, as few convolutions need more than one, and weights take the most memory of a model. Knows no images.

use super::depthwise;
use super::shape::{ConvShape, Layout, product, refused};
use super::tile::Panels;
use super::vector::LANES;
use super::winograd;
use crate::diag::{Diagnostic, Result};
use crate::resources::Once;
use std::fmt;
use std::sync::Arc;

/// Sides of results from which tiles of 2 x 2 pay.
const SMALL: usize = 4;

/// Gives weights in PyTorch's order (outputs, channels of a group, height, width) to what packs them. It may be called more than
/// once, at any later time, and gives the same each time.
pub type Source = Arc<dyn Fn(&mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> + Send + Sync>;

/// Weights of a convolution, packed: in each form when a call first needs it.
pub(super) struct Weights {
    pub shape: ConvShape,
    pub layout: Layout,
    packed: Packed,
    /// None where all forms are made.
    source: Option<Source>,
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weights")
            .field("shape", &self.shape)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

enum Packed {
    /// One matrix for each group, and where there are fewer products to make, transformed weights: none of infinite ones, which
    /// would not be numbers.
    Groups(Once<Vec<Panels>>, Option<Once<Option<winograd::Packed>>>),
    /// One channel each.
    Depthwise(Once<depthwise::Packed>),
}

impl Weights {
    /// Packs weights in PyTorch's order (outputs, channels of a group, height, width) for images of a layout. Fails where
    /// sizes do not fit, or without memory.
    pub fn new(shape: ConvShape, weights: &[f32], layout: Layout) -> Result<Weights> {
        let made = Weights::unpacked(shape, weights.len(), layout)?;
        match &made.packed {
            Packed::Depthwise(packed) => {
                packed.get_or_make(|| depthwise::Packed::new(weights, shape.groups))?;
            }
            Packed::Groups(groups, transformed) => {
                groups.get_or_make(|| made.matrices(weights))?;
                if let Some(transformed) = transformed {
                    transformed.get_or_make(|| made.transform(weights))?;
                }
            }
        }
        Ok(made)
    }

    /// The same for `count` weights that are packed when calls need them. Fails where sizes do not fit.
    pub fn of(shape: ConvShape, count: usize, source: Source, layout: Layout) -> Result<Weights> {
        Ok(Weights { source: Some(source), ..Weights::unpacked(shape, count, layout)? })
    }

    fn unpacked(shape: ConvShape, count: usize, layout: Layout) -> Result<Weights> {
        let s = shape;
        let divides = |n: usize| s.groups > 0 && n.is_multiple_of(s.groups);
        if !divides(s.in_channels) || !divides(s.out_channels) {
            return Err(refused("groups must divide the channels"));
        }
        if [s.kernel, s.stride, s.dilation].iter().flatten().any(|n| *n == 0) {
            return Err(refused("sizes, steps and distances of the window must be positive"));
        }
        let Some(depth) = product(&s.kernel).and_then(|taps| taps.checked_mul(s.width())) else {
            return Err(refused("the window is too large"));
        };
        if depth.checked_mul(s.out_channels) != Some(count) {
            return Err(refused("weights and sizes do not fit each other"));
        }
        let last = layout == Layout::ChannelsLast;
        let packed = if last && s.width() == 1 && s.groups > 1 && s.out_channels == s.groups {
            Packed::Depthwise(Once::default())
        } else {
            let plain = s.kernel == [3; 2] && s.stride == [1; 2] && s.dilation == [1; 2] && s.groups == 1;
            let wide = s.in_channels >= LANES && s.out_channels >= LANES && last;
            Packed::Groups(Once::default(), (plain && wide).then(Once::default))
        };
        Ok(Weights { shape, layout, packed, source: None })
    }

    /// What is made of the weights now. They are as they were when the layer was made.
    fn packed_now<T>(&self, mut pack: impl FnMut(&[f32]) -> Result<T>) -> Result<T> {
        let mut packed = None;
        let count =
            self.shape.out_channels * self.shape.width() * self.shape.kernel[0] * self.shape.kernel[1];
        let source = self.source.as_ref().ok_or_else(|| Diagnostic::internal("weights without a source"))?;
        source(&mut |weights| {
            if weights.len() != count {
                return Err(refused("weights and sizes do not fit each other"));
            }
            packed = Some(pack(weights)?);
            Ok(())
        })?;
        packed.ok_or_else(|| Diagnostic::internal("a source that gives no weights"))
    }

    /// A matrix of each group.
    fn matrices(&self, weights: &[f32]) -> Result<Vec<Panels>> {
        let (s, outputs) = (&self.shape, self.shape.out_channels / self.shape.groups);
        let taps = s.kernel[0] * s.kernel[1];
        let depth = s.width() * taps;
        let terms = match self.layout {
            Layout::ChannelsFirst => [depth, 1],
            Layout::ChannelsLast => [s.width(), taps],
        };
        let of_group = |group| &weights[group * outputs * depth..(group + 1) * outputs * depth];
        (0..s.groups).map(|group| Panels::of_taps(outputs, terms, of_group(group))).collect()
    }

    fn transform(&self, weights: &[f32]) -> Result<Option<winograd::Packed>> {
        winograd::Packed::new(weights, self.shape.in_channels, self.shape.out_channels)
    }

    /// The matrices, which are packed where they are not yet. None of a convolution of channels one by one.
    pub fn groups(&self) -> Result<&[Panels]> {
        match &self.packed {
            Packed::Groups(groups, _) => {
                Ok(groups.get_or_make(|| self.packed_now(|weights| self.matrices(weights)))?)
            }
            Packed::Depthwise(_) => Ok(&[]),
        }
    }

    /// The channels of a convolution of channels one by one, packed where they are not yet.
    pub fn depthwise(&self) -> Option<Result<&depthwise::Packed>> {
        let Packed::Depthwise(packed) = &self.packed else { return None };
        let groups = self.shape.groups;
        Some(packed.get_or_make(|| self.packed_now(|weights| depthwise::Packed::new(weights, groups))))
    }

    /// Transformed weights, where results of such sizes are made with them.
    pub fn transformed(&self, [height, width]: [usize; 2]) -> Result<Option<&winograd::Packed>> {
        let Packed::Groups(_, Some(transformed)) = &self.packed else { return Ok(None) };
        if height < SMALL || width < SMALL {
            return Ok(None);
        }
        let made = transformed.get_or_make(|| self.packed_now(|weights| self.transform(weights)))?;
        Ok(made.as_ref())
    }
}
