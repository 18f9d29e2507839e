def linalg_cond(self: Tensor, p: str) -> Tensor:
    if self.numel() == 0:
        return torch.zeros(self.size()[:-2], dtype=torch.linalg_vector_norm(self).dtype)
    if p == 'nuc':
        return torch.linalg_svdvals(self).sum(-1) * torch.linalg_svdvals(torch.linalg_inv(self)).sum(-1)
    inverse, info = torch.linalg_inv_ex(self)
    result = torch.linalg_matrix_norm(self, p) * torch.linalg_matrix_norm(inverse, p)
    return torch.where(info == 0, result, float('inf'))
