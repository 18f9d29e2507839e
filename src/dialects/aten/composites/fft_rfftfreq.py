def fft_rfftfreq(n: int, d: float=1., *, dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None, pin_memory: Optional[bool]=None) -> Tensor:
    if dtype is not None:
        if not (torch.empty([0], dtype=dtype).is_floating_point() or torch.empty([0], dtype=dtype).is_complex()):
            raise RuntimeError('rfftfreq requires a floating point or complex dtype')
    m = n // 2 + 1
    if m < 0:
        raise RuntimeError('Trying to create tensor with negative dimension {}: [{}]'.format(m, m))
    r = torch.arange(m, dtype=dtype)
    if dtype is None:
        r = r.to(torch.float32)
    return r * (1. / (n * d))
