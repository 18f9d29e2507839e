"""Records quantization simulated in floats, in the format of `flambeau check`: fake_quantize operators, observers, QAT,
and layers with 8-bit weights in plain tensors.

usage: python tests/golden/record_fake_quantize.py [--all] > tests/golden/fake_quantize.jsonl     (with torch 2.15.0)

--all: every observer and fake-quantize module, in all schemes, where the small file holds one of each kind.
"""
import base64
import io
import json
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
import torch.ao.quantization as quantization
from torch.ao.quantization import fake_quantize, observer

from record_programs import encode

ALL = "--all" in sys.argv
PROGRAMS = '''
def tensor(x: Tensor, scale: float, zero: int, low: int, high: int):
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)
def masked(x: Tensor, scale: float, zero: int, low: int, high: int):
    return torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, scale, zero, low, high)
def tensors(x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int):
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)
def channels(x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int):
    return torch.fake_quantize_per_channel_affine(x, scale, zero, axis, low, high)
def channels_masked(x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int):
    return torch.ops.aten.fake_quantize_per_channel_affine_cachemask(x, scale, zero, axis, low, high)
def learned(x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int):
    return torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero, low, high, 0.5)
def learned_channels(x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int):
    return torch._fake_quantize_learnable_per_channel_affine(x, scale, zero, axis, low, high, 0.5)
def observed(x: Tensor, on: Tensor, fake: Tensor, low: Tensor, high: Tensor, scale: Tensor, zero: Tensor, per_row: bool, symmetric: bool):
    y = torch.fused_moving_avg_obs_fake_quant(x, on, fake, low, high, scale, zero, 0.01, -128, 127, 0, per_row, symmetric)
    return y, low, high, scale, zero
def qparams(x: Tensor, reduce_range: bool):
    return torch._choose_qparams_per_tensor(x, reduce_range)
def optimized(x: Tensor, bits: int):
    return torch.choose_qparams_optimized(x, x.numel(), 200, 0.16, bits)
def lin(x: Tensor, w: Tensor, b: Tensor):
    q, col, s, z = torch.fbgemm_linear_quantize_weight(w)
    p = torch.fbgemm_pack_quantized_matrix(q)
    return torch.fbgemm_linear_int8_weight(x, q, p, col, s, z, b), q, col, s, z, torch.fbgemm_linear_int8_weight_fp32_activation(x, q, p, col, s, z, b)
def lstm(x: Tensor, h: Tensor, c: Tensor, w: Tensor, v: Tensor, b: Tensor):
    q, col, s, z = torch.fbgemm_linear_quantize_weight(w)
    p = torch.fbgemm_pack_quantized_matrix(q)
    q2, col2, s2, z2 = torch.fbgemm_linear_quantize_weight(v)
    p2 = torch.fbgemm_pack_quantized_matrix(q2)
    return torch.quantized_lstm_cell(x, [h, c], q, q2, b, b * 2, p, p2, col, col2, s, s2, z, z2)
def gru(x: Tensor, h: Tensor, w: Tensor, v: Tensor, b: Tensor):
    q, col, s, z = torch.fbgemm_linear_quantize_weight(w)
    p = torch.fbgemm_pack_quantized_matrix(q)
    q2, col2, s2, z2 = torch.fbgemm_linear_quantize_weight(v)
    p2 = torch.fbgemm_pack_quantized_matrix(q2)
    return torch.quantized_gru_cell(x, h, q, q2, b, b * 2, p, p2, col, col2, s, s2, z, z2)
def rnn(x: Tensor, h: Tensor, w: Tensor, v: Tensor, b: Tensor):
    q, col, s, z = torch.fbgemm_linear_quantize_weight(w)
    p = torch.fbgemm_pack_quantized_matrix(q)
    q2, col2, s2, z2 = torch.fbgemm_linear_quantize_weight(v)
    p2 = torch.fbgemm_pack_quantized_matrix(q2)
    return torch.quantized_rnn_tanh_cell(x, h, q, q2, b, b * 2, p, p2, col, col2, s, s2, z, z2), torch.quantized_rnn_relu_cell(x, h, q, q2, b, b * 2, p, p2, col, col2, s, s2, z, z2)
'''
unit = torch.jit.CompilationUnit(PROGRAMS)


def show(name, arguments):
    entry = name.split(".")[0]
    case = {"name": f"fake_quantize.{name}", "source": PROGRAMS, "how": "source", "entry": entry}
    case["args"] = [encode(a.clone() if isinstance(a, torch.Tensor) else a) for a in arguments]
    try:
        case["returns"] = encode(getattr(unit, entry)(*arguments))
    except Exception as error:
        lines = [line for line in str(error).split("\n") if line.startswith("RuntimeError: ")]
        case["raises"] = {"when": "run", "class": type(error).__name__, "message": lines[-1]}
    print(json.dumps(case))


def module(name, model, arguments, trace=False):
    scripted = torch.jit.trace(model, arguments) if trace else torch.jit.script(model)
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    case = {"name": f"fake_quantize.{name}", "how": "script", "entry": "forward"}
    case["pt"] = base64.b64encode(buffer.getvalue()).decode()
    case["args"], case["returns"] = [encode(a) for a in arguments], encode(scripted(*arguments))
    print(json.dumps(case))


class Twice(torch.nn.Module):
    """Sees two batches, and says what it makes of them."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        y = self.inner(x)
        z = self.inner(x * 1.7 - 0.3)
        return y, z, self.inner.calculate_qparams()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.d = quantization.QuantStub(), quantization.DeQuantStub()
        self.c, self.b, self.r = torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()
        self.l = torch.nn.Linear(3, 4)

    def forward(self, x):
        x = self.r(self.b(self.c(self.q(x))))
        return self.d(self.l(x.mean((2, 3))))


torch.manual_seed(0)
x = torch.cat([torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 0.5, 0.25, -0.0]), torch.randn(16)])
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    show(f"tensor.{dtype}", (x.to(dtype), 0.1, 5, 0, 255))
    show(f"masked.{dtype}", (x.to(dtype), 0.013, -7, -128, 127))
    show(f"channels.{dtype}", (x.to(dtype).reshape(3, 8), torch.tensor([0.1, 0.02, 0.3]), torch.tensor([0, 5, 9], dtype=torch.int32), 0, 0, 255))
show("tensor.order", (torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), 0.1, 5, 0, 255))
show("tensor.empty", (torch.zeros(0, 3), 0.1, 5, 0, 255))
show("tensor.bounds", (x, 0.1, 5, 255, 0))
show("tensor.zero", (x, 0.1, 300, 0, 255))
show("tensor.int", (torch.arange(3), 0.1, 3, 0, 255))
show("tensors.float", (x, torch.tensor([0.1]), torch.tensor([5.0]), 0, 255))
show("tensors.outside", (x, torch.tensor(0.1, dtype=torch.float64), torch.tensor(500), 0, 255))
rows = x.reshape(4, 6)
show("channels_masked.last", (rows, torch.rand(6) / 9 + 0.01, torch.arange(6, dtype=torch.int32), 1, 0, 15))
show("channels.float", (rows, torch.rand(6) / 9 + 0.01, torch.rand(6) * 9, 1, 0, 255))
show("channels.long", (rows, torch.rand(6), torch.arange(6), 1, 0, 255))
show("channels.double", (rows, torch.rand(6).double(), torch.arange(6, dtype=torch.int32), 1, 0, 255))
show("channels.count", (rows, torch.rand(5), torch.arange(5, dtype=torch.int32), 1, 0, 255))
show("channels.axis", (rows, torch.rand(6), torch.arange(6, dtype=torch.int32), 2, 0, 255))
show("channels.negative", (rows, torch.rand(6), torch.arange(6, dtype=torch.int32), -1, 0, 255))
show("learned.even", (x, torch.tensor([0.1]), torch.tensor([4.5]), 0, 255))
show("learned_channels.outside", (rows, torch.rand(4) + 0.01, torch.tensor([3.5, 2.4, 700.0, -9.0]), 0, 0, 255))
infinite = lambda n: (torch.full((n,), float("inf")), torch.full((n,), -float("inf")), torch.ones(n), torch.zeros(n, dtype=torch.int32))
for on, fake in ((1, 1), (1, 0)):
    for per_row in (False, True):
        for symmetric in (False, True):
            state = infinite(4 if per_row else 1)
            show(f"observed.{on}{fake}{per_row}{symmetric}", (torch.randn(4, 3, 2), torch.tensor([on]), torch.tensor([fake]), *state, per_row, symmetric))
seen = (torch.tensor([-0.5]), torch.tensor([2.0]), torch.ones(1), torch.zeros(1, dtype=torch.int32))
show("observed.again", (torch.randn(4, 3), torch.tensor([1]), torch.tensor([1]), *seen, False, False))
show("observed.off", (torch.randn(4, 3), torch.tensor([0]), torch.tensor([1]), *seen, False, True))
show("qparams.plain", (torch.randn(9), False))
show("qparams.reduced", (torch.randn(9) + 1, True))
show("qparams.nan", (torch.tensor([1.0, float("nan")]), False))
for bits in (2, 4, 8):
    show(f"optimized.{bits}", (torch.randn(40) * 3, bits))
normal = torch.randn
show("lin.rows", (normal(3, 7), normal(5, 7), normal(5)))
show("lin.batch", (normal(2, 3, 7), normal(5, 7), normal(5)))
show("lstm.cell", (normal(3, 6), normal(3, 4), normal(3, 4), normal(16, 6), normal(16, 4), normal(16)))
show("gru.cell", (normal(3, 6), normal(3, 4), normal(12, 6), normal(12, 4), normal(12)))
show("rnn.cells", (normal(3, 6), normal(3, 4), normal(4, 6), normal(4, 4), normal(4)))
symmetric = dict(dtype=torch.qint8, quant_min=-128, quant_max=127)
tensor_wise, channel_wise = torch.per_tensor_symmetric, torch.per_channel_symmetric
kinds = {
    "minmax": observer.MinMaxObserver(),
    "minmax_symmetric": observer.MinMaxObserver(dtype=torch.qint8, qscheme=tensor_wise, reduce_range=True),
    "moving": observer.MovingAverageMinMaxObserver(),
    "channels": observer.PerChannelMinMaxObserver(),
    "channels_symmetric": observer.PerChannelMinMaxObserver(dtype=torch.qint8, qscheme=channel_wise),
    "moving_channels": observer.MovingAveragePerChannelMinMaxObserver(),
    "histogram": observer.HistogramObserver(bins=64),
    "fixed": observer.FixedQParamsObserver(0.1, 5),
    "fake": fake_quantize.FakeQuantize(),
    "fake_channels": fake_quantize.FakeQuantize(observer=observer.MovingAveragePerChannelMinMaxObserver, qscheme=channel_wise, **symmetric),
    "fused": fake_quantize.FusedMovingAvgObsFakeQuantize(),
    "fused_channels": fake_quantize.FusedMovingAvgObsFakeQuantize(observer=observer.MovingAveragePerChannelMinMaxObserver, qscheme=channel_wise, **symmetric),
}
for name, kind in kinds.items():
    if ALL or name in ("minmax", "moving_channels", "histogram", "fake_channels", "fused"):
        module(name, Twice(kind), (torch.randn(4, 6),))
for engine in ("fbgemm", "x86", "qnnpack") if ALL else ("x86",):
    for mode in ("train", "eval"):
        net = Net().train()
        net.qconfig = quantization.get_default_qat_qconfig(engine)
        net = quantization.prepare_qat(quantization.fuse_modules_qat(net, [["c", "b", "r"]]))
        image = torch.randn(2, 2, 6, 6)
        net(image)
        module(f"qat.{engine}.{mode}", getattr(net, mode)(), (image,), trace=True)
