def _float_mask(mask: Optional[Tensor], name: str, dtype: int) -> Optional[Tensor]:
    if mask is None:
        return None
    if torch.is_floating_point(mask):
        return mask
    if mask.dtype != torch.bool:
        raise AssertionError('only bool and floating types of ' + name + ' are supported')
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, float('-inf'))
def _one_more(mask: Optional[Tensor]) -> Optional[Tensor]:
    if mask is None:
        return None
    return torch.constant_pad_nd(mask, [0, 1], 0)
def _check_dims(what: str, dims: int, wanted: List[int]):
    if dims not in wanted:
        raise AssertionError('expected {} to have {} dimensions but found a {}-D tensor'.format(what, wanted, dims))
def _heads_of(x: Tensor, given: Optional[Tensor], rows: int, size: int) -> Tensor:
    if given is None:
        return x.view(x.size(0), rows, size).transpose(0, 1)
    assert given.size(0) == rows, 'expecting static_k.size(0) of {}, but got {}'.format(rows, given.size(0))
    assert given.size(2) == size, 'expecting static_k.size(2) of {}, but got {}'.format(size, given.size(2))
    return given
def _projected(query: Tensor, key: Tensor, value: Tensor, weights: List[Tensor], bias: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    q_bias: Optional[Tensor] = None
    k_bias: Optional[Tensor] = None
    v_bias: Optional[Tensor] = None
    if bias is not None:
        parts = bias.chunk(3)
        q_bias, k_bias, v_bias = parts[0], parts[1], parts[2]
    return torch.ops.aten.linear(query, weights[0], q_bias), torch.ops.aten.linear(key, weights[1], k_bias), torch.ops.aten.linear(value, weights[2], v_bias)
def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Optional[Tensor], in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Optional[Tensor], training: bool = True, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True, attn_mask: Optional[Tensor] = None, use_separate_proj_weight: bool = False, q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None, v_proj_weight: Optional[Tensor] = None, static_k: Optional[Tensor] = None, static_v: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    is_batched = query.dim() == 3
    _check_dims('query', query.dim(), [2, 3])
    _check_dims('key', key.dim(), [query.dim()])
    _check_dims('value', value.dim(), [query.dim()])
    if key_padding_mask is not None:
        _check_dims('key_padding_mask', key_padding_mask.dim(), [query.dim() - 1])
    if attn_mask is not None:
        _check_dims('attn_mask', attn_mask.dim(), [2, 3])
    if not is_batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.size(0), query.size(1), query.size(2)
    rows = batch * num_heads
    if is_causal and attn_mask is None:
        raise RuntimeError('Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to create this mask.')
    padding = _float_mask(key_padding_mask, 'key_padding_mask', query.dtype)
    mask: Optional[Tensor] = None
    if not (is_causal and padding is None and not need_weights):
        mask = _float_mask(attn_mask, 'attn_mask', query.dtype)
        if padding is not None:
            is_causal = False
    assert width == embed_dim_to_check, 'was expecting embedding dimension of {}, but got {}'.format(embed_dim_to_check, width)
    size = width // num_heads
    assert size * num_heads == width, 'embed_dim {} not divisible by num_heads {}'.format(width, num_heads)
    weights: List[Tensor] = []
    if use_separate_proj_weight:
        assert key.size()[:2] == value.size()[:2], 'sequence and batch dims of key and value do not match'
        assert q_proj_weight is not None, 'use_separate_proj_weight is True but q_proj_weight is None'
        assert k_proj_weight is not None, 'use_separate_proj_weight is True but k_proj_weight is None'
        assert v_proj_weight is not None, 'use_separate_proj_weight is True but v_proj_weight is None'
        weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    else:
        assert key.size() == value.size(), 'key shape {} does not match value shape {}'.format(key.size(), value.size())
        assert in_proj_weight is not None, 'use_separate_proj_weight is False but in_proj_weight is None'
        weights = in_proj_weight.chunk(3)
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    if mask is not None:
        if mask.dim() == 2:
            if mask.size() != [length, key.size(0)]:
                raise RuntimeError('The shape of the 2D attn_mask is {}, but should be ({}, {}).'.format(mask.size(), length, key.size(0)))
            mask = mask.unsqueeze(0)
        elif mask.size() != [rows, length, key.size(0)]:
            raise RuntimeError('The shape of the 3D attn_mask is {}, but should be ({}, {}, {}).'.format(mask.size(), rows, length, key.size(0)))
    if bias_k is not None and bias_v is not None:
        assert static_k is None, 'bias cannot be added to static key.'
        assert static_v is None, 'bias cannot be added to static value.'
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        mask, padding = _one_more(mask), _one_more(padding)
    else:
        assert bias_k is None, 'bias_k is set but bias_v is None'
        assert bias_v is None, 'bias_v is set but bias_k is None'
    q = q.view(length, rows, size).transpose(0, 1)
    k = _heads_of(k, static_k, rows, size)
    v = _heads_of(v, static_v, rows, size)
    if add_zero_attn:
        k = torch.cat([k, torch.zeros([rows, 1, size], dtype=k.dtype, device=k.device)], dim=1)
        v = torch.cat([v, torch.zeros([rows, 1, size], dtype=v.dtype, device=v.device)], dim=1)
        mask, padding = _one_more(mask), _one_more(padding)
    sources = k.size(1)
    if padding is not None:
        spread = padding.view(batch, 1, 1, sources).expand(-1, num_heads, -1, -1).reshape(rows, 1, sources)
        if mask is None:
            mask = spread
        else:
            mask = mask + spread
    if not training:
        dropout_p = 0.0
    if need_weights:
        scaled = q * math.sqrt(1.0 / float(size))
        if mask is not None:
            scores = torch.baddbmm(mask, scaled, k.transpose(-2, -1))
        else:
            scores = torch.bmm(scaled, k.transpose(-2, -1))
        scores = torch.softmax(scores, -1)
        if dropout_p > 0.0:
            scores = torch.dropout(scores, dropout_p, True)
        out = torch.bmm(scores, v).transpose(0, 1).reshape(length * batch, width)
        out = torch.ops.aten.linear(out, out_proj_weight, out_proj_bias)
        out = out.view(length, batch, out.size(1))
        scores = scores.view(batch, num_heads, length, sources)
        if average_attn_weights:
            scores = scores.mean(dim=1)
        if not is_batched:
            return out.squeeze(1), scores.squeeze(0)
        return out, scores
    if mask is not None:
        if mask.size(0) == 1 and mask.dim() == 3:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.view(batch, num_heads, -1, sources)
    heads = torch.ops.aten.scaled_dot_product_attention(q.view(batch, num_heads, length, size), k.view(batch, num_heads, sources, size), v.view(batch, num_heads, sources, size), mask, dropout_p, is_causal)
    out = heads.permute(2, 0, 1, 3).reshape(batch * length, width)
    out = torch.ops.aten.linear(out, out_proj_weight, out_proj_bias)
    out = out.view(length, batch, out.size(1))
    if not is_batched:
        return out.squeeze(1), None
    return out, None
