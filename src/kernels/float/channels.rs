//! What stands between layers whose channels are innermost: epilogues applied by themselves, gates of channels, and changes
//! of the layout. Knows layers, no ops.

use super::epilogue::{Column, Epilogue, spans};
use super::transpose::Transpose;
use super::vector::{Isa, LANES, Lanes, Work, with};
use crate::diag::{Diagnostic, Result};
use crate::resources::pool;

/// Pixels of a piece of work.
fn pixels_of_piece(pixels: usize, channels: usize) -> usize {
    const SMALL: usize = 1 << 14;
    if pixels.saturating_mul(channels) < SMALL {
        pixels.max(1)
    } else {
        pixels.div_ceil(pool::threads() * 4).max(1)
    }
}

/// Images: values and floats from pixel to pixel.
pub type Pixels<'a> = (&'a [f32], usize);

/// Applies an epilogue to images of `channels` channels (a batch norm and an activation that stand before their layer, an
/// addition): `out` has as many pixels, `pitch` floats apart. Fails where sizes do not fit.
pub fn apply(
    (x, x_pitch): Pixels<'_>,
    (pixels, channels): (usize, usize),
    epilogue: &Epilogue<'_>,
    out: &mut [f32],
    pitch: usize,
) -> Result<()> {
    apply_with(Isa::best(), (x, x_pitch), (pixels, channels), epilogue, out, pitch)
}

pub(super) fn apply_with(
    isa: Isa,
    (x, x_pitch): Pixels<'_>,
    (pixels, channels): (usize, usize),
    epilogue: &Epilogue<'_>,
    out: &mut [f32],
    pitch: usize,
) -> Result<()> {
    epilogue.check(channels, pixels)?;
    if !spans(x.len(), pixels, x_pitch, channels) || !spans(out.len(), pixels, pitch, channels) {
        return Err(Diagnostic::runtime(format!(
            "{pixels} pixels of {channels} channels do not fit their slices"
        )));
    }
    if pixels == 0 || channels == 0 {
        return Ok(());
    }
    let each = pixels_of_piece(pixels, channels);
    pool::chunks(&mut out[..(pixels - 1) * pitch + channels], each * pitch, |n, out| {
        with(isa, Apply { x, x_pitch, channels, epilogue, first: n * each, out, pitch });
    });
    Ok(())
}

struct Apply<'a> {
    x: &'a [f32],
    x_pitch: usize,
    channels: usize,
    epilogue: &'a Epilogue<'a>,
    first: usize,
    out: &'a mut [f32],
    pitch: usize,
}

impl Work for Apply<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        for (n, out) in self.out.chunks_mut(self.pitch).enumerate() {
            let pixel = self.first + n;
            let x = &self.x[pixel * self.x_pitch..][..self.channels];
            for (i, (x, out)) in x.chunks(LANES).zip(out[..self.channels].chunks_mut(LANES)).enumerate() {
                let column = Column::of(l, self.epilogue, i * LANES, x.len());
                let y = column.finish(l, self.epilogue, l.load_some(x, 0.0), pixel);
                l.store_some(out, y);
            }
        }
    }
}

/// The same for images of planes: `x`, the residual and `out` have `channels` planes of `plane` floats for each image, densely.
/// Fails where sizes do not fit.
pub fn apply_planes(
    x: &[f32],
    (channels, plane): (usize, usize),
    epilogue: &Epilogue<'_>,
    out: &mut [f32],
) -> Result<()> {
    apply_planes_with(Isa::best(), x, (channels, plane), epilogue, out)
}

pub(super) fn apply_planes_with(
    isa: Isa,
    x: &[f32],
    (channels, plane): (usize, usize),
    epilogue: &Epilogue<'_>,
    out: &mut [f32],
) -> Result<()> {
    epilogue.check(channels, 0)?;
    let image = channels.checked_mul(plane);
    let whole = image.is_some_and(|n| n == 0 && x.is_empty() || n > 0 && x.len().is_multiple_of(n));
    let residual = epilogue.residual.is_none_or(|r| r.values.len() == x.len());
    if !whole || x.len() != out.len() || !residual {
        return Err(Diagnostic::runtime(format!(
            "{channels} planes of {plane} floats do not fit their slices"
        )));
    }
    pool::chunks(out, plane, |n, out| {
        let at = n * plane..n * plane + out.len();
        let residual = epilogue.residual.map(|r| &r.values[at.clone()]);
        with(isa, Plane { x: &x[at], channel: n % channels.max(1), epilogue, residual, out });
    });
    Ok(())
}

/// A channel of an image.
struct Plane<'a> {
    x: &'a [f32],
    channel: usize,
    epilogue: &'a Epilogue<'a>,
    residual: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl Work for Plane<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let e = self.epilogue;
        let bias = l.splat(e.bias.map_or(-0.0, |bias| bias[self.channel]));
        let (scale, shift) = e.norm.map_or((1.0, -0.0), |(by, then)| (by[self.channel], then[self.channel]));
        let (scale, shift) = (l.splat(scale), l.splat(shift));
        let after = e.residual.is_some_and(|r| r.after);
        for (i, (x, out)) in self.x.chunks(LANES).zip(self.out.chunks_mut(LANES)).enumerate() {
            let mut y = l.fma(l.add(l.load_some(x, 0.0), bias), scale, shift);
            let other = self.residual.map(|r| l.load_some(&r[i * LANES..][..x.len()], 0.0));
            if let Some(other) = other
                && !after
            {
                y = l.add(y, other);
            }
            y = e.activation.apply(l, y);
            if let Some(other) = other
                && after
            {
                y = l.add(y, other);
            }
            l.store_some(out, y);
        }
    }
}

/// Multiplies each channel of each image with a number: `gates` has `batch` rows of `channels`. Images are dense and
/// multiplied in place. Fails where sizes do not fit.
pub fn gate(x: &mut [f32], batch: usize, channels: usize, gates: &[f32]) -> Result<()> {
    gate_with(Isa::best(), x, batch, channels, gates)
}

pub(super) fn gate_with(isa: Isa, x: &mut [f32], batch: usize, channels: usize, gates: &[f32]) -> Result<()> {
    let whole = batch.checked_mul(channels).filter(|n| *n == gates.len() && *n > 0);
    let Some(image) = whole.filter(|n| x.len().is_multiple_of(*n)).map(|_| x.len() / batch) else {
        let empty = x.is_empty() && batch.checked_mul(channels) == Some(gates.len());
        return if empty {
            Ok(())
        } else {
            Err(Diagnostic::runtime("gates of channels do not fit their images"))
        };
    };
    if x.is_empty() {
        return Ok(());
    }
    // Images are cut into pieces of whole pixels.
    let pixels = image / channels;
    let each = pixels_of_piece(pixels, channels);
    let pieces = x.chunks_mut(image).zip(gates.chunks(channels));
    let pieces =
        pieces.flat_map(|(image, gates)| image.chunks_mut(each * channels).map(move |part| (part, gates)));
    pool::each(pieces.collect(), |(part, gates)| with(isa, Gate { part, gates }));
    Ok(())
}

struct Gate<'a> {
    part: &'a mut [f32],
    gates: &'a [f32],
}

impl Work for Gate<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        for pixel in self.part.chunks_mut(self.gates.len()) {
            for (x, gate) in pixel.chunks_mut(LANES).zip(self.gates.chunks(LANES)) {
                let y = l.mul(l.load_some(x, 0.0), l.load_some(gate, 0.0));
                l.store_some(x, y);
            }
        }
    }
}

/// Turns matrices of `rows` by `columns` floats: with rows the channels and columns the pixels this makes channels innermost,
/// with rows the pixels it makes a plane of each channel. Fails where sizes do not fit.
pub fn transpose(x: &[f32], batch: usize, rows: usize, columns: usize, out: &mut [f32]) -> Result<()> {
    /// Columns of a piece of work: their lines stay in the first cache.
    const SIDE: usize = 16;
    let size = rows.checked_mul(columns);
    if size.and_then(|n| n.checked_mul(batch)) != Some(x.len()) || x.len() != out.len() {
        return Err(Diagnostic::runtime(format!(
            "{batch} matrices of {rows} by {columns} do not fit their slices"
        )));
    }
    let Some(size) = size.filter(|n| *n > 0) else { return Ok(()) };
    for (x, out) in x.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
        pool::try_chunks(out, SIDE * rows, |n, out| {
            let (first, count) = (n * SIDE, out.len() / rows);
            let work = Transpose::new(&x[first..], [rows, count], columns, out, rows)?;
            work.run_with(Isa::best());
            Ok(())
        })?;
    }
    Ok(())
}
