
def stft(self: Tensor, n_fft: int, hop_length: Optional[int]=None, win_length: Optional[int]=None, window: Optional[Tensor]=None, normalized: bool=False, onesided: Optional[bool]=None, return_complex: Optional[bool]=None, align_to_window: Optional[bool]=None) -> Tensor:
    hop = n_fft // 4
    if hop_length is not None:
        hop = hop_length
    width = n_fft
    if win_length is not None:
        width = win_length
    is_complex = self.is_complex()
    if window is not None:
        is_complex = is_complex or window.is_complex()
    if return_complex is None:
        if not is_complex:
            raise RuntimeError('stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release.')
        as_complex = True
    else:
        as_complex = return_complex
    if self.dim() > 2 or self.dim() < 1:
        raise RuntimeError('stft(): expected a 1D or 2D tensor')
    x = self
    if self.dim() == 1:
        x = self.unsqueeze(0)
    if n_fft <= 0 or n_fft > x.size(1):
        raise RuntimeError('stft(): expected 0 < n_fft < {}, but got n_fft={}'.format(x.size(1), n_fft))
    if hop <= 0:
        raise RuntimeError('stft(): expected hop_length > 0, but got hop_length={}'.format(hop))
    if width <= 0 or width > n_fft:
        raise RuntimeError('stft(): expected 0 < win_length <= n_fft, but got win_length={}'.format(width))
    frames = x.unfold(1, n_fft, hop)
    if window is not None or width < n_fft:
        weights = torch.ones([width], dtype=x.dtype)
        if window is not None:
            weights = window
        left = (n_fft - width) // 2
        if width < n_fft:
            weights = torch.constant_pad_nd(weights, [left, n_fft - width - left])
        frames = frames * weights
    norm = 'backward'
    if normalized:
        norm = 'ortho'
    half = not is_complex
    if onesided is not None:
        half = onesided
    if half:
        out = torch.fft_rfft(frames, norm=norm)
    else:
        out = torch.fft_fft(frames, norm=norm)
    out = out.transpose(1, 2)
    if self.dim() == 1:
        out = out.squeeze(0)
    if as_complex:
        return out
    return torch.view_as_real(out.contiguous())
