//! Convolutions of unsigned bytes with packed signed weights in one to three dimensions. Channels are innermost, in and out.
//! Depthwise ones have a loop of their own; all others gather the inputs of a block of results and multiply.

use super::depthwise::{self, SLACK, Slide, interleave, slide};
use super::job::{Isa, Out, QUAD};
use super::qgemm::{PackedWeights, block_rows};
use super::quantization::{Affine, Quantization};
use super::stage::{Engine, Plan, Stage};
use crate::diag::{Diagnostic, Result};
use crate::kernels::lines::{CACHE_LINE, Lines};
use crate::resources::{Scratch, memory, pool};
use crate::tensor::InOrder;

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
    /// One channel each.
    Depthwise(depthwise::Packed),
}

/// Taps that lie side by side in an image: the line of a window where all channels are wanted, else one tap's channels.
#[derive(Clone, Copy)]
struct Run {
    taps: usize,
    /// Bytes.
    len: usize,
    /// Up to a whole quad.
    padded: usize,
}

impl Run {
    fn of(merged: &Geometry) -> Run {
        let taps = if merged.groups == 1 && merged.dilation[2] == 1 { merged.kernel[2] } else { 1 };
        let len = taps * (merged.channels / merged.groups);
        Run { taps, len, padded: len.next_multiple_of(QUAD) }
    }
}

/// How many groups become one matrix: as many as fill a vector of columns, which costs nothing, as vectors are multiplied
/// whole. The zeros between groups must stand for 0.
fn merging(g: &Geometry, quantization: &Quantization) -> usize {
    let outputs = g.outputs / g.groups;
    let zero = quantization.zero_points().iter().all(|z| *z == 0);
    let most = if zero { Isa::best().columns() / outputs.max(1) } else { 1 };
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
            let columns = g.kernel[2];
            Packed::Depthwise(depthwise::Packed::new(weights, g.channels, taps / columns, columns)?)
        } else {
            Self::pack_groups(weights, &merged, (taps, width), &quantization)?
        };
        Ok(PackedConv { geometry, engine, quantization, weights, merged })
    }

    /// `width`: channels of a group before groups were merged. Weights between the channels of different groups are 0, and
    /// so are those between the end of a run and the end of its last quad.
    fn pack_groups(
        weights: &[i8],
        merged: &Geometry,
        (taps, width): (usize, usize),
        q: &Quantization,
    ) -> Result<Packed> {
        let (all, outputs) = (merged.channels / merged.groups, merged.outputs / merged.groups);
        let (together, run) = (all / width.max(1), Run::of(merged));
        let (depth, each) = (taps * width, outputs / together.max(1));
        let row = (taps / run.taps.max(1)).saturating_mul(run.padded);
        let room = product(&[outputs, row]).ok_or_else(|| refused("the weights are too large"))?;
        let mut groups = Vec::new();
        for (group, weights) in weights.chunks_exact((outputs * depth).max(1)).enumerate() {
            let mut reordered = memory::filled(room, 0i8)?;
            let rows = reordered.chunks_exact_mut(row.max(1));
            for (n, (to, from)) in rows.zip(weights.chunks_exact(depth.max(1))).enumerate() {
                let first = n / each.max(1) * width;
                for (at, weight) in from.iter().enumerate() {
                    let (channel, tap) = (at / taps, at % taps);
                    let place = tap / run.taps * run.padded + tap % run.taps * all;
                    to[place + first + channel] = *weight;
                }
            }
            let part = q.part(group * outputs, outputs);
            groups.push(PackedWeights::new(&reordered, outputs, row, part)?);
        }
        Ok(Packed::Groups(groups))
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
            return Err(refused("the input's zero point is not a byte"));
        };
        if out.is_empty() {
            return Ok(());
        }
        let taps = product(&g.kernel).unwrap_or(0);
        let gather = Gather { x, sizes, result, geometry: &self.merged, zero };
        match &self.weights {
            Packed::Groups(groups) => {
                let stages: Vec<Stage> = groups
                    .iter()
                    .enumerate()
                    .map(|(i, w)| {
                        let n = w.outputs();
                        let bias = bias.map(|b| &b[i * n..(i + 1) * n]);
                        // Weights that pad runs are not weights.
                        let depth = taps * (self.merged.channels / self.merged.groups);
                        let plan = Plan { depth, ..w.plan(input, bias, relu)? };
                        Stage::rounding(plan, output, self.engine)
                    })
                    .collect::<Result<_>>()?;
                match gather.padded_image(batch, &stages)? {
                    Some(image) => self.direct(isa, groups, &stages, &gather, image, out),
                    None => self.multiply(isa, groups, &stages, &gather, rows, out),
                }
            }
            Packed::Depthwise(packed) => {
                let plan = Plan {
                    input,
                    weights: &self.quantization,
                    sums: packed.sums(),
                    depth: taps,
                    bias,
                    order: |at| at,
                    columns: packed.padded(),
                    relu,
                };
                let stage = Stage::rounding(plan, output, self.engine)?;
                self.slide(isa, packed, &stage, &gather, out)
            }
        }
    }

    /// Lines of results after lines, from images that have their padding: each tile reads its rows where they lie.
    fn direct(
        &self,
        isa: Isa,
        groups: &[PackedWeights],
        stages: &[Stage],
        gather: &Gather<'_>,
        (image, sizes): (InOrder<'_, u8>, Space),
        out: &mut [u8],
    ) -> Result<()> {
        let (g, run, r) = (&self.merged, Run::of(&self.merged), gather.result);
        let whole = Gather { x: &image, sizes, result: r, geometry: g, zero: gather.zero };
        let steps = whole.steps(run.taps)?;
        let quads = run.padded / QUAD;
        let mut offsets = memory::filled(steps.len().saturating_mul(quads), 0usize)?;
        for (offsets, step) in offsets.chunks_exact_mut(quads.max(1)).zip(&steps) {
            offsets.iter_mut().enumerate().for_each(|(n, offset)| *offset = step + n * QUAD);
        }
        let (width, columns) = (g.channels / g.groups, g.outputs / g.groups);
        let (line, results) = (sizes[2] * g.channels, r[2] * g.outputs);
        // Lines whose inputs fit into a cache; where there are threads, no more than their share.
        let work = product(&[out.len(), offsets.len(), QUAD]).unwrap_or(usize::MAX);
        let lines = block_rows(out.len() / results, g.stride[1] * line, work);
        let block = |index: usize, out: &mut [u8]| {
            let (mut at, end) = (index * lines, index * lines + out.len() / results);
            let mut out = out;
            while at < end {
                // Lines of one plane are equally far apart.
                let (plane, h) = (at / r[1], at % r[1]);
                let count = (end - at).min(r[1] - h);
                let depth = plane / r[0] * sizes[0] + plane % r[0] * g.stride[0];
                let start = (depth * sizes[1] + h * g.stride[1]) * line;
                let (part, rest) = out.split_at_mut(count * results);
                for (group, (weights, stage)) in groups.iter().zip(stages).enumerate() {
                    let lines = Lines {
                        start: start + group * width,
                        count,
                        step: g.stride[1] * line,
                        rows: r[2],
                        stride: g.stride[2] * g.channels,
                    };
                    let to = (group * columns, g.outputs);
                    let inputs = (&*image, lines, &*offsets);
                    weights.multiply(isa, inputs, (0, columns), stage, Out::Bytes(part), to)?;
                }
                (out, at) = (rest, at + count);
            }
            Ok(())
        };
        pool::try_chunks(out, lines.max(1) * results, block)
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
        let (padded, columns, run) = (first.padded_depth(), first.outputs(), Run::of(&self.merged));
        let plain = gather.is_plain() && run.len == run.padded;
        let steps = gather.steps(run.taps)?;
        let size = block_rows(rows, padded, product(&[rows, padded, g.outputs]).unwrap_or(usize::MAX));
        let block = |index: usize, out: &mut [u8]| {
            let (from, count) = (index * size, out.len() / g.outputs);
            let mut copy =
                if plain { Scratch::default() } else { memory::filled(count * padded + SLACK, 0u8)? };
            for (group, (weights, stage)) in groups.iter().zip(stages).enumerate() {
                let inputs = if plain {
                    &gather.x[from * padded..(from + count) * padded]
                } else {
                    gather.rows(group, from, &steps, padded, &mut copy);
                    if stage.needs_row_sums() && run.len < run.padded {
                        copy.chunks_exact_mut(run.padded).for_each(|run_of| run_of[run.len..].fill(0));
                    }
                    &copy
                };
                let to = (group * columns, g.outputs);
                let inputs = (inputs, Lines::one(count, padded), weights.offsets());
                weights.multiply(isa, inputs, (0, columns), stage, Out::Bytes(out), to)?;
            }
            Ok(())
        };
        if size >= rows {
            return block(0, out);
        }
        pool::try_chunks(out, size * g.outputs, |i, out| block(i, out))
    }

    /// Depthwise: line of results after line.
    fn slide(
        &self,
        isa: Isa,
        packed: &depthwise::Packed,
        stage: &Stage,
        gather: &Gather<'_>,
        out: &mut [u8],
    ) -> Result<()> {
        /// Results of a share of one thread, and quads of a part of a line, about: half of a first cache.
        const RESULTS: usize = 32 << 10;
        const QUADS: usize = 24 << 10;
        let (g, r) = (&self.geometry, gather.result);
        let results = r[2] * g.channels;
        // Columns under the window, and how many results a part of a line has.
        let window = (g.kernel[2] - 1).checked_mul(g.dilation[2]).and_then(|n| n.checked_add(1));
        let column = product(&[g.channels, QUAD, packed.row_quads()]);
        let (window, column) = window.zip(column).ok_or_else(|| refused("the window is too large"))?;
        let part = (QUADS / column).saturating_sub(window) / g.stride[2] + 1;
        let part = part.clamp(8.min(r[2]), r[2]);
        let columns = (part - 1).checked_mul(g.stride[2]).and_then(|n| n.checked_add(window));
        let room = columns.and_then(|n| n.checked_mul(column)?.checked_add(SLACK + CACHE_LINE));
        let room = room.ok_or_else(|| refused("the window is too large"))?;
        let outside = memory::filled(gather.sizes[2] * g.channels, gather.zero)?;
        let lines = (RESULTS / results).clamp(1, out.len() / results);
        let small = packed.is_small(gather.x, gather.zero);
        let block = |index: usize, out: &mut [u8]| {
            let mut quads = memory::filled(room, gather.zero)?;
            let begin = quads.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
            let quads = &mut quads[begin..];
            for (n, out) in out.chunks_exact_mut(results).enumerate() {
                for (at, out) in out.chunks_mut(part * g.channels).enumerate() {
                    let count = out.len() / g.channels;
                    let columns = (at * part * g.stride[2], (count - 1) * g.stride[2] + window);
                    let line = gather.quads(isa, (index * lines + n, columns), &outside, quads);
                    let (stride, dilation) = (g.stride[2], g.dilation[2]);
                    slide(isa, &Slide { packed, quads, line, stride, dilation, small, stage }, out)?;
                }
            }
            Ok(())
        };
        pool::try_chunks(out, lines * results, block)
    }
}

/// Copies `len` bytes and up to `SLACK` more where both sides have them, in steps whose length the compiler knows: a call
/// for a few bytes would take longer. What comes after is written later, or meets weights that are 0.
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

    /// Interleaves the rows under the window of a line of results, for columns from one on, counted in the padded image. Gives
    /// the bytes that a quad of rows takes.
    fn quads(&self, isa: Isa, at: (usize, (usize, usize)), outside: &[u8], to: &mut [u8]) -> usize {
        let (g, r, (line, (first, columns))) = (self.geometry, self.result, at);
        let (plane, h) = (line / r[1], line % r[1]);
        let start = (plane / r[0], [plane % r[0] * g.stride[0], h * g.stride[1], 0]);
        // What lies beside the image is as many zero points.
        let left = g.padding[2].saturating_sub(first).min(columns);
        let from = (first + left).saturating_sub(g.padding[2]).min(self.sizes[2]);
        let inside = (columns - left).min(self.sizes[2] - from);
        let bytes = |columns: usize| columns * g.channels;
        let rows = product(&g.kernel[..2]).unwrap_or(0);
        for (n, to) in to.chunks_exact_mut(bytes(columns) * QUAD).take(rows.div_ceil(QUAD)).enumerate() {
            let mut lines = [&outside[..bytes(inside)]; QUAD];
            for (to, (at, _)) in lines.iter_mut().zip(self.lines(start).skip(n * QUAD)) {
                if let Some(at) = at {
                    *to = &self.x[bytes(at + from)..][..bytes(inside)];
                }
            }
            let (before, rest) = to.split_at_mut(bytes(left) * QUAD);
            let (middle, behind) = rest.split_at_mut(bytes(inside) * QUAD);
            before.fill(self.zero);
            interleave(isa, lines, middle);
            behind.fill(self.zero);
        }
        bytes(columns) * QUAD
    }

    /// Images with their padding and its sizes, for products that read rows where they lie; themselves where they have no
    /// padding. None where it is better to gather: lines too short for whole tiles, padding much larger than the images, or
    /// sums of rows that reads past a run would spoil.
    fn padded_image(&self, batch: usize, stages: &[Stage]) -> Result<Option<(InOrder<'_, u8>, Space)>> {
        const SHORT: usize = 12;
        const SMALL: usize = 1 << 20;
        let (g, from, run) = (self.geometry, self.sizes, Run::of(self.geometry));
        let slack = run.padded - run.len;
        let spoiled = slack > 0 && stages.iter().any(Stage::needs_row_sums);
        if self.result[2] < SHORT || spoiled || (self.is_plain() && slack == 0) {
            return Ok(None);
        }
        if g.padding == [0; 3] && slack == 0 {
            return Ok(Some((InOrder::Borrowed(self.x), from)));
        }
        let sizes: Space = std::array::from_fn(|i| from[i].saturating_add(g.padding[i].saturating_mul(2)));
        let len = product(&[batch, sizes[0], sizes[1], sizes[2], g.channels]);
        let Some(len) = len.filter(|len| *len <= self.x.len().saturating_mul(2).saturating_add(SMALL)) else {
            return Ok(None);
        };
        let mut image = memory::filled(len + QUAD, self.zero)?;
        let line = from[2] * g.channels;
        for (n, source) in self.x.chunks_exact(line.max(1)).enumerate() {
            let (h, rest) = (n % from[1], n / from[1]);
            let depth = rest / from[0] * sizes[0] + rest % from[0] + g.padding[0];
            let place = ((depth * sizes[1] + h + g.padding[1]) * sizes[2] + g.padding[2]) * g.channels;
            image[place..place + source.len()].copy_from_slice(source);
        }
        Ok(Some((InOrder::Gathered(image), sizes)))
    }

    /// Elements from the first tap to every `each`-th one, where all are inside.
    fn steps(&self, each: usize) -> Result<Scratch<usize>> {
        let (k, d, sizes) = (self.geometry.kernel, self.geometry.dilation, self.sizes);
        let count = product(&k).unwrap_or(0) / each.max(1);
        let mut steps = memory::filled(count, 0usize)?;
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

    /// Copies the inputs of a group for results from `from` on; each row has `stride` bytes, and after the last one there
    /// are `SLACK`. `steps` are those of the runs where all taps are inside. What pads runs is left as it comes.
    fn rows(&self, group: usize, from: usize, steps: &[usize], stride: usize, to: &mut [u8]) {
        let (g, run) = (self.geometry, Run::of(self.geometry));
        let width = g.channels / g.groups;
        let rows = to.len().saturating_sub(SLACK) / stride.max(1);
        for (result, row) in self.results(from).zip(0..rows) {
            if let Some(base) = self.base(result) {
                let base = base + group * width;
                for (part, step) in steps.iter().enumerate() {
                    copy(&self.x[base + step..], run.len, &mut to[row * stride + part * run.padded..]);
                }
                continue;
            }
            let to = &mut to[row * stride..(row + 1) * stride];
            let mut parts = to.chunks_exact_mut(run.padded.max(1)).map(|part| &mut part[..run.len]);
            for (line, start) in self.lines(result) {
                for first in (0..g.kernel[2]).step_by(run.taps) {
                    let Some(part) = parts.next() else { break };
                    match line {
                        None => part.fill(self.zero),
                        Some(line) if run.taps > 1 => self.run(line, start, part),
                        Some(line) => match self.inside(2, start, first) {
                            Some(w) => {
                                let at = (line + w) * g.channels + group * width;
                                part.copy_from_slice(&self.x[at..at + width]);
                            }
                            None => part.fill(self.zero),
                        },
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
        if count == 0 {
            // All of it lies on one side of the image.
            part.fill(self.zero);
            return;
        }
        let (left, rest) = part.split_at_mut(before * channels);
        let (middle, right) = rest.split_at_mut(count * channels);
        left.fill(self.zero);
        middle.copy_from_slice(&self.x[(line + first) * channels..][..count * channels]);
        right.fill(self.zero);
    }
}
