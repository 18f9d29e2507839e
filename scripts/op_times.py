"""Times single operators beside PyTorch: a call of a function of one op, in Python, on one core, float32 unless the name says otherwise.

    pip install numpy torch==2.15.0 target/wheels/flambeau-*.whl
    taskset -c 0 python scripts/op_times.py [NAME...]

Prints one line an op, the slowest first: Flambeau's time divided by PyTorch's, the name, microseconds of both; then the geometric mean. Images are
4 x 64 x 56 x 56, row-major (nchw) and with their channels innermost (nhwc), sequences 8 x 128 x 768. With names only ops that contain one of them.
"""
import math
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import flambeau
import torch

F = "torch.nn.functional."
IMAGES = {
    "sum over images": "x.sum(0)",
    "sum over channels": "x.sum(1)",
    "mean over pixels": "x.mean([2, 3])",
    "amax over channels": "torch.amax(x, [1])",
    "amax over pixels": "torch.amax(x, [2, 3])",
    "var over channels": "x.var([1])",
    "argmax over channels": "x.argmax(1)",
    "vector norm": "torch.linalg.vector_norm(x, 2, [1])",
    "softmax over channels": "torch.softmax(x, 1)",
    "cumsum over channels": "x.cumsum(1)",
    "cat of channels": "torch.cat([x, x], 1)",
    "stack": "torch.stack([x, x], 0)",
    "pad": F + "pad(x, [1, 1, 1, 1])",
    "pad, reflected": F + "pad(x, [1, 1, 1, 1], mode='reflect')",
    "flip": "x.flip([3])",
    "roll": "torch.roll(x, [3, 3], [2, 3])",
    "index of channels": "x[:, [0, 3, 5]]",
    "max pool": "torch.max_pool2d(x, [3, 3], [2, 2], [1, 1])",
    "average pool": F + "avg_pool2d(x, [2, 2], [2, 2])",
    "adaptive average pool": F + "adaptive_avg_pool2d(x, [7, 7])",
    "adaptive max pool": F + "adaptive_max_pool2d(x, [7, 7])",
    "nearest, twice the size": F + "interpolate(x, scale_factor=2.0, mode='nearest')",
    "bilinear, twice the size": F + "interpolate(x, scale_factor=2.0, mode='bilinear', align_corners=False)",
    "bicubic, twice the size": F + "interpolate(x, scale_factor=2.0, mode='bicubic', align_corners=False)",
    "grid sample": "torch.grid_sampler(x, torch.zeros(4, 28, 28, 2), 0, 0, False)",
    "batch norm, training": "torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)",
    "group norm": "torch.group_norm(x, 8)",
    "pixel shuffle": "torch.pixel_shuffle(x, 2)",
    "channel shuffle": "torch.channel_shuffle(x, 4)",
    "unfold": F + "unfold(x, [3, 3], [1, 1], [1, 1], [1, 1])",
    "normalize": F + "normalize(x, dim=1)",
    "prelu": "torch.prelu(x, torch.ones(64))",
    "clamp": "x.clamp(-1.0, 1.0)",
    "gelu": F + "gelu(x)",
    "sin": "x.sin()",
    "conv 1x1": "torch.conv2d(x, torch.ones(64, 64, 1, 1))",
    "conv 3x3": "torch.conv2d(x, torch.ones(64, 64, 3, 3), None, [1, 1], [1, 1])",
    "conv 3x3, depthwise": "torch.conv2d(x, torch.ones(64, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], 64)",
    "conv 9x9, depthwise": "torch.conv2d(x, torch.ones(64, 1, 9, 9), None, [1, 1], [4, 4], [1, 1], 64)",
    "conv 2x2, transposed": "torch.conv_transpose2d(x, torch.ones(64, 32, 2, 2), None, [2, 2])",
}
SEQUENCES = {
    "layer norm": "torch.layer_norm(x, [768])",
    "softmax": "torch.softmax(x, -1)",
    "log-sum-exp": "torch.logsumexp(x, -1)",
    "sum": "x.sum(-1)",
    "mean over steps": "x.mean(1)",
    "prod": "x.prod(-1)",
    "max": "x.max(-1)[0]",
    "top 8": "torch.topk(x, 8, -1)[0]",
    "sort": "torch.sort(x, -1)[0]",
    "median": "x.median(-1)[0]",
    "cumsum over steps": "x.cumsum(1)",
    "transpose": "x.transpose(1, 2).contiguous()",
    "heads": "x.view(8, 128, 12, 64).permute(0, 2, 1, 3).contiguous()",
    "tril": "torch.tril(x)",
    "glu": F + "glu(x, -1)",
    "repeat_interleave": "x.repeat_interleave(2, 1)",
    "products of batches": "torch.bmm(x, x.transpose(1, 2))",
    "distances": "torch.cdist(x, x)",
    "Fourier transform": "torch.abs(torch.fft.rfft(x))",
    "float16 and back": "x.to(torch.float16).to(torch.float32)",
    "bfloat16": "x.to(torch.bfloat16)",
    "int32": "x.to(torch.int32)",
    "masked select": "x[x > 2.0]",
    "atan2": "torch.atan2(x, x + 1)",
    "remainder": "torch.remainder(x, 2.0)",
    "1-d convolution": "torch.conv1d(x, torch.ones(64, 128, 3), None, [1], [1])",
}
TABLES = {
    "embedding": "torch.embedding(w, i)",
    "index_select": "torch.index_select(w, 0, i)",
    "index": "w[i]",
    "index_add": "torch.index_add(w, 0, i, s)",
    "matrix product": "torch.mm(w, w)",
    "cross entropy": F + "cross_entropy(s, i)",
}


def cases():
    """Name, expression, and arguments by name."""
    torch.manual_seed(0)
    images = torch.randn(4, 64, 56, 56)
    for layout, x in (("nchw", images), ("nhwc", images.contiguous(memory_format=torch.channels_last))):
        for name, expression in IMAGES.items():
            yield f"{name}, {layout}", expression, {"x": x}
    sequences = torch.randn(8, 128, 768)
    for name, expression in SEQUENCES.items():
        yield name, expression, {"x": sequences}
    table, at, rows = torch.randn(1024, 1024), torch.randint(0, 1024, (4096,)), torch.randn(4096, 1024)
    for name, expression in TABLES.items():
        yield name, expression, {"w": table, "i": at, "s": rows}


def least(call, seconds=0.15):
    """Microseconds of the fastest call."""
    for _ in range(3):
        call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def main():
    torch.set_num_threads(1)
    names, rows = sys.argv[1:], []
    for name, expression, arguments in cases():
        if names and not any(wanted in name for wanted in names):
            continue
        source = f"def f({', '.join(f'{argument}: Tensor' for argument in arguments)}):\n    return {expression}\n"
        own, other = flambeau.CompilationUnit(source).f, torch.jit.CompilationUnit(source).f
        with torch.no_grad():
            ours, theirs = (least(lambda: f(*arguments.values())) for f in (own, other))
        rows.append((ours / theirs, name, ours, theirs))
    for ratio, name, ours, theirs in sorted(rows, reverse=True):
        print(f"{ratio:6.2f}  {name:32s} {ours:9.1f} {theirs:9.1f}")
    mean = math.exp(sum(math.log(row[0]) for row in rows) / max(1, len(rows)))
    print(f"{len(rows)} ops, geometric mean {mean:.2f}")


if __name__ == "__main__":
    main()
