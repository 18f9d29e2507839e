def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean') -> Tensor:
    if size_average is not None or reduce is not None:
        averaged = True if size_average is None else size_average
        reduced = True if reduce is None else reduce
        reduction = ('mean' if averaged else 'sum') if reduced else 'none'
    kind = _reduction_number(reduction)
    if p != 1 and p != 2:
        raise ValueError('only p == 1 and p == 2 supported')
    if weight is not None:
        if weight.dim() != 1:
            raise ValueError('weight must be one-dimensional')
    return torch.ops.aten.multi_margin_loss(input, target, p, margin, weight, kind)
