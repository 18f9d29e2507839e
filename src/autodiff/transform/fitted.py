def fitted(g: List[Optional[Tensor]], like: List[Tensor]) -> List[Optional[Tensor]]:
    all: List[Optional[Tensor]] = []
    for n in range(len(g)):
        one = g[n]
        if one is not None:
            one = fit(one, like[n])
        all.append(one)
    return all
