
def linalg_matrix_norm(self: Tensor, ord: number, dim: List[int]=[-2, -1], keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:
    order = float(ord)
    if abs(order) != 2. and abs(order) != 1. and abs(order) != float('inf'):
        shown = str(order)
        if order == order and order == float(int(order)):
            shown = str(int(order))
        raise RuntimeError('linalg.matrix_norm: Order {} not supported.'.format(shown))
    if self.dim() < 2:
        raise RuntimeError('linalg.matrix_norm: The input tensor A must have at least 2 dimensions.')
    if len(dim) != 2:
        raise RuntimeError('linalg.matrix_norm: dim must be a 2-tuple. Got {}'.format(' '.join([str(d) for d in dim])))
    if not (self.is_floating_point() or self.is_complex()):
        torch.linalg_vector_norm(self, 2.)
    d0 = dim[0]
    d1 = dim[1]
    if d0 < 0:
        d0 = d0 + self.dim()
    if d1 < 0:
        d1 = d1 + self.dim()
    if d0 == d1:
        raise RuntimeError('linalg.matrix_norm: dims must be different. Got ({}, {})'.format(dim[0], dim[1]))
    if abs(order) == 2.:
        a = self
        if dtype is not None:
            a = self.to(dtype)
        s = torch.linalg_svdvals(a.movedim([d0, d1], [-2, -1]))
        if order > 0.:
            # Without elements the largest is 0.
            result = s.amax(-1) if s.size(-1) > 0 else s.sum(-1)
        else:
            result = s.amin(-1)
        if keepdim:
            result = result.unsqueeze(min(d0, d1)).unsqueeze(max(d0, d1))
        return result
    if abs(order) == 1.:
        summed = d0
        kept = d1
    else:
        summed = d1
        kept = d0
    norms = torch.linalg_vector_norm(self, 1., [summed], True, dtype=dtype)
    if order > 0.:
        result = norms.amax([kept], True) if norms.size(kept) > 0 else norms.sum([kept], True)
    else:
        result = norms.amin([kept], True)
    if not keepdim:
        result = result.squeeze([d0, d1])
    return result
