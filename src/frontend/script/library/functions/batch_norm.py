def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    if training:
        size = input.size()
        count = size[0]
        for i in range(2, len(size)):
            count *= size[i]
        if count == 1:
            raise ValueError('Expected more than 1 value per channel when training, got input size {}'.format(size))
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)
