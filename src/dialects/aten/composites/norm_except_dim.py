
def norm_except_dim(v: Tensor, pow: int=2, dim: int=0) -> Tensor:
    if dim == -1:
        return v.norm(pow)
    d = dim
    if d < 0:
        d = d + v.dim()
    others: List[int] = []
    for i in range(v.dim()):
        if i != d:
            others.append(i)
    if len(others) == 0:
        return v.abs()
    return v.norm(pow, others, True)
