def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    corners = False
    if align_corners is not None:
        corners = align_corners
    if min(size) <= 0:
        raise ValueError('Expected non-zero, positive output size. Got {}'.format(size))
    return torch.affine_grid_generator(theta, size, corners)
