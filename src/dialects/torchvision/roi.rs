//! Regions of interest: parts of feature maps brought to one size, by the largest pixel or by sampling, and the forms that
//! take each cell from channels of its own (position sensitive).

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Dense, Real, compute_dtype};
use crate::kernels::images::bilinear::Plane;
use crate::resources::pool;
use crate::tensor::{DType, Element, Tensor};
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
        |a| one(run(a, "roi_align", Kind::Align { samples: a.int(5)?, half: a.bool(6)? })?.0),
    ),
    opaque(
        "torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
        |a| pair(run(a, "roi_pool", Kind::Pool)?),
    ),
    opaque(
        "torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
        |a| pair(run(a, "ps_roi_align", Kind::SplitAlign { samples: a.int(5)? })?),
    ),
    opaque(
        "torchvision::ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
        |a| pair(run(a, "ps_roi_pool", Kind::SplitPool)?),
    ),
];

/// Which of the four ops. `samples` is the number of samples along each side of a cell; where it is not positive, as many
/// as the cell has pixels.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Align { samples: i64, half: bool },
    Pool,
    SplitAlign { samples: i64 },
    SplitPool,
}

impl Kind {
    /// Whether each cell has channels of its own.
    fn splits(self) -> bool {
        matches!(self, Kind::SplitAlign { .. } | Kind::SplitPool)
    }
}

/// More samples than this of one cell are refused: a region may have any size.
const MAX_SAMPLES: i64 = 1 << 24;

fn pair((values, places): (Tensor, Tensor)) -> Result<Outputs> {
    Ok(smallvec![values.into(), places.into()])
}

/// Sizes of a call.
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    channels: usize,
    height: usize,
    width: usize,
    rows: usize,
    cols: usize,
    /// Channels of the result.
    out_channels: usize,
}

/// The cells, and for each where it came from: the pixel (`roi_pool`) or the channel (position sensitive forms).
fn run(a: &Args<'_>, name: &str, kind: Kind) -> Result<(Tensor, Tensor)> {
    let (input, rois, scale) = (a.tensor(0)?, a.tensor(1)?, a.float(2)?);
    let shape = shape(name, input, rois, a.int(3)?, a.int(4)?, kind)?;
    let regions = rois.sizes()[0];
    let sizes = [regions, shape.out_channels as i64, shape.rows as i64, shape.cols as i64];
    let dtype = input.dtype();
    crate::dispatch_real!(compute_dtype(dtype), name, R => {
        let (x, r) = (Dense::<R>::new(input)?, Dense::<R>::new(rois)?);
        let (x, r) = (x.open()?, r.open()?);
        let (values, places) = (Tensor::zeros(R::DTYPE, &sizes)?, Tensor::zeros(DType::I32, &sizes)?);
        let cells = shape.out_channels * shape.rows * shape.cols;
        if cells > 0 {
            values.write::<R, _>(|values, _| {
                places.write::<i32, _>(|places, _| {
                    let regions = values.chunks_mut(cells).zip(places.chunks_mut(cells)).enumerate().collect();
                    pool::try_each(regions, |(at, (values, places))| {
                        region::<R>(&x, &r[at * 5..at * 5 + 5], scale, shape, kind, values, places)
                    })
                })?
            })??;
        }
        Ok((values.to_dtype(dtype)?, places))
    })
}

fn shape(name: &str, input: &Tensor, rois: &Tensor, rows: i64, cols: i64, kind: Kind) -> Result<Shape> {
    let fail = |text: &str| Err(Diagnostic::runtime(text));
    let (x, r) = (input.sizes(), rois.sizes());
    if r.len() != 2 || r[1] != 5 {
        return fail("Tensor rois should have shape as Tensor[K, 5]");
    }
    if x.len() != 4 {
        return Err(Diagnostic::runtime(format!(
            "{name}: expected an input of 4 dimensions, got {}",
            x.len()
        )));
    }
    if input.dtype() != rois.dtype() {
        return Err(Diagnostic::runtime(format!(
            "{name}: input and rois should have the same dtype, got {} and {}",
            input.dtype().type_name(),
            rois.dtype().type_name()
        )));
    }
    let (rows, cols) = match (usize::try_from(rows), usize::try_from(cols)) {
        (Ok(rows), Ok(cols)) => (rows, cols),
        _ => return Err(Diagnostic::runtime(format!("{name}: negative pooled size {rows} x {cols}"))),
    };
    let channels = x[1] as usize;
    let cells = rows.saturating_mul(cols);
    let out_channels = match kind.splits() {
        true if cells == 0 || !channels.is_multiple_of(cells) => {
            return fail("input channels must be a multiple of pooling height * pooling width");
        }
        true => channels / cells,
        false => channels,
    };
    Ok(Shape {
        batch: x[0] as usize,
        channels,
        height: x[2] as usize,
        width: x[3] as usize,
        rows,
        cols,
        out_channels,
    })
}

/// Where a region lies, in pixels of the feature map, and how large its cells are.
struct Region<R> {
    top: R,
    left: R,
    cell_height: R,
    cell_width: R,
    /// Samples along each side of a cell.
    samples: (usize, usize),
}

impl<R: Real> Region<R> {
    fn new(roi: &[R], scale: f64, shape: Shape, kind: Kind) -> Result<Region<R>> {
        let scale = R::of(scale);
        let mut edges = [roi[1] * scale, roi[2] * scale, roi[3] * scale, roi[4] * scale];
        match kind {
            Kind::Align { half: false, .. } => {}
            Kind::Align { .. } | Kind::SplitAlign { .. } => edges.iter_mut().for_each(|e| *e -= R::of(0.5)),
            Kind::Pool | Kind::SplitPool => edges.iter_mut().for_each(|e| *e = R::of(e.wide().round())),
        }
        let [left, top, right, bottom] = edges;
        let least_one = |x: R| if x < R::ONE { R::ONE } else { x };
        let (mut width, mut height) = (right - left, bottom - top);
        match kind {
            Kind::Align { half: true, .. } | Kind::SplitAlign { .. } => {}
            Kind::Align { .. } | Kind::SplitPool => (width, height) = (least_one(width), least_one(height)),
            Kind::Pool => (width, height) = (least_one(width + R::ONE), least_one(height + R::ONE)),
        }
        let (cell_height, cell_width) = (height / R::of(shape.rows as f64), width / R::of(shape.cols as f64));
        let wanted = match kind {
            Kind::Align { samples, .. } | Kind::SplitAlign { samples } => samples,
            _ => 1,
        };
        let count = |cell: R| match wanted {
            n if n > 0 => n,
            _ => cell.wide().ceil().max(0.0) as i64,
        };
        let samples = (count(cell_height), count(cell_width));
        if samples.0.saturating_mul(samples.1) > MAX_SAMPLES {
            return Err(Diagnostic::runtime(format!("{} x {} samples of one cell", samples.0, samples.1)));
        }
        let samples = (samples.0 as usize, samples.1 as usize);
        Ok(Region { top, left, cell_height, cell_width, samples })
    }

    /// The mean of a cell's samples.
    fn sampled(&self, plane: Plane<'_, R>, row: usize, col: usize) -> R {
        let (down, across) = self.samples;
        let mut sum = R::ZERO;
        for i in 0..down {
            let y = self.top
                + R::of(row as f64) * self.cell_height
                + (R::of(i as f64) + R::of(0.5)) * self.cell_height / R::of(down as f64);
            for j in 0..across {
                let x = self.left
                    + R::of(col as f64) * self.cell_width
                    + (R::of(j as f64) + R::of(0.5)) * self.cell_width / R::of(across as f64);
                sum += plane.within(y, x);
            }
        }
        sum
    }

    /// The pixels of a cell, as ranges of rows and columns.
    fn pixels(&self, row: usize, col: usize, shape: Shape, kind: Kind) -> [std::ops::Range<usize>; 2] {
        let range = |n: usize, cell: R, start: R, size: usize| {
            let (low, high) = (R::of(n as f64) * cell, R::of((n + 1) as f64) * cell);
            let (low, high, most) = match kind {
                Kind::SplitPool => {
                    ((low + start).wide().floor(), (high + start).wide().ceil(), size as f64 - 1.0)
                }
                _ => (low.wide().floor() + start.wide(), high.wide().ceil() + start.wide(), size as f64),
            };
            let clamp = |at: f64| at.max(0.0).min(most).max(0.0) as usize;
            clamp(low)..clamp(high)
        };
        [
            range(row, self.cell_height, self.top, shape.height),
            range(col, self.cell_width, self.left, shape.width),
        ]
    }
}

/// Computes one region: all channels, all cells.
fn region<R: Real>(
    images: &[R],
    roi: &[R],
    scale: f64,
    shape: Shape,
    kind: Kind,
    values: &mut [R],
    places: &mut [i32],
) -> Result<()> {
    let image = roi[0].wide();
    if !(image > -1.0 && image < shape.batch as f64) {
        return Err(Diagnostic::runtime(format!("region of image {image} in a batch of {}", shape.batch)));
    }
    let pixels = shape.height * shape.width;
    let image = &images[(image as usize) * shape.channels * pixels..][..shape.channels * pixels];
    let region = Region::new(roi, scale, shape, kind)?;
    let cells = shape.rows * shape.cols;
    for (at, (value, place)) in values.iter_mut().zip(places).enumerate() {
        let (row, col) = (at % cells / shape.cols, at % shape.cols);
        let channel = if kind.splits() { at } else { at / cells };
        let plane =
            Plane { data: &image[channel * pixels..][..pixels], height: shape.height, width: shape.width };
        (*value, *place) = match kind {
            Kind::Align { .. } | Kind::SplitAlign { .. } => {
                let count = (region.samples.0 * region.samples.1) as f64;
                let count = if kind.splits() { count } else { count.max(1.0) };
                (region.sampled(plane, row, col) / R::of(count), channel as i32)
            }
            Kind::Pool => largest(plane, region.pixels(row, col, shape, kind)),
            Kind::SplitPool => (mean(plane, region.pixels(row, col, shape, kind)), channel as i32),
        };
    }
    Ok(())
}

/// The largest pixel of a cell and its place in the plane; 0 and -1 where the cell is empty.
fn largest<R: Real>(plane: Plane<'_, R>, [rows, cols]: [std::ops::Range<usize>; 2]) -> (R, i32) {
    if rows.is_empty() || cols.is_empty() {
        return (R::ZERO, -1);
    }
    let lowest = if R::DTYPE == DType::F64 { f64::MIN } else { f64::from(f32::MIN) };
    let mut found = (R::of(lowest), -1);
    for y in rows {
        for x in cols.clone() {
            let at = y * plane.width + x;
            if plane.data[at] > found.0 {
                found = (plane.data[at], at as i32);
            }
        }
    }
    found
}

/// The mean of a cell's pixels; 0 where it is empty.
fn mean<R: Real>(plane: Plane<'_, R>, [rows, cols]: [std::ops::Range<usize>; 2]) -> R {
    let count = rows.len() * cols.len();
    if count == 0 {
        return R::ZERO;
    }
    let mut sum = R::ZERO;
    for y in rows {
        plane.data[y * plane.width..][cols.clone()].iter().for_each(|x| sum += *x);
    }
    sum / R::of(count as f64)
}
