def linalg_norm(self: Tensor, ord: str, dim: Optional[List[int]]=None, keepdim: bool=False, *, dtype: Optional[int]=None) -> Tensor:
    dims = [-2, -1]
    if dim is not None:
        dims = dim
    else:
        if self.dim() != 2:
            raise RuntimeError('linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.'.format(self.dim()))
    return torch.linalg_matrix_norm(self, ord, dims, keepdim, dtype=dtype)
