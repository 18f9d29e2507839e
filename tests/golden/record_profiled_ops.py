"""Records for which operators TorchScript's profiling executor looks at the tensors that they take and give.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_profiled_ops.py > src/dialects/aten/profiled_ops.txt

Each operator stands in a branch that is not taken, so that none has to run; the graph that is profiled shows whether its operands
have `prim::profile` before them. A second list, behind a line `# results`, names those whose results are looked at by every user.
"""

import re
import sys
import warnings

import torch

C = torch._C
warnings.filterwarnings("ignore")


def type_text(ty):
    """A type as graph text has it: numbers of all kinds are ints."""
    text = re.sub(r"\bList\[(\w+)\]", r"\1[]", str(ty))
    text = re.sub(r"\bOptional\[(.*)\]$", r"\1?", text)
    text = re.sub(r"\bList\[(.*)\]$", r"\1[]", text)
    return re.sub(r"\b(SymInt|Scalar|ScalarType|Layout|MemoryFormat|number)\b", "int", text)


def graph(schema):
    lines, names = [], []
    for n, argument in enumerate(schema.arguments):
        text = type_text(argument.type)
        if argument.name in ("dtype", "device"):
            if not text.endswith("?"):
                lines.append(f"      %a{n} : int = prim::Constant[value=6]()")
            else:
                lines.append(f"      %a{n} : NoneType = prim::Constant()")
            names.append(f"%a{n}")
        elif text == "Tensor":
            names.append("%x")
        else:
            lines.append(f"      %a{n} : {text} = prim::Uninitialized()")
            names.append(f"%a{n}")
    results = ", ".join(f"%r{n} : {type_text(r.type)}" for n, r in enumerate(schema.returns))
    given = next((n for n, r in enumerate(schema.returns) if str(r.type) == "Tensor"), None)
    lines.append(f"      {results} = {schema.name}({', '.join(names)})")
    use = "%x"
    if given is not None:
        lines.append(f"      %len : int[] = aten::stride(%r{given})")
        use = "%len"
    else:
        ty = type_text(schema.returns[0].type)
        lines.append(f"      %len : {ty}[] = prim::ListConstruct(%r0)")
        use = "%len"
    ty = "int[]" if given is not None else f"{type_text(schema.returns[0].type)}[]"
    return (
        f"graph(%x : Tensor, %c : bool):\n  %o : {ty} = prim::If(%c)\n    block0():\n"
        + "\n".join(lines)
        + f"\n      -> ({use})\n    block1():\n      %u : {ty} = prim::ListConstruct()\n      -> (%u)\n"
        f"  %t : (Tensor, {ty}) = prim::TupleConstruct(%x, %o)\n  return (%t)\n"
    )


def profiled(schema):
    text = graph(schema)
    parsed = C.parse_ir(text)
    function = C._create_function_from_graph("f", parsed)
    function(torch.ones(2), False)
    shown = torch.jit.last_executed_optimized_graph()
    return shown


def find(block, kind):
    for node in block.nodes():
        if node.kind() == kind:
            return node
        for inner in node.blocks():
            found = find(inner, kind)
            if found is not None:
                return found
    return None


def main():
    operands, results = [], []
    schemas = [s for s in C._jit_get_all_schemas() if s.name.split("::")[0] in ("aten", "prim", "quantized", "prepacked")]
    for schema in sorted(schemas, key=lambda s: (s.name, s.overload_name)):
        tensors = [str(a.type) == "Tensor" for a in schema.arguments + schema.returns]
        if not any(tensors) or len(schema.returns) == 0:
            continue
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        try:
            shown = profiled(schema)
        except RuntimeError as error:
            print(name, str(error).split("\n")[0], file=sys.stderr)
            continue
        node = find(shown, schema.name)
        if node is None:
            print(name, "is gone", file=sys.stderr)
            continue
        if any(i.node().kind() == "prim::profile" for i in node.inputs()):
            operands.append(name)
        stride = find(shown, "aten::stride")
        if stride is not None and any(i.node().kind() == "prim::profile" for i in stride.inputs()):
            results.append(name)
    print("\n".join(operands))
    print("# results")
    print("\n".join(results))


main()
