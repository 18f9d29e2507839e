# Losses: how far `output` is from `target`. Names and options are those of torch.nn.functional.

def _reduced(reduction: str):
    if reduction == 'none':
        return 0
    if reduction == 'mean':
        return 1
    if reduction == 'sum':
        return 2
    raise RuntimeError(reduction + " is not a valid value for reduction")

def mse(output: Tensor, target: Tensor, reduction: str = 'mean'):
    return torch.mse_loss(output, target, _reduced(reduction))

def l1(output: Tensor, target: Tensor, reduction: str = 'mean'):
    return torch.l1_loss(output, target, _reduced(reduction))

def smooth_l1(output: Tensor, target: Tensor, beta: float = 1.0, reduction: str = 'mean'):
    return torch.smooth_l1_loss(output, target, _reduced(reduction), beta)

def huber(output: Tensor, target: Tensor, delta: float = 1.0, reduction: str = 'mean'):
    return torch.huber_loss(output, target, _reduced(reduction), delta)

def cross_entropy(output: Tensor, target: Tensor, weight: Optional[Tensor] = None, ignore_index: int = -100, label_smoothing: float = 0.0, reduction: str = 'mean'):
    return torch.cross_entropy_loss(output, target, weight, _reduced(reduction), ignore_index, label_smoothing)

def nll(output: Tensor, target: Tensor, weight: Optional[Tensor] = None, ignore_index: int = -100, reduction: str = 'mean'):
    return torch.nll_loss_nd(output, target, weight, _reduced(reduction), ignore_index)

def bce(output: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: str = 'mean'):
    return torch.binary_cross_entropy(output, target, weight, _reduced(reduction))

def bce_with_logits(output: Tensor, target: Tensor, weight: Optional[Tensor] = None, pos_weight: Optional[Tensor] = None, reduction: str = 'mean'):
    return torch.binary_cross_entropy_with_logits(output, target, weight, pos_weight, _reduced(reduction))

def kl_div(output: Tensor, target: Tensor, log_target: bool = False, reduction: str = 'batchmean'):
    if reduction == 'batchmean':
        return torch.kl_div(output, target, 2, log_target=log_target) / output.size(0)
    return torch.kl_div(output, target, _reduced(reduction), log_target=log_target)

def poisson_nll(output: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = 'mean'):
    return torch.poisson_nll_loss(output, target, log_input, full, eps, _reduced(reduction))

def soft_margin(output: Tensor, target: Tensor, reduction: str = 'mean'):
    return torch.soft_margin_loss(output, target, _reduced(reduction))

def multi_margin(output: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Optional[Tensor] = None, reduction: str = 'mean'):
    return torch.multi_margin_loss(output, target, p, margin, weight, _reduced(reduction))

def multilabel_margin(output: Tensor, target: Tensor, reduction: str = 'mean'):
    return torch.multilabel_margin_loss(output, target, _reduced(reduction))

def hinge_embedding(output: Tensor, target: Tensor, margin: float = 1.0, reduction: str = 'mean'):
    return torch.hinge_embedding_loss(output, target, margin, _reduced(reduction))

def clip_norm(gradients: List[Tensor], most: float, kind: float):
    norms: List[Tensor] = []
    for g in gradients:
        norms.append(torch.linalg_vector_norm(g, kind))
    total = torch.linalg_vector_norm(torch.stack(norms), kind)
    share = torch.clamp(most / (total + 1e-6), max=1.0)
    for g in gradients:
        g.mul_(share)
    return float(total)

def clip_value(gradients: List[Tensor], most: float):
    for g in gradients:
        g.clamp_(-most, most)
    return -1.0
