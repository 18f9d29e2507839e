"""Records one small call of each operator overload that ops.jsonl has no sample of, in the format of `flambeau check`.

Run with a Python that has torch (2.15.0 was used), in the repository:

    python tests/golden/record_calls.py > tests/golden/calls.jsonl

The operators are the rows of docs/ops.md; arguments are tried until a call succeeds. Where `check --audit` replays the
cases it compares what each op writes and aliases with its marks. Random and empty answers are left out.
"""

import itertools
import json
import os
import re
import signal
import sys

import torch

from record_programs import encode

MAX_TRIES = 300
SKIPPED = ("empty", "resize", "rand", "dropout", "bernoulli", "normal", "uniform", "cuda", "exponential", "geometric")
SKIPPED += ("cauchy", "multinomial", "poisson", "seed", "_cudnn", "mkldnn", "sspaddmm", "new_empty", "set_")
# Their parts share memory, but PyTorch's contract is that nobody writes to them.
SKIPPED += ("unsafe_chunk", "unsafe_split")
# Kernels that PyTorch calls with checked arguments only: what is tried here means nothing to them.
SKIPPED += ("_reshape_alias", "unfold_backward", "_histogramdd", "_fused_rms_norm", "_backward_data", "lstm.input")
SKIPPED += ("_weight_norm", "is_contiguous.memory_format")
# Signs of singular vectors, and factors that no program sees.
SKIPPED += ("_linalg_svd", "_linalg_det", "_linalg_slogdet")


def rows():
    """Schemas of rows whose op has no recorded answer."""
    for line in open("docs/ops.md"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("| `aten::") and not cells[7]:
            yield cells[0].strip("`").replace("\\|", "|")


def candidates(argument, tensors):
    kind = str(argument.type)
    if kind == "Tensor":
        return tensors
    if kind == "List[Tensor]":
        return [[tensors[0], tensors[0].clone()], [tensors[0]]]
    if argument.has_default_value():
        return [argument.default_value]
    known = {
        "int": [1, 0, 2],
        "float": [0.5, 1.0],
        "number": [2, 0.5],
        "bool": [True, False],
        "List[int]": [[0, 1], [0], [1], [2, 2], [4]],
        "List[float]": [[1.0], [1.0, 2.0]],
        "str": ["mean", "constant"],
    }
    return known.get(kind, [None])


def graph_text(schema, values, results):
    """The graph of one call. Tensors are inputs, everything else a constant."""
    lines, names, inputs = [], [], []
    for n, value in enumerate(values):
        name = f"%a{n}"
        names.append(name)
        if isinstance(value, torch.Tensor):
            inputs.append((f"{name} : Tensor", value))
        elif isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
            inputs.append((f"{name} : Tensor[]", value))
        elif value is None:
            lines.append(f"  {name} : NoneType = prim::Constant()")
        elif isinstance(value, list):
            kind = "float" if value and isinstance(value[0], float) else "int"
            lines.append(f"  {name} : {kind}[] = prim::Constant[value={json.dumps(value)}]()")
        else:
            kind = type(value).__name__
            text = json.dumps(value) if isinstance(value, str) else str(int(value) if kind == "bool" else value)
            lines.append(f"  {name} : {kind} = prim::Constant[value={text}]()")
    outputs = ", ".join(f"%r{n} : {kind}" for n, kind in enumerate(results))
    returned = ", ".join(f"%r{n}" for n in range(len(results)))
    head = ", ".join(text for text, _ in inputs)
    call = f"  {outputs} = {schema.name}({', '.join(names)})"
    body = "\n".join(lines + [call])
    if len(results) > 1:
        body += f"\n  %t : ({', '.join(results)}) = prim::TupleConstruct({returned})"
        returned = "%t"
    return f"graph({head}):\n{body}\n  return ({returned})\n", [value for _, value in inputs]


def kind_of(value):
    if isinstance(value, list) and value:
        return "Tensor[]" if all(isinstance(item, torch.Tensor) for item in value) else "int[]"
    names = {torch.Tensor: "Tensor", list: "int[]"}
    return names.get(type(value), type(value).__name__)


def record(text):
    schema = torch._C.parse_schema(text)
    call = getattr(getattr(torch.ops.aten, schema.name.removeprefix("aten::")), schema.overload_name or "default")
    schema = call._schema
    square = torch.tensor([[1.5, -2.0], [0.25, 3.0]])
    sets = [[square], [square, torch.tensor([[0, 1], [1, 0]])], [torch.tensor([[6, 3], [1, 2]])]]
    sets += [[square > 0], [torch.tensor([0.5, 2.0, -1.0, 4.0])], [torch.arange(32.0).reshape(1, 2, 4, 4) / 8]]
    for tensors in sets:
        choices = [candidates(argument, tensors) for argument in schema.arguments]
        for values in itertools.islice(itertools.product(*choices), MAX_TRIES):
            values = [value.clone() if isinstance(value, torch.Tensor) else value for value in values]
            positional = [v for v, a in zip(values, schema.arguments) if not a.kwarg_only]
            named = {a.name: v for v, a in zip(values, schema.arguments) if a.kwarg_only}
            before = [encode(v) if kind_of(v).startswith("Tensor") else None for v in values]
            try:
                result = call(*positional, **named)
            except Exception:
                continue
            results = list(result) if isinstance(result, tuple) else [result]
            kinds = [kind_of(value) for value in results]
            if not results or not set(kinds) <= {"Tensor", "Tensor[]", "int", "float", "bool", "int[]"}:
                return None
            graph, inputs = graph_text(schema, values, kinds)
            case = {"name": f"{schema.name}.{schema.overload_name}".rstrip("."), "entry": "forward", "graph": graph}
            case["args"] = [b for b in before if b is not None]
            case["returns"] = encode(result)
            after = [encode(value) for value in inputs]
            if after != case["args"]:
                case["args_after"] = after
            return case
    return None


def main():
    for text in rows():
        if any(word in text.split("(")[0] for word in SKIPPED) or "!) out" in text or "out=" in text:
            continue
        # Some calls end PyTorch's process, some do not end.
        sys.stdout.flush()
        if os.fork() == 0:
            signal.alarm(10)
            try:
                case = record(text)
                if case:
                    print(json.dumps(case), flush=True)
            except Exception as error:
                print(text, str(error).split("\n")[0][:100], file=sys.stderr)
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
