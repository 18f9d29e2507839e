def interpolate(input: Tensor, size: Optional[List[int]], scale_factor: Optional[List[float]], mode: str, align_corners: Optional[bool], recompute_scale_factor: Optional[bool], antialias: bool) -> Tensor:
    if antialias:
        raise RuntimeError('Antialias is not yet supported')
    corners = False
    if align_corners is not None:
        if mode == 'nearest' or mode == 'area':
            raise RuntimeError('align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear')
        corners = align_corners
    # The factors count, beside the sizes that they give, only where they are not to be computed again from these.
    scales: List[Optional[float]] = [None, None, None]
    if scale_factor is not None and recompute_scale_factor is not None and not recompute_scale_factor:
        for i in range(min(len(scale_factor), 3)):
            if scale_factor[i] > 0.0:
                scales[i] = scale_factor[i]
    dims = input.dim() - 2
    known = dims >= 1 and dims <= 3 and (mode == 'nearest' or mode == 'area')
    known = known or (dims == 1 and mode == 'linear') or (dims == 2 and (mode == 'bilinear' or mode == 'bicubic')) or (dims == 3 and mode == 'trilinear')
    if not known:
        needed = 0
        if mode == 'linear':
            needed = 3
        if mode == 'bilinear':
            needed = 4
        if mode == 'trilinear':
            needed = 5
        if dims >= 1 and dims <= 3 and needed > 0:
            raise RuntimeError('Got ' + str(input.dim()) + 'D input, but ' + mode + ' mode needs ' + str(needed) + 'D input')
        raise RuntimeError('Input Error: Only 3D, 4D and 5D input Tensors supported (got ' + str(input.dim()) + 'D) for the modes: nearest | linear | bilinear | trilinear (got ' + mode + ') ')
    sizes: List[int] = []
    if size is not None:
        sizes = size
    else:
        if scale_factor is None:
            raise RuntimeError('either size or scale_factor should be defined')
        for i in range(dims):
            sizes.append(int(math.floor(float(input.size(i + 2)) * scale_factor[i])))
    if mode == 'area':
        if dims == 1:
            return torch.adaptive_avg_pool1d(input, sizes)
        if dims == 2:
            return torch.ops.aten.adaptive_avg_pool2d(input, sizes)
        return torch.ops.aten.adaptive_avg_pool3d(input, sizes)
    if dims == 1:
        if mode == 'nearest':
            return torch.ops.aten.upsample_nearest1d(input, sizes, scales[0])
        return torch.ops.aten.upsample_linear1d(input, sizes, corners, scales[0])
    if dims == 2:
        if mode == 'nearest':
            return torch.ops.aten.upsample_nearest2d(input, sizes, scales[0], scales[1])
        if mode == 'bicubic':
            return torch.ops.aten.upsample_bicubic2d(input, sizes, corners, scales[0], scales[1])
        return torch.ops.aten.upsample_bilinear2d(input, sizes, corners, scales[0], scales[1])
    if mode == 'nearest':
        return torch.ops.aten.upsample_nearest3d(input, sizes, scales[0], scales[1], scales[2])
    return torch.ops.aten.upsample_trilinear3d(input, sizes, corners, scales[0], scales[1], scales[2])
