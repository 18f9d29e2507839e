//! Functions of `torch.nn.functional` that PyTorch writes in Python, as TorchScript text of our own. Those that
//! are operators need no text. Facts: names, parameters and defaults of the documentation.

/// The text of a function, with its helpers; None if it is an operator or does not exist.
pub(super) fn source(name: &str) -> Option<String> {
    let text = TABLE.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_string());
    text.or_else(|| activation(name)).or_else(|| dropout(name)).or_else(|| loss(name))
}

/// `name(input, parameters, inplace)`, which calls the op of that name or the one that writes to its input.
fn activation(name: &str) -> Option<String> {
    let (_, parameters) = ACTIVATIONS.iter().find(|(n, _)| *n == name)?;
    let op = name.trim_start_matches('_');
    let names: Vec<&str> = parameters.split(", ").filter_map(|p| p.split(':').next()).collect();
    let (formals, actuals) = match *parameters {
        "" => (String::new(), String::new()),
        _ => (format!(", {parameters}"), format!(", {}", names.join(", "))),
    };
    Some(format!(
        "def {name}(input: Tensor{formals}, inplace: bool = False) -> Tensor:
{}    if inplace:
        return torch.{op}_(input{actuals})
    return torch.{op}(input{actuals})
",
        refusal(name)
    ))
}

/// `name(input, p, training, inplace)` over an op that leaves elements or features out.
fn dropout(name: &str) -> Option<String> {
    let (_, op, training) = DROPOUTS.iter().find(|(n, ..)| *n == name)?;
    Some(format!(
        "def {name}(input: Tensor, p: float = 0.5, training: bool = {training}, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError('dropout probability has to be between 0 and 1, but got {{}}'.format(p))
    if inplace:
        return torch.{op}_(input, p, training)
    return torch.{op}(input, p, training)
"
    ))
}

/// A loss `name(input, target, ...)` over an op that gets the reduction as a number.
fn loss(name: &str) -> Option<String> {
    let (_, formals, call) = LOSSES.iter().find(|(n, ..)| *n == name)?;
    Some(format!(
        "def {name}({formals}) -> Tensor:
    if size_average is not None or reduce is not None:
        averaged = True if size_average is None else size_average
        reduced = True if reduce is None else reduce
        reduction = ('mean' if averaged else 'sum') if reduced else 'none'
    kind = 0
    if reduction == 'mean':
        kind = 1
    elif reduction == 'sum':
        kind = 2
    elif reduction != 'none':
        raise ValueError('{{}} is not a valid value for reduction'.format(reduction))
{}    return torch.{call}
",
        refusal(name)
    ))
}

/// The statements by which a function refuses arguments that its op takes.
fn refusal(name: &str) -> &'static str {
    REFUSALS.iter().find(|(n, _)| *n == name).map_or("", |(_, text)| text)
}

/// Activations that can work in place, with their parameters.
const ACTIVATIONS: &[(&str, &str)] = &[
    ("relu", ""),
    ("silu", ""),
    ("mish", ""),
    ("selu", ""),
    ("relu6", ""),
    ("hardswish", ""),
    ("hardsigmoid", ""),
    ("elu", "alpha: float = 1.0"),
    ("celu", "alpha: float = 1.0"),
    ("leaky_relu", "negative_slope: float = 0.01"),
    ("hardtanh", "min_val: float = -1.0, max_val: float = 1.0"),
    ("_threshold", "threshold: float, value: float"),
];

/// Kinds of dropout: the op, and whether it trains by default.
const DROPOUTS: &[(&str, &str, &str)] = &[
    ("dropout", "dropout", "True"),
    ("alpha_dropout", "alpha_dropout", "False"),
    ("feature_alpha_dropout", "feature_alpha_dropout", "False"),
    ("dropout1d", "feature_dropout", "True"),
    ("dropout2d", "feature_dropout", "True"),
    ("dropout3d", "feature_dropout", "True"),
];

/// What activations and losses refuse or do besides, as the body of the function says it.
const REFUSALS: &[(&str, &str)] = &[
    ("hardtanh", "    if min_val > max_val:
        raise ValueError('min_val cannot be greater than max_val')
"),
    ("binary_cross_entropy", "    if target.size() != input.size():
        raise ValueError('Using a target size ({}) that is different to the input size ({}) is deprecated. Please ensure they have the same size.'.format(target.size(), input.size()))
"),
    ("binary_cross_entropy_with_logits", "    if target.size() != input.size():
        raise ValueError('Target size ({}) must be the same as input size ({})'.format(target.size(), input.size()))
"),
    ("smooth_l1_loss", "    both = torch.broadcast_tensors([input, target])
    input = both[0]
    target = both[1]
    if beta == 0.0:
        return torch.l1_loss(input, target, kind)
"),
    ("triplet_margin_loss", "    if margin <= 0:
        raise ValueError('margin must be greater than 0, got {}'.format(margin))
"),
];

/// Losses: parameters and the call.
const LOSSES: &[(&str, &str, &str)] = &[
    (
        "soft_margin_loss",
        "input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "soft_margin_loss(input, target, kind)",
    ),
    (
        "multilabel_margin_loss",
        "input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "multilabel_margin_loss(input, target, kind)",
    ),
    (
        "binary_cross_entropy",
        "input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "binary_cross_entropy(input, target, weight, kind)",
    ),
    (
        "binary_cross_entropy_with_logits",
        "input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean', pos_weight: Optional[Tensor] = None",
        "binary_cross_entropy_with_logits(input, target, weight, pos_weight, kind)",
    ),
    (
        "smooth_l1_loss",
        "input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean', beta: float = 1.0",
        "smooth_l1_loss(input, target, kind, beta)",
    ),
    (
        "hinge_embedding_loss",
        "input: Tensor, target: Tensor, margin: float = 1.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "hinge_embedding_loss(input, target, margin, kind)",
    ),
    (
        "margin_ranking_loss",
        "input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "margin_ranking_loss(input1, input2, target, margin, kind)",
    ),
    (
        "cosine_embedding_loss",
        "input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "cosine_embedding_loss(input1, input2, target, margin, kind)",
    ),
    (
        "triplet_margin_loss",
        "anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, kind)",
    ),
    (
        "poisson_nll_loss",
        "input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Optional[bool] = None, eps: float = 1e-8, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "poisson_nll_loss(input, target, log_input, full, eps, kind)",
    ),
    (
        "nll_loss",
        "input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = 'mean'",
        "nll_loss_nd(input, target, weight, kind, ignore_index)",
    ),
    (
        "cross_entropy",
        "input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = 'mean', label_smoothing: float = 0.0",
        "cross_entropy_loss(input, target, weight, kind, ignore_index, label_smoothing)",
    ),
];

/// All others.
const TABLE: &[(&str, &str)] = &[
    ("l1_loss", include_str!("functions/l1_loss.py")),
    ("mse_loss", include_str!("functions/mse_loss.py")),
    ("huber_loss", include_str!("functions/huber_loss.py")),
    ("kl_div", include_str!("functions/kl_div.py")),
    ("softmax", "def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        axis = 0 if input.dim() in [0, 1, 3] else 1
    else:
        axis = dim
    return torch.softmax(input, axis, dtype)
"),
    ("log_softmax", "def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        axis = 0 if input.dim() in [0, 1, 3] else 1
    else:
        axis = dim
    return torch.log_softmax(input, axis, dtype)
"),
    ("softmin", "def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        axis = 0 if input.dim() in [0, 1, 3] else 1
    else:
        axis = dim
    return torch.softmax(-input, axis, dtype)
"),
    ("layer_norm", "def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)
"),
    ("group_norm", "def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError('Expected at least 2 dimensions for input tensor but received {}'.format(input.dim()))
    return torch.group_norm(input, num_groups, weight, bias, eps)
"),
    ("batch_norm", include_str!("functions/batch_norm.py")),
    ("instance_norm", include_str!("functions/instance_norm.py")),
    ("normalize", "def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    length = input.norm(p, [dim], keepdim=True).clamp_min(eps).expand_as(input)
    return input / length
"),
    ("sigmoid", "def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)
"),
    ("tanh", "def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)
"),
    ("tanhshrink", "def tanhshrink(input: Tensor) -> Tensor:
    return input - torch.tanh(input)
"),
    ("softsign", "def softsign(input: Tensor) -> Tensor:
    return input / (torch.abs(input) + 1)
"),
    ("glu", "def glu(input: Tensor, dim: int = -1) -> Tensor:
    if input.dim() == 0:
        raise RuntimeError('glu does not support scalars because halving size must be even')
    return torch.glu(input, dim)
"),
    ("_max_pool1d", "def _max_pool1d(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = [0], dilation: BroadcastingList1[int] = [1], ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if stride is None:
        return torch.max_pool1d(input, kernel_size, kernel_size, padding, dilation, ceil_mode)
    else:
        return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
"),
    ("_max_pool2d", "def _max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = [0, 0], dilation: BroadcastingList2[int] = [1, 1], ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if stride is None:
        return torch.max_pool2d(input, kernel_size, kernel_size, padding, dilation, ceil_mode)
    else:
        return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
"),
    ("_max_pool3d", "def _max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = [0, 0, 0], dilation: BroadcastingList3[int] = [1, 1, 1], ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    if stride is None:
        return torch.max_pool3d(input, kernel_size, kernel_size, padding, dilation, ceil_mode)
    else:
        return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)
"),
    ("embedding", include_str!("functions/embedding.py")),
];
