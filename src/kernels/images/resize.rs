//! Resizing planes of bytes along one dimension after the other, with weights of 16 bits, so that every result is the one
//! that integer arithmetic gives: PyTorch's (and before it Pillow's) way with uint8 images. Between the dimensions results
//! are bytes again. Knows no tensor.

/// The filter whose stretched copies weigh the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// A triangle over two elements.
    Linear,
    /// A cubic over four elements.
    Cubic,
    /// A sine over six elements.
    Lanczos,
}

impl Filter {
    /// Elements under the filter where it is not stretched.
    fn width(self) -> usize {
        match self {
            Filter::Linear => 2,
            Filter::Cubic => 4,
            Filter::Lanczos => 6,
        }
    }

    /// The weight at a distance. Cubics bend less where they are stretched against aliasing.
    fn weight(self, x: f64, antialias: bool) -> f64 {
        let x = x.abs();
        let a = if antialias { -0.5 } else { -0.75 };
        match self {
            Filter::Linear => (1.0 - x).max(0.0),
            Filter::Cubic if x < 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
            Filter::Cubic if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
            Filter::Cubic => 0.0,
            Filter::Lanczos => super::lanczos(x),
        }
    }
}

/// How one dimension is resized.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Elements that there are; at least one.
    pub from: usize,
    /// Elements that there will be; at least one.
    pub to: usize,
    /// Input steps for one output step.
    pub step: f64,
    /// Whether the first and last elements keep their places.
    pub align: bool,
    /// The filter.
    pub filter: Filter,
    /// Whether the filter is stretched over all elements that one result stands for.
    pub antialias: bool,
}

/// For each result the first element it is made of, and a weight for it and those that follow.
pub struct Weights {
    taps: Vec<(usize, Vec<i16>)>,
    /// Bits after the point of the weights.
    precision: u32,
}

impl Weights {
    /// The weights of an axis: computed as float64, scaled to as many bits as the largest leaves.
    pub fn new(axis: &Axis) -> Weights {
        let exact: Vec<(usize, Vec<f64>)> = (0..axis.to)
            .map(|at| if axis.antialias { axis.smooth(at) } else { axis.interpolated(at) })
            .collect();
        let most = exact.iter().flat_map(|(_, w)| w).fold(0.0, |most: f64, w| most.max(*w));
        let fits = |bits: u32| ((0.5 + most * f64::from(1u32 << (bits + 1))) as i64) < 1 << 15;
        let precision = (0..22).find(|bits| !fits(*bits)).unwrap_or(22);
        let scale = f64::from(1u32 << precision);
        let round = |w: &f64| (w * scale + if *w < 0.0 { -0.5 } else { 0.5 }) as i16;
        let taps =
            exact.iter().map(|(first, weights)| (*first, weights.iter().map(round).collect())).collect();
        Weights { taps, precision }
    }
}

impl Axis {
    /// Weights of all elements under the stretched filter, by their share.
    fn smooth(&self, at: usize) -> (usize, Vec<f64>) {
        let reach = self.filter.width() as f64 * 0.5;
        let (support, shrink) =
            if self.step >= 1.0 { (reach * self.step, 1.0 / self.step) } else { (reach, 1.0) };
        let most = support.ceil() as usize * 2 + 1;
        let center = self.step * (at as f64 + 0.5);
        let first = ((center - support + 0.5) as i64).max(0) as usize;
        let end = ((center + support + 0.5) as i64).max(0) as usize;
        let count = end.min(self.from).saturating_sub(first).min(most);
        let weight = |j: usize| self.filter.weight(((j + first) as f64 - center + 0.5) * shrink, true);
        let mut weights: Vec<f64> = (0..count).map(weight).collect();
        let total: f64 = weights.iter().sum();
        if total != 0.0 {
            weights.iter_mut().for_each(|w| *w /= total);
        }
        (first.min(self.from - 1), weights)
    }

    /// Weights of the neighbours of a place; what would lie outside counts for the outermost element.
    fn interpolated(&self, at: usize) -> (usize, Vec<f64>) {
        let width = self.filter.width();
        let place = if self.align { self.step * at as f64 } else { self.step * (at as f64 + 0.5) - 0.5 };
        let place = if self.align || self.filter == Filter::Cubic { place } else { place.max(0.0) };
        let last = self.from as i64 - 1;
        // The place is rounded down as a float32.
        let index = ((place as f32).floor() as i64).min(last);
        let rest = (place - index as f64).clamp(0.0, 1.0);
        let support = (width / 2) as i64;
        let (low, high) = (index - support + 1, index + support + 1);
        let first = low.max(0);
        let count = (high.min(self.from as i64) - first).clamp(0, width as i64) as usize;
        let mut weights = vec![0.0; width];
        let mut slot = 0usize;
        for j in 0..width as i64 {
            if low + j <= 0 {
                slot = 0;
            } else if low + j >= last {
                slot = count.saturating_sub(1);
            }
            weights[slot.min(width - 1)] += self.filter.weight((j + 1 - support) as f64 - rest, false);
            slot += 1;
        }
        weights.truncate(count.max(1));
        (first.min(last) as usize, weights)
    }
}

/// Resizes a stretch of memory seen as (outer, from, inner) to (outer, to, inner). `out` has that size.
pub fn along(source: &[u8], from: usize, inner: usize, weights: &Weights, out: &mut [u8]) {
    let to = weights.taps.len();
    if inner == 0 || to == 0 || from == 0 {
        return;
    }
    let half = 1i32 << weights.precision >> 1;
    for (plane, out) in source.chunks_exact(from * inner).zip(out.chunks_exact_mut(to * inner)) {
        for (line, (first, taps)) in out.chunks_exact_mut(inner).zip(&weights.taps) {
            for (n, y) in line.iter_mut().enumerate() {
                let elements = plane[first * inner + n..].iter().step_by(inner);
                let product = |(x, w): (&u8, &i16)| i32::from(*x) * i32::from(*w);
                let sum = elements.zip(taps).map(product).fold(half, i32::wrapping_add);
                *y = (sum >> weights.precision).clamp(0, 255) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that PyTorch gives for a line of four.
    #[test]
    fn lines_of_bytes_are_resized_as_by_pytorch() {
        let run = |to: usize, filter, antialias| {
            let axis = Axis { from: 4, to, step: 4.0 / to as f64, align: false, filter, antialias };
            let mut out = vec![0; to];
            along(&[10, 200, 30, 255], 4, 1, &Weights::new(&axis), &mut out);
            out
        };
        assert_eq!(run(4, Filter::Linear, true), [10, 200, 30, 255]);
        assert_eq!(run(8, Filter::Linear, false), [10, 58, 153, 158, 73, 86, 199, 255]);
        assert_eq!(run(8, Filter::Cubic, false), [0, 59, 175, 174, 51, 63, 198, 255]);
        assert_eq!(run(3, Filter::Linear, true), [67, 115, 188]);
        assert_eq!(run(3, Filter::Cubic, true), [67, 114, 190]);
    }
}
