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
def gradients_at_corners(a: Tensor, b: Tensor):
    a = a.detach().requires_grad_()
    b = b.detach().requires_grad_()
    torch.nn.functional.binary_cross_entropy(a, b).backward()
    return a.grad, b.grad

#> gradients_at_corners(torch.tensor([1.0, 0.0, 0.5, 1.0]), torch.tensor([1.0, 0.0, 1.0, 0.0]))
#--- gradients_of_equals
def gradients_of_equals(a: Tensor):
    c = torch.ones_like(a).requires_grad_()
    F.smooth_l1_loss(c, torch.ones_like(a), beta=0.0).backward()
    return c.grad

#> gradients_of_equals(torch.ones([2]))
#--- gradients_of_complex_multiples
def gradients_of_complex_multiples(a: Tensor):
    d = torch.ones_like(a).requires_grad_()
    torch.view_as_real(d * 1j).sum().backward()
    return d.grad

#> gradients_of_complex_multiples(torch.ones([2]))
#--- gradients_of_16_bits
def gradients_of_16_bits(h: Tensor):
    h = h.detach().requires_grad_()
    F.gelu(h, approximate="tanh").sum().backward()
    return h.grad

#> gradients_of_16_bits(torch.tensor([2048, 65504, -4, 5], dtype=torch.float16))
#--- numbers_that_fit
def numbers_that_fit(x: Tensor, value: float):
    return x.fill_(value)

#> numbers_that_fit(torch.zeros([2], dtype=torch.uint8), -1.0)
#> numbers_that_fit(torch.zeros([2], dtype=torch.float16), 65520.0)
#> numbers_that_fit(torch.zeros([2], dtype=torch.bfloat16), 1e39)
#> numbers_that_fit(torch.zeros([2], dtype=torch.int64), -1.5)
#> numbers_that_fit(torch.zeros([2], dtype=torch.bool), 1e39)
#--- gates_of_integers
def gates_of_integers(x: Tensor):
    return torch.ops.aten.glu(x)

#> gates_of_integers(torch.ones([4], dtype=torch.long))
#--- none_of_one_number
def none_of_one_number(x: Tensor):
    return torch.topk(x, 0), torch.topk(x, 1), torch.topk(x.reshape(1), 0)

#> none_of_one_number(torch.tensor(2.0))
#--- numbers_beside_tensors
def numbers_beside_tensors(x: Tensor, n: int, y: float):
    return torch.where(x > 0, x, n), torch.where(x > 0, n, x), torch.where(x > 0, x, y)

#> numbers_beside_tensors(torch.ones([2], dtype=torch.uint8), 255, 300.5)
#> numbers_beside_tensors(torch.ones([2], dtype=torch.uint8), 256, 1.0)
#> numbers_beside_tensors(torch.ones([2], dtype=torch.int32), 9223372036854775807, 1.0)
#> numbers_beside_tensors(torch.ones([2], dtype=torch.float16), 65520, 1.0)
#> numbers_beside_tensors(torch.ones([2], dtype=torch.bool), 70000, 1.0)
#--- numbers_as_bounds
def numbers_as_bounds(x: Tensor, n: int, y: float):
    return torch.clamp(x, min=n), torch.clamp(x, y)

#> numbers_as_bounds(torch.ones([2], dtype=torch.uint8), 255, 300.5)
#> numbers_as_bounds(torch.ones([2], dtype=torch.uint8), 256, 1.0)
#> numbers_as_bounds(torch.ones([2], dtype=torch.int32), 9223372036854775807, 1.0)
#--- bounds_beyond_all
def bounds_beyond_all(x: Tensor, low: Optional[int], high: Optional[int]):
    return torch.clamp(x, low, high)

#> bounds_beyond_all(torch.ones([2], dtype=torch.int8), 70000, None)
#> bounds_beyond_all(torch.ones([2], dtype=torch.int8), None, 70000)
#> bounds_beyond_all(torch.ones([2], dtype=torch.int8), None, -70000)
#> bounds_beyond_all(torch.ones([2], dtype=torch.uint8), 2, -1)
#> bounds_beyond_all(torch.ones([2], dtype=torch.int16), 9223372036854775807, None)
#> bounds_beyond_all(torch.ones([2], dtype=torch.int32), 2147483648, None)
#--- images_looked_up_as_they_lie
def images_looked_up_as_they_lie(x: Tensor, grid: Tensor):
    last = x.contiguous(memory_format=torch.channels_last)
    op = torch.ops.aten
    y = op.grid_sampler(last, grid, 0, 0, False)
    return (y, y.stride(), op.grid_sampler(last, grid, 0, 1, True), op.grid_sampler(last, grid, 0, 2, False), op.grid_sampler_2d(x, grid, 0, 0, True),
            op.grid_sampler(last.double(), grid.double(), 0, 0, True), op.grid_sampler(last, grid, 1, 0, False))

#> images_looked_up_as_they_lie(torch.arange(2.0 * 19 * 4 * 3).reshape(2, 19, 4, 3).sin(), torch.arange(2.0 * 3 * 5 * 2).reshape(2, 3, 5, 2).cos() * 1.3)
#> images_looked_up_as_they_lie(torch.full((1, 17, 2, 2), float("inf")), torch.tensor([[[[0.0, 0.0], [float("nan"), 0.0], [2.0, 0.5]]]]))
#--- largest_parts_of_innermost_channels
def largest_parts_of_innermost_channels(x: Tensor):
    last = x.contiguous(memory_format=torch.channels_last)
    y, places = torch.ops.aten.adaptive_max_pool2d(last, [3, 2])
    z, one = torch.ops.aten.adaptive_max_pool2d(last.double(), [1, 1])
    return y, places, y.stride(), places.stride(), z, one, torch.ops.aten.adaptive_max_pool2d(last.half(), [2, 5])[1]

#> largest_parts_of_innermost_channels(torch.arange(2.0 * 35 * 7 * 5).reshape(2, 35, 7, 5).sin())
#> largest_parts_of_innermost_channels(torch.where(torch.arange(70.0).reshape(1, 2, 7, 5) % 11 == 3, float("nan"), float("-inf")))
#--- channels_picked_as_they_lie
def channels_picked_as_they_lie(x: Tensor, i: Tensor):
    last = x.contiguous(memory_format=torch.channels_last)
    y = last[:, i]
    t = x.transpose(0, 1)
    u = t[i]
    return y, y.stride(), last[:, [0, -1]], u, u.stride(), t[:, :, i.int() % 3].stride(), last[i % 2].stride()

#> channels_picked_as_they_lie(torch.arange(2.0 * 9 * 3 * 4).reshape(2, 9, 3, 4), torch.tensor([3, 0, -2, 3]))
#--- runs_of_elements
def runs_of_elements(x: Tensor):
    pads = [F.pad(x, [3, 3, 1, 1], mode="reflect"), F.pad(x, [2, 9, 0, 0], mode="circular"), F.pad(x, [9, 0, 0, 1], mode="replicate")]
    return pads, x.flip([3]), x.flip([1, 3]), x.roll(5, 3), torch.index_select(x, 3, torch.tensor([4, 5, 6, 7, 8, 3, 2, 1, 0, 9, 9, 10]))

#> runs_of_elements(torch.arange(2.0 * 2 * 3 * 11).reshape(2, 2, 3, 11))
#> runs_of_elements(torch.arange(1 * 1 * 3 * 11).reshape(1, 1, 3, 11).to(torch.int16))
#--- short_rows
def short_rows(x: Tensor):
    y = x.clone()
    y[1, 2], y[2, 0], y[3, 1], y[4] = float("nan"), float("inf"), float("-inf"), float("-inf")
    return (x.softmax(-1), x.log_softmax(-1), x.logsumexp(-1), torch.amax(x, [-1]), torch.amin(y, [-1]), torch.amax(y, [-1]), y.softmax(-1),
            y.log_softmax(-1), y.logsumexp(-1), torch.linalg.vector_norm(x, 2, [-1]), x.sum(-1), torch._safe_softmax(y, -1), x.half().log_softmax(-1))

#> short_rows(torch.arange(19.0 * 5).reshape(19, 5).sin() * 4)
#> short_rows(torch.arange(33.0 * 70).reshape(33, 70).sin() * 9)
#--- transforms_along_dimensions
def transforms_along_dimensions(x: Tensor):
    z = torch.complex(x, x * 0.5 + 1)
    return (torch.fft.rfft(x, dim=0), torch.fft.irfft(z, 9, dim=1), torch.fft.fft(x, 7, dim=1), torch.fft.ifft(x, dim=0), torch.fft.ihfft(x, 3, 2) * 2,
            torch.fft.hfft(z, dim=2, norm="ortho"), torch.fft.rfft2(x, norm="forward"), torch.fft.irfft2(z, [5, 4]), torch.fft.fftn(z.to(torch.complex128)),
            torch.fft.rfftn(x.double()), torch.fft.fft(x, 257).abs().sum(), torch.fft.rfft(x).stride(), torch.fft.ifft2(z, dim=[0, 2]).stride())

#> transforms_along_dimensions((torch.arange(3.0 * 6 * 4) * 37 % 19 / 8 - 1).reshape(3, 6, 4))
#--- sizes_by_factors
def sizes_by_factors(x: Tensor):
    y = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
    z = F.interpolate(x.contiguous(memory_format=torch.channels_last), scale_factor=2.0, mode="nearest")
    return y, y.stride(), z.stride(), z.sum(), F.interpolate(x, scale_factor=[1.5, 0.5], mode="nearest"), F.interpolate(x, size=3, mode="area")

#> sizes_by_factors(torch.arange(2.0 * 3 * 4 * 6).reshape(2, 3, 4, 6))
#--- scans_in_place
def scans_in_place(x: Tensor, d: int):
    y = x.clone()
    y.cumsum_(0)
    z = x.clone().cumprod_(0, dtype=x.dtype)
    return y, z, x.cumsum_(0, dtype=d)

#> scans_in_place(torch.tensor([1, 2, 3]), torch.float32)
#> scans_in_place(torch.tensor([1.5, 2, 3]), torch.int64)
#> scans_in_place(torch.tensor([1.5, 2, 3]), torch.float32)
#--- inverse_of_a_factor
def inverse_of_a_factor(x: Tensor, upper: bool):
    return torch.cholesky_inverse(x, upper)

#> inverse_of_a_factor(torch.tensor([[2.0, 0.0], [0.5, 1.5]]), False)
#> inverse_of_a_factor(torch.tensor([[2.0, 0.0], [0.5, 0.0]]), True)
#> inverse_of_a_factor(torch.tensor([[[2.0, 0.0], [0.5, 1.0]], [[0.0, 0.0], [0.5, 0.0]]]), False)
#> inverse_of_a_factor(torch.zeros(2, 0, 0), False)
#--- masks_of_first_dimensions
def masks_of_first_dimensions(x: Tensor, rows: Tensor):
    whole = x[x > 4]
    y = x[rows]
    none = x[rows & ~rows]
    t = x.transpose(0, 1)
    two = x[x[:, :, 0] > 3]
    return whole, whole.stride(), y, y.stride(), none, t[t > 4], two, two.stride(), x.to(torch.bool)[x > 2], x[:, rows[:2]]

#> masks_of_first_dimensions(torch.arange(24.0).reshape(3, 2, 4), torch.tensor([True, False, True]))
#> masks_of_first_dimensions(torch.arange(6).reshape(3, 2, 1), torch.tensor([False, True, False]))
#> masks_of_first_dimensions(torch.arange(24.0).reshape(3, 2, 4), torch.tensor([True, False]))
#--- one_slope
def one_slope(x: Tensor, w: Tensor):
    y = torch.conv2d(x, torch.ones(2, 3, 1, 1))
    return torch.prelu(y, torch.ones(1) * 0.25), torch.prelu(x, w), torch.prelu(torch.conv2d(x, torch.ones(2, 3, 1, 1)), torch.ones(2) * -0.5)

#> one_slope(torch.arange(24.0).reshape(2, 3, 2, 2) - 11, torch.tensor([0.5]))
#> one_slope(torch.arange(24.0).reshape(2, 3, 2, 2) - 11, torch.tensor([0.5, 1.0, -2.0]))
#> one_slope(torch.arange(24.0).reshape(2, 3, 2, 2) - 11, torch.tensor([0.5, 1.0]))
