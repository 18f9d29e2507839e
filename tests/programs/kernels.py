#--- convolutions
def convolutions(x: Tensor, w: Tensor, b: Tensor):
    op = torch.ops.aten
    y = op.thnn_conv2d(x, w, [3, 2], b, [1, 2], [1, 0])
    z = op._slow_conv2d_forward(x, w, [3, 2], None, [2, 1], [0, 1])
    d = op.slow_conv_dilated2d(x, w, [3, 2], b, [1, 1], [2, 1], [2, 1])
    t = op.slow_conv_transpose2d(x, w.transpose(0, 1), [3, 2], b, [2, 2], [1, 0], [1, 1], [1, 2])
    return y, z, d, t, torch.ops.aten.thnn_conv2d(x, w, [3, 2])

#> convolutions(torch.arange(40.0).reshape(1, 2, 5, 4) / 16 - 1, torch.arange(36.0).reshape(3, 2, 3, 2) / 16 - 1, torch.tensor([0.5, -0.5, 0.25]))
#--- volumes
def volumes(x: Tensor, w: Tensor, b: Tensor):
    op = torch.ops.aten
    y = op.slow_conv3d(x, w, [2, 2, 2], b, [1, 1, 2], [1, 0, 0])
    d = op.slow_conv_dilated3d(x, w, [2, 2, 2], b, [1, 1, 1], [1, 0, 1], [2, 1, 1])
    t = op.slow_conv_transpose3d(x, w.transpose(0, 1), [2, 2, 2], b, [1, 2, 1], [0, 0, 1], [0, 1, 0], [1, 1, 1])
    return y, op.slow_conv3d_forward(x, w, [2, 2, 2], None, [1, 1, 1], [0, 0, 0]), d, t

#> volumes(torch.arange(48.0).reshape(1, 2, 3, 2, 4) / 16 - 1, torch.arange(48.0).reshape(3, 2, 2, 2, 2) / 16 - 1, torch.tensor([0.5, -0.5, 0.25]))
#--- products
def products(x: Tensor, y: Tensor, a: Tensor, b: Tensor, c: Tensor):
    op = torch.ops.aten
    return op._int_mm(x, y), op._addmm_activation(c, a, b, beta=2, alpha=0.5), op._addmm_activation(c, a, b, use_gelu=True)

#> products(torch.tensor([[100, -128, 127], [1, 2, 3]], dtype=torch.int8), torch.tensor([[127, 1], [-128, 2], [127, 3]], dtype=torch.int8), torch.tensor([[1.0, -2.0], [0.5, 0.25]]), torch.tensor([[1.0, -2.0], [0.5, 0.25]]), torch.tensor([1.0, -2.0]))
#--- groups_of_innermost_channels
def groups_of_innermost_channels(x: Tensor, w: Tensor, b: Tensor):
    last = x.contiguous(memory_format=torch.channels_last)
    y = F.group_norm(last, 3, w, b)
    one = F.group_norm(last, 1, eps=0.1)
    equal = F.group_norm(torch.ones_like(last) * 0.1, 2)
    z, mean, rstd = torch.native_group_norm(last, w, None, 2, 6, 12, 6, 1e-5)
    return y, y.stride(), one, equal, z, mean, rstd, F.group_norm(last.double(), 3)

#> groups_of_innermost_channels(torch.arange(144.0).reshape(2, 6, 3, 4).sin() + 2, torch.arange(6.0) / 3 - 1, torch.ones(6))
#--- means_of_innermost_channels
def means_of_innermost_channels(x: Tensor):
    last = x.contiguous(memory_format=torch.channels_last)
    return last.mean([2, 3]), last.mean((2, 3), True), last.sum([2, 3]), last.mean(2), last.sum([0, 2]), last.mean([0, 2, 3])

#> means_of_innermost_channels(torch.arange(2.0 * 20 * 3 * 4).reshape(2, 20, 3, 4).sin())
#--- complex_corners
def complex_corners(re: Tensor, im: Tensor):
    x = torch.complex(re, im)
    single = x.to(torch.complex64)
    return (x.tanh(), x.tan(), x.atan(), x.atanh(), x.acos(), x.acosh(), x.asin(), x.asinh(), x.sqrt(), x.rsqrt(), x.log1p(),
            single.tanh(), single.tan(), single.expm1(), single.sqrt(), single.log1p())

#> complex_corners(torch.tensor([129.0, -129.0, 129.0, 0.25, float("inf")], dtype=torch.float64), torch.tensor([float("inf"), float("nan"), 0.0, float("-inf"), 129.0], dtype=torch.float64))
#> complex_corners(torch.tensor([1e300, -1e300, 1e300, 129.0, -0.5], dtype=torch.float64), torch.tensor([1.0, -0.5, 0.0, 1e-310, 1e-310], dtype=torch.float64))
#> complex_corners(torch.tensor([0.0, -0.0, 1e-200, 1e300, 3e200], dtype=torch.float64), torch.tensor([1e300, -1e300, 2e-200, 1e300, -1e-300], dtype=torch.float64))
#--- means_of_sums_that_overflow
def means_of_sums_that_overflow(x: Tensor, y: Tensor, z: Tensor):
    at = torch.zeros([3], dtype=torch.long)
    return (torch.scatter_reduce(x, 0, at, x, "mean"), torch.index_reduce(x, 0, at, x, "mean"), torch.scatter_reduce(y, 0, at, y, "mean"),
            torch.scatter_reduce(z, 0, at, z, "mean"))

#> means_of_sums_that_overflow(torch.tensor([255, 255, 1], dtype=torch.uint8), torch.tensor([100, 100, 27], dtype=torch.int8), torch.tensor([3e38, 3e38, 1.0]))
#--- norms_of_16_bits
def norms_of_16_bits(x: Tensor, y: Tensor):
    a = F.batch_norm(x.view(-1, 1), None, None, None, None, True)
    b = torch.native_batch_norm(x.view(-1, 1), None, None, None, None, True, 0.1, 1e-5)
    return a, b, F.instance_norm(x.view(1, 1, -1)), torch.rms_norm(y, [2]), F.rms_norm(y, [2]), torch.rms_norm(y, [2], None, 1e-3)

#> norms_of_16_bits(torch.tensor([300.0, -300.0], dtype=torch.float16), torch.tensor([1e-3, 1e-3], dtype=torch.float16))
#> norms_of_16_bits(torch.tensor([300.0, -300.0], dtype=torch.bfloat16), torch.tensor([1e-3, 1e-3], dtype=torch.bfloat16))
#--- losses_of_wider_targets
def losses_of_wider_targets(x: Tensor, y: Tensor):
    return F.mse_loss(x, y), F.l1_loss(x, y, reduction="none"), F.smooth_l1_loss(x, y), F.huber_loss(x, y), F.smooth_l1_loss(x, x, reduction="none", beta=0.0)

#> losses_of_wider_targets(torch.tensor([1.0, 2.0]), torch.tensor(3.1, dtype=torch.float64))
#> losses_of_wider_targets(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0]))
#--- gradients_at_corners
def gradients_at_corners(a: Tensor, b: Tensor, h: Tensor):
    a = a.detach().requires_grad_()
    b = b.detach().requires_grad_()
    torch.nn.functional.binary_cross_entropy(a, b).backward()
    c = torch.ones_like(a).requires_grad_()
    F.smooth_l1_loss(c, c.detach() * 1, beta=0.0).backward()
    d = torch.ones_like(a).requires_grad_()
    torch.abs(d * 1j + 2).sum().backward()
    h = h.detach().requires_grad_()
    F.gelu(h, approximate="tanh").sum().backward()
    return a.grad, b.grad, c.grad, d.grad, h.grad

#> gradients_at_corners(torch.tensor([1.0, 0.0, 0.5, 1.0]), torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.tensor([2048, 65504, -4, 5], dtype=torch.float16))
