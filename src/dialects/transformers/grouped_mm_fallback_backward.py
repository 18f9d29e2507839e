def grouped_mm_fallback_backward(input: Tensor, weight: Tensor, offs: Tensor, grad_output: Tensor) -> Tuple[Tensor, Tensor]:
    to_input = torch.zeros_like(input)
    to_weight = torch.zeros_like(weight)
    ends: List[int] = offs.to(torch.int64).tolist()
    start = 0
    for expert in range(len(ends)):
        end = ends[expert]
        if end != start:
            to_input[start:end] = torch.mm(grad_output[start:end], weight[expert].t())
            to_weight[expert] = torch.mm(input[start:end].t(), grad_output[start:end])
            start = end
    return to_input, to_weight
