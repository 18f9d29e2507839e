
def cov(self: Tensor, *, correction: int = 1, fweights: Optional[Tensor] = None, aweights: Optional[Tensor] = None) -> Tensor:
    if self.dim() > 2:
        raise RuntimeError('cov(): expected input to have two or fewer dimensions but got an input with {} dimensions'.format(self.dim()))
    if self.dtype == torch.bool:
        raise RuntimeError('cov(): bool dtype is not supported for input')
    x = self
    if self.dim() < 2:
        x = self.reshape([1, -1])
    count = x.size(1)
    names = {0: 'Byte', 1: 'Char', 2: 'Short', 3: 'Int', 4: 'Long', 5: 'Half', 6: 'Float', 7: 'Double', 9: 'ComplexFloat', 10: 'ComplexDouble', 11: 'Bool', 15: 'BFloat16'}
    w: Optional[Tensor] = None
    if fweights is not None:
        if fweights.dim() > 1:
            raise RuntimeError('cov(): expected fweights to have one or fewer dimensions but got fweights with {} dimensions'.format(fweights.dim()))
        if fweights.is_floating_point() or fweights.is_complex():
            raise RuntimeError('cov(): expected fweights to have integral dtype but got fweights with {} dtype'.format(names[fweights.dtype]))
        if fweights.numel() != count:
            raise RuntimeError('cov(): expected fweights to have the same numel as there are observations in the input but got {} != {}'.format(fweights.numel(), count))
        if count > 0 and bool(fweights.min() < 0):
            raise RuntimeError('cov(): fweights cannot be negative')
        w = fweights
    if aweights is not None:
        if aweights.dim() > 1:
            raise RuntimeError('cov(): expected aweights to have one or fewer dimensions but got aweights with {} dimensions'.format(aweights.dim()))
        if not aweights.is_floating_point():
            raise RuntimeError('cov(): expected aweights to have floating point dtype but got aweights with {} dtype'.format(names[aweights.dtype]))
        if aweights.numel() != count:
            raise RuntimeError('cov(): expected aweights to have the same numel as there are observations in the input but got {} != {}'.format(aweights.numel(), count))
        if count > 0 and bool(aweights.min() < 0):
            raise RuntimeError('cov(): aweights cannot be negative')
        if w is None:
            w = aweights
        else:
            w = w * aweights
    total = torch.tensor(count)
    weighted = x
    if w is not None:
        total = w.sum()
        weighted = x * w
        if count > 0 and bool(total == 0):
            raise RuntimeError('cov(): weights sum to zero, can\'t be normalized')
    mean = weighted.sum(1) / total
    norm = total - correction
    if aweights is not None and w is not None and correction != 0:
        norm = total - (w * aweights).sum() * correction / total
    if bool(norm <= 0):
        norm = torch.zeros_like(norm)
    centered = x - mean.unsqueeze(1)
    right = centered
    if w is not None:
        right = centered * w
    return (torch.mm(centered, right.t().conj()) / norm).squeeze()
