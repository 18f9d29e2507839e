def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    if use_input_stats:
        size = input.size()
        count = 1
        for i in range(2, len(size)):
            count *= size[i]
        if count == 1:
            raise ValueError('Expected more than 1 spatial element when training, got input size {}'.format(size))
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)
