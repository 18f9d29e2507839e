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
const CONVOLUTION: &str = "
def whole(a: Tensor, b: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int]) -> bool:
    if a.numel() == 0 or b.numel() == 0:
        return False
    for d in range(len(stride)):
        reached = a.size(2 + d) + 2 * padding[d] - dilation[d] * (weight.size(2 + d) - 1) - 1
        if reached < 0 or reached // stride[d] + 1 != b.size(2 + d):
            return False
    return True

def convolution_backward(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Optional[List[int]], stride: List[int], padding: List[int], dilation: List[int], transposed: bool, output_padding: List[int], groups: int, output_mask: List[bool]):
    n = input.dim() - 2
    if len(stride) == 1:
        stride = stride * n
    if len(padding) == 1:
        padding = padding * n
    if len(dilation) == 1:
        dilation = dilation * n
    grad_input: Optional[Tensor] = None
    grad_weight: Optional[Tensor] = None
    grad_bias: Optional[Tensor] = None
    zeros = [0] * n
    if output_mask[0]:
        if transposed:
            grad_input = torch.convolution(grad_output, weight, None, stride, padding, dilation, False, zeros, groups)
        else:
            rest = [0]
            for d in range(n):
                reached = (grad_output.size(2 + d) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (weight.size(2 + d) - 1) + 1
                rest.append(input.size(2 + d) - reached)
            grad_input = torch.convolution(grad_output, weight, None, stride, padding, dilation, True, rest[1:], groups)
    if output_mask[1]:
        a = input
        b = grad_output
        if transposed:
            a = grad_output
            b = input
        parts: List[Tensor] = []
        if not a.is_complex() and whole(a, b, weight, stride, padding, dilation):
            parts.append(torch.ops.fusion.conv_weight_gradient(b, a, weight, stride, padding, dilation, groups))
        for g in range(0 if len(parts) > 0 else groups):
            x = a.chunk(groups, 1)[g].transpose(0, 1)
            y = b.chunk(groups, 1)[g].transpose(0, 1)
            part = torch.convolution(x, y, None, dilation, padding, stride, False, zeros, 1)
            for d in range(n):
                part = part.narrow(2 + d, 0, weight.size(2 + d))
            parts.append(part.transpose(0, 1))
        grad_weight = torch.cat(parts, 0)
    if output_mask[2]:
        dims = [0]
        for d in range(n):
            dims.append(2 + d)
        grad_bias = grad_output.sum(dims)
    return grad_input, grad_weight, grad_bias
";

const GROUP_NORM: &str = "
def native_group_norm_backward(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Optional[Tensor], N: int, C: int, HxW: int, group: int, output_mask: List[bool]):
    shape = [N, group, C // group, HxW]
    center = mean.view([N, group, 1, 1])
    scale = rstd.view([N, group, 1, 1])
    x = (input.reshape(shape) - center) * scale
    grad = grad_out.reshape(shape)
    grad_input: Optional[Tensor] = None
    grad_weight: Optional[Tensor] = None
    grad_bias: Optional[Tensor] = None
    if output_mask[0]:
        g = grad
        if weight is not None:
            g = g * weight.view([1, group, C // group, 1])
        changed = (g - g.mean([2, 3], True) - x * (g * x).mean([2, 3], True)) * scale
        grad_input = changed.reshape(input.size()).to(input.dtype)
    if output_mask[1]:
        grad_weight = (grad * x).sum([0, 3]).view([C]).to(input.dtype)
    if output_mask[2]:
        grad_bias = grad.sum([0, 3]).view([C])
    return grad_input, grad_weight, grad_bias
";

/// Each result's share goes to all elements of its window: a transposed convolution with ones.
const AVG_POOL: &str = "
def avg_pool2d_backward(grad_output: Tensor, self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], ceil_mode: bool, count_include_pad: bool, divisor_override: Optional[int]) -> Tensor:
    if len(stride) == 0:
        stride = kernel_size
    k = [kernel_size[0], kernel_size[-1]]
    s = [stride[0], stride[-1]]
    p = [padding[0], padding[-1]]
    h = self.size(-2)
    w = self.size(-1)
    channels = self.numel() // max(h * w, 1)
    grad = grad_output.reshape([1, channels, grad_output.size(-2), grad_output.size(-1)])
    if divisor_override is not None:
        grad = grad / divisor_override
    elif count_include_pad:
        ones = torch.ones([1, 1, h + 2 * p[0], w + 2 * p[1]], dtype=grad.dtype)
        counts = torch.avg_pool2d(ones, k, s, [0, 0], ceil_mode, True, 1)
        grad = grad / counts.narrow(2, 0, grad.size(2)).narrow(3, 0, grad.size(3))
    else:
        ones = torch.ones([1, 1, h, w], dtype=grad.dtype)
        grad = grad / torch.avg_pool2d(ones, k, s, p, ceil_mode, True, 1)
    spread = torch.conv_transpose2d(grad, torch.ones([channels, 1, k[0], k[1]], dtype=grad.dtype), None, s, 0, 0, channels)
    rest = [-p[1], w + p[1] - spread.size(3), -p[0], h + p[0] - spread.size(2)]
    return torch.constant_pad_nd(spread, rest).reshape(self.size())
";

/// Windows of rows and of columns are independent, so the gradient is a product with a matrix on either side.
const ADAPTIVE_AVG_POOL: &str = "
def windows(size: int, count: int, like: Tensor) -> Tensor:
    at = torch.arange(count).unsqueeze(1)
    first = torch.floor_divide(at * size, count)
    last = torch.floor_divide((at + 1) * size + count - 1, count)
    places = torch.arange(size).unsqueeze(0)
    inside = torch.logical_and(places >= first, places < last)
    return inside.to(like.dtype) / (last - first).to(like.dtype)

def _adaptive_avg_pool2d_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    rows = windows(self.size(-2), grad_output.size(-2), grad_output)
    columns = windows(self.size(-1), grad_output.size(-1), grad_output)
    return torch.matmul(torch.matmul(rows.t(), grad_output), columns)
";
