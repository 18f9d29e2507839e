#--- slopes
def f(x, w):
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    w = torch.quantize_per_tensor(w, 0.02, 1, torch.quint8)
    return torch.ops.quantized.prelu(q, w, 0.07, 5).dequantize()
#> f((torch.arange(24.).reshape(2, 3, 4) * 7 % 11 - 5) / 3, torch.tensor([0.1, 0.25, 0.5]))
#--- slopes_that_cannot_say_one
def f(x, w, scale: float):
    q = torch.quantize_per_tensor(x, 0.05, 60, torch.quint8)
    w = torch.quantize_per_tensor(w, scale, 0, torch.quint8)
    return torch.ops.quantized.prelu(q, w, 0.01, 5).int_repr()
#> f((torch.arange(24.).reshape(2, 3, 4) * 7 % 11 - 5) / 3, torch.tensor([0.25]), 0.000980392)
#> f((torch.arange(24.).reshape(2, 3, 4) * 7 % 11 - 5) / 3, torch.tensor([0.25, 0.125, 0.3]), 0.002)
#--- pooling
def f(x):
    q = torch.quantize_per_tensor(x, 0.1, 30, torch.quint8)
    r = torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)
    return torch.max_pool1d(q, 2).dequantize(), torch.max_pool1d(q, 3, 1, 1, 1, True).int_repr(), torch.max_pool1d(r, 2, 1).dequantize()
#> f((torch.arange(24.).reshape(2, 3, 4) * 7 % 11 - 5) / 3)
#--- resizing
def f(x, align: bool):
    q = torch.quantize_per_tensor(x, 0.05, 128, torch.quint8)
    a = torch.nn.functional.interpolate(q, scale_factor=[1.5, 1.5], mode="bilinear", align_corners=align)
    b = torch.nn.functional.interpolate(q, size=[3, 11], mode="bilinear", align_corners=align)
    return a.int_repr(), b.int_repr()
#> f((torch.arange(120.).reshape(2, 3, 4, 5) * 37 % 101 - 50) / 17, False)
#> f((torch.arange(120.).reshape(2, 3, 4, 5) * 37 % 101 - 50) / 17, True)
#--- products
def f(x, y):
    q = torch.quantize_per_tensor(x, 0.05, 128, torch.quint8)
    r = torch.quantize_per_tensor(y, 0.05, 128, torch.quint8)
    return torch.ops.quantized.matmul(q, r, 0.3, 60).int_repr()
#> f((torch.arange(144.).reshape(2, 3, 4, 6) * 37 % 101 - 50) / 17, (torch.arange(144.).reshape(2, 3, 6, 4) * 43 % 97 - 50) / 17)
#--- filled
def f(x):
    q = torch.quantize_per_tensor(x, 0.05, 128, torch.quint8)
    z = q.clone()
    z.fill_(0.52)
    return z.dequantize(), torch.full_like(q, 0.3).int_repr(), torch.full_like(q, 100).q_zero_point()
#> f(torch.arange(4.))
#--- means
def f(x):
    q = torch.quantize_per_tensor(x, 0.031, 61, torch.quint8)
    last = q.contiguous(memory_format=torch.channels_last_3d)
    a = torch.nn.functional.adaptive_avg_pool3d(q, [2, 1, 2]).int_repr(), torch.nn.functional.adaptive_avg_pool3d(last, [2, 1, 2]).int_repr()
    return a, torch.nn.functional.adaptive_avg_pool2d(q[0], [1, 2]).int_repr()
#> f((torch.arange(96.).reshape(1, 4, 2, 3, 4) * 37 % 101 - 50) / 17)
#--- products_are_of_integers
def f(n: int):
    x = (torch.arange(n) * 397 % 1009 - 500) / 80.0
    q = torch.quantize_per_tensor(x, 0.05, 128, torch.quint8)
    r = torch.quantize_per_tensor(x.flip(0), 0.05, 128, torch.quint8)
    return torch.ops.quantized.mul(q, r, 0.07, 90).int_repr(), torch.ops.quantized.mul_relu(q, r, 0.07, 90).int_repr()
#> f(1000)
#--- means_at_halves
def f(n: int):
    x = (torch.arange(n) * 2).reshape([n, 1, 1]) + torch.tensor([0.0, 1.0]).repeat([1, 5, 3])
    q = torch.quantize_per_tensor(torch.cat([x, x], 2), 1.0, 0, torch.quint8)
    return torch.nn.functional.adaptive_avg_pool2d(q, [1, 2]).int_repr()
#> f(40)
