def linalg_cross(self: Tensor, other: Tensor, *, dim: int=-1) -> Tensor:
    if self.dim() != other.dim():
        raise RuntimeError('linalg.cross: inputs must have the same number of dimensions.')
    if self.size(dim) != 3 or other.size(dim) != 3:
        raise RuntimeError('linalg.cross: inputs dimension {} must have length 3. Got {} and {}'.format(dim, self.size(dim), other.size(dim)))
    a, b = torch.broadcast_tensors([self, other])
    if self.dtype == torch.bool:
        raise NotImplementedError('"cross" not implemented for \'Bool\'')
    if self.dtype != other.dtype:
        raise RuntimeError('expected scalar type ' + torch.ops.prim.dtype_name(self.dtype) + ' but found ' + torch.ops.prim.dtype_name(other.dtype))
    return a.roll([-1], [dim]) * b.roll([-2], [dim]) - a.roll([-2], [dim]) * b.roll([-1], [dim])
