"""The peer of conv.rs: takes threads and a layer's numbers, writes the least time of OpenVINO's kernel in microseconds."""
import sys
import time

import numpy as np
import openvino as ov
from openvino import opset13 as op

threads, c, n, side, kernel, stride, padding, groups = map(int, sys.argv[1:])
core = ov.Core()
core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"})


def constant(*sizes):
    return op.constant(np.random.randn(*sizes).astype(np.float32))


x = op.parameter([1, c, side, side], np.float32)
moves = [stride] * 2, [padding] * 2, [padding] * 2, [1, 1]
if groups == 1:
    y = op.convolution(x, constant(n, c, kernel, kernel), *moves)
else:
    y = op.group_convolution(x, constant(groups, n // groups, c // groups, kernel, kernel), *moves)
y = op.relu(op.add(y, constant(1, n, 1, 1)))
model = core.compile_model(ov.Model([y], [x]), "CPU", {"PERF_COUNT": True})
request, image = model.create_infer_request(), np.random.randn(1, c, side, side).astype(np.float32)
best, end = float("inf"), time.time() + 0.4
while time.time() < end:
    request.infer([image])
    kernels = [i for i in request.get_profiling_info() if i.node_type in ("Convolution", "GroupConvolution")]
    best = min(best, sum(i.real_time.total_seconds() for i in kernels) * 1e6)
print(best)
