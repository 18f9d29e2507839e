def _convolution_pointwise_(other: Tensor, X: Tensor, W: Tensor, B: Optional[Tensor], padding: List[int], stride: List[int], dilation: List[int], groups: int, binary_attr: str, alpha: Optional[number], unary_attr: Optional[str], unary_scalars: List[Optional[number]], unary_algorithm: Optional[str]) -> Tensor:
    if binary_attr != "add":
        raise RuntimeError("mkldnn_convolution_pointwise_binary_: only support binary op fusion")
    if alpha is not None:
        if alpha != 1:
            raise RuntimeError("mkldnn_convolution_pointwise_binary: the alpha value for the binary op should be none(meaning 1.0) or 1.0")
    Y = torch.convolution(X, W, B, stride, padding, dilation, False, [0], groups) + other
    if unary_attr is not None:
        if unary_attr != "relu":
            raise RuntimeError("mkldnn_convolution_pointwise_binary: only support none or relu unary op fusion after binary op")
        Y = torch.relu(Y)
    return other.copy_(Y)
