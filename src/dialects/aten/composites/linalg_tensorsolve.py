def linalg_tensorsolve(self: Tensor, other: Tensor, dims: Optional[List[int]]=None) -> Tensor:
    a = self
    if dims is not None:
        a = self.movedim(dims, [d for d in range(self.dim() - len(dims), self.dim())])
    shape = a.size()[other.dim():]
    n = 1
    for s in shape:
        n = n * s
    return torch.linalg_solve(a.reshape([other.numel(), n]), other.flatten()).reshape(shape)
