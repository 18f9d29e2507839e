def fit(g: Tensor, like: Tensor):
    if g.is_complex() and not like.is_complex():
        g = torch.real(g)
    if g.size() != like.size():
        g = g.sum_to_size(like.size())
    if g.dtype != like.dtype:
        g = g.to(like.dtype)
    return g
