//! Padding, and sliding windows as columns (im2col, col2im).

use super::convert::in_format_of;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::layers;
use crate::dialects::{Args, LayerPart, OpDef, Outputs, gather, one};
use crate::kernels::create::fill::full_checked;
use crate::kernels::create::range::not_implemented;
use crate::kernels::index::place::{identity, remap, remap_as_it_lies};
use crate::resources::{Collect, memory};
use crate::tensor::{DType, Element, Layout, Scalar, Tensor, channels_last_strides, view};
use num_complex::Complex64;
use std::ops::Range;

/// The rows.
pub static OPS: &[OpDef] = &[
    gather("aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor", |a| {
        pad(a, a.str(2)?, a.opt_float(3)?)
    }).part(LayerPart::Pad).rare("u8").quantized_kernel(crate::dialects::quantized::moves::pad).infer(layers::padded),
    gather("aten::_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", |a| {
        let mode = match a.int(2)? {
            0 => "reflect",
            1 => "replicate",
            2 => "circular",
            3 => "constant",
            n => return Err(Diagnostic::runtime(format!("Unrecognised padding mode {n}"))),
        };
        pad(a, mode, a.opt_float(3)?)
    }),
    gather("aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor", |a| {
        circular(a.tensor(0)?, &a.ints(1)?)
    }),
    gather("aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", |a| {
        one(constant(a.tensor(0)?, &a.ints(1)?, a.scalar(2)?)?)
    }).part(LayerPart::Pad).rare("u8").quantized(crate::dialects::Quantized::IntegersAndNumber(2)).infer(layers::padded)
    .out_exact("out"),
    gather("aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", |a| edges(a, 1, Edge::Reflect)).quantized(crate::dialects::Quantized::Integers).out_exact("out"),
    gather("aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", |a| edges(a, 2, Edge::Reflect)).quantized(crate::dialects::Quantized::Integers).out("out"),
    gather("aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", |a| edges(a, 3, Edge::Reflect)).out("out"),
    gather("aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", |a| edges(a, 1, Edge::Replicate))
        .out_exact("out"),
    gather("aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", |a| edges(a, 2, Edge::Replicate))
        .out_exact("out"),
    gather("aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", |a| edges(a, 3, Edge::Replicate))
        .out("out"),
    gather(
        "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        im2col,
    ).infer(layers::columns)
    .grad("self: torch.col2im(grad, [self.size(-2), self.size(-1)], kernel_size, dilation, padding, stride)")
    .out("out"),
    gather(
        "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        col2im,
    ).infer(layers::images)
    .grad("self: torch.im2col(grad, kernel_size, dilation, padding, stride)")
    .out("out"),
];

/// How places outside of the source find their element.
#[derive(Clone, Copy, PartialEq)]
enum Edge {
    Reflect,
    Replicate,
}

fn pad(a: &Args<'_>, mode: &str, value: Option<f64>) -> Result<Outputs> {
    let (tensor, pad) = (a.tensor(0)?, a.ints(1)?);
    if !pad.len().is_multiple_of(2) {
        return Err(Diagnostic::runtime("Padding length must be divisible by 2"));
    }
    if pad.len() > tensor.rank() * 2 {
        return Err(Diagnostic::runtime(format!(
            "Padding length should be less than or equal to two times the input dimension but got padding length {} and \
             input of dimension {}",
            pad.len(),
            tensor.rank()
        )));
    }
    if mode == "constant" {
        return one(constant(tensor, &pad, value.map_or(Scalar::Int(0), Scalar::Float))?);
    }
    if value.is_some_and(|v| v != 0.0) {
        return Err(Diagnostic::runtime(format!("Padding mode \"{mode}\" doesn't take in value argument")));
    }
    let fits = matches!((pad.len(), tensor.rank()), (2, 2 | 3) | (4, 3 | 4) | (6, 4 | 5));
    let edge = match mode {
        "reflect" if fits => Edge::Reflect,
        "replicate" if fits => Edge::Replicate,
        "circular" if fits => return circular(tensor, &pad),
        "reflect" | "replicate" | "circular" => {
            return Err(Diagnostic::raised(
                "NotImplementedError",
                format!(
                    "Padding size {} is not supported for {}D input tensor.\nSupported combinations for non-constant \
                     padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size \
                     = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)",
                    pad.len(),
                    tensor.rank()
                ),
            ));
        }
        other => {
            return Err(Diagnostic::raised(
                "NotImplementedError",
                format!("Unrecognised padding mode {other}"),
            ));
        }
    };
    one(by_edge(tensor, &pad, pad.len() / 2, edge)?)
}

/// The dimension that the n-th pair of paddings is for, counted from the front, with the pair. Last dimension first.
fn pairs(pad: &[i64], rank: usize) -> impl Iterator<Item = (usize, i64, i64)> + '_ {
    pad.chunks_exact(2).enumerate().filter_map(move |(n, p)| Some((rank.checked_sub(n + 1)?, p[0], p[1])))
}

fn constant(tensor: &Tensor, pad: &[i64], value: Scalar) -> Result<Tensor> {
    let rank = tensor.rank();
    if !pad.len().is_multiple_of(2) {
        return Err(Diagnostic::runtime(format!(
            "Length of pad must be even but instead it equals {}",
            pad.len()
        )));
    }
    if pad.len() > rank * 2 {
        return Err(Diagnostic::runtime(format!(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {}while the \
             input has {rank}dimensions.",
            pad.len()
        )));
    }
    let own = tensor.sizes();
    let mut sizes = own.clone();
    let mut source = tensor.clone();
    for (d, left, right) in pairs(pad, rank) {
        sizes[d] = own[d].saturating_add(left).saturating_add(right);
        let cut = |side: i64| side.saturating_neg().max(0);
        let (start, end) = (cut(left), own[d].saturating_sub(cut(right)));
        if end < start && (left < 0 || right < 0) {
            return Err(Diagnostic::runtime("narrow(): length must be non-negative."));
        }
        if left < 0 || right < 0 {
            source = source.look(|l| view::narrow(l, d as i64, start, end - start))?;
        }
    }
    if let Some((d, left, right)) = pairs(pad, rank).find(|(d, ..)| sizes[*d] < 0) {
        return Err(Diagnostic::runtime(format!(
            "The input size {}, plus negative padding {left} and {right} resulted in a negative output size, which is \
             invalid. Check dimension {d} of your input.",
            own[d]
        )));
    }
    let result = full_checked(&sizes, value, tensor.dtype())?;
    // Images whose channels lie innermost stay so: all elements are one number yet, whatever order they have.
    let result = match tensor.layout().suggests_channels_last() {
        true if sizes.len() == 4 => {
            result.with_layout(Layout::strided(&sizes, &channels_last_strides(&sizes), 0)?)?
        }
        true => in_format_of(result, &[tensor])?,
        false => result,
    };
    let mut inner = result.clone();
    for (d, left, _) in pairs(pad, rank) {
        inner = inner.look(|l| view::narrow(l, d as i64, left.max(0), source.sizes()[d]))?;
    }
    inner.copy_from(&source)?;
    Ok(result)
}

/// The padding ops of a fixed number of dimensions.
fn edges(a: &Args<'_>, dims: usize, edge: Edge) -> Result<Outputs> {
    let (tensor, pad) = (a.tensor(0)?, a.ints(1)?);
    if pad.len() != dims * 2 {
        return Err(Diagnostic::runtime(format!(
            "padding size is expected to be {}, but got: {}",
            dims * 2,
            pad.len()
        )));
    }
    one(by_edge(tensor, &pad, dims, edge)?)
}

fn by_edge(tensor: &Tensor, pad: &[i64], dims: usize, edge: Edge) -> Result<Tensor> {
    let (own, rank) = (tensor.sizes(), tensor.rank());
    let batch = usize::from(rank == dims + 2);
    let valid = (rank == dims + 1 || rank == dims + 2) && own[batch..].iter().all(|s| *s != 0);
    if !valid {
        return Err(Diagnostic::runtime(format!(
            "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, \
             but got: {:?}",
            dims + 1,
            dims + 2,
            own.as_slice()
        )));
    }
    let mut sizes = own.clone();
    for (n, (d, left, right)) in pairs(pad, rank).enumerate() {
        if edge == Edge::Reflect && (left >= own[d] || right >= own[d]) {
            return Err(Diagnostic::runtime(format!(
                "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding \
                 ({left}, {right}) at dimension {d} of input {:?}",
                4 + 2 * n,
                own.as_slice()
            )));
        }
        sizes[d] = own[d].saturating_add(left).saturating_add(right);
    }
    if pairs(pad, rank).any(|(d, ..)| sizes[d] < 1) {
        let letters = &["D", "H", "W"][3 - dims..];
        let show = |s: &[i64]| letters.iter().zip(s).map(|(l, n)| format!("{l}: {n}")).collect::<Vec<_>>();
        let (from, to) = (show(&own[rank - dims..]), show(&sizes[rank - dims..]));
        let (from, to) = (from.join(", "), to.join(" "));
        return Err(Diagnostic::runtime(if dims == 1 {
            format!("input ({from}) is too small. Calculated output {to}")
        } else {
            format!("Calculated output {to} must be >= 1 in every dimension (input {from})")
        }));
    }
    if tensor.dtype() == DType::Bool {
        let name = if edge == Edge::Reflect { "reflection" } else { "replication" };
        return Err(not_implemented(&format!("{name}_pad{dims}d"), DType::Bool));
    }
    Tensor::expect(tensor.dtype(), &sizes)?;
    let mut maps = identity(&own)?;
    for (d, left, _) in pairs(pad, rank) {
        let last = own[d] - 1;
        maps[d] = (0..sizes[d])
            .map(|i| {
                let at = i - left;
                let at = match edge {
                    Edge::Replicate => at,
                    Edge::Reflect if at < 0 => -at,
                    Edge::Reflect if at > last => 2 * last - at,
                    Edge::Reflect => at,
                };
                at.clamp(0, last) as usize
            })
            .scratch()?;
    }
    let is_last = rank == dims + 2 && tensor.with_meta(|meta| meta.layout.suggests_channels_last());
    if is_last { in_format_of(remap_as_it_lies(tensor, &maps)?, &[tensor]) } else { remap(tensor, &maps) }
}

fn circular(tensor: &Tensor, pad: &[i64]) -> Result<Outputs> {
    let (own, rank) = (tensor.sizes(), tensor.rank());
    if pad.len() / 2 + 2 != rank && pad.len() / 2 + 1 != rank {
        return Err(Diagnostic::runtime(format!(
            "Invalid padding size, expected {} but got {}",
            (rank.max(2) - 2) * 2,
            pad.len()
        )));
    }
    let mut sizes = own.clone();
    for (d, left, right) in pairs(pad, rank) {
        sizes[d] = own[d].saturating_add(left).saturating_add(right);
        if left > own[d] || right > own[d] {
            return Err(Diagnostic::runtime("Padding value causes wrapping around more than once."));
        }
        if sizes[d] < 0 {
            return Err(Diagnostic::runtime("Negative padding value is resulting in an empty dimension"));
        }
    }
    Tensor::expect(tensor.dtype(), &sizes)?;
    let mut maps = identity(&own)?;
    for (d, left, _) in pairs(pad, rank) {
        // Negative padding crops first; what is left wraps around.
        let right = sizes[d] - own[d] - left;
        let (start, kept) = ((-left).max(0), own[d] + left.min(0) + right.min(0));
        maps[d] = (0..if kept > 0 { sizes[d] } else { 0 })
            .map(|i| (start + (i - left.max(0)).rem_euclid(kept)) as usize)
            .scratch()?;
    }
    one(remap(tensor, &maps)?)
}

/// The numbers of im2col and col2im: kernel, dilation, padding, stride, each by height and width.
struct Windows {
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
}

impl Windows {
    fn new(a: &Args<'_>, first: usize) -> Result<Windows> {
        let two = |n: usize, name: &str| -> Result<[i64; 2]> {
            let ints = a.ints(n)?;
            <[i64; 2]>::try_from(&ints[..]).map_err(|_| {
                Diagnostic::runtime(format!("It is expected {name} equals to 2, but got size {}", ints.len()))
            })
        };
        let windows = Windows {
            kernel: two(first, "kernel_size")?,
            dilation: two(first + 1, "dilation")?,
            padding: two(first + 2, "padding")?,
            stride: two(first + 3, "stride")?,
        };
        let checks = [
            ("kernel size", "kernel", &windows.kernel),
            ("stride", "stride", &windows.stride),
            ("dilation", "dilation", &windows.dilation),
        ];
        for (what, name, [h, w]) in checks {
            if *h <= 0 || *w <= 0 {
                return Err(Diagnostic::runtime(format!(
                    "{what} should be greater than zero, but got {name}_height: {h} {name}_width: {w}"
                )));
            }
        }
        if windows.padding.iter().any(|p| *p < 0) {
            return Err(Diagnostic::runtime("padding should be non-negative"));
        }
        Ok(windows)
    }

    /// How many windows fit along height and width.
    fn count(&self, size: [i64; 2]) -> [i64; 2] {
        std::array::from_fn(|d| {
            let reach = self.dilation[d].saturating_mul(self.kernel[d] - 1).saturating_add(1);
            let room = size[d].saturating_add(self.padding[d].saturating_mul(2)).saturating_sub(reach);
            room.div_euclid(self.stride[d]) + 1
        })
    }

    /// The windows, of `count` along dimension `d`, whose tap with this number lies in an image of `size`.
    fn inside(&self, d: usize, tap: i64, size: i64, count: i64) -> Range<i64> {
        let offset = tap.saturating_mul(self.dilation[d]).saturating_sub(self.padding[d]);
        let at_or_after = |place: i64| {
            place.saturating_sub(offset).max(0).saturating_add(self.stride[d] - 1) / self.stride[d]
        };
        let (first, end) = (at_or_after(0).min(count), at_or_after(size).min(count));
        first..end.max(first)
    }

    /// Calls `visit(column element, image element)` for one channel-image of `size`, padding left out.
    fn visit(&self, size: [i64; 2], channels: i64, mut visit: impl FnMut(usize, usize)) {
        let [rows, columns] = self.count(size);
        let mut at = 0;
        for c in 0..channels {
            for kh in 0..self.kernel[0] {
                for kw in 0..self.kernel[1] {
                    for y in 0..rows {
                        let h = y * self.stride[0] + kh * self.dilation[0] - self.padding[0];
                        for x in 0..columns {
                            let w = x * self.stride[1] + kw * self.dilation[1] - self.padding[1];
                            if (0..size[0]).contains(&h) && (0..size[1]).contains(&w) {
                                visit(at, ((c * size[0] + h) * size[1] + w) as usize);
                            }
                            at += 1;
                        }
                    }
                }
            }
        }
    }

    fn show(pair: [i64; 2]) -> String {
        format!("({}, {})", pair[0], pair[1])
    }
}

fn im2col(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let windows = Windows::new(a, 1)?;
    let own = tensor.sizes();
    let (batch, channels, size) = match own[..] {
        [c, h, w] if c != 0 && h != 0 && w != 0 => (None, c, [h, w]),
        [n, c, h, w] if c != 0 && h != 0 && w != 0 => (Some(n), c, [h, w]),
        _ => {
            return Err(Diagnostic::runtime(format!(
                "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, \
                 but got: {:?}",
                own.as_slice()
            )));
        }
    };
    let count = windows.count(size);
    if count[0] < 1 || count[1] < 1 {
        return Err(Diagnostic::runtime(format!(
            "Given input with spatial size {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of \
             sliding blocks as {}, but its components must be at least one.",
            Windows::show(size),
            Windows::show(windows.kernel),
            Windows::show(windows.dilation),
            Windows::show(windows.padding),
            Windows::show(count)
        )));
    }
    if tensor.dtype().is_integral() {
        return Err(not_implemented("im2col_out_cpu", tensor.dtype()));
    }
    let rows = channels.saturating_mul(windows.kernel[0]).saturating_mul(windows.kernel[1]);
    let sizes = [batch.unwrap_or(1), rows, count[0].saturating_mul(count[1])];
    let result = Tensor::zeros(tensor.dtype(), &sizes)?;
    let [kh, kw] = windows.kernel;
    let columns = result.reshaped(&[sizes[0], channels, kh, kw, count[0], count[1]])?;
    let image = tensor.reshaped(&[sizes[0], channels, size[0], size[1]])?;
    for (i, j) in (0..kh).flat_map(|i| (0..kw).map(move |j| (i, j))) {
        let (y, x) = (windows.inside(0, i, size[0], count[0]), windows.inside(1, j, size[1], count[1]));
        if y.is_empty() || x.is_empty() {
            continue;
        }
        let to = columns.look(|l| {
            let tap = view::select(&view::select(l, 2, i)?, 2, j)?;
            view::narrow(&view::narrow(&tap, 2, y.start, y.end - y.start)?, 3, x.start, x.end - x.start)
        })?;
        let from = image.look(|l| {
            let pixels = |l: &Layout, d: usize, tap: i64, windows_of: &Range<i64>| {
                let first =
                    windows_of.start * windows.stride[d] + tap * windows.dilation[d] - windows.padding[d];
                let last = first + (windows_of.end - windows_of.start - 1) * windows.stride[d];
                view::slice(l, d as i64 + 2, Some(first), Some(last + 1), windows.stride[d])
            };
            pixels(&pixels(l, 0, i, &y)?, 1, j, &x)
        })?;
        to.copy_from(&from)?;
    }
    one(if batch.is_some() { result } else { result.reshaped(&sizes[1..])? })
}

fn col2im(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let size = <[i64; 2]>::try_from(&a.ints_of(1, 2)?[..])
        .map_err(|_| Diagnostic::runtime("It is expected output_size equals to 2"))?;
    let windows = Windows::new(a, 2)?;
    let own = tensor.sizes();
    let (batch, rows, columns) = match own[..] {
        [r, c] if r != 0 && c != 0 => (None, r, c),
        [n, r, c] if r != 0 && c != 0 => (Some(n), r, c),
        _ => {
            return Err(Diagnostic::runtime(format!(
                "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for \
                 input, but got: {:?}",
                own.as_slice()
            )));
        }
    };
    let area = windows.kernel[0].saturating_mul(windows.kernel[1]);
    let at = usize::from(batch.is_some());
    if rows % area != 0 {
        return Err(Diagnostic::runtime(format!(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={rows} \
             and kernel_size={}.",
            Windows::show(windows.kernel)
        )));
    }
    let count = windows.count(size);
    let blocks = count[0].saturating_mul(count[1]);
    if count[0] < 1 || count[1] < 1 || blocks != columns {
        return Err(Diagnostic::runtime(format!(
            "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}, expected size of input's dimension \
             2 to match the calculated number of sliding blocks {} * {} = {blocks}, but got input.size(2)={}.",
            Windows::show(size),
            Windows::show(windows.kernel),
            Windows::show(windows.dilation),
            Windows::show(windows.padding),
            Windows::show(windows.stride),
            count[0],
            count[1],
            own[at + 1]
        )));
    }
    if tensor.dtype().is_integral() {
        return Err(not_implemented("col2im_out_cpu", tensor.dtype()));
    }
    let channels = rows / area;
    let sizes = [batch.unwrap_or(1), channels, size[0], size[1]];
    let result = Tensor::zeros(tensor.dtype(), &sizes)?;
    let (image, block) = ((result.numel() / sizes[0].max(1) as usize), (rows * columns) as usize);
    // Sums are kept in double precision and rounded once.
    let elements = tensor.elements_as::<Complex64>()?;
    let mut sums = memory::filled(result.numel(), Complex64::default())?;
    for n in 0..sizes[0] as usize {
        windows
            .visit(size, channels, |column, pixel| sums[n * image + pixel] += elements[n * block + column]);
    }
    crate::dispatch_dtype!(tensor.dtype(), T => {
        let sums = sums.iter().map(|c| <T as Element>::from_scalar(real_or_complex(tensor.dtype(), *c))).scratch()?;
        result.write_dense::<T>(&sums)
    })?;
    one(if batch.is_some() { result } else { result.reshaped(&sizes[1..])? })
}

fn real_or_complex(dtype: DType, c: Complex64) -> Scalar {
    if dtype.is_complex() { Scalar::Complex(c) } else { Scalar::Float(c.re) }
}
