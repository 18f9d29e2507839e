//! Pooling: the largest element or the mean of windows, at fixed steps or in as many parts as asked for.

use super::convert::in_format_of;
use super::pool_checks::{argument_rank, expect_images, refuse_empty};
use super::pool_images::{pooled_in_vectors, windows};
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{layers, products, trial};
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Dense, Number, Real, build, build_whole};
use crate::kernels::create::range::not_implemented;
use crate::kernels::float::{PoolKind, Pooling};
use crate::kernels::images::pool::{
    Axis, Divisor, each_pair_of_planes, each_plane, largest, max, max_with_places, mean,
};
use crate::kernels::strided::with_strides;
use crate::kernels::wide_loops;
use crate::resources::memory;
use crate::tensor::{DType, Element, Tensor, channels_last_strides, view};
use crate::value::Value;
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
        |a| max_pool(a, 1),
    ).quantized_kernel(quantized_max_pool1d).infer(products::pool1d),
    opaque(
        "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
        |a| max_pool(a, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::pool2d),
    opaque(
        "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
        |a| max_pool(a, 3),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::pool3d),
    opaque(
        "aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
        |a| max_pool_with_places(a, 1),
    ).infer(layers::pool1d_with_places),
    opaque(
        "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        |a| max_pool_with_places(a, 2),
    ).infer(layers::pool2d_with_places),
    opaque(
        "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        |a| max_pool_with_places(a, 3),
    ).infer(layers::pool3d_with_places),
    opaque(
        "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        |a| one(spread(a.tensor(0)?, a.tensor(7)?, &a.tensor(1)?.sizes(), 2)?),
    ).infer(trial::stand_ins),
    opaque(
        "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        |a| one(spread(a.tensor(0)?, a.tensor(7)?, &a.tensor(1)?.sizes(), 3)?),
    ),
    opaque(
        "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        |a| avg_pool(a, 1),
    ).quantized_kernel(|a| crate::dialects::quantized::pool::avg(a, 1)).infer(products::pool1d)
    .out_exact("out"),
    opaque(
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        |a| avg_pool(a, 2),
    ).quantized_kernel(|a| crate::dialects::quantized::pool::avg(a, 2)).infer(products::pool2d)
    .out_exact("out"),
    opaque(
        "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        |a| avg_pool(a, 3),
    ).quantized_kernel(|a| crate::dialects::quantized::pool::avg(a, 3)).infer(products::pool3d)
    .out_exact("out"),
    opaque(
        "aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        |a| fractional(a, 2),
    ).infer(trial::kernel),
    opaque(
        "aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        |a| fractional(a, 3),
    ).infer(trial::kernel),
    opaque("aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", |a| unpool(a, 2)).infer(trial::kernel).out("out"),
    opaque(
        "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
        |a| unpool(a, 3),
    ).infer(trial::kernel)
    .out("out"),
];

pub(super) fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// `dims` numbers of an argument: one stands for all.
fn numbers(a: &Args<'_>, n: usize, dims: usize, what: &str) -> Result<Vec<i64>> {
    let ints = a.ints(n)?;
    match ints.len() {
        1 => Ok(vec![ints[0]; dims]),
        n if n == dims => Ok(ints),
        _ => {
            let name =
                a.op.name()
                    .as_str()
                    .trim_start_matches("aten::")
                    .trim_end_matches("_with_indices")
                    .to_string();
            let words = ["one int", "two ints", "three ints"][dims - 1];
            let omitted = if what == "stride" { "be omitted, a single int" } else { "be a single int" };
            fail(format!("{name}: {what} must either {omitted}, or a tuple of {words}"))
        }
    }
}

/// A tensor as planes: the last `dims` dimensions are spatial.
pub(super) struct Planes {
    lead: Vec<i64>,
    pub(super) input: Vec<i64>,
}

impl Planes {
    pub(super) fn new(t: &Tensor, dims: usize) -> Planes {
        let sizes = t.sizes();
        let at = sizes.len() - dims;
        Planes { lead: sizes[..at].to_vec(), input: sizes[at..].to_vec() }
    }

    fn count(&self) -> usize {
        self.lead.iter().product::<i64>() as usize
    }

    pub(super) fn sizes(&self, spatial: &[i64]) -> Vec<i64> {
        self.lead.iter().chain(spatial).copied().collect()
    }
}

/// Spatial sizes with ones in front.
pub(super) fn three(sizes: &[i64]) -> [usize; 3] {
    std::array::from_fn(|d| match (d + sizes.len()).checked_sub(3) {
        Some(d) => sizes[d].max(0) as usize,
        None => 1,
    })
}

/// The numbers of a pooling at fixed steps, as the call gives them.
struct Steps {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil: bool,
}

impl Steps {
    fn new(a: &Args<'_>, dims: usize, dilation: Option<usize>, ceil: usize) -> Result<Steps> {
        let kernel = numbers(a, 1, dims, "kernel_size")?;
        let stride = if a.ints(2)?.is_empty() { kernel.clone() } else { numbers(a, 2, dims, "stride")? };
        Ok(Steps {
            stride,
            padding: numbers(a, 3, dims, "padding")?,
            dilation: match dilation {
                Some(n) => numbers(a, n, dims, "dilation")?,
                None => vec![1; dims],
            },
            ceil: a.bool(ceil)?,
            kernel,
        })
    }

    fn check(&self) -> Result<()> {
        if self.stride.iter().any(|s| *s <= 0) {
            return fail("stride should not be zero");
        }
        for ((k, p), d) in self.kernel.iter().zip(&self.padding).zip(&self.dilation) {
            if *p < 0 {
                return fail(format!("pad must be non-negative, but got pad: {p}"));
            }
            if *k <= 0 {
                return fail(format!("kernel size should be greater than zero, but got {:?}", self.kernel));
            }
            if *d <= 0 {
                let names = if self.dilation.len() == 3 { &["T", "H", "W"][..] } else { &["H", "W"] };
                let shown: Vec<String> =
                    names.iter().zip(&self.dilation).map(|(n, d)| format!("dilation{n}: {d}")).collect();
                return fail(format!("dilation should be greater than zero, but got {}", shown.join(" ")));
            }
            if (k - 1).checked_mul(*d).is_none() {
                return fail(format!(
                    "effective kernel size overflows, but got kernel_size={k} and dilation={d}"
                ));
            }
            if *p > (k - 1).saturating_mul(*d).saturating_add(1) / 2 {
                return fail(format!(
                    "pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
                ));
            }
        }
        Ok(())
    }

    /// The same of images for kernels that take a vector of channels at a time.
    fn in_vectors(&self, kind: PoolKind) -> Option<Pooling> {
        windows(kind, [&self.kernel, &self.stride, &self.padding, &self.dilation], self.ceil)
    }

    /// Number of windows along a dimension.
    fn output(&self, d: usize, input: i64) -> i64 {
        let (k, s, p, l) = (self.kernel[d], self.stride[d], self.padding[d], self.dilation[d]);
        let reach = l.saturating_mul(k - 1).saturating_add(1);
        let room = input.saturating_add(2 * p).saturating_sub(reach);
        let count = room.saturating_add(if self.ceil { s - 1 } else { 0 }).div_euclid(s) + 1;
        // The last window must begin inside the input or the padding in front.
        if self.ceil && (count - 1).saturating_mul(s) >= input.saturating_add(p) { count - 1 } else { count }
    }

    fn axes(&self, planes: &Planes) -> Result<(Vec<i64>, [Axis; 3])> {
        let dims = self.kernel.len();
        let output: Vec<i64> = (0..dims).map(|d| self.output(d, planes.input[d])).collect();
        if output.iter().any(|n| *n < 1) {
            // Pooling along one dimension is shown as along two.
            let show = |sizes: &[i64]| {
                let channels = planes.lead.last().copied().unwrap_or(1);
                let inner = (dims == 1).then_some(1);
                let all = std::iter::once(channels).chain(inner).chain(sizes.iter().copied());
                all.map(|n| n.to_string()).collect::<Vec<_>>().join("x")
            };
            return fail(format!(
                "Given input size: ({}). Calculated output size: ({}). Output size is too small",
                show(&planes.input),
                show(&output)
            ));
        }
        let axes = std::array::from_fn(|at| match (at + dims).checked_sub(3) {
            None => Axis::NONE,
            Some(d) => Axis {
                input: planes.input[d] as usize,
                output: output[d] as usize,
                kernel: self.kernel[d] as usize,
                stride: self.stride[d] as usize,
                padding: self.padding[d] as usize,
                dilation: self.dilation[d] as usize,
            },
        });
        Ok((output, axes))
    }
}

fn max_prepare(a: &Args<'_>, dims: usize) -> Result<(Steps, Planes)> {
    let t = a.tensor(0)?;
    if dims == 1 && a.op.name() == "aten::max_pool1d_with_indices" {
        argument_rank(t, "max_pool1d")?;
    } else if dims == 1 && (t.rank() != 2 && t.rank() != 3) {
        return fail(format!(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
            t.sizes().as_slice()
        ));
    }
    let steps = Steps::new(a, dims, Some(4), 5)?;
    if dims == 1 && a.op.name() == "aten::max_pool1d" {
        let (k, p) = (steps.kernel[0], steps.padding[0]);
        if t.sizes()[t.rank() - 2..].contains(&0) {
            return fail(format!(
                "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
                t.sizes().as_slice()
            ));
        }
        for (name, n) in [("kernel_size", k), ("stride", steps.stride[0]), ("dilation", steps.dilation[0])] {
            if n <= 0 {
                return fail(format!("max_pool1d() {name} must be greater than zero, but got {n}"));
            }
        }
        if p < 0 {
            return fail(format!("max_pool1d() padding must be non-negative, but got {p}"));
        }
        if p > k / 2 && k > 0 {
            return fail(format!(
                "max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
            ));
        }
    }
    steps.check()?;
    let own = t.sizes();
    if dims == 3 && (own.len() == 4 || own.len() == 5) {
        refuse_empty("max_pool3d_with_indices_out_cpu_template", &own, own.len() - 4)?;
    }
    expect_images(t, dims)?;
    let planes = Planes::new(t, dims);
    if dims == 1 && a.op.name() == "aten::max_pool1d" && steps.output(0, planes.input[0]) < 1 {
        return fail(format!(
            "max_pool1d() Invalid computed output size: {}",
            steps.output(0, planes.input[0])
        ));
    }
    Ok((steps, planes))
}

fn max_pool(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let (steps, planes) = max_prepare(a, dims)?;
    let (output, axes) = steps.axes(&planes)?;
    let (t, sizes) = (a.tensor(0)?, planes.sizes(&output));
    if let Some(pooling) = steps.in_vectors(PoolKind::Max)
        && let Some(result) = pooled_in_vectors(t, &pooling)?
    {
        return one(result);
    }
    fn run<T: Number + PartialOrd>(
        t: &Tensor,
        sizes: &[i64],
        dtype: DType,
        axes: &[Axis; 3],
        lowest: T,
    ) -> Result<Tensor> {
        let x = Dense::<T>::new(t)?;
        let x = x.open()?;
        let size: usize = axes.iter().map(|a| a.input).product();
        let cost = axes.iter().map(|a| a.kernel).product();
        build_whole::<T>(sizes, dtype, |out| {
            each_plane(out, axes.iter().map(|a| a.output).product(), cost, |at, out| {
                wide_loops(
                    #[inline(always)]
                    || max(&x[at * size..(at + 1) * size], axes, lowest, out),
                );
            });
            Ok(())
        })
    }
    let name = if dims == 1 { "max_pool1d_impl" } else { ["", "max_pool2d", "max_pool3d"][dims - 1] };
    match t.dtype() {
        d if d.is_integral() && dims > 1 => {
            one(in_format_of(run::<i64>(t, &sizes, d, &axes, i64::MIN)?, &[t])?)
        }
        d => {
            crate::dispatch_real!(d, name, R => one(in_format_of(run::<R>(t, &sizes, d, &axes, -R::INFINITY)?, &[t])?))
        }
    }
}

/// Of integers there is no such kernel, of quantized ones there is: they are compared as real numbers.
fn quantized_max_pool1d(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let (integers, quantizer) = (tensor.integers(), crate::dialects::quantized::ints::quantizer(tensor)?);
    let mut values = a.values.to_vec();
    values[0] = integers.to_dtype(DType::F64)?.into();
    let results = max_pool(&Args { op: a.op, values: &values, node: a.node, run: a.run }, 1)?;
    let results = match results.first() {
        Some(Value::Tensor(t)) => t.to_dtype(integers.dtype())?,
        _ => return Err(crate::diag::Diagnostic::internal("pooling without a result")),
    };
    one(Tensor::quantized(&results, tensor.dtype(), quantizer)?)
}

fn max_pool_with_places(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let (steps, planes) = max_prepare(a, dims)?;
    let (output, axes) = steps.axes(&planes)?;
    let (t, sizes) = (a.tensor(0)?, planes.sizes(&output));
    fn run<T: Number + PartialOrd>(
        t: &Tensor,
        sizes: &[i64],
        axes: &[Axis; 3],
        lowest: T,
    ) -> Result<Outputs> {
        let x = Dense::<T>::new(t)?;
        let x = x.open()?;
        let size: usize = axes.iter().map(|a| a.input).product();
        let cost = axes.iter().map(|a| a.kernel).product();
        pairs::<T>(t.dtype(), sizes, |values, places| {
            let plane = axes.iter().map(|a| a.output).product();
            each_pair_of_planes((values, places), plane, cost, |at, values, places| {
                wide_loops(
                    #[inline(always)]
                    || max_with_places(&x[at * size..(at + 1) * size], axes, lowest, values, places),
                );
            });
        })
    }
    match t.dtype() {
        d if d.is_integral() => both_in_format_of(run::<i64>(t, &sizes, &axes, i64::MIN)?, t),
        d => {
            let name = ["max_pool2d", "max_pool2d", "max_pool3d"][dims - 1];
            crate::dispatch_real!(d, name, R => both_in_format_of(run::<R>(t, &sizes, &axes, -R::INFINITY)?, t))
        }
    }
}

/// Values and places with their channels last where those of the image are.
pub(super) fn both_in_format_of(pair: Outputs, image: &Tensor) -> Result<Outputs> {
    pair.into_iter().map(|v| pooled(v.to_tensor()?.clone(), image).map(Value::Tensor)).collect()
}

/// A result with its channels last where those of the image are. Lines are pooled as images of one row.
pub(super) fn pooled(result: Tensor, image: &Tensor) -> Result<Tensor> {
    if image.rank() != 3 || result.rank() != 3 {
        return in_format_of(result, &[image]);
    }
    if !view::unsqueeze(&image.layout(), 2)?.suggests_channels_last() {
        return Ok(result);
    }
    let sizes = result.sizes();
    let mut strides = channels_last_strides(&[sizes[0], sizes[1], 1, sizes[2]]);
    strides.remove(2);
    with_strides(result, &strides)
}

/// Values and places as two tensors, whose elements `fill` writes.
pub(super) fn pairs<T: Element>(
    dtype: DType,
    sizes: &[i64],
    fill: impl FnOnce(&mut [T], &mut [i64]),
) -> Result<Outputs> {
    let mut values = None;
    let places = build_whole::<i64>(sizes, DType::I64, |places| {
        values = Some(build_whole::<T>(sizes, dtype, |values| {
            fill(values, places);
            Ok(())
        })?);
        Ok(())
    })?;
    let values = values.ok_or_else(|| Diagnostic::internal("pooling without values"))?;
    Ok(smallvec![values.into(), places.into()])
}

fn avg_pool(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let t = a.tensor(0)?;
    if dims == 1 {
        argument_rank(t, "avg_pool1d")?;
    }
    let steps = Steps::new(a, dims, None, 4)?;
    let divisor = match if dims == 1 { None } else { a.opt_int(6)? } {
        Some(0) => return fail("divisor must be not zero"),
        Some(n) => Divisor::Fixed(n),
        None if a.bool(5)? => Divisor::Padded,
        None => Divisor::Inside,
    };
    if dims == 2 && t.rank() < 3 {
        crate::tensor::wrap_dim(-3, t.rank())?;
    }
    steps.check()?;
    if dims == 3 && (t.rank() == 4 || t.rank() == 5) {
        refuse_empty("avg_pool3d", &t.sizes(), t.rank() - 4)?;
    }
    expect_images(t, dims)?;
    let planes = Planes::new(t, dims);
    if let ([x, y, z], [t, h, w]) = (&planes.input[..], &steps.kernel[..])
        && (x < t || y < h || z < w)
    {
        return fail(format!(
            "input image (T: {x} H: {y} W: {z}) smaller than kernel size (kT: {t} kH: {h} kW: {w})"
        ));
    }
    let (output, axes) = steps.axes(&planes)?;
    let sizes = planes.sizes(&output);
    let kind = match divisor {
        Divisor::Padded => Some(PoolKind::Average { padding: true, divisor: None }),
        Divisor::Inside => Some(PoolKind::Average { padding: false, divisor: None }),
        Divisor::Fixed(n) => {
            usize::try_from(n).ok().map(|n| PoolKind::Average { padding: true, divisor: Some(n) })
        }
    };
    if let Some(pooling) = kind.and_then(|kind| steps.in_vectors(kind))
        && let Some(result) = pooled_in_vectors(t, &pooling)?
    {
        return one(result);
    }
    fn run<T: Number>(
        t: &Tensor,
        sizes: &[i64],
        axes: &[Axis; 3],
        divisor: Divisor,
        finish: impl Fn(T, i64) -> T + Sync + Send,
    ) -> Result<Tensor> {
        let x = Dense::<T>::new(t)?;
        let x = x.open()?;
        let size: usize = axes.iter().map(|a| a.input).product();
        let cost = axes.iter().map(|a| a.kernel).product();
        build::<T>(sizes, t.dtype(), |out| {
            each_plane(out, axes.iter().map(|a| a.output).product(), cost, |at, out| {
                mean(&x[at * size..(at + 1) * size], axes, divisor, &finish, out);
            });
            Ok(())
        })
    }
    let result = match t.dtype() {
        DType::I64 => run::<i64>(t, &sizes, &axes, divisor, |sum, n| sum.wrapping_div(n)),
        d => {
            let name = ["avg_pool2d", "avg_pool2d", "avg_pool3d_out_frame"][dims - 1];
            if dims == 3 && matches!(d, DType::F16 | DType::BF16) {
                return Err(not_implemented(name, d));
            }
            crate::dispatch_real!(d, name, R => run::<R>(t, &sizes, &axes, divisor, |sum, n| sum / R::of(n as f64)))
        }
    }?;
    // Volumes stay row-major.
    one(if dims == 3 { result } else { pooled(result, t)? })
}

/// Windows whose places follow from given random numbers, one for each plane and dimension.
fn fractional(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let (t, samples) = (a.tensor(0)?, a.tensor(3)?);
    let (kernel, output) = (numbers(a, 1, dims, "kernel_size")?, numbers(a, 2, dims, "output_size")?);
    let name = if dims == 2 { "fractional_max_pool2d" } else { "fractional_max_pool3d_out" };
    let rank = t.rank();
    if rank != dims + 1 && rank != dims + 2 {
        return fail(format!(
            "{name}(): Expected {}D or {}D tensor, but got: {:?}",
            dims + 1,
            dims + 2,
            t.sizes().as_slice()
        ));
    }
    if let Some(d) = (1..rank).find(|d| t.sizes()[*d] == 0) {
        return fail(format!(
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but got{:?} with dimension {d} being \
             empty.",
            t.sizes().as_slice()
        ));
    }
    let planes = Planes::new(t, dims);
    let words = if dims == 3 { &["time", "height", "width"][..] } else { &["height", "width"] };
    for d in 0..dims {
        if kernel[d] < 1 || output[d] < 1 {
            return fail(format!("{name}(): kernel and output sizes must be greater than zero"));
        }
        if output[d].saturating_add(kernel[d]) - 1 > planes.input[d] {
            return fail(format!(
                "{name}(): pool {} {} too large relative to input {} {}",
                words[d], kernel[d], words[d], planes.input[d]
            ));
        }
    }
    if samples.dtype() != t.dtype() {
        return fail("Expect _random_samples to have the same dtype as input");
    }
    if samples.numel() < planes.count() * dims || samples.rank() != 3 {
        return fail("Expect _random_samples to have 3 dimensions");
    }
    let (sizes, input) = (planes.sizes(&output), three(&planes.input));
    let parts = three(&output);
    crate::dispatch_real!(t.dtype(), name, R => {
        let (x, random) = (t.elements_as::<R>()?, samples.elements_as::<R>()?);
        let size: usize = input.iter().product();
        pairs::<R>(t.dtype(), &sizes, |values, places| {
            each_pair_of_planes((values, places), parts.iter().product(), 1, |at, values, places| {
                let plane = &x[at * size..(at + 1) * size];
                // In two dimensions the first number is for the width; in three for the depth.
                let starts: Vec<Vec<usize>> = (0..dims)
                    .map(|d| {
                        let sample = random[at * dims + if dims == 2 { 1 - d } else { d }];
                        intervals(sample, planes.input[d], output[d], kernel[d])
                    })
                    .collect();
                let span = |d: usize, at: usize| match (d + dims).checked_sub(3) {
                    Some(d) => (starts[d][at], starts[d][at] + kernel[d] as usize),
                    None => (0, 1),
                };
                for (at, (value, place)) in values.iter_mut().zip(places).enumerate() {
                    let (z, y, x) = (at / (parts[1] * parts[2]), at / parts[2] % parts[1], at % parts[2]);
                    (*value, *place) = largest(plane, &input, [span(0, z), span(1, y), span(2, x)]);
                }
            });
        })
    })
}

/// Where the windows begin along a dimension.
fn intervals<R: Real>(sample: R, input: i64, output: i64, kernel: i64) -> Vec<usize> {
    let last = (input - kernel) as usize;
    let mut starts = vec![last; output as usize];
    if output > 1 {
        let alpha = R::of((input - kernel) as f64) / R::of((output - 1) as f64);
        let shift = (sample * alpha).wide().trunc();
        for (i, start) in starts.iter_mut().enumerate().take(output as usize - 1) {
            let at = ((R::of(i as f64) + sample) * alpha).wide().trunc() - shift;
            *start = (at.max(0.0) as usize).min(last);
        }
    }
    starts
}

/// Adds each element of `values` at its place in a plane of zeros.
fn spread(values: &Tensor, places: &Tensor, sizes: &[i64], dims: usize) -> Result<Tensor> {
    if sizes.len() < dims || values.sizes() != places.sizes() {
        return fail("expected gradients and indices of the same sizes");
    }
    let size: i64 = sizes[sizes.len() - dims..].iter().product();
    let places = Dense::<i64>::new(places)?;
    let places = places.open()?;
    let count = sizes[..sizes.len() - dims].iter().product::<i64>() as usize;
    let part = places.len() / count.max(1);
    if !places.iter().fold(true, |all, p| all & (0..size).contains(p)) {
        let bad = places.iter().find(|p| !(0..size).contains(*p)).copied().unwrap_or_default();
        return fail(format!("invalid max index {bad} in a plane of {size} elements"));
    }
    crate::dispatch_real!(values.dtype(), "max_pool_backward", R => {
        let x = Dense::<R>::new(values)?;
        let x = x.open()?;
        build_whole::<R>(sizes, values.dtype(), |out| {
            each_plane(out, size as usize, 1, |at, out| {
                out.fill(R::default());
                let part = at * part..(at + 1) * part;
                for (value, place) in x[part.clone()].iter().zip(&places[part]) {
                    out[*place as usize] += *value;
                }
            });
            Ok(())
        })
    })
}

/// Puts each element at its place in a plane of zeros.
fn unpool(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let (t, places, output) = (a.tensor(0)?, a.tensor(1)?, a.ints(2)?);
    if places.dtype() != DType::I64 {
        return fail(format!(
            "elements in indices should be type int64 but got: {}",
            places.dtype().type_name()
        ));
    }
    if t.rank() != dims + 1 && t.rank() != dims + 2 {
        let name = if dims == 2 { "max_unpooling2d" } else { "max_unpooling3d" };
        return fail(format!(
            "Input to {name} should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
            dims + 1,
            dims + 2,
            t.rank()
        ));
    }
    if t.sizes() != places.sizes() {
        return fail(format!(
            "Expected shape of indices to be same as that of the input tensor ({:?}) but got indices tensor with shape: {:?}",
            t.sizes().as_slice(),
            places.sizes().as_slice()
        ));
    }
    if output.len() != dims {
        return fail(format!(
            "There should be exactly {} elements in output_size, but got {} elements.",
            ["one", "two", "three"][dims - 1],
            output.len()
        ));
    }
    if dims == 3 && a.ints(3)?.iter().any(|s| *s <= 0) {
        return fail(format!("strides should be greater than zero, but got stride: {:?}", a.ints(3)?));
    }
    let planes = Planes::new(t, dims);
    let sizes = planes.sizes(&output);
    let result = Tensor::zeros(t.dtype(), &sizes)?;
    let size: i64 = output.iter().product();
    let part: i64 = planes.input.iter().product();
    if !t.dtype().is_floating() {
        return Err(not_implemented(&format!("max_unpool{dims}d"), t.dtype()));
    }
    let mut positions = memory::reserved(t.numel())?;
    for (at, place) in places.elements::<i64>()?.into_iter().enumerate() {
        if !(0..size).contains(&place) {
            let shown = output.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
            return fail(format!("Found an invalid max index: {place} (output volumes are of size {shown})"));
        }
        positions.push((at as i64 / part.max(1) * size + place) as usize)?;
    }
    result.put_positions(&positions, t)?;
    one(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_with_padding_and_ceil() {
        let axis = Axis { input: 5, output: 3, kernel: 3, stride: 2, padding: 1, dilation: 1 };
        let axes = [Axis::NONE, Axis::NONE, axis];
        let x = [1f32, 5.0, 2.0, f32::NAN, 0.0];
        let (mut values, mut places) = ([0f32; 3], [0i64; 3]);
        max_with_places(&x, &axes, f32::NEG_INFINITY, &mut values, &mut places);
        assert_eq!((values[0], places), (5.0, [1, 3, 3]));
        let mut plain = [0f32; 3];
        max(&x, &axes, f32::NEG_INFINITY, &mut plain);
        assert!(plain[0] == 5.0 && plain[1].is_nan() && plain[2].is_nan());
        let mut means = [0f32; 3];
        mean(&[1f32, 5.0, 3.0, 4.0, 2.0], &axes, Divisor::Padded, |s, n| s / n as f32, &mut means);
        assert_eq!(means, [2.0, 4.0, 2.0]);
    }
}
