
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
