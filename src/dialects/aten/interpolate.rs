//! What source of PyTorch 1.0 to 1.4 calls for `torch.nn.functional.interpolate` and `upsample`, which were builtins then. Archives
//! of that time name them. Each overload brings its sizes and factors to lists and calls the one that takes these.

use crate::dialects::{OpDef, composite};

/// The rows.
pub static OPS: &[OpDef] = &[
    composite(
        "aten::__interpolate.size_list_scale_list(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode=\"nearest\", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
        include_str!("composites/interpolate.py"),
    ),
    composite(
        "aten::__interpolate.scale_list(Tensor input, int? size=None, float[]? scale_factor=None, str mode=\"nearest\", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
        "def interpolate(input: Tensor, size: Optional[int], scale_factor: Optional[List[float]], mode: str, align_corners: Optional[bool], recompute_scale_factor: Optional[bool], antialias: bool) -> Tensor:
    sizes: Optional[List[int]] = None
    if size is not None:
        sizes = [size] * (input.dim() - 2)
    return torch.ops.aten.__interpolate(input, sizes, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
",
    ),
    composite(
        "aten::__interpolate(Tensor input, int? size=None, float? scale_factor=None, str mode=\"nearest\", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
        "def interpolate(input: Tensor, size: Optional[int], scale_factor: Optional[float], mode: str, align_corners: Optional[bool], recompute_scale_factor: Optional[bool], antialias: bool) -> Tensor:
    sizes: Optional[List[int]] = None
    if size is not None:
        sizes = [size] * (input.dim() - 2)
    factors: Optional[List[float]] = None
    if scale_factor is not None:
        factors = [scale_factor] * (input.dim() - 2)
    return torch.ops.aten.__interpolate(input, sizes, factors, mode, align_corners, recompute_scale_factor, antialias)
",
    ),
    composite(
        "aten::__interpolate.size_list(Tensor input, int[]? size=None, float? scale_factor=None, str mode=\"nearest\", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
        "def interpolate(input: Tensor, size: Optional[List[int]], scale_factor: Optional[float], mode: str, align_corners: Optional[bool], recompute_scale_factor: Optional[bool], antialias: bool) -> Tensor:
    factors: Optional[List[float]] = None
    if scale_factor is not None:
        factors = [scale_factor] * (input.dim() - 2)
    return torch.ops.aten.__interpolate(input, size, factors, mode, align_corners, recompute_scale_factor, antialias)
",
    ),
    composite(
        "aten::__upsample(Tensor input, int? size=None, int? scale_factor=None, str mode=\"nearest\", bool? align_corners=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[int], scale_factor: Optional[int], mode: str, align_corners: Optional[bool]) -> Tensor:
    sizes: Optional[List[int]] = None
    if size is not None:
        sizes = [size] * (input.dim() - 2)
    return torch.ops.aten.__upsample(input, sizes, scale_factor, mode, align_corners)
",
    ),
    composite(
        "aten::__upsample.size_list(Tensor input, int[]? size=None, int? scale_factor=None, str mode=\"nearest\", bool? align_corners=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[List[int]], scale_factor: Optional[int], mode: str, align_corners: Optional[bool]) -> Tensor:
    factors: Optional[List[float]] = None
    if scale_factor is not None:
        factors = [float(scale_factor)] * (input.dim() - 2)
    return torch.ops.aten.__interpolate(input, size, factors, mode, align_corners, None, False)
",
    ),
    composite(
        "aten::__upsample_nearest(Tensor input, int? size=None, int? scale_factor=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[int], scale_factor: Optional[int]) -> Tensor:
    return torch.ops.aten.__upsample(input, size, scale_factor, 'nearest', None)
",
    ),
    composite(
        "aten::__upsample_nearest.size_list(Tensor input, int[]? size=None, int? scale_factor=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[List[int]], scale_factor: Optional[int]) -> Tensor:
    return torch.ops.aten.__upsample(input, size, scale_factor, 'nearest', None)
",
    ),
    composite(
        "aten::__upsample_bilinear(Tensor input, int? size=None, int? scale_factor=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[int], scale_factor: Optional[int]) -> Tensor:
    return torch.ops.aten.__upsample(input, size, scale_factor, 'bilinear', True)
",
    ),
    composite(
        "aten::__upsample_bilinear.size_list(Tensor input, int[]? size=None, int? scale_factor=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[List[int]], scale_factor: Optional[int]) -> Tensor:
    return torch.ops.aten.__upsample(input, size, scale_factor, 'bilinear', True)
",
    ),
    composite(
        "aten::__upsample_bilinear.scale_list(Tensor input, int? size=None, int[]? scale_factor=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[int], scale_factor: Optional[List[int]]) -> Tensor:
    sizes: Optional[List[int]] = None
    if size is not None:
        sizes = [size] * (input.dim() - 2)
    return torch.ops.aten.__upsample_bilinear(input, sizes, scale_factor)
",
    ),
    composite(
        "aten::__upsample_bilinear.size_list_scale_list(Tensor input, int[]? size=None, int[]? scale_factor=None) -> Tensor",
        "def upsample(input: Tensor, size: Optional[List[int]], scale_factor: Optional[List[int]]) -> Tensor:
    factors: Optional[List[float]] = None
    if scale_factor is not None:
        factors = [float(factor) for factor in scale_factor]
    return torch.ops.aten.__interpolate(input, size, factors, 'bilinear', True, None, False)
",
    ),
];
