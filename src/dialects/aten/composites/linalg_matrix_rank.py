
def linalg_matrix_rank(input: Tensor, *, atol: Optional[Tensor]=None, rtol: Optional[Tensor]=None, hermitian: bool=False) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError('torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.')
    eps = 2.220446049250313e-16
    if input.dtype == torch.float32 or input.dtype == torch.complex64:
        eps = 1.1920928955078125e-07
    a = torch.zeros([], dtype=torch.float64)
    r = torch.full([], eps * max(input.size(-2), input.size(-1)), dtype=torch.float64)
    if atol is not None:
        a = atol
        if rtol is None:
            r = torch.where(a > 0., torch.zeros_like(r), r)
    if rtol is not None:
        r = rtol
    if input.numel() == 0:
        return torch.zeros(input.size()[:-2], dtype=torch.int64)
    if hermitian:
        s = torch.linalg_eigvalsh(input).abs()
    else:
        s = torch.linalg_svdvals(input)
    bound = torch.maximum(a.double(), r.double() * s.amax(-1).double())
    return (s.double() > bound.unsqueeze(-1)).sum(-1)
