"""Idioms of modules that PyTorch quantized, whose weights are objects of its own classes.

`python idioms_quantized.py torch` runs them with PyTorch's own, `python idioms_quantized.py flambeau` with Flambeau.
"""

import io
import sys

import torch
import torch.nn as nn
from torch.ao.quantization import DeQuantStub, QuantStub, convert, fuse_modules, get_default_qconfig, prepare, quantize_dynamic

from idiom import J, idiom, main, same

x14 = torch.ones(1, 4)


def dynamic() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    return quantize_dynamic(layers, {nn.Linear}, dtype=torch.qint8)


def static() -> nn.Module:
    torch.manual_seed(0)
    m = nn.Sequential(QuantStub(), nn.Conv2d(3, 4, 3), nn.ReLU(), DeQuantStub()).eval()
    m.qconfig = get_default_qconfig("fbgemm")
    m = prepare(fuse_modules(m, [["1", "2"]]))
    m(torch.randn(2, 3, 8, 8))
    return convert(m)


@idiom
def dynamic_linear_scripted():
    m = dynamic()
    s = J.script(m)
    same(s(x14), m(x14))


@idiom
def dynamic_linear_traced():
    m = dynamic()
    t = J.trace(m, (x14,))
    same(t(x14 * 2), m(x14 * 2))


@idiom
def dynamic_linear_saved():
    m = dynamic()
    file = io.BytesIO()
    J.save(J.script(m), file)
    file.seek(0)
    same(J.load(file)(x14), m(x14))


@idiom
def dynamic_lstm_scripted():
    torch.manual_seed(0)
    m = quantize_dynamic(nn.Sequential(nn.LSTM(4, 4)), {nn.LSTM}, dtype=torch.qint8)
    x = torch.ones(2, 1, 4)
    same(J.script(m)(x)[0], m(x)[0])


@idiom
def static_convolution_scripted():
    m = static()
    x = torch.ones(1, 3, 4, 4)
    same(J.script(m)(x), m(x))


if __name__ == "__main__":
    sys.exit(min(1, main()))
