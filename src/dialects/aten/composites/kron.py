def kron(self: Tensor, other: Tensor) -> Tensor:
    rank = self.dim()
    if other.dim() > rank:
        rank = other.dim()
    pad_a = rank - self.dim()
    pad_b = rank - other.dim()
    a_sizes: List[int] = []
    b_sizes: List[int] = []
    sizes: List[int] = []
    for i in range(rank):
        x = 1
        y = 1
        if i >= pad_a:
            x = self.size(i - pad_a)
        if i >= pad_b:
            y = other.size(i - pad_b)
        a_sizes.append(x)
        a_sizes.append(1)
        b_sizes.append(1)
        b_sizes.append(y)
        sizes.append(x * y)
    return (self.reshape(a_sizes) * other.reshape(b_sizes)).reshape(sizes)
