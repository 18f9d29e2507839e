//! Properties of packed weights: the weight and bias as they were, stride, padding and the like.

use super::packed::{ConvWeights, payload};
use crate::diag::Result;
use crate::dialects::{Args, OpDef, Outputs, Quantized, one, opaque};
use crate::value::Value;
use smallvec::SmallVec;

macro_rules! ask {
    ($name:literal, $class:literal, $returns:literal, $eval:expr) => {
        opaque(
            concat!($name, "(__torch__.torch.classes.quantized.", $class, " packed_weights) -> ", $returns),
            $eval,
        )
        .quantized(Quantized::Own)
    };
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    ask!("quantized::conv1d_unpack", "Conv2dPackedParamsBase", "(Tensor unpacked_weights, Tensor? B_origin)", |a| unpack(a, true)),
    ask!("quantized::conv2d_unpack", "Conv2dPackedParamsBase", "(Tensor unpacked_weights, Tensor? B_origin)", |a| unpack(a, false)),
    ask!("quantized::conv_unpack", "Conv2dPackedParamsBase", "(Tensor unpacked_weights, Tensor? B_origin)", |a| unpack(a, false)),
    ask!("quantized::conv3d_unpack", "Conv3dPackedParamsBase", "(Tensor unpacked_weights, Tensor? B_origin)", |a| unpack(a, false)),
    ask!("quantized::conv_transpose1d_unpack", "Conv2dPackedParamsBase", "(Tensor unpacked_weights, Tensor? B_origin)", |a| unpack(a, true)),
    ask!("quantized::conv_transpose2d_unpack", "Conv2dPackedParamsBase", "(Tensor unpacked_weights, Tensor? B_origin)", |a| unpack(a, false)),
    ask!("quantized::conv_transpose3d_unpack", "Conv3dPackedParamsBase", "(Tensor unpacked_weights, Tensor? B_origin)", |a| unpack(a, false)),
    ask!("quantized::conv2d_stride", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.stride)),
    ask!("quantized::conv2d_padding", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.padding)),
    ask!("quantized::conv2d_output_padding", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.output_padding)),
    ask!("quantized::conv2d_dilation", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.dilation)),
    ask!("quantized::conv2d_groups", "Conv2dPackedParamsBase", "int", groups),
    ask!("quantized::conv2d_transpose", "Conv2dPackedParamsBase", "int", transpose),
    ask!("quantized::conv3d_stride", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.stride)),
    ask!("quantized::conv3d_padding", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.padding)),
    ask!("quantized::conv3d_output_padding", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.output_padding)),
    ask!("quantized::conv3d_dilation", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.dilation)),
    ask!("quantized::conv3d_groups", "Conv3dPackedParamsBase", "int", groups),
    ask!("quantized::conv3d_transpose", "Conv3dPackedParamsBase", "int", transpose),
    ask!("quantized::conv_transpose2d_stride", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.stride)),
    ask!("quantized::conv_transpose2d_padding", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.padding)),
    ask!("quantized::conv_transpose2d_output_padding", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.output_padding)),
    ask!("quantized::conv_transpose2d_dilation", "Conv2dPackedParamsBase", "int[]", |a| list(a, |c| &c.dilation)),
    ask!("quantized::conv_transpose2d_groups", "Conv2dPackedParamsBase", "int", groups),
    ask!("quantized::conv_transpose2d_transpose", "Conv2dPackedParamsBase", "int", transpose),
    ask!("quantized::conv_transpose3d_stride", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.stride)),
    ask!("quantized::conv_transpose3d_padding", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.padding)),
    ask!("quantized::conv_transpose3d_output_padding", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.output_padding)),
    ask!("quantized::conv_transpose3d_dilation", "Conv3dPackedParamsBase", "int[]", |a| list(a, |c| &c.dilation)),
    ask!("quantized::conv_transpose3d_groups", "Conv3dPackedParamsBase", "int", groups),
    ask!("quantized::conv_transpose3d_transpose", "Conv3dPackedParamsBase", "int", transpose),
];

fn unpack(a: &Args<'_>, one_dimension: bool) -> Result<Outputs> {
    let conv: &ConvWeights = payload(a.value(0)?)?;
    let weight = if one_dimension {
        conv.weight.look(|l| crate::tensor::view::squeeze(l, Some(&[2])))?
    } else {
        conv.weight.clone()
    };
    Ok(SmallVec::from_iter([weight.into(), conv.bias.clone().into()]))
}

fn list(a: &Args<'_>, which: fn(&ConvWeights) -> &Vec<i64>) -> Result<Outputs> {
    one(Value::ints(which(payload(a.value(0)?)?).iter().copied()))
}

fn groups(a: &Args<'_>) -> Result<Outputs> {
    one(payload::<ConvWeights>(a.value(0)?)?.groups)
}

fn transpose(a: &Args<'_>) -> Result<Outputs> {
    one(i64::from(payload::<ConvWeights>(a.value(0)?)?.transpose))
}
