def grouped_mm_fallback(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    result = torch.zeros([input.size(0), weight.size(2)], dtype=input.dtype)
    ends: List[int] = offs.to(torch.int64).tolist()
    start = 0
    for expert in range(len(ends)):
        end = ends[expert]
        if end != start:
            result[start:end] = torch.mm(input[start:end], weight[expert])
            start = end
    return result
