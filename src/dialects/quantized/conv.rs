//! Convolutions with packed weights, transposed or not, over one to three dimensions. Results have their channels last
//! in memory.

use super::convert::{chosen, dequantize, quantize};
use super::ints::{Params, dense, dispatch_quant, from_memory, in_format, in_memory};
use super::packed::{ConvWeights, Prepared, payload};
use super::stage::{Epilogue, Stage, WeightScales};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Kernel, OpDef, Outputs, Quantized, one, opaque};
use crate::kernels::int8::qconv::{Geometry, PackedConv};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{DType, Tensor};
use crate::value::Value;
use std::sync::Arc;

const fn own(schema: &'static str, eval: Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

macro_rules! row {
    ($name:literal, $class:literal, $eval:expr) => {
        own(
            concat!(
                $name,
                "(Tensor qx, __torch__.torch.classes.quantized.",
                $class,
                " packed_weight, float output_scale, int output_zero_point) -> Tensor"
            ),
            $eval,
        )
    };
}

macro_rules! old {
    ($name:literal, $class:literal, $eval:expr) => {
        own(
            concat!(
                $name,
                "(Tensor qx, __torch__.torch.classes.quantized.",
                $class,
                " weight, int[] stride, int[] padding, int[] dilation, int groups, float output_scale, int \
                 output_zero_point) -> Tensor"
            ),
            $eval,
        )
    };
}

macro_rules! dynamic {
    ($name:literal, $class:literal) => {
        own(
            concat!(
                $name,
                "(Tensor qx, __torch__.torch.classes.quantized.",
                $class,
                " packed_weight, bool reduce_range=False) -> Tensor"
            ),
            |a| one(dynamic(a.tensor(0)?, payload(a.value(1)?)?, a.bool(2)?)?),
        )
    };
}

macro_rules! prepack {
    ($name:literal, $class:literal, $spatial:literal) => {
        own(
            concat!(
                $name,
                "(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) -> \
                 __torch__.torch.classes.quantized.",
                $class
            ),
            |a| prepack(a, $spatial, false),
        )
    };
}

macro_rules! prepack_transposed {
    ($name:literal, $class:literal, $spatial:literal) => {
        own(
            concat!(
                $name,
                "(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, int \
                 groups) -> __torch__.torch.classes.quantized.",
                $class
            ),
            |a| prepack(a, $spatial, true),
        )
    };
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    row!("quantized::conv1d", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("quantized::conv1d_relu", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::Relu)?)),
    row!("quantized::conv2d.new", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?))
        .doc("integer convolution with packed weights, rounded to the output's scale"),
    row!("quantized::conv2d_relu.new", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::Relu)?)),
    row!("_quantized::conv2d", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("_quantized::conv2d_relu", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::Relu)?)),
    row!("quantized::conv3d.new", "Conv3dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("quantized::conv3d_relu.new", "Conv3dPackedParamsBase", |a| one(call(a, 2, Epilogue::Relu)?)),
    row!("_quantized::conv3d", "Conv3dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("_quantized::conv3d_relu", "Conv3dPackedParamsBase", |a| one(call(a, 2, Epilogue::Relu)?)),
    row!("quantized::conv_transpose1d", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("quantized::conv_transpose2d", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("quantized::conv_transpose3d", "Conv3dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("_quantized::conv_transpose1d", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    row!("_quantized::conv_transpose2d", "Conv2dPackedParamsBase", |a| one(call(a, 2, Epilogue::None)?)),
    old!("quantized::conv2d", "Conv2dPackedParamsBase", |a| one(call(a, 6, Epilogue::None)?)),
    old!("quantized::conv2d_relu", "Conv2dPackedParamsBase", |a| one(call(a, 6, Epilogue::Relu)?)),
    old!("quantized::conv3d", "Conv3dPackedParamsBase", |a| one(call(a, 6, Epilogue::None)?)),
    old!("quantized::conv3d_relu", "Conv3dPackedParamsBase", |a| one(call(a, 6, Epilogue::Relu)?)),
    own(
        "quantized::conv2d_add(Tensor qx, Tensor qaccum, __torch__.torch.classes.quantized.Conv2dPackedParamsBase packed_weight, float output_scale, int output_zero_point) -> Tensor",
        |a| with_sum(a, Epilogue::None),
    ),
    own(
        "quantized::conv2d_add_relu(Tensor qx, Tensor qaccum, __torch__.torch.classes.quantized.Conv2dPackedParamsBase packed_weight, float output_scale, int output_zero_point) -> Tensor",
        |a| with_sum(a, Epilogue::Relu),
    ),
    dynamic!("quantized::conv1d_dynamic", "Conv2dPackedParamsBase"),
    dynamic!("quantized::conv2d_dynamic", "Conv2dPackedParamsBase"),
    dynamic!("quantized::conv3d_dynamic", "Conv3dPackedParamsBase"),
    dynamic!("quantized::conv_transpose1d_dynamic", "Conv2dPackedParamsBase"),
    dynamic!("quantized::conv_transpose2d_dynamic", "Conv2dPackedParamsBase"),
    dynamic!("quantized::conv_transpose3d_dynamic", "Conv3dPackedParamsBase"),
    prepack!("quantized::conv1d_prepack", "Conv2dPackedParamsBase", 1),
    prepack!("quantized::conv2d_prepack", "Conv2dPackedParamsBase", 2),
    prepack!("quantized::conv_prepack", "Conv2dPackedParamsBase", 2),
    prepack!("quantized::conv3d_prepack", "Conv3dPackedParamsBase", 3),
    prepack!("_quantized::conv2d_prepack", "Conv2dPackedParamsBase", 2),
    prepack!("_quantized::conv3d_prepack", "Conv3dPackedParamsBase", 3),
    prepack_transposed!("quantized::conv_transpose1d_prepack", "Conv2dPackedParamsBase", 1),
    prepack_transposed!("quantized::conv_transpose2d_prepack", "Conv2dPackedParamsBase", 2),
    prepack_transposed!("quantized::conv_transpose3d_prepack", "Conv3dPackedParamsBase", 3),
    prepack_transposed!("_quantized::conv_transpose1d_prepack", "Conv2dPackedParamsBase", 1),
    prepack_transposed!("_quantized::conv_transpose2d_prepack", "Conv2dPackedParamsBase", 2),
    prepack_transposed!("_quantized::conv_transpose3d_prepack", "Conv3dPackedParamsBase", 3),
];

fn prepack(a: &Args<'_>, spatial: usize, transpose: bool) -> Result<Outputs> {
    let (weight, bias) = (a.tensor(0)?, a.opt_tensor(1)?.cloned());
    if weight.dtype() != DType::QI8 || weight.rank() != spatial + 2 {
        return Err(Diagnostic::runtime(format!(
            "{}: the weight must be qint8 and have {} dimensions",
            a.op.name(),
            spatial + 2
        )));
    }
    WeightScales::of(weight)?;
    let lists: Vec<Vec<i64>> =
        (2..a.values.len() - 1).map(|n| a.ints_of(n, spatial)).collect::<Result<_>>()?;
    let groups = a.int(a.values.len() - 1)?;
    let [stride, padding, rest @ .., dilation] = &lists[..] else {
        return Err(Diagnostic::internal("a convolution without numbers"));
    };
    // One dimension is the second of two.
    let pad = |list: &[i64], fill: i64| if spatial == 1 { vec![fill, list[0]] } else { list.to_vec() };
    let weight =
        if spatial == 1 { weight.look(|l| crate::tensor::view::unsqueeze(l, 2))? } else { weight.clone() };
    let none = vec![0; spatial];
    let weights = ConvWeights {
        weight,
        bias,
        stride: pad(stride, 1),
        padding: pad(padding, 0),
        output_padding: pad(rest.first().unwrap_or(&none), 0),
        dilation: pad(dilation, 1),
        groups,
        transpose,
        prepared: Prepared::default(),
    };
    one(Value::Object(weights.object()?))
}

/// What the kernel needs of the weights.
struct ConvKernel {
    /// `[groups][out / groups][kernel places][in / groups]`
    weights: Scratch<i8>,
    scales: WeightScales,
    /// Packed, where the convolution is not transposed.
    packed: Option<PackedConv>,
    bias: Option<Scratch<f32>>,
    /// Output channels of a group, input channels of a group.
    out_group: usize,
    in_group: usize,
    /// Kernel sizes, padded to three.
    kernel: [usize; 3],
}

fn three(list: &[i64], fill: i64) -> [i64; 3] {
    let mut out = [fill; 3];
    let start = 3 - list.len().min(3);
    out[start..].copy_from_slice(&list[list.len() - (3 - start)..]);
    out
}

fn kernel(conv: &ConvWeights) -> Result<Arc<ConvKernel>> {
    conv.prepared.get(|| {
        let sizes = conv.weight.sizes();
        let groups = conv.groups as usize;
        let (first, second) = (sizes[0].max(0) as usize, sizes[1].max(0) as usize);
        if !first.is_multiple_of(groups) {
            return Err(Diagnostic::runtime(format!("{first} channels of weights in {groups} groups")));
        }
        let (out_group, in_group) =
            if conv.transpose { (second, first / groups) } else { (first / groups, second) };
        let kernel = three(&sizes[2..], 1).map(|k| k.max(0) as usize);
        let places = kernel.iter().product::<usize>();
        let items = conv.weight.integers().elements::<i8>()?;
        let mut weights = memory::reserved(items.len())?;
        for g in 0..groups {
            for o in 0..out_group {
                for k in 0..places {
                    for i in 0..in_group {
                        let at = if conv.transpose {
                            ((g * in_group + i) * out_group + o) * places + k
                        } else {
                            ((g * out_group + o) * in_group + i) * places + k
                        };
                        weights.push(items[at])?;
                    }
                }
            }
        }
        let scales = WeightScales::of(&conv.weight)?;
        let packed = if conv.transpose {
            None
        } else {
            let steps = |list: &[i64], fill: i64| three(list, fill).map(|n| n.max(0) as usize);
            let geometry = Geometry {
                channels: in_group * groups,
                outputs: first,
                groups,
                kernel,
                stride: steps(&conv.stride, 1),
                padding: steps(&conv.padding, 0),
                dilation: steps(&conv.dilation, 1),
            };
            Some(PackedConv::new(&items, geometry, scales.quantization()?)?)
        };
        Ok(ConvKernel {
            weights,
            scales,
            packed,
            bias: conv.bias.as_ref().map(|b| b.elements_as::<f32>()).transpose()?,
            out_group,
            in_group,
            kernel,
        })
    })
}

/// The geometry of a call, spatial dimensions padded to three.
struct Plan {
    batch: usize,
    channels: usize,
    input: [usize; 3],
    output: [usize; 3],
    sizes: Vec<i64>,
}

impl Plan {
    /// Elements of the output.
    fn count(&self) -> Result<usize> {
        let count = self.sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s as usize));
        count.ok_or_else(|| Diagnostic::runtime("the output of a quantized convolution is too large"))
    }
}

fn plan(x: &Tensor, conv: &ConvWeights, kernel: &ConvKernel) -> Result<Plan> {
    let sizes = x.sizes();
    let spatial = conv.spatial();
    let wanted = spatial + 2;
    if sizes.len() != wanted {
        return Err(Diagnostic::runtime(format!(
            "a quantized convolution over {spatial} dimensions needs an input of {wanted}, got {}",
            sizes.len()
        )));
    }
    let channels = kernel.in_group * conv.groups as usize;
    if sizes[1] != channels as i64 {
        return Err(Diagnostic::runtime(format!(
            "Expected input to have {channels} channels, but got {} channels instead",
            sizes[1]
        )));
    }
    let input = three(&sizes[2..], 1);
    let (stride, dilation) = (three(&conv.stride, 1), three(&conv.dilation, 1));
    let (padding, extra) = (three(&conv.padding, 0), three(&conv.output_padding, 0));
    let mut output = [1i64; 3];
    for d in 0..3 {
        let reach = dilation[d].saturating_mul(kernel.kernel[d] as i64 - 1);
        output[d] = if conv.transpose {
            let far = (input[d] - 1).saturating_mul(stride[d]).saturating_sub(2 * padding[d]);
            far.saturating_add(reach).saturating_add(extra[d] + 1)
        } else {
            let room = input[d].saturating_add(2 * padding[d]).saturating_sub(reach + 1);
            if room < 0 { 0 } else { room / stride[d] + 1 }
        };
        if output[d] <= 0 {
            return Err(Diagnostic::runtime("the output of a quantized convolution would be empty"));
        }
    }
    let mut result = vec![sizes[0], (kernel.out_group * conv.groups as usize) as i64];
    result.extend(&output[3 - spatial..]);
    Ok(Plan {
        batch: sizes[0].max(0) as usize,
        channels,
        input: input.map(|n| n.max(0) as usize),
        output: output.map(|n| n as usize),
        sizes: result,
    })
}

/// The input's position that an output position meets at a place of the kernel along one dimension.
fn meets(conv: &ConvWeights, d: usize, out: usize, place: usize, size: usize) -> Option<usize> {
    let (stride, dilation) = (three(&conv.stride, 1)[d], three(&conv.dilation, 1)[d]);
    let padding = three(&conv.padding, 0)[d];
    let at = if conv.transpose {
        let far = out as i64 + padding - place as i64 * dilation;
        if far % stride != 0 {
            return None;
        }
        far / stride
    } else {
        out as i64 * stride - padding + place as i64 * dilation
    };
    usize::try_from(at).ok().filter(|at| *at < size)
}

/// Exact sums Σ (x - x0)(w - w0) for each output element, channels innermost.
fn sums(
    items: &[i32],
    x_zero: i32,
    conv: &ConvWeights,
    kernel: &ConvKernel,
    plan: &Plan,
    mut each: impl FnMut(i32, usize),
) {
    let groups = conv.groups as usize;
    let (ig, og, places) = (kernel.in_group, kernel.out_group, kernel.kernel.iter().product::<usize>());
    let [depth, height, width] = plan.input;
    let [_, kh, kw] = kernel.kernel;
    let mut taps: Vec<(usize, usize)> = Vec::new();
    for n in 0..plan.batch {
        for position in 0..plan.output.iter().product::<usize>() {
            let (ox, rest) = (position % plan.output[2], position / plan.output[2]);
            let (oy, oz) = (rest % plan.output[1], rest / plan.output[1]);
            // Places outside of the input stand for 0 and add nothing.
            taps.clear();
            for place in 0..places {
                let (px, rest) = (place % kw, place / kw);
                let (py, pz) = (rest % kh, rest / kh);
                let z = meets(conv, 0, oz, pz, depth);
                let y = meets(conv, 1, oy, py, height);
                let x = meets(conv, 2, ox, px, width);
                if let (Some(z), Some(y), Some(x)) = (z, y, x) {
                    taps.push((place, (((n * depth + z) * height + y) * width + x) * plan.channels));
                }
            }
            for g in 0..groups {
                for o in 0..og {
                    let output = g * og + o;
                    let zero = kernel.scales.zero_point(output);
                    let row = &kernel.weights[output * places * ig..(output + 1) * places * ig];
                    let mut sum = 0i32;
                    for (place, at) in &taps {
                        let from = &items[at + g * ig..at + (g + 1) * ig];
                        let weights = &row[place * ig..(place + 1) * ig];
                        for (x, w) in from.iter().zip(weights) {
                            sum = sum.wrapping_add((x - x_zero).wrapping_mul(i32::from(*w) - zero));
                        }
                    }
                    each(sum, output);
                }
            }
        }
    }
}

/// One dimension is seen as two; the result loses it again.
fn widened(x: &Tensor, conv: &ConvWeights) -> Result<(Tensor, bool)> {
    if x.rank() == 3 && conv.spatial() == 2 {
        return Ok((x.look(|l| crate::tensor::view::unsqueeze(l, 2))?, true));
    }
    Ok((x.clone(), false))
}

fn narrowed(result: Tensor, widened: bool) -> Result<Tensor> {
    if widened { result.look(|l| crate::tensor::view::squeeze(l, Some(&[2]))) } else { Ok(result) }
}

fn channels_last(rank: usize) -> i64 {
    if rank == 5 { 3 } else { 2 }
}

fn integers(x: &Tensor) -> Result<Scratch<i32>> {
    dispatch_quant!(x.dtype(), T => in_memory::<T, _>(x, |items| items.iter().map(|x| super::ints::Quant::wide(*x)).scratch())?)
}

/// A call with output scale and zero point at `at`.
fn call(a: &Args<'_>, at: usize, epilogue: Epilogue) -> Result<Tensor> {
    let (x, conv) = (a.tensor(0)?, payload::<ConvWeights>(a.value(1)?)?);
    let out = Params { scale: a.float(at)?, zero_point: a.int(at + 1)? };
    static_conv(x, conv, out, epilogue)
}

fn static_conv(x: &Tensor, conv: &ConvWeights, out: Params, epilogue: Epilogue) -> Result<Tensor> {
    let kernel = kernel(conv)?;
    let (x, wide) = widened(x, conv)?;
    let dtype = x.dtype();
    let onednn = engine_is_onednn(conv, &kernel);
    if dtype != DType::QU8 && !(onednn && dtype == DType::QI8) {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type QUInt8 but found {}",
            dtype.type_name()
        )));
    }
    let plan = plan(&x, conv, &kernel)?;
    let x = in_format(&x, channels_last(x.rank()))?;
    let params = Params::of(&x)?;
    let bias = kernel.bias.as_deref();
    if let Some(packed) = kernel.packed.as_ref().filter(|_| dtype == DType::QU8) {
        let (input, output, relu) = (params.affine()?, out.affine()?, epilogue == Epilogue::Relu);
        let mut results = memory::filled(plan.count()?, 0u8)?;
        let image = (plan.batch, plan.input);
        in_memory::<u8, _>(&x, |items| packed.run(items, image, input, bias, output, relu, &mut results))??;
        return narrowed(from_memory(&lying_last(&plan.sizes)?, &results, dtype, out.quantizer())?, wide);
    }
    let stage = if onednn {
        Stage::onednn(params, out, &kernel.scales, bias, epilogue, dtype)
    } else {
        Stage::fbgemm(params, out, &kernel.scales, bias, epilogue)
    };
    let items = integers(&x)?;
    // Allocated first: sizes that fit no memory are an error, and not work without end.
    let like = lying_last(&plan.sizes)?;
    let results = memory::built(plan.count()?, |results| {
        sums(&items, params.zero_point as i32, conv, &kernel, &plan, |sum, output| {
            results.push(stage.round(sum, output) as i32);
        });
    })?;
    let result = dispatch_quant!(dtype, T => {
        let narrow = results.iter().map(|x| <T as super::ints::Quant>::narrow(i64::from(*x))).scratch()?;
        from_memory(&like, &narrow, dtype, out.quantizer())
    })?;
    narrowed(result, wide)
}

/// PyTorch's x86 engine takes oneDNN for symmetric weights, not too many groups, and no output padding.
fn engine_is_onednn(conv: &ConvWeights, kernel: &ConvKernel) -> bool {
    kernel.scales.is_symmetric() && conv.groups <= 100 && conv.output_padding.iter().all(|p| *p == 0)
}

/// A tensor of bytes with its channels last, for its layout.
fn lying_last(sizes: &[i64]) -> Result<Tensor> {
    let plain = Tensor::zeros(DType::U8, sizes)?;
    plain.look(|l| crate::tensor::view::in_format(l, channels_last(sizes.len())))
}

/// The input is quantized by its extremes; the result is rounded to the same integers, and float32. So does PyTorch's.
fn dynamic(x: &Tensor, conv: &ConvWeights, reduce_range: bool) -> Result<Tensor> {
    let params = chosen(x, DType::QU8, reduce_range)?;
    let x = quantize(&dense(x)?, params, DType::QU8)?;
    dequantize(&static_conv(&x, conv, params, Epilogue::None)?)
}

/// A convolution to which another quantized tensor is added before the sum is rounded.
fn with_sum(a: &Args<'_>, epilogue: Epilogue) -> Result<Outputs> {
    let (x, other, conv) = (a.tensor(0)?, a.tensor(1)?, payload::<ConvWeights>(a.value(2)?)?);
    let out = Params { scale: a.float(3)?, zero_point: a.int(4)? };
    let kernel = kernel(conv)?;
    let plan = plan(x, conv, &kernel)?;
    if other.sizes().as_slice() != plan.sizes || other.dtype() != x.dtype() {
        return Err(Diagnostic::runtime(format!("{}: the tensor to be added has other sizes", a.op.name())));
    }
    let (x, other) = (in_format(x, 2)?, in_format(other, 2)?);
    let (params, added) = (Params::of(&x)?, Params::of(&other)?);
    let stage = Stage::float(params, &kernel.scales, kernel.bias.as_deref(), Epilogue::None);
    let (items, others) = (integers(&x)?, integers(&other)?);
    let rounder = out.rounder(x.dtype());
    let results = memory::built(plan.count()?, |results| {
        sums(&items, params.zero_point as i32, conv, &kernel, &plan, |sum, output| {
            let other = others.get(results.len()).copied().unwrap_or(0);
            let real = stage.real(sum, output) + added.real(other);
            let real = if epilogue == Epilogue::Relu { real.max(0.0) } else { real };
            results.push(rounder.integer(real) as i32);
        });
    })?;
    dispatch_quant!(x.dtype(), T => {
        let narrow = results.iter().map(|x| <T as super::ints::Quant>::narrow(i64::from(*x))).scratch()?;
        one(from_memory(&lying_last(&plan.sizes)?, &narrow, x.dtype(), out.quantizer())?)
    })
}
