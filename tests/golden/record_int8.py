"""Records tests/golden/kernels/int8.jsonl: integer layers and rounding of PyTorch, for the unit tests of src/kernels.

usage: python tests/golden/record_int8.py [CASES_OF_A_KIND [KEPT_ROWS]] > tests/golden/kernels/int8.jsonl     (with torch 2.15.0)

Of each layer's many rows those are kept whose results lie closest to where rounding changes, as there the order of float
operations shows.
"""
import base64
import json
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import torch

CASES = int(sys.argv[1]) if len(sys.argv) > 1 else 2
KEPT = int(sys.argv[2]) if len(sys.argv) > 2 else 6
q = torch.ops.quantized


def pack(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def show(**case):
    print(json.dumps(case))


def weights(sizes, per_channel, zeros, ratio=1.0):
    """Signed weights, their scales and zero points, as a quantized tensor too."""
    w = torch.randint(-127, 128, sizes, dtype=torch.int8)
    n = sizes[0] if per_channel else 1
    scales = torch.rand(n, dtype=torch.float64) * 0.02 * ratio + 0.001
    points = torch.randint(-9, 9, (n,)) if zeros else torch.zeros(n, dtype=torch.long)
    if per_channel:
        return w, scales, points, torch._make_per_channel_quantized_tensor(w, scales, points, 0)
    return w, scales, points, torch._make_per_tensor_quantized_tensor(w, scales.item(), points.item())


def closest(real, rows):
    """Rows with results closest to a half."""
    distance = np.abs(real - np.floor(real) - 0.5).min(axis=1)
    return np.sort(np.argsort(distance)[:rows])


def linear(seed, per_channel, zeros, relu, with_bias, k=37, n=50):
    torch.manual_seed(seed)
    scale, point = torch.rand(1).item() * 0.05 + 0.003, int(torch.randint(0, 256, (1,)))
    w, ws, wz, wq = weights((n, k), per_channel, zeros)
    bias = torch.randn(n) * 200 * scale if with_bias else None
    x = torch.randint(0, 256, (20000, k), dtype=torch.uint8)
    exact = (x.double() - point) @ (w.double() - wz.double().reshape(-1, 1)).T
    exact = exact.numpy() * (ws.numpy() * scale) + (bias.double().numpy() if with_bias else 0)
    out_scale, out_point = float(np.abs(exact).max() / 160), int(torch.randint(0, 256, (1,)))
    packed = q.linear_prepack(wq, bias)
    x = x[torch.from_numpy(closest(exact / out_scale, KEPT))]
    y = (q.linear_relu if relu else q.linear)(torch._make_per_tensor_quantized_tensor(x, scale, point), packed, out_scale, out_point)
    floats = x.float() * scale - 1.0
    d = (q.linear_relu_dynamic if relu else q.linear_dynamic)(floats, packed, bool(seed % 2))
    show(kind="linear", x=pack(x.numpy()), rows=len(x), depth=k, outputs=n, input=[scale, point], weights=pack(w.numpy()),
         scales=ws.tolist(), zero_points=wz.tolist(), per_channel=per_channel, bias=pack(bias.numpy()) if with_bias else None,
         output=[out_scale, out_point], relu=relu, y=pack(y.int_repr().numpy()),
         floats=pack(floats.numpy()), reduce_range=bool(seed % 2), dynamic=pack(d.numpy()))


def conv(seed, dims, c, n, k, stride, padding, dilation, groups, per_channel, zeros, relu):
    torch.manual_seed(seed)
    scale, point = torch.rand(1).item() * 0.05 + 0.003, int(torch.randint(0, 128, (1,)))
    w, ws, wz, wq = weights([n, c // groups] + [k] * dims, per_channel, zeros)
    bias = torch.randn(n)
    sizes = [5, 4, 6][:dims] if dims == 3 else [7, 8][:dims]
    # Seven bits: the depthwise kernels of FBGEMM saturate sums of pairs beyond.
    x = torch.randint(0, 128, [2, c] + sizes, dtype=torch.uint8)
    run = [torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d][dims - 1]
    shape = [-1] + [1] * (dims + 1)
    real = run(x.double() - point, (w.double() - wz.reshape(shape)) * ws.reshape(shape) * scale, None, stride, padding, dilation, groups)
    out_scale, out_point = float(real.abs().max() / 160), int(torch.randint(0, 256, (1,)))
    each = lambda v: [v] * dims
    packed = getattr(q, f"conv{dims}d_prepack")(wq, bias, each(stride), each(padding), each(dilation), groups)
    run = getattr(q, f"conv{dims}d_relu" if relu else f"conv{dims}d")
    y = run(torch._make_per_tensor_quantized_tensor(x, scale, point), packed, out_scale, out_point)
    last = [0] + list(range(2, dims + 2)) + [1]
    space = lambda values, fill: [fill] * (3 - dims) + values
    show(kind="conv", x=pack(x.permute(last).numpy()), sizes=space(sizes, 1), channels=c, outputs=n, groups=groups,
         kernel=space(each(k), 1), stride=space(each(stride), 1), padding=space(each(padding), 0),
         dilation=space(each(dilation), 1), input=[scale, point], weights=pack(w.numpy()), scales=ws.tolist(),
         zero_points=wz.tolist(), per_channel=per_channel, bias=pack(bias.numpy()), output=[out_scale, out_point], relu=relu,
         y=pack(y.int_repr().permute(last).numpy()))


def rounding():
    special = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 3e9, -3e9, 2.2e9, 2147483520.0, 2147483648.0,
               -2147483648.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-45, -0.0]
    torch.manual_seed(0)
    x = torch.cat([torch.tensor(special), torch.randn(62 * CASES) * 40, torch.arange(-20, 20) * 0.25])
    x = x[: len(x) // 4 * 4].contiguous()
    for dtype, name in ((torch.quint8, "u8"), (torch.qint8, "i8"), (torch.qint32, "i32")):
        for scale, point in ((1.0, 0), (0.1, 5), (0.25, 100), (1e-38, 3), (0.0123456789, 17)):
            y = torch.quantize_per_tensor(x, scale, point, dtype)
            show(kind="quantize", dtype=name, x=pack(x.numpy()), scale=scale, zero_point=point, y=pack(y.int_repr().numpy()),
                 back=pack(y.dequantize().numpy()))
        scales, points = torch.rand(4, dtype=torch.float64) + 0.01, torch.tensor([0, 3, 100, 7])
        y = torch.quantize_per_channel(x.reshape(-1, 4), scales, points, 1, dtype)
        show(kind="channels", dtype=name, x=pack(x.numpy()), inner=1, scales=scales.tolist(), zero_points=points.tolist(),
             y=pack(y.int_repr().numpy()), back=pack(y.dequantize().numpy()))
        z = x.reshape(4, -1)
        y = torch.quantize_per_channel(z, scales, points, 0, dtype)
        show(kind="channels", dtype=name, x=pack(x.numpy()), inner=z.shape[1], scales=scales.tolist(),
             zero_points=points.tolist(), y=pack(y.int_repr().numpy()), back=pack(y.dequantize().numpy()))


def qparams():
    torch.manual_seed(0)
    ends = [(0.0, 0.0), (1e-7, 3e-6), (-1e-6, 2e-6), (-3e-6, -1e-7), (-1.0, 1.0), (2.0, 3.0), (-5.0, -4.0), (-3e38, 3e38),
            (0.0, 1e-40), (-1e-45, 0.0)]
    ends += [tuple(sorted(pair)) for pair in (torch.randn(20 * CASES, 2) * 10).tolist()]
    ends += [tuple(sorted(pair)) for pair in (torch.randn(20 * CASES, 2) * 1e-2).tolist()]
    for low, high in ends:
        for reduce_range in (False, True):
            x = torch.tensor([low, high], dtype=torch.float32)
            scale, point = torch._choose_qparams_per_tensor(x, reduce_range)
            show(kind="qparams", low=x[0].item(), high=x[1].item(), reduce_range=reduce_range, scale=scale, zero_point=point)


for seed in range(8 * CASES):
    linear(seed, bool(seed & 1), bool(seed & 2), bool(seed & 4), seed % 3 != 2)
seed = 100
for _ in range(CASES):
    for dims, c, n, k, stride, padding, dilation, groups in (
        (2, 3, 20, 3, 2, 1, 1, 1), (2, 16, 17, 1, 1, 0, 1, 1), (2, 8, 12, 3, 1, 1, 2, 2), (2, 20, 20, 3, 1, 1, 1, 20),
        (2, 104, 104, 3, 2, 1, 1, 104), (2, 70, 70, 3, 1, 2, 2, 70), (1, 8, 6, 3, 1, 2, 1, 1), (3, 5, 7, 2, 1, 1, 1, 1),
        (2, 4, 8, 3, 1, 1, 1, 4), (2, 6, 5, 5, 3, 4, 1, 1), (2, 16, 3, 1, 2, 0, 1, 1),
    ):
        seed += 1
        conv(seed, dims, c, n, k, stride, padding, dilation, groups, bool(seed & 1), bool(seed & 2) and groups != c, bool(seed & 4))
rounding()
qparams()
