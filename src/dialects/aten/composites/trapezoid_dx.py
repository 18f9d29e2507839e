
def trapezoid(y: Tensor, *, dx: number = 1, dim: int = -1) -> Tensor:
    if y.size(dim) == 0:
        return y.sum(dim).to(y.dtype)
    if y.dtype == torch.bool:
        raise NotImplementedError('trapezoid: received a bool input for `y`, but bool is not supported')
    return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * float(dx)
