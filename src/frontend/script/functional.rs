//! Functions of `torch.nn.functional` that PyTorch writes in Python, as TorchScript text of our own. Those that
//! are operators need no text. Facts: names, parameters and defaults of the documentation.

/// The text of a function, with its helpers; None if it is an operator or does not exist.
pub(super) fn source(name: &str) -> Option<&'static str> {
    TABLE.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

const TABLE: &[(&str, &str)] = &[
    ("relu", "def relu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.relu_(input)
    return torch.relu(input)
"),
    ("mse_loss", "def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean') -> Tensor:
    d = input - target
    s = d * d
    if reduction == 'none':
        return s
    if reduction == 'sum':
        return s.sum()
    return s.mean()
"),
    ("l1_loss", "def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean') -> Tensor:
    s = torch.abs(input - target)
    if reduction == 'none':
        return s
    if reduction == 'sum':
        return s.sum()
    return s.mean()
"),
    ("softmax", "def softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(input, dim, dtype)
"),
    ("log_softmax", "def log_softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.log_softmax(input, dim, dtype)
"),
    ("dropout", "def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.dropout_(input, p, training)
    return torch.dropout(input, p, training)
"),
    ("layer_norm", "def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)
"),
    ("sigmoid", "def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)
"),
    ("tanh", "def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)
"),
    ("max_pool2d", "def max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = [0, 0], dilation: BroadcastingList2[int] = [1, 1], ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if stride is None:
        return torch.max_pool2d(input, kernel_size, kernel_size, padding, dilation, ceil_mode)
    else:
        return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
"),
    ("embedding", "def embedding(input: Tensor, weight: Tensor) -> Tensor:
    return torch.embedding(weight, input, -1, False, False)
"),
    ("silu", "def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.silu(input)
"),
];
