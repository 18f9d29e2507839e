//! More functions that PyTorch writes in Python, as TorchScript text of our own: those of `torch` itself, of
//! `torch.nn.init`, and the longer ones of `torch.nn.functional`. Facts: names, parameters and defaults of the
//! documentation. Random initializers are left out: they need PyTorch's generator.

/// The text of a function of a module, with its helpers.
pub(super) fn source(module: &str, name: &str) -> Option<String> {
    let table = match module {
        "torch" => TORCH,
        "torch.nn.init" => INIT,
        "torch.nn.functional" => FUNCTIONAL,
        _ => return None,
    };
    let (_, text) = table.iter().find(|(n, _)| *n == name)?;
    let helpers: String = HELPERS.iter().filter(|(n, _)| text.contains(n)).map(|(_, text)| *text).collect();
    Some(format!("{helpers}{text}"))
}

/// A function that stands for several: which one is said by flags that must be literals.
#[derive(Debug)]
pub(super) struct Dispatch {
    /// Flags as (name, position), most significant first.
    pub(super) flags: &'static [(&'static str, usize)],
    /// The functions, by the flags read as a binary number.
    pub(super) functions: &'static [&'static str],
}

/// What a name of a module stands for by its flags.
pub(super) fn dispatch(module: &str, name: &str) -> Option<&'static Dispatch> {
    DISPATCHES.iter().find(|(m, n, _)| *m == module && *n == name).map(|(_, _, dispatch)| dispatch)
}

const fn indexed(functions: &'static [&'static str], position: usize) -> Dispatch {
    const FLAGS: [&[(&str, usize)]; 7] = [
        &[("return_indices", 0)],
        &[("return_indices", 1)],
        &[("return_indices", 2)],
        &[("return_indices", 3)],
        &[("return_indices", 4)],
        &[("return_indices", 5)],
        &[("return_indices", 6)],
    ];
    Dispatch { flags: FLAGS[position], functions }
}

static DISPATCHES: &[(&str, &str, Dispatch)] = &[
    ("torch.nn.functional", "max_pool1d", indexed(&["max_pool1d", "max_pool1d_with_indices"], 6)),
    ("torch.nn.functional", "max_pool2d", indexed(&["max_pool2d", "max_pool2d_with_indices"], 6)),
    ("torch.nn.functional", "max_pool3d", indexed(&["max_pool3d", "max_pool3d_with_indices"], 6)),
    (
        "torch.nn.functional",
        "adaptive_max_pool1d",
        indexed(&["adaptive_max_pool1d", "adaptive_max_pool1d_with_indices"], 2),
    ),
    (
        "torch.nn.functional",
        "adaptive_max_pool2d",
        indexed(&["adaptive_max_pool2d", "adaptive_max_pool2d_with_indices"], 2),
    ),
    (
        "torch.nn.functional",
        "adaptive_max_pool3d",
        indexed(&["adaptive_max_pool3d", "adaptive_max_pool3d_with_indices"], 2),
    ),
    (
        "torch",
        "unique",
        Dispatch {
            flags: &[("return_inverse", 2), ("return_counts", 3)],
            functions: &["_unique", "_unique_counts", "_unique_inverse", "_unique_both"],
        },
    ),
    (
        "torch",
        "unique_consecutive",
        Dispatch {
            flags: &[("return_inverse", 1), ("return_counts", 2)],
            functions: &["_runs", "_runs_counts", "_runs_inverse", "_runs_both"],
        },
    ),
];

const HELPERS: &[(&str, &str)] = &[
    (
        "_distinct(",
        "def _distinct(input: Tensor, sorted: bool, return_inverse: bool, return_counts: bool, dim: Optional[int]):
    if dim is not None:
        return torch.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        return torch._unique2(input, sorted, return_inverse, return_counts)
",
    ),
    (
        "_int_list(",
        "def _int_list(x: Any, n: int) -> List[int]:
    if isinstance(x, int):
        return [x for _ in range(n)]
    if isinstance(x, List[int]):
        return x
    if isinstance(x, Tuple[int]):
        return [x[0]]
    if isinstance(x, Tuple[int, int]):
        return [x[0], x[1]]
    if isinstance(x, Tuple[int, int, int]):
        return [x[0], x[1], x[2]]
    raise ValueError('expected an int or a list of ints')
",
    ),
    (
        "_float_list(",
        "def _float_list(x: Any, n: int) -> List[float]:
    if isinstance(x, float):
        return [x for _ in range(n)]
    if isinstance(x, int):
        return [float(x) for _ in range(n)]
    if isinstance(x, List[float]):
        return x
    if isinstance(x, Tuple[float]):
        return [x[0]]
    if isinstance(x, Tuple[float, float]):
        return [x[0], x[1]]
    if isinstance(x, Tuple[float, float, float]):
        return [x[0], x[1], x[2]]
    raise ValueError('expected a float or a list of floats')
",
    ),
    (
        "_contracted(",
        "def _contracted(dims: Any) -> Tuple[List[int], List[int]]:
    if isinstance(dims, int):
        return [i - dims for i in range(dims)], [i for i in range(dims)]
    if isinstance(dims, Tuple[List[int], List[int]]):
        return dims
    if isinstance(dims, List[List[int]]):
        return dims[0], dims[1]
    raise RuntimeError('tensordot expects an int or two lists of ints for dims')
",
    ),
];

const TORCH: &[(&str, &str)] = &[
    ("_assert", "def _assert(condition: bool, message: str):
    assert condition, message
"),
    ("_unique", "def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    values, inverse, counts = _distinct(input, sorted, False, False, dim)
    return values
"),
    ("_unique_counts", "def _unique_counts(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = _distinct(input, sorted, False, True, dim)
    return values, counts
"),
    ("_unique_inverse", "def _unique_inverse(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = _distinct(input, sorted, True, False, dim)
    return values, inverse
"),
    ("_unique_both", "def _unique_both(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return _distinct(input, sorted, True, True, dim)
"),
    ("_runs", "def _runs(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, False, False, dim)
    return values
"),
    ("_runs_counts", "def _runs_counts(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, False, True, dim)
    return values, counts
"),
    ("_runs_inverse", "def _runs_inverse(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch.ops.aten.unique_consecutive(input, True, False, dim)
    return values, inverse
"),
    ("_runs_both", "def _runs_both(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten.unique_consecutive(input, True, True, dim)
"),
    ("tensordot", "def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Optional[Tensor] = None) -> Tensor:
    of_a, of_b = _contracted(dims)
    if out is None:
        return torch.ops.aten.tensordot(a, b, of_a, of_b)
    else:
        return torch.ops.aten.tensordot(a, b, of_a, of_b, out=out)
"),
    ("norm", "def norm(input: Tensor, p: Union[str, int, float] = 'fro', dim: Union[int, List[int], Tuple[int], Tuple[int, int], Tuple[int, int, int], None] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    over: List[int] = []
    if dim is None:
        over = list(range(input.dim()))
    else:
        over = _int_list(dim, 1)
    if isinstance(p, str):
        if p == 'nuc':
            raise NotImplementedError('the nuclear norm is not supported')
        if p != 'fro':
            raise RuntimeError('unknown norm ' + p)
        return torch.linalg.vector_norm(input, 2.0, over, keepdim, dtype=dtype)
    order = _float_list(p, 1)[0]
    return torch.linalg.vector_norm(input, order, over, keepdim, dtype=dtype)
"),
];

const INIT: &[(&str, &str)] = &[
    (
        "zeros_",
        "def zeros_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.zero_()
",
    ),
    (
        "ones_",
        "def ones_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(1.0)
",
    ),
    (
        "constant_",
        "def constant_(tensor: Tensor, val: float) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(val)
",
    ),
];

const FUNCTIONAL: &[(&str, &str)] = &[
    ("logsigmoid", "def logsigmoid(input: Tensor) -> Tensor:
    return torch.ops.aten.log_sigmoid(input)
"),
    ("interpolate", "def interpolate(input: Tensor, size: Union[int, List[int], Tuple[int], Tuple[int, int], Tuple[int, int, int], None] = None, scale_factor: Union[float, List[float], Tuple[float], Tuple[float, float], Tuple[float, float, float], None] = None, mode: str = 'nearest', align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    nearest = mode == 'nearest' or mode == 'area' or mode == 'nearest-exact'
    if nearest:
        if align_corners is not None:
            raise ValueError('align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear | lanczos')
    corners = False
    if align_corners is not None:
        corners = align_corners
    n = input.dim() - 2
    sizes: Optional[List[int]] = None
    scales: Optional[List[float]] = None
    if size is not None and scale_factor is not None:
        raise ValueError('only one of size or scale_factor should be defined')
    elif size is not None:
        sizes = _int_list(size, n)
    elif scale_factor is not None:
        scales = _float_list(scale_factor, n)
    else:
        raise ValueError('either size or scale_factor should be defined')
    if recompute_scale_factor is not None and recompute_scale_factor and scales is not None:
        computed: List[int] = []
        for i in range(n):
            computed.append(int(math.floor(float(input.size(i + 2)) * scales[i])))
        sizes = computed
        scales = None
    if antialias:
        if mode == 'bilinear' and input.dim() == 4:
            return torch.ops.aten._upsample_bilinear2d_aa(input, sizes, corners, scales)
        if mode == 'bicubic' and input.dim() == 4:
            return torch.ops.aten._upsample_bicubic2d_aa(input, sizes, corners, scales)
        raise ValueError('Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input')
    if mode == 'nearest':
        if n == 1:
            return torch.ops.aten.upsample_nearest1d(input, sizes, scales)
        if n == 2:
            return torch.ops.aten.upsample_nearest2d(input, sizes, scales)
        if n == 3:
            return torch.ops.aten.upsample_nearest3d(input, sizes, scales)
    if mode == 'nearest-exact':
        if n == 1:
            return torch.ops.aten._upsample_nearest_exact1d(input, sizes, scales)
        if n == 2:
            return torch.ops.aten._upsample_nearest_exact2d(input, sizes, scales)
        if n == 3:
            return torch.ops.aten._upsample_nearest_exact3d(input, sizes, scales)
    if mode == 'area':
        if sizes is None:
            areas: List[int] = []
            if scales is not None:
                for i in range(n):
                    areas.append(int(math.floor(float(input.size(i + 2)) * scales[i])))
            sizes = areas
        if n == 1:
            return torch.adaptive_avg_pool1d(input, sizes)
        if n == 2:
            return torch.ops.aten.adaptive_avg_pool2d(input, sizes)
        if n == 3:
            return torch.ops.aten.adaptive_avg_pool3d(input, sizes)
    if mode == 'linear' and n == 1:
        return torch.ops.aten.upsample_linear1d(input, sizes, corners, scales)
    if mode == 'bilinear' and n == 2:
        return torch.ops.aten.upsample_bilinear2d(input, sizes, corners, scales)
    if mode == 'trilinear' and n == 3:
        return torch.ops.aten.upsample_trilinear3d(input, sizes, corners, scales)
    if mode == 'bicubic' and n == 2:
        return torch.ops.aten.upsample_bicubic2d(input, sizes, corners, scales)
    raise NotImplementedError('Got ' + str(input.dim()) + 'D input and mode ' + mode)
"),
    ("upsample", "def upsample(input: Tensor, size: Union[int, List[int], Tuple[int], Tuple[int, int], Tuple[int, int, int], None] = None, scale_factor: Union[float, List[float], Tuple[float], Tuple[float, float], Tuple[float, float, float], None] = None, mode: str = 'nearest', align_corners: Optional[bool] = None) -> Tensor:
    return F.interpolate(input, size, scale_factor, mode, align_corners)
"),
    ("upsample_nearest", "def upsample_nearest(input: Tensor, size: Union[int, List[int], Tuple[int], Tuple[int, int], Tuple[int, int, int], None] = None, scale_factor: Union[float, List[float], Tuple[float], Tuple[float, float], Tuple[float, float, float], None] = None) -> Tensor:
    return F.interpolate(input, size, scale_factor, mode='nearest')
"),
    ("upsample_bilinear", "def upsample_bilinear(input: Tensor, size: Union[int, List[int], Tuple[int], Tuple[int, int], Tuple[int, int, int], None] = None, scale_factor: Union[float, List[float], Tuple[float], Tuple[float, float], Tuple[float, float, float], None] = None) -> Tensor:
    return F.interpolate(input, size, scale_factor, mode='bilinear', align_corners=True)
"),
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
    return torch.affine_grid_generator(theta, size, corners)
"),
    ("fold", "def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = [1, 1], padding: BroadcastingList2[int] = [0, 0], stride: BroadcastingList2[int] = [1, 1]) -> Tensor:
    return torch.ops.aten.col2im(input, output_size, kernel_size, dilation, padding, stride)
"),
    ("lp_pool1d", "def lp_pool1d(input: Tensor, norm_type: Union[int, float], kernel_size: int, stride: Optional[BroadcastingList1[int]] = None, ceil_mode: bool = False) -> Tensor:
    p = float(norm_type)
    if stride is not None:
        means = torch.avg_pool1d(input.pow(p), kernel_size, stride, 0, ceil_mode)
    else:
        means = torch.avg_pool1d(input.pow(p), kernel_size, kernel_size, 0, ceil_mode)
    return (torch.sign(means) * torch.relu(torch.abs(means))).mul(kernel_size).pow(1.0 / p)
"),
    ("lp_pool2d", "def lp_pool2d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, ceil_mode: bool = False) -> Tensor:
    p = float(norm_type)
    if stride is not None:
        means = torch.ops.aten.avg_pool2d(input.pow(p), kernel_size, stride, 0, ceil_mode)
    else:
        means = torch.ops.aten.avg_pool2d(input.pow(p), kernel_size, kernel_size, 0, ceil_mode)
    return (torch.sign(means) * torch.relu(torch.abs(means))).mul(kernel_size[0] * kernel_size[1]).pow(1.0 / p)
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
    ("embedding_bag", "def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', sparse: bool = False, per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Tensor:
    modes = ['sum', 'mean', 'max']
    if mode not in modes:
        raise ValueError('mode has to be one of sum, mean or max')
    if max_norm is not None:
        raise NotImplementedError('embedding_bag with max_norm is not supported')
    rows, starts, weights = input, offsets, per_sample_weights
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError('if input is 2D, then offsets has to be None, as input is treated as a mini-batch of fixed length sequences. However, found offsets of type Tensor')
        starts = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        rows = input.reshape(-1)
        if weights is not None:
            weights = weights.reshape(-1)
    if starts is None:
        raise ValueError('offsets has to be a 1D Tensor but got None')
    bags, _, _, _ = torch.embedding_bag(weight, rows, starts, scale_grad_by_freq, modes.index(mode), sparse, weights, include_last_offset, padding_idx)
    return bags
"),
    ("rrelu", "def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False) -> Tensor:
    if training:
        raise NotImplementedError('rrelu in training needs random numbers, which are not supported')
    slope = (lower + upper) / 2
    if inplace:
        return torch.leaky_relu_(input, slope)
    return torch.leaky_relu(input, slope)
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
    ("adaptive_max_pool1d", "def adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]
"),
    ("adaptive_max_pool2d", "def adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    return torch.ops.aten.adaptive_max_pool2d(input, output_size)[0]
"),
    ("adaptive_max_pool3d", "def adaptive_max_pool3d(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tensor:
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
    ("max_unpool2d", "def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = [0, 0], output_size: Optional[List[int]] = None) -> Tensor:
    if output_size is not None:
        sizes = output_size
        if len(sizes) > 2:
            sizes = sizes[len(sizes) - 2:]
    else:
        step = kernel_size
        if stride is not None:
            step = stride
        sizes = [(input.size(i - 2) - 1) * step[i] + kernel_size[i] - 2 * padding[i] for i in range(2)]
    return torch.ops.aten.max_unpool2d(input, indices, sizes)
"),
];
