def grid_sample(input: Tensor, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: Optional[bool] = None) -> Tensor:
    modes = ['bilinear', 'nearest', 'bicubic']
    if mode not in modes:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{}'".format(mode))
    paddings = ['zeros', 'border', 'reflection']
    if padding_mode not in paddings:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{}'".format(padding_mode))
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.grid_sampler(input, grid, modes.index(mode), paddings.index(padding_mode), corners)
