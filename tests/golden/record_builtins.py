"""Records what PyTorch answers for the builtins on numbers, text, lists and dictionaries: every schema of `aten` and
`prim` without a tensor, each as a graph of one op, with arguments that include the extremes.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_builtins.py --each 4 > tests/golden/builtins.jsonl

Arguments are drawn by a seeded generator from the pools below. Calls that end the process (a division that the
processor refuses) are left out and named on standard error.
"""

import argparse
import itertools
import json
import os
import random
import re
import resource
import signal
import sys
import warnings
import zlib

import torch

from record_programs import encode

warnings.filterwarnings("ignore")

INF, NAN = float("inf"), float("nan")
TOP = 2**63 - 1
POOLS = {
    "int": [0, 1, -1, 2, -2, 3, 5, 7, -7, 10, 64, 255, 1000, 2**31, -(2**31) - 1, 2**53 + 1, TOP, -TOP - 1],
    "float": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 7.0, 1e-7, 1e16, 123456.789, 1e308, -1e308]
    + [5e-324, 2.0**62, INF, -INF, NAN],
    "bool": [False, True],
    "str": ["", "a", "b", "ab", "abc", "abcabc", "Hello World", " a b ", "\t\n x\r", "ABC", "a,b,,c", "ünïcode ß", "日本語"]
    + ["1", "-12", "+5", " 7 ", "3.5", "1e5", "nan", "-inf", "0x1f", "1_000", "12abc", "x1", "_x", "9", "Title Case"],
    "complex": [0j, 1 + 0j, 1j, -1 - 1j, 2.5 - 3j, complex(INF, 1), complex(NAN, 0), complex(0.0, -0.0), -4 + 0j, 1e200 + 1e200j],
    "Device": [torch.device("cpu"), torch.device("cuda", 1)],
}
POOLS["Scalar"] = POOLS["int"][::3] + POOLS["float"][::3] + [1j, 2.5 - 3j]
LISTS = {
    "int": [[], [0], [3, 1, 2], [1, 1, 2], [2, 3], [3, 1, 2, 4], [-5, TOP, 0], [7] * 3],
    "float": [[], [0.5], [3.5, -1.0, 2.25], [1.0, 1.0], [INF, -INF, 0.0], [NAN, 1.0], [-0.0, 0.0]],
    "bool": [[], [True], [True, False, True], [False, False]],
    "str": [[], ["a"], ["b", "a", "c"], ["", "ab", "ß"], ["a", "a"]],
    "complex": [[], [1j], [2.5 - 3j, 0j, 1j]],
    "Any": [[], [1, 2]],
}
DICTS = {
    "str": ["a", "b", "", "abc"],
    "int": [1, -1, 0, 7],
    "bool": [True, False],
    "float": [0.5, 1.0, -0.0, 7.0],
    "complex": [1j, 0j, 2.5 - 3j],
}
# What stands for a type variable.
VARIABLES = ["int", "str"]
# Ops that read the world, need a process group, a profile or a class, or that are control flow.
SKIPPED = re.compile(
    r"rpc|prim::(PythonOp|Ignored|TimePoint|AddStat|Bailout|Fallback|TypeCheck|Fusion|profile|Requires|Constant|Chunk|awaitable"
    r"|ModuleContainer|Uninit|IfThenElse|tolist|Tuple|unchecked|Enum|Raise|Autograd|Broadcast|Reduction|id\b|CudaFusion|Static|Load|Store"
    r"|MatchTensor|Differentiable|Drop|Guard|Bail|Var|TensorExpr|oneDNN|index|type|is_|Print|rangelist|BroadcastingList|infer|fork|AutogradZero)"
    r"|aten::(save|wait|is_owner|owner|to_here|local_value|confirmed|warn|manual_seed|seed|initial_seed|Generator|get_gradients|is_scripting"
    r"|has_torch|rand|hash\.generic|backward|set_grad|is_grad|get_autocast|is_autocast|device|_get_cpu|_cufft|_cslt|_nested|is_vulkan"
    r"|_nnpack|_sparse|sym_|_assert|_functional|_philox|_make_dep|_use|__is|__isnot|__upsample|__interpolate|get_device|_foobar|_test|quantized|_print"
    r"|can_cast|promote_types)"
)


def text_of(kind):
    """A type as graph text spells it."""
    kind = kind.replace("number", "Scalar")
    if match := re.fullmatch(r"List\[(.*)\]", kind):
        return text_of(match[1]) + "[]"
    if match := re.fullmatch(r"Optional\[(.*)\]", kind):
        return text_of(match[1]) + "?"
    if match := re.fullmatch(r"Dict\[(\w+), (.*)\]", kind):
        return f"Dict({match[1]}, {text_of(match[2])})"
    if match := re.fullmatch(r"Tuple\[(.*)\]", kind):
        return "(" + ", ".join(text_of(part) for part in match[1].split(", ")) + ")"
    return kind


def pool_of(kind):
    """Arguments of a type."""
    kind = kind.replace("number", "Scalar")
    if match := re.fullmatch(r"Optional\[(.*)\]", kind):
        return [None] + pool_of(match[1])
    if match := re.fullmatch(r"List\[Tuple\[(\w+), (\w+)\]\]", kind):
        keys, values = DICTS[match[1]], pool_of(match[2])
        return [[], [(k, v) for k, v in zip(keys, values)], [(keys[0], values[0]), (keys[0], values[1])]]
    if match := re.fullmatch(r"List\[(\w+)\]", kind):
        return LISTS[match[1]]
    if match := re.fullmatch(r"Dict\[(\w+), (.*)\]", kind):
        keys, values = DICTS[match[1]], pool_of(match[2])[1:]
        return [{}, dict(zip(keys[:1], values)), dict(zip(keys, values))]
    return POOLS[kind]


def calls(schema, each):
    """Types and argument tuples of calls, in an order that does not change."""
    names = sorted({m for a in schema.arguments for m in re.findall(r"\bt\w*\b", str(a.type)) if m in ("t", "t1", "t2", "tVal")})
    rng = random.Random(zlib.crc32(str(schema).encode()))
    for binding in itertools.product(VARIABLES, repeat=len(names)):
        table = dict(zip(names, binding))
        kinds = [re.sub(r"\b(t|t1|t2|tVal)\b", lambda m: table[m[0]], str(a.type)) for a in schema.arguments]
        results = [re.sub(r"\b(t|t1|t2|tVal)\b", lambda m: table[m[0]], str(r.type)) for r in schema.returns]
        pools = [pool_of(kind) for kind in kinds]
        total = 1
        for pool in pools:
            total *= len(pool)
        count = max(1, each // len(VARIABLES) ** len(names))
        for n in sorted(rng.sample(range(total), min(total, count))):
            values = []
            for pool in pools:
                n, i = divmod(n, len(pool))
                values.append(pool[i])
            if schema.name == "aten::factorial" and abs(values[0]) > 65:
                continue  # PyTorch reads beyond its table.
            yield kinds, results, values


def graph_of(schema, kinds, results):
    inputs = ", ".join(f"%a{i} : {text_of(kind)}" for i, kind in enumerate(kinds))
    operands = ", ".join(f"%a{i}" for i in range(len(kinds)))
    left = ", ".join(f"%r{i} : {text_of(kind)}" for i, kind in enumerate(results))
    call = f"{left} = {schema.name}({operands})" if results else f"{schema.name}({operands})"
    if len(results) == 1:
        return f"graph({inputs}):\n  {call}\n  return (%r0)\n"
    if not results:
        end = "  %n : NoneType = prim::Constant()\n  return (%n)\n"
    else:
        kind = ", ".join(text_of(kind) for kind in results)
        parts = ", ".join(f"%r{i}" for i in range(len(results)))
        end = f"  %t : ({kind}) = prim::TupleConstruct({parts})\n  return (%t)\n"
    return f"graph({inputs}):\n  {call}\n{end}"


def record(schema, n, kinds, results, values):
    """One case, or None where the answer means nothing."""
    text = graph_of(schema, kinds, results)
    name = schema.name.replace("::", ".") + (f".{schema.overload_name}" if schema.overload_name else "")
    case = {"name": f"{name}.{n}", "entry": "f", "graph": text, "args": [encode(v) for v in values]}
    graph = torch._C.parse_ir(text)
    function = torch._C._create_function_from_graph("f", graph)
    try:
        answer = function(*values)
    except Exception as error:
        # Its own failures, those of its container library, and bytes that are no text say nothing about the op.
        if re.search("INTERNAL ASSERT|bad_alloc|vector::|codec can't decode|std::", str(error)):
            return None
        case["raises"] = {"when": "run", "class": type(error).__name__, "message": str(error)}
        return case
    case["returns"] = encode(answer)
    return case


def children(schema, each, out):
    """Records a schema's calls in processes of their own, since some calls end the process."""
    todo = list(calls(schema, each))
    start = 0
    while start < len(todo):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            # Texts of 2^63 letters and loops as long end the process, too.
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            with os.fdopen(writer, "w") as pipe:
                for n in range(start, len(todo)):
                    pipe.write(f"{n}\n")
                    pipe.flush()
                    signal.setitimer(signal.ITIMER_REAL, 0.5)
                    try:
                        case = record(schema, n, *todo[n])
                        if case is not None:
                            pipe.write(json.dumps(case, ensure_ascii=False) + "\n")
                    except Exception as error:
                        pipe.write("# " + repr(error)[:200].replace("\n", " ") + "\n")
                    pipe.flush()
            os._exit(0)
        os.close(writer)
        last = start
        with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
            for line in pipe:
                if line.startswith("{"):
                    out.write(line)
                elif line.startswith("#"):
                    print(schema, line.strip(), file=sys.stderr)
                elif line.strip():
                    last = int(line)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        print(f"{schema} ended the process with {todo[last][2]}", file=sys.stderr)
        start = last + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=6, help="calls of each schema, at most")
    parser.add_argument("--only", default="", help="schemas that contain this text")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for schema in sorted(torch._C._jit_get_all_schemas(), key=str):
        text = str(schema)
        if not re.match("aten::|prim::", text) or "Tensor" in text or SKIPPED.match(text) or options.only not in text:
            continue
        if "..." in text or "Any" in text or "RRef" in text or "Future" in text or "Generator" in text:
            continue
        children(schema, options.each, sys.stdout)


main()
