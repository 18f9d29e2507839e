
def istft(self: Tensor, n_fft: int, hop_length: Optional[int]=None, win_length: Optional[int]=None, window: Optional[Tensor]=None, center: bool=True, normalized: bool=False, onesided: Optional[bool]=None, length: Optional[int]=None, return_complex: bool=False) -> Tensor:
    hop = n_fft // 4
    if hop_length is not None:
        hop = hop_length
    width = n_fft
    if win_length is not None:
        width = win_length
    if not self.is_complex():
        raise RuntimeError('istft requires a complex-valued input tensor matching the output from stft with return_complex=True.')
    x = self
    if self.dim() == 2:
        x = self.unsqueeze(0)
    count = x.size(2)
    half = x.size(1) != n_fft
    if onesided is not None:
        half = onesided
    weights = torch.ones([width], dtype=torch.real(x).dtype)
    if window is not None:
        weights = window
    if width != n_fft:
        left = (n_fft - width) // 2
        weights = torch.constant_pad_nd(weights, [left, n_fft - width - left])
    x = x.transpose(1, 2)
    norm = 'backward'
    if normalized:
        norm = 'ortho'
    if return_complex:
        pieces = torch.fft_ifft(x, norm=norm)
    else:
        if not half:
            x = x.slice(2, 0, n_fft // 2 + 1)
        pieces = torch.fft_irfft(x, n_fft, norm=norm)
    pieces = pieces * weights
    total = n_fft + hop * (count - 1)
    y = torch.zeros([pieces.size(0), total], dtype=pieces.dtype)
    envelope = torch.zeros([total], dtype=weights.dtype)
    for t in range(count):
        y.narrow(1, t * hop, n_fft).add_(pieces.select(1, t))
        envelope.narrow(0, t * hop, n_fft).add_(weights * weights)
    start = 0
    end = total
    if center:
        start = n_fft // 2
        end = total - n_fft // 2
    if length is not None:
        end = start + length
    y = y.slice(1, start, end)
    envelope = envelope.slice(0, start, end)
    if bool((envelope.abs().min() < 1e-11).item()):
        raise RuntimeError('window overlap add min: 1')
    y = y / envelope
    if length is not None:
        missing = length - y.size(1)
        if missing > 0:
            y = torch.constant_pad_nd(y, [0, missing])
    if self.dim() == 2:
        y = y.squeeze(0)
    return y
