//! The longer functions of `torch.nn.functional`: pooling, folding, losses, embeddings. Facts: names, parameters,
//! defaults and formulas of the documentation. It must not know how text is compiled.

/// Functions by name. Names with an underscore in front stand behind flags, as they are called in messages.
pub(super) const TABLE: &[(&str, &str)] = &[
    ("grid_sample", "def grid_sample(input: Tensor, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: Optional[bool] = None) -> Tensor:
    modes = ['bilinear', 'nearest', 'bicubic']
    if mode not in modes:
        raise ValueError(\"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{}'\".format(mode))
    paddings = ['zeros', 'border', 'reflection']
    if padding_mode not in paddings:
        raise ValueError(\"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{}'\".format(padding_mode))
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.grid_sampler(input, grid, modes.index(mode), paddings.index(padding_mode), corners)
"),
    ("affine_grid", "def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    corners = False
    if align_corners is not None:
        corners = align_corners
    if min(size) <= 0:
        raise ValueError('Expected non-zero, positive output size. Got {}'.format(size))
    return torch.affine_grid_generator(theta, size, corners)
"),
    ("fold", "def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = [1, 1], padding: BroadcastingList2[int] = [0, 0], stride: BroadcastingList2[int] = [1, 1]) -> Tensor:
    return torch.ops.aten.col2im(input, output_size, kernel_size, dilation, padding, stride)
"),
    ("local_response_norm", "def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    if input.dim() < 3:
        raise ValueError('Expected 3D or higher dimensionality                          input (got {} dimensions)'.format(input.dim()))
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    flat = squares.reshape(input.size(0), 1, input.size(1), -1)
    padded = torch.constant_pad_nd(flat, [0, 0, size // 2, (size - 1) // 2])
    means = torch.ops.aten.avg_pool2d(padded, [size, 1], [1, 1]).reshape(input.size())
    return input / means.mul(alpha).add(k).pow(beta)
"),
    ("multilabel_soft_margin_loss", "def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean') -> Tensor:
    if size_average is not None or reduce is not None:
        averaged = True if size_average is None else size_average
        reduced = True if reduce is None else reduce
        reduction = ('mean' if averaged else 'sum') if reduced else 'none'
    loss = -(target * torch.ops.aten.log_sigmoid(input) + (1 - target) * torch.ops.aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    if reduction == 'none':
        return loss
    elif reduction == 'mean':
        return loss.mean()
    elif reduction == 'sum':
        return loss.sum()
    raise ValueError(reduction + ' is not valid')
"),
    ("unfold", "def unfold(input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = [1, 1], padding: BroadcastingList2[int] = [0, 0], stride: BroadcastingList2[int] = [1, 1]) -> Tensor:
    return torch.ops.aten.im2col(input, kernel_size, dilation, padding, stride)
"),
    // PyTorch's compiler drops what `max_norm` asks for, here as in `embedding`: weights stay unchanged.
    ("embedding_bag", "def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', sparse: bool = False, per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Tensor:
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
        raise NotImplementedError(\"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{}'). Please open a feature request on GitHub.\".format(mode))
    bags, _, _, _ = torch.embedding_bag(weight, rows, starts, scale_grad_by_freq, modes.index(mode), sparse, weights, last, padding_idx)
    return bags
"),
    ("rrelu", "def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.rrelu_(input, lower, upper, training)
    else:
        result = torch.rrelu(input, lower, upper, training)
    return result
"),
    ("max_pool1d_with_indices", "def max_pool1d_with_indices(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = [0], dilation: BroadcastingList1[int] = [1], ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        return torch.max_pool1d_with_indices(input, kernel_size, kernel_size, padding, dilation, ceil_mode)
    else:
        return torch.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
"),
    ("max_pool2d_with_indices", "def max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = [0, 0], dilation: BroadcastingList2[int] = [1, 1], ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        return torch.ops.aten.max_pool2d_with_indices(input, kernel_size, kernel_size, padding, dilation, ceil_mode)
    else:
        return torch.ops.aten.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
"),
    ("max_pool3d_with_indices", "def max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = [0, 0, 0], dilation: BroadcastingList3[int] = [1, 1, 1], ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        return torch.ops.aten.max_pool3d_with_indices(input, kernel_size, kernel_size, padding, dilation, ceil_mode)
    else:
        return torch.ops.aten.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
"),
    ("_adaptive_max_pool1d", "def _adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]
"),
    ("_adaptive_max_pool2d", "def _adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    return torch.ops.aten.adaptive_max_pool2d(input, output_size)[0]
"),
    ("_adaptive_max_pool3d", "def _adaptive_max_pool3d(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tensor:
    return torch.ops.aten.adaptive_max_pool3d(input, output_size)[0]
"),
    ("adaptive_max_pool1d_with_indices", "def adaptive_max_pool1d_with_indices(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)
"),
    ("adaptive_max_pool2d_with_indices", "def adaptive_max_pool2d_with_indices(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.ops.aten.adaptive_max_pool2d(input, output_size)
"),
    ("adaptive_max_pool3d_with_indices", "def adaptive_max_pool3d_with_indices(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.ops.aten.adaptive_max_pool3d(input, output_size)
"),
    ("lp_pool1d", "def lp_pool1d(input: Tensor, norm_type: Union[int, float], kernel_size: int, stride: Optional[BroadcastingList1[int]] = None, ceil_mode: bool = False) -> Tensor:
    p = float(norm_type)
    if p == 0.0:
        raise ValueError('norm_type must be a non-zero value, but got {}'.format(norm_type))
    step: List[int] = [kernel_size]
    if stride is not None:
        step = stride
    if p == float('inf'):
        return torch.max_pool1d(input.abs(), kernel_size, step, 0, 1, ceil_mode)
    if p == -float('inf'):
        return -torch.max_pool1d(-input.abs(), kernel_size, step, 0, 1, ceil_mode)
    means = torch.ops.aten.avg_pool1d(input.pow(p), kernel_size, step, 0, ceil_mode)
    return (torch.sign(means) * torch.relu(torch.abs(means))).mul(kernel_size).pow(1.0 / p)
"),
    ("lp_pool2d", "def lp_pool2d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, ceil_mode: bool = False) -> Tensor:
    p = float(norm_type)
    if p == 0.0:
        raise ValueError('norm_type must be a non-zero value, but got {}'.format(norm_type))
    step: List[int] = kernel_size
    if stride is not None:
        step = stride
    if p == float('inf'):
        return torch.max_pool2d(input.abs(), kernel_size, step, 0, 1, ceil_mode)
    if p == -float('inf'):
        return -torch.max_pool2d(-input.abs(), kernel_size, step, 0, 1, ceil_mode)
    means = torch.ops.aten.avg_pool2d(input.pow(p), kernel_size, step, 0, ceil_mode)
    return (torch.sign(means) * torch.relu(torch.abs(means))).mul(kernel_size[0] * kernel_size[1]).pow(1.0 / p)
"),
    ("lp_pool3d", "def lp_pool3d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, ceil_mode: bool = False) -> Tensor:
    p = float(norm_type)
    if p == 0.0:
        raise ValueError('norm_type must be a non-zero value, but got {}'.format(norm_type))
    step: List[int] = kernel_size
    if stride is not None:
        step = stride
    if p == float('inf'):
        return torch.max_pool3d(input.abs(), kernel_size, step, 0, 1, ceil_mode)
    if p == -float('inf'):
        return -torch.max_pool3d(-input.abs(), kernel_size, step, 0, 1, ceil_mode)
    means = torch.ops.aten.avg_pool3d(input.pow(p), kernel_size, step, 0, ceil_mode)
    return (torch.sign(means) * torch.relu(torch.abs(means))).mul(kernel_size[0] * kernel_size[1] * kernel_size[2]).pow(1.0 / p)
"),
    ("max_unpool1d", "def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = [0], output_size: Optional[List[int]] = None) -> Tensor:
    step: List[int] = kernel_size
    if stride is not None:
        step = stride
    sizes = _unpooled(input, kernel_size, step, padding, output_size)
    return torch.ops.aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [sizes[0], 1]).squeeze(-1)
"),
    ("max_unpool2d", "def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = [0, 0], output_size: Optional[List[int]] = None) -> Tensor:
    step: List[int] = kernel_size
    if stride is not None:
        step = stride
    sizes = _unpooled(input, kernel_size, step, padding, output_size)
    return torch.ops.aten.max_unpool2d(input, indices, sizes)
"),
    ("max_unpool3d", "def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = [0, 0, 0], output_size: Optional[List[int]] = None) -> Tensor:
    step: List[int] = kernel_size
    if stride is not None:
        step = stride
    sizes = _unpooled(input, kernel_size, step, padding, output_size)
    return torch.ops.aten.max_unpool3d(input, indices, sizes, step, padding)
"),
    ("fractional_max_pool2d_with_indices", "def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None, output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes: List[int] = []
    if output_size is not None:
        sizes = output_size
    elif output_ratio is not None:
        if len(output_ratio) > 2:
            raise ValueError('fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints.')
        sizes = [int(float(input.size(i - 2)) * output_ratio[i]) for i in range(2)]
    else:
        raise ValueError('fractional_max_pool2d requires specifying either an output_size or an output_ratio')
    if _random_samples is None:
        count = 1 if input.dim() == 3 else input.size(0)
        _random_samples = torch.rand([count, input.size(-3), 2], dtype=input.dtype, device=input.device)
    return torch.ops.aten.fractional_max_pool2d(input, kernel_size, sizes, _random_samples)
"),
    ("_fractional_max_pool2d", "def _fractional_max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None, output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tensor:
    return F.fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]
"),
    ("fractional_max_pool3d_with_indices", "def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None, output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes: List[int] = []
    if output_size is not None:
        sizes = output_size
    elif output_ratio is not None:
        if len(output_ratio) > 3:
            raise ValueError('fractional_max_pool3d requires output_ratio to either be a single Int or tuple of Ints.')
        sizes = [int(float(input.size(i - 3)) * output_ratio[i]) for i in range(3)]
    else:
        raise ValueError('fractional_max_pool3d requires specifying either an output_size or an output_ratio')
    if _random_samples is None:
        count = 1 if input.dim() == 4 else input.size(0)
        _random_samples = torch.rand([count, input.size(-4), 3], dtype=input.dtype, device=input.device)
    return torch.ops.aten.fractional_max_pool3d(input, kernel_size, sizes, _random_samples)
"),
    ("_fractional_max_pool3d", "def _fractional_max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None, output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tensor:
    return F.fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]
"),
    ("pad", "def pad(input: Tensor, pad: List[int], mode: str = 'constant', value: Optional[float] = None) -> Tensor:
    return torch.ops.aten.pad(input, pad, mode, value)
"),
    ("rms_norm", "def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    return torch.ops.aten.rms_norm(input, normalized_shape, weight, eps)
"),
    ("adaptive_avg_pool2d", "def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    return torch.ops.aten.adaptive_avg_pool2d(input, output_size)
"),
    ("adaptive_avg_pool3d", "def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    return torch.ops.aten.adaptive_avg_pool3d(input, output_size)
"),
    ("gumbel_softmax", "def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.empty_like(logits, memory_format=torch.legacy_contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    top = soft.max(dim, keepdim=True)[1]
    return torch.zeros_like(logits, memory_format=torch.legacy_contiguous_format).scatter_(dim, top, 1.0) - soft.detach() + soft
"),
    ("ctc_loss", "def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction_number(reduction), zero_infinity)
"),
    ("multi_margin_loss", "def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean') -> Tensor:
    if size_average is not None or reduce is not None:
        averaged = True if size_average is None else size_average
        reduced = True if reduce is None else reduce
        reduction = ('mean' if averaged else 'sum') if reduced else 'none'
    kind = _reduction_number(reduction)
    if p != 1 and p != 2:
        raise ValueError('only p == 1 and p == 2 supported')
    if weight is not None:
        if weight.dim() != 1:
            raise ValueError('weight must be one-dimensional')
    return torch.ops.aten.multi_margin_loss(input, target, p, margin, weight, kind)
"),
];
