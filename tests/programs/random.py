#--- generators_left_out
def f():
    torch.manual_seed(3)
    a = torch.randn([2, 3], generator=None), torch.rand([3], generator=None, dtype=torch.float64)
    b = torch.randint(7, [4], generator=None), torch.randint(2, 9, [4], generator=None), torch.randperm(6, generator=None)
    return a, b, torch.randn_like(a[0])
#> f()
