"""Records what PyTorch answers for random typed graphs over extreme numbers, in the format of `flambeau check`.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_typed.py > tests/golden/typed.jsonl

Each graph mixes elementwise ops, reductions, views, choices and casts over all dtypes, ranks and numbers as second operands;
the inputs hold NaN, infinities, -0, numbers below the smallest normal, and the extremes of integers. `record_typed.py FROM TO`
records other seeds.
"""

import json
import math
import random
import re
import sys
import warnings

import torch
import torch.nn.functional as F

from record_programs import encode

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

FLOATS = [torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16]
DTYPES = FLOATS + [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
SHAPES = [[(3, 4)], [(3, 4), (4,), ()], [(5,), ()], [(2, 3, 4), (3, 4), (4,)], [(7,), (7,)], [(1, 4), (3, 1)], [()], [(33,)]]
UNARY = """neg abs exp sqrt floor ceil round trunc reciprocal square sign isnan isinf logical_not bitwise_not tanh sigmoid relu
    sin log1p positive nan_to_num real rsqrt""".split()
SMOOTH = "relu6 hardtanh hardsigmoid hardswish silu elu leaky_relu softsign hardshrink softshrink".split()
BINARY = """add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift atan2 copysign gcd lcm heaviside
    xlogy rsub ldexp""".split()
REDUCE = "sum mean amax amin prod any all softmax log_softmax cumsum max min logsumexp count_nonzero".split()
VIEWS = "transpose unsqueeze flatten select slice expand flip cat stack reshape roll pad".split()
NUMBERS = [0, 1, -1, 2, 3, 0.5, 0.0, -0.0, 1.0, 2.0, math.inf, math.nan, True, 1e30, -7, 127]


def element(dtype, rng):
    if dtype == torch.bool:
        return rng.random() < 0.5
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        extremes = [math.nan, math.inf, -math.inf, 0.0, -0.0, info.max, -info.max, info.tiny, info.tiny / 8, 1.0, -1.0, 0.5, 3.0, -2.5]
        return rng.choice(extremes) if rng.random() < 0.45 else rng.gauss(0, 2)
    info = torch.iinfo(dtype)
    extremes = [info.max, info.min, 0, 1, info.max - 1, 7, max(-1, info.min), 2]
    return rng.choice(extremes) if rng.random() < 0.6 else rng.randint(max(info.min, -20), 20)


def tensor(dtype, shape, rng):
    result = torch.tensor([element(dtype, rng) for _ in range(math.prod(shape))], dtype=dtype).reshape(shape)
    turned = len(shape) >= 2 and rng.random() < 0.25
    return result.transpose(0, 1).contiguous().transpose(0, 1) if turned else result


def reduced(name, x, dim, keep):
    if name in ("softmax", "log_softmax", "cumsum", "count_nonzero"):
        return getattr(torch, name)(x, dim)
    if name in ("max", "min"):
        return getattr(torch, name)(x, dim)[0]
    return getattr(torch, name)(x, dim, keepdim=keep)


def viewed(name, x, y, dim):
    looks = {
        "transpose": lambda: x.transpose(0, -1),
        "unsqueeze": lambda: x.unsqueeze(dim),
        "flatten": x.flatten,
        "select": lambda: x.select(0, 0),
        "slice": lambda: x[..., ::2],
        "expand": lambda: x.expand(2, *x.shape),
        "flip": lambda: x.flip(0),
        "cat": lambda: torch.cat([x, y], 0),
        "stack": lambda: torch.stack([x, x], -1),
        "reshape": lambda: x.reshape(-1),
        "roll": lambda: x.roll(1, 0),
        "pad": lambda: F.pad(x, (1, 1)),
    }
    return looks[name]()


def step(rng, count):
    """A function of the values so far."""
    i, j, k = (rng.randrange(count) for _ in range(3))
    kind, name, dim, keep, number = rng.random(), None, rng.choice([0, -1]), rng.random() < 0.5, rng.choice(NUMBERS)
    if kind < 0.24:
        name = rng.choice(UNARY)
        return lambda v: getattr(torch, name)(v[i])
    if kind < 0.3:
        name = rng.choice(SMOOTH)
        return lambda v: getattr(F, name)(v[i])
    if kind < 0.58:
        name = rng.choice(BINARY)
        if rng.random() < 0.35:
            return lambda v: getattr(torch, name)(v[i], number)
        return lambda v: getattr(torch, name)(v[i], v[j])
    if kind < 0.67:
        dtype = rng.choice(DTYPES)
        return lambda v: v[i].to(dtype)
    if kind < 0.76:
        low, high = rng.choice([(0, 1), (-1.5, 2.5), (None, 3), (2, None), (3, 1), (math.nan, None)])
        choices = [
            lambda v: torch.where(v[k] > 0, v[i], v[j]),
            lambda v: torch.clamp(v[i], low, high),
            lambda v: v[i].masked_fill(v[k] > 0, 1.5),
            lambda v: torch.clamp(v[i], v[j], v[k]),
            lambda v: torch.addcmul(v[i], v[j], v[k], value=2),
            lambda v: torch.add(v[i], v[j], alpha=2),
        ]
        return rng.choice(choices)
    if kind < 0.86:
        name = rng.choice(REDUCE)
        return lambda v: reduced(name, v[i], dim, keep)
    name = rng.choice(VIEWS)
    return lambda v: viewed(name, v[i], v[j], dim)


def dense(value):
    if isinstance(value, tuple):
        return tuple(dense(item) for item in value)
    return torch.empty(value.shape, dtype=value.dtype).copy_(value)


def case(seed):
    """The case of a seed as a line of JSON; None if it has none."""
    rng = random.Random(seed)
    shapes = rng.choice(SHAPES)
    pick = lambda: rng.choice(DTYPES) if rng.random() < 0.6 else torch.float32
    inputs = [tensor(pick(), rng.choice(shapes), rng) for _ in range(rng.randint(1, 3))]
    values, steps = [t.clone() for t in inputs], []
    for _ in range(rng.randint(2, 9)):
        for _ in range(8):
            function = step(rng, len(values))
            try:
                result = function(values)
            except Exception:
                continue
            if result.numel() <= 200:
                steps.append(function)
                values.append(result)
                break
    if not steps:
        return None

    def program(*arguments):
        so_far = list(arguments)
        for function in steps:
            so_far.append(function(so_far))
        return so_far[-1], so_far[len(arguments)]

    try:
        traced = torch.jit.trace(program, tuple(t.clone() for t in inputs), check_trace=False)
    except RuntimeError:  # Some numbers go as Python's and not as TorchScript's.
        return None
    graph = re.sub(r" # .*", "", str(traced.inlined_graph))
    if "<Tensor>" in graph or "Constant[value={" in graph:
        return None
    arguments = [encode(dense(t)) for t in inputs]
    return json.dumps({"name": f"typed.{seed}", "graph": graph, "args": arguments, "returns": encode(dense(program(*inputs)))})


# Where PyTorch's vector function of fmod gives NaN for numbers far apart, or the sign of a NaN shows.
LEFT_OUT = {63, 163, 249}


def main():
    first, last = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 260)
    for seed in range(first, last):
        line = case(seed) if seed not in LEFT_OUT else None
        if line:
            print(line)


main()
