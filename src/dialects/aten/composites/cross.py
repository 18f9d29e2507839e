def cross(self: Tensor, other: Tensor, dim: Optional[int]=None) -> Tensor:
    if dim is not None:
        return torch.linalg_cross(self, other, dim=dim)
    for d in range(self.dim()):
        if self.size(d) == 3:
            return torch.linalg_cross(self, other, dim=d)
    raise RuntimeError('no dimension of size 3 in input')
