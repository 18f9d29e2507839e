def linalg_matrix_rank(self: Tensor, *, atol: Optional[float]=None, rtol: Optional[float]=None, hermitian: bool=False) -> Tensor:
    a: Optional[Tensor] = None
    r: Optional[Tensor] = None
    if atol is not None:
        a = torch.full([], atol, dtype=torch.float64)
    if rtol is not None:
        r = torch.full([], rtol, dtype=torch.float64)
    return torch.linalg_matrix_rank(self, atol=a, rtol=r, hermitian=hermitian)
