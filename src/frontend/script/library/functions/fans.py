def _fans(tensor: Tensor) -> int:
    if tensor.dim() < 2:
        raise ValueError('Fan in and fan out can not be computed for tensor with fewer than 2 dimensions')
    places = 1
    for size in tensor.shape[2:]:
        places *= size
    return tensor.size(1) * places + tensor.size(0) * places
