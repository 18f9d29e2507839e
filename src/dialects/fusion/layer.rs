//! Layers: a convolution or linear map with packed weights, what is done to its inputs before they are multiplied and to its
//! sums before they are stored. Ops that pack run once a plan; the graph shows them apart from the ops that run at each call.
//!
//! float32 on the CPU only; everything else stays with the ops that the passes found.

mod packed;
mod run;

use super::super::layer_part;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{
    Args, CustomClass, Effects, Fact, OpDef, Outputs, contraction, host, one, opaque, view,
};
use crate::kernels::float::{Activation, ConvShape, Layout as Order, PackedConv, Source};
use crate::tensor::{DType, Tensor};
use crate::value::Value;
use packed::Layer;
use std::sync::Arc;

pub use packed::{ATTENTION_FORMAT, CHANNELS_LAST, CLASS, CONV_FORMAT, GATE, NORM_FORMAT, ROW_MAJOR};

/// Packs the weights of a convolution.
pub const PACK_CONV: &str = "fusion::pack_conv2d";
/// Runs a packed convolution.
pub const CONV: &str = "fusion::conv2d";
/// Packs the weights of a linear map.
pub const PACK_LINEAR: &str = "fusion::pack_linear";
/// Runs a packed linear map.
pub const LINEAR: &str = "fusion::linear";
/// Packs an inference batch norm by itself.
pub const PACK_NORM: &str = "fusion::pack_norm";
/// Runs a packed batch norm.
pub const NORM: &str = "fusion::norm";
/// Puts an inference batch norm and an activation in front of a packed convolution.
pub const PACK_PROLOGUE: &str = "fusion::pack_prologue";
/// Room for images that are made part by part.
pub const ROOM: &str = "fusion::room";
/// Runs a packed convolution whose result is a part of such images.
pub const CONV_INTO: &str = "fusion::conv2d_into";
/// Runs a packed pointwise convolution and the depthwise one that reads it.
pub const CONV_CHAIN: &str = "fusion::conv2d_chain";
/// Copies images to a part of such images.
pub const PLACE: &str = "fusion::place";
/// Some channels of such images.
pub const PART: &str = "fusion::part";
/// The factor of an inference batch norm.
pub const NORM_SCALE: &str = "fusion::norm_scale";
/// What an inference batch norm adds.
pub const NORM_SHIFT: &str = "fusion::norm_shift";
/// Attention, of products with what is done to scores between them.
pub const ATTENTION: &str = "fusion::attention";
/// Gives a tensor the strides that it would have had.
pub const RESTORE: &str = "fusion::restore_strides";
/// The same by the format that the strides have.
pub const RESTORE_FORMAT: &str = "fusion::restore_format";
/// Whether an op gives a tensor the strides that it would have had.
pub fn is_restore(kind: &str) -> bool {
    kind == RESTORE || kind == RESTORE_FORMAT
}

/// Images of so few channels are read in planes: rows of them would not fill a vector.
pub const FEW_CHANNELS: usize = 4;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("fusion::norm_scale(Tensor? weight, Tensor running_var, float eps) -> Tensor", norm_scale)
        .facts(&[Fact::Packs])
        .doc("The factor of each channel in an inference batch norm."),
    opaque("fusion::norm_shift(Tensor? bias, Tensor running_mean, Tensor scale) -> Tensor", norm_shift)
        .facts(&[Fact::Packs])
        .doc("What an inference batch norm adds to each channel."),
    host(
        "fusion::pack_conv2d(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, Tensor? scale, Tensor? shift, str activation, float[] numbers, bool residual_after) -> __torch__.torch.classes.fusion.Layer",
        pack_conv,
    )
    .facts(&[Fact::Packs])
    .doc("A convolution with all that is done to its sums, its weights packed; its padding is that of lines and of columns, or of top, bottom, left and right. Signals are images of one line."),
    host(
        "fusion::pack_prologue(__torch__.torch.classes.fusion.Layer layer, Tensor scale, Tensor shift, str activation, float[] numbers) -> __torch__.torch.classes.fusion.Layer",
        pack_prologue,
    )
    .facts(&[Fact::Packs])
    .doc("A packed convolution with an inference batch norm and an activation in front."),
    contraction(
        "fusion::conv2d(Tensor input, __torch__.torch.classes.fusion.Layer layer, Tensor? residual, Tensor? gate, int memory_format) -> Tensor",
        run::conv,
    )
    .doc("Runs a packed convolution of images or signals, whose channels are first multiplied with a gate; its result is row-major (0) or has its channels innermost (2)."),
    contraction(
        "fusion::conv2d_into(Tensor input, __torch__.torch.classes.fusion.Layer layer, Tensor? residual, Tensor? gate, Tensor(a!) room, int channel) -> Tensor(a)",
        run::conv_into,
    )
    .doc("Runs a packed convolution whose result becomes the channels of `room` from `channel` on."),
    contraction(
        "fusion::conv2d_chain(Tensor input, __torch__.torch.classes.fusion.Layer first, __torch__.torch.classes.fusion.Layer second, int memory_format) -> Tensor",
        run::conv_chain,
    )
    .doc("Runs a packed pointwise convolution and the depthwise one that reads it, in bands of lines that stay in a cache."),
    host(
        "fusion::pack_norm(Tensor scale, Tensor shift, str activation, float[] numbers, bool residual_after) -> __torch__.torch.classes.fusion.Layer",
        pack_norm,
    )
    .facts(&[Fact::Packs])
    .doc("An inference batch norm with what follows it."),
    opaque(
        "fusion::norm(Tensor input, __torch__.torch.classes.fusion.Layer layer, Tensor? residual, int memory_format) -> Tensor",
        run::norm,
    )
    .doc("Runs a packed batch norm of images; its result is row-major (0) or has its channels innermost (2)."),
    opaque("fusion::room(int[] sizes) -> Tensor", run::room)
        .effects(Effects::IDENTITY)
        .doc("Room for images with their channels innermost, whose elements are yet to be written."),
    opaque("fusion::place(Tensor self, Tensor(a!) room, int channel) -> Tensor(a)", run::place)
        .doc("Copies images to the channels of `room` from `channel` on."),
    view("fusion::part(Tensor(a) room, int channel, int channels) -> Tensor(a)", run::part)
        .doc("Some channels of images."),
    host(
        "fusion::pack_linear(Tensor weight, Tensor? bias, Tensor? scale, Tensor? shift, str activation, float[] numbers, bool residual_after) -> __torch__.torch.classes.fusion.Layer",
        pack_linear,
    )
    .facts(&[Fact::Packs])
    .doc("A linear map with all that is done to its sums, its weights packed."),
    contraction(
        "fusion::linear(Tensor input, __torch__.torch.classes.fusion.Layer layer, Tensor? residual) -> Tensor",
        run::linear,
    )
    .facts(&[Fact::RowMajor])
    .doc("Runs a packed linear map over the last dimension."),
    contraction(
        "fusion::attention(Tensor query, Tensor key, Tensor value, Tensor[] biases, float scale, int memory_format) -> Tensor",
        run::attention,
    )
    .doc("softmax(scale * query · key + biases) · value, the key with features before rows; the result is row-major (0) or has rows of all heads side by side (2)."),
    view("fusion::restore_strides(Tensor(a) self, int[] strides) -> Tensor(a)", run::restore)
        .facts(&[Fact::MayCopy])
        .doc("The tensor with such strides: itself where they are the same, else a copy."),
    view("fusion::restore_format(Tensor(a) self, int memory_format) -> Tensor(a)", run::restore_format)
        .facts(&[Fact::MayCopy])
        .doc("The same with the strides of rows (0), or those of images whose channels are innermost (2)."),
];

/// The class of packed layers.
pub static CLASSES: &[CustomClass] = &[CustomClass {
    name: CLASS,
    summary: "a layer of a plan with packed weights",
    set_state: |_| Err(Diagnostic::input("packed layers belong to plans and are not saved")),
    get_state: |_| Err(Diagnostic::unsupported("packed layers belong to plans and are not saved")),
    methods: &[],
}];

/// `weight / sqrt(running_var + eps)`, in PyTorch's order of rounding.
fn norm_scale(a: &Args<'_>) -> Result<Outputs> {
    let (weight, variance, eps) = (vector(a, 0)?, vector(a, 1)?, a.float(2)?);
    let Some(variance) = variance else {
        return Err(Diagnostic::internal("a batch norm without statistics"));
    };
    let deviation = variance.iter().map(|v| 1.0 / (v + eps as f32).sqrt());
    let scale: Vec<f32> = match weight {
        Some(weight) => deviation.zip(weight).map(|(d, w)| w * d).collect(),
        None => deviation.collect(),
    };
    one(Tensor::from_vec::<f32>(&scale, &[scale.len() as i64])?)
}

/// `bias - running_mean * scale`.
fn norm_shift(a: &Args<'_>) -> Result<Outputs> {
    let (bias, mean, scale) = (vector(a, 0)?, vector(a, 1)?, vector(a, 2)?);
    let (Some(mean), Some(scale)) = (mean, scale) else {
        return Err(Diagnostic::internal("a batch norm without statistics"));
    };
    let moved = mean.iter().zip(&scale).map(|(m, s)| m * s);
    let shift: Vec<f32> = match bias {
        Some(bias) => bias.iter().zip(moved).map(|(b, m)| b - m).collect(),
        None => moved.map(|m| 0.0 - m).collect(),
    };
    one(Tensor::from_vec::<f32>(&shift, &[shift.len() as i64])?)
}

/// The elements of a float32 tensor, or None.
fn vector(a: &Args<'_>, n: usize) -> Result<Option<Vec<f32>>> {
    a.opt_tensor(n)?.map(Tensor::to_vec::<f32>).transpose()
}

fn pack_conv(a: &Args<'_>) -> Result<Outputs> {
    let weight = a.tensor(0)?;
    let stride = pair(&a.ints_of(2, 2)?)?;
    let padding = padding(&a.ints(3)?);
    let padding = padding.ok_or_else(|| Diagnostic::runtime("a padding of two or four sizes is needed"))?;
    let shape = conv_shape(&weight.sizes(), (stride, padding, pair(&a.ints_of(4, 2)?)?), a.int(5)?);
    let shape = shape.ok_or_else(|| Diagnostic::runtime("invalid sizes of a convolution"))?;
    let few = shape.groups == 1 && shape.in_channels <= FEW_CHANNELS;
    pack(a, shape, if few { Order::ChannelsFirst } else { Order::ChannelsLast }, 6)
}

/// The padding before and after, of lines and of columns, that two sizes mean, or four.
pub fn padding(ints: &[i64]) -> Option<[[usize; 2]; 2]> {
    let size = |n: &i64| usize::try_from(*n).ok();
    match ints {
        [lines, columns] => Some([[size(lines)?; 2], [size(columns)?; 2]]),
        [top, bottom, left, right] => Some([[size(top)?, size(bottom)?], [size(left)?, size(right)?]]),
        _ => None,
    }
}

/// The numbers of a convolution of images with weights of such sizes, or of signals, which are images of one line. None where they
/// make no sense.
pub fn conv_shape(
    weight: &[i64],
    (stride, padding, dilation): ([usize; 2], [[usize; 2]; 2], [usize; 2]),
    groups: i64,
) -> Option<ConvShape> {
    let &[outputs, width, ref window @ ..] = weight else { return None };
    let (height, breadth) = match *window {
        [breadth] => (1, breadth),
        [height, breadth] => (height, breadth),
        _ => return None,
    };
    let size = |n: i64| usize::try_from(n).ok();
    let groups = size(groups).filter(|n| *n > 0)?;
    Some(ConvShape {
        in_channels: size(width)?.checked_mul(groups)?,
        out_channels: size(outputs)?,
        kernel: [size(height)?, size(breadth)?],
        stride,
        padding,
        dilation,
        groups,
    })
}

fn pair(ints: &[i64]) -> Result<[usize; 2]> {
    let wrong = || Diagnostic::runtime("two sizes, none below zero, are needed");
    let size = |n: i64| usize::try_from(n).map_err(|_| wrong());
    match ints {
        [a, b] => Ok([size(*a)?, size(*b)?]),
        _ => Err(wrong()),
    }
}

fn pack_linear(a: &Args<'_>) -> Result<Outputs> {
    let sizes = a.tensor(0)?.sizes();
    let &[outputs, inputs] = sizes.as_slice() else {
        return Err(Diagnostic::runtime("the weight of a packed linear map has two dimensions"));
    };
    let shape = conv_shape(&[outputs, inputs, 1, 1], ([1; 2], [[0; 2]; 2], [1; 2]), 1);
    let shape = shape.ok_or_else(|| Diagnostic::runtime("invalid sizes of a linear map"))?;
    pack(a, shape, Order::ChannelsLast, 2)
}

/// A layer whose weight and bias come first and whose epilogue begins at argument `rest`.
fn pack(a: &Args<'_>, shape: ConvShape, order: Order, rest: usize) -> Result<Outputs> {
    let weight = a.tensor(0)?.clone();
    if weight.dtype() != DType::F32 {
        return Err(Diagnostic::runtime(format!(
            "a packed layer has float32 weights, not {}",
            weight.dtype().name()
        )));
    }
    let norm = match (vector(a, rest)?, vector(a, rest + 1)?) {
        (Some(scale), Some(shift)) => Some((scale, shift)),
        (None, None) => None,
        _ => return Err(Diagnostic::runtime("scale and shift of a layer come together")),
    };
    // What a plan has frozen stays as it is, or the plan is not run any more.
    let count = weight.numel();
    let source: Source =
        Arc::new(move |pack| weight.read::<f32, _>(|weights| weights.to_dense().and_then(|w| pack(&w)))?);
    let conv = Some(Arc::new(PackedConv::of(shape, count, source, order)?));
    let layer = Layer { conv, order, bias: vector(a, 1)?, norm, ..Layer::default() };
    Layer { activation: activation(a, rest + 2)?, residual_after: a.bool(rest + 4)?, ..layer }.made()
}

/// The activation that a name and numbers from argument `n` on spell.
fn activation(a: &Args<'_>, n: usize) -> Result<Activation> {
    let name = a.str(n)?;
    let numbers = a.list(n + 1)?.items().iter().map(Value::to_float).collect::<Result<Vec<f64>>>()?;
    layer_part::read(name, &numbers)
        .ok_or_else(|| Diagnostic::runtime(format!("'{name}' of {numbers:?} is not an activation of layers")))
}

fn pack_norm(a: &Args<'_>) -> Result<Outputs> {
    let norm = Some((a.tensor(0)?.to_vec::<f32>()?, a.tensor(1)?.to_vec::<f32>()?));
    let layer = Layer { norm, activation: activation(a, 2)?, ..Layer::default() };
    Layer { residual_after: a.bool(4)?, ..layer }.made()
}

fn pack_prologue(a: &Args<'_>) -> Result<Outputs> {
    let before = Some((a.tensor(1)?.to_vec::<f32>()?, a.tensor(2)?.to_vec::<f32>()?));
    Layer { before, before_activation: activation(a, 3)?, ..Layer::of(a, 0)?.clone() }.made()
}
