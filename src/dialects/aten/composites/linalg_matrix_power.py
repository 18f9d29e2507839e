
def linalg_matrix_power(self: Tensor, n: int) -> Tensor:
    if self.dim() < 2:
        raise RuntimeError('linalg.matrix_power: The input tensor A must have at least 2 dimensions.')
    if self.size(-1) != self.size(-2):
        raise RuntimeError('linalg.matrix_power: A must be batches of square matrices, but they are {} by {} matrices'.format(self.size(-2), self.size(-1)))
    if n == 0:
        return torch.zeros_like(self) + torch.eye(self.size(-1), dtype=self.dtype)
    base = self
    left = n
    if n < 0:
        base = torch.linalg_inv(self)
        left = -n
    result = base
    first = True
    while left > 0:
        if left % 2 == 1:
            if first:
                result = base.clone()
                first = False
            else:
                result = torch.matmul(result, base)
        left = left // 2
        if left > 0:
            base = torch.matmul(base, base)
    return result
