def _float_list(x: Any, n: int) -> List[float]:
    if isinstance(x, float):
        return [x] * n
    if isinstance(x, int):
        return [float(x)] * n
    if isinstance(x, List[float]):
        return x
    if isinstance(x, Tuple[float]):
        return [x[0]]
    if isinstance(x, Tuple[float, float]):
        return [x[0], x[1]]
    if isinstance(x, Tuple[float, float, float]):
        return [x[0], x[1], x[2]]
    raise ValueError('expected a float or a list of floats')
