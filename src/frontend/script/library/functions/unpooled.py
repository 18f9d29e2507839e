def _unpooled(input: Tensor, kernel: List[int], stride: List[int], padding: List[int], wanted: Optional[List[int]]) -> List[int]:
    n = len(kernel)
    sizes = [(input.size(i - n) - 1) * stride[i] + kernel[i] - 2 * padding[i] for i in range(n)]
    if wanted is None:
        return sizes
    chosen: List[int] = wanted
    if len(chosen) == n + 2:
        chosen = chosen[2:]
    if len(chosen) != n:
        raise ValueError("output_size should be a sequence containing {} or {} elements, but it has a length of '{}'".format(n, n + 2, len(chosen)))
    for i in range(n):
        low, high = sizes[i] - stride[i], sizes[i] + stride[i]
        if chosen[i] <= low or chosen[i] >= high:
            raise ValueError('invalid output_size "{}" (dim {} must be between {} and {})'.format(chosen, i, low, high))
    return chosen
