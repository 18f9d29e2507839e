def flat(g: Tensor, size: List[int], stride: List[int], mixed: bool):
    extent = 1
    for i in range(len(size)):
        extent += (size[i] - 1) * stride[i]
    if g.numel() == 0:
        extent = 0
    r = g.new_zeros([extent]).as_strided_scatter(g, size, stride, 0)
    if mixed:
        r = torch.view_as_real(r).reshape([-1])
    return r
