"""Records sizes, strides and values that PyTorch gives for tensors that lie in memory in other ways than row-major.

Run with a Python that has torch (2.15.0 was used), in this folder:

    python record_strides.py > strides.jsonl

Each case is a graph that looks at flat arguments with given sizes and strides, calls one operator, and gives the result
with its strides and its offset: transposed, permuted, expanded, channels last, with gaps, and with any stride where a
size is 1. For each operator the layouts that give different strides of the result are kept, few of each.
"""

import json
import random
import re
import warnings

import torch
import torch.nn.functional as F

from record_programs import encode

warnings.filterwarnings("ignore")

KEPT = 2
TRIED = 12
ANY = [(3,), (3, 4), (3, 1), (2, 3, 4), (2, 1, 4), (2, 3, 4, 5), (2, 1, 4, 5), (1, 3, 1, 1), (2, 2, 3, 2, 3)]
WIDE = [sizes for sizes in ANY if len(sizes) >= 2]
LINES = [(2, 3, 8), (1, 3, 8), (2, 1, 8)]
IMAGES = [(2, 3, 4, 5), (2, 1, 4, 5), (1, 3, 6, 6)]
VOLUMES = [(2, 3, 4, 4, 4), (1, 3, 4, 4, 4)]
HEADS = [(2, 3, 4, 5), (1, 2, 3, 4), (2, 1, 3, 4)]
MATRICES = [(3, 3), (2, 3, 3), (1, 3, 3)]


def alone(sizes):
    return [(s,) for s in sizes]


def twice(sizes):
    return [(s, s) for s in sizes]


def positive(a):
    return a @ a.mT + torch.eye(a.shape[-1])


def zeros(*sizes):
    return torch.zeros(sizes, dtype=torch.int64)


def flash_attention(q):
    return tuple(torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q))


OPERATORS = {
    "sort": (alone(ANY), lambda a: tuple(torch.sort(a, dim=0, stable=True))),
    "argsort": (alone(ANY), lambda a: torch.argsort(a, 0)),
    "topk": (alone(ANY), lambda a: tuple(torch.topk(a, 1, 0))),
    "cumsum": (alone(ANY), lambda a: torch.cumsum(a, 0)),
    "cummax": (alone(ANY), lambda a: tuple(torch.cummax(a, 0))),
    "softmax": (alone(ANY), lambda a: torch.softmax(a, 0)),
    "flip": (alone(ANY), lambda a: a.flip(0)),
    "rot90": (alone(WIDE), lambda a: torch.rot90(a)),
    "rot90.2": (alone(WIDE), lambda a: torch.rot90(a, 2)),
    "nonzero": (alone(ANY), torch.nonzero),
    "where": (alone(ANY), lambda a: tuple(torch.nonzero(a, as_tuple=True))),
    "unique_dim": (alone(ANY), lambda a: tuple(torch.unique(a, dim=-1, return_inverse=True, return_counts=True))),
    "index": (alone(ANY), lambda a: a[zeros(2)]),
    "index.second": (alone(WIDE), lambda a: a[:, zeros(2)]),
    "index.both": (alone(WIDE), lambda a: a[zeros(2), zeros(2)]),
    "index.block": (alone([s for s in ANY if len(s) > 2]), lambda a: a[:, :, zeros(2, 1)]),
    "index.new": (alone(WIDE), lambda a: a[None, zeros(2)]),
    "index_put": (alone(ANY), lambda a: a.index_put((zeros(2),), torch.zeros([]))),
    "index_fill": (alone(ANY), lambda a: a.index_fill(0, zeros(1), 9.0)),
    "index_copy": (twice(ANY), lambda a, b: a.index_copy(0, zeros(1), b.narrow(0, 0, 1))),
    "index_add": (twice(ANY), lambda a, b: a.index_add(0, zeros(1), b.narrow(0, 0, 1))),
    # The kernel reads numbers of a head as neighbours, wherever they lie.
    "flash_attention": (alone(HEADS), lambda q: flash_attention(q.transpose(1, 2).contiguous().transpose(1, 2))),
    "flash_attention.dense": (alone(HEADS), lambda q: flash_attention(q.contiguous())),
    "put": (alone(ANY), lambda a: a.put(zeros(1), torch.zeros(1))),
    "gather": (twice(ANY), lambda a, b: a.gather(0, (b > 99).long())),
    "scatter": (twice(ANY), lambda a, b: a.scatter(0, (b > 99).long(), b)),
    "select_scatter": (twice(ANY), lambda a, b: torch.select_scatter(a, b.select(0, 0), 0, 0)),
    "slice_scatter": (twice(ANY), lambda a, b: torch.slice_scatter(a, b.narrow(0, 0, 1), 0, 0, 1)),
    "diagonal_scatter": (alone(WIDE), lambda a: torch.diagonal_scatter(a, torch.zeros_like(a.diagonal()))),
    "masked_fill": (twice(ANY), lambda a, b: a.masked_fill(b > 0, 2.0)),
    "masked_scatter": (twice(ANY), lambda a, b: a.masked_scatter(a > 0, b.contiguous())),
    "hardtanh": (alone(ANY), F.hardtanh),
    "relu6": (alone(ANY), F.relu6),
    "logsigmoid": (alone(ANY), F.logsigmoid),
    "nan_to_num": (alone(ANY), torch.nan_to_num),
    "polar": (twice(ANY), torch.polar),
    "conj": (alone(ANY), lambda a: torch.conj(a.to(torch.complex64))),
    "rms_norm": (alone(ANY), lambda a: F.rms_norm(a, a.shape[-1:])),
    "instance_norm": (alone(IMAGES), F.instance_norm),
    "to.channels_last": (alone(IMAGES), lambda a: a.to(memory_format=torch.channels_last)),
    "clone": (alone(ANY), torch.clone),
    "cat": (twice(ANY), lambda a, b: torch.cat([a, b], 0)),
    "stack": (twice(ANY), lambda a, b: torch.stack([a, b], 0)),
    "addr": ([((3, 4), (3,), (4,))], torch.addr),
    "einsum": ([((2, 3, 4), (5, 4))], lambda a, b: torch.einsum("bij,kj->kbi", a, b)),
    "max_pool1d": (alone(LINES), lambda a: tuple(F.max_pool1d(a, 2, return_indices=True))),
    "avg_pool1d": (alone(LINES), lambda a: F.avg_pool1d(a, 2)),
    "adaptive_max_pool1d": (alone(LINES), lambda a: F.adaptive_max_pool1d(a, 3)),
    "adaptive_max_pool2d": (alone(IMAGES), lambda a: tuple(F.adaptive_max_pool2d(a, 3, return_indices=True))),
    "adaptive_avg_pool3d": (alone(VOLUMES), lambda a: F.adaptive_avg_pool3d(a, 2)),
    "avg_pool3d": (alone(VOLUMES), lambda a: F.avg_pool3d(a, 2)),
    "pad.replicate": (alone(IMAGES), lambda a: F.pad(a, (1, 2, 1, 0), "replicate")),
    "pad.reflect": (alone(VOLUMES), lambda a: F.pad(a, (1, 1, 1, 0, 0, 1), "reflect")),
    "conv1d": ([((2, 3, 8), (4, 3, 3)), ((2, 1, 8), (1, 1, 3))], F.conv1d),
    "conv_transpose1d": ([((2, 3, 8), (3, 4, 3))], F.conv_transpose1d),
    "conv2d": ([((2, 3, 4, 5), (4, 3, 3, 3)), ((1, 3, 4, 5), (4, 3, 1, 1))], F.conv2d),
    "conv3d": ([((2, 3, 4, 4, 4), (4, 3, 2, 2, 2)), ((1, 3, 4, 4, 4), (4, 3, 2, 2, 2))], F.conv3d),
    "fft": (alone(ANY), torch.fft.fft),
    "ifft": (alone(ANY), lambda a: torch.fft.ifft(a, dim=0)),
    "rfft": (alone(ANY), torch.fft.rfft),
    "irfft": (alone(ANY), lambda a: torch.fft.irfft(a, 4)),
    "fft2": (alone(WIDE), torch.fft.fft2),
    "rfft2": (alone(WIDE), lambda a: torch.fft.rfft2(a, (3, 4))),
    "inv": (alone(MATRICES), lambda a: torch.linalg.inv(positive(a))),
    "cholesky": (alone(MATRICES), lambda a: torch.linalg.cholesky(positive(a))),
    "qr": (alone(MATRICES), lambda a: tuple(torch.linalg.qr(positive(a)))),
    "solve": (alone(MATRICES), lambda a: torch.linalg.solve(positive(a), a)),
    "lu": (alone(MATRICES), lambda a: tuple(torch.linalg.lu(positive(a)))),
    "lu_factor": (alone(MATRICES), lambda a: tuple(torch.linalg.lu_factor(positive(a)))),
    "triangular": (alone(MATRICES), lambda a: torch.linalg.solve_triangular(positive(a), a, upper=True)),
}


def layout(rng, sizes):
    """Strides and an offset for a view of a flat tensor."""
    rank = len(sizes)
    order = list(range(rank))
    kind = rng.choice(["dense", "permuted", "channels", "gaps", "expanded", "loose", "loose"])
    if kind in ("channels", "loose") and rank > 2 and rng.random() < 0.5:
        order = [0, *range(2, rank), 1]
    elif kind != "dense":
        rng.shuffle(order)
    strides, step = [0] * rank, rng.choice([1, 2]) if kind == "gaps" else 1
    for d in reversed(order):
        if kind == "expanded" and rng.random() < 0.5:
            continue
        strides[d] = step
        step *= sizes[d]
    if kind == "loose":
        strides = [rng.choice([1, 2, 7, 60, s]) if n == 1 else s for n, s in zip(sizes, strides)]
    return strides, rng.choice([0, 0, 2])


def dense(value):
    return torch.empty(value.shape, dtype=value.dtype).copy_(value)


def record(name, function, sizes, layouts):
    """A case, and the strides by which it is judged worth keeping; None if PyTorch refuses it or it has no graph text."""
    flats = []
    for n, (strides, offset) in zip(sizes, layouts):
        length = 1 + offset + sum((size - 1) * stride for size, stride in zip(n, strides))
        generator = torch.Generator().manual_seed(length)
        flats.append((torch.randperm(length, generator=generator) - length // 2 + 0.25) / 8)

    def program(*arguments):
        views = [torch.as_strided(x, n, *where) for x, n, where in zip(arguments, sizes, layouts)]
        return function(*views)

    try:
        result = program(*flats)
        traced = torch.jit.trace(program, tuple(flats), check_trace=False)
    except RuntimeError:
        return None
    graph = re.sub(r" # .*", "", str(traced.inlined_graph)).rstrip()
    body, last = graph.rsplit("\n", 1)
    values = [last.strip().removeprefix("return (").removesuffix(")")]
    results = [result]
    if isinstance(result, tuple):
        results = list(result)
        values = re.search(re.escape(values[0]) + r" : \(.*?\) = prim::TupleConstruct\((.*?)\)", body)[1].split(", ")
    lines, given, answers = [], [], []
    for n, (value, answer) in enumerate(zip(values, results)):
        lines.append(f"  %strides{n} : int[] = aten::stride({value})\n  %offset{n} : int = aten::storage_offset({value})")
        given += [value, f"%strides{n}", f"%offset{n}"]
        strides = {"list": [encode(s) for s in answer.stride()]}
        answers += [encode(dense(answer.resolve_conj())), strides, encode(answer.storage_offset())]
    types = ", ".join(["Tensor, int[], int"] * len(values))
    end = f"  %all : ({types}) = prim::TupleConstruct({', '.join(given)})\n  return (%all)\n"
    graph = "\n".join([body, *lines, end])
    if "<Tensor>" in graph or "Constant[value={" in graph or re.search(r"Constant\[value= ", graph):
        return None
    case = {"name": name, "graph": graph, "args": [encode(x) for x in flats], "returns": {"tuple": answers}}
    return case, str([answer.stride() for answer in results])


def main():
    torch.set_num_threads(1)
    for name, (choices, function) in OPERATORS.items():
        rng = random.Random(name)
        seen = {}
        for _ in range(TRIED):
            sizes = rng.choice(choices)
            found = record(f"{name}.{len(seen)}", function, sizes, [layout(rng, n) for n in sizes])
            if found and found[1] not in seen:
                seen[found[1]] = found[0]
        kept = sorted(seen.items(), key=lambda item: len(json.dumps(item[1])))
        for _, case in kept[:KEPT]:
            print(json.dumps(case))


if __name__ == "__main__":
    main()
