//! The `mkldnn` dialect: layers followed by a function, as PyTorch's oneDNN computes them, and what
//! `torch.jit.optimize_for_inference` writes. Tensors have no layout of their own here: reordered weights are the weights, and
//! the ops compute what the plain ones compute. The plain forms that `aten` names are in `aten::mkldnn`.

use super::{Args, OpDef, Outputs, composite, container, host, one};
use crate::diag::{Diagnostic, Result};
use crate::dialects::prim::constant;
use crate::ir::Attr;
use crate::tensor::pointwise::map1;
use crate::tensor::{DType, Tensor, broadcast_all};
use crate::value::Value;

/// All rows.
pub static TABLES: &[&[OpDef]] = &[POINTWISE, INFERENCE];

/// The function after a layer, named by `attr`: the end of a composite's text.
macro_rules! then_function {
    ($($text:literal)*) => {
        concat!($($text,)* "    if attr == \"none\":
        return Y
    elif attr == \"relu\":
        return torch.relu(Y)
    elif attr == \"sigmoid\":
        return torch.sigmoid(Y)
    elif attr == \"tanh\":
        return torch.tanh(Y)
    elif attr == \"swish\":
        return torch.nn.functional.silu(Y)
    elif attr == \"hardswish\":
        return torch.nn.functional.hardswish(Y)
    elif attr == \"hardsigmoid\":
        return torch.nn.functional.hardsigmoid(Y)
    elif attr == \"leaky_relu\":
        slope = scalars[0]
        assert slope is not None
        return torch.where(Y > 0, Y, Y * slope)
    elif attr == \"hardtanh\":
        return torch.clamp(Y, scalars[0], scalars[1])
    elif attr == \"gelu\":
        assert algorithm is not None
        return torch.nn.functional.gelu(Y, approximate=algorithm)
    raise RuntimeError(\"Fusion behavior undefined.\")
")
    };
}

/// What joins a layer and a second tensor, named by `attr`.
macro_rules! then_binary {
    ($name:literal, $($text:literal)*) => {
        concat!($($text,)* "    if ", $name, " == \"add\":
        Y = Y + other
    elif ", $name, " == \"sub\":
        Y = Y - other
    elif ", $name, " == \"mul\":
        Y = Y * other
    elif ", $name, " == \"div\":
        Y = Y / other
    else:
        raise RuntimeError(\"")
    };
}

static POINTWISE: &[OpDef] = &[
    composite(
        "mkldnn::_convolution_pointwise(Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, str attr, Scalar?[] scalars, str? algorithm) -> Tensor Y",
        then_function!("def _convolution_pointwise(X: Tensor, W: Tensor, B: Optional[Tensor], padding: List[int], stride: List[int], dilation: List[int], groups: int, attr: str, scalars: List[Optional[number]], algorithm: Optional[str]) -> Tensor:
    Y = torch.convolution(X, W, B, stride, padding, dilation, False, [0], groups)
"),
    )
    .doc("a convolution followed by a function"),
    composite(
        "mkldnn::_convolution_transpose_pointwise(Tensor X, Tensor W, Tensor? B, int[] padding, int[] output_padding, int[] stride, int[] dilation, int groups, str attr, Scalar?[] scalars, str? algorithm) -> Tensor Y",
        then_function!("def _convolution_transpose_pointwise(X: Tensor, W: Tensor, B: Optional[Tensor], padding: List[int], output_padding: List[int], stride: List[int], dilation: List[int], groups: int, attr: str, scalars: List[Optional[number]], algorithm: Optional[str]) -> Tensor:
    Y = torch.convolution(X, W, B, stride, padding, dilation, True, output_padding, groups)
"),
    )
    .doc("a transposed convolution followed by a function"),
    composite(
        "mkldnn::_linear_pointwise(Tensor X, Tensor W, Tensor? B, str attr, Scalar?[] scalars, str? algorithm) -> Tensor Y",
        then_function!("def _linear_pointwise(X: Tensor, W: Tensor, B: Optional[Tensor], attr: str, scalars: List[Optional[number]], algorithm: Optional[str]) -> Tensor:
    Y = torch.nn.functional.linear(X, W, B)
"),
    )
    .doc("a linear layer followed by a function"),
    composite(
        "mkldnn::_linear_pointwise.binary(Tensor X, Tensor other, Tensor W, Tensor? B, str attr) -> Tensor Y",
        concat!(then_binary!("attr", "def _linear_pointwise(X: Tensor, other: Tensor, W: Tensor, B: Optional[Tensor], attr: str) -> Tensor:
    Y = torch.nn.functional.linear(X, W, B)
"), "Fusion behavior undefined.\")
    return Y
"),
    )
    .doc("a linear layer joined with a second tensor"),
    composite(
        "mkldnn::_convolution_pointwise.binary(Tensor X, Tensor other, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, str binary_attr, Scalar? alpha, str? unary_attr, Scalar?[] unary_scalars, str? unary_algorithm) -> Tensor Y",
        concat!(then_binary!("binary_attr", "def _convolution_pointwise(X: Tensor, other: Tensor, W: Tensor, B: Optional[Tensor], padding: List[int], stride: List[int], dilation: List[int], groups: int, binary_attr: str, alpha: Optional[number], unary_attr: Optional[str], unary_scalars: List[Optional[number]], unary_algorithm: Optional[str]) -> Tensor:
    if alpha is not None:
        if alpha != 1:
            raise RuntimeError(\"mkldnn_convolution_pointwise_binary: the alpha value should be none or 1.0\")
    Y = torch.convolution(X, W, B, stride, padding, dilation, False, [0], groups)
"), "Binary Fusion behavior undefined.\")
    if unary_attr is not None:
        if unary_attr != \"relu\":
            raise RuntimeError(\"Unary Fusion behavior undefined.\")
        Y = torch.relu(Y)
    return Y
"),
    )
    .doc("a convolution combined with a second tensor, optionally followed by relu"),
    composite(
        "mkldnn::_convolution_pointwise_.binary(Tensor(a!) other, Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, str binary_attr, Scalar? alpha, str? unary_attr, Scalar?[] unary_scalars, str? unary_algorithm) -> Tensor(a!) Y",
        include_str!("convolution_pointwise__binary.py"),
    )
    .doc("a convolution added to a tensor in place, optionally followed by relu"),
    composite(
        "mkldnn::_reorder_convolution_weight(Tensor self, int[2] padding=0, int[2] stride=1, int[2] dilation=1, int groups=1, int[]? input_size=None) -> Tensor Y",
        "def _reorder_convolution_weight(self: Tensor, padding: List[int], stride: List[int], dilation: List[int], groups: int, input_size: Optional[List[int]]) -> Tensor:
    return torch.clone(self)
",
    )
    .doc("a copy: weights have one layout here"),
    composite(
        "mkldnn::_reorder_convolution_transpose_weight(Tensor self, int[2] padding=0, int[2] output_padding=0, int[2] stride=1, int[2] dilation=1, int groups=1, int[]? input_size=None) -> Tensor Y",
        "def _reorder_convolution_transpose_weight(self: Tensor, padding: List[int], output_padding: List[int], stride: List[int], dilation: List[int], groups: int, input_size: Optional[List[int]]) -> Tensor:
    return torch.clone(self)
",
    )
    .doc("a copy: weights have one layout here"),
    composite(
        "mkldnn::_reorder_linear_weight(Tensor self, int? batch_size=None) -> Tensor Y",
        "def _reorder_linear_weight(self: Tensor, batch_size: Optional[int]) -> Tensor:
    return torch.clone(self)
",
    )
    .doc("a copy: weights have one layout here"),
    composite(
        "mkl::_mkl_linear(Tensor X, Tensor MKL_W, Tensor ORI_W, Tensor? B, int batch_size) -> Tensor",
        "def _mkl_linear(X: Tensor, MKL_W: Tensor, ORI_W: Tensor, B: Optional[Tensor], batch_size: int) -> Tensor:
    return torch.nn.functional.linear(X, ORI_W, B)
",
    )
    .doc("a linear layer whose weights MKL has packed for a batch"),
    composite(
        "mkl::_mkl_reorder_linear_weight(Tensor X, int batch_size) -> Tensor",
        "def _mkl_reorder_linear_weight(X: Tensor, batch_size: int) -> Tensor:
    return torch.clone(X)
",
    )
    .doc("a copy: weights have one layout here"),
];

static INFERENCE: &[OpDef] = &[
    host("prim::ConstantMKLDNNTensor() -> Tensor", weights)
        .doc("weights in the layout of oneDNN, which archives do not hold"),
    composite(
        "prim::mkldnn_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
        "def mkldnn_convolution(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    return torch.convolution(input, weight, bias, stride, padding, dilation, False, [0], groups)
",
    )
    .doc("a convolution"),
    composite(
        "prim::MKLDNNHardSwish(Tensor a) -> Tensor",
        "def MKLDNNHardSwish(a: Tensor) -> Tensor:
    return torch.nn.functional.hardswish(a)
",
    )
    .inplace()
    .doc("hardswish"),
    composite(
        "prim::MKLDNNHardSigmoid(Tensor a) -> Tensor",
        "def MKLDNNHardSigmoid(a: Tensor) -> Tensor:
    return torch.nn.functional.hardsigmoid(a)
",
    )
    .inplace()
    .doc("hardsigmoid"),
    host("prim::MKLDNNHardTanh(Tensor self) -> Tensor", bounded)
        .inplace()
        .doc("at least its attribute min_val and at most max_val"),
    host("prim::MKLDNNClamp(Tensor self) -> Tensor", bounded)
        .inplace()
        .doc("at least its attribute min_val and at most max_val"),
    composite(
        "prim::MKLDNNLayerNorm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
        "def MKLDNNLayerNorm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor], eps: float, cudnn_enable: bool) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
",
    )
    .inplace()
    .doc("layer norm"),
    composite(
        "prim::MKLDNNScalarMul(Tensor self, Scalar other) -> Tensor",
        "def MKLDNNScalarMul(self: Tensor, other: number) -> Tensor:
    return torch.mul(self, other)
",
    )
    .inplace()
    .doc("a product with a number"),
    container("prim::BroadcastMKLDNNTensors(...) -> ...", broadcast).doc("tensors with their common sizes"),
];

/// Weights that a graph has as an attribute.
fn weights(args: &Args<'_>) -> Result<Outputs> {
    if args.attr("value").is_some() {
        return one(constant::value(args.node.attrs, args.result_type(0))?);
    }
    Err(Diagnostic::input("the weights of this layer are not in the file")
        .note("`torch.jit.optimize_for_inference` turns weights into tensors of oneDNN, which `torch.jit.save` leaves out; PyTorch cannot run such a file either")
        .hint("save the model before `torch.jit.optimize_for_inference`: what it does is done here when a model is loaded"))
}

/// An input between the attributes `min_val` and `max_val`; NaN stays.
fn bounded(args: &Args<'_>) -> Result<Outputs> {
    let bound = |name: &str, open: f32| match args.attr(name) {
        Some(Attr::Float(x)) => *x as f32,
        Some(Attr::Int(n)) => *n as f32,
        _ => open,
    };
    let (low, high) = (bound("min_val", f32::NEG_INFINITY), bound("max_val", f32::INFINITY));
    // Comparisons, and not `clamp`, which panics where the bounds stand the wrong way round.
    let x = args.tensor(0)?;
    if x.dtype() != DType::F32 {
        let dtype = x.dtype().type_name();
        return Err(Diagnostic::runtime(format!("{} takes float tensors, but got {dtype}", args.op.name())));
    }
    one(map1::<f32, f32>(x, move |x| {
        let x = if x < low { low } else { x };
        if x > high { high } else { x }
    })?)
}

fn broadcast(args: &Args<'_>) -> Result<Outputs> {
    let tensors: Vec<&Tensor> = args.values.iter().map(Value::to_tensor).collect::<Result<_>>()?;
    let sizes = broadcast_all(tensors.iter().copied())?;
    tensors.iter().map(|tensor| Ok(Value::Tensor(tensor.broadcast_to(&sizes)?))).collect()
}
