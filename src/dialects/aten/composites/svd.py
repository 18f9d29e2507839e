def svd(self: Tensor, some: bool=True, compute_uv: bool=True) -> Tuple[Tensor, Tensor, Tensor]:
    if self.dim() < 2:
        raise RuntimeError('linalg.svd: input should have at least 2 dimensions, but has {} dimensions instead'.format(self.dim()))
    u, s, vh = torch.linalg_svd(self, not some)
    if not compute_uv:
        m = self.size(-2)
        n = self.size(-1)
        batch = self.size()[:-2]
        return self.new_zeros(batch + [m, m]), s, self.new_zeros(batch + [n, n])
    return u, s, vh.mH
