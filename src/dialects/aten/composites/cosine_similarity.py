def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    if eps < 0.0:
        raise RuntimeError('eps must be non-negative, got: ' + str(eps))
    # Lengths are rounded to the dtype of their own tensor.
    dtype = torch.result_type(x1, x2)
    a, b = torch.broadcast_tensors([x1, x2])
    if not a.is_floating_point() and not a.is_complex():
        a = a.to(dtype)
    if not b.is_floating_point() and not b.is_complex():
        b = b.to(dtype)
    if dtype == torch.complex64 or dtype == torch.complex128 or not (a.is_floating_point() or b.is_floating_point()):
        raise RuntimeError('expected common dtype to be floating point, yet common dtype is ' + torch.ops.prim.dtype_name(dtype))
    length_a = torch.clamp_min(torch.linalg_vector_norm(a, 2, [dim], True), eps)
    length_b = torch.clamp_min(torch.linalg_vector_norm(b, 2, [dim], True), eps)
    return torch.sum((a / length_a) * (b / length_b), [dim])
