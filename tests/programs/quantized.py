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
#--- written_among
def f(x, m, at):
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    r = torch.quantize_per_tensor(x, 0.1, -3, torch.qint8)
    a = q.masked_fill(m, 1.23)
    b = r.masked_fill(m, torch.tensor(0.55))
    q.masked_fill_(m, 100.0)
    c = r.index_put([at], torch.tensor([0.47, 0.9]))
    r.fill_(torch.tensor(0.72))
    return a.int_repr(), a.q_scale(), b.int_repr(), q.int_repr(), c.int_repr(), r.int_repr()
#> f((torch.arange(8.).reshape(4, 2) * 7 % 11 - 5) / 3, torch.tensor([[True, False]]), torch.tensor([2, 0]))
#--- added_to_where_indexed
def f(x, at):
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    return q.index_put([at], torch.tensor(0.5), accumulate=True)
#> f(torch.arange(4.), torch.tensor([1]))
#--- gelu
def f(x):
    q = torch.quantize_per_tensor(x, 0.02, 100, torch.quint8)
    r = torch.quantize_per_tensor(x, 0.03, 4, torch.qint8)
    return torch.nn.functional.gelu(q).int_repr(), torch.nn.functional.gelu(r, approximate="tanh").int_repr()
#> f((torch.arange(96.) * 37 % 101 - 50) / 17)
#--- rows_of_embeddings
def f(w, at, offsets, weights):
    b = torch.ops.quantized.embedding_bag_byte_prepack(w)
    q = torch.ops.quantized.embedding_bag_4bit_prepack(w, False, 200, 0.16)
    d = torch.ops.quantized.embedding_bag_2bit_prepack(w, False, 200, 0.16)
    e = torch.ops.quantized.embedding_bag_4bit_prepack(w, True, 200, 0.16)
    r = [torch.ops.quantized.embedding_bag_byte_unpack(b), torch.ops.quantized.embedding_bag_4bit_unpack(q), torch.ops.quantized.embedding_bag_2bit_unpack(d)]
    r.append(torch.ops.quantized.embedding_bag_byte_rowwise_offsets(b, at, offsets, False, 0, False, weights, None, False))
    r.append(torch.ops.quantized.embedding_bag_4bit_rowwise_offsets(q, at, offsets, False, 0, False, weights, None, False))
    r.append(torch.ops.quantized.embedding_bag_2bit_rowwise_offsets(d, at, offsets, False, 0, False, None, None, False))
    r.append(torch.ops.quantized.embedding_bag_4bit_rowwise_offsets(q, at.view(2, 3), None, False, 0, False, None, None, False))
    return b, q, d, e, r
#> f((torch.arange(60.).reshape(5, 12) * 37 % 101 - 50) / 17, torch.tensor([0, 1, 2, 4, 3, 1]), torch.tensor([0, 2, 5]), torch.tensor([0.5, 0.25, 1.0, 2.0, 0.1, 3.0]))
#--- rows_left_out
def f(w, at, offsets, left):
    b = torch.ops.quantized.embedding_bag_byte_prepack(w)
    q = torch.ops.quantized.embedding_bag_4bit_prepack(w, False, 200, 0.16)
    s = torch.ops.quantized.embedding_bag_byte_rowwise_offsets(b, at, offsets, False, 0, True, None, left, False)
    t = torch.ops.quantized.embedding_bag_4bit_rowwise_offsets(q, at, offsets, False, 0, True, None, left, False)
    u = torch.ops.quantized.embedding_bag_4bit_rowwise_offsets(q, at.remainder(4).int(), offsets.int(), False, 0, True, None, torch.tensor([0], dtype=torch.int32), False)
    return s, t, u
#> f((torch.arange(48.).reshape(4, 12) * 37 % 101 - 50) / 17, torch.tensor([0, 1, 2, 5, 3, 1]), torch.tensor([0, 2, 5]), torch.tensor([0, -1, 1, -1, 2, 3], dtype=torch.int32))
#--- bounds_of_rows_given
def f(w, bounds):
    a = torch.ops.quantized.embedding_bag_byte_prepack_with_rowwise_min_max(w, bounds)
    b = torch.ops.quantized.embedding_bag_4bit_prepack_with_rowwise_min_max(w, bounds, False, 200, 0.16)
    return a, b
#> f((torch.arange(24.).reshape(2, 12) * 37 % 101 - 50) / 17, torch.tensor([[-3.0, 3.5], [-2.0, 2.25]]))
#--- written_at_an_index
def f(x, at):
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    q[at] = torch.tensor([0.47, 0.9])
    return q.int_repr(), torch.fill(q, 0.55).int_repr(), torch.fill(q, torch.tensor(0.25)).int_repr()
#> f(torch.arange(4.), torch.tensor([1, 2]))
#--- convolutions_of_chosen_scales
def f(x, w, b):
    q = torch.quantize_per_tensor(w, 0.02, 0, torch.qint8)
    one = torch.ops.quantized.conv1d_prepack(q[:, :, 0], b, [1], [1], [1], 1)
    two = torch.ops.quantized.conv2d_prepack(q, b, [2, 1], [1, 0], [1, 1], 1)
    back = torch.ops.quantized.conv_transpose2d_prepack(q, None, [2, 2], [1, 1], [1, 0], [1, 1], 1)
    r = [torch.ops.quantized.conv1d_dynamic(x[:, :, 0], one, False), torch.ops.quantized.conv1d_dynamic(x[:, :, 0], one, True)]
    r.append(torch.ops.quantized.conv2d_dynamic(x, two, False))
    r.append(torch.ops.quantized.conv2d_dynamic(x, two, True))
    r.append(torch.ops.quantized.conv_transpose2d_dynamic(x, back, False))
    return r
#> f((torch.arange(128.).view(2, 4, 4, 4) * 37 % 101 - 50) / 17, (torch.arange(144.).view(4, 4, 3, 3) * 29 % 83 - 40) / 100, torch.tensor([0.5, -0.25, 0.0, 1.0]))
#--- means_of_the_last_dimensions
def f(x, zero: int):
    q = torch.quantize_per_tensor(x, 0.037, zero, torch.quint8)
    i = torch.quantize_per_tensor(x, 0.037, 0, torch.qint8)
    r = [q.mean([2, 3]).int_repr(), q.mean([2, 3], True).int_repr(), q.mean(-1).int_repr(), q.mean().int_repr()]
    r.extend([i.mean([-1, 2]).int_repr(), i.mean([1, 2, 3]).int_repr()])
    return r
#> f((torch.arange(256.).view(2, 32, 2, 2) * 37 % 101 - 50) / 23, 60)
#> f((torch.arange(256.).view(2, 8, 4, 4) * 29 % 103 - 50) / 31, 7)
