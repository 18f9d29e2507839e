#--- half_of_large_integers
def f(x, y):
    return x * y, x / y, x + y, x - y, x * y[0], x * 100000, torch.maximum(x, y), torch.floor_divide(x, y), torch.pow(x, y)
#> f(torch.tensor([0.0, 0.5]).half(), torch.tensor([100000, 100000]))
#> f(torch.tensor([0.0, 0.5]).bfloat16(), torch.tensor([16777217, 257]))
#> f(torch.full([16], 0.5).half(), torch.full([16], 100000))
#--- lengths_overflow
def f(x, y):
    return torch.norm(x), torch.linalg.vector_norm(x), torch.norm(x, dim=0), torch.norm(x, p=3), torch.dist(x, y), torch.nn.functional.normalize(x, dim=0)
#> f(torch.tensor([1e30, 0.0]), torch.tensor([0.0, 0.0]))
#> f(torch.tensor([1e-23, 1e-23, 1e-23]), torch.tensor([0.0, 0.0, 0.0]))
#> f(torch.tensor([1e-30]), torch.tensor([0.0]))
#> f(torch.tensor([1e30]), torch.tensor([0.0]))
#> f(torch.tensor([300.0, 1.0]).half(), torch.tensor([0.0, 0.0]).half())
#> f(torch.tensor([1e30, 3.0]).double(), torch.tensor([0.0, 0.0]).double())
#--- lengths_of_columns
def f(x):
    return torch.norm(x, dim=0), torch.norm(x, dim=1), torch.norm(x[:1], dim=0), torch.norm(x, p=1, dim=0)
#> f(torch.tensor([[1e25, 2.0, -0.0], [3.0, 1e-30, 4.0]]))
#--- bags_with_last_offset
def f(mode: int, end: int, padded: bool, double: bool):
    w = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    if double:
        w = w.double()
    x = torch.tensor([0, 1, 2, 3])
    offsets = torch.tensor([0, 1, end])
    if padded:
        return torch.embedding_bag(w, x, offsets, False, mode, False, None, True, 1)
    return torch.embedding_bag(w, x, offsets, False, mode, False, None, True)
#> f(0, 3, False, False)
#> f(1, 3, False, False)
#> f(2, 3, False, False)
#> f(0, 4, False, False)
#> f(1, 4, False, False)
#> f(2, 4, False, False)
#> f(0, 3, True, False)
#> f(1, 3, True, False)
#> f(2, 3, True, False)
#> f(0, 3, False, True)
#> f(1, 3, False, True)
#> f(2, 3, False, True)
#--- bags_with_padding_from_behind
def f(padding: Optional[int], mode: int):
    w = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    return torch.embedding_bag(w, torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 3]), False, mode, False, None, True, padding)
#> f(-1, 0)
#> f(-2, 0)
#> f(-2, 1)
#> f(None, 0)
#--- integers_in_closed_ranges
def f(a: float, b: float, by: float):
    return torch.range(a, b, by, dtype=torch.int64), torch.range(a, b, by, dtype=torch.int32), torch.range(a, b, by)
#> f(1.5, 3.0, 2.0)
#> f(0.5, 2.5, 1.0)
#> f(3.9, 0.1, -1.0)
#> f(0.0, 5.0, 1.5)
#--- windows_of_halves
def f(n: int, periodic: bool, dtype: int):
    return torch.hann_window(n, periodic, dtype=dtype), torch.hamming_window(n, periodic, dtype=dtype), torch.blackman_window(n, periodic, dtype=dtype), torch.bartlett_window(n, periodic, dtype=dtype), torch.hamming_window(n, periodic, 0.6, 0.3, dtype=dtype)
#> f(7, True, 5)
#> f(7, False, 5)
#> f(8, True, 15)
#> f(8, False, 15)
#> f(2, False, 15)
#> f(9, False, 6)
#--- no_numbers_to_check
def f():
    return torch.linspace(0.1, 1e10, 0, dtype=torch.int8), torch.scalar_tensor(1e10, dtype=torch.float16), torch.scalar_tensor(-1e39, dtype=torch.bfloat16)
#> f()
#--- numbers_to_check
def f(x: float):
    return torch.scalar_tensor(x, dtype=torch.float32)
#> f(1e39)
#--- nothing_is_divided_by_zero
def f(x):
    return x // 0, x % 0, torch.fmod(x, 0), torch.div(x, 0, rounding_mode="floor"), torch.div(x, torch.zeros_like(x), rounding_mode="trunc")
#> f(torch.zeros(0, dtype=torch.int32))
#> f(torch.zeros(2, 0, dtype=torch.int64))
#--- something_is_divided_by_zero
def f(x, written: bool):
    if written:
        return torch.div(x, 0, rounding_mode="floor", out=torch.zeros(0, dtype=torch.int32))
    return x // 0
#> f(torch.ones(2, dtype=torch.int32), False)
#> f(torch.ones(2, dtype=torch.int32), True)
#--- determinants_without_number
def f(x):
    return torch.linalg.slogdet(x)
#> f(torch.full([3, 3], float("nan")))
#--- overloads_in_order
def f(x, y):
    return torch.all(x, True), torch.any(x, False), torch.subtract(x, x, alpha=True), torch.all(x, y)
#> f(torch.ones(2, 3), torch.tensor(0))
#--- gradients_add_up_in_place
def f(x):
    w = x.detach().requires_grad_()
    (w * 2).sum().backward()
    first = w.grad
    seen = [w.grad]
    (w * 3).sum().backward()
    seen.append(w.grad)
    (w * w).sum().backward()
    return first, seen, w.grad
#> f(torch.tensor([1.0, 2.0]))
#--- gradients_add_up_with_graphs
def f(x, again: bool):
    w = x.detach().requires_grad_()
    (w * w).sum().backward(create_graph=True)
    first = w.grad
    if again:
        (w * w).sum().backward(create_graph=True)
    else:
        (w * 3).sum().backward()
    second = w.grad
    assert first is not None and second is not None
    return first.detach(), second.detach()
#> f(torch.tensor([1.0, 2.0]), True)
#> f(torch.tensor([1.0, 2.0]), False)
#--- flags_of_results
def f(x, wanted: bool):
    y = x.detach().requires_grad_() * 2
    y.requires_grad_(wanted)
    return y.detach()
#> f(torch.ones(2), True)
#> f(torch.ones(2), False)
#--- copies_of_single_products
def f(x):
    y = torch.chain_matmul([x])
    y.add_(1)
    return x, y
#> f(torch.zeros(2, 2))
#--- results_written_elsewhere
def f(n: int):
    x = torch.tensor([1.0, -2.0])
    to = torch.zeros(2, dtype=torch.float64)
    i = torch.tensor([0, 1])
    if n == 0:
        torch.isposinf(x, out=to)
    if n == 1:
        torch.isneginf(x, out=to)
    if n == 2:
        torch.signbit(x, out=to)
    if n == 3:
        torch.nan_to_num(x, out=to)
    if n == 4:
        torch.take(x, i, out=to)
    if n == 5:
        torch.index_select(x, 0, i, out=to)
    if n == 6:
        torch.bucketize(x, x, out=to)
    if n == 7:
        return torch.searchsorted(x, x, out_int32=True, out=i)
    if n == 8:
        torch.float_power(x, 2, out=x)
    if n == 9:
        torch.isin(x, 1, out=to)
    if n == 10:
        torch.masked_fill(x, x > 0, 1.0, out=to)
    if n == 11:
        torch.float_power(x, x, out=to)
    return to
#> f(0)
#> f(1)
#> f(2)
#> f(3)
#> f(4)
#> f(5)
#> f(6)
#> f(7)
#> f(8)
#> f(9)
#> f(10)
#> f(11)
#--- refusals_of_arguments
def f(n: int):
    x = torch.ones(2, 2)
    i = torch.ones(2, dtype=torch.int64)
    if n == 0:
        return torch.add(i, i, alpha=2j)
    if n == 1:
        return torch.ops.aten.replication_pad2d(torch.ones(1, 2, 2), [1])
    if n == 2:
        return torch.ops.aten.reflection_pad1d(torch.ones(1, 2, 2), [1])
    if n == 3:
        return i.tril_()
    return torch.cosine_similarity(x, x, 0, -1.5)
#> f(0)
#> f(1)
#> f(2)
#> f(3)
#> f(4)
#--- interpolate_of_old_archives
def f(x, size: Optional[int], factor: Optional[float], mode: str, corners: Optional[bool], again: Optional[bool]):
    return torch.ops.aten.__interpolate(x, size, factor, mode, corners, again)
#> f(torch.arange(16.0).view(1, 1, 4, 4), 6, None, "nearest", None, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), None, 1.6, "nearest", None, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), None, 1.6, "nearest", None, False)
#> f(torch.arange(16.0).view(1, 1, 4, 4), None, 1.6, "bilinear", None, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), None, 1.6, "bilinear", True, False)
#> f(torch.arange(16.0).view(1, 1, 4, 4), None, 1.6, "bilinear", False, False)
#> f(torch.arange(16.0).view(1, 1, 4, 4), None, 2.0, "bicubic", False, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), 3, None, "area", None, None)
#> f(torch.arange(16.0).view(1, 2, 8), None, 1.5, "linear", False, None)
#> f(torch.arange(16.0).view(1, 2, 8), 5, None, "nearest", None, None)
#> f(torch.arange(16.0).view(1, 2, 2, 2, 2), 3, None, "trilinear", True, None)
#> f(torch.arange(16.0).view(1, 2, 2, 2, 2), None, 1.5, "nearest", None, None)
#> f(torch.arange(16.0).view(1, 2, 2, 2, 2), 1, None, "area", None, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), 6, None, "nearest", True, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), 6, None, "linear", True, None)
#> f(torch.arange(16.0).view(1, 2, 8), 6, None, "bilinear", True, None)
#> f(torch.arange(16.0).view(2, 8), 6, None, "nearest", None, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), 6, None, "cubic", None, None)
#> f(torch.arange(16.0).view(1, 1, 4, 4), 6, 2.0, "bilinear", False, False)
#--- interpolate_of_old_archives_by_lists
def f(x):
    a = torch.ops.aten.__interpolate(x, [6, 3], None, "nearest", None, None)
    b = torch.ops.aten.__interpolate(x, None, [1.5, 2.25], "bilinear", False, False)
    c = torch.ops.aten.__interpolate(x, [6, 3], 2.0, "bilinear", True)
    d = torch.ops.aten.__interpolate(x, 5, [1.5, 2.25], "bilinear", True, False)
    return a, b, c, d
#> f(torch.arange(16.0).view(1, 1, 4, 4))
#--- upsample_of_old_archives
def f(x):
    a = torch.ops.aten.__upsample(x, 6, None, "bilinear", False), torch.ops.aten.__upsample(x, None, 2, "nearest", None), torch.ops.aten.__upsample(x, [3, 5], None, "bilinear", True)
    b = torch.ops.aten.__upsample_nearest(x, None, 2), torch.ops.aten.__upsample_nearest(x, [3, 5], None), torch.ops.aten.__upsample_nearest(x, 7)
    c = torch.ops.aten.__upsample_bilinear(x, None, 2), torch.ops.aten.__upsample_bilinear(x, [3, 5], None), torch.ops.aten.__upsample_bilinear(x, None, [2, 3]), torch.ops.aten.__upsample_bilinear(x, [5, 3], [2, 3])
    return a, b, c
#> f(torch.arange(16.0).view(1, 1, 4, 4))
#--- antialias_of_old_archives
def f(x):
    return torch.ops.aten.__interpolate(x, 2, None, "bilinear", False, None, True)
#> f(torch.arange(16.0).view(1, 1, 4, 4))
#--- written_before_kernels
def f(n: int):
    flags = torch.tensor([True, False])
    half = torch.ones(2, dtype=torch.float16)
    if n == 0:
        return flags.bitwise_xor_(half)
    if n == 1:
        return flags.__ilshift__(2j)
    if n == 2:
        return torch.bitwise_and(half, half, out=flags)
    return half.bitwise_or_(half)
#> f(0)
#> f(1)
#> f(2)
#> f(3)
