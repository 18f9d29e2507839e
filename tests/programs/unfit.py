#--- where_number
def f(x: Tensor):
    return torch.where(x > 0, x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- where_of_numbers
def f(x: Tensor):
    return torch.where(x > 0, 1e300, 1.0)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- clamp
def f(x: Tensor):
    return torch.clamp(x, -1e300, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- clamp_min
def f(x: Tensor):
    return torch.clamp_min(x, -1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- clamp_inplace
def f(x: Tensor):
    return x.clone().clamp_(0.5, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- power
def f(x: Tensor):
    return torch.pow(x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- power_of_int
def f(x: Tensor):
    return torch.pow(x, 300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- add_alpha
def f(x: Tensor):
    return torch.add(x, x, alpha=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- sub_alpha
def f(x: Tensor):
    return torch.sub(x, x, alpha=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- rsub_alpha
def f(x: Tensor):
    return torch.rsub(x, x, alpha=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- lerp
def f(x: Tensor):
    return torch.lerp(x, x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- addcmul
def f(x: Tensor):
    return torch.addcmul(x, x, x, value=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- addcdiv
def f(x: Tensor):
    return torch.addcdiv(x, x, x, value=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- hardtanh
def f(x: Tensor):
    return torch.ops.aten.hardtanh(x, -1e300, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- threshold
def f(x: Tensor):
    return torch.threshold(x, 1e300, 1.0)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- threshold_value
def f(x: Tensor):
    return torch.threshold(x, 0.5, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- leaky_relu
def f(x: Tensor):
    return torch.ops.aten.leaky_relu(x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#--- elu
def f(x: Tensor):
    return torch.ops.aten.elu(x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#--- celu
def f(x: Tensor):
    return torch.celu(x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#--- softplus
def f(x: Tensor):
    return torch.nn.functional.softplus(x, 1.0, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#--- hardshrink
def f(x: Tensor):
    return torch.hardshrink(x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#--- softshrink
def f(x: Tensor):
    return torch.nn.functional.softshrink(x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#--- addmm
def f(x: Tensor):
    return torch.addmm(x[:2].view(1, 2), x[:2].view(1, 2), torch.ones(2, 2, dtype=x.dtype), beta=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- addmv
def f(x: Tensor):
    return torch.addmv(x[:2], torch.ones(2, 2, dtype=x.dtype), x[:2], alpha=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- addr
def f(x: Tensor):
    return torch.addr(torch.ones(3, 3, dtype=x.dtype), x, x, beta=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- baddbmm
def f(x: Tensor):
    return torch.baddbmm(x[:1].view(1, 1, 1), x[:1].view(1, 1, 1), x[:1].view(1, 1, 1), beta=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- index_add
def f(x: Tensor):
    return torch.index_add(x, 0, torch.tensor([0]), x[:1], alpha=1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- scatter
def f(x: Tensor):
    return x.scatter(0, torch.tensor([0]), 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- norm
def f(x: Tensor):
    return torch.norm(x, 1e300), torch.norm(x, 300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#--- product
def f(x: Tensor):
    return x * 1e300, x / 1e300, x > 1e300, torch.remainder(x, 1e300)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- grouped
def f(x: Tensor):
    return torch.where(x > 0, x * 2 + 1, 1e300).relu()
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- divided
def f(x: Tensor):
    return x // 5000000000
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
#--- small
def f(x: Tensor):
    return torch.where(x > 0, x, 1e30), torch.clamp(x, -65504.0, 65504.0), torch.add(x, x, alpha=2)
#> f(torch.tensor([1, 0, 3]).to(torch.float32))
#> f(torch.tensor([1, 0, 3]).to(torch.float16))
#> f(torch.tensor([1, 0, 3]).to(torch.int64))
#> f(torch.tensor([1, 0, 3]).to(torch.uint8))
