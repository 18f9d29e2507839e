
def corrcoef(self: Tensor) -> Tensor:
    if self.dim() > 2:
        raise RuntimeError('corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions'.format(self.dim()))
    c = torch.cov(self)
    if c.dim() == 0:
        return c / c
    d = c.diag()
    deviation = d
    if c.is_complex():
        deviation = torch.real(d)
    deviation = torch.sqrt(deviation)
    c = c / deviation.view([-1, 1])
    c = c / deviation.view([1, -1])
    if c.is_complex():
        return torch.complex(torch.clip(torch.real(c), -1, 1), torch.clip(torch.imag(c), -1, 1))
    return torch.clip(c, -1, 1)
