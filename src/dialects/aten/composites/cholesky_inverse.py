def cholesky_inverse(self: Tensor, upper: bool=False) -> Tensor:
    one = torch.eye(self.size(-1), dtype=self.dtype).expand_as(self)
    if self.numel() > 0:
        zeros = (self.diagonal(0, -2, -1) == 0).reshape([-1, self.size(-1)]).nonzero()
        if zeros.size(0) > 0:
            batch = ''
            if self.dim() > 2:
                batch = '(Batch element ' + str(int(zeros[0][0])) + '): '
            raise RuntimeError('cholesky_inverse: ' + batch + 'The diagonal element ' + str(int(zeros[0][1]) + 1) + ' is zero, the inversion could not be completed because the input matrix is singular.')
    return torch.cholesky_solve(one, self, upper)
