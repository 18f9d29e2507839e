//! Sizes of convolutions and images, and how they lie. No kernel is known here.

use crate::diag::Diagnostic;

/// Two numbers of an operation on images: of height and of width.
pub type Plane = [usize; 2];

/// What a convolution's weights are and how they move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the result.
    pub out_channels: usize,
    /// Sizes of the window.
    pub kernel: Plane,
    /// Steps of the window.
    pub stride: Plane,
    /// Zeros around the image: above and below, left and right.
    pub padding: [[usize; 2]; 2],
    /// Distance of the window's taps.
    pub dilation: Plane,
    /// Groups that both kinds of channels are divided into.
    pub groups: usize,
}

impl ConvShape {
    /// Sizes of the result for images of `sizes`. None: an image smaller than the window, or a shape of zeros.
    pub fn result(&self, sizes: Plane) -> Option<Plane> {
        let mut result = [0; 2];
        for i in 0..2 {
            let window = self.kernel[i].checked_sub(1)?.checked_mul(self.dilation[i])?.checked_add(1)?;
            let [before, behind] = self.padding[i];
            let room = sizes[i].checked_add(before)?.checked_add(behind)?.checked_sub(window)?;
            result[i] = room.checked_div(self.stride[i])?.checked_add(1)?;
        }
        Some(result)
    }

    /// Images with their padding.
    pub(super) fn padded(&self, sizes: Plane) -> Plane {
        let side = |i: usize| sizes[i] + self.padding[i][0] + self.padding[i][1];
        [side(0), side(1)]
    }

    pub(super) fn has_padding(&self) -> bool {
        self.padding != [[0; 2]; 2]
    }

    /// Lines of padded images that the given number of result lines read.
    pub(super) fn reach(&self, rows: usize) -> usize {
        let window = self.kernel[0].saturating_sub(1).saturating_mul(self.dilation[0]).saturating_add(1);
        rows.saturating_sub(1).saturating_mul(self.stride[0]).saturating_add(window)
    }

    /// Input channels of a group.
    pub(super) fn width(&self) -> usize {
        self.in_channels / self.groups
    }
}

/// How the input of a layer lies in memory. Results have their channels innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Channels innermost: NHWC, PyTorch's channels-last.
    ChannelsLast,
    /// A plane for each channel: NCHW, for the first layer of a model.
    ChannelsFirst,
}

/// Images that a layer reads.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    /// Their values in the layout that the weights were packed for.
    pub values: &'a [f32],
    /// How many.
    pub batch: usize,
    /// Height and width.
    pub sizes: Plane,
    /// Floats from one pixel to the next where channels are innermost: more than the layer's channels where it reads some
    /// of a wider image. Not examined for `ChannelsFirst`, which is dense.
    pub pitch: usize,
}

pub(super) fn product(sizes: &[usize]) -> Option<usize> {
    sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s))
}

pub(super) fn refused(what: &str) -> Diagnostic {
    Diagnostic::runtime(format!("convolution: {what}"))
}
