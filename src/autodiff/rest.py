def rest(flat: Tensor, own: Optional[Tensor], base_size: List[int], base_stride: List[int], size: List[int], stride: List[int], offset: int, mixed: bool):
    if own is None:
        own = flat.new_zeros(size)
    r = flat.as_strided_scatter(own, size, stride, offset)
    if mixed:
        r = torch.view_as_complex(r.reshape([-1, 2]))
    return r.as_strided(base_size, base_stride, 0)
