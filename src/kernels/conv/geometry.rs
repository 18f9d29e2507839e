//! The numbers of a convolution, and where its windows lie.

/// The numbers of a convolution. Spatial ones are depth, height, width.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Number of images.
    pub batch: usize,
    /// Groups of channels that do not see each other.
    pub groups: usize,
    /// Channels of the input, all groups together.
    pub channels_in: usize,
    /// Channels of the output, all groups together.
    pub channels_out: usize,
    /// Sizes of an input image.
    pub input: [usize; 3],
    /// Sizes of an output image.
    pub output: [usize; 3],
    /// Sizes of the kernel.
    pub kernel: [usize; 3],
    /// Steps between windows.
    pub stride: [usize; 3],
    /// Steps within a window.
    pub dilation: [usize; 3],
    /// Zeros in front of the input.
    pub before: [usize; 3],
}

impl Geometry {
    pub(super) fn area(&self) -> usize {
        self.kernel.iter().product()
    }

    pub(super) fn pixels_in(&self) -> usize {
        self.input.iter().product()
    }

    pub(super) fn pixels_out(&self) -> usize {
        self.output.iter().product()
    }

    /// Input coordinate of a window's element; None in the padding.
    pub(super) fn source(&self, d: usize, out: usize, k: usize) -> Option<usize> {
        (out * self.stride[d] + k * self.dilation[d])
            .checked_sub(self.before[d])
            .filter(|at| *at < self.input[d])
    }

    /// The range of output columns whose window element `k` along the width lies inside the input.
    pub(super) fn inside(&self, k: usize) -> (usize, usize) {
        let (shift, step) = (k * self.dilation[2], self.stride[2]);
        let low = self.before[2].saturating_sub(shift).div_ceil(step);
        let high = (self.input[2] + self.before[2]).saturating_sub(shift).div_ceil(step);
        (low.min(self.output[2]), high.min(self.output[2]).max(low.min(self.output[2])))
    }

    /// Whether images are flat and results lie as they do, step by step: then what a place of the windows sees is the image,
    /// moved.
    pub(super) fn shifts(&self) -> bool {
        self.kernel[0] == 1
            && self.before[0] == 0
            && self.stride == [1; 3]
            && self.input == self.output
            && self.input[0] == 1
    }

    /// Which of the pixels `pixels` of the result see something at the place `[y, x]` of their windows, but for the ends of
    /// lines, and where in the image the first of these sees it. Of geometries that shift.
    pub(super) fn moved(
        &self,
        [y, x]: [usize; 2],
        pixels: std::ops::Range<usize>,
    ) -> (usize, std::ops::Range<usize>) {
        let width = self.input[2] as isize;
        let shift = |d: usize, k: usize| (k * self.dilation[d]) as isize - self.before[d] as isize;
        let shift = shift(1, y).saturating_mul(width).saturating_add(shift(2, x));
        let all = self.pixels_in() as isize;
        let low = (pixels.start as isize).max(shift.saturating_neg()).min(pixels.end as isize);
        let high = (pixels.end as isize).min(all.saturating_sub(shift)).max(low);
        // Where nothing is seen there is no place in the image either.
        let first = if low < high { low + shift } else { 0 };
        (first as usize, low as usize..high as usize)
    }

    /// Clears pixels that see nothing at column `x` of their windows: `values` are those from pixel `from + skipped` on.
    #[inline(always)]
    pub(super) fn outside<T: Copy + Default>(&self, x: usize, from: usize, values: &mut [T], skipped: usize) {
        let width = self.output[2];
        let (low, high) = self.inside(x);
        if (low, high) == (0, width) {
            return;
        }
        let first = (from + skipped) / width * width;
        for line in (first..from + skipped + values.len()).step_by(width) {
            let place = |at: usize| (line + at).saturating_sub(from + skipped).min(values.len());
            let (a, b, c, d) = (place(0), place(low), place(high), place(width));
            values[a..b].fill(T::default());
            values[c..d].fill(T::default());
        }
    }

    /// Whether the windows are the pixels themselves.
    pub(super) fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.before == [0; 3] && self.input == self.output
    }
}
