#--- out_keeps_its_storage
def f(x: Tensor):
    base = torch.arange(6.)
    out = base[:0]
    y = torch.exp(x, out=out)
    return base, out, y
#> f(torch.tensor([0., 1.]))
#--- out_of_a_reduction_keeps_its_storage
def f(x: Tensor):
    base = torch.full([4], -1.)
    out = base[1:3]
    y = torch.cumsum(x, 0, out=base[1:1])
    z = torch.amax(x, [1], out=base[3:3])
    return base, out, y, z
#> f(torch.tensor([[0., 1.]]))
#--- out_found
def f(x: Tensor, out: Tensor):
    return torch.floor(x, out=out)
#> f(torch.ones(2), torch.ones(2, dtype=torch.float64))
#--- out_exact
def f(x: Tensor, out: Tensor):
    return torch.mm(x, x, out=out)
#> f(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64))
#--- out_of_indices
def f(x: Tensor, out: Tensor):
    return torch.argmax(x, out=out)
#> f(torch.ones(2, 2), torch.ones(2, dtype=torch.int32))
#--- out_of_truth
def f(x: Tensor, out: Tensor):
    return torch.all(x, out=out)
#> f(torch.ones(2, 2), torch.ones(2, dtype=torch.int32))
#> f(torch.ones(2, 2), torch.ones(1, dtype=torch.uint8))
#--- out_like_the_input
def f(x: Tensor, out: Tensor):
    return torch.amin(x, out=out)
#> f(torch.ones(2, 2), torch.ones(2, dtype=torch.float64))
#--- out_cast
def f(x: Tensor, out: Tensor):
    return torch.add(x, x, out=out)
#> f(torch.ones(2), torch.ones(2, dtype=torch.float64))
#> f(torch.ones(2), torch.ones(2, dtype=torch.int64))
#--- half_number_on_the_left
def f(x: Tensor):
    return 8.396 - x, x - 8.396
#> f(torch.tensor([-7.9375, 0.1], dtype=torch.bfloat16))
#--- half_steps
def f(x: Tensor):
    return torch.logit(x), torch.ops.aten.special_ndtr(x * 4. - 3.), torch.nn.functional.huber_loss(x * 20., x, "none", 2.)
#> f(torch.tensor([0.523, 0.1, 0.9], dtype=torch.bfloat16))
#> f(torch.tensor([0.523, 0.1, 0.9], dtype=torch.float16))
#--- half_products_with_factors
def f(x: Tensor, y: Tensor):
    return torch.addbmm(x, y, y, beta=0.6, alpha=0.2), torch.addr(x, y[0, 0], y[0, 1], beta=0.6, alpha=0.2)
#> f(torch.tensor([[0.3, 1.7], [2.9, -0.7]], dtype=torch.bfloat16), torch.tensor([[[0.3, 1.7], [2.9, -0.7]], [[1.1, 2.3], [-1.9, 0.4]]], dtype=torch.bfloat16))
#--- half_sums_by_index
def f(x: Tensor, i: Tensor, v: Tensor):
    return torch.index_put(x, [i], v, accumulate=True)
#> f(torch.zeros(2, dtype=torch.bfloat16), torch.tensor([0, 0, 0, 1]), torch.tensor([256., 1., 1., 1.], dtype=torch.bfloat16))
#--- half_statistics
def f(x: Tensor):
    return torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-3)
#> f(torch.tensor([[0.3, 1.71], [2.93, -0.7], [0.11, 0.43]], dtype=torch.bfloat16))
#--- half_weights_of_interpolation
def f(x: Tensor):
    return torch.ops.aten.upsample_linear1d(x, [7], False)
#> f(torch.tensor([[[0.3, 1.71, -2.3]]], dtype=torch.bfloat16))
#--- refusals_of_meanings
def f(x: Tensor):
    return torch.diff(x, -1)
#> f(torch.ones(3))
#--- refused_dims
def f(x: Tensor):
    return torch.gradient(x, spacing=0.1, dim=[1, -1])
#> f(torch.ones(3, 3))
#--- refused_transform
def f(x: Tensor):
    return torch.fft.fftn(x, dim=[0])
#> f(torch.tensor(1.))
#--- refused_fill
def f(x: Tensor, m: Tensor, v: Tensor):
    return torch.masked_fill(x, m, v)
#> f(torch.ones(2, dtype=torch.uint8), torch.tensor(True), torch.tensor(300))
#--- refused_ends
def f(x: Tensor):
    return torch.linspace(x, x, 3)
#> f(torch.ones(2))
#--- refused_parts
def f(x: Tensor):
    return torch.adaptive_avg_pool1d(x, [-1])
#> f(torch.ones(1, 1, 3))
#--- refused_dilation
def f(x: Tensor, w: Tensor):
    return torch.conv1d(x, w, None, 1, 0, -1)
#> f(torch.ones(1, 1, 3), torch.ones(1, 1, 1))
#--- refused_empty_groups
def f(x: Tensor):
    return torch.group_norm(x, 1)
#> f(torch.ones(1, 0, 2))
