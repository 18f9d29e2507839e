//! A pointwise convolution and the depthwise one that reads it, in bands of lines: what the first makes is read while it lies
//! in a cache, and is never stored as a whole. Knows layers, no ops.

use super::conv::{PackedConv, ROOM, STACK};
use super::depthwise;
use super::epilogue::{Epilogue, spans};
use super::scratch::Scratch;
use super::shape::{ConvShape, Images, refused};
use super::vector::Isa;
use crate::diag::Result;
use crate::resources::pool;
use std::ops::Range;

/// Floats of a band: they and what the second convolution makes of them stay in the second cache of most machines.
const BAND: usize = 3 << 15;
/// Floats of an image between the two from which on bands pay: a smaller one stays in the cache as it is.
const LARGE: usize = 1 << 16;

/// Whether the second convolution may read the first one's results in bands, for images of `sizes`, and whether that pays.
pub fn pays(first: &ConvShape, second: &ConvShape, sizes: [usize; 2]) -> bool {
    let is_pointwise =
        first.kernel == [1; 2] && first.stride == [1; 2] && first.padding == [[0; 2]; 2] && first.groups == 1;
    let channels = first.out_channels;
    let is_depthwise =
        second.groups == channels && second.in_channels == channels && second.out_channels == channels;
    let line = sizes[1].saturating_mul(channels);
    is_pointwise
        && is_depthwise
        && channels > 1
        && depthwise::has_tiles(second)
        && second.dilation[0] == 1
        && sizes[0].saturating_mul(line) >= LARGE
        && second.kernel[0].saturating_mul(line) <= BAND
}

/// Convolves images with both, into `out`, whose pixels lie `pitch` floats apart. Fails where sizes do not fit, where the
/// layers are not what [`pays`] asks for, or without memory. Results are those of one after the other, bit by bit, for any
/// number of threads.
pub fn run(
    layers: [&PackedConv; 2],
    images: Images<'_>,
    epilogues: [&Epilogue<'_>; 2],
    out: &mut [f32],
    pitch: usize,
) -> Result<()> {
    let (f, s) = (layers[0].shape(), layers[1].shape());
    let packed = layers[1].depthwise().ok_or_else(|| refused("the second layer is not depthwise"))??;
    let result = s.result(images.sizes).ok_or_else(|| refused("the image is smaller than the window"))?;
    let (pixels, given) = (result[0] * result[1], images.sizes[0] * images.sizes[1]);
    if !pays(f, s, images.sizes)
        || epilogues.iter().any(|epilogue| epilogue.residual.is_some())
        || !spans(images.values.len(), images.batch.saturating_mul(given), images.pitch, f.in_channels)
        || !spans(out.len(), images.batch.saturating_mul(pixels), pitch, s.out_channels)
    {
        return Err(refused("two layers that do not follow each other in bands"));
    }
    epilogues[1].check(s.out_channels, pixels)?;
    let lines = (BAND / (images.sizes[1] * f.out_channels)).max(s.kernel[0]);
    let chain = Chain { first: layers[0], packed, shape: s, images, epilogues, result, pitch, lines };
    for image in 0..images.batch {
        let begin = image * pixels * pitch;
        let out = out.get_mut(begin..begin + (pixels - 1) * pitch + s.out_channels).unwrap_or_default();
        chain.image(image, out)?;
    }
    Ok(())
}

/// A call of both.
struct Chain<'a> {
    first: &'a PackedConv,
    packed: &'a depthwise::Packed,
    shape: &'a ConvShape,
    images: Images<'a>,
    epilogues: [&'a Epilogue<'a>; 2],
    result: [usize; 2],
    pitch: usize,
    /// Lines of a band.
    lines: usize,
}

impl Chain<'_> {
    fn image(&self, image: usize, out: &mut [f32]) -> Result<()> {
        let rows = self.result[0];
        if self.lines >= self.images.sizes[0] || pool::threads() == 1 {
            // Threads share each step of the one band, or there is only one thread.
            return self.rows(image, 0..rows, out);
        }
        // Each thread has bands of its own, and makes lines at their common border again.
        let each = rows.div_ceil(pool::threads());
        pool::try_chunks(out, each * self.result[1] * self.pitch, |n, out| {
            let rows = n * each..rows.min((n + 1) * each);
            pool::alone(|| self.rows(image, rows, out))
        })
    }

    fn rows(&self, image: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        stacker::maybe_grow(ROOM, STACK, || self.bands(image, rows, out))
    }

    /// Some rows of an image's results, band by band.
    fn bands(&self, image: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let (s, [height, width]) = (self.shape, self.images.sizes);
        let line = width * s.in_channels;
        let mut band = Scratch::new(self.lines * line)?;
        let (mut held, mut row) = (0..0, rows.start);
        while row < rows.end {
            let now = row..self.rows_of_band(row).min(rows.end);
            let wanted = lines_of(s, &now, height);
            // Lines that the band before has made already are moved to the front.
            let kept = if held.contains(&wanted.start) {
                wanted.start..held.end.min(wanted.end)
            } else {
                wanted.start..wanted.start
            };
            if !kept.is_empty() {
                let from = (kept.start - held.start) * line;
                band.copy_within(from..from + kept.len() * line, 0);
            }
            let fresh = kept.end..wanted.end;
            if !fresh.is_empty() {
                let start = (image * height + fresh.start) * width * self.images.pitch;
                let values = self.images.values.get(start..).unwrap_or_default();
                let part = Images { values, batch: 1, sizes: [fresh.len(), width], pitch: self.images.pitch };
                let room = &mut band[kept.len() * line..wanted.len() * line];
                self.first.run(part, self.epilogues[0], room, s.in_channels)?;
            }
            let at = (now.start - rows.start) * self.result[1] * self.pitch;
            self.read(&band[..wanted.len() * line], &now, out.get_mut(at..).unwrap_or_default())?;
            (held, row) = (wanted, now.end);
        }
        Ok(())
    }

    /// Rows of results from the lines that they read.
    fn read(&self, values: &[f32], rows: &Range<usize>, out: &mut [f32]) -> Result<()> {
        let s = self.shape;
        let width = self.images.sizes[1];
        // Lines above the image are missing in its first rows alone; those below it are where the band ends.
        let top = s.padding[0][0].saturating_sub(rows.start * s.stride[0]);
        let shape = ConvShape { padding: [[top, s.padding[0][1]], s.padding[1]], ..*s };
        let sizes = [values.len() / (width * s.in_channels), width];
        let images = Images { values, batch: 1, sizes, pitch: s.in_channels };
        let (result, epilogue) = ([rows.len(), self.result[1]], self.epilogues[1]);
        let job = depthwise::Job {
            packed: self.packed,
            shape: &shape,
            images,
            result,
            epilogue,
            pitch: self.pitch,
        };
        job.run(Isa::best(), out)
    }

    /// The row after those that begin with `row` and whose lines fit a band.
    fn rows_of_band(&self, row: usize) -> usize {
        let (s, height) = (self.shape, self.images.sizes[0]);
        let fits = |end: &usize| lines_of(s, &(row..*end), height).len() <= self.lines;
        (row + 1..=self.result[0]).take_while(fits).last().unwrap_or(row + 1)
    }
}

/// The lines of the image that rows of results read.
fn lines_of(s: &ConvShape, rows: &Range<usize>, height: usize) -> Range<usize> {
    let top = s.padding[0][0];
    let from = (rows.start * s.stride[0]).saturating_sub(top).min(height);
    let to = ((rows.end - 1) * s.stride[0] + s.kernel[0]).saturating_sub(top).min(height);
    from..to.max(from)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Random;
    use super::*;
    use crate::kernels::float::{Activation, Layout};

    fn shape(
        channels: [usize; 2],
        kernel: usize,
        stride: usize,
        padding: [[usize; 2]; 2],
        groups: usize,
    ) -> ConvShape {
        let [in_channels, out_channels] = channels;
        let (kernel, stride) = ([kernel; 2], [stride; 2]);
        ConvShape { in_channels, out_channels, kernel, stride, padding, dilation: [1; 2], groups }
    }

    #[test]
    fn bands_give_the_bits_of_one_layer_after_the_other() {
        let mut random = Random(3);
        let former = pool::threads();
        for (kernel, stride) in [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1)] {
            for padding in [[[0; 2]; 2], [[kernel / 2; 2]; 2], [[kernel - 1, 0], [1, 0]]] {
                let channels = random.from(40, 70);
                let (batch, sizes) = (random.from(1, 2), [random.from(60, 90), random.from(30, 40)]);
                let first = shape([8, channels], 1, 1, [[0; 2]; 2], 1);
                let second = shape([channels; 2], kernel, stride, padding, channels);
                assert!(pays(&first, &second, sizes));
                let (bias, shift) = (random.floats(channels), random.floats(channels));
                let w = PackedConv::new(first, &random.floats(8 * channels), Layout::ChannelsLast)
                    .expect("a layer");
                let weights = random.floats(kernel * kernel * channels);
                let v = PackedConv::new(second, &weights, Layout::ChannelsLast).expect("a layer");
                let pitch = 8 + random.below(3);
                let values = random.floats(batch * sizes[0] * sizes[1] * pitch);
                let images = Images { values: &values, batch, sizes, pitch };
                let before = Epilogue {
                    bias: Some(&bias),
                    activation: Activation::Clamp(0.0, 6.0),
                    ..Epilogue::default()
                };
                let after =
                    Epilogue { bias: Some(&shift), activation: Activation::Silu, ..Epilogue::default() };
                let result = second.result(sizes).expect("large enough");
                let room = channels + random.below(2);
                let mut whole = vec![0.0; batch * sizes[0] * sizes[1] * channels];
                let mut expected = vec![0.0; batch * result[0] * result[1] * room];
                w.run(images, &before, &mut whole, channels).expect("it fits");
                let between = Images { values: &whole, batch, sizes, pitch: channels };
                v.run(between, &after, &mut expected, room).expect("it fits");
                let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
                for threads in [1, 2, 5] {
                    pool::set_threads(threads);
                    let mut found = vec![0.0; expected.len()];
                    run([&w, &v], images, [&before, &after], &mut found, room).expect("it fits");
                    assert_eq!(bits(&found), bits(&expected), "{second:?} of {sizes:?}, {threads} threads");
                }
            }
        }
        pool::set_threads(former);
    }

    #[test]
    fn what_is_no_such_pair_is_refused() {
        let first = shape([8, 48], 1, 1, [[0; 2]; 2], 1);
        let second = shape([48; 2], 3, 1, [[1; 2]; 2], 48);
        assert!(
            pays(&first, &second, [60, 40])
                && !pays(&first, &second, [6, 4])
                && !pays(&second, &second, [60, 40])
        );
        let w = PackedConv::new(first, &[0.5; 8 * 48], Layout::ChannelsLast).expect("a layer");
        let v = PackedConv::new(second, &[0.5; 9 * 48], Layout::ChannelsLast).expect("a layer");
        let values = vec![1.0; 60 * 40 * 8];
        let images = Images { values: &values, batch: 1, sizes: [60, 40], pitch: 8 };
        let plain = Epilogue::default();
        let mut out = vec![0.0; 60 * 40 * 48];
        assert!(run([&w, &v], images, [&plain; 2], &mut out, 48).is_ok());
        assert!(run([&w, &v], images, [&plain; 2], &mut out[1..], 48).is_err());
        assert!(run([&w, &w], images, [&plain; 2], &mut out, 48).is_err());
        let more = Images { batch: 2, ..images };
        assert!(run([&w, &v], more, [&plain; 2], &mut out, 48).is_err());
    }
}
