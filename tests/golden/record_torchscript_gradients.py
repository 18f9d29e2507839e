"""Records which operators TorchScript's executors have formulas for, in src/dialects/aten/torchscript_gradients.txt.

Each operator stands alone in a graph, and between two others (a result that shares memory with an input leaves its group again);
what PyTorch's pass gathers is written down. Needs PyTorch 2.15.0; run from the repository's root:

    python tests/golden/record_torchscript_gradients.py > src/dialects/aten/torchscript_gradients.txt
"""
import re

import torch


def graph_type(text):
    """The type of an argument as graph text has it: numbers of all kinds are ints."""
    text = re.sub(r"\([a-z!|>* -]+\)", "", text)
    text = re.sub(r"\[\d+\]", "[]", text)
    return re.sub(r"\b(SymInt|Scalar|ScalarType|Layout|MemoryFormat|number)\b", "int", text)


def parts(text):
    """Items of a list of arguments, cut at commas outside of brackets."""
    depth, item, items = 0, "", []
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            items.append(item.strip())
            item = ""
        else:
            item += letter
    return items + [item.strip()] if item.strip() else items


def is_gathered(name, schema, arguments, results, between):
    """Whether PyTorch gathers an operator, alone or between two activations."""
    inputs = ", ".join(f"%a{n} : {type}" for n, type in enumerate(arguments))
    given = ", ".join("%before" if between and n == 0 else f"%a{n}" for n in range(len(arguments)))
    lines = [f"{', '.join(f'%r{n} : {type}' for n, type in enumerate(results))} = {name}({given})"]
    last = ", ".join(f"%r{n}" for n in range(len(results)))
    if between:
        if not arguments or arguments[0] != "Tensor" or results[0] != "Tensor":
            return False
        lines = ["%before : Tensor = aten::relu(%a0)", *lines, "%after : Tensor = aten::relu(%r0)"]
        last = "%after"
    try:
        graph = torch._C.parse_ir(f"graph({inputs}):\n  " + "\n  ".join(lines) + f"\n  return ({last})\n")
        if next(node for node in graph.nodes() if node.kind() == name).schema() != schema:
            return False
        torch._C._jit_pass_create_autodiff_subgraphs(graph, 1)
    except RuntimeError:
        # What graph text cannot say is no operator of tensors.
        return False
    _, _, groups = str(graph).partition("with prim::DifferentiableGraph")
    return f"{name}(" in groups


names = set()
for operator in torch._C._jit_get_all_schemas():
    schema = str(operator)
    found = re.match(r"aten::[\w.]+\((.*)\) -> (.*)$", schema)
    if not found:
        continue
    arguments = [graph_type(item.split("=")[0].rsplit(" ", 1)[0]) for item in parts(found[1]) if item != "*"]
    given = found[2]
    results = [graph_type(item.split(" ")[0]) for item in (parts(given[1:-1]) if given.startswith("(") else [given])]
    if results and any(is_gathered(operator.name, schema, arguments, results, between) for between in (False, True)):
        names.add(schema.split("(")[0])
print("\n".join(sorted(names)))
