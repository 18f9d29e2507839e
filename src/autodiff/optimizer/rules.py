# Optimizers: how a parameter `p` changes by its gradient `g` in step `t`, counted from 1. `s` holds what is kept for the
# parameter from step to step under the names that torch.optim gives it, and is empty at first. Sums and products stand in the
# order in which PyTorch rounds them.

def real(x: Tensor):
    if x.is_complex():
        return torch.view_as_real(x)
    return x

def kept(p: Tensor, s: Dict[str, Tensor], name: str):
    if name not in s:
        s[name] = torch.zeros_like(p)
    return real(s[name])

def decayed(p: Tensor, g: Tensor, weight_decay: float, maximize: bool):
    if maximize:
        g = -g
    if weight_decay != 0.0:
        g = g.add(p, alpha=weight_decay)
    return g

def decayed_apart(p: Tensor, g: Tensor, lr: float, weight_decay: float, decoupled: bool, maximize: bool):
    if decoupled and weight_decay != 0.0:
        p.mul_(1.0 - lr * weight_decay)
    return decayed(p, g, 0.0 if decoupled else weight_decay, maximize)

def sgd(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool, maximize: bool):
    g = decayed(p, g, weight_decay, maximize)
    if momentum != 0.0:
        if 'momentum_buffer' in s:
            s['momentum_buffer'].mul_(momentum).add_(g, alpha=1.0 - dampening)
        else:
            s['momentum_buffer'] = g.clone()
        if nesterov:
            g = g.add(s['momentum_buffer'], alpha=momentum)
        else:
            g = s['momentum_buffer']
    p.add_(g, alpha=-lr)

def adam(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, amsgrad: bool, maximize: bool, decoupled_weight_decay: bool):
    g = real(decayed_apart(p, g, lr, weight_decay, decoupled_weight_decay, maximize))
    m = kept(p, s, 'exp_avg')
    v = kept(p, s, 'exp_avg_sq')
    m.lerp_(g, 1.0 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    root = (1.0 - beta2 ** t) ** 0.5
    if amsgrad:
        most = kept(p, s, 'max_exp_avg_sq')
        most.copy_(torch.maximum(most, v))
        v = most
    denominator = (v.sqrt() / root).add_(eps)
    real(p).addcdiv_(m, denominator, value=-(lr / (1.0 - beta1 ** t)))

def adagrad(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, lr_decay: float, weight_decay: float, initial_accumulator_value: float, eps: float, maximize: bool):
    if 'sum' not in s:
        if p.is_complex():
            s['sum'] = torch.full_like(p, complex(initial_accumulator_value, initial_accumulator_value))
        else:
            s['sum'] = torch.full_like(p, initial_accumulator_value)
    g = real(decayed(p, g, weight_decay, maximize))
    total = real(s['sum'])
    total.addcmul_(g, g, value=1.0)
    real(p).addcdiv_(g, total.sqrt().add_(eps), value=-(lr / (1.0 + (t - 1) * lr_decay)))

def rmsprop(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool, maximize: bool):
    g = real(decayed(p, g, weight_decay, maximize))
    square = kept(p, s, 'square_avg')
    square.mul_(alpha).addcmul_(g, g, value=1.0 - alpha)
    if centered:
        mean = kept(p, s, 'grad_avg')
        mean.lerp_(g, 1.0 - alpha)
        average = square.addcmul(mean, mean, value=-1.0).sqrt_()
    else:
        average = square.sqrt()
    average = average.add_(eps)
    if momentum > 0.0:
        buffer = kept(p, s, 'momentum_buffer')
        buffer.mul_(momentum).addcdiv_(g, average)
        real(p).add_(buffer, alpha=-lr)
    else:
        real(p).addcdiv_(g, average, value=-lr)

def adamax(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, maximize: bool):
    g = real(decayed(p, g, weight_decay, maximize))
    m = kept(p, s, 'exp_avg')
    most = kept(p, s, 'exp_inf')
    m.lerp_(g, 1.0 - beta1)
    most.copy_(torch.maximum(most * beta2, g.abs() + eps))
    real(p).addcdiv_(m, most, value=-(lr / (1.0 - beta1 ** t)))

def nadam(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, momentum_decay: float, decoupled_weight_decay: bool, maximize: bool):
    if 'mu_product' not in s:
        s['mu_product'] = torch.ones([], dtype=torch.float32)
    g = real(decayed_apart(p, g, lr, weight_decay, decoupled_weight_decay, maximize))
    mu = beta1 * (1.0 - 0.5 * (0.96 ** (t * momentum_decay)))
    next_mu = beta1 * (1.0 - 0.5 * (0.96 ** ((t + 1) * momentum_decay)))
    s['mu_product'].mul_(mu)
    product = float(s['mu_product'])
    m = kept(p, s, 'exp_avg')
    v = kept(p, s, 'exp_avg_sq')
    m.lerp_(g, 1.0 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    denominator = v.div(1.0 - beta2 ** t).sqrt().add_(eps)
    real(p).addcdiv_(g, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
    real(p).addcdiv_(m, denominator, value=(-lr * next_mu) / (1.0 - product * next_mu))

def radam(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled_weight_decay: bool, maximize: bool):
    g = real(decayed_apart(p, g, lr, weight_decay, decoupled_weight_decay, maximize))
    m = kept(p, s, 'exp_avg')
    v = kept(p, s, 'exp_avg_sq')
    m.lerp_(g, 1.0 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1.0 - beta2)
    correction = 1.0 - beta2 ** t
    mean = m / (1.0 - beta1 ** t)
    longest = 2.0 / (1.0 - beta2) - 1.0
    length = longest - 2.0 * t * (beta2 ** t) / correction
    if length > 5.0:
        rect = ((length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length)) ** 0.5
        real(p).add_(mean * lr * ((correction ** 0.5) / v.sqrt().add_(eps)) * rect, alpha=-1.0)
    else:
        real(p).add_(mean * lr, alpha=-1.0)

def adadelta(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, rho: float, eps: float, weight_decay: float, maximize: bool):
    g = real(decayed(p, g, weight_decay, maximize))
    square = kept(p, s, 'square_avg')
    changes = kept(p, s, 'acc_delta')
    square.mul_(rho).addcmul_(g, g, value=1.0 - rho)
    delta = (changes + eps).sqrt_().div_((square + eps).sqrt_()).mul_(g)
    changes.mul_(rho).addcmul_(delta, delta, value=1.0 - rho)
    real(p).add_(delta, alpha=-lr)

def asgd(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, lambd: float, alpha: float, t0: float, weight_decay: float, maximize: bool):
    if 'eta' not in s:
        s['eta'] = torch.full([], lr, dtype=torch.float32)
        s['mu'] = torch.ones([], dtype=torch.float32)
    g = real(decayed(p, g, weight_decay, maximize))
    average = kept(p, s, 'ax')
    eta = float(s['eta'])
    p = real(p)
    p.mul_(1.0 - lambd * eta)
    p.add_(g, alpha=-eta)
    if float(s['mu']) == 1.0:
        average.copy_(p)
    else:
        average.add_(p.sub(average).mul_(s['mu']))
    s['eta'].fill_(lr / ((1.0 + lambd * lr * t) ** alpha))
    s['mu'].fill_(1.0 / max(1.0, t - t0))

def rprop(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, eta_minus: float, eta_plus: float, step_min: float, step_max: float, maximize: bool):
    g = real(decayed(p, g, 0.0, maximize))
    if 'step_size' not in s:
        if p.is_complex():
            s['step_size'] = torch.full_like(p, complex(lr, lr))
        else:
            s['step_size'] = torch.full_like(p, lr)
    last = kept(p, s, 'prev')
    size = real(s['step_size'])
    turn = (g * last).sign()
    factor = torch.where(turn > 0, eta_plus, torch.where(turn < 0, eta_minus, 1.0)).to(size.dtype)
    size.mul_(factor).clamp_(step_min, step_max)
    g = torch.where(turn < 0, torch.zeros_like(g), g)
    real(p).addcmul_(g.sign(), size, value=-1.0)
    last.copy_(g)

def adafactor(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, beta2_decay: float, eps1: float, eps2: float, d: float, weight_decay: float, maximize: bool):
    if p.is_complex():
        raise RuntimeError("Adafactor does not support complex parameters")
    g = decayed(p, g, 0.0, maximize)
    e = eps1
    if e < 0.0:
        e = 2.220446049250313e-16 if p.dtype == torch.float64 else 1.1920928955078125e-07
    share = float(t) ** beta2_decay
    rate = max(eps2, float(p.norm(2)) / (p.numel() ** 0.5)) * min(lr, 1.0 / (float(t) ** 0.5))
    if weight_decay != 0.0:
        p.mul_(1.0 - lr * weight_decay)
    if g.dim() > 1:
        if 'row_var' not in s:
            s['row_var'] = torch.zeros_like(g.select(-1, 0).unsqueeze(-1))
            s['col_var'] = torch.zeros_like(g.select(-2, 0).unsqueeze(-2))
        rows = s['row_var']
        columns = s['col_var']
        rows.lerp_(g.norm(2, [-1], True).square_().div_(g.size(-1)), share)
        columns.lerp_(g.norm(2, [-2], True).square_().div_(g.size(-2)), share)
        estimate = torch.matmul(rows, columns).div_(rows.mean([-2], True).clamp_(e))
    else:
        variance = kept(p, s, 'variance')
        variance.lerp_(g.square(), share)
        estimate = variance.clone()
    update = estimate.clamp_(e * e).rsqrt_().mul_(g)
    scale = max(1.0, float(update.norm(2)) / ((update.numel() ** 0.5) * d))
    p.add_(update, alpha=-rate / scale)

def muon(p: Tensor, g: Tensor, s: Dict[str, Tensor], t: int, lr: float, weight_decay: float, momentum: float, nesterov: bool, a: float, b: float, c: float, eps: float, ns_steps: int, adjust_lr_fn: str):
    if p.dim() != 2 or p.is_complex():
        raise RuntimeError("Muon takes real parameters of two dimensions")
    rows, columns = float(p.size(0)), float(p.size(1))
    if adjust_lr_fn == 'original':
        rate = lr * max(1.0, rows / columns) ** 0.5
    elif adjust_lr_fn == 'match_rms_adamw':
        rate = lr * (0.2 * max(rows, columns) ** 0.5)
    elif adjust_lr_fn == 'spectral_unclamped':
        rate = lr * (rows / columns) ** 0.5
    else:
        raise RuntimeError("adjust_lr_fn is original, match_rms_adamw or spectral_unclamped")
    buffer = kept(p, s, 'momentum_buffer')
    buffer.lerp_(g, 1.0 - momentum)
    x = (g.lerp(buffer, momentum) if nesterov else buffer).to(torch.bfloat16)
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
    p.add_(x.to(p.dtype), alpha=-rate)

# The direction of L-BFGS in the iteration after a step `d * t`, from the gradient `g` and the one before. `pairs` are the
# changes of gradients, `steps` those of parameters, `inverse` one over their products. Gives the direction and the scale.
def lbfgs_direction(g: Tensor, before: Tensor, d: Tensor, t: float, pairs: List[Tensor], steps: List[Tensor], inverse: List[Tensor], scale: Tensor, history: int):
    y = g.sub(before)
    s = d.mul(t)
    product = y.dot(s)
    if bool(product > 1e-10):
        if len(pairs) == history:
            pairs.pop(0)
            steps.pop(0)
            inverse.pop(0)
        pairs.append(y)
        steps.append(s)
        inverse.append(1.0 / product)
        scale = product / y.dot(y)
    shares: List[Tensor] = []
    q = g.neg()
    n = len(pairs)
    for k in range(n):
        i = n - 1 - k
        share = steps[i].dot(q) * inverse[i]
        shares.append(share)
        q.add_(pairs[i], alpha=-float(share))
    r = torch.mul(q, scale)
    for i in range(n):
        r.add_(steps[i], alpha=float(shares[n - 1 - i] - pairs[i].dot(r) * inverse[i]))
    return r, scale

def lbfgs_gather(gradients: List[Tensor], maximize: bool):
    parts: List[Tensor] = []
    for g in gradients:
        parts.append(real(g).reshape([-1]))
    flat = torch.cat(parts)
    if maximize:
        flat.neg_()
    return flat

def lbfgs_move(parameters: List[Tensor], d: Tensor, t: float):
    at = 0
    for p in parameters:
        x = real(p)
        n = x.numel()
        x.add_(d.narrow(0, at, n).view_as(x), alpha=t)
        at += n

def lbfgs_numbers(g: Tensor, d: Tensor):
    return float(g.dot(d)), float(g.abs().max()), float(d.abs().max()), float(g.abs().sum())

def lbfgs_negated(g: Tensor):
    return g.neg()
