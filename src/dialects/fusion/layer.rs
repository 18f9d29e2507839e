//! Layers: a convolution or linear map with packed weights, and what is done to its sums before they are stored. Ops that
//! pack run once a plan; the graph shows them apart from the ops that run at each call.
//!
//! float32 on the CPU only; everything else stays with the ops that the passes found.

use super::super::layer_part;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, CustomClass, Fact, OpDef, Outputs, contraction, host, one, opaque, view};
use crate::ir::Symbol;
use crate::kernels::float::{Activation, ConvShape, Epilogue, Images, Layout as Order, PackedConv, Residual};
use crate::tensor::{DType, Layout, Snapshot, Storage, Tensor, channels_last_strides, contiguous_strides};
use crate::value::{Native, Object, Value};
use std::sync::Arc;

/// Packs the weights of a convolution.
pub const PACK_CONV: &str = "fusion::pack_conv2d";
/// Runs a packed convolution.
pub const CONV: &str = "fusion::conv2d";
/// Packs the weights of a linear map.
pub const PACK_LINEAR: &str = "fusion::pack_linear";
/// Runs a packed linear map.
pub const LINEAR: &str = "fusion::linear";
/// The factor of an inference batch norm.
pub const NORM_SCALE: &str = "fusion::norm_scale";
/// What an inference batch norm adds.
pub const NORM_SHIFT: &str = "fusion::norm_shift";
/// Gives a tensor the strides that it would have had.
pub const RESTORE: &str = "fusion::restore_strides";
/// The class of packed layers.
pub const CLASS: &str = "__torch__.torch.classes.fusion.Layer";

/// PyTorch's code of row-major memory.
pub const ROW_MAJOR: i64 = 0;
/// PyTorch's code of memory with channels innermost.
pub const CHANNELS_LAST: i64 = 2;

/// Images of so few channels are read in planes: rows of them would not fill a vector.
const FEW_CHANNELS: usize = 4;

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
    .doc("A convolution with all that is done to its sums, its weights packed."),
    contraction(
        "fusion::conv2d(Tensor input, __torch__.torch.classes.fusion.Layer layer, Tensor? residual, int memory_format) -> Tensor",
        conv,
    )
    .doc("Runs a packed convolution; its result is row-major (0) or has its channels innermost (2)."),
    host(
        "fusion::pack_linear(Tensor weight, Tensor? bias, Tensor? scale, Tensor? shift, str activation, float[] numbers, bool residual_after) -> __torch__.torch.classes.fusion.Layer",
        pack_linear,
    )
    .facts(&[Fact::Packs])
    .doc("A linear map with all that is done to its sums, its weights packed."),
    contraction(
        "fusion::linear(Tensor input, __torch__.torch.classes.fusion.Layer layer, Tensor? residual) -> Tensor",
        linear,
    )
    .doc("Runs a packed linear map over the last dimension."),
    view("fusion::restore_strides(Tensor(a) self, int[] strides) -> Tensor(a)", restore)
        .facts(&[Fact::MayCopy])
        .doc("The tensor with such strides: itself where they are the same, else a copy."),
];

/// The class of packed layers.
pub static CLASSES: &[CustomClass] = &[CustomClass {
    name: CLASS,
    summary: "a layer of a plan with packed weights",
    set_state: |_| Err(Diagnostic::input("packed layers belong to plans and are not saved")),
    get_state: |_| Err(Diagnostic::unsupported("packed layers belong to plans and are not saved")),
    methods: &[],
}];

/// A packed layer.
struct Layer {
    conv: PackedConv,
    order: Order,
    bias: Option<Vec<f32>>,
    norm: Option<(Vec<f32>, Vec<f32>)>,
    activation: Activation,
    residual_after: bool,
}

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
    let [vertical, horizontal] = pair(&a.ints_of(3, 2)?)?;
    let shape = conv_shape(
        &weight.sizes(),
        (stride, [[vertical; 2], [horizontal; 2]], pair(&a.ints_of(4, 2)?)?),
        a.int(5)?,
    );
    let shape = shape.ok_or_else(|| Diagnostic::runtime("sizes of a convolution that are none"))?;
    let few = shape.groups == 1 && shape.in_channels <= FEW_CHANNELS;
    pack(a, shape, if few { Order::ChannelsFirst } else { Order::ChannelsLast }, 6)
}

/// The numbers of a convolution of images with weights of such sizes. None where they make no sense.
pub fn conv_shape(
    weight: &[i64],
    (stride, padding, dilation): ([usize; 2], [[usize; 2]; 2], [usize; 2]),
    groups: i64,
) -> Option<ConvShape> {
    let &[outputs, width, height, breadth] = weight else { return None };
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
    let shape = shape.ok_or_else(|| Diagnostic::runtime("sizes of a linear map that are none"))?;
    pack(a, shape, Order::ChannelsLast, 2)
}

/// A layer whose weight and bias come first and whose epilogue begins at argument `rest`.
fn pack(a: &Args<'_>, shape: ConvShape, order: Order, rest: usize) -> Result<Outputs> {
    let weight = a.tensor(0)?.elements::<f32>()?;
    let norm = match (vector(a, rest)?, vector(a, rest + 1)?) {
        (Some(scale), Some(shift)) => Some((scale, shift)),
        (None, None) => None,
        _ => return Err(Diagnostic::runtime("scale and shift of a layer come together")),
    };
    let (name, numbers) = (
        a.str(rest + 2)?,
        a.list(rest + 3)?.items().iter().map(Value::to_float).collect::<Result<Vec<f64>>>()?,
    );
    let activation = layer_part::read(name, &numbers)
        .ok_or_else(|| Diagnostic::runtime(format!("'{name}' of {numbers:?} is no activation of layers")))?;
    let layer = Layer {
        conv: PackedConv::new(shape, &weight, order)?,
        order,
        bias: vector(a, 1)?,
        norm,
        activation,
        residual_after: a.bool(rest + 4)?,
    };
    let native: Native = Arc::new(layer);
    one(Value::Object(Object::with_native(Symbol::new(CLASS), native)))
}

fn layer<'a>(a: &Args<'a>) -> Result<&'a Layer> {
    let object = a.value(1)?.to_object()?;
    let wrong = || Diagnostic::runtime(format!("expected a packed layer but got a {}", object.class()));
    object.native::<Layer>().ok_or_else(wrong)
}

fn conv(a: &Args<'_>) -> Result<Outputs> {
    let layer = layer(a)?;
    let input = a.tensor(0)?;
    let shape = layer.conv.shape();
    let sizes = input.sizes();
    let &[batch, channels, height, width] = sizes.as_slice() else {
        return Err(Diagnostic::runtime("a packed convolution takes images in batches"));
    };
    if channels != shape.in_channels as i64 {
        return Err(Diagnostic::runtime("a packed convolution got images of other channels"));
    }
    let plane = [height as usize, width as usize];
    let result =
        shape.result(plane).ok_or_else(|| Diagnostic::runtime("an image is smaller than the window"))?;
    let sizes = [batch, shape.out_channels as i64, result[0] as i64, result[1] as i64];
    let last = channels_last_strides(&sizes);
    let input = match layer.order {
        Order::ChannelsFirst => Floats::row_major(input)?,
        Order::ChannelsLast => Floats::with_strides(input, &channels_last_strides(&input.sizes()))?,
    };
    let run = |out: &mut [f32], residual: Option<Residual<'_>>| {
        let values = input.values()?;
        let images =
            Images { values: values.get(), batch: batch as usize, sizes: plane, pitch: shape.in_channels };
        layer.conv.run(images, &layer.epilogue(residual), out, shape.out_channels)
    };
    let output = layer.call(a.opt_tensor(2)?, &sizes, last, run)?;
    if a.int(3)? == CHANNELS_LAST {
        one(output)
    } else {
        one(restored(&output, &contiguous_strides(&sizes))?)
    }
}

fn linear(a: &Args<'_>) -> Result<Outputs> {
    let layer = layer(a)?;
    let input = a.tensor(0)?;
    let shape = layer.conv.shape();
    let mut sizes = input.sizes();
    let Some(features) = sizes.last_mut().filter(|n| **n == shape.in_channels as i64) else {
        return Err(Diagnostic::runtime("a packed linear map got rows of another length"));
    };
    *features = shape.out_channels as i64;
    let input = Floats::row_major(input)?;
    let rows: usize = sizes[..sizes.len() - 1].iter().map(|n| *n as usize).product();
    let strides = contiguous_strides(&sizes);
    let run = |out: &mut [f32], residual: Option<Residual<'_>>| {
        let values = input.values()?;
        let images = Images { values: values.get(), batch: 1, sizes: [1, rows], pitch: shape.in_channels };
        layer.conv.run(images, &layer.epilogue(residual), out, shape.out_channels)
    };
    one(layer.call(a.opt_tensor(2)?, &sizes, strides, run)?)
}

impl Layer {
    fn epilogue<'a>(&'a self, residual: Option<Residual<'a>>) -> Epilogue<'a> {
        Epilogue {
            bias: self.bias.as_deref(),
            norm: self.norm.as_ref().map(|(scale, shift)| (scale.as_slice(), shift.as_slice())),
            residual,
            activation: self.activation,
        }
    }

    /// Makes the result, with dense strides in which channels are innermost, and lets `run` fill it.
    fn call(
        &self,
        residual: Option<&Tensor>,
        sizes: &[i64],
        strides: crate::tensor::Dims,
        run: impl Fn(&mut [f32], Option<Residual<'_>>) -> Result<()>,
    ) -> Result<Tensor> {
        let residual = match residual {
            Some(tensor) if *tensor.sizes() != *sizes => {
                return Err(Diagnostic::runtime("the residual of a packed layer has other sizes"));
            }
            Some(tensor) => Some(Floats::with_strides(tensor, &strides)?),
            None => None,
        };
        let layout = Layout { sizes: sizes.into(), strides, offset: 0 };
        let storage = Storage::for_writing(layout.numel().saturating_mul(size_of::<f32>()))?;
        {
            let values = residual.as_ref().map(Floats::values).transpose()?;
            let pitch = self.conv.shape().out_channels;
            let after = self.residual_after;
            let residual = values.as_ref().map(|values| Residual { values: values.get(), pitch, after });
            let mut out = storage.write()?;
            run(bytemuck::cast_slice_mut(&mut out), residual)?;
        }
        Tensor::from_storage(storage, DType::F32, layout)
    }
}

/// A float32 tensor whose elements lie densely in some order.
struct Floats(Snapshot);

/// Its elements, open for reading.
struct Values {
    bytes: crate::tensor::ReadBytes,
    from: usize,
    count: usize,
}

impl Floats {
    fn row_major(tensor: &Tensor) -> Result<Floats> {
        Floats::with_strides(tensor, &contiguous_strides(&tensor.sizes()))
    }

    /// The tensor, copied where its elements do not lie with such strides.
    fn with_strides(tensor: &Tensor, strides: &[i64]) -> Result<Floats> {
        if tensor.dtype() != DType::F32 || !tensor.is_plain() {
            return Err(Diagnostic::runtime("packed layers take float32 tensors"));
        }
        restored(tensor, strides).map(|tensor| Floats(tensor.snapshot()))
    }

    fn values(&self) -> Result<Values> {
        let bytes = self.0.storage.read()?;
        Ok(Values { bytes, from: self.0.layout.offset, count: self.0.layout.numel() })
    }
}

impl Values {
    fn get(&self) -> &[f32] {
        let whole = self.bytes.len() / size_of::<f32>() * size_of::<f32>();
        // Storage that tensors of float32 lie in is aligned for them.
        let all: &[f32] = bytemuck::try_cast_slice(&self.bytes[..whole]).unwrap_or_default();
        all.get(self.from..self.from.saturating_add(self.count)).unwrap_or_default()
    }
}

fn restore(a: &Args<'_>) -> Result<Outputs> {
    one(restored(a.tensor(0)?, &a.ints(1)?)?)
}

/// The tensor with dense strides: another look at it where elements lie so already, else a copy.
fn restored(tensor: &Tensor, strides: &[i64]) -> Result<Tensor> {
    let layout = tensor.layout();
    if layout.strides.as_slice() == strides {
        return Ok(tensor.clone());
    }
    if !are_dense(&layout.sizes, strides) {
        return Err(Diagnostic::runtime(format!("strides {strides:?} leave gaps or overlap")));
    }
    let wanted = Layout { sizes: layout.sizes.clone(), strides: strides.into(), offset: layout.offset };
    let matters = |d: &usize| layout.sizes[*d] > 1;
    let rank = layout.rank();
    if layout.numel() == 0 || (0..rank).filter(matters).all(|d| layout.strides.get(d) == strides.get(d)) {
        return tensor.with_layout(wanted);
    }
    let wanted = Layout { offset: 0, ..wanted };
    let storage = Storage::for_writing(wanted.numel().saturating_mul(tensor.dtype().size()))?;
    let copy = Tensor::from_storage(storage, tensor.dtype(), wanted)?;
    copy.copy_from(tensor)?;
    Ok(copy)
}

/// Whether elements with such strides lie side by side, each at a place of its own.
fn are_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<(i64, i64)> =
        sizes.iter().zip(strides).map(|(size, stride)| (*stride, *size)).collect();
    dims.retain(|(_, size)| *size != 1);
    dims.sort_unstable();
    let mut step = 1i64;
    let mut follows = |(stride, size): &(i64, i64)| {
        let fits = *stride == step;
        step = step.saturating_mul(*size);
        fits
    };
    sizes.len() == strides.len()
        && strides.iter().all(|s| *s >= 0)
        && (sizes.contains(&0) || dims.iter().all(&mut follows))
}
