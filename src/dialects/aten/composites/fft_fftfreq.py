def fft_fftfreq(n: int, d: float=1., *, dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None, pin_memory: Optional[bool]=None) -> Tensor:
    if dtype is not None:
        if not (torch.empty([0], dtype=dtype).is_floating_point() or torch.empty([0], dtype=dtype).is_complex()):
            raise RuntimeError('fftfreq requires a floating point or complex dtype')
    if n < 0:
        raise RuntimeError('Trying to create tensor with negative dimension {}: [{}]'.format(n, n))
    r = torch.arange(n, dtype=dtype)
    if dtype is None:
        r = r.to(torch.float32)
    return torch.where(r < (n + 1) // 2, r, r - n) * (1. / (n * d))
