//! The longer functions of `torch.nn.functional`: pooling, folding, losses, embeddings. Facts: names, parameters,
//! defaults and formulas of the documentation. It must not know how text is compiled.

/// Functions by name. Names with an underscore in front stand behind flags, as they are called in messages.
pub(super) const TABLE: &[(&str, &str)] = &[
    ("grid_sample", include_str!("functions/grid_sample.py")),
    ("affine_grid", include_str!("functions/affine_grid.py")),
    ("fold", "def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = [1, 1], padding: BroadcastingList2[int] = [0, 0], stride: BroadcastingList2[int] = [1, 1]) -> Tensor:
    return torch.ops.aten.col2im(input, output_size, kernel_size, dilation, padding, stride)
"),
    ("local_response_norm", include_str!("functions/local_response_norm.py")),
    ("multilabel_soft_margin_loss", include_str!("functions/multilabel_soft_margin_loss.py")),
    ("unfold", "def unfold(input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = [1, 1], padding: BroadcastingList2[int] = [0, 0], stride: BroadcastingList2[int] = [1, 1]) -> Tensor:
    return torch.ops.aten.im2col(input, kernel_size, dilation, padding, stride)
"),
    // PyTorch's compiler drops what `max_norm` asks for, here as in `embedding`: weights stay unchanged.
    ("embedding_bag", include_str!("functions/embedding_bag.py")),
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
    ("lp_pool1d", include_str!("functions/lp_pool1d.py")),
    ("lp_pool2d", include_str!("functions/lp_pool2d.py")),
    ("lp_pool3d", include_str!("functions/lp_pool3d.py")),
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
    ("fractional_max_pool2d_with_indices", include_str!("functions/fractional_max_pool2d_with_indices.py")),
    ("_fractional_max_pool2d", "def _fractional_max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None, output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tensor:
    return F.fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]
"),
    ("fractional_max_pool3d_with_indices", include_str!("functions/fractional_max_pool3d_with_indices.py")),
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
    ("gumbel_softmax", include_str!("functions/gumbel_softmax.py")),
    ("ctc_loss", "def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction_number(reduction), zero_infinity)
"),
    ("multi_margin_loss", include_str!("functions/multi_margin_loss.py")),
];
