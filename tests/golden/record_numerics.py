"""Records where the steps of PyTorch's kernels show in the answers, in the format of `flambeau check`: TorchScript source.

Run with a Python that has torch (2.15.0 was used) and numpy:

    python tests/golden/record_numerics.py > tests/golden/numerics.jsonl

Kernels of 16-bit floats that round between their steps, numbers and tensors of rank 0 that are rounded or not, quotients that
are rounded before they are cut off, complex powers and infinities, ranks of quantiles, phases far out, and the order of dimensions
in memory.
"""

import json
import math
import warnings

import torch

from record_programs import encode

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

GENERATOR = torch.Generator().manual_seed(0)
NARROW = (torch.bfloat16, torch.float16)


def numbers(dtype, *sizes, scale=2.0):
    return (torch.randn(*sizes, generator=GENERATOR, dtype=torch.float64) * scale).to(dtype)


def complexes(*sizes):
    parts = numbers(torch.float32, *sizes, 2)
    return torch.view_as_complex(parts)


def show(name, expression, *arguments, before=""):
    """Prints a case; arguments are `a`, `b`, `c`."""
    types = {torch.Tensor: "Tensor", float: "float", int: "int"}
    parameters = ", ".join(f"{n}: {types[type(a)]}" for n, a in zip("abc", arguments))
    lines = [f"def f({parameters}):"] + [f"    {line}" for line in before.splitlines()] + [f"    return {expression}", ""]
    source = "\n".join(lines)
    function = torch.jit.CompilationUnit(source).f
    case = {"name": name, "how": "source", "entry": "f", "source": source, "args": [encode(a) for a in arguments]}
    try:
        case["returns"] = encode(function(*arguments))
    except Exception as error:
        case["raises"] = {"when": "run", "class": type(error).__name__, "message": str(error)}
    print(json.dumps(case))


def narrow(dtype):
    kind = str(dtype).removeprefix("torch.")
    x, y = numbers(dtype, 5, 6), numbers(dtype, 5, 6)
    elementwise = {
        "add": "a + 0.7123456",
        "sub": "a - torch.tensor(0.7123456)",
        "mul": "a * 0.7123456",
        "div": "a / 0.7123456",
        "remainder": "torch.remainder(a, 0.7123456)",
        "pow": "torch.pow(torch.abs(a), 2.7123456)",
        "trunc": "torch.div(a, b, rounding_mode='trunc')",
        "floor": "torch.div(a, 0.0123456, rounding_mode='floor')",
        "xlogy": "torch.xlogy(a, torch.abs(b))",
        "nextafter": "torch.nextafter(a, b)",
        "mvlgamma": "torch.mvlgamma(torch.abs(a) + 3, 3)",
        "huber_loss": "torch.huber_loss(a, b, 0, 1.3)",
        "smooth_l1_loss": "torch.smooth_l1_loss(a, b, 0, 0.7)",
    }
    for name, expression in elementwise.items():
        show(f"{name}.{kind}", expression.replace("torch.huber", "torch.ops.aten.huber").replace(
            "torch.smooth", "torch.ops.aten.smooth"), x, y)
    for dim in (0, 1):
        show(f"log_softmax.{kind}.{dim}", f"torch.log_softmax(a, {dim})", x)
        show(f"logsumexp.{kind}.{dim}", f"torch.logsumexp(a, [{dim}])", x)
    show(f"vecdot.{kind}", "torch.ops.aten.linalg_vecdot(a, b)", x, y)
    show(f"histc.{kind}", "torch.histc(a, 12, -3, 3)", numbers(dtype, 200))
    show(f"segment_reduce.{kind}", "torch.segment_reduce(a, 'mean', lengths=b)", numbers(dtype, 9, 3), torch.tensor([4, 5]))
    show(f"layer_norm.{kind}", "torch.layer_norm(a, [1])", numbers(dtype, 7, 1))
    show(f"batch_norm.{kind}", "torch.native_batch_norm(a, b, c, None, None, True, 0.1, 1e-5)",
         numbers(dtype, 3, 4, 6), numbers(dtype, 4), numbers(dtype, 4))
    show(f"adaptive_avg_pool3d.{kind}", "torch.ops.aten.adaptive_avg_pool3d(a, [2, 2, 2])", numbers(dtype, 1, 2, 3, 4, 5))
    show(f"conv_transpose2d.{kind}", "torch.conv_transpose2d(a, b, c, [2, 2], [1, 1], [2, 2])",
         numbers(dtype, 1, 3, 4, 4), numbers(dtype, 3, 2, 3, 3), numbers(dtype, 2))
    show(f"upsample_linear1d.{kind}", "torch.ops.aten.upsample_linear1d(a, [11], False)", numbers(dtype, 1, 2, 7))
    show(f"upsample_trilinear3d.{kind}", "torch.ops.aten.upsample_trilinear3d(a, [5, 4, 3], False)", numbers(dtype, 1, 1, 3, 3, 4))
    for mode in (0, 1, 2):
        for padding in (0, 2):
            show(f"grid_sampler_2d.{kind}.{mode}.{padding}", f"torch.grid_sampler(a, b, {mode}, {padding}, {mode == 0})",
                 numbers(dtype, 1, 1, 4, 5), numbers(dtype, 1, 3, 4, 2, scale=0.8))
    show(f"grid_sampler_3d.{kind}", "torch.grid_sampler(a, b, 0, 2, False)",
         numbers(dtype, 1, 1, 3, 4, 5), numbers(dtype, 1, 2, 2, 3, 3, scale=0.8))


def wide():
    infinity, nan = math.inf, math.nan
    special = torch.tensor([complex(x, y) for x in (0.0, 1.0, infinity, -infinity) for y in (0.0, -2.0, infinity, -infinity)])
    for name in ("sqrt", "tanh", "tan"):
        show(f"{name}.complex64", f"torch.{name}(a)", special)
    show("add.complex64", "a + b", special, special.flip(0))
    show("pow.complex64", "torch.pow(a, b)", complexes(12), complexes(12))
    for exponent in ("0", "0.5", "-0.5", "2", "3"):
        show(f"pow.complex64.{exponent}", f"torch.pow(a, {exponent})", complexes(6))
    show("abs_.complex64", "a.abs_()", complexes(2))
    floats = torch.tensor([-infinity, infinity, nan, -0.0, 4.0, -4.0])
    show("pow.float32.-0.5", "torch.pow(a, -0.5)", floats)
    show("log_softmax.float64", "torch.log_softmax(a, 0)", torch.tensor([[infinity, 1.0], [-infinity, 2.0]], dtype=torch.float64))
    show("std_mean.float32", "torch.std_mean(a, 1)", torch.tensor([[1.0, infinity, 2.0], [1.0, 2.0, 4.0]]))
    show("var.complex64", "torch.var(a, [0], correction=3)", torch.complex(numbers(torch.float32, 3, 2), torch.zeros(3, 2)))
    ranks = torch.tensor([3.0, 1.0, -infinity, 2.0, 0.0, infinity])
    for mode in ("linear", "lower", "higher", "midpoint", "nearest"):
        show(f"quantile.{mode}", f"torch.quantile(a, b, interpolation='{mode}')", ranks, torch.tensor([0.0, 0.6, 0.7, 1.0]))
    far = torch.tensor([31.0, 100.5, 1000.25, 54321.0, 1e6])
    for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai"):
        sign = "-" if name == "airy_ai" else ""
        for dtype in (torch.float32, torch.float64):
            show(f"{name}.{str(dtype).removeprefix('torch.')}", f"torch.ops.aten.special_{name}({sign}a)", far.to(dtype))
    show("erfcx.float32", "torch.ops.aten.special_erfcx(a)", torch.tensor([-9.3, -7.1, -5.5, -0.3, 0.0, 2.5]))
    show("i0.float32", "torch.i0(a)", torch.tensor([5.0, 88.0, 89.5, -91.0]))
    top = torch.iinfo(torch.int64).max
    show("lcm.int64", "torch.lcm(a, b)", torch.tensor([-top, top, -12]), torch.tensor([100, -2, 18]))
    show("ldexp.int64", "torch.ldexp(a, b)", torch.tensor([1, 2, 3]), torch.tensor(2.0, dtype=torch.float16))
    show("upsample_bilinear2d_aa.float32", "torch.ops.aten._upsample_bilinear2d_aa(a, [3, 4], False, 1.1, 1.2)",
         numbers(torch.float32, 1, 1, 3, 4))
    for name, expression in {"dist": "torch.dist(a, a)", "trace": "torch.trace(a)", "mvlgamma": "torch.mvlgamma(a, 2)"}.items():
        show(f"{name}.bool", expression, torch.tensor([[True, False], [False, True]]))


def in_memory():
    """Sizes between elements: what has its channels last keeps them there."""
    operators = {
        "conv2d": "torch.conv2d(x, b, None, 1, 1)",
        "max_pool2d": "torch.max_pool2d(x, 2)",
        "avg_pool2d": "torch.ops.aten.avg_pool2d(x, 2)",
        "adaptive_avg_pool2d": "torch.ops.aten.adaptive_avg_pool2d(x, [2, 3])",
        "upsample_bilinear2d": "torch.ops.aten.upsample_bilinear2d(x, [5, 7], False)",
        "batch_norm": "torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, True)",
        "cat": "torch.cat([x, x], 1)",
    }
    for name, expression in operators.items():
        show(f"channels_last.{name}", "y, y.stride()", numbers(torch.float32, 1, 3, 4, 6), numbers(torch.float32, 2, 3, 3, 3),
             before=f"x = a.contiguous(memory_format=torch.channels_last)\ny = {expression}")


for dtype in NARROW:
    narrow(dtype)
wide()
in_memory()
