def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = 'use_mm_for_euclid_dist_if_necessary') -> Tensor:
    if compute_mode == 'use_mm_for_euclid_dist_if_necessary':
        return torch.ops.aten.cdist(x1, x2, p, None)
    elif compute_mode == 'use_mm_for_euclid_dist':
        return torch.ops.aten.cdist(x1, x2, p, 1)
    elif compute_mode == 'donot_use_mm_for_euclid_dist':
        return torch.ops.aten.cdist(x1, x2, p, 2)
    raise ValueError('{} is not a valid value for compute_mode'.format(compute_mode))
