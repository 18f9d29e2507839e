//! Two-dimensional convolutions of float32 images whose channels are innermost, with weights packed once. A window's inputs
//! are read where they lie, from a copy of the image that has its padding; where lines of results are too short for tiles,
//! blocks of windows are gathered. Knows layers, no ops.

use super::depthwise;
use super::epilogue::{Epilogue, spans};
use super::prologue::{Place, Prologue};
use super::scratch::Scratch;
use super::shape::{ConvShape, Images, Layout, Plane, product, refused};
use super::tile::{BLOCK, Block, Cut, Product, Run, areas_of, blocks};
use super::vector::{Isa, LANES};
use super::weights::{Source, Weights};
use super::winograd;
use crate::diag::Result;
use crate::kernels::lines::Lines;
use crate::resources::pool;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A convolution with packed weights.
#[derive(Debug)]
pub struct PackedConv(Weights);

/// What kernels may need of a thread's stack: builds without optimization keep each of their many vectors there.
pub(super) const ROOM: usize = if cfg!(debug_assertions) { 4 << 20 } else { 128 << 10 };

/// The stack that they get where there is less.
pub(super) const STACK: usize = 16 << 20;

impl PackedConv {
    /// Packs weights in PyTorch's order (outputs, channels of a group, height, width) for images of a layout. Fails where
    /// sizes do not fit, or without memory.
    pub fn new(shape: ConvShape, weights: &[f32], layout: Layout) -> Result<PackedConv> {
        Weights::new(shape, weights, layout).map(PackedConv)
    }

    /// The same for `count` weights that are packed when calls need them. Fails where sizes do not fit.
    pub fn of(shape: ConvShape, count: usize, source: Source, layout: Layout) -> Result<PackedConv> {
        Weights::of(shape, count, source, layout).map(PackedConv)
    }

    /// Sizes and steps.
    pub fn shape(&self) -> &ConvShape {
        &self.0.shape
    }

    /// See [`Weights::depthwise`].
    pub(super) fn depthwise(&self) -> Option<Result<&depthwise::Packed>> {
        self.0.depthwise()
    }

    /// Convolves images into `out`, whose pixels lie `pitch` floats apart: more than there are channels where the layer
    /// writes some of a wider image. Fails where sizes do not fit, or without memory. Results do not depend on the number of
    /// threads.
    pub fn run(
        &self,
        images: Images<'_>,
        epilogue: &Epilogue<'_>,
        out: &mut [f32],
        pitch: usize,
    ) -> Result<()> {
        self.run_after(None, images, epilogue, out, pitch)
    }

    /// The same with something done to the images first; their padding stays zero. Images whose channels are not innermost
    /// are refused then.
    pub fn run_after(
        &self,
        prologue: Option<&Prologue<'_>>,
        images: Images<'_>,
        epilogue: &Epilogue<'_>,
        out: &mut [f32],
        pitch: usize,
    ) -> Result<()> {
        self.run_with(Isa::best(), prologue, images, epilogue, out, pitch)
    }

    /// The same with the vectors of an instruction set, on a stack with room for it.
    pub(super) fn run_with(
        &self,
        isa: Isa,
        prologue: Option<&Prologue<'_>>,
        images: Images<'_>,
        epilogue: &Epilogue<'_>,
        out: &mut [f32],
        pitch: usize,
    ) -> Result<()> {
        let before = prologue.map(|prologue| Before { isa, prologue });
        stacker::maybe_grow(ROOM, STACK, || self.compute(isa, before, images, epilogue, out, pitch))
    }

    fn compute(
        &self,
        isa: Isa,
        before: Option<Before<'_>>,
        images: Images<'_>,
        epilogue: &Epilogue<'_>,
        out: &mut [f32],
        pitch: usize,
    ) -> Result<()> {
        let (s, layout) = (&self.0.shape, self.0.layout);
        let result = s.result(images.sizes).ok_or_else(|| refused("the image is smaller than the window"))?;
        let pixels = product(&[images.batch, result[0], result[1]]);
        let given = product(&[images.batch, images.sizes[0], images.sizes[1]]);
        let (Some(pixels), Some(given)) = (pixels, given) else {
            return Err(refused("the images are too large"));
        };
        let fits = match layout {
            Layout::ChannelsLast => spans(images.values.len(), given, images.pitch, s.in_channels),
            Layout::ChannelsFirst => given.checked_mul(s.in_channels) == Some(images.values.len()),
        };
        if !fits || !spans(out.len(), pixels, pitch, s.out_channels) {
            return Err(refused("the images or the result have other sizes"));
        }
        epilogue.check(s.out_channels, pixels)?;
        if let Some(before) = before {
            before.prologue.check(images.batch, s.in_channels)?;
            if layout == Layout::ChannelsFirst {
                return Err(refused("nothing is done to images of planes before they are convolved"));
            }
        }
        if pixels == 0 || s.out_channels == 0 {
            return Ok(());
        }
        if let Some(packed) = self.depthwise() {
            let packed = packed?;
            // Where results at the sides are computed one by one, and there are many of them, a copy that has its
            // padding at the sides costs less.
            let sides = s.padding[1][0] + s.padding[1][1];
            if before.is_none() && (depthwise::has_tiles(s) || sides * 8 <= result[1]) {
                return depthwise::Job { packed, shape: s, images, result, epilogue, pitch }.run(isa, out);
            }
            let beside = ConvShape { padding: [[0; 2], s.padding[1]], ..*s };
            let (copy, _) = with_padding(&beside, &images, layout, before)?;
            let within = ConvShape { padding: [s.padding[0], [0; 2]], ..*s };
            let (values, sizes) = (&*copy, beside.padded(images.sizes));
            let images = Images { values, sizes, batch: images.batch, pitch: s.in_channels };
            return depthwise::Job { packed, shape: &within, images, result, epilogue, pitch }.run(isa, out);
        }
        let job = Job { conv: self, isa, before, images, result, pixels, epilogue, pitch };
        if let Some(packed) = self.0.transformed(result)? {
            return job.transformed(packed, out);
        }
        // Packed before threads share the work.
        self.0.groups()?;
        // Inputs that something is done to are copied: where each belongs to one window, to where it is gathered.
        let copied = before.is_some() && s.kernel == [1, 1];
        if layout == Layout::ChannelsFirst || (job.has_long_lines() && !copied) {
            if job.is_banded() { job.banded(out) } else { job.direct(out) }
        } else {
            job.gathered(out)
        }
    }
}

/// Floats of a block's transformed inputs: they stay in a cache.
const TRANSFORMED: usize = 13 << 14;
/// Results of a line from which on tiles fill it well.
const LONG_LINE: usize = 10;
/// Terms of a sum that are added at a time: inputs of a block of pixels stay in a cache.
const DEPTH: usize = 1024;
/// Pixels of a block of results.
const PIXELS: usize = 112;
/// Floats of padded images that are copied as a whole: they stay in a cache until they are read.
const COPIED: usize = 1 << 16;

/// What is done to inputs first, and the instructions that it is done with.
#[derive(Clone, Copy)]
struct Before<'a> {
    isa: Isa,
    prologue: &'a Prologue<'a>,
}

/// How rows of tiles are cut into blocks: rows are counted through all images.
#[derive(Clone, Copy)]
struct TileCut {
    /// Rows of tiles of an image, and of a block; an image's last block is shorter.
    down: usize,
    rows: usize,
    /// Results of a row of tiles, and of an image; an image's last row may have fewer.
    line: usize,
    image: usize,
}

impl TileCut {
    fn rows_of(&self, block: usize) -> Range<usize> {
        let each = self.down.div_ceil(self.rows);
        let (image, first) = (block / each * self.down, block % each * self.rows);
        image + first..image + self.down.min(first + self.rows)
    }

    /// The block that a row lies in.
    fn block_of(&self, row: usize) -> usize {
        row / self.down * self.down.div_ceil(self.rows) + row % self.down / self.rows
    }

    /// The results of some rows of one image.
    fn pixels(&self, rows: Range<usize>) -> Range<usize> {
        let image = rows.start / self.down;
        let at = |row: usize| image * self.image + ((row - image * self.down) * self.line).min(self.image);
        at(rows.start)..at(rows.end)
    }
}

/// A call of a convolution.
struct Job<'a> {
    conv: &'a PackedConv,
    isa: Isa,
    before: Option<Before<'a>>,
    images: Images<'a>,
    result: Plane,
    pixels: usize,
    epilogue: &'a Epilogue<'a>,
    pitch: usize,
}

impl Job<'_> {
    /// One tap that meets every pixel, so that the images are one line.
    fn is_matrix(&self) -> bool {
        let s = &self.conv.0.shape;
        self.conv.0.layout == Layout::ChannelsLast
            && s.kernel == [1, 1]
            && s.stride == [1, 1]
            && !s.has_padding()
    }

    /// Whether rows of tiles are where they lie: not where lines are short, and not where rows are so far apart that all
    /// meet in the same few lines of the cache.
    fn has_long_lines(&self) -> bool {
        const PAGE: usize = 1024;
        let s = &self.conv.0.shape;
        let step = self.images.pitch.saturating_mul(s.stride[1]);
        let crowded = self.is_matrix() && step.is_multiple_of(PAGE) && s.out_channels >= 4 * BLOCK;
        (self.is_matrix() || self.result[1] >= LONG_LINE) && !crowded
    }

    /// Blocks of pixels and columns: enough of them for all threads.
    fn cut(&self, line: usize, lines: usize) -> Cut {
        let columns = self.conv.0.shape.out_channels / self.conv.0.shape.groups;
        let threads = pool::threads();
        let per_block = (PIXELS / line.max(1)).max(1).min(lines.div_ceil(threads)).max(1);
        let pieces = lines.div_ceil(per_block);
        let column_block = if pieces >= threads {
            columns
        } else {
            columns.div_ceil(threads.div_ceil(pieces)).next_multiple_of(BLOCK)
        };
        Cut { pixels: self.pixels, columns, pixel_block: per_block * line, column_block: column_block.max(1) }
    }

    /// Reads the windows of whole lines of results where they lie.
    fn direct(&self, out: &mut [f32]) -> Result<()> {
        let s = &self.conv.0.shape;
        let (copy, view) = if s.has_padding() || self.before.is_some() {
            let (copy, view) = with_padding(s, &self.images, self.conv.0.layout, self.before)?;
            (Some(copy), view)
        } else {
            (None, View::of(s, self.conv.0.layout, self.images.sizes, self.images.pitch))
        };
        let values = copy.as_deref().unwrap_or(self.images.values);
        let parts = parts(view.runs(s), DEPTH);
        // A matrix is one line, in blocks of pixels; else blocks are of whole lines.
        let (line, lines) = if self.is_matrix() {
            let size = PIXELS.min(self.pixels.div_ceil(pool::threads())).max(1);
            (size, self.pixels.div_ceil(size))
        } else {
            (self.result[1], self.pixels / self.result[1])
        };
        let mut cut = self.cut(line, lines);
        if self.is_matrix() {
            cut.pixel_block = line;
        }
        blocks(self.isa, out, self.pitch, s.out_channels, cut, |block| {
            self.direct_block(block, values, view, &parts)
        })
    }

    /// Whether a block's lines are copied by themselves, where all images would leave the cache before they are read: not where
    /// each line would be copied more than twice.
    fn is_banded(&self) -> bool {
        let s = &self.conv.0.shape;
        if self.conv.0.layout == Layout::ChannelsFirst || !(s.has_padding() || self.before.is_some()) {
            return false;
        }
        let (line, lines) = (self.result[1], self.pixels / self.result[1]);
        let rows = self.cut(line, lines).pixel_block / line;
        let sizes = s.padded(self.images.sizes);
        let is_large = product(&[sizes[0], sizes[1], s.in_channels]).is_none_or(|floats| floats > COPIED);
        is_large && s.reach(rows) <= 2 * rows * s.stride[0]
    }

    /// Reads the windows of whole lines of results in a copy, with padding, of the lines that they need.
    fn banded(&self, out: &mut [f32]) -> Result<()> {
        let (s, result) = (&self.conv.0.shape, self.result);
        let view = View::of(s, self.conv.0.layout, s.padded(self.images.sizes), s.in_channels);
        let parts = parts(view.runs(s), DEPTH);
        let cut = self.cut(result[1], self.pixels / result[1]);
        blocks(self.isa, out, self.pitch, s.out_channels, cut, |block| {
            let mut done = 0;
            while done < block.pixels.len() {
                let (row, left) =
                    ((block.pixels.start + done) / result[1], (block.pixels.len() - done) / result[1]);
                let (image, h) = (row / result[0], row % result[0]);
                let count = left.min(result[0] - h);
                let mut copy = Scratch::new(s.reach(count).saturating_mul(view.line))?;
                for (n, line) in copy.chunks_exact_mut(view.line.max(1)).enumerate() {
                    let at = (image, h * s.stride[0] + n);
                    padded_line(s, &self.images, self.conv.0.layout, self.before, at, line);
                }
                let (step, stride) = (s.stride[0] * view.line, s.stride[1] * view.pixel);
                let lines = Lines { start: 0, count, step, rows: result[1], stride };
                self.multiply_groups(block, (&copy, lines, &parts), view, done)?;
                done += count * result[1];
            }
            Ok(())
        })
    }

    /// Multiplies the windows of lines with the weights of each group.
    fn multiply_groups(
        &self,
        block: &mut Block<'_>,
        (values, lines, parts): (&[f32], Lines, &[Vec<Run>]),
        view: View,
        done: usize,
    ) -> Result<()> {
        let s = &self.conv.0.shape;
        for group in 0..s.groups {
            let lines = Lines { start: lines.start + group * s.width() * view.channel, ..lines };
            let mut first = 0;
            for runs in parts {
                first = self.multiply(block, group, (values, lines, runs), first, done)?;
            }
        }
        Ok(())
    }

    /// Computes a block of whole lines, or of any pixels of a matrix.
    fn direct_block(
        &self,
        block: &mut Block<'_>,
        values: &[f32],
        view: View,
        parts: &[Vec<Run>],
    ) -> Result<()> {
        let (s, result) = (&self.conv.0.shape, self.result);
        let (step, stride) = (s.stride[0] * view.line, s.stride[1] * view.pixel);
        let mut done = 0;
        while done < block.pixels.len() {
            let pixel = block.pixels.start + done;
            let lines = if self.is_matrix() {
                Lines { start: pixel * view.pixel, ..Lines::one(block.pixels.len(), stride) }
            } else {
                let (row, left) = (pixel / result[1], (block.pixels.len() - done) / result[1]);
                let (image, h) = (row / result[0], row % result[0]);
                let start = image * view.image + h * step;
                Lines { start, count: left.min(result[0] - h), step, rows: result[1], stride }
            };
            self.multiply_groups(block, (values, lines, parts), view, done)?;
            done += lines.count * lines.rows;
        }
        Ok(())
    }

    /// Multiplies transformed tiles, in blocks of whole rows of tiles of one image.
    fn transformed(&self, packed: &winograd::Packed, out: &mut [f32]) -> Result<()> {
        let (s, result) = (&self.conv.0.shape, self.result);
        let [down, across] = [result[0].div_ceil(winograd::SIDE), result[1].div_ceil(winograd::SIDE)];
        // The last tiles reach past the padding.
        let mut reach = *s;
        reach.padding[0][1] += down * winograd::SIDE - result[0];
        reach.padding[1][1] += across * winograd::SIDE - result[1];
        let (copy, view) = with_padding(&reach, &self.images, self.conv.0.layout, self.before)?;
        let padded = winograd::Padded { values: &copy, image: view.image, line: view.line };
        let parts = parts(view.runs(s), DEPTH);
        let most = (TRANSFORMED / (across * s.in_channels * 16).max(1)).clamp(1, down);
        let pieces = down.div_ceil(most);
        let rows = down.div_ceil(pieces);
        let (pieces, threads) = (pieces * self.images.batch, pool::threads());
        let column_block = if pieces.is_multiple_of(threads) || pieces >= 4 * threads {
            s.out_channels
        } else {
            s.out_channels.div_ceil(threads).next_multiple_of(BLOCK)
        };
        let cut = TileCut { down, rows, line: result[1] * winograd::SIDE, image: result[0] * result[1] };
        let blocks = self.images.batch * down.div_ceil(rows);
        let across_columns = s.out_channels.div_ceil(column_block);
        // Threads without a block take a part of one.
        let part = rows.div_ceil(threads.div_ceil(blocks * across_columns).min(rows));
        let columns = |n: usize| n * column_block..s.out_channels.min((n + 1) * column_block);
        let mut areas = Vec::new();
        for rows in (0..blocks).map(|block| cut.rows_of(block)) {
            for first in rows.clone().step_by(part) {
                let pixels = cut.pixels(first..rows.end.min(first + part));
                areas.extend((0..across_columns).map(|n| (pixels.clone(), columns(n))));
            }
        }
        // Blocks with an input that is not finite or too large are computed plainly, however they were shared among threads.
        let plain: Vec<AtomicBool> = (0..blocks).map(|_| AtomicBool::new(false)).collect();
        areas_of(self.isa, out, self.pitch, areas, |part| {
            let (first, count) = (part.pixels.start / result[1], part.pixels.len() / result[1]);
            let first = first / result[0] * down + first % result[0] / winograd::SIDE;
            let rows = count.div_ceil(winograd::SIDE);
            let tiles = winograd::Tiles { across, down, first, rows, result };
            if !winograd::block(packed, padded, tiles, self.epilogue, part)? {
                plain[cut.block_of(first)].store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        let plain = (0..blocks).filter(|block| plain[*block].load(Ordering::Relaxed));
        let areas: Vec<_> = plain.map(|block| (cut.pixels(cut.rows_of(block)), 0..s.out_channels)).collect();
        if !areas.is_empty() {
            self.conv.0.groups()?;
        }
        areas_of(self.isa, out, self.pitch, areas, |block| self.direct_block(block, &copy, view, &parts))
    }

    /// Gathers the windows of blocks of pixels, a part of their depth at a time.
    fn gathered(&self, out: &mut [f32]) -> Result<()> {
        let s = &self.conv.0.shape;
        let depth = s.width() * s.kernel[0] * s.kernel[1];
        let cut = self.cut(1, self.pixels);
        let terms = depth.min(DEPTH);
        // Rows a power of two apart would meet in the same lines of the cache.
        let stride = terms.next_multiple_of(LANES) + LANES;
        blocks(self.isa, out, self.pitch, s.out_channels, cut, |block| {
            let mut windows = Scratch::new(block.pixels.len() * stride)?;
            for group in 0..s.groups {
                let mut first = 0;
                loop {
                    let run = Run { offset: 0, len: terms.min(depth - first) };
                    if !self.take_all(
                        block.pixels.clone(),
                        group * s.width() + first,
                        run.len,
                        (&mut windows, stride),
                    ) {
                        for (pixel, window) in block.pixels.clone().zip(windows.chunks_exact_mut(stride)) {
                            self.gather(pixel, group * s.width(), first, &mut window[..run.len]);
                        }
                    }
                    let lines = Lines::one(block.pixels.len(), stride);
                    first = self.multiply(block, group, (&windows, lines, &[run]), first, 0)?;
                    if first == depth {
                        break;
                    }
                }
            }
            Ok(())
        })
    }

    /// Multiplies rows with the terms of a group from `first` on; gives the term that comes next.
    fn multiply(
        &self,
        block: &mut Block<'_>,
        group: usize,
        (inputs, lines, runs): (&[f32], Lines, &[Run]),
        first: usize,
        pixel: usize,
    ) -> Result<usize> {
        let panels = &self.conv.0.groups()?[group];
        let next = first + runs.iter().map(|run| run.len).sum::<usize>();
        let epilogue = Some(self.epilogue).filter(|e| next == panels.depth() && !e.is_empty());
        let base = group * panels.columns();
        block.product(&Product {
            inputs,
            lines,
            runs,
            panels,
            first,
            pixel,
            base,
            onto: first > 0,
            epilogue,
            next: &[],
        })?;
        Ok(next)
    }

    /// The inputs of a result's window from term `first` on, for the group whose channels begin at `channel`.
    fn gather(&self, pixel: usize, channel: usize, first: usize, mut to: &mut [f32]) {
        let (s, sizes, width) = (&self.conv.0.shape, self.images.sizes, self.conv.0.shape.width());
        if self.is_matrix() {
            let image = if self.images.batch == 1 { 0 } else { pixel / (sizes[0] * sizes[1]) };
            return self.take(image, pixel * self.images.pitch, channel + first, to);
        }
        let (row, w) = (pixel / self.result[1], pixel % self.result[1]);
        let (image, h) = (row / self.result[0], row % self.result[0]);
        let place = |i: usize, at: usize, tap: usize| {
            let place = (at * s.stride[i] + tap * s.dilation[i]).checked_sub(s.padding[i][0]);
            place.filter(|place| *place < sizes[i])
        };
        let (mut tap, mut skip) = (first / width.max(1), first % width.max(1));
        while !to.is_empty() {
            let (part, rest) = to.split_at_mut((width - skip).min(to.len()));
            match (place(0, h, tap / s.kernel[1]), place(1, w, tap % s.kernel[1])) {
                (Some(y), Some(x)) => {
                    let at = ((image * sizes[0] + y) * sizes[1] + x) * self.images.pitch;
                    self.take(image, at, channel + skip, part);
                }
                _ => part.fill(0.0),
            }
            (to, tap, skip) = (rest, tap + 1, 0);
        }
    }
}

impl Job<'_> {
    /// Copies neighbouring channels of pixels to rows that lie `stride` apart, where all are of one image and belong to one
    /// window each; else does nothing and says so.
    fn take_all(
        &self,
        pixels: Range<usize>,
        first: usize,
        count: usize,
        (to, stride): (&mut [f32], usize),
    ) -> bool {
        let (Some(before), true) = (self.before, self.is_matrix()) else { return false };
        let plane = self.images.sizes[0] * self.images.sizes[1];
        let (image, last) = (pixels.start / plane, pixels.end.saturating_sub(1) / plane);
        if image != last || count == 0 {
            return false;
        }
        let (channels, pitch) = (self.conv.0.shape.in_channels, self.images.pitch);
        let from = &self.images.values[pixels.start * pitch + first..];
        let place = Place { image, channels, first, count, pitch, to_pitch: stride };
        before.prologue.copy(before.isa, from, &mut to[..pixels.len() * stride], place);
        true
    }

    /// Copies neighbouring channels of the pixel whose inputs begin at `at`, from channel `first` on.
    fn take(&self, image: usize, at: usize, first: usize, to: &mut [f32]) {
        let from = &self.images.values[at + first..][..to.len()];
        match self.before {
            Some(before) => {
                let (channels, count) = (self.conv.0.shape.in_channels, to.len());
                let place = Place { image, channels, first, count, pitch: count, to_pitch: count };
                before.prologue.copy(before.isa, from, to, place);
            }
            None => to.copy_from_slice(from),
        }
    }
}

/// A copy of images with their padding, and how it lies. Something is done only to images whose channels are innermost.
fn with_padding(
    s: &ConvShape,
    images: &Images<'_>,
    layout: Layout,
    before: Option<Before<'_>>,
) -> Result<(Scratch, View)> {
    let sizes = s.padded(images.sizes);
    let room = product(&[images.batch, sizes[0], sizes[1], s.in_channels]);
    let mut copy = Scratch::new(room.ok_or_else(|| refused("the padded images are too large"))?)?;
    let to = View::of(s, layout, sizes, s.in_channels);
    pool::chunks(&mut copy, to.line.max(1), |n, line| {
        padded_line(s, images, layout, before, (n / sizes[0], n % sizes[0]), line);
    });
    Ok((copy, to))
}

/// A copy of line `h`, counted with padding, of a plane: of an image, or of a channel.
fn padded_line(
    s: &ConvShape,
    images: &Images<'_>,
    layout: Layout,
    before: Option<Before<'_>>,
    (plane, h): (usize, usize),
    line: &mut [f32],
) {
    let from = View::of(s, layout, images.sizes, images.pitch);
    let (source, pixel) = match layout {
        Layout::ChannelsLast => (from.image, s.in_channels),
        Layout::ChannelsFirst => (from.channel, 1),
    };
    let Some(h) = h.checked_sub(s.padding[0][0]).filter(|h| *h < images.sizes[0]) else {
        return line.fill(0.0);
    };
    let given = &images.values[plane * source + h * from.line..];
    let (left, rest) = line.split_at_mut(s.padding[1][0] * pixel);
    let (middle, right) = rest.split_at_mut(images.sizes[1] * pixel);
    left.fill(0.0);
    right.fill(0.0);
    if let Some(before) = before {
        let (channels, pitch) = (s.in_channels, from.pixel);
        let place = Place { image: plane, channels, first: 0, count: channels, pitch, to_pitch: channels };
        return before.prologue.copy(before.isa, given, middle, place);
    }
    if from.pixel == pixel {
        let len = middle.len();
        middle.copy_from_slice(&given[..len]);
    } else {
        for (to, from) in middle.chunks_exact_mut(pixel.max(1)).zip(given.chunks(from.pixel)) {
            to.copy_from_slice(&from[..to.len()]);
        }
    }
}

/// How images lie: floats from one to the next, from line to line, pixel to pixel, channel to channel.
#[derive(Clone, Copy)]
struct View {
    image: usize,
    line: usize,
    pixel: usize,
    channel: usize,
}

impl View {
    fn of(s: &ConvShape, layout: Layout, sizes: Plane, pitch: usize) -> View {
        match layout {
            Layout::ChannelsLast => {
                View { image: sizes[0] * sizes[1] * pitch, line: sizes[1] * pitch, pixel: pitch, channel: 1 }
            }
            Layout::ChannelsFirst => {
                let channel = sizes[0] * sizes[1];
                View { image: channel * s.in_channels, line: sizes[1], pixel: 1, channel }
            }
        }
    }

    /// The inputs of a window in the order of the packed weights, neighbours together.
    fn runs(&self, s: &ConvShape) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut put = |offset: usize, len: usize| match runs.last_mut() {
            Some(last) if last.offset + last.len == offset => last.len += len,
            _ => runs.push(Run { offset, len }),
        };
        let (high, wide) = (s.dilation[0] * self.line, s.dilation[1] * self.pixel);
        let taps = || (0..s.kernel[0]).flat_map(|h| (0..s.kernel[1]).map(move |w| h * high + w * wide));
        if self.channel == 1 {
            taps().for_each(|tap| put(tap, s.width()));
        } else {
            (0..s.width()).for_each(|c| taps().for_each(|tap| put(c * self.channel + tap, 1)));
        }
        runs
    }
}

/// Runs in parts of at most `depth` terms; one part at least.
fn parts(runs: Vec<Run>, depth: usize) -> Vec<Vec<Run>> {
    let (mut parts, mut part, mut left) = (Vec::new(), Vec::new(), depth);
    for mut run in runs {
        while run.len > left {
            part.push(Run { len: left, ..run });
            run = Run { offset: run.offset + left, len: run.len - left };
            parts.push(std::mem::take(&mut part));
            left = depth;
        }
        left -= run.len;
        part.push(run);
    }
    if !part.is_empty() || parts.is_empty() {
        parts.push(part);
    }
    parts
}
