# Optimizers: how a parameter `p` changes by its gradient `g` in step `t`, counted from 1. `s` holds what is kept for the
# parameter from step to step, and is empty at first.

def sgd(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool, maximize: bool):
    if maximize:
        g = -g
    if weight_decay != 0.0:
        g = g + p * weight_decay
    if momentum != 0.0:
        if len(s) == 0:
            s.append(g.clone())
        else:
            s[0].mul_(momentum).add_(g, alpha=1.0 - dampening)
        if nesterov:
            g = g + s[0] * momentum
        else:
            g = s[0]
    p.add_(g, alpha=-lr)

def zeros_for(p: Tensor, s: List[Tensor], n: int):
    while len(s) < n:
        s.append(torch.zeros_like(p))

def adam(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: bool, maximize: bool, decoupled_weight_decay: bool):
    zeros_for(p, s, 3 if amsgrad else 2)
    if maximize:
        g = -g
    if weight_decay != 0.0:
        if decoupled_weight_decay:
            p.mul_(1.0 - lr * weight_decay)
        else:
            g = g + p * weight_decay
    m = s[0]
    v = s[1]
    m.lerp_(g, 1.0 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    root = (1.0 - beta2 ** t) ** 0.5
    if amsgrad:
        s[2].copy_(torch.maximum(s[2], v))
        v = s[2]
    denominator = (v.sqrt() / root).add_(eps)
    p.addcdiv_(m, denominator, value=-(lr / (1.0 - beta1 ** t)))

def adagrad(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, lr_decay: float, weight_decay: float, initial_accumulator_value: float, eps: float, maximize: bool):
    if len(s) == 0:
        s.append(torch.full_like(p, initial_accumulator_value))
    if maximize:
        g = -g
    if weight_decay != 0.0:
        g = g + p * weight_decay
    s[0].addcmul_(g, g, value=1.0)
    p.addcdiv_(g, s[0].sqrt().add_(eps), value=-(lr / (1.0 + (t - 1) * lr_decay)))

def rmsprop(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool, maximize: bool):
    zeros_for(p, s, 3)
    if maximize:
        g = -g
    if weight_decay != 0.0:
        g = g + p * weight_decay
    square = s[0]
    square.mul_(alpha).addcmul_(g, g, value=1.0 - alpha)
    if centered:
        s[1].lerp_(g, 1.0 - alpha)
        average = square.addcmul(s[1], s[1], value=-1.0).sqrt_()
    else:
        average = square.sqrt()
    average = average.add_(eps)
    if momentum > 0.0:
        s[2].mul_(momentum).addcdiv_(g, average)
        p.add_(s[2], alpha=-lr)
    else:
        p.addcdiv_(g, average, value=-lr)

def adamax(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, maximize: bool):
    zeros_for(p, s, 2)
    if maximize:
        g = -g
    if weight_decay != 0.0:
        g = g + p * weight_decay
    s[0].lerp_(g, 1.0 - beta1)
    s[1].copy_(torch.maximum(s[1] * beta2, g.abs() + eps))
    p.addcdiv_(s[0], s[1], value=-(lr / (1.0 - beta1 ** t)))

def nadam(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, momentum_decay: float, decoupled_weight_decay: bool, maximize: bool):
    zeros_for(p, s, 2)
    if len(s) == 2:
        s.append(torch.ones([], dtype=torch.float64))
    if maximize:
        g = -g
    if weight_decay != 0.0:
        if decoupled_weight_decay:
            p.mul_(1.0 - lr * weight_decay)
        else:
            g = g + p * weight_decay
    mu = beta1 * (1.0 - 0.5 * (0.96 ** (t * momentum_decay)))
    next_mu = beta1 * (1.0 - 0.5 * (0.96 ** ((t + 1) * momentum_decay)))
    s[2].mul_(mu)
    product = float(s[2])
    s[0].lerp_(g, 1.0 - beta1)
    s[1].mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    denominator = (s[1] / (1.0 - beta2 ** t)).sqrt().add_(eps)
    p.addcdiv_(g, denominator, value=-(lr * (1.0 - mu) / (1.0 - product)))
    p.addcdiv_(s[0], denominator, value=-(lr * next_mu / (1.0 - product * next_mu)))

def radam(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled_weight_decay: bool, maximize: bool):
    zeros_for(p, s, 2)
    if maximize:
        g = -g
    if weight_decay != 0.0:
        if decoupled_weight_decay:
            p.mul_(1.0 - lr * weight_decay)
        else:
            g = g + p * weight_decay
    s[0].lerp_(g, 1.0 - beta1)
    s[1].mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    correction = 1.0 - beta2 ** t
    mean = s[0] / (1.0 - beta1 ** t)
    longest = 2.0 / (1.0 - beta2) - 1.0
    length = longest - 2.0 * t * (beta2 ** t) / correction
    if length > 5.0:
        rect = ((length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length)) ** 0.5
        p.add_(mean * lr * ((correction ** 0.5) / s[1].sqrt().add_(eps)) * rect, alpha=-1.0)
    else:
        p.add_(mean * lr, alpha=-1.0)

def adadelta(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, rho: float, eps: float, weight_decay: float, maximize: bool):
    zeros_for(p, s, 2)
    if maximize:
        g = -g
    if weight_decay != 0.0:
        g = g + p * weight_decay
    s[0].mul_(rho).addcmul_(g, g, value=1.0 - rho)
    delta = (s[1] + eps).sqrt_().div_((s[0] + eps).sqrt_()).mul_(g)
    s[1].mul_(rho).addcmul_(delta, delta, value=1.0 - rho)
    p.add_(delta, alpha=-lr)

def asgd(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, lambd: float, alpha: float, t0: float, weight_decay: float, maximize: bool):
    zeros_for(p, s, 1)
    if maximize:
        g = -g
    if weight_decay != 0.0:
        g = g + p * weight_decay
    eta = lr
    mu = 1.0
    if t > 1:
        eta = lr / ((1.0 + lambd * lr * (t - 1)) ** alpha)
        mu = 1.0 / max(1.0, t - 1 - t0)
    p.mul_(1.0 - lambd * eta)
    p.add_(g, alpha=-eta)
    if mu == 1.0:
        s[0].copy_(p)
    else:
        s[0].add_((p - s[0]) * mu)

def rprop(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, eta_minus: float, eta_plus: float, step_min: float, step_max: float, maximize: bool):
    if len(s) == 0:
        s.append(torch.zeros_like(p))
        s.append(torch.full_like(p, lr))
    if maximize:
        g = -g
    turn = (g * s[0]).sign()
    factor = torch.where(turn > 0, eta_plus, torch.where(turn < 0, eta_minus, 1.0)).to(p.dtype)
    s[1].mul_(factor).clamp_(step_min, step_max)
    g = torch.where(turn < 0, torch.zeros_like(g), g)
    p.addcmul_(g.sign(), s[1], value=-1.0)
    s[0].copy_(g)

def adafactor(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, beta2_decay: float, eps1: float, eps2: float, d: float, weight_decay: float, maximize: bool):
    if maximize:
        g = -g
    e = eps1
    if e < 0.0:
        e = 2.220446049250313e-16 if p.dtype == torch.float64 else 1.1920928955078125e-07
    matrix = g.dim() > 1
    if len(s) == 0:
        if matrix:
            s.append(torch.zeros_like(g.select(-1, 0).unsqueeze(-1)))
            s.append(torch.zeros_like(g.select(-2, 0).unsqueeze(-2)))
        else:
            s.append(torch.zeros_like(g))
    share = float(t) ** beta2_decay
    rate = max(eps2, float(p.norm(2)) / (p.numel() ** 0.5)) * min(lr, 1.0 / (float(t) ** 0.5))
    if weight_decay != 0.0:
        p.mul_(1.0 - lr * weight_decay)
    if matrix:
        s[0].lerp_(g.norm(2, [-1], True).square_().div_(g.size(-1)), share)
        s[1].lerp_(g.norm(2, [-2], True).square_().div_(g.size(-2)), share)
        estimate = torch.matmul(s[0], s[1]).div_(s[0].mean([-2], True).clamp_(e))
    else:
        s[0].lerp_(g.square(), share)
        estimate = s[0].clone()
    update = estimate.clamp_(e * e).rsqrt_().mul_(g)
    scale = max(1.0, float(update.norm(2)) / ((update.numel() ** 0.5) * d))
    p.add_(update, alpha=-rate / scale)

def muon(p: Tensor, g: Tensor, s: List[Tensor], t: int, lr: float, weight_decay: float, momentum: float, nesterov: bool, a: float, b: float, c: float, eps: float, ns_steps: int):
    zeros_for(p, s, 1)
    s[0].lerp_(g, 1.0 - momentum)
    update = g.lerp(s[0], momentum) if nesterov else s[0]
    x = update.to(torch.bfloat16)
    wide = x.size(0) > x.size(1)
    if wide:
        x = x.t()
    x = x / x.norm(2).clamp(eps)
    for i in range(ns_steps):
        gram = torch.matmul(x, x.t())
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    if wide:
        x = x.t()
    p.mul_(1.0 - lr * weight_decay)
    ratio = max(1.0, float(p.size(0)) / float(p.size(1))) ** 0.5
    p.add_(x.to(p.dtype), alpha=-lr * ratio)
