def linalg_cond(self: Tensor, p: Optional[number]=None) -> Tensor:
    if self.dim() < 2:
        raise RuntimeError('linalg.cond: The input tensor must have at least 2 dimensions.')
    order = 2.
    if p is not None:
        order = float(p)
    if self.numel() == 0:
        return torch.zeros(self.size()[:-2], dtype=torch.linalg_vector_norm(self).dtype)
    if abs(order) == 2.:
        s = torch.linalg_svdvals(self)
        first = s.select(-1, 0)
        last = s.select(-1, -1)
        if order < 0.:
            return last / first
        return first / last
    inverse, info = torch.linalg_inv_ex(self)
    result = torch.linalg_matrix_norm(self, order) * torch.linalg_matrix_norm(inverse, order)
    return torch.where(info == 0, result, float('inf'))
