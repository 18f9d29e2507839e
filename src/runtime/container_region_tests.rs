//! Gradients through lists and dictionaries that branches and loops fill, change and read: those of the tape, and None where the
//! tape has none.

use super::region_tests::have_the_gradients_of_the_tape;

/// Programs as `region_tests` has them.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "outputs of iterations",
        "    outs: List[Tensor] = []
    h = x * b
    n = 0
    while n < k + 1:
        h = torch.tanh(h.mm(w)) + b
        outs.append(h)
        n += 1
    return (torch.stack(outs) ** 2).sum()
",
    ),
    (
        "maybe none at all",
        "    outs = [x + b]
    h = x * b
    for i in range(k):
        h = torch.tanh(h.mm(w))
        if i % 2 == 1:
            outs.append(h * i)
    return torch.cat(outs).sin().sum()
",
    ),
    (
        "added in place",
        "    outs: List[Tensor] = []
    h = x * b
    for i in range(k + 1):
        h = h.mm(w).sigmoid()
        outs += [h, h * 2]
    return torch.cat(outs, 1).prod(1).sum()
",
    ),
    (
        "inputs of iterations",
        "    rows = (x.mm(w) + b).unbind(0)
    h = b * 0.5
    for i in range(len(rows)):
        for j in range(k):
            h = torch.tanh(h * rows[i]) + rows[(i + j) % 3]
    return h.sum()
",
    ),
    (
        "iterated",
        "    outs: List[Tensor] = []
    h = b
    for row in (x * b).unbind(0):
        h = torch.tanh(w.mv(h) + row)
        if bool(h.sum() > k - 3):
            outs.append(h)
    total = b.sum()
    for out in outs:
        total = total + (out * out).sum()
    return total
",
    ),
    (
        "last one",
        "    outs = [x * b]
    while len(outs) <= k:
        outs.append(torch.tanh(outs[-1].mm(w)) + outs[len(outs) // 2])
    return outs[-1].sum() + outs[0].sum()
",
    ),
    (
        "states by index",
        "    hs = [x * b, x + b]
    for i in range(k):
        for l in range(2):
            hs[l] = torch.tanh(hs[l].mm(w)) + hs[1 - l]
    return (hs[0] * hs[1]).sum()
",
    ),
    (
        "states by place",
        "    hs = [x * b, x + b, x - b]
    for i in range(k):
        hs[i % 3] = torch.tanh(hs[(i + 1) % 3].mm(w)) * b
    return torch.stack(hs).sum(0).sin().sum()
",
    ),
    (
        "a dictionary of states",
        "    state = {'h': x * b, 'c': x + b}
    for i in range(k):
        state['c'] = state['c'] * torch.sigmoid(state['h'].mm(w))
        if i % 2 == 0:
            state['h'] = torch.tanh(state['c']) + b
    state['out'] = state['h'] + state['c'] if 'c' in state else state['h']
    return state['out'].sum() * len(state)
",
    ),
    (
        "parts of a list",
        "    outs: List[Tensor] = []
    h = x * b
    for i in range(k + 4):
        h = torch.sin(h.mm(w))
        outs.append(h)
    few = outs[1:k + 3:2] + outs[:1]
    return torch.stack(few).mean() + torch.stack(outs[-2:]).sum()
",
    ),
    (
        "put in front",
        "    outs = [x * b]
    for i in range(k):
        outs.insert(0, outs[0].mm(w).tanh())
        outs.insert(1, outs[0] * b)
    return (torch.stack(outs) * torch.arange(len(outs), dtype=torch.float64).view(-1, 1, 1)).sum()
",
    ),
    (
        "repeated",
        "    hs = [x * b] * (k + 1)
    total = b.sum()
    for h in hs:
        total = total * 0.5 + h.mm(w).sum()
    return total
",
    ),
    (
        "parts of unknown number",
        "    y = x.mm(w) * b
    parts = torch.split(y, max(k, 1), 1)
    total = b.mean()
    for n in range(len(parts)):
        total = total + parts[n].exp().sum() * n
    return total
",
    ),
    (
        "one of several is read",
        "    outs: List[Tensor] = []
    for i in range(k + 1):
        outs.append((x * b).mm(w) * i)
    return outs[k // 2].sum()
",
    ),
    (
        "lists in branches",
        "    if k > 2:
        outs = [x * b, x.mm(w)]
    else:
        outs = [x + b]
    for i in range(k):
        if i == 1:
            continue
        outs.append(outs[0] * i)
    return torch.cat(outs).sum()
",
    ),
    (
        "two lists",
        "    hs: List[Tensor] = []
    cs: List[Tensor] = []
    h = x * b
    c = x + b
    for i in range(k + 2):
        c = c * torch.sigmoid(h.mm(w))
        h = torch.tanh(c)
        hs.append(h)
        cs.append(c)
        if bool(c.abs().max() > 3.0):
            break
    return torch.stack(hs).sum() + cs[-1].sum() + cs[len(cs) // 2].mean()
",
    ),
    (
        "cleared",
        "    outs: List[Tensor] = []
    h = x * b
    for i in range(k + 1):
        if i % 3 == 2:
            outs.clear()
        h = h.mm(w).cos()
        outs.append(h)
    return torch.stack(outs).sum()
",
    ),
    (
        "one way changes it",
        "    outs = [x * b]
    if k > 2:
        outs.append(x.mm(w))
        for i in range(k - 3):
            outs.insert(i, outs[0] * b)
    return torch.cat(outs).sin().sum()
",
    ),
    (
        "numbers in lists",
        "    scales = [0.5]
    h = x * b
    for i in range(k):
        scales.append(scales[-1] * 1.5)
        h = h.mm(w) * scales[i] + b * scales[-1]
    return h.sum() * len(scales)
",
    ),
];

/// Programs that write to tensors, to parts of them, and in branches and loops.
const WRITES: &[(&str, &str)] = &[
    (
        "rows",
        "    out = torch.zeros(k + 1, 4, dtype=torch.float64) * b
    h = x * b
    for i in range(k + 1):
        h = torch.tanh(h.mm(w))
        out[i] = h.sum(0)
    return (out * out).sum()
",
    ),
    (
        "many rows",
        "    out = torch.zeros(70, 4, dtype=torch.float64)
    h = x * b
    for i in range(70):
        h = torch.tanh(h.mm(w)) + b
        out[i] = h.sum(0) * k
    return (out * out).sum()
",
    ),
    (
        "parts",
        "    y = x.mm(w)
    y[:, 1:3] = x[:, :2] * b[0]
    y[0] += b
    y[1, 2] = 5.0
    z = y.t()
    z[3] *= 2.0
    return (y * y).sum() + z[0].sum()
",
    ),
    (
        "views of views",
        "    y = (x * b).clone()
    v = y.view(2, 6).unsqueeze(0)
    u = v[0, 1]
    u.mul_(w[0, 0])
    v[:, :, 2:4].add_(b[:2])
    y.diagonal().copy_(w[0, :3])
    return (y.permute(1, 0) * y.t()).sum() * k
",
    ),
    (
        "where some way is taken",
        "    y = x + b
    for i in range(k):
        if i % 2 == 0:
            y[i % 3].copy_(b * i)
        else:
            y.mul_(w[0])
    return torch.sin(y).sum()
",
    ),
    (
        "forgotten",
        "    y = x * b
    y.zero_()
    z = x.mm(w)
    z[:2].fill_(1.5)
    if k > 2:
        z.fill_(2.0)
    return (y + z).sum() + b.sum() * 0.5
",
    ),
    (
        "masks and places",
        "    y = x.mm(w) * b
    y.masked_fill_(y > 0.5, 0.25)
    y[torch.tensor([0, 2])] = b
    y.index_add_(0, torch.tensor([1]), (b * 2).unsqueeze(0))
    for i in range(k):
        y[:, i % 4].masked_fill_(x[:, 0] > 0.1, 1.0)
    return (y * y).sum()
",
    ),
    (
        "read before and after",
        "    y = x * b
    before = y[0] * 2
    y[0] = w[0]
    after = torch.cat([y[0], before])
    row = y[1]
    y[1].mul_(3.0)
    return after.sum() + (row * row).sum() * k
",
    ),
    (
        "writes in loops of loops",
        "    out = x.new_zeros([3, 4])
    for i in range(k):
        for j in range(3):
            out[j] = out[(j + i) % 3].clone() * b + x[j]
    return out.mm(w).sum()
",
    ),
];

/// Tuples, optional tensors and sums in place that branches and loops carry.
const CARRIED: &[(&str, &str)] = &[
    (
        "tuples",
        "    t = (x * b, x + b)
    for i in range(k):
        if i % 3 == 1:
            t = (t[1] * 2, t[0])
        else:
            t = (t[1], t[0].mm(w).tanh())
    return (t[0] * t[1]).sum()
",
    ),
    (
        "tuples in tuples",
        "    t = ((x * b, 1), x)
    if k > 1:
        t = ((x + b, k), x * 2)
    a, c = t
    return (a[0].mm(w) * a[1] + c).sum()
",
    ),
    (
        "maybe a tensor",
        "    h: Optional[Tensor] = None
    for i in range(k):
        if h is None:
            h = (x * b).tanh()
        else:
            h = h.mm(w) + b
    if h is None:
        h = x.mm(w)
    return (h * h).sum()
",
    ),
    (
        "the best so far",
        "    best: Optional[Tensor] = None
    for i in range(k):
        h = (x[i % 3] * b).sum() * (i - 2)
        if best is None or bool(h > best):
            best = h
    if best is not None:
        return best * 2
    return w.sum()
",
    ),
    (
        "early returns that are not taken",
        "    for i in range(k):
        if i == 5:
            return (x * b).sum()
    return x.mm(w).sin().sum()
",
    ),
    (
        "sums in place",
        "    total = torch.zeros_like(x) * b
    for i in range(k):
        total += x[i % 3] * b
        total[0] *= w[1, 1]
    return (total * x).sum()
",
    ),
    (
        "two loops that swap",
        "    a = x * b
    c = x.mm(w)
    for i in range(k):
        a, c = b * 2 + x, a
    for i in range(k):
        c = x.mm(w)
    return (c * 1).sum()
",
    ),
    (
        "continued",
        "    a = x * b
    for i in range(k):
        r = a[i % 3]
        if i == 2:
            continue
        r *= b.sigmoid()
        r[0] = i
    return (a * a).sum()
",
    ),
];

/// What gets other names: lists that iterations recreate, tensors that lists keep, early exits around both.
const RENAMED: &[(&str, &str)] = &[
    (
        "made anew and appended to",
        "    outs = [x * b, x.mm(w)]
    for i in range(k):
        outs = outs[1:] + [outs[0].sin()]
        outs.append(outs[-1] * b)
    outs.append(x)
    return torch.stack(outs).cos().sum()
",
    ),
    (
        "a window of the last",
        "    window = [x, x * b]
    total = x.sum()
    n = 0
    while n < k + 2:
        n += 1
        h = torch.tanh(window.pop(0).mm(w) + window[-1])
        window.append(h)
        if n == 3:
            continue
        window = window[-2:]
        total = total + h.sum()
        if n > 4:
            break
        window.append(h * 2)
    return total * b.sum()
",
    ),
    (
        "turned round and taken out",
        "    outs = [x + b, x * b, x.mm(w)]
    y = x * b
    for i in range(k % 3):
        outs.reverse()
        y = y + outs.pop() * outs.pop(-1)
        outs.insert(0, y)
        outs.append(y.sin())
    return (y * outs[0]).sum() + torch.stack(outs).sum()
",
    ),
    (
        "kept once it is written",
        "    outs = [x]
    h = x * b
    n = 0
    while n < k:
        n += 1
        h = h.clone()
        h[n % 3] = (b * n).sin()
        outs += [h, h * b]
        if n % 2 == 0:
            continue
        g = torch.stack(outs).mean(0)
        g[:, 1:3] += b[:2]
        h = g.detach() if k == 4 else g
    return torch.cat(outs).sin().sum() + h.sum()
",
    ),
    (
        "a branch that makes another",
        "    outs = [x.mm(w)]
    if k > 2:
        outs = outs + [x * b]
    elif k == 1:
        outs = [x * b, outs[0] * 3]
    outs.append(b * x.sin())
    y = x
    for i in range(len(outs)):
        if i > k:
            break
        y = y * outs[i].sigmoid()
        outs[i] = y
    return torch.stack(outs).sum()
",
    ),
    (
        "a return within iterations",
        "    a = (x * b, x.mm(w))
    for i in range(k):
        for j in range(2):
            if i + j == 3:
                return (a[0] * a[1]).sum()
            a = (a[1], a[0].sin())
    return (a[0] * b).sum()
",
    ),
    (
        "written behind a branch",
        "    y = x.mm(w)
    if k > 2:
        y = y * b
    y[0] = b.sin()
    y += x
    for i in range(k):
        y[i % 3] *= b
        if i % 2 == 1:
            y = y.cos()
            y[:, 1] = 0.5
        y = y + x
    y.t()[1].add_(w[0, :3])
    return (y * y).sum()
",
    ),
    (
        "the same question twice",
        "    y = x * b
    if k > 2:
        y = y.mm(w)
    z = y.sin()
    if k > 2:
        z = z * b
        y = y + z
    return (y * z).sum()
",
    ),
];

#[test]
fn what_gets_other_names_has_the_gradients_of_the_tape() {
    have_the_gradients_of_the_tape(RENAMED);
}

#[test]
fn what_is_carried_has_the_gradients_of_the_tape() {
    have_the_gradients_of_the_tape(CARRIED);
}

#[test]
fn writes_to_tensors_have_the_gradients_of_the_tape() {
    have_the_gradients_of_the_tape(WRITES);
}

#[test]
fn containers_in_branches_and_loops_have_the_gradients_of_the_tape() {
    have_the_gradients_of_the_tape(PROGRAMS);
}
