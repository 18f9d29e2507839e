
def trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    if dim < 0 and dim + max(y.dim(), 1) >= 0:
        dim = dim + max(y.dim(), 1)
    if y.size(dim) == 0:
        return y.sum(dim).to(y.dtype)
    if y.dtype == torch.bool or x.dtype == torch.bool:
        raise NotImplementedError('trapezoid: received a bool input for `x` or `y`, but bool is not supported')
    points = x
    if x.dim() == 1:
        if x.size(0) != y.size(dim):
            raise RuntimeError('trapezoid: There must be one `x` value for each sample point')
        sizes = [1] * y.dim()
        sizes[dim] = x.size(0)
        points = x.reshape(sizes)
    else:
        while points.dim() < y.dim():
            points = points.unsqueeze(0)
    steps = points.slice(dim, 1) - points.slice(dim, 0, -1)
    return ((y.slice(dim, 0, -1) + y.slice(dim, 1)) * steps).sum(dim) / 2.
