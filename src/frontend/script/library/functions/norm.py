def norm(input: Tensor, p: Union[str, int, float] = 'fro', dim: Union[int, List[int], Tuple[int], Tuple[int, int], Tuple[int, int, int], None] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    over: List[int] = []
    if dim is None:
        over = list(range(input.dim()))
    else:
        over = _int_list(dim, 1)
    if isinstance(p, str):
        if p == 'nuc':
            if dim is None:
                return torch.linalg.matrix_norm(input, 'nuc', [-2, -1], keepdim, dtype=dtype)
            return torch.linalg.matrix_norm(input, 'nuc', over, keepdim, dtype=dtype)
        if p != 'fro':
            return torch.linalg.matrix_norm(input, p, [-2, -1], keepdim, dtype=dtype)
        return torch.linalg.vector_norm(input, 2.0, over, keepdim, dtype=dtype)
    order = _float_list(p, 1)[0]
    return torch.linalg.vector_norm(input, order, over, keepdim, dtype=dtype)
