
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
