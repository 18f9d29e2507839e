def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Optional[Tensor], mask_type: Optional[int]) -> Tensor:
    nested = src.is_nested
    keep = src
    if nested:
        if mask is not None:
            raise RuntimeError('NestedTensor with mask is not supported')
        sizes = torch._nested_tensor_size(src)
        src = torch.to_padded_tensor(src, 0.)
        keep = torch.arange(src.size(1)).unsqueeze(0) < torch.slice(sizes, 1, 0, 1)
        mask = torch.logical_not(keep)
        mask_type = 1
    x = src
    if norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    if mask is None and x.dim() == 3 and x.size(-1) == embed_dim and num_heads > 0 and embed_dim % num_heads == 0 and qkv_weight.size(0) == 3 * embed_dim:
        heads = [x.size(0), x.size(1), num_heads, embed_dim // num_heads]
        q, k, v = torch.chunk(torch.linear(x, qkv_weight, qkv_bias), 3, -1)
        q, k, v = torch.transpose(q.view(heads), 1, 2), torch.transpose(k.view(heads), 1, 2), torch.transpose(v.view(heads), 1, 2)
        rows = torch.transpose(torch.scaled_dot_product_attention(q, k, v), 1, 2)
        x = torch.linear(torch.reshape(rows, x.size()), proj_weight, proj_bias)
    else:
        x = torch._native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)[0]
    x = x + src
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    y = x
    if norm_first:
        y = torch.layer_norm(y, [embed_dim], norm_weight_2, norm_bias_2, eps)
    y = torch.linear(y, ffn_weight_1, ffn_bias_1)
    if use_gelu:
        y = torch.gelu(y)
    else:
        y = torch.relu(y)
    y = torch.linear(y, ffn_weight_2, ffn_bias_2) + x
    if not norm_first:
        y = torch.layer_norm(y, [embed_dim], norm_weight_2, norm_bias_2, eps)
    if nested:
        return torch._nested_tensor_from_mask(y, keep, False)
    return y
