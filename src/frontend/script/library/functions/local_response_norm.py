def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    if input.dim() < 3:
        raise ValueError('Expected 3D or higher dimensionality                          input (got {} dimensions)'.format(input.dim()))
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    flat = squares.reshape(input.size(0), 1, input.size(1), -1)
    padded = torch.constant_pad_nd(flat, [0, 0, size // 2, (size - 1) // 2])
    means = torch.ops.aten.avg_pool2d(padded, [size, 1], [1, 1]).reshape(input.size())
    return input / means.mul(alpha).add(k).pow(beta)
