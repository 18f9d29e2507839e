
def stft(self: Tensor, n_fft: int, hop_length: Optional[int]=None, win_length: Optional[int]=None, window: Optional[Tensor]=None, center: bool=True, pad_mode: str='reflect', normalized: bool=False, onesided: Optional[bool]=None, return_complex: Optional[bool]=None, align_to_window: Optional[bool]=None) -> Tensor:
    x = self
    if center:
        shape = [1] * (3 - self.dim()) + self.size()
        x = torch.pad(self.reshape(shape), [n_fft // 2, n_fft // 2], pad_mode)
        x = x.reshape(self.size()[:-1] + [x.size(-1)])
    return torch.ops.aten.stft(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)
