def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean', log_target: bool = False) -> Tensor:
    kind = 1
    if reduction == 'batchmean' or reduction == 'sum':
        kind = 2
    elif reduction == 'none':
        kind = 0
    elif reduction != 'mean':
        raise ValueError('{} is not a valid value for reduction'.format(reduction))
    loss = torch.kl_div(input, target, kind, log_target=log_target)
    if reduction == 'batchmean' and input.dim() != 0:
        loss = loss / input.size(0)
    return loss
