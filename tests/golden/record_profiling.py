"""Records what TorchScript's profiling executor writes into graphs: profiles of one call and of several, and guarded graphs.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_profiling.py calls > tests/golden/profiles/calls.jsonl
    python tests/golden/record_profiling.py passes > tests/golden/profiling_passes.jsonl
    python tests/golden/record_profiling.py checks > tests/golden/profiles/checks.jsonl

`calls`: a graph without profiles, what it is called with (in the words of `--input`), and the graph with profiles after all calls.
`passes`: graphs before and after single passes, in the format of `flambeau check`: where profiles are put, and what becomes of
backward graphs that were profiled. `checks`: whether tensors have types, by `prim::TypeCheck`, and whether they require grad.
"""

import json
import re
import sys
import types
import warnings
from typing import List, Optional, Tuple

import torch
from torch import Tensor

C = torch._C
warnings.filterwarnings("ignore")


def chain(x: Tensor, y: Tensor):
    return torch.tanh(x * y) + x


def branch(x: Tensor, y: Tensor, flag: bool):
    z = x * y
    if flag:
        z = z.tanh()
    else:
        z = z.relu() + 1
    return z @ y


def loop(x: Tensor, n: int):
    y = x
    for i in range(n):
        y = (y + x).sigmoid()
    return y


def nested(x: Tensor, n: int):
    total = x.sum()
    for i in range(n):
        if i % 2 == 0:
            total = total + (x * i).sum()
        else:
            total = total - x.mean()
    return total


def lists(x: Tensor, y: Tensor):
    a = torch.cat([x, y])
    b, c = a.chunk(2, 0)
    return [b, c * 2], a.size(0)


def optional(x: Optional[Tensor], y: Tensor):
    if x is not None:
        y = x + y
    return y.relu()


def unsupported(x: Tensor):
    return x.cumsum(0).sort()[0] + torch.nonzero(x).sum()


def compares(x: Tensor, y: Tensor):
    if bool((x > y).all()):
        x = y
    return torch.where(x == y, x, y), x.dim(), x.dtype


def layers(x: Tensor, w: Tensor, b: Tensor):
    return torch.nn.functional.linear(x, w, b).relu().softmax(-1)


def kinds(x: Tensor):
    return x.to(torch.float64) + x.double(), x.size(), x.view(-1)


def written(x: Tensor, y: Tensor):
    z = x + y
    z.add_(y)
    return z * x


def tuples(x: Tensor):
    t = (x, x + 1)
    return t[0] * t[1], t


CASES = [
    (chain, ["x=float32[2,3], y=float32[2,3]"]),
    (chain, ["x=float32[2,3], y=float32[3]", "x=float32[4,3], y=float32[3]"]),
    (chain, ["x=float32[2,3], y=float32[3]", "x=float64[4,3], y=float32[1,1,3]"]),
    (chain, ["x=float32[2,3,4], y=float32[2,3,4]", "x=float32[2,5,4], y=float32[2,5,4]", "x=float32[2,5,6], y=float32[2,5,6]"]),
    (chain, ["x=int64[2], y=bool[2]"]),
    (branch, ["x=float32[3,3], y=float32[3,3], flag=true"]),
    (branch, ["x=float32[3,3], y=float32[3,3], flag=true", "x=float32[3,3], y=float32[3,3], flag=false"]),
    (loop, ["x=float32[4], n=3"]),
    (loop, ["x=float32[4], n=0"]),
    (nested, ["x=float32[4], n=3"]),
    (lists, ["x=float32[2,3], y=float32[4,3]"]),
    (optional, ["x=null, y=float32[3]"]),
    (optional, ["x=null, y=float32[3]", "x=float32[3], y=float32[3]"]),
    (unsupported, ["x=float32[5]"]),
    (compares, ["x=float32[5], y=float32[5]"]),
    (layers, ["x=float32[2,4], w=float32[3,4], b=float32[3]"]),
    (kinds, ["x=float32[2,2]"]),
    (written, ["x=float32[2,2], y=float32[2,2]"]),
    (tuples, ["x=float32[2,2]"]),
]


def value(word):
    made = re.fullmatch(r"(\w+)\[([\d,]*)\]", word)
    if made:
        sizes = [int(n) for n in made[2].split(",") if n]
        return torch.ones(sizes).to(getattr(torch, made[1]))
    return json.loads(word)


def arguments(text):
    return [value(word.split("=")[1]) for word in re.split(r", (?=\w+=)", text)]


def without_profiles(text):
    """The graph as it was before: users of a profile use what it looked at."""
    text = re.sub(r"\n   = prim::profile\(\)", "", text)
    lines = []
    for line in text.split("\n"):
        found = re.match(r"\s*%(\d+) : [^=]+ = prim::profile\[.*\]\(%([\w.]+)\)$", line)
        if found:
            lines.append(None)
            text_of = found
            lines[-1] = (text_of[1], text_of[2])
        else:
            lines.append(line)
    names = dict(line for line in lines if isinstance(line, tuple))
    kept = [line for line in lines if isinstance(line, str)]
    return re.sub(r"%(\d+)\b(?!\.)", lambda m: "%" + names.get(m[1], m[1]), "\n".join(kept))


def copied(function):
    """The same function as another object: what was scripted of it is not found again."""
    again = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    again.__annotations__ = function.__annotations__
    return again


def plain(graph):
    return re.sub(r" # .*", "", str(graph)).strip() + "\n"


def profiled(function, calls):
    scripted = torch.jit.script(copied(function))
    with torch.no_grad():
        for call in calls:
            scripted(*arguments(call))
    return plain(torch.jit.last_executed_optimized_graph())


def calls():
    C._jit_set_num_profiled_runs(100)
    for n, (function, given) in enumerate(CASES):
        shown = profiled(function, given)
        yield {"name": f"{function.__name__}.{n}", "calls": given, "graph": without_profiles(shown), "profiled": shown}


def second(x: Tensor, y: Tensor):
    z = x * y
    return z.tanh(), z + y


def shared(x: Tensor, y: Tensor):
    z = x + y
    return z * z + x


def product(x: Tensor, y: Tensor):
    return (x @ y).relu() * 2


BACKWARDS = [
    (chain, (2, 3), (2, 3), (True, False), 1),
    (chain, (2, 3), (3,), (True, True), 1),
    (chain, (2, 3), (3,), (False, True), 1),
    (shared, (4,), (4,), (True, True), 1),
    (second, (4,), (4,), (True, True), 2),
    (second, (4,), (4,), (True, True), 1),
    (product, (2, 3), (3, 2), (True, True), 1),
    (product, (2, 3), (3, 2), (True, False), 1),
]


def relu(x: Tensor, y: Tensor):
    return x.relu()


def square(x: Tensor, y: Tensor):
    return x * x


def groups():
    """Differentiable groups of graphs that were profiled with gradients."""
    C._jit_set_num_profiled_runs(100)
    for n, function in enumerate([relu, square, chain, shared, second, product, written, compares]):
        scripted = torch.jit.script(copied(function))
        scripted(torch.randn(3, 3, requires_grad=True), torch.randn(3, 3))
        graph = torch.jit.last_executed_optimized_graph().copy()
        for node in list(graph.nodes()):
            if node.kind() == "prim::profile" and not list(node.inputs()):
                node.destroy()
        before = plain(graph)
        C._jit_pass_create_autodiff_subgraphs(graph, 2)
        yield {"name": f"groups.{function.__name__}.{n}", "before": before, "after": {"create_autodiff_subgraphs": plain(graph)}}


def backwards():
    """Backward graphs as they were profiled, and what is made of them."""
    C._jit_set_num_profiled_runs(1)
    for n, (function, first, other, wanted, used) in enumerate(BACKWARDS):
        scripted = torch.jit.script(copied(function))
        for turn in range(2):
            x, y = (torch.randn(size).requires_grad_(w) for size, w in zip((first, other), wanted))
            answer = scripted(x, y)
        parts = answer if isinstance(answer, tuple) else (answer,)
        sum(part.sum() for part in parts[:used]).backward()
        graph = torch.jit.last_executed_optimized_graph()
        special = graph.copy()
        for node in list(special.nodes()):
            if node.kind() == "prim::profile" and not list(node.inputs()):
                node.destroy()
        before = plain(special)
        C._jit_pass_specialize_autogradzero(special)
        yield {"name": f"backward.{function.__name__}.{n}", "before": before, "after": {"specialize_autogradzero": plain(special)}}


def passes():
    C._jit_set_num_profiled_runs(100)
    for n, (function, given) in enumerate(CASES):
        shown = re.sub(r"profiled_type=.*, seen_none", "profiled_type=Tensor, seen_none", profiled(function, given[:1]))
        yield {"name": f"profile.{function.__name__}.{n}", "before": without_profiles(shown), "after": {"profile": shown}}
    yield from groups()
    yield from backwards()


TYPES = [
    "Tensor",
    "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)",
    "Double(2, 3, strides=[3, 1])",
    "Float(2, 3, strides=[3, 1], requires_grad=1)",
    "Float(2, 3, strides=[1, 2], requires_grad=0, device=cpu)",
    "Float(5, 3, strides=[3, 1])",
    "Float(3, strides=[1])",
    "Bool(2, 3, strides=[3, 1])",
]

TENSORS = {
    "float32[2,3]": lambda: torch.ones(2, 3),
    "float32[5,3]": lambda: torch.ones(5, 3),
    "float32[3]": lambda: torch.ones(3),
    "float64[2,3]": lambda: torch.ones(2, 3).double(),
    "bool[2,3]": lambda: torch.ones(2, 3).bool(),
    "turned": lambda: torch.ones(3, 2).t(),
    "requires_grad": lambda: torch.ones(2, 3).requires_grad_(),
}


def checks():
    for op, all_types in [("TypeCheck", TYPES), ("RequiresGradCheck", TYPES[1:2] + TYPES[3:5])]:
        for ty in all_types:
            text = (
                f"graph(%x : Tensor):\n  %y : Tensor, %b : bool = prim::{op}[types=[{ty}]](%x)\n"
                "  %t : (Tensor, bool) = prim::TupleConstruct(%y, %b)\n  return (%t)\n"
            )
            function = C._create_function_from_graph("f", C.parse_ir(text))
            answers = {}
            for name, make in TENSORS.items():
                answers[name] = function(make())[1]
                with torch.no_grad():
                    answers[name + " no_grad"] = function(make())[1]
            yield {"op": op, "type": ty, "graph": text, "answers": answers}


for line in {"calls": calls, "passes": passes, "checks": checks}[sys.argv[1]]():
    print(json.dumps(line))
