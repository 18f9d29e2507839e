"""Records programs of torch.export (.pt2) with PyTorch's answers: control flow, sizes left open, buffers that change, trees of
arguments and results, guards.

    python tests/golden/record_exported.py > tests/golden/exported.jsonl        (with torch 2.15.0)
"""

import base64
import collections
import io
import json
import logging
import warnings
import zipfile

import torch
import torch.nn as nn
from torch.export import Dim

from record_programs import encode

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
BATCH = Dim("B")


def tree(x):
    """A value with dictionaries of any values."""
    if isinstance(x, dict):
        return {"dict": [[tree(key), tree(value)] for key, value in x.items()]}
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return {"list" if isinstance(x, list) else "tuple": [tree(item) for item in x]}
    return encode(x)


def packed(archive):
    """The same archive, deflated and without the example's arguments."""
    smaller = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(smaller, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            if "sample_inputs" not in entry:
                new.writestr(zipfile.ZipInfo(entry), old.read(entry), zipfile.ZIP_DEFLATED)
    return base64.b64encode(smaller.getvalue()).decode()


def record(name, module, args, kwargs=None, call=None, sizes=None, decomposed=False, fails=None):
    """One case: exported with `args`, called with `call` if that is given."""
    kwargs = kwargs or {}
    with torch.no_grad():
        program = torch.export.export(module, args, kwargs, dynamic_shapes=sizes)
        if decomposed:
            program = program.run_decompositions()
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        given = call or args
        case = {"name": name, "entry": "forward", "pt": packed(buffer.getvalue()),
                "args": [tree(x) for x in (*given, *kwargs.values())]}
        loaded = torch.export.load(io.BytesIO(buffer.getvalue())).module()
        given = [x.clone() if isinstance(x, torch.Tensor) else x for x in given]
        try:
            case["returns"] = tree(loaded(*given, **kwargs))
            assert fails is None
            if any(isinstance(x, torch.Tensor) and not torch.equal(x, y) for x, y in zip(given, call or args)):
                case["args_after"] = [tree(x) for x in (*given, *kwargs.values())]
        except AssertionError as error:  # of which TorchScript's programs make an Error with the class in its message
            case["raises"] = {"when": "run", "class": "Error", "message": f"builtins.AssertionError: {error}"}
    print(json.dumps(case))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(3))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.c = torch.arange(3.0)

    def forward(self, x):
        self.n.add_(x)
        x.mul_(2)
        return self.n * self.c + self.hidden, x[1:], x.shape[0]


class Trees(nn.Module):
    def forward(self, x, d, pair, y=None, flag=True, *, k=2.0):
        z = x if y is None else x + y
        a, b = pair
        n = x.shape[0]
        z = z * k if flag else z
        return {"z": z, "all": [a + d["u"], (b, n, n * 2 + 1, n // 2)], "none": None, "flag": flag}


class Ordered(nn.Module):
    def forward(self, xs):
        return collections.OrderedDict(a=xs[0] + 1, b=xs[1] - 1)


class Branch(nn.Module):
    def forward(self, x, n):
        y = torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))
        i, v = torch._higher_order_ops.while_loop(
            lambda i, v: i < n, lambda i, v: (i + 1, v * 2), (torch.zeros((), dtype=torch.int64), y))
        return v, i, x.sum().item()


class Map(nn.Module):
    def forward(self, xs, y):
        return torch._higher_order_ops.map(lambda x, y: x * y + 1, xs, y)


class Scan(nn.Module):
    def forward(self, xs, start):
        return torch._higher_order_ops.scan(lambda carry, x: (carry + x, carry * x), start, xs)


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            y = self.layer(x)
        with torch.autocast("cpu", enabled=False):
            y = self.layer(y)
        return y + 1


class Data(nn.Module):
    """Sizes that only the data say."""

    def forward(self, x):
        found = x[x > 0]
        torch._check(found.shape[0] >= 0)
        return found * 2, torch.nonzero(x), found.sum() / (found.shape[0] + 1)


class Numbers(nn.Module):
    """Numbers where operators have tensors, of each kind."""

    def forward(self, x, n):
        return (x + 1, 2 - x, x * 2.5, x / 3, x // 2, x % 3, x**2, 2**x, x > 0, torch.where(x > 0, x, 0.5), n + 1, n * 1.5,
                n / 2, torch.clamp(x, min=0), x.to(torch.float64), torch.full((2,), 7), torch.arange(3), n & 3)


class Powers(nn.Module):
    """Powers of sizes, which stay ints."""

    def forward(self, x):
        side = x.shape[0] // 2
        return torch.arange(side**2 + 1), x.sum() * (x.shape[0] ** 2)


class NumbersFirst(nn.Module):
    """Numbers where operators want tensors, in front: they count as numbers, whatever is behind them."""

    def forward(self, x, n, scalar):
        op = torch.ops.aten
        of = [x, n, scalar, x.half()]
        out = [op.sub.Tensor(1.0, t) for t in of] + [op.add.Tensor(0.1, t, alpha=2) for t in of]
        out += [op.mul.Tensor(2.5, t) for t in of] + [op.div.Tensor(1.0, t) for t in of]
        out += [op.sub.Tensor(3, t, alpha=2) for t in of] + [op.add.Tensor(3, t) for t in of]
        out += [op.div.Tensor_mode(7, t, rounding_mode="floor") for t in of] + [op.floor_divide.default(7.5, t) for t in of]
        return out + [op.true_divide.Tensor(1, n)]


class Chosen(nn.Module):
    """A layer on rows of which there may be none."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(x[x[:, 0] > 0]).relu()


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(2)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16, 3), nn.Dropout(0.1))

    def forward(self, x):
        return self.head(self.pool(torch.relu(self.norm(self.conv(x)))))


def main():
    torch.manual_seed(0)
    x = torch.randn(4, 3)
    record("counter", Counter(), (torch.randn(3),))
    record("counter.decomposed", Counter(), (torch.randn(3),), decomposed=True)
    trees = ({"u": torch.randn(3)}, (torch.randn(3), torch.randn(2)))
    record("trees", Trees(), (x, *trees))
    record("trees.keywords", Trees(), (x, *trees, torch.randn(3), False), {"k": 3.0})
    record("trees.sizes", Trees(), (x, *trees), call=(torch.randn(7, 3), *trees),
           sizes={"x": {0: BATCH}, "d": {"u": None}, "pair": (None, None)})
    record("ordered", Ordered(), ([x, x + 1],))
    record("branch", Branch(), (torch.ones(3), torch.tensor(3)))
    record("branch.other", Branch(), (torch.ones(3), torch.tensor(3)), call=(-torch.ones(3), torch.tensor(0)))
    record("map", Map(), (x, torch.randn(3)))
    record("scan", Scan(), (x, torch.randn(3)))
    with torch.enable_grad():
        record("modes", Modes(), (x,))
    record("data", Data(), (torch.randn(6),), call=(torch.tensor([-1.0, 2, 3, -4, 0, 5]),))
    record("numbers", Numbers(), (torch.randn(3), torch.tensor([1, 2, 3])))
    image = torch.randn(2, 2, 5, 5)
    record("layers", Layers().eval(), (image,), call=(torch.randn(3, 2, 5, 5),), sizes={"x": {0: BATCH}})
    record("layers.decomposed", Layers().eval(), (image,), decomposed=True)
    record("norm.training", nn.BatchNorm2d(2).train(), (image,))
    record("norm.training.decomposed", nn.BatchNorm2d(2).train(), (image,), decomposed=True)
    record("lstm", nn.LSTM(3, 2, batch_first=True).eval(), (torch.randn(2, 4, 3),))
    record("attention", nn.MultiheadAttention(4, 2, batch_first=True).eval(), (torch.randn(1, 3, 4),) * 3)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        record(f"linear.{str(dtype)[6:]}", nn.Linear(3, 2).to(dtype), (x.to(dtype),))
    both = Dim("S", max=9)

    class Two(nn.Module):
        def forward(self, x, d):
            return x * d["u"]

    sizes = {"x": {0: both}, "d": {"u": {0: both}}}
    two = (torch.randn(4, 3), {"u": torch.randn(4, 1)})
    for name, call in [("size", (torch.randn(4, 2), two[1])), ("symbol", (two[0], {"u": torch.randn(5, 1)})),
                       ("range", (torch.randn(12, 3), {"u": torch.randn(12, 1)}))]:
        record(f"guard.{name}", Two(), two, call=call, sizes=sizes, fails=True)
    record("guard.constant", Trees(), (x, *trees, None, True), call=(x, *trees, None, False), fails=True)
    record("powers", Powers(), (torch.arange(6.0),), call=(torch.arange(8.0),), sizes={"x": {0: BATCH}})
    record("chosen", Chosen(), (x,), call=(-x.abs(),))
    record("numbers.first", NumbersFirst(), (torch.randn(3), torch.tensor([1, 2, 3]), torch.tensor(0.3)))


main()
