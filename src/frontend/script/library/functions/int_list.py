def _int_list(x: Any, n: int) -> List[int]:
    if isinstance(x, int):
        return [x] * n
    if isinstance(x, List[int]):
        return x
    if isinstance(x, Tuple[int]):
        return [x[0]]
    if isinstance(x, Tuple[int, int]):
        return [x[0], x[1]]
    if isinstance(x, Tuple[int, int, int]):
        return [x[0], x[1], x[2]]
    raise ValueError('expected an int or a list of ints')
