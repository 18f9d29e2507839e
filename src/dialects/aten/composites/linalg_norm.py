
def linalg_norm(self: Tensor, ord: Optional[number]=None, dim: Optional[List[int]]=None, keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:
    if ord is None:
        return torch.linalg_vector_norm(self, 2., dim, keepdim, dtype=dtype)
    if dim is not None:
        if len(dim) != 1 and len(dim) != 2:
            raise RuntimeError('linalg.norm: If dim is specified, it must be of length 1 or 2. Got {}'.format(dim))
        if len(dim) == 2:
            return torch.linalg_matrix_norm(self, ord, dim, keepdim, dtype=dtype)
        return torch.linalg_vector_norm(self, ord, dim, keepdim, dtype=dtype)
    if self.dim() != 1 and self.dim() != 2:
        raise RuntimeError('linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.'.format(self.dim()))
    if self.dim() == 2:
        return torch.linalg_matrix_norm(self, ord, [-2, -1], keepdim, dtype=dtype)
    return torch.linalg_vector_norm(self, ord, [0], keepdim, dtype=dtype)
