
def unflatten_dense_tensors(flat: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    results: List[Tensor] = []
    at = 0
    for t in tensors:
        results.append(flat.narrow(0, at, t.numel()).view(t.size()))
        at = at + t.numel()
    return results
