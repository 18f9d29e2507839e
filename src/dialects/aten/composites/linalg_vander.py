def linalg_vander(x: Tensor, *, N: Optional[int]=None) -> Tensor:
    narrow = x.dtype == torch.bool or x.dtype == torch.float16 or x.dtype == torch.bfloat16
    if narrow:
        raise NotImplementedError('linalg.vander supports floating point, complex, and integer tensors, but got ' + torch.ops.prim.dtype_name(x.dtype))
    if x.dim() == 0:
        x = x.unsqueeze(0)
    n = x.size(-1)
    if N is not None:
        n = N
    if n <= 1:
        raise RuntimeError('N must be greater than 1.')
    powers = torch.cumprod(x.unsqueeze(-1).expand([-1] * x.dim() + [n - 1]), -1)
    return torch.cat([torch.ones_like(powers.narrow(-1, 0, 1)), powers], -1)
