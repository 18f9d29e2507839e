"""Records training runs of PyTorch: python tests/golden/training/record.py

A small model with batch norm (behind no bias: its gradient would be rounding noise) and dropout (model.pt), its data (data.npz), and what PyTorch makes of them: losses of plain runs with
each optimizer and schedule (runs.json), a checkpoint in the middle of a run (half.ck), the losses of its second half. A model whose buffers are written
in several ways (buffers.pt) and what three steps make of it (buffers.json); the same of a model that draws random numbers in several ways
(draws.pt, draws.json).
"""
import base64, json, os, sys
import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, BATCH = 6, 8


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(5, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.25))
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))


class Written(torch.nn.Module):
    """Writes to buffers: batch norm that is called twice, one with a cumulative average, a counter, an average that nothing reads, and one
    that the call reads before and after it writes to it."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(5, 8, bias=False)
        self.twice = torch.nn.BatchNorm1d(8)
        self.cumulative = torch.nn.BatchNorm1d(8, momentum=None, affine=False)
        self.head = torch.nn.Linear(8, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.zeros(8))
        self.register_buffer("scale", torch.ones(8))

    def forward(self, x):
        self.calls.add_(1)
        h = torch.relu(self.twice(self.first(x)))
        h = self.twice(h) * self.scale.clone()
        self.average.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        self.scale.mul_(1.5)
        return self.head(self.cumulative(h * self.scale))


class Drawn(torch.nn.Module):
    """Draws random numbers: dropout in several forms, of a transposed tensor, in attention and between recurrent layers, noise that is added,
    and branches that are left out."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(5, 8)
        self.drop = torch.nn.Dropout(0.3)
        self.channels = torch.nn.Dropout1d(0.4)
        self.alpha = torch.nn.AlphaDropout(0.2)
        self.over_time = torch.nn.LSTM(4, 4, num_layers=2, dropout=0.25, batch_first=True)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        h = self.drop(torch.relu(self.first(x)))
        h = h + torch.nn.functional.dropout(h.t(), 0.5, self.training).t() + 0.1 * torch.randn_like(h)
        pairs = h.view(-1, 2, 4)
        pairs = pairs + self.channels(pairs)
        pairs = pairs + torch.nn.functional.scaled_dot_product_attention(pairs, pairs, pairs, dropout_p=0.2)
        noise = torch.empty([pairs.size(0), 1, 1], dtype=pairs.dtype)
        noise = noise.bernoulli_(0.8)
        noise.div_(0.8)
        pairs = pairs + self.over_time(pairs)[0] * noise
        return self.head(self.alpha(pairs.reshape(-1, 8)) + torch.rand([8]))


def few_steps(name, model):
    torch.manual_seed(0)
    torch.jit.script(model()).save(f"{HERE}/{name}.pt")
    model, losses = torch.jit.load(f"{HERE}/{name}.pt").train(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    source = loader(dict(np.load(f"{HERE}/data.npz")), False)
    torch.manual_seed(0)
    # Its executor differentiates dropout by a formula of its own from the second call on, which draws other numbers.
    with torch.jit.optimized_execution(False):
        train(model, optimizer, 3, source, losses)
    with open(f"{HERE}/{name}.json", "w") as out:
        json.dump({"losses": losses, "after": {k: bits(t) for k, t in model.state_dict().items() if t.is_floating_point()}}, out, indent=0)


def batches(loader):
    while True:
        yield from loader


def train(model, optimizer, steps, loader, losses, schedule=None, clip=None):
    while len(losses) < steps:
        x, y = next(loader)

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            return loss

        loss = optimizer.step(closure)
        if schedule is not None:
            schedule.step()
        losses.append(loss.item())


def loader(data, shuffle):
    set_ = torch.utils.data.TensorDataset(torch.from_numpy(data["x"]), torch.from_numpy(data["y"]))
    return batches(torch.utils.data.DataLoader(set_, batch_size=BATCH, shuffle=shuffle))


def bits(tensor):
    return base64.b64encode(tensor.detach().contiguous().numpy().tobytes()).decode()


def main():
    few_steps("buffers", Written)
    few_steps("draws", Drawn)
    torch.manual_seed(0)
    torch.jit.script(Net().eval()).save(f"{HERE}/model.pt")
    rng = np.random.default_rng(0)
    data = {"x": rng.standard_normal((20, 5)).astype(np.float32), "y": rng.integers(0, 3, 20)}
    np.savez(f"{HERE}/data.npz", **data)
    O, S = torch.optim, torch.optim.lr_scheduler
    optimizers = {
        "sgd(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)": lambda p: O.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        "adam(lr=0.01)": lambda p: O.Adam(p, lr=0.01),
        "adamw(lr=0.01, amsgrad=True)": lambda p: O.AdamW(p, lr=0.01, amsgrad=True),
        "adagrad(lr=0.05)": lambda p: O.Adagrad(p, lr=0.05),
        "rmsprop(lr=0.01, momentum=0.5, centered=True)": lambda p: O.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
        "adamax(lr=0.01)": lambda p: O.Adamax(p, lr=0.01),
        "nadam(lr=0.01)": lambda p: O.NAdam(p, lr=0.01),
        "radam(lr=0.01)": lambda p: O.RAdam(p, lr=0.01),
        "adadelta(lr=1.0)": lambda p: O.Adadelta(p, lr=1.0),
        "asgd(lr=0.05, t0=2.0)": lambda p: O.ASGD(p, lr=0.05, t0=2.0),
        "rprop(lr=0.01)": lambda p: O.Rprop(p, lr=0.01),
        "adafactor(lr=0.05)": lambda p: O.Adafactor(p, lr=0.05),
        "lbfgs(lr=0.5, max_iter=4)": lambda p: O.LBFGS(p, lr=0.5, max_iter=4),
        "lbfgs(max_iter=4, line_search_fn='strong_wolfe')": lambda p: O.LBFGS(p, max_iter=4, line_search_fn="strong_wolfe"),
    }
    schedules = {
        "step(step_size=2, gamma=0.5)": lambda o: S.StepLR(o, 2, 0.5),
        "multistep(milestones=[2, 4], gamma=0.3)": lambda o: S.MultiStepLR(o, [2, 4], 0.3),
        "constant(factor=0.5, total_iters=3)": lambda o: S.ConstantLR(o, 0.5, 3),
        "linear(total_iters=4)": lambda o: S.LinearLR(o, total_iters=4),
        "exponential(gamma=0.8)": lambda o: S.ExponentialLR(o, 0.8),
        "polynomial(total_iters=8, power=2.0)": lambda o: S.PolynomialLR(o, 8, 2.0),
        "cosine(T_max=4, eta_min=0.001)": lambda o: S.CosineAnnealingLR(o, 4, 0.001),
        "cosine_restarts(T_0=2, T_mult=2)": lambda o: S.CosineAnnealingWarmRestarts(o, 2, 2),
        "onecycle(max_lr=0.2, total_steps=12)": lambda o: S.OneCycleLR(o, 0.2, 12, cycle_momentum=False),
        "linear(start_factor=0.1, total_iters=3) until 3 then cosine(T_max=6)":
            lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, total_iters=3), S.CosineAnnealingLR(o, 6)], [3]),
    }
    runs = []

    def record(words, make, schedule=None, shuffle=False, clip=None):
        model = torch.jit.load(f"{HERE}/model.pt").train()
        optimizer = make(model.parameters())
        rates = []
        sched = schedule[1](optimizer) if schedule else None
        torch.manual_seed(0)
        losses = []
        source = loader(data, shuffle)
        for n in range(STEPS):
            rates.append(optimizer.param_groups[0]["lr"])
            train(model, optimizer, n + 1, source, losses, sched, clip)
        run = {"optimizer": words, "losses": losses, "rates": rates, "shuffle": shuffle, "clip": clip,
               "schedule": schedule[0] if schedule else None,
               "after": {name: bits(t) for name, t in model.state_dict().items() if t.is_floating_point()}}
        runs.append(run)

    for words, make in optimizers.items():
        record(words, make)
    first = next(iter(optimizers))
    for schedule in schedules.items():
        record(first, optimizers[first], schedule)
    record(first, optimizers[first], shuffle=True, clip=0.5)
    with open(f"{HERE}/runs.json", "w") as out:
        json.dump(runs, out, indent=0)

    # A run that PyTorch leaves in the middle, and how it goes on.
    model = torch.jit.load(f"{HERE}/model.pt").train()
    optimizer = O.AdamW([{"params": model.body.parameters(), "lr": 0.02}, {"params": model.head.parameters()}], lr=0.01)
    torch.manual_seed(0)
    losses, source = [], loader(data, False)
    train(model, optimizer, 3, source, losses)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "step": 3}, f"{HERE}/half.ck")
    train(model, optimizer, STEPS, source, losses)
    with open(f"{HERE}/half.json", "w") as out:
        json.dump({"losses": losses, "after": {k: bits(t) for k, t in model.state_dict().items() if t.is_floating_point()}}, out, indent=0)


def go_on(file):
    """Goes on from a checkpoint of `flambeau train` (AdamW as above, data in order) and prints the losses of the steps after it."""
    data = dict(np.load(f"{HERE}/data.npz"))
    state = torch.load(file)
    model = torch.jit.load(f"{HERE}/model.pt").train()
    model.load_state_dict(state["model"])
    optimizer = torch.optim.AdamW([{"params": model.body.parameters(), "lr": 0.02}, {"params": model.head.parameters()}], lr=0.01)
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])
    losses, source = list(state["losses"]), loader(data, False)
    for _ in losses:
        next(source)
    torch.set_rng_state(state["rng"])
    train(model, optimizer, STEPS, source, losses)
    print(json.dumps([float(x) for x in losses]))


if __name__ == "__main__":
    if sys.argv[1:] == ["draws"]:
        few_steps("draws", Drawn)
    elif sys.argv[1:]:
        go_on(sys.argv[1])
    else:
        main()
