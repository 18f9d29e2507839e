def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean', weight: Optional[Tensor] = None) -> Tensor:
    if size_average is not None or reduce is not None:
        averaged = True if size_average is None else size_average
        reduced = True if reduce is None else reduce
        reduction = ('mean' if averaged else 'sum') if reduced else 'none'
    if weight is None:
        both = torch.broadcast_tensors([input, target])
        return torch.l1_loss(both[0], both[1], _reduction_number(reduction))
    if weight.size() != input.size():
        raise ValueError('Weights and input must have the same size.')
    loss = torch.abs(input - target) * weight
    if reduction == 'none':
        return loss
    elif reduction == 'sum':
        return torch.sum(loss)
    elif reduction == 'mean':
        return torch.sum(loss) / torch.sum(weight)
    raise ValueError("Invalid reduction mode: " + reduction + ". Expected one of 'none', 'mean', 'sum'.")
