def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None, output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes: List[int] = []
    if output_size is not None:
        sizes = output_size
    elif output_ratio is not None:
        if len(output_ratio) > 2:
            raise ValueError('fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints.')
        sizes = [int(float(input.size(i - 2)) * output_ratio[i]) for i in range(2)]
    else:
        raise ValueError('fractional_max_pool2d requires specifying either an output_size or an output_ratio')
    if _random_samples is None:
        count = 1 if input.dim() == 3 else input.size(0)
        _random_samples = torch.rand([count, input.size(-3), 2], dtype=input.dtype, device=input.device)
    return torch.ops.aten.fractional_max_pool2d(input, kernel_size, sizes, _random_samples)
