def linalg_polar(A: Tensor) -> Tuple[Tensor, Tensor]:
    if A.dim() < 2:
        raise RuntimeError('linalg.polar: The input tensor A must have at least 2 dimensions.')
    if A.size(-2) < A.size(-1):
        raise RuntimeError('linalg.polar: input must have at least as many rows as columns, but got {} by {} matrices'.format(A.size(-2), A.size(-1)))
    u, s, vh = torch.linalg_svd(A, False)
    return torch.matmul(u, vh), torch.matmul(vh.mH * s.unsqueeze(-2), vh)
