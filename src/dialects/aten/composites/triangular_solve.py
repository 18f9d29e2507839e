def triangular_solve(self: Tensor, A: Tensor, upper: bool=True, transpose: bool=False, unitriangular: bool=False) -> Tuple[Tensor, Tensor]:
    t = A
    up = upper
    if transpose:
        t = A.mT
        up = not upper
    x = torch.linalg_solve_triangular(t, self, upper=up, unitriangular=unitriangular)
    return x, A.expand(x.size()[:-2] + A.size()[-2:]).mT.clone(memory_format=torch.contiguous_format).mT
