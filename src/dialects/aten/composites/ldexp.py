def ldexp(self: Tensor, other: Tensor) -> Tensor:
    if not self.is_floating_point() or other.is_floating_point() or other.is_complex():
        return torch.mul(self, torch.pow(2.0, other))
    if other.dtype == torch.bool:
        raise NotImplementedError('"ldexp_cpu_exp" not implemented for \'Bool\'')
    exponent = other.to(torch.int32)
    if self.dtype != torch.float64:
        return (self.double() * torch.pow(2.0, exponent.clamp(-400, 400).double())).to(self.dtype)
    exponent = exponent.clamp(-2200, 2200)
    third = torch.div(exponent, 3, rounding_mode='trunc')
    step = torch.pow(2.0, third.double())
    return self * step * step * torch.pow(2.0, (exponent - third * 2).double())
