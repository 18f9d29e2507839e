def _reduction_number(reduction: str) -> int:
    if reduction == 'none':
        return 0
    if reduction == 'mean':
        return 1
    if reduction == 'sum':
        return 2
    raise ValueError('{} is not a valid value for reduction'.format(reduction))
