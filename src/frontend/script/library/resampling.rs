//! `interpolate` and `upsample` as TorchScript text. They are overloaded over a size for all dimensions or one for each,
//! and likewise for factors: one function each. It must not know how text is compiled.

/// The names of the overloads of a function, in the order in which they are tried.
pub(super) fn overloads(name: &str) -> Vec<String> {
    match FUNCTIONS.iter().find(|f| f.name == name) {
        Some(function) => (0..function.types.len()).map(|n| format!("{name}__{n}")).collect(),
        None => Vec::new(),
    }
}

/// The text of one overload.
pub(super) fn source(name: &str) -> Option<String> {
    let (base, number) = name.split_once("__")?;
    let function = FUNCTIONS.iter().find(|f| f.name == base)?;
    let (size, factor) = function.types.get(number.parse::<usize>().ok()?)?;
    Some(format!(
        "def {name}(input: Tensor, size: Optional[{size}] = None, scale_factor: Optional[{factor}] = None{}) -> Tensor:\n{}",
        function.rest, function.body
    ))
}

struct Function {
    name: &'static str,
    /// The types of size and factor in each overload.
    types: &'static [(&'static str, &'static str)],
    /// The parameters after them.
    rest: &'static str,
    body: &'static str,
}

const FUNCTIONS: &[Function] = &[
    Function {
        name: "interpolate",
        types: &[
            ("int", "List[float]"),
            ("List[int]", "List[float]"),
            ("int", "float"),
            ("List[int]", "float"),
        ],
        rest: ", mode: str = 'nearest', align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False",
        body: INTERPOLATE,
    },
    Function {
        name: "upsample",
        types: &[("int", "float"), ("List[int]", "float")],
        rest: ", mode: str = 'nearest', align_corners: Optional[bool] = None",
        body: "    return F.interpolate(input, size, scale_factor, mode, align_corners)\n",
    },
    Function {
        name: "upsample_nearest",
        types: &[("int", "float"), ("List[int]", "float")],
        rest: "",
        body: "    return F.interpolate(input, size, scale_factor, mode='nearest')\n",
    },
    Function {
        name: "upsample_bilinear",
        types: &[
            ("int", "float"),
            ("List[int]", "float"),
            ("int", "List[float]"),
            ("List[int]", "List[float]"),
        ],
        rest: "",
        body: "    return F.interpolate(input, size, scale_factor, mode='bilinear', align_corners=True)\n",
    },
];

const INTERPOLATE: &str = "    nearest = mode == 'nearest' or mode == 'area' or mode == 'nearest-exact'
    if nearest:
        if align_corners is not None:
            raise ValueError('align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear')
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
        if len(sizes) != n:
            raise ValueError('Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of {} and output size of {}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format.'.format(input.size()[2:], sizes))
    elif scale_factor is not None:
        scales = _float_list(scale_factor, n)
        if len(scales) != n:
            raise ValueError('Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of {} and scale_factor of shape {}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.'.format(input.size()[2:], scales))
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
        if mode == 'lanczos' and input.dim() == 4:
            if corners:
                raise ValueError('Lanczos mode does not support align_corners=True')
            return torch.ops.aten._upsample_lanczos2d_aa(input, sizes, corners, scales)
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
    if mode == 'lanczos' and n == 2:
        if corners:
            raise ValueError('Lanczos mode does not support align_corners=True')
        raise ValueError('Lanczos mode requires antialias=True')
    if n >= 1 and n <= 3:
        if mode == 'linear':
            raise NotImplementedError('Got {}D input, but linear mode needs 3D input'.format(n + 2))
        if mode == 'bilinear':
            raise NotImplementedError('Got {}D input, but bilinear mode needs 4D input'.format(n + 2))
        if mode == 'trilinear':
            raise NotImplementedError('Got {}D input, but trilinear mode needs 5D input'.format(n + 2))
    raise NotImplementedError('Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {})'.format(n + 2, mode))
";
