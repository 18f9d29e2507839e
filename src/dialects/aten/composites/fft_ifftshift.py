
def fft_ifftshift(self: Tensor, dim: Optional[List[int]]=None) -> Tensor:
    dims = [d for d in range(self.dim())]
    if dim is not None:
        dims = dim
    if len(dims) == 0:
        return self.clone()
    return self.roll([(self.size(d) + 1) // 2 for d in dims], dims)
