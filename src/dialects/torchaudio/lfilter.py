def _lfilter(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor) -> Tensor:
    order = b_coeffs.size(1)
    channels = b_coeffs.size(0)
    first = a_coeffs[:, :1]
    padded = torch.constant_pad_nd(waveform, [order - 1, 0])
    forward = torch.conv1d(padded, (b_coeffs / first).flip([1]).unsqueeze(1), groups=channels)
    output = torch.zeros([waveform.size(0), channels, waveform.size(2) + order - 1], dtype=waveform.dtype)
    torch.ops.torchaudio._lfilter_core_loop(forward, (a_coeffs / first).flip([1]).contiguous(), output)
    return output[:, :, order - 1:]
