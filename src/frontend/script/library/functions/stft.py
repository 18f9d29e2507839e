def stft(input: Tensor, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None, window: Optional[Tensor] = None, center: bool = True, pad_mode: str = 'reflect', normalized: bool = False, onesided: Optional[bool] = None, return_complex: Optional[bool] = None, align_to_window: Optional[bool] = None) -> Tensor:
    if center:
        if align_to_window is not None:
            raise RuntimeError('stft align_to_window should only be set when center = false')
        width = n_fft // 2
        sizes = [1] * (3 - input.dim()) + input.size()
        padded = torch.ops.aten.pad(input.view(sizes), [width, width], pad_mode)
        input = padded.view(padded.size()[3 - input.dim():])
    return torch.ops.aten.stft(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)
