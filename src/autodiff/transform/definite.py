def definite(g: List[Optional[Tensor]], like: List[Tensor]) -> List[Tensor]:
    all: List[Tensor] = []
    for n in range(len(like)):
        one: Optional[Tensor] = None
        if len(g) > 0:
            one = g[n]
        if one is None:
            one = torch.zeros_like(like[n])
        all.append(one)
    return all
