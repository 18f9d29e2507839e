
def linalg_pinv(self: Tensor, *, atol: Optional[Tensor]=None, rtol: Optional[Tensor]=None, hermitian: bool=False) -> Tensor:
    m = self.size(-2)
    n = self.size(-1)
    if self.numel() == 0:
        return self.new_empty(self.size()[:-2] + [n, m])
    eps = 2.220446049250313e-16
    if self.dtype == torch.float32 or self.dtype == torch.complex64:
        eps = 1.1920928955078125e-07
    a = torch.zeros([], dtype=torch.float64)
    r = torch.full([], eps * max(m, n), dtype=torch.float64)
    if atol is not None:
        a = atol
        if rtol is None:
            r = torch.where(a > 0., torch.zeros_like(r), r)
    if rtol is not None:
        r = rtol
    if hermitian:
        values, vectors = torch.linalg_eigh(self)
        sizes = values.abs()
        bound = torch.maximum(a.unsqueeze(-1).double(), r.unsqueeze(-1).double() * sizes.amax(-1, True).double())
        inverse = torch.where(sizes.double() > bound, values.reciprocal(), torch.zeros_like(values))
        return torch.matmul(vectors * inverse.unsqueeze(-2), vectors.mH)
    u, s, vh = torch.linalg_svd(self, False)
    bound = torch.maximum(a.unsqueeze(-1).double(), r.unsqueeze(-1).double() * s.narrow(-1, 0, 1).double())
    inverse = torch.where(s.double() > bound, s.reciprocal(), torch.zeros_like(s))
    return torch.matmul(vh.mH * inverse.unsqueeze(-2), u.mH)
