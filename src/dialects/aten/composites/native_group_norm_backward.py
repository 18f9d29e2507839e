
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
