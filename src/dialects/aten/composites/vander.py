def vander(x: Tensor, N: Optional[int]=None, increasing: bool=False) -> Tensor:
    if x.dim() != 1:
        raise RuntimeError('x must be a one-dimensional tensor.')
    n = x.size(0)
    if N is not None:
        n = N
    if n < 0:
        raise RuntimeError('N must be non-negative.')
    dtype = torch.int64
    if x.is_floating_point() or x.is_complex():
        dtype = x.dtype
    result = torch.ones([x.size(0), n], dtype=dtype)
    if n > 1:
        powers = torch.cumprod(x.unsqueeze(1).expand([x.size(0), n - 1]).to(dtype), 1)
        result = torch.cat([result.narrow(1, 0, 1), powers], 1)
    if not increasing:
        result = result.flip([1])
    return result
