def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> Tuple[Tensor, Tensor, Tensor]:
    batch = qkv.size(0)
    steps = qkv.size(1)
    features = qkv.size(2) // 3
    width = features // num_heads
    parts = (qkv + qkv_bias).reshape([batch, steps, 3, num_heads, width]).permute([2, 0, 3, 1, 4]).contiguous()
    return torch.select(parts, 0, 0) / (float(width) ** 0.5), torch.select(parts, 0, 1), torch.select(parts, 0, 2)
