//! What happens to the sums of a layer before they are stored, in this order: the layer's own bias, an inference batch norm,
//! a residual added before the activation, the activation, a residual added after it. Knows channels, no layers.
#![allow(
    unsafe_code,
    reason = "rows of tiles go through pointers; `Finish::of_area` is promised that they are in bounds"
)]

use super::math;
use super::vector::{LANES, Lanes, Work, read_some, write_some};
use crate::diag::{Diagnostic, Result};

/// A function of each result, PyTorch's in value, NaN and signs of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// x
    #[default]
    None,
    /// max(x, 0); NaN stays.
    Relu,
    /// x between two bounds (relu6: 0 and 6); NaN stays.
    Clamp(f32, f32),
    /// x / (1 + e^-x)
    Silu,
    /// x * clamp(x + 3, 0, 6) / 6
    HardSwish,
    /// clamp(x + 3, 0, 6) / 6
    HardSigmoid,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// x * (1 + erf(x / √2)) / 2
    Gelu,
    /// The same by PyTorch's approximation with tanh.
    GeluTanh,
    /// tanh(x)
    Tanh,
    /// x where x > 0, else x times the slope.
    LeakyRelu(f32),
}

/// A tensor of the result's sizes that is added to it.
#[derive(Clone, Copy, Debug)]
pub struct Residual<'a> {
    /// Its values, channels innermost.
    pub values: &'a [f32],
    /// Floats from one pixel (or row) to the next; as many as there are channels where it is dense.
    pub pitch: usize,
    /// Whether it is added after the activation, else before it.
    pub after: bool,
}

/// All that is applied to a layer's sums. The default applies nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Added to each channel.
    pub bias: Option<&'a [f32]>,
    /// Each channel's factor and what is added then: PyTorch's inference batch norm is `alpha = weight / sqrt(var + eps)`
    /// and `beta = bias - mean * alpha`; a layer scale is its numbers and zeros.
    pub norm: Option<(&'a [f32], &'a [f32])>,
    /// Added to the result.
    pub residual: Option<Residual<'a>>,
    /// Applied to the result.
    pub activation: Activation,
}

impl Epilogue<'_> {
    /// Fails unless all parts have `channels` channels and `pixels` pixels.
    pub(super) fn check(&self, channels: usize, pixels: usize) -> Result<()> {
        let fits = |numbers: &[f32]| numbers.len() == channels;
        if !self.bias.is_none_or(fits) || !self.norm.is_none_or(|(scale, shift)| fits(scale) && fits(shift)) {
            return Err(Diagnostic::runtime(format!(
                "a layer of {channels} channels needs as many values of bias, scale and shift"
            )));
        }
        match self.residual {
            Some(r) if !spans(r.values.len(), pixels, r.pitch, channels) => {
                Err(Diagnostic::runtime(format!(
                    "a residual of {} values in rows of {} does not fit {pixels} pixels of {channels} channels",
                    r.values.len(),
                    r.pitch
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether [`Column::begin`] does all there is to do; else there is a residual or a function left.
    pub(super) fn is_simple(&self) -> bool {
        self.residual.is_none() && self.activation.bounds().is_some()
    }

    /// Whether it leaves the sums as they are.
    pub(super) fn is_empty(&self) -> bool {
        self.bias.is_none()
            && self.norm.is_none()
            && self.residual.is_none()
            && self.activation == Activation::None
    }
}

/// Whether `len` values hold `pixels` pixels of `channels` channels that lie `pitch` values apart.
pub(super) fn spans(len: usize, pixels: usize, pitch: usize, channels: usize) -> bool {
    let Some(before) = pixels.checked_sub(1) else { return true };
    let end = before.checked_mul(pitch).and_then(|n| n.checked_add(channels));
    pitch >= channels && end.is_some_and(|end| end <= len)
}

impl Activation {
    /// Bounds that do all there is to do. None: another function.
    pub(super) fn bounds(self) -> Option<(f32, f32)> {
        match self {
            Activation::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Activation::Relu => Some((0.0, f32::INFINITY)),
            Activation::Clamp(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// Sixteen results.
    #[inline(always)]
    pub(super) fn apply<L: Lanes>(self, l: L, x: L::V) -> L::V {
        let (zero, one, half) = (l.splat(0.0), l.splat(1.0), l.splat(0.5));
        let six = |x| l.at_most(l.splat(6.0), l.at_least(zero, l.add(x, l.splat(3.0))));
        match self {
            Activation::None => x,
            Activation::Relu => l.at_least(zero, x),
            Activation::Clamp(low, high) => l.at_most(l.splat(high), l.at_least(l.splat(low), x)),
            Activation::Silu => math::silu(l, x),
            Activation::HardSwish => l.div(l.mul(x, six(x)), l.splat(6.0)),
            Activation::HardSigmoid => l.div(six(x), l.splat(6.0)),
            Activation::Sigmoid => math::sigmoid(l, x),
            Activation::Gelu => math::gelu(l, x),
            Activation::GeluTanh => {
                let cube = l.mul(l.mul(x, x), x);
                let inner = l.fma(l.splat(0.044_715), cube, x);
                let inner = l.mul(l.splat(0.797_884_56), inner);
                l.mul(l.mul(half, x), l.add(one, math::tanh(l, inner)))
            }
            Activation::Tanh => math::tanh(l, x),
            Activation::LeakyRelu(slope) => l.where_less(zero, x, x, l.mul(x, l.splat(slope))),
        }
    }
}

/// A vector of channels of an epilogue. Parts that are missing are numbers that change nothing: -0 as a term.
#[derive(Clone, Copy)]
pub(super) struct Column<V> {
    bias: V,
    scale: V,
    shift: V,
    /// Bounds that do all the rest, unless there is a residual or another function.
    low: V,
    high: V,
    simple: bool,
    first: usize,
    count: usize,
}

impl<V: Copy> Column<V> {
    /// `count` channels from `first` on, which the epilogue must have.
    #[inline(always)]
    pub(super) fn of<L: Lanes<V = V>>(
        l: L,
        epilogue: &Epilogue<'_>,
        first: usize,
        count: usize,
    ) -> Column<V> {
        let (mut bias, mut scale, mut shift) = (l.splat(-0.0), l.splat(1.0), l.splat(-0.0));
        if let Some(given) = epilogue.bias {
            bias = l.load_some(&given[first..first + count], 0.0);
        }
        if let Some((by, then)) = epilogue.norm {
            scale = l.load_some(&by[first..first + count], 0.0);
            shift = l.load_some(&then[first..first + count], 0.0);
        }
        let bounds = epilogue.activation.bounds().filter(|_| epilogue.residual.is_none());
        let (low, high) = bounds.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        let (low, high, simple) = (l.splat(low), l.splat(high), bounds.is_some());
        Column { bias, scale, shift, low, high, simple, first, count }
    }

    /// What the epilogue makes of a pixel's sums.
    #[inline(always)]
    pub(super) fn finish<L: Lanes<V = V>>(&self, l: L, epilogue: &Epilogue<'_>, sums: V, pixel: usize) -> V {
        let x = self.begin(l, sums);
        if self.simple { x } else { self.rest(l, epilogue, x, pixel) }
    }

    /// Bias, batch norm, and bounds where there is no more to do.
    #[inline(always)]
    pub(super) fn begin<L: Lanes<V = V>>(&self, l: L, sums: V) -> V {
        let moved = l.fma(l.add(sums, self.bias), self.scale, self.shift);
        l.at_most(self.high, l.at_least(self.low, moved))
    }

    #[inline(always)]
    fn rest<L: Lanes<V = V>>(&self, l: L, epilogue: &Epilogue<'_>, mut x: V, pixel: usize) -> V {
        let Some(r) = epilogue.residual else { return epilogue.activation.apply(l, x) };
        let other = l.load_some(&r.values[pixel * r.pitch + self.first..][..self.count], 0.0);
        if !r.after {
            x = l.add(x, other);
        }
        x = epilogue.activation.apply(l, x);
        if r.after { l.add(x, other) } else { x }
    }
}

/// Applies an activation to rows of stored sums, and adds what is added before or after it. Sums are computed in many places and sizes:
/// as work of its own ([`apart`](super::vector::apart)) the functions are compiled once for all of them.
pub(super) struct Finish<'a> {
    activation: Activation,
    /// The first row's first sum, how many columns of how many rows there are, and floats from row to row.
    sums: *mut f32,
    rows: usize,
    columns: usize,
    pitch: usize,
    /// What is added, from the first row's first column on.
    residual: Option<Residual<'a>>,
}

impl<'a> Finish<'a> {
    /// For an area whose first row and column have these numbers in the whole result.
    ///
    /// # Safety
    /// The rows of sums must be in bounds, and written by nothing else, until the work is done.
    pub unsafe fn of_area(
        epilogue: &Epilogue<'a>,
        (pixel, column): (usize, usize),
        sums: *mut f32,
        [rows, columns]: [usize; 2],
        pitch: usize,
    ) -> Finish<'a> {
        let residual =
            epilogue.residual.map(|r| Residual { values: &r.values[pixel * r.pitch + column..], ..r });
        Finish { activation: epilogue.activation, sums, rows, columns, pitch, residual }
    }
}

impl Work for Finish<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        // A loop for each function: what it needs stays in registers.
        macro_rules! loops {
            ($($function:ident $(($($number:ident),*))?;)*) => {
                match self.activation {
                    $(Activation::$function $(($($number),*))? => {
                        self.each(l, #[inline(always)] |x| Activation::$function $(($($number),*))?.apply(l, x))
                    })*
                }
            };
        }
        loops!(None; Relu; Clamp(low, high); Silu; HardSwish; HardSigmoid; Sigmoid; Gelu; GeluTanh; Tanh; LeakyRelu(slope););
    }
}

impl Finish<'_> {
    /// Replaces each sum by what a function makes of it, with the residual before or after it.
    #[inline(always)]
    fn each<L: Lanes>(&self, l: L, function: impl Fn(L::V) -> L::V) {
        for row in 0..self.rows {
            // The residual's row must be there.
            let residual = self.residual.map(|r| (&r.values[row * r.pitch..][..self.columns], r.after));
            for at in (0..self.columns).step_by(LANES) {
                let count = LANES.min(self.columns - at);
                let sums = self.sums.wrapping_add(row * self.pitch + at);
                // SAFETY: the promise of who made the work; the residual was looked at above.
                unsafe {
                    let x = read_some(l, sums, count);
                    let y = match residual {
                        None => function(x),
                        Some((values, after)) => {
                            let other = read_some(l, values.as_ptr().add(at), count);
                            if after { l.add(function(x), other) } else { function(l.add(x, other)) }
                        }
                    };
                    write_some(l, sums, count, y);
                }
            }
        }
    }
}
