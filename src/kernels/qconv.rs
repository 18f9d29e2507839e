//! Convolutions of unsigned bytes with packed signed weights in one to three dimensions. Channels are innermost, in and out.
//! Depthwise ones have a loop of their own; all others gather the inputs of a block of results and multiply.

use super::filled;
use super::lanes::{BLOCK, Isa, Out, PANEL, QUAD, Taps, block_order, depthwise};
use super::qgemm::{PackedWeights, Quantization, block_rows};
use super::stage::{Affine, Engine, Plan, Stage};
use crate::diag::{Diagnostic, Result};
use crate::resources::pool;

/// Three numbers of an operation in space: depth, height, width. With fewer dimensions the first ones are 1 (padding 0).
pub type Space = [usize; 3];

/// What a convolution's weights are and how they move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels of the input.
    pub channels: usize,
    /// Channels of the result.
    pub outputs: usize,
    /// Groups that both kinds of channels are divided into.
    pub groups: usize,
    /// Sizes of the window.
    pub kernel: Space,
    /// Steps of the window.
    pub stride: Space,
    /// Places around the input, on both sides.
    pub padding: Space,
    /// Distance of the window's taps.
    pub dilation: Space,
}

impl Geometry {
    /// Sizes of the result for an input of `sizes`. None: an input too small, or a geometry of zeros.
    pub fn result(&self, sizes: Space) -> Option<Space> {
        let mut result = [0; 3];
        for i in 0..3 {
            let window = self.kernel[i].checked_sub(1)?.checked_mul(self.dilation[i])?.checked_add(1)?;
            let room = self.padding[i].checked_mul(2)?.checked_add(sizes[i])?.checked_sub(window)?;
            result[i] = room.checked_div(self.stride[i])?.checked_add(1)?;
        }
        Some(result)
    }

    fn taps(&self) -> Option<usize> {
        product(&self.kernel)
    }
}

fn product(sizes: &[usize]) -> Option<usize> {
    sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s))
}

/// Weights of a convolution, packed.
#[derive(Clone, Debug)]
pub struct PackedConv {
    geometry: Geometry,
    engine: Engine,
    quantization: Quantization,
    weights: Packed,
    /// The geometry with as many groups as there are matrices.
    merged: Geometry,
}

#[derive(Clone, Debug)]
enum Packed {
    /// One matrix for each merged group: taps, then channels of the group.
    Groups(Vec<PackedWeights>),
    /// One channel each: blocks of channels, quads of taps.
    Depthwise { weights: Vec<i8>, sums: Vec<i32> },
}

/// How many groups become one matrix: as many as fill a panel of columns, which costs nothing, as the panel is multiplied
/// whole. The zeros between groups must stand for 0.
fn merging(g: &Geometry, quantization: &Quantization) -> usize {
    let outputs = g.outputs / g.groups;
    let zero = quantization.zero_points().iter().all(|z| *z == 0);
    let most = if zero { PANEL / outputs.max(1) } else { 1 };
    (1..=most).rev().find(|n| g.groups.is_multiple_of(*n)).unwrap_or(1)
}

fn refused(what: &str) -> Diagnostic {
    Diagnostic::runtime(format!("quantized convolution: {what}"))
}

impl PackedConv {
    /// Packs weights given in PyTorch's order: outputs, channels of a group, depth, height, width. Fails if sizes do not fit.
    pub fn new(weights: &[i8], geometry: Geometry, quantization: Quantization) -> Result<PackedConv> {
        let g = geometry;
        let divides = |n: usize| g.groups > 0 && n.is_multiple_of(g.groups);
        if !divides(g.channels) || !divides(g.outputs) {
            return Err(refused("groups must divide the channels"));
        }
        let zeros = [g.kernel, g.stride, g.dilation].iter().flatten().any(|n| *n == 0);
        let (taps, width) =
            (g.taps().ok_or_else(|| refused("the window is too large"))?, g.channels / g.groups);
        let count = product(&[g.outputs, width, taps]);
        if zeros || count != Some(weights.len()) || !quantization.fits(g.outputs) {
            return Err(refused("weights, scales and sizes do not fit each other"));
        }
        let engine = Engine::of_convolution(g.groups, &quantization);
        let depthwise = width == 1 && g.outputs == g.channels && g.groups > 1;
        let together = if depthwise { 1 } else { merging(&g, &quantization) };
        let merged = Geometry { groups: g.groups / together, ..g };
        let weights = if depthwise {
            Self::pack_depthwise(weights, g, taps)?
        } else {
            Self::pack_groups(weights, &merged, (taps, width), &quantization)?
        };
        Ok(PackedConv { geometry, engine, quantization, weights, merged })
    }

    /// `width`: channels of a group before groups were merged. Weights between the channels of different groups are 0.
    fn pack_groups(
        weights: &[i8],
        merged: &Geometry,
        (taps, width): (usize, usize),
        q: &Quantization,
    ) -> Result<Packed> {
        let (all, outputs) = (merged.channels / merged.groups, merged.outputs / merged.groups);
        let together = all / width.max(1);
        let (depth, each) = (taps * width, outputs / together.max(1));
        let mut groups = Vec::new();
        for (group, weights) in weights.chunks_exact((outputs * depth).max(1)).enumerate() {
            let mut reordered = filled(0i8, outputs * taps * all)?;
            let rows = reordered.chunks_exact_mut((taps * all).max(1));
            for (n, (row, from)) in rows.zip(weights.chunks_exact(depth.max(1))).enumerate() {
                let first = n / each.max(1) * width;
                for (tap, to) in row.chunks_exact_mut(all.max(1)).enumerate() {
                    let to = to[first..first + width].iter_mut().enumerate();
                    to.for_each(|(c, to)| *to = from[c * taps + tap]);
                }
            }
            let part = q.part(group * outputs, outputs);
            groups.push(PackedWeights::new(&reordered, outputs, taps * all, part)?);
        }
        Ok(Packed::Groups(groups))
    }

    fn pack_depthwise(weights: &[i8], g: Geometry, taps: usize) -> Result<Packed> {
        let (blocks, quads) = (g.channels.div_ceil(BLOCK), taps.div_ceil(QUAD));
        let room = product(&[blocks, quads, BLOCK * QUAD]).ok_or_else(|| refused("weights are too large"))?;
        let mut packed = filled(0i8, room)?;
        let mut sums = filled(0i32, g.channels)?;
        for (part, quads) in packed.chunks_exact_mut(quads * BLOCK * QUAD).enumerate() {
            for (quad, block) in quads.chunks_exact_mut(BLOCK * QUAD).enumerate() {
                for (at, to) in block.iter_mut().enumerate() {
                    let (channel, tap) = (part * BLOCK + block_order(at / QUAD), quad * QUAD + at % QUAD);
                    if channel < g.channels && tap < taps {
                        *to = weights[channel * taps + tap];
                        sums[channel] += i32::from(*to);
                    }
                }
            }
        }
        Ok(Packed::Depthwise { weights: packed, sums })
    }

    /// Sizes and steps.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Scales and zero points of the weights.
    pub fn quantization(&self) -> &Quantization {
        &self.quantization
    }

    /// Convolves `x`, of `batch` images of `sizes` with channels innermost, into `out` of the same order. What lies outside
    /// of an image is `input.zero_point`. Sums are exact; results are PyTorch's to the bit. Fails if sizes do not fit.
    #[allow(clippy::too_many_arguments, reason = "a layer's operands and both sides' scales")]
    pub fn run(
        &self,
        x: &[u8],
        (batch, sizes): (usize, Space),
        input: Affine,
        bias: Option<&[f32]>,
        output: Affine,
        relu: bool,
        out: &mut [u8],
    ) -> Result<()> {
        self.run_with(Isa::best(), x, (batch, sizes), input, bias, output, relu, out)
    }

    #[allow(clippy::too_many_arguments, reason = "as `run`, and the instructions")]
    pub(super) fn run_with(
        &self,
        isa: Isa,
        x: &[u8],
        (batch, sizes): (usize, Space),
        input: Affine,
        bias: Option<&[f32]>,
        output: Affine,
        relu: bool,
        out: &mut [u8],
    ) -> Result<()> {
        let g = &self.geometry;
        let result = g.result(sizes).ok_or_else(|| refused("the input is smaller than the window"))?;
        let rows = product(&[batch, result[0], result[1], result[2]]);
        let fits = |sizes: Space, channels: usize, len: usize| {
            product(&[batch, sizes[0], sizes[1], sizes[2], channels]) == Some(len)
        };
        let Some(rows) =
            rows.filter(|_| fits(sizes, g.channels, x.len()) && fits(result, g.outputs, out.len()))
        else {
            return Err(refused("the input or the result has other sizes"));
        };
        if bias.is_some_and(|b| b.len() != g.outputs) {
            return Err(refused("there must be as many bias values as output channels"));
        }
        let Ok(zero) = u8::try_from(input.zero_point) else {
            return Err(refused("the input's zero point is no byte"));
        };
        if out.is_empty() {
            return Ok(());
        }
        let gather = Gather { x, sizes, result, geometry: &self.merged, zero };
        match &self.weights {
            Packed::Groups(groups) => {
                let stages: Vec<Stage> = groups
                    .iter()
                    .enumerate()
                    .map(|(i, w)| {
                        let n = w.outputs();
                        let bias = bias.map(|b| &b[i * n..(i + 1) * n]);
                        Stage::rounding(w.plan(input, bias, relu)?, output, self.engine)
                    })
                    .collect::<Result<_>>()?;
                self.multiply(isa, groups, &stages, &gather, rows, out)
            }
            Packed::Depthwise { weights, sums } => {
                let columns = g.channels.next_multiple_of(BLOCK);
                let order = |at: usize| at / BLOCK * BLOCK + block_order(at % BLOCK);
                let taps = product(&g.kernel).unwrap_or(0);
                let plan = Plan {
                    input,
                    weights: &self.quantization,
                    sums,
                    depth: taps,
                    bias,
                    order,
                    columns,
                    relu,
                };
                let stage = Stage::rounding(plan, output, self.engine)?;
                self.slide(isa, weights, taps, &stage, &gather, rows, out)
            }
        }
    }

    /// Block of results after block: gathers their inputs, group by group, and multiplies.
    fn multiply(
        &self,
        isa: Isa,
        groups: &[PackedWeights],
        stages: &[Stage],
        gather: &Gather<'_>,
        rows: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let g = &self.geometry;
        let Some(first) = groups.first() else { return Ok(()) };
        let (padded, columns) = (first.padded_depth(), first.outputs());
        let plain = gather.is_plain() && padded == first.depth();
        let run = if gather.runs() { g.kernel[2] } else { 1 };
        let steps = gather.steps(run)?;
        let size = block_rows(rows, padded, product(&[rows, padded, g.outputs]).unwrap_or(usize::MAX));
        let block = |index: usize, out: &mut [u8]| {
            let (from, count) = (index * size, out.len() / g.outputs);
            let mut copy = if plain { Vec::new() } else { filled(0u8, count * padded + SLACK)? };
            for (group, (weights, stage)) in groups.iter().zip(stages).enumerate() {
                let inputs = if plain {
                    &gather.x[from * padded..(from + count) * padded]
                } else {
                    gather.rows(group, from, (&steps, run), padded, &mut copy);
                    &copy
                };
                let to = (group * columns, g.outputs);
                weights.multiply(isa, (inputs, padded, count), (0, columns), stage, Out::Bytes(out), to)?;
            }
            Ok(())
        };
        if size >= rows {
            return block(0, out);
        }
        pool::try_chunks(out, size * g.outputs, |i, out| block(i, out))
    }

    /// Depthwise: block of results after block, each from the places of its taps.
    #[allow(clippy::too_many_arguments, reason = "parts of one packed convolution")]
    fn slide(
        &self,
        isa: Isa,
        weights: &[i8],
        taps: usize,
        stage: &Stage,
        gather: &Gather<'_>,
        rows: usize,
        out: &mut [u8],
    ) -> Result<()> {
        const ROWS: usize = 64;
        let channels = self.geometry.channels;
        let outside = filled(gather.zero, channels)?;
        let steps = gather.steps(1)?;
        let block = |(i, out): (usize, &mut [u8])| {
            let count = out.len() / channels;
            let mut places = filled(usize::MAX, count * taps)?;
            for (result, places) in gather.results(i * ROWS).zip(places.chunks_exact_mut(taps)) {
                gather.places(result, &steps, places);
            }
            let job =
                Taps { inputs: gather.x, outside: &outside, places: &places, taps, channels, weights, stage };
            depthwise(isa, &job, out)
        };
        if rows <= ROWS {
            return block((0, out));
        }
        pool::try_chunks(out, ROWS * channels, |i, out| block((i, out)))
    }
}

/// Bytes behind a block of gathered inputs, into which the last copy may reach.
const SLACK: usize = 64;

/// Copies `len` bytes and up to `SLACK` more where both sides have them, in steps whose length the compiler knows: a call
/// for a few bytes would take longer. What comes behind is written later, or meets weights that are 0.
#[inline(always)]
fn copy(from: &[u8], len: usize, to: &mut [u8]) {
    #[inline(always)]
    fn steps<const N: usize>(from: &[u8], len: usize, to: &mut [u8]) -> bool {
        let reach = len.next_multiple_of(N);
        let (Some(from), Some(to)) = (from.get(..reach), to.get_mut(..reach)) else { return false };
        for (from, to) in from.chunks_exact(N).zip(to.chunks_exact_mut(N)) {
            if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
                *to = *from;
            }
        }
        true
    }
    let done = match len {
        0..=16 => steps::<16>(from, len, to),
        17..=32 => steps::<32>(from, len, to),
        33..=512 => steps::<64>(from, len, to),
        _ => false,
    };
    if !done {
        to[..len].copy_from_slice(&from[..len]);
    }
}

/// Where the inputs of results lie.
struct Gather<'a> {
    x: &'a [u8],
    sizes: Space,
    result: Space,
    geometry: &'a Geometry,
    /// Stands for what is outside.
    zero: u8,
}

impl Gather<'_> {
    /// Whether each result has one input, at the same place, of all channels.
    fn is_plain(&self) -> bool {
        let g = self.geometry;
        g.groups == 1 && g.kernel == [1; 3] && g.stride == [1; 3] && g.padding == [0; 3]
    }

    /// Results from one on: of each the image and the first tap, before padding is taken off.
    fn results(&self, from: usize) -> impl Iterator<Item = (usize, Space)> {
        let (r, s) = (self.result, self.geometry.stride);
        let (rest, w) = (from / r[2], from % r[2]);
        let (rest, h) = (rest / r[1], rest % r[1]);
        let mut next = (rest / r[0], [rest % r[0], h, w]);
        std::iter::from_fn(move || {
            let (image, at) = next;
            // Counted on, as divisions would take longer than the sums of a small window.
            for dim in (0..3).rev() {
                next.1[dim] += 1;
                if next.1[dim] < r[dim] {
                    break;
                }
                next.1[dim] = 0;
                next.0 += usize::from(dim == 0);
            }
            Some((image, [at[0] * s[0], at[1] * s[1], at[2] * s[2]]))
        })
    }

    /// A coordinate of a tap, if it is inside.
    fn inside(&self, dim: usize, start: usize, tap: usize) -> Option<usize> {
        let at = start + tap * self.geometry.dilation[dim];
        at.checked_sub(self.geometry.padding[dim]).filter(|at| *at < self.sizes[dim])
    }

    /// The lines of taps along the width: depth and height inside of an image give the place of the line's first element.
    fn lines(&self, (image, start): (usize, Space)) -> impl Iterator<Item = (Option<usize>, usize)> {
        let k = self.geometry.kernel;
        (0..k[0] * k[1]).map(move |tap| {
            let d = self.inside(0, start[0], tap / k[1]);
            let h = self.inside(1, start[1], tap % k[1]);
            let line =
                d.zip(h).map(|(d, h)| ((image * self.sizes[0] + d) * self.sizes[1] + h) * self.sizes[2]);
            (line, start[2])
        })
    }

    /// Whether neighbouring taps of a line lie side by side, with all channels.
    fn runs(&self) -> bool {
        self.geometry.groups == 1 && self.geometry.dilation[2] == 1
    }

    /// Elements from the first tap to every `each`-th one, where all are inside.
    fn steps(&self, each: usize) -> Result<Vec<usize>> {
        let (k, d, sizes) = (self.geometry.kernel, self.geometry.dilation, self.sizes);
        let count = product(&k).unwrap_or(0) / each.max(1);
        let mut steps = filled(0usize, count)?;
        for (i, step) in steps.iter_mut().enumerate() {
            let tap = i * each;
            let (line, w) = (tap / k[2], tap % k[2] * d[2]);
            let (depth, h) = (line / k[1] * d[0], line % k[1] * d[1]);
            // Of taps that lie outside of every image the number is not used.
            *step = depth.wrapping_mul(sizes[1]).wrapping_add(h).wrapping_mul(sizes[2]);
            *step = step.wrapping_add(w).wrapping_mul(self.geometry.channels);
        }
        Ok(steps)
    }

    /// The element of the first tap of a result all of whose taps are inside.
    fn base(&self, (image, start): (usize, Space)) -> Option<usize> {
        let g = self.geometry;
        let mut at = image;
        for (i, begin) in start.iter().enumerate() {
            let first = begin.checked_sub(g.padding[i])?;
            if first + (g.kernel[i] - 1) * g.dilation[i] >= self.sizes[i] {
                return None;
            }
            at = at * self.sizes[i] + first;
        }
        Some(at * g.channels)
    }

    /// Places of the taps of a result: elements of its first channel, or `usize::MAX` outside.
    fn places(&self, result: (usize, Space), steps: &[usize], places: &mut [usize]) {
        if let Some(base) = self.base(result) {
            places.iter_mut().zip(steps).for_each(|(place, step)| *place = base + step);
            return;
        }
        let width = self.geometry.kernel[2];
        for (places, (line, start)) in places.chunks_exact_mut(width).zip(self.lines(result)) {
            for (tap, place) in places.iter_mut().enumerate() {
                let at = line.zip(self.inside(2, start, tap));
                *place = at.map_or(usize::MAX, |(line, w)| (line + w) * self.geometry.channels);
            }
        }
    }

    /// Copies the inputs of a group for results from `from` on; each row has `stride` bytes, and behind the last one there
    /// are `SLACK`. `steps` are those of every `run`-th tap, which begin as many bytes as are copied at once where all are
    /// inside.
    fn rows(&self, group: usize, from: usize, (steps, run): (&[usize], usize), stride: usize, to: &mut [u8]) {
        let g = self.geometry;
        let width = g.channels / g.groups;
        let together = self.runs();
        let rows = to.len().saturating_sub(SLACK) / stride.max(1);
        for (result, row) in self.results(from).zip(0..rows) {
            if let Some(base) = self.base(result) {
                let base = base + group * width;
                for (part, step) in steps.iter().enumerate() {
                    copy(&self.x[base + step..], run * width, &mut to[row * stride + part * run * width..]);
                }
                continue;
            }
            let to = &mut to[row * stride..(row + 1) * stride];
            let mut parts = to.chunks_exact_mut((g.kernel[2] * width).max(1));
            for ((line, start), part) in self.lines(result).zip(&mut parts) {
                let Some(line) = line else {
                    part.fill(self.zero);
                    continue;
                };
                if together {
                    self.run(line, start, part);
                    continue;
                }
                for (tap, part) in part.chunks_exact_mut(width.max(1)).enumerate() {
                    match self.inside(2, start, tap) {
                        Some(w) => {
                            let at = (line + w) * g.channels + group * width;
                            part.copy_from_slice(&self.x[at..at + width]);
                        }
                        None => part.fill(self.zero),
                    }
                }
            }
        }
    }

    /// Neighbouring taps of all channels: one copy, and what lies outside on either side.
    fn run(&self, line: usize, start: usize, part: &mut [u8]) {
        let (channels, padding) = (self.geometry.channels, self.geometry.padding[2]);
        let taps = self.geometry.kernel[2];
        let before = padding.saturating_sub(start).min(taps);
        let first = (start + before).saturating_sub(padding);
        let count = self.sizes[2].saturating_sub(first).min(taps - before);
        let (left, rest) = part.split_at_mut(before * channels);
        let (middle, right) = rest.split_at_mut(count * channels);
        left.fill(self.zero);
        middle.copy_from_slice(&self.x[(line + first) * channels..][..count * channels]);
        right.fill(self.zero);
    }
}
