def prelu(self: Tensor, weight: Tensor) -> Tensor:
    if self.dtype != weight.dtype:
        raise RuntimeError('prelu: Type promoting not supported. Got ' + torch.ops.prim.dtype_name(self.dtype) + ' and ' + torch.ops.prim.dtype_name(weight.dtype))
    if weight.numel() != 1:
        if self.dim() == 0:
            raise RuntimeError('Not allow zero-dim input tensor.')
        channels = 1
        if self.dim() > 1:
            channels = self.size(1)
        if channels != weight.numel():
            raise RuntimeError('Mismatch of parameter numbers and input channel size. Found parameter numbers = ' + str(weight.numel()) + ' and channel size = ' + str(channels) + '.')
    if weight.dim() > 1:
        raise RuntimeError('prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ' + str(weight.dim()))
    if self.dim() == weight.dim():
        return torch._prelu_kernel(self, weight)
    shape = [1] * self.dim()
    if self.dim() > 1:
        shape[1] = weight.numel()
    return torch._prelu_kernel(self, weight.reshape(shape))
