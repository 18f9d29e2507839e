//! Derivatives of layers that are one product where the derivative's text would take several.

use crate::dialects::aten::convolution::weight_gradient;
use crate::dialects::{OpDef, contraction};

/// The rows.
pub static OPS: &[OpDef] = &[contraction(
    "fusion::conv_weight_gradient(Tensor dy, Tensor input, Tensor weight, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
    weight_gradient,
)
.grad(
    "dy: torch.convolution(input, grad, None, stride, padding, dilation, False, [0] * len(stride), groups)\n\
     input: torch.ops.aten.convolution_backward(dy, input, grad, None, stride, padding, dilation, False, [0] * len(stride), groups, [True, False, False])[0]\n\
     weight: none",
)
.doc("The derivative of a convolution by its weight, for the gradient `dy` of its result; of `weight` only the sizes matter.")];
