def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', sparse: bool = False, per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Tensor:
    if weight.dtype == torch.long and input.is_floating_point():
        warnings.warn('Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.')
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError('embedding_bag: If per_sample_weights ({}) is not None, then it must have the same shape as the input ({})'.format(per_sample_weights.shape, input.shape))
    if weight.dim() != 2:
        raise ValueError('weight has to be a 2D Tensor, but got Tensor of dimension {}'.format(weight.dim()))
    rows, starts, weights, last = input, offsets, per_sample_weights, include_last_offset
    if input.dim() == 2:
        last = False
        if offsets is not None:
            raise ValueError('if input is 2D, then offsets has to be None, as input is treated as a mini-batch of fixed length sequences. However, found offsets of type Tensor')
        starts = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        rows = input.reshape(-1)
        if weights is not None:
            weights = weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError('input has to be 1D or 2D Tensor, but got Tensor of dimension {}'.format(input.dim()))
    if starts is None:
        raise ValueError('offsets has to be a 1D Tensor but got None')
    if starts.dim() != 1:
        raise ValueError('offsets has to be a 1D Tensor')
    modes = ['sum', 'mean', 'max']
    if mode not in modes:
        raise ValueError('mode has to be one of sum, mean or max')
    if mode == 'max' and scale_grad_by_freq:
        raise ValueError('max mode does not support scaling the gradient by the frequency')
    if mode == 'max' and sparse:
        raise ValueError('max mode does not support sparse weights')
    if per_sample_weights is not None and mode != 'sum':
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{}'). Please open a feature request on GitHub.".format(mode))
    bags, _, _, _ = torch.embedding_bag(weight, rows, starts, scale_grad_by_freq, modes.index(mode), sparse, weights, last, padding_idx)
    return bags
