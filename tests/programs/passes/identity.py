#--- neg_neg
def f(x):
    y = torch.neg(torch.neg(x))
    x.add_(1)
    return x, y
#> f(torch.tensor([1.0, -2.0]))
#--- transposed_twice
def f(x):
    y = torch.t(torch.t(x))
    y.mul_(2)
    return x, y
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- plus_zero_is_new
def g(x):
    return x + 0
def f(x):
    y = g(x)
    y.add_(1)
    return x, y
#> f(torch.tensor([1.0, 2.0]))
#> f(torch.tensor([1, 2]))
#--- times_one_is_new
def f(x):
    a, b, c = x * 1, x / 1, x - 0
    a.add_(1)
    b.add_(2)
    c.add_(3)
    return x, a, b, c
#> f(torch.tensor([1.0, 2.0]))
#--- equal_results_are_two
def f(x):
    a = torch.relu(x)
    b = torch.relu(x)
    a.add_(1)
    return a, b
#> f(torch.tensor([1.0, -2.0]))
#--- equal_lists_are_two
def f(n: int):
    a = [n, 1]
    b = [n, 1]
    a.append(2)
    return a, b
#> f(5)
#--- list_of_constants_is_new_each_time
def g():
    return [1, 2]
def f(n: int):
    a = g()
    b = g()
    for i in range(n):
        a.append(i)
    return a, b, g()
#> f(2)
#--- constant_list_in_loop
def f(n: int):
    out: List[List[int]] = []
    for i in range(n):
        a = [0, 1]
        a.append(i)
        out.append(a)
    return out
#> f(3)
#> f(10)
#--- given_away_twice
def f(x, out: List[Tensor]):
    out.append(torch.neg(x))
    out.append(torch.neg(x))
    out[0].add_(1)
    return out
#> f(torch.tensor([1.0]), [])
#--- view_kept_in_a_list
def f(x):
    a = torch.abs(x)
    l = [a.t()]
    b = a + 1
    l[0].mul_(10)
    c = a + 1
    return a, b, c
#> f(torch.tensor([[1.0, -2.0], [3.0, 4.0]]))
#--- carried_by_a_loop
def f(x, n: int):
    a = torch.neg(x)
    b = a
    for i in range(n):
        c = a * 2
        b.add_(1)
        d = a * 2
        b = d - c
    return a, b
#> f(torch.tensor([1.0, 2.0]), 3)
#> f(torch.tensor([1.0, 2.0]), 20)
#--- chosen_by_a_branch
def f(x, p: bool):
    a = torch.neg(x)
    b = torch.abs(x)
    c = a if p else b
    s = a + b
    c.add_(1)
    t = a + b
    return s, t
#> f(torch.tensor([1.0, -2.0]), True)
#> f(torch.tensor([1.0, -2.0]), False)
#--- in_place_after_a_branch
def f(x, p: bool):
    if p:
        y = torch.neg(x)
    else:
        y = torch.abs(x)
    y.add_(1)
    return y, x
#> f(torch.tensor([1.0, -2.0]), True)
#> f(torch.tensor([1.0, -2.0]), False)
#--- dead_writes_are_dead
def f(x):
    y = torch.neg(x)
    z = y.t()
    z.add_(1)
    w = torch.abs(x)
    w.add_(1)
    return y
#> f(torch.tensor([[1.0, 2.0]]))
#--- running_statistics
def f(x, mean, var):
    before = mean + 1
    y = torch.batch_norm(x, None, None, mean, var, True, 0.5, 1e-05, False)
    after = mean + 1
    return before, y, after
#> f(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.zeros(2), torch.ones(2))
#--- at_least_one_dimension
def f(x):
    y = torch.atleast_1d(x)
    a = x + 1
    y.add_(5)
    b = x + 1
    return a, b, y
#> f(torch.tensor([1.0, 2.0]))
#--- dict_default
def f(x, d: Dict[str, Tensor]):
    y = torch.neg(x)
    a = y + 1
    d.get("k", y).add_(1)
    b = y + 1
    return a, b
#> f(torch.tensor([1.0]), {})
#--- loops_unrolled
def f(n: int, x):
    s = 0
    for i in range(n):
        for j in range(3):
            s += i * j
            x.add_(j)
    return s, x
#> f(0, torch.zeros(1))
#> f(1, torch.zeros(1))
#> f(7, torch.zeros(1))
#> f(8, torch.zeros(1))
#> f(19, torch.zeros(1))
#--- tuples_through_loops
def f(n: int):
    p = (1, 2)
    for i in range(n):
        p = (p[1], p[0] + p[1])
    q = p if n > 3 else (0, p[0])
    return q, p
#> f(2)
#> f(9)
#--- exceptions_stay
def f(n: int):
    a = [1, 2]
    return a[n]
#> f(1)
#> f(4)
#--- type_as_gives_its_input
def f(x, y):
    a = x.type_as(y)
    a.zero_()
    b = y.type_as(y)
    b.mul_(2)
    return x, y, a, b
#> f(torch.tensor([1.0, 2.0]), torch.tensor([3.0]))
#> f(torch.tensor([1, 2]), torch.tensor([3.0]))
#--- conversions_that_are_none
def f(x):
    a = x.to(x.dtype)
    b = x.float()
    c = x.to(torch.float32, copy=True)
    d = x.cpu()
    e = x.to("cpu")
    g = x.to(x)
    a.add_(1)
    b.add_(10)
    c.add_(100)
    d.add_(1000)
    e.add_(10000)
    g.mul_(2)
    return x, a, b, c, d, e, g
#> f(torch.tensor([1.0, 2.0]))
#> f(torch.tensor([1, 2]))
#--- there_and_back_is_new
def f(x):
    y = x.double().float()
    y.add_(1)
    return x, y
#> f(torch.tensor([1.0, 2.0]))
#--- dropout_that_keeps_all
def g(x, train: bool):
    return torch.nn.functional.dropout(x, 0.5, train)
def f(x):
    a = g(x, False)
    a.add_(1)
    b = torch.dropout(x, 0.0, True)
    b.add_(10)
    return x, a, b
#> f(torch.tensor([1.0, 2.0]))
#--- views_of_the_same_shape
def f(x):
    a = x.view(x.shape)
    a.add_(1)
    b = x.view(2, 2)
    b.mul_(2)
    c = x.reshape(2, 2)
    c.add_(3)
    d = x.expand(2, 2)
    d.mul_(2)
    e = x.expand_as(x)
    e.add_(5)
    g = x[:]
    g.mul_(2)
    h = x[0:2, :]
    h.add_(7)
    return x, a, b, c, d, e, g, h
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t())
#--- seen_through_a_view
def f(x):
    a = x.narrow(0, 0, 1)
    b = x.select(0, 0)
    c = x.t()[0]
    d = torch.as_strided(x, [2, 2], [1, 2])
    rows = x.unbind(0)
    halves = x.chunk(2)
    before = a + 0, b + 0, c + 0, d + 0, rows[0] + 0, halves[0] + 0
    x.mul_(10)
    return before, a, b, c, d, rows, halves
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- written_through_a_part
def f(x):
    a = torch.neg(x)
    halves = a.chunk(2)
    rows = a.unbind(0)
    b = a + 1
    halves[1].zero_()
    rows[0].add_(5)
    return a, b, a + 1
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- a_sum_of_nothing_is_a_view
def f(x):
    y = torch.einsum("ij->ji", [x])
    a = x + 1
    y.add_(1)
    return x, y, a, x + 1
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- a_sum_to_the_same_size_is_a_view
def f(x):
    y = x.sum_to_size([2, 2])
    a = x + 1
    y.add_(1)
    return x, y, a, x + 1
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- clones_and_contiguous
def f(x):
    a = x.clone()
    a.add_(1)
    b = x.contiguous()
    b.add_(10)
    c = x.t().contiguous()
    c.add_(100)
    d = x.contiguous().contiguous()
    d.mul_(2)
    return x, a, b, c, d, b.stride(), c.stride()
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- joined_ones_are_new
def g(x):
    return torch.cat([x]), torch.cat([x], 1), torch.stack([x])[0], x.unsqueeze(0).squeeze(0)
def f(x):
    a, b, c, d = g(x)
    a.add_(1)
    b.add_(10)
    c.add_(100)
    d.add_(1000)
    return x, a, b, c, d
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- joined_ones_are_contiguous
def g(x):
    return torch.cat([torch.round(torch.round(x))], 1)
def f(x):
    y = x.t()
    a = torch.round(y)
    return a.stride(), g(y).stride(), torch.cat([y]).stride(), torch.stack([y])[0].stride(), torch.stack(y.unbind(0)).stride()
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- the_least_of_one_is_made_anew
def g(x):
    y = x.sum(0, keepdim=True).expand(2, 2)
    return torch.minimum(y, y)
def f(x):
    y = g(x)
    s = y.stride()
    y[0].add_(1)
    return y, s
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- branches_that_differ_in_strides_only
def g(x, p: bool):
    y = x.t() + 0
    if p:
        z = y
    else:
        z = torch.cat([y], 1)
    return z
def f(x, p: bool):
    z = g(x, p)
    return z, z.stride()
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), True)
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), False)
#--- branches_of_which_one_copies
def g(x, p: bool):
    if p:
        z = x
    else:
        z = x.clone()
    return z
def f(x, p: bool):
    z = g(x, p)
    z.add_(1)
    return x, z
#> f(torch.tensor([1.0]), True)
#> f(torch.tensor([1.0]), False)
#--- where_and_mask_are_new
def g(x):
    return torch.where(x == x, x, x), x.masked_fill(x > 100, 0.0), torch.max(x, x), x.clamp(-1000, 1000)
def f(x):
    a, b, c, d = g(x)
    a.add_(1)
    b.add_(10)
    c.add_(100)
    d.add_(1000)
    return x, a, b, c, d
#> f(torch.tensor([1.0, 2.0]))
#--- powers_and_identities_are_new
def g(x):
    return x ** 1, 1 * x, 0 + x, x / 1, torch.relu(torch.relu(x)), -(-x), x.pow(1), torch.abs(torch.abs(x))
def f(x):
    out = g(x)
    out[0].add_(1)
    out[1].add_(2)
    out[2].add_(3)
    out[3].add_(4)
    out[4].add_(5)
    out[5].add_(6)
    out[6].add_(7)
    out[7].add_(8)
    return x, out
#> f(torch.tensor([1.0, 2.0]))
#--- positive_is_its_input
def g(x):
    return torch.positive(x), torch.real(x), x.detach(), torch.conj(x), x.squeeze(0).unsqueeze(0)
def f(x):
    out = g(x)
    out[0].add_(1)
    out[1].add_(2)
    out[2].add_(3)
    out[3].add_(4)
    out[4].mul_(2)
    return x, out
#> f(torch.tensor([[1.0, 2.0]]))
#--- one_row_for_all
def f(x):
    y = x[0].expand(3, 2)
    z = y.clone()
    a = z.stride()
    b = y.contiguous().stride()
    c = (y + 0).stride()
    x[0].add_(1)
    return y, z, a, b, c, y.stride()
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- one_tensor_in_many_places
def f(x):
    a = torch.neg(x)
    l = [a, a.t(), a]
    d = {"a": a, "b": torch.neg(x)}
    t = (a, [a])
    l[0].add_(1)
    d["a"].mul_(2)
    t[1][0].add_(3)
    return l, d, t
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
#--- lists_that_share
def f(x):
    a = [x]
    b = a
    c = a + []
    d = a[:]
    b.append(x + 1)
    c.append(x + 2)
    d[0].mul_(5)
    return a, b, c, d
#> f(torch.tensor([1.0]))
#--- writes_around_groups
def f(x, y):
    a = torch.tanh(x)
    y.add_(1)
    b = torch.sigmoid(a)
    x.mul_(2)
    c = torch.tanh(x) * b
    z = torch.neg(y)
    z.add_(c)
    return torch.exp(c) + z, x, y, a
#> f(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
#--- writes_between_what_could_be_a_group
def f(x, y):
    a = torch.tanh(x)
    x.add_(1)
    b = torch.sigmoid(x)
    y.copy_(a)
    c = torch.sigmoid(y) * a + b
    a.zero_()
    return a, b, c, x, y
#> f(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
#--- same_argument_twice
def g(x, y):
    a = torch.tanh(x)
    y.add_(1)
    b = torch.sigmoid(x) * a
    y.mul_(2)
    return a + b, x + y
def f(x, y):
    return g(x, x), g(x, y), x, y
#> f(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
#--- turned_before_it_is_cut
def f(x):
    a = torch.neg(x)
    p, q = torch.chunk(a, 2)
    a.t_()
    r = torch.tanh(p) + torch.sigmoid(q)
    p2, q2 = torch.chunk(a, 2)
    return r, torch.tanh(p2) * q2, a.stride()
#> f(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
#--- written_in_turns
def f(x, n: int):
    y = torch.zeros_like(x)
    parts: List[Tensor] = []
    for i in range(n):
        a = torch.tanh(x) + y
        y += a
        parts.append(a)
        b = torch.sigmoid(a) * y
        a.add_(b)
    return x, y, parts
#> f(torch.tensor([1.0, 2.0]), 3)
