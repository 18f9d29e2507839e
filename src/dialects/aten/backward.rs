//! Derivatives of layers that PyTorch has ops for: convolutions, averages over windows, normalization of groups. Gradients that the mask leaves out are None.

use crate::dialects::{OpDef, composite};

/// The rows.
pub static OPS: &[OpDef] = &[
    composite(
        "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        CONVOLUTION,
    ),
    composite(
        "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        GROUP_NORM,
    ),
    composite(
        "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        AVG_POOL,
    )
    .out("grad_input"),
    composite("aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", ADAPTIVE_AVG_POOL)
        .out("out"),
];

/// The gradient of a convolution's input is the transposed convolution of the result's; that of its weight is the
/// convolution of the two with batch and channels exchanged, and with stride and dilation exchanged.
const CONVOLUTION: &str = include_str!("composites/convolution_backward.py");

const GROUP_NORM: &str = include_str!("composites/native_group_norm_backward.py");

/// Each result's share goes to all elements of its window: a transposed convolution with ones.
const AVG_POOL: &str = include_str!("composites/avg_pool2d_backward.py");

/// Windows of rows and of columns are independent, so the gradient is a product with a matrix on either side.
const ADAPTIVE_AVG_POOL: &str = include_str!("composites/adaptive_avg_pool2d_backward.py");
