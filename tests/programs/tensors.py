#--- indexing
def f(x):
    return x[0], x[-1, 1], x[:, 1], x[1:, :2], x[..., 0], x[None, 0], x[0, None], x[::2], x[:, -1:], x[..., None].size(), x[0, ...]
#> f(torch.arange(12.).reshape(3, 4))
#--- advanced
def f(x, i, m):
    return x[i], x[:, i], x[m], x[i, i], x[[0, 2]], x[0, [1, 2]], x[i, 1], x[:, None, i], x[m] + 1
#> f(torch.arange(9.).reshape(3, 3), torch.tensor([0, 2]), torch.tensor([[True, False, True], [False, True, False], [True, True, True]]))
#--- optional_index
def f(x, i: Optional[Tensor]):
    return x[i]
#> f(torch.arange(3.), torch.tensor([0, 2]))
#--- stores
def f(x, y):
    x[0] = 5
    x[1, 1:] = y
    x[2] += 1
    x[:, 0] *= 3
    x[x > 10] = -1
    x[..., -1] = 0.5
    x[torch.tensor([0, 1]), torch.tensor([1, 2])] = 7
    return x
#> f(torch.arange(9.).reshape(3, 3), torch.zeros(2))
#--- store_bool_int
def f(x):
    x[0] = True
    x[1] = 2
    x[2] = 2.7
    return x
#> f(torch.zeros(3))
#> f(torch.zeros(3, dtype=torch.int64))
#--- arithmetic_left_numbers
def f(x):
    return 1 + x, 2 - x, 3 * x, 4 / x, 2 ** x, 1 == x, 1 < x, 1 <= x, 1 > x, 1 >= x, 1 != x, 1.5 + x, 2.5 - x
#> f(torch.tensor([1.0, 2.0]))
#> f(torch.tensor([1, 2]))
#--- floor_division
def f(x, y):
    return x // 2, x // y, x % 2, x // 0.5
#> f(torch.tensor([5.0, -5.0]), torch.tensor([2.0, 2.0]))
#> f(torch.tensor([5, -5]), torch.tensor([2, 2]))
#--- augmented
def f(x):
    y = x
    x += 1
    x *= 2
    x -= 0.5
    x /= 4
    z = x
    z = z + 1
    return x, y, z
#> f(torch.ones(2))
#--- augmented_rebinds_power
def f(x):
    y = x
    x **= 2
    return x, y
#> f(torch.tensor([3.0]))
#--- properties
def f(x):
    return x.shape, x.ndim, x.dim(), x.size(), x.size(0), x.numel(), x.dtype, x.device, x.requires_grad, x.is_cuda, x.layout, x.T, x.mT, x.nbytes, x.itemsize, x.is_leaf, x.is_sparse
#> f(torch.ones(2, 3))
#--- loops
def f(x):
    total = 0.0
    for row in x:
        for v in row:
            total += float(v)
    return total, len(x), [r.sum() for r in x]
#> f(torch.arange(4.).reshape(2, 2))
#--- implicit
def f(x, n: int):
    a = torch.zeros(2, n)
    b = torch.full([int(x)], 1.5)
    c: float = float(x) + 1
    d = x.item()
    return a, b, c, d
#> f(torch.tensor(3), 2)
#--- conditions
def f(x, y):
    if x > 0:
        return 1
    if bool((x == y).all()) and not y:
        return 2
    return 3
#> f(torch.tensor(1.0), torch.tensor(0.0))
#> f(torch.tensor(0.0), torch.tensor(0.0))
#> f(torch.tensor(-1.0), torch.tensor(0.0))
#> f(torch.ones(2), torch.ones(2))
#--- tolist
def f(x):
    a: List[List[int]] = x.tolist()
    b = torch.jit.annotate(List[int], x[0].tolist())
    c: int = x[0, 0].tolist()
    return a, b, c
#> f(torch.arange(4).reshape(2, 2))
#> f(torch.ones(2, 2))
#--- out_and_kwargs
def f(x):
    a = torch.sum(x, dim=0)
    b = torch.sum(x, [0, 1], keepdim=True)
    c = x.sum(1)
    d, i = torch.max(x, 1)
    e = torch.max(x)
    g = x.max(dim=0)
    return a, b, c, d, i, e, g.values, g.indices
#> f(torch.tensor([[1.0, 4.0], [3.0, 2.0]]))
#--- creation
def f():
    a = torch.tensor([1, 2])
    b = torch.tensor([[1.0], [2.0]])
    c = torch.tensor(3, dtype=torch.float64)
    d = torch.zeros([2, 2], dtype=torch.int32)
    e = torch.arange(5)
    g = torch.arange(1, 2, 0.5)
    h = torch.ones(2, 3)
    i = torch.eye(2)
    j = torch.tensor([True, False])
    k = torch.linspace(0, 1, 3)
    return a, b, c, d, e, g, h, i, j, k
#> f()
#--- view_alias
def f(x):
    y = x.view(-1)
    y[0] = 9
    z = x[1]
    z.add_(1)
    return x, y
#> f(torch.zeros(2, 2))
#--- casts
def f(x):
    return x.int(), x.long(), x.float(), x.double(), x.half(), x.byte(), x.to(torch.int64), x.type_as(torch.ones(1, dtype=torch.int32)), x.to(torch.float64).dtype
#> f(torch.tensor([1.5, 2.0]))
#--- cat_stack_split
def f(x):
    a = torch.cat([x, x], 1)
    b = torch.stack([x, x + 1])
    c, d = torch.split(x, 1)
    e = torch.chunk(x, 2, dim=1)
    g = x.unbind(0)
    return a, b, c, d, e[0], g[1], len(e)
#> f(torch.arange(4.).reshape(2, 2))
#--- unknown_method
def f(x):
    return x.nothing()
#--- unknown_function
def f(x):
    return torch.nothing(x)
#--- wrong_types
def f(x, s: str):
    return x + s
#--- wrong_index
def f(x, s: str):
    return x[s]
#--- two_ellipses
def f(x):
    return x[..., 0, ...]
#--- unpack_tensor
def f(x):
    a, b = x
    return a
#--- unpack_shape
def f(x):
    a, b = x.shape
    c, *d = x.size(0), x.size(1)
    return a * b, d
#> f(torch.ones(2, 3))
#> f(torch.ones(2, 3, 1))
#--- shape_mismatch
def f(x, y):
    z = x + y
    return z
#> f(torch.ones(2), torch.ones(3))
#--- matmul
def f(x, y):
    return x @ y, torch.mm(x, y), x.matmul(y), x.t() @ y
#> f(torch.arange(4.).reshape(2, 2), torch.ones(2, 2))
#--- functional
def f(x):
    a = torch.nn.functional.relu(x)
    b = F.softmax(x, dim=1)
    c = F.leaky_relu(x, 0.1)
    d = F.mse_loss(x, a)
    e = F.cross_entropy(x, torch.tensor([0, 1]))
    g = F.elu(x)
    h = F.hardtanh(x, -0.5, 0.5)
    i = F.dropout(x, 0.5, False)
    j = F.normalize(x)
    k = F.smooth_l1_loss(x, a, reduction="sum")
    return a, b, c, d, e, g, h, i, j, k
#> f(torch.tensor([[1.0, -2.0], [-0.25, 3.0]]))
#--- dtype_values
def f(x):
    d = x.dtype
    y = torch.zeros([1], dtype=d)
    return y.dtype == torch.float32, d == torch.int64, y
#> f(torch.ones(1))
#> f(torch.ones(1, dtype=torch.int64))
#--- quantized_parts
def f(x):
    q = torch.quantize_per_tensor(x, 0.5, 3, torch.quint8)
    a, b = torch.chunk(q, 2, 1)
    c, d = q.split(1)
    return a.dequantize(), b.int_repr(), c.dequantize(), d.q_scale(), torch.unbind(q)[1].dequantize()
#> f(torch.arange(8.).reshape(2, 4))
#--- neutral_elements
def neutral_elements(a: Tensor):
    m = a > 0
    y = (a > 1) * 1
    z = 0 + (a > 2)
    w = (a < 0) - 0
    kept = m * 1, m
    written = (a > 0) * 1
    written += 1
    of_float = (a > 0) * 1.0, (a > 0) / 1, (a > 0) + 0.0
    s = ((a > 0) * 1).sum(), torch.stack([(a > 0) * 1, a > 1])
    return y.dtype, z.dtype, w, y + y, kept, written, of_float, s, a * 1

#> neutral_elements(torch.tensor([1.5, -1.0, -0.0, 3.0]))
#> neutral_elements(torch.tensor([1, -1, 0, 3]))
#--- difference_of_bools
def difference_of_bools(a: Tensor):
    return ((a > 0) * 1) - 1

#> difference_of_bools(torch.tensor([1, -1]))
#--- negative_zero
def negative_zero(a: Tensor):
    return torch.signbit(a.neg() + 0), torch.signbit(a.neg() - 0)

#> negative_zero(torch.tensor([0.0, 1.0]))
#--- dead_writes
def dead_writes(a: Tensor, b: Tensor):
    t = a.clone().add_(b)
    u = torch.zeros(2)
    u[5] = 3
    xs: List[int] = []
    xs.append([1, 2][7])
    return a

#> dead_writes(torch.ones(2), torch.ones(3))
#--- dtypes_of_what_raises
def dtypes_of_what_raises(a: Tensor, which: int):
    if which == 0:
        return (a | 1).dtype
    if which == 1:
        return torch.gcd(a, a).dtype
    return (a << 1).dtype

#> dtypes_of_what_raises(torch.ones(2), 0)
#> dtypes_of_what_raises(torch.ones(2), 1)
#> dtypes_of_what_raises(torch.tensor([1, 2]), 2)
#--- written_from_itself
def written_from_itself(x: Tensor, i: Tensor):
    x[i] = x[0]
    return x

#> written_from_itself(torch.arange(6.0).reshape(2, 3), torch.tensor([0, 1]))
#--- written_at_itself
def written_at_itself(x: Tensor):
    x[x] = 5
    return x

#> written_at_itself(torch.arange(4))
#--- masked_from_itself
def masked_from_itself(x: Tensor):
    x[x > 2] = x[0, 0]
    x[x < 2] = x[1:2, 1]
    return x

#> masked_from_itself(torch.arange(6.0).reshape(2, 3))
#--- copied_into_expanded
def copied_into_expanded(x: Tensor):
    y = x.expand(2, 3)
    y.copy_(torch.ones(2, 3))
    return x

#> copied_into_expanded(torch.zeros(1, 3))
#--- filled_where_expanded
def filled_where_expanded(x: Tensor, mask: Tensor, i: Tensor):
    a = x.clone()
    a.expand(2, 3).masked_fill_(mask, 7.0)
    b = x.clone()
    b.expand(2, 3)[mask] = 8.0
    c = x.clone()
    c.expand(2, 3).index_fill_(1, i, 9.0)
    d = x.clone()
    d.expand(2, 3)[i[:1]] = 10.0
    return a, b, c, d

#> filled_where_expanded(torch.zeros(1, 3), torch.tensor([[True, False, False], [False, True, False]]), torch.tensor([1, 2]))
#--- added_where_expanded
def added_where_expanded(x: Tensor):
    x.expand(2, 3).scatter_add_(0, torch.zeros(1, 3, dtype=torch.long), torch.ones(1, 3))
    return x

#> added_where_expanded(torch.zeros(1, 3))
#--- filled_with_an_element
def filled_with_an_element(x: Tensor):
    x.masked_fill_(x > 2, x[1])
    x.index_fill_(0, torch.tensor([0]), x[2])
    return x

#> filled_with_an_element(torch.arange(5.0))
#--- true_where_expanded
def true_where_expanded(x: Tensor, mask: Tensor):
    x.expand(2, 3).masked_fill_(mask, True)
    return x

#> true_where_expanded(torch.zeros(1, 3, dtype=torch.bool), torch.tensor([[True, False, False], [False, True, False]]))
#--- step_in_place
def step_in_place(p: Tensor, g: Tensor, m: Tensor, lr: float):
    m.mul_(0.9).add_(g)
    p.add_(m, alpha=-lr)
    return p.clone(), m.clone()

#> step_in_place(torch.ones(3, 2), torch.arange(6.0).view(3, 2), torch.full((3, 2), 2.0), 0.5)
#> step_in_place(torch.ones(3, 2).t(), torch.arange(6.0).view(2, 3), torch.full((2, 3), 2.0), 0.5)
#> step_in_place(torch.ones(3, 2), torch.arange(2.0), torch.full((3, 2), 2.0), 0.5)
#> step_in_place(torch.ones(3, 2, dtype=torch.float64), torch.arange(6.0).view(3, 2), torch.full((3, 2), 2.0, dtype=torch.float16), 0.5)
#> step_in_place(torch.ones(2, 2), torch.ones(3, 2, 2), torch.ones(2, 2), 0.5)
#> step_in_place(torch.tensor(2.0), torch.tensor(1.0), torch.tensor(3.0), 0.5)
#> step_in_place(torch.ones(0, 2), torch.ones(0, 2), torch.ones(0, 2), 0.5)
#--- step_over_shared_memory
def step_over_shared_memory(x: Tensor):
    p = x[:2]
    m = x[1:]
    m.mul_(0.5).add_(p.clone())
    p.add_(m, alpha=-2.0)
    return x

def twice(x: Tensor):
    x.mul_(2).add_(x)
    x.copy_(x + 1)
    x.sub_(x.t())
    return x.clone()

def both(a: Tensor, b: Tensor):
    a.mul_(2).add_(b)
    b.add_(a).neg_()
    return a, b

#> step_over_shared_memory(torch.arange(3.0))
#> twice(torch.arange(4.0).view(2, 2))
#> both(torch.arange(3.0), torch.ones(3))
#--- accumulated_in_place
def accumulated_in_place(x: Tensor, total: Tensor, count: Tensor):
    total.add_(x.abs()).clamp_(max=5.0)
    count.add_(1)
    mean = total / count
    count.copy_(count * 2)
    return mean, total.clone(), count.clone()

#> accumulated_in_place(torch.tensor([1.0, -7.0]), torch.zeros(2), torch.tensor([1, 2]))
#> accumulated_in_place(torch.tensor([1.0, -7.0]), torch.zeros(2), torch.tensor([1.5, 2.5]))
#--- reductions_of_repeated_rows
def f(x: Tensor, n: int):
    # More elements than are copied: each row is computed once.
    y = x.view(1, 4).expand(n, 4)
    ends = [0, -1]
    return (y.sum(1)[ends], y.mean(1)[ends], y.prod(1)[ends], y.var(1)[ends], y.std(1)[ends], y.norm(2.0, [1])[ends],
            y.logsumexp(1)[ends], y.amax(1)[ends], y.argmax(1)[ends], y.min(1)[1][ends], y.any(1)[ends], y.median(1)[0][ends],
            y.kthvalue(3, 1)[1][ends], y.mode(1)[0][ends], y.count_nonzero(1)[ends], y.nansum(1)[ends], y.sum(1, True).size(),
            y.t().var(0).size(), y.quantile(0.3, 1)[ends], y.argmin(1, True).size(), (y > 1).all(1)[ends])
#> f(torch.tensor([1.5, -2.0, 0.5, 3.0], dtype=torch.float64), 4194305)
#> f(torch.tensor([1.5, -2.0, 0.0, 3.0]), 4194305)
#--- reductions_of_repeated_elements
def f(x: Tensor, n: int):
    y = x.view(4, 1).expand(4, n)
    z = x.view(2, 1, 2).expand(2, n, 2)
    return (y.sum(1), y.mean(1), y.prod(1), y.var(1), y.std(unbiased=False), y.norm(1.0, [1]), y.norm(2.0, [0, 1]), y.norm(0.0, [1]),
            torch.linalg.vector_norm(y, 3.0), y.logsumexp(1), y.logsumexp([0, 1]), y.amax(1), y.max(), z.argmax(), z.argmin(), y.any(), y.all(1),
            z.median(), y.nanmedian(), y.count_nonzero(), z.nansum([0, 1]), torch.var_mean(z, [1], correction=2), z.prod(1)[0])
#> f(torch.tensor([1.5, -2.0, 0.5, 3.0], dtype=torch.float64), 4194305)
#> f(torch.tensor([1.5, 0.0, 0.5, float("nan")], dtype=torch.float64), 4194305)
#--- products_of_repeated_integers
def f(x: Tensor, n: int):
    y = x.view(4, 1).expand(4, n)
    return y.prod(1), y.prod(), y.sum(1), y.expand(3, 4, n).argmax(), y.any(1), y.min()
#> f(torch.tensor([3, -7, 1, 0]), 4194305)
#> f(torch.tensor([3, -7, 1, 5]).to(torch.int8), 4194305)
#--- strides_of_joined_images
def f(x: Tensor):
    y = x.contiguous(memory_format=torch.channels_last)
    a = [torch.stack([y, y], d).stride() for d in range(5)]
    z = x.transpose(1, 2)
    b = [torch.stack([z, x.transpose(1, 2)], d).stride() for d in range(5)]
    return a, b, torch.stack([y], -1).stride(), torch.stack([y, x], 0).stride()
#> f(torch.ones(2, 3, 4, 4))
#--- strides_of_rolled_images
def f(x: Tensor):
    y = x.contiguous(memory_format=torch.channels_last)
    t = x[0, 0].t()
    return y.roll(1, 1).stride(), y.roll(1).stride(), y.roll([1, 2], [0, 2]).stride(), t.roll(1, 0).stride(), y.roll(1, 1).sum([0, 2, 3]), x[:0].transpose(0, 1).roll(1, 0).stride()
#> f(torch.arange(96.).view(2, 3, 4, 4))
#--- strides_of_draws_with_a_number
def f(x: Tensor):
    y = x.contiguous(memory_format=torch.channels_last)
    return x.transpose(1, 3).bernoulli(0.5).stride(), y.bernoulli(0.3).stride(), torch.bernoulli(y).stride()
#> f(torch.ones(2, 3, 4, 4))
#--- strides_of_expanded_fronts
def f(x: Tensor):
    return x.expand(1, 3).stride(), x.expand(1, 1, 3).stride(), x.expand(2, 1, 3).stride(), x.sum().expand(1).stride(), x.view(3, 1).expand(1, 3, 4).stride(), x.expand(0, 1, 3).stride()
#> f(torch.ones(3))
#--- one_dimension_flattened_is_itself
def f(x: Tensor):
    y = x.flatten()
    y.unsqueeze_(0)
    z = torch.broadcast_tensors([x])[0]
    return x, y, z is x, x.flatten(1, 1) is x, x.flatten() is x
#> f(torch.arange(6.))
#--- copies_are_other_objects
def f(x: Tensor):
    y = x.clone()
    z = x.view(6)
    w = x.expand(6)
    return y is x, z is x, w is x, x is not y, x[:] is x, x.reshape(-1) is x
#> f(torch.arange(6.))
#--- devices_by_text
def f(s: str):
    return torch.device(s)
#> f('')
#> f('cuda:01')
#> f('cuda:+1')
#> f('cuda:99999999999')
#> f('cuda:255')
#> f('cuda:127')
#> f('cuda:300')
#> f('cuda:')
#--- device_by_name_of_argument
def f(s: str):
    return torch.device(type=s), torch.device(type='cpu:1')
#> f('cpu')
#--- norms_of_unknown_order
def f(x: Tensor, o: float, d: List[int]):
    return torch.linalg.matrix_norm(x, o, d)
#> f(torch.ones(2, 2), 3., [0])
#> f(torch.ones(2), 2.5, [0, 1])
#> f(torch.ones(2, 2), 1., [0])
#> f(torch.ones(2), 1., [0, 1])
#> f(torch.ones(2, 2), -2., [0, 0])
#--- base_of_several_views_is_written
def f(x: Tensor, n: int):
    a = x.requires_grad_() * 1
    if n == 0:
        parts = a.split(1, 1)
        a.mul_(2)
        return parts[1] * 1
    if n == 1:
        rows = a.unbind(0)
        a.mul_(2)
        return rows[0].sum()
    if n == 2:
        b, c = a.chunk(2, 0)
        b.mul_(2)
        return c * 1
    r = a[0]
    a.mul_(2)
    return r * 1
#> f(torch.ones(2, 3), 0)
#> f(torch.ones(2, 3), 1)
#> f(torch.ones(2, 3), 2)
#> f(torch.ones(2, 3), 3)
