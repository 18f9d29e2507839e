def _contracted(dims: Any) -> Tuple[List[int], List[int]]:
    if isinstance(dims, int):
        return [i - dims for i in range(dims)], [i for i in range(dims)]
    if isinstance(dims, Tuple[List[int], List[int]]):
        return dims
    if isinstance(dims, List[List[int]]):
        return dims[0], dims[1]
    if isinstance(dims, Tensor):
        if dims.numel() > 1:
            rows: List[List[int]] = dims.tolist()
            return rows[0], rows[1]
        count = int(dims.item())
        return [i - count for i in range(count)], [i for i in range(count)]
    raise RuntimeError('tensordot expects an int or two lists of ints for dims')
