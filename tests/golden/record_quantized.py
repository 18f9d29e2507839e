"""Records archives of quantized modules with PyTorch's answers, which are dequantized: quantized tensors stand inside.

    python tests/golden/record_quantized.py > tests/golden/quantized.jsonl        (with torch 2.15.0, engine x86)
"""

import base64
import io
import json
import warnings

import torch
import torch.ao.quantization as Q
import torch.nn as nn
import torch.nn.functional as F

from record_programs import encode

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.backends.quantized.engine = "x86"


def record(name, module, args, how="script"):
    made = {"script": torch.jit.script, "trace": lambda m: torch.jit.trace(m, args), "made": lambda m: m}[how](module)
    buffer = io.BytesIO()
    torch.jit.save(made, buffer)
    with torch.no_grad():
        answer = torch.jit.load(io.BytesIO(buffer.getvalue()))(*args)
    case = {"name": name, "entry": "forward", "pt": base64.b64encode(buffer.getvalue()).decode(),
            "args": [encode(a) for a in args], "returns": encode(answer)}
    print(json.dumps(case))


class Wrapped(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.quant, self.module, self.dequant = Q.QuantStub(), module, Q.DeQuantStub()

    def forward(self, x):
        return self.dequant(self.module(self.quant(x)))


def converted(module, x, qconfig=None):
    module = Wrapped(module).eval()
    module.qconfig = qconfig or Q.get_default_qconfig("x86")
    prepared = Q.prepare(module)
    prepared(x)
    return Q.convert(prepared)


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.swish, self.elu, self.leaky = nn.Conv2d(2, 4, 3), nn.Hardswish(), nn.ELU(), nn.LeakyReLU(0.1)
        self.norm, self.a, self.b, self.c = nn.BatchNorm2d(4), *(torch.ao.nn.quantized.FloatFunctional() for _ in range(3))

    def forward(self, x):
        x = self.norm(self.conv(x))
        y = self.a.add(self.swish(x), self.elu(x))
        y = self.b.mul(y, self.leaky(x))
        y = self.c.cat([y, x], 1)[:, 1:7]
        y = F.avg_pool2d(F.interpolate(F.max_pool2d(y, 2), scale_factor=2.0), 3, 2)
        return torch.sigmoid(F.relu(y)).mean([2, 3])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 4, 2, bidirectional=True), nn.GRU(8, 3, batch_first=True)
        self.cell, self.out = nn.LSTMCell(3, 2), nn.Linear(2, 2)

    def forward(self, x):
        y, state = self.lstm(x)
        z, last = self.gru(y)
        return y, state, z, last, self.out(self.cell(z[0])[0])


class Direct(nn.Module):
    def forward(self, x):
        q = torch.quantize_per_tensor(x, 0.05, 7, torch.quint8)
        scales, zeros = torch.tensor([0.1, 0.02, 0.3]), torch.tensor([0, 3, -5])
        c = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
        s = torch.ops.quantized.add(q, q.flip([1]), 0.07, 3)
        return (q.int_repr(), c.int_repr(), c.dequantize(), s.int_repr(), q.q_scale(), q.q_zero_point(),
                c.q_per_channel_scales(), c[1].dequantize(), q.t().dequantize(), (q > 0.1), q.max(1)[0].dequantize(),
                torch.cat([q, s]).int_repr(), q.is_quantized)


def main():
    torch.manual_seed(0)
    record("direct", Direct(), (torch.randn(3, 5),))
    record("linear", converted(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), torch.randn(9, 6)),
           (torch.randn(4, 6),))
    conv = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=4, stride=2))
    record("conv2d", converted(conv, torch.randn(2, 3, 8, 8)), (torch.randn(1, 3, 8, 8),), "trace")
    record("conv1d", converted(nn.Conv1d(2, 3, 3, padding=1), torch.randn(2, 2, 9)), (torch.randn(2, 2, 9),))
    record("conv3d", converted(nn.Conv3d(1, 2, 2), torch.randn(1, 1, 3, 4, 4)), (torch.randn(1, 1, 3, 4, 4),))
    whole = Q.QConfig(activation=Q.default_observer, weight=Q.default_weight_observer)
    turned = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1)
    record("conv_transpose2d", converted(turned, torch.randn(1, 2, 4, 4), whole), (torch.randn(1, 2, 4, 4),))
    record("functions", converted(Functions(), torch.randn(2, 2, 10, 10)), (torch.randn(2, 2, 10, 10),), "trace")
    linear = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    for name, dtype in [("dynamic", torch.qint8), ("dynamic_half", torch.float16)]:
        record(name, Q.quantize_dynamic(linear, {nn.Linear}, dtype=dtype), (torch.randn(4, 6),))
    kinds = {nn.LSTM, nn.GRU, nn.LSTMCell, nn.Linear}
    record("recurrent", Q.quantize_dynamic(Recurrent(), kinds, dtype=torch.qint8), (torch.randn(3, 2, 3),))
    frozen = torch.jit.freeze(torch.jit.script(Q.quantize_dynamic(linear.eval(), {nn.Linear}, dtype=torch.qint8)))
    record("frozen", frozen, (torch.randn(2, 6),), "made")
    bag = nn.EmbeddingBag(7, 4, mode="sum", include_last_offset=True).eval()
    bag.qconfig = Q.float_qparams_weight_only_qconfig
    bag = Q.convert(Q.prepare(nn.Sequential(bag)))[0]
    record("embedding_bag", bag, (torch.tensor([1, 3, 5, 6]), torch.tensor([0, 1, 4])))


main()
