def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None, output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes: List[int] = []
    if output_size is not None:
        sizes = output_size
    elif output_ratio is not None:
        if len(output_ratio) > 3:
            raise ValueError('fractional_max_pool3d requires output_ratio to either be a single Int or tuple of Ints.')
        sizes = [int(float(input.size(i - 3)) * output_ratio[i]) for i in range(3)]
    else:
        raise ValueError('fractional_max_pool3d requires specifying either an output_size or an output_ratio')
    if _random_samples is None:
        count = 1 if input.dim() == 4 else input.size(0)
        _random_samples = torch.rand([count, input.size(-4), 3], dtype=input.dtype, device=input.device)
    return torch.ops.aten.fractional_max_pool3d(input, kernel_size, sizes, _random_samples)
