def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.empty_like(logits, memory_format=torch.legacy_contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    top = soft.max(dim, keepdim=True)[1]
    return torch.zeros_like(logits, memory_format=torch.legacy_contiguous_format).scatter_(dim, top, 1.0) - soft.detach() + soft
