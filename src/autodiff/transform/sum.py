def sum(a: Optional[Tensor], b: Optional[Tensor]) -> Optional[Tensor]:
    total = a
    if a is None:
        total = b
    elif b is not None:
        total = a + b
    return total
