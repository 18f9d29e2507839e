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
