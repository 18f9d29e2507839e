#--- generators_left_out
def f():
    torch.manual_seed(3)
    a = torch.randn([2, 3], generator=None), torch.rand([3], generator=None, dtype=torch.float64)
    b = torch.randint(7, [4], generator=None), torch.randint(2, 9, [4], generator=None), torch.randperm(6, generator=None)
    return a, b, torch.randn_like(a[0])
#> f()
#--- parameters
def parameters(shapes: Tensor, count: Tensor, p: Tensor):
    torch.manual_seed(3)
    a = torch._standard_gamma(shapes)
    b = torch._standard_gamma(shapes.t())
    c = torch._sample_dirichlet(shapes)
    d = torch.binomial(count, p)
    e = torch.binomial(count.double(), p.double())
    f = torch._standard_gamma(shapes.double())
    return a, b, c, d, e, f, torch.rand([2])

#> parameters(torch.tensor([[0.5, 1.0, 2.0], [10.0, 0.1, 100.0]]), torch.tensor([[5.0], [10.0], [100.0], [1000.0], [40.0]]), torch.tensor([0.5, 0.3, 0.9, 0.01, 0.0, 1.0]))
#> parameters(torch.tensor([[0.0, 1e-5, 1e-3], [1e8, 1e-30, 3.0]]), torch.tensor([[0.0], [1.0], [-1.0], [1e6], [30.0]]), torch.tensor([0.5, 0.25, 0.75, 1e-7, -0.5, 1.5]))
#--- no_gamma_of_halves
def no_gamma_of_halves(x: Tensor):
    return torch._standard_gamma(x)

#> no_gamma_of_halves(torch.ones([2]).half())
#--- no_binomial_of_two_dtypes
def no_binomial_of_two_dtypes(x: Tensor):
    return torch.binomial(x, x.double())

#> no_binomial_of_two_dtypes(torch.ones([2]))
#> no_binomial_of_two_dtypes(torch.ones([2]).long())
#--- functional
def functional(x: Tensor):
    torch.manual_seed(5)
    x = x.t()
    op = torch.ops.aten
    out = [op.uniform(x, -1.0, 2.0), op.exponential(x, 0.5), op.geometric(x, 0.25), op.cauchy(x), op.log_normal(x, 0.0, 0.5)]
    out += [op.normal_functional(x, 1.0, 2.0), op.random(x), op.random(x, 7), op.random(x, -3, 4), x]
    return out

#> functional(torch.zeros([2, 3]))
#> functional(torch.zeros([3, 2]).double())
#--- bounds_of_floats
def bounds_of_floats():
    torch.manual_seed(2)
    b = torch.zeros([6], dtype=torch.bfloat16).random_(0, 1000)
    f = torch.zeros([6]).random_(3, 100000001)
    h = torch.zeros([6], dtype=torch.float16).random_(5, None)
    u = torch.zeros([400], dtype=torch.bfloat16).uniform_(1.0, 2.0)
    return b, f, h, u, torch.zeros([6]).random_(7, None), torch.zeros([4], dtype=torch.int64).random_(-3, None), torch.zeros([5], dtype=torch.uint8).random_(200, None)

#> bounds_of_floats()
#--- out_of_bounds
def out_of_bounds(x: Tensor, low: int, high: int):
    return x.random_(low, high)

#> out_of_bounds(torch.zeros([2], dtype=torch.uint8), 0, 1000)
#> out_of_bounds(torch.zeros([2], dtype=torch.int8), -1000, 5)
#> out_of_bounds(torch.zeros([2], dtype=torch.float16), 0, 100000)
#> out_of_bounds(torch.zeros([2], dtype=torch.bool), 0, 3)
#--- parameters_out_of_range
def parameters_out_of_range(x: Tensor, a: float, which: int):
    if which == 0:
        return x.cauchy_(0.0, a)
    if which == 1:
        return x.log_normal_(0.0, a)
    if which == 2:
        return torch.randperm(300, dtype=torch.uint8)
    if which == 3:
        return torch.randperm(3000, dtype=torch.float16)
    if which == 4:
        return torch.randperm(-1)
    return torch.bernoulli(x + 1.5)

#> parameters_out_of_range(torch.zeros(2), -1.0, 0)
#> parameters_out_of_range(torch.zeros(2), 0.0, 1)
#> parameters_out_of_range(torch.zeros(2), 0.0, 2)
#> parameters_out_of_range(torch.zeros(2), 0.0, 3)
#> parameters_out_of_range(torch.zeros(2), 0.0, 4)
#> parameters_out_of_range(torch.zeros(2), 0.0, 5)
#--- own_generator
def f(n: int):
    g = torch.Generator()
    g.manual_seed(3)
    h = torch.Generator(device="cpu").manual_seed(3)
    first = torch.rand(n, generator=g), torch.randn([n, 2], generator=g), torch.rand(n, generator=h)
    return first, torch.Generator().initial_seed(), torch.Generator(seed=5).initial_seed(), g is h, g is g, g is None
#> f(3)
#> f(20)
#--- own_generator_of_each_op
def f(x, n: int, seed: int):
    g = torch.Generator().manual_seed(seed)
    a = torch.randint(9, [n], generator=g), torch.randint(-3, 9, [n], generator=g), torch.randperm(n, generator=g)
    b = torch.normal(0.0, 1.0, [n], generator=g), torch.normal(x, 2.0, generator=g), torch.normal(1.0, x.abs(), generator=g), torch.normal(x, x.abs(), generator=g)
    c = torch.bernoulli(x.sigmoid(), generator=g), torch.bernoulli(x, 0.3, generator=g), torch.multinomial(x.abs(), 2, generator=g), torch.multinomial(x.abs(), 5, True, generator=g)
    d = torch.empty(n).uniform_(1.0, 2.0, generator=g), torch.empty(n).normal_(generator=g), torch.empty(n).exponential_(2.0, generator=g)
    e = torch.empty(n).log_normal_(generator=g), torch.empty(n).cauchy_(generator=g), torch.empty(n).geometric_(0.5, generator=g), torch.empty(n).bernoulli_(0.5, generator=g)
    h = torch.empty(n, dtype=torch.long).random_(generator=g), torch.empty(n).random_(5, generator=g), torch.empty(n).random_(2, 5, generator=g), torch.empty(4).bernoulli_(x.sigmoid(), generator=g)
    i = torch.poisson(x.abs() * 9, generator=g), torch.binomial(torch.full([4], 20.0), x.sigmoid(), generator=g), torch.rrelu(x, 0.1, 0.3, True, generator=g)
    return a, b, c, d, e, h, i
#> f(torch.tensor([0.5, -1.0, 2.0, -3.0]), 4, 7)
#> f(torch.tensor([0.5, -1.0, 2.0, -3.0]), 19, -1)
#--- own_generator_passed_on
def fill(x, g: Optional[torch.Generator] = None):
    return x.uniform_(0.0, 1.0, generator=g)
def f(n: int, own: bool):
    torch.manual_seed(1)
    g: Optional[torch.Generator] = None
    if own:
        g = torch.Generator()
        g.manual_seed(2)
    made = [fill(torch.empty(n), g), fill(torch.empty(n)), torch.rand(n)]
    if g is not None:
        made.append(torch.rand(n, generator=g))
    return made
#> f(3, True)
#> f(3, False)
#--- own_generators_in_lists
def f():
    gs = [torch.Generator(), torch.Generator()]
    for g in gs:
        g.manual_seed(4)
    d = {"a": gs[0]}
    return torch.rand(2, generator=d["a"]), torch.rand(2, generator=gs[0]), torch.rand(2, generator=gs[1]), str(gs[0]), gs[0] is d["a"]
#> f()
#--- own_generator_seeds_itself
def f():
    g = torch.Generator()
    s = g.seed()
    x = torch.rand(4, generator=g)
    return bool((x == torch.rand(4, generator=torch.Generator().manual_seed(s))).all()), g.initial_seed() == s
#> f()
#--- own_generator_on_another_device
def f():
    return torch.Generator("cuda")
#> f()
#--- own_generator_has_no_state
def f():
    return torch.Generator().get_state()
#> f()
#--- own_generator_has_no_device
def f():
    return torch.Generator().device
#> f()
