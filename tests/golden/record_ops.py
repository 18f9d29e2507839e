"""Records what PyTorch answers for its own operator samples, in the format of `flambeau check`: graphs of one operator.

Run with a Python that has torch (2.15.0 was used), expecttest and numpy:

    python tests/golden/record_ops.py > tests/golden/ops.jsonl
    python tests/golden/record_ops.py hash_tensor >> tests/golden/ops.jsonl  # of some operators alone

The samples are those of torch.testing's operator database. For each operator and dtype the sample with the shortest
record is kept, and calls that it lacks (`CALLS`). Operators that draw random numbers, results that are no tensors and constants that graph text leaves out
are skipped.
"""

import json
import random
import re
import sys
import warnings

import numpy
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput

from record_programs import encode

warnings.filterwarnings("ignore")

DTYPES = [torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16]
SAMPLES = 8
ELEMENTS = 48
# Sparse tensors, memory that nobody wrote, and what is refused here by name.
SKIPPED = ("jiterator", "sparse", "to_sparse", "empty", "new_empty", "_scaled_mm", "linalg.eigvals", "chalf")
LEFT_OUT = {
    ("linalg.eig", None),
    ("matrix_exp", torch.complex64),
    ("nn.functional.rms_norm", torch.complex64),
    ("nextafter", torch.bfloat16),
    ("matrix_exp", torch.bfloat16),
    ("nn.functional.hinge_embedding_loss", torch.bfloat16),
    ("logcumsumexp", torch.complex64),
}
RANDOM = re.compile(r"aten::(rand|normal|bernoulli|multinomial|uniform|cauchy|exponential|geometric|log_normal|rrelu)")


def flatten(value, tensors):
    """The value with tensors replaced by their numbers, in the order of `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return ("tensor", len(tensors) - 1)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return ("list", type(value), [flatten(item, tensors) for item in value])
    if isinstance(value, dict):
        return ("dict", {key: flatten(item, tensors) for key, item in value.items()})
    return ("value", value)


def restore(shape, tensors):
    if shape[0] == "tensor":
        return tensors[shape[1]]
    if shape[0] == "list":
        items = [restore(item, tensors) for item in shape[2]]
        return items if shape[1] is list else tuple(items)
    if shape[0] == "dict":
        return {key: restore(item, tensors) for key, item in shape[1].items()}
    return shape[1]


def record(function, sample, name):
    """The case as a line of JSON; None if it cannot be one."""
    tensors = []
    shape = ("list", tuple, [flatten((sample.input, *sample.args), tensors), flatten(sample.kwargs, tensors)])
    if not tensors or sum(t.numel() for t in tensors) > ELEMENTS or any(t.layout != torch.strided for t in tensors):
        return None

    def fresh():
        return [t.detach().clone() for t in tensors]

    def program(*inputs):
        positional, named = restore(shape, inputs)
        return function(*positional, **named)

    answers = []
    for seed in range(2):
        torch.manual_seed(seed)
        answers.append(json.dumps(encode(program(*fresh()))))
    if answers[0] != answers[1]:
        return None
    traced = torch.jit.trace(program, tuple(fresh()), check_trace=False)
    graph = re.sub(r" # .*", "", str(traced.inlined_graph))
    if "<Tensor>" in graph or "Constant[value={" in graph or RANDOM.search(graph):
        return None
    arguments = fresh()
    before = [encode(t) for t in arguments]
    case = {"name": name, "graph": graph, "args": before, "returns": encode(traced(*arguments))}
    after = [encode(t) for t in arguments]
    if after != before:
        case["args_after"] = after
    return json.dumps(case)


def resized(x, **options):
    return torch.nn.functional.interpolate(x, mode="lanczos", antialias=True, **options)


def hash_of(x, *dims, **options):
    return torch.hash_tensor(x, *dims, **options)


# Calls of operators that the database has not, or not all of: a name, a function, an argument, and options.
CALLS = [
    ("_upsample_lanczos2d_aa.larger", resized, torch.linspace(-3, 7, 18).reshape(1, 2, 3, 3), {"size": (4, 5)}),
    ("_upsample_lanczos2d_aa.smaller", resized, torch.linspace(-3, 7, 48).reshape(1, 1, 6, 8).sin(), {"size": (2, 3)}),
    ("_upsample_lanczos2d_aa.scaled", resized, torch.linspace(-3, 7, 24, dtype=torch.float64).reshape(1, 1, 4, 6), {"scale_factor": (0.6, 1.4)}),
    ("_upsample_lanczos2d_aa.bytes", resized, (torch.arange(42) * 37 % 256).to(torch.uint8).reshape(1, 1, 6, 7), {"size": (3, 9)}),
    ("hash_tensor.halves", hash_of, torch.arange(6).reshape(2, 3).half() * 1.3 - 2, {"dim": 1, "keepdim": True}),
    ("hash_tensor.bytes", hash_of, torch.arange(3, 9, dtype=torch.uint8).reshape(2, 3), {"dim": [0, 1]}),
    ("hash_tensor.repeated", hash_of, torch.tensor([[1.5, 2.5]]).expand(3, 2), {"dim": 0}),
]


def main():
    names = sys.argv[1:]
    for name, function, tensor, options in CALLS:
        if not names or name.split(".")[0] in names:
            print(record(function, SampleInput(tensor, kwargs=options), name))
    for op in op_db:
        if op.name.startswith(SKIPPED) or names and op.name not in names:
            continue
        name = ".".join(part for part in (op.name, op.variant_test_name) if part)
        kept = 0
        for dtype in DTYPES:
            if dtype not in op.dtypes or kept == 2 or (op.name, dtype) in LEFT_OUT or (op.name, None) in LEFT_OUT:
                continue
            random.seed(0)
            numpy.random.seed(0)
            torch.manual_seed(0)
            lines = []
            try:
                for n, sample in zip(range(SAMPLES), op.sample_inputs("cpu", dtype)):
                    line = record(op.op, sample, f"{name}.{str(dtype).removeprefix('torch.')}.{n}")
                    if line:
                        lines.append(line)
            except Exception as error:
                print(f"{name} {dtype}: {type(error).__name__}", file=sys.stderr)
            if lines:
                kept += 1
                print(min(lines, key=len))


main()
