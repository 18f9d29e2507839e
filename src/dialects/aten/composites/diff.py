
def diff(self: Tensor, n: int = 1, dim: int = -1, prepend: Optional[Tensor] = None, append: Optional[Tensor] = None) -> Tensor:
    if self.dim() < 1:
        raise RuntimeError('diff expects input to be at least one-dimensional')
    if n < 0:
        raise RuntimeError('order must be non-negative but got {}'.format(n))
    x = self
    if prepend is not None:
        if prepend.dim() != self.dim():
            raise RuntimeError('diff expects prepend or append to be the same dimension as input')
        x = torch.cat([prepend, x], dim)
    if append is not None:
        if append.dim() != self.dim():
            raise RuntimeError('diff expects prepend or append to be the same dimension as input')
        x = torch.cat([x, append], dim)
    if n == 0:
        return torch.clone(self)
    for i in range(min(n, x.size(dim))):
        length = x.size(dim) - 1
        high = x.narrow(dim, 1, length)
        low = x.narrow(dim, 0, length)
        if x.dtype == torch.bool:
            x = torch.logical_xor(high, low)
        else:
            x = high - low
    return x
