"""Records what PyTorch's elementwise kernels make of extreme numbers, in the format of `flambeau check`: TorchScript source.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_extremes.py > tests/golden/extremes.jsonl

NaN, infinities, zeros of both signs, denormals, the largest numbers, and the extremes of integers; several ops in a chain, so that the
default pipeline compiles them as one kernel. A case answers the value and the sign of what is not NaN. Tensors fill whole vectors:
the elements that are left over go through other code in PyTorch, which differs in a few of these. Left out is where PyTorch's own
answer depends on that: remainders of quotients beyond the dtype, the larger of -0 and 0, gelu of inf.
"""

import json
import math
import warnings

import torch

from record_programs import encode

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

INF, NAN = math.inf, math.nan
LANES = 32
COMMON = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 2.5, -2.5, 3.5, 100.5, -100.5, INF, -INF, NAN, 0.1, -0.1]
FLOATS = {
    torch.float32: [1e-45, -1e-45, 1e-40, 1.17549435e-38, 3.4028235e38, -3.4028235e38, 1e30, -1e30, 88.0, 89.0, -88.0, -104.0,
                    16777217.0, 2147483648.0, -2147483648.0, 9.3e18, 0.9999999, 1.0000001],
    torch.float64: [5e-324, -5e-324, 1e-310, 1.7976931348623157e308, -1.7976931348623157e308, 1e300, 709.0, -745.0, 9007199254740993.0,
                    9.3e18, -9.3e18],
    torch.float16: [6e-8, -6e-8, 1e-5, 6.1e-5, 65504.0, -65504.0, 300.0, 11.0, -17.0, 2049.0, 0.9995, 0.3333, 1.7],
    torch.bfloat16: [1e-40, 1.1754944e-38, 3.38e38, -3.38e38, 1e20, 88.0, 89.0, -104.0, 257.0, 0.996, 0.3333, 1.7],
}
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]

UNARY = {
    **{name: f"torch.{name}(a)" for name in (
        "abs", "exp", "exp2", "expm1", "log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "relu", "floor",
        "ceil", "round", "trunc", "frac", "sign", "square", "selu", "celu", "isnan", "isinf", "isfinite", "nan_to_num")},
    **{name: f"torch.nn.functional.{name}(a)" for name in (
        "relu6", "silu", "softplus", "hardswish", "hardsigmoid", "hardtanh", "elu", "leaky_relu", "softsign")},
    "clamp": "torch.clamp(a, -1.0, 2.0)",
    "clamp_nan": "torch.clamp(a, float('nan'), 2.0)",
    "clamp_min": "torch.clamp_min(a, 0)",
    "clamp_max": "torch.clamp_max(a, 0)",
    "log1p": "torch.log1p(torch.abs(a))",
    **{f"pow_{e}": f"torch.pow(a, {e})" for e in ("2", "3", "0.5", "-0.5", "-1.0", "-2", "0", "2.5")},
    "scalar_pow": "torch.pow(2.0, a)",
    "threshold": "torch.threshold(a, 0.5, 7.0)",
    "mul_add": "(a * 0.3 + 0.7) * a - 0.1",
    "div": "(a / 3 + 1) / 0.3",
    "log_softmax_of_two": "torch.log(torch.softmax(torch.stack([a, torch.zeros_like(a)], 1), 1))",
}
BINARY = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "sum_of_products": "a * b + a", "lt": "a < b", "ge": "a >= b",
    "eq": "a == b", "where": "torch.where(a < b, a, b)", "atan2": "torch.atan2(a, b)", "copysign": "torch.copysign(a, b)",
    "maximum_of_abs": "torch.maximum(torch.abs(a), torch.abs(b))", "minimum_of_abs": "torch.minimum(torch.abs(a), torch.abs(b))",
    "pow": "torch.pow(a, b)", "nextafter": "torch.nextafter(a, b)", "chain": "(a + b) * b - a / 3",
}
WHOLE = {
    "add": "a + b", "mul": "a * b", "floor": "torch.div(a, b, rounding_mode='floor')", "trunc": "torch.div(a, b, rounding_mode='trunc')",
    "remainder": "torch.remainder(a, b)", "fmod": "torch.fmod(a, b)", "div": "a / b", "maximum": "torch.maximum(a, b)",
    "xor": "torch.bitwise_xor(a, b)", "chain": "(a + b) * b - a",
}


def filled(values, dtype):
    """The values as a tensor that fills whole vectors."""
    tensor = torch.tensor(values, dtype=torch.float64 if dtype.is_floating_point else torch.int64).to(dtype)
    return tensor.repeat(-(-len(tensor) // LANES) * LANES // len(tensor) + 1)[: -(-len(tensor) // LANES) * LANES]


def pairs(values, others, dtype):
    """All pairs of two lists of values, as two tensors."""
    both = [(x, y) for x in values for y in others]
    return filled([x for x, _ in both], dtype), filled([y for _, y in both], dtype)


def show(name, expression, *arguments):
    """Prints a case; the arguments are `a` and `b`."""
    names = {"torch": torch, **dict(zip("ab", arguments))}
    try:
        value = eval(expression, names)
    except (RuntimeError, NotImplementedError):
        return
    chain = f"torch.neg({expression})" if value.dtype != torch.bool else f"torch.logical_not({expression})"
    answer = "y, torch.signbit(torch.nan_to_num(y, 1.0))" if value.is_floating_point() else "y"
    parameters = ", ".join(f"{n}: Tensor" for n, _ in zip("ab", arguments))
    source = f"def f({parameters}):\n    y = {chain}\n    return {answer}\n"
    y = eval(chain, names)
    returns = eval(answer, {"torch": torch, "y": y})
    print(json.dumps({"name": name, "how": "source", "entry": "f", "source": source, "args": [encode(a) for a in arguments],
                      "returns": encode(returns)}))


def record():
    for dtype, own in FLOATS.items():
        kind = str(dtype).removeprefix("torch.")
        for name, expression in UNARY.items():
            show(f"{name}.{kind}", expression, filled(COMMON + own, dtype))
        few = [0.0, -0.0, 1.0, -1.0, 2.5, INF, -INF, NAN, own[0], max(own), min(own)]
        for name, expression in BINARY.items():
            show(f"{name}.{kind}", expression, *pairs(few, few, dtype))
        for whole in INTEGERS:
            info = torch.iinfo(whole)
            inside = [x for x in COMMON + own if math.isfinite(x) and info.min <= x <= min(info.max, 2**62)]
            show(f"to_{str(whole).removeprefix('torch.')}.{kind}", f"a.to({whole})", filled(inside, dtype))
    for whole in INTEGERS:
        info = torch.iinfo(whole)
        kind = str(whole).removeprefix("torch.")
        values = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1]
        # The least number over -1 traps in PyTorch.
        divisors = [1, 2, 3, 7, info.max, info.max - 1] + ([-2, -3, info.min] if info.min < 0 else [])
        for name, expression in WHOLE.items():
            show(f"{name}.{kind}", expression, *pairs(values, divisors, whole))
        for dtype in FLOATS:
            show(f"to_{str(dtype).removeprefix('torch.')}.{kind}", f"a.to({dtype})", filled(values, whole))


record()
