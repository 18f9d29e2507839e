
def linalg_matrix_norm(self: Tensor, ord: str='fro', dim: List[int]=[-2, -1], keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:
    if ord != 'fro' and ord != 'nuc':
        raise RuntimeError('linalg.matrix_norm: Order {} not supported.'.format(ord))
    if self.dim() < 2:
        raise RuntimeError('linalg.matrix_norm: The input tensor A must have at least 2 dimensions.')
    if len(dim) != 2:
        raise RuntimeError('linalg.matrix_norm: dim must be a 2-tuple. Got {}'.format(' '.join([str(d) for d in dim])))
    if ord == 'fro':
        return torch.linalg_vector_norm(self, 2., dim, keepdim, dtype=dtype)
    d0 = dim[0]
    d1 = dim[1]
    if d0 < 0:
        d0 = d0 + self.dim()
    if d1 < 0:
        d1 = d1 + self.dim()
    a = self
    if dtype is not None:
        a = self.to(dtype)
    result = torch.linalg_svdvals(a.movedim([d0, d1], [-2, -1])).sum(-1)
    if keepdim:
        result = result.unsqueeze(min(d0, d1)).unsqueeze(max(d0, d1))
    return result
