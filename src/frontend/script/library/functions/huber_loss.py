def huber_loss(input: Tensor, target: Tensor, reduction: str = 'mean', delta: float = 1.0, weight: Optional[Tensor] = None) -> Tensor:
    loss = torch.huber_loss(input, target, 0, delta)
    if weight is not None:
        loss = loss * weight
    if reduction == 'none':
        return loss
    if reduction == 'sum':
        return loss.sum()
    if reduction != 'mean':
        raise ValueError('{} is not a valid value for reduction'.format(reduction))
    if weight is not None:
        return loss.sum() / weight.sum()
    return loss.mean()
