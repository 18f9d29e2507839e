def linalg_tensorinv(self: Tensor, ind: int=2) -> Tensor:
    if ind <= 0:
        raise RuntimeError('Expected a strictly positive integer for \'ind\'')
    rows = 1
    for s in self.size()[:ind]:
        rows = rows * s
    cols = 1
    for s in self.size()[ind:]:
        cols = cols * s
    if rows != cols:
        raise RuntimeError('Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {} != {}'.format(cols, rows))
    inverse = torch.linalg_inv(self.reshape([rows, cols]))
    return inverse.reshape(self.size()[ind:] + self.size()[:ind])
