"""Records what TorchScript's autocasting does to each operator, in src/dialects/aten/autocast.txt.

Each operator of tensors stands alone in a graph over which PyTorch's pass runs; where it casts, the same again with the operator's
`dtype` given. Needs PyTorch 2.15.0; run from the repository's root:

    python tests/golden/record_autocast.py > src/dialects/aten/autocast.txt
"""
import sys

import torch

CONSTANTS = {
    "int": "int = prim::Constant[value=0]()",
    "bool": "bool = prim::Constant[value=0]()",
    "float": "float = prim::Constant[value=0.5]()",
    "number": "int = prim::Constant[value=0]()",
    "str": 'str = prim::Constant[value="x"]()',
}


def operand(place, argument, dtype):
    """Inputs, lines and the value of an argument; None where graph text cannot say it."""
    name, kind = f"%a{place}", argument.type.annotation_str
    if kind == "Tensor":
        return [f"{name} : Tensor"], [], name
    if kind == "Optional[Tensor]":
        return [f"{name} : Tensor?"], [], name
    if kind == "List[Tensor]":
        return [f"{name}a : Tensor", f"{name}b : Tensor"], [f"{name} : Tensor[] = prim::ListConstruct({name}a, {name}b)"], name
    if kind == "List[Optional[Tensor]]":
        return [f"{name}a : Tensor?"], [f"{name} : Tensor?[] = prim::ListConstruct({name}a)"], name
    if kind.startswith("Optional["):
        given = dtype and argument.name == "dtype"
        constant = "int = prim::Constant[value=6]()" if given else "NoneType = prim::Constant()"
        return [], [f"{name} : {constant}"], name
    if kind in CONSTANTS:
        return [], [f"{name} : {CONSTANTS[kind]}"], name
    element = kind.removeprefix("List[").removesuffix("]")
    if element in ("int", "bool", "float"):
        return [], [f"{name}i : {CONSTANTS[element]}", f"{name} : {element}[] = prim::ListConstruct({name}i)"], name
    return None


def casts(schema, dtype=False):
    """What the pass inserts before an operator: "reduced", "full", "refused" or nothing."""
    inputs, lines, values = [], [], []
    for place, argument in enumerate(schema.arguments):
        found = operand(place, argument, dtype)
        if found is None:
            return None
        inputs += found[0]
        lines += found[1]
        values.append(found[2])
    results = []
    for place, result in enumerate(schema.returns):
        kind = result.type.annotation_str
        results.append(f"%r{place} : {'Tensor[]' if kind == 'List[Tensor]' else kind}")
    call = f"{', '.join(results)}{' = ' if results else ''}{schema.name}({', '.join(values)})"
    body = "\n  ".join([*lines, call, "%n : NoneType = prim::Constant()", "return (%n)"])
    try:
        graph = torch._C.parse_ir(f"graph({', '.join(inputs)}):\n  {body}\n")
        if next(n for n in graph.nodes() if n.kind() == schema.name).schema() != str(schema):
            return None
    except (RuntimeError, StopIteration):
        return None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        try:
            torch._C._jit_pass_autocast(graph)
        except RuntimeError as error:
            assert "Unsafe to autocast" in str(error), error
            return "refused"
    text = str(graph)
    return "reduced" if "_to_reduced_precision(" in text else "full" if "_to_full_precision(" in text else None


lines = []
for schema in torch._C._jit_get_all_schemas():
    if not schema.name.startswith("aten::") or schema.name.startswith("aten::_autocast_to"):
        continue
    if not any("Tensor" in argument.type.annotation_str for argument in schema.arguments):
        continue
    found = casts(schema)
    if found == "full" and casts(schema, dtype=True) is None:
        found = "full unless dtype"
    if found:
        lines.append(f"{str(schema).split('(')[0]} {found}")
assert len(lines) > 90, "PyTorch's pass did nothing"
sys.stdout.write("\n".join(sorted(lines)) + "\n")
