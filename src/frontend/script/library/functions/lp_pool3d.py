def lp_pool3d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, ceil_mode: bool = False) -> Tensor:
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
