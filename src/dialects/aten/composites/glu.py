def glu(self: Tensor, dim: int) -> Tensor:
    if self.dim() == 0:
        raise RuntimeError('glu does not support scalars because halving size must be even')
    wrapped = dim
    if dim < 0:
        wrapped = dim + self.dim()
    size = self.size(dim)
    if size % 2 != 0:
        raise RuntimeError('Halving dimension must be even, but dimension ' + str(wrapped) + ' is size ' + str(size))
    if not self.is_floating_point():
        raise NotImplementedError('"glu_cpu" not implemented for \'' + torch.ops.prim.dtype_name(self.dtype) + '\'')
    return self.narrow(dim, 0, size // 2) * torch.sigmoid(self.narrow(dim, size // 2, size // 2))
