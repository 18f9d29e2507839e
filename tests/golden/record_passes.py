"""Records what single passes of PyTorch make of small graphs, in the format of `flambeau check`.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_passes.py > tests/golden/passes.jsonl

Each graph stands below as text, with the passes that it is about. A pass that leaves its graph as it is, is recorded
too.
"""

import json

import torch

ACTIVATIONS = ["relu", "relu6", "silu", "selu", "hardsigmoid", "hardswish"]


def graph(inputs, body, returns):
    lines = [f"  {line}" for line in body.strip("\n").split("\n")]
    return f"graph({inputs}):\n" + "\n".join(lines) + f"\n  return ({returns})\n"


def activations():
    for name in ACTIVATIONS + ["sigmoid", "tanh"]:
        for made in ["aten::add(%x, %y, %1)", "aten::t(%x)"]:
            yield f"activation.{name}.{made[6]}", graph(
                "%x : Tensor, %y : Tensor",
                f"%1 : int = prim::Constant[value=1]()\n%a : Tensor = {made}\n%b : Tensor = aten::{name}(%a)\n"
                f"%c : Tensor = aten::mul(%b, %y)",
                "%c",
            ), ["functional_to_inplace_activation"]
        yield f"activation.{name}.written", graph(
            "%x : Tensor, %y : Tensor",
            f"%a : Tensor = aten::mul(%x, %y)\n%b : Tensor = aten::{name}_(%a)\n%c : Tensor = aten::{name}_(%x)\n"
            "%d : Tensor = aten::mul(%b, %c)",
            "%d",
        ), ["inplace_to_functional_activation"]
    yield "activation.float", graph(
        "%x : Float(3), %y : Float(3)",
        "%a : Float(3) = aten::mul(%x, %y)\n%b : Float(3) = aten::sigmoid(%a)\n%c : Float(3) = aten::mul(%b, %a)",
        "%c",
    ), ["functional_to_inplace_activation"]


def products():
    tensors = ["Float(2, 4)", "Float(*, *)", "Float()", "Long()", "Double()", "Tensor", "Float(4)"]
    for n, kind in enumerate(tensors):
        for order in ["%z, %m", "%m, %z"]:
            yield f"addmm.{n}.{order[1]}", graph(
                f"%x : Float(2, 3), %y : Float(3, 4), %z : {kind}",
                f"%1 : int = prim::Constant[value=1]()\n%m : Float(2, 4) = aten::mm(%x, %y)\n"
                f"%a : Tensor = aten::add({order}, %1)",
                "%a",
            ), ["fuse_addmm"]
    yield "addmm.alpha", graph(
        "%x : Float(2, 3), %y : Float(3, 4), %z : Float(2, 4)",
        "%2 : int = prim::Constant[value=2]()\n%m : Tensor = aten::mm(%x, %y)\n%a : Tensor = aten::add(%z, %m, %2)",
        "%a",
    ), ["fuse_addmm"]


def convolutions():
    for n, bias in enumerate(["Tensor", "Tensor?"]):
        yield f"conv1d.{n}", graph(
            f"%x : Tensor, %w : Tensor, %b : {bias}, %s : int[], %p : int[], %d : int[], %g : int",
            "%a : Tensor = aten::conv1d(%x, %w, %b, %s, %p, %d, %g)\n%c : Tensor = aten::relu(%a)",
            "%c",
        ), ["transform_conv1d_to_conv2d"]


CONSTANTS = "%0 : int = prim::Constant[value=0]()\n%3 : int = prim::Constant[value=3]()\n%4 : int = prim::Constant[value=4]()\n"


def branch(condition, yes, no, behind="%f : int = aten::add(%m, %r)"):
    return f"""{CONSTANTS}{condition}
%r : int = prim::If(%c)
  block0():
{yes}
  block1():
{no}
{behind}"""


def ints():
    give = "    %a : int = aten::add(%n, %m)\n    -> (%a)"
    raises = (
        '    %t : str = prim::Constant[value="no"]()\n    %e : NoneType = prim::Constant()\n'
        "    prim::RaiseException(%t, %e)\n    -> (%n)"
    )
    other = give.replace("%a", "%b")
    conditions = {
        "eq": "%c : bool = aten::eq(%n, %3)",
        "ne": "%c : bool = aten::ne(%3, %n)",
        "lt": "%c : bool = aten::lt(%n, %3)",
        "not": "%u : bool = aten::eq(%n, %3)\n%c : bool = aten::__not__(%u)",
        "and": "%u : bool = aten::eq(%n, %3)\n%v : bool = aten::eq(%m, %4)\n%false : bool = prim::Constant[value=0]()\n"
        "%c : bool = prim::If(%u)\n  block0():\n    -> (%v)\n  block1():\n    -> (%false)",
        "or": "%u : bool = aten::ne(%n, %3)\n%v : bool = aten::ne(%m, %4)\n%true : bool = prim::Constant[value=1]()\n"
        "%c : bool = prim::If(%u)\n  block0():\n    -> (%true)\n  block1():\n    -> (%v)",
    }
    for name, condition in conditions.items():
        yield f"ints.{name}", graph("%n : int, %m : int", branch(condition, give, other), "%f"), ["refine_integer_values"]
        text = branch(condition, raises, other, "%f : int = aten::mul(%n, %m)\n%h : int = aten::add(%f, %r)")
        yield f"ints.{name}.raises", graph("%n : int, %m : int", text, "%h"), ["refine_integer_values"]
    yield "ints.given", graph(
        "%n : int, %m : int", branch(conditions["eq"], "    -> (%n)", "    -> (%m)"), "%f"
    ), ["refine_integer_values"]


def lists():
    bounds = ["%none, %none, %2", "%1, %9, %1", "%none, %none, %m", "%m, %none, %1", "%9, %0, %m", "%0, %m, %1"]
    for n, bound in enumerate(bounds):
        yield f"list.slice.{n}", graph(
            "%a : int, %b : int, %d : int",
            "%none : NoneType = prim::Constant()\n%m : int = prim::Constant[value=-1]()\n"
            "%0 : int = prim::Constant[value=0]()\n%1 : int = prim::Constant[value=1]()\n"
            "%2 : int = prim::Constant[value=2]()\n%9 : int = prim::Constant[value=9]()\n"
            f"%l : int[] = prim::ListConstruct(%a, %b, %d)\n%s : int[] = aten::slice(%l, {bound})",
            "%s",
        ), ["peephole"]
    for count in [2, 3]:
        names = ", ".join(f"%p{n} : int" for n in range(count))
        yield f"list.unpack.{count}", graph(
            "%a : int, %b : int, %d : int",
            f"%l : int[] = prim::ListConstruct(%a, %b, %d)\n{names} = prim::ListUnpack(%l)\n%s : int = aten::add(%p0, %p1)",
            "%s",
        ), ["peephole"]
    yield "list.constants", graph(
        "%a : int",
        "%0 : int = prim::Constant[value=0]()\n%1 : int = prim::Constant[value=1]()\n%5 : int = prim::Constant[value=5]()\n"
        "%l : int[] = prim::ListConstruct(%5, %1)\n%x : int = aten::__getitem__(%l, %0)\n"
        "%y : int = aten::__getitem__(%l, %1)\n%s : int = aten::add(%x, %y)\n%t : int = aten::mul(%0, %a)",
        "%s, %t",
    ), ["peephole"]


def numbers():
    yield "stale", graph(
        "%x : Tensor, %y : Tensor",
        "%0 : int = prim::Constant[value=0]()\n%1 : int = prim::Constant[value=1]()\n%a : Tensor = aten::add(%x, %0, %1)\n"
        "%b : Tensor = aten::mul(%x, %1)\n%c : Tensor = aten::relu(%a)\n%d : Tensor = aten::relu(%b)",
        "%c, %d",
    ), ["peephole"]
    yield "optional", graph(
        "%c : bool, %n : int",
        "%none : NoneType = prim::Constant()\n%a : int? = prim::If(%c)\n  block0():\n    -> (%n)\n  block1():\n"
        "    %m : int = aten::neg(%n)\n    -> (%m)\n%p : bool = aten::__is__(%a, %none)\n"
        "%d : int = prim::unchecked_cast(%a)\n%e : int = aten::mul(%d, %d)",
        "%p, %e",
    ), ["peephole"]
    yield "nan", graph(
        "%x : float, %l : float[]",
        "%a : bool = aten::eq(%x, %x)\n%b : bool = aten::ne(%l, %l)",
        "%a, %b",
    ), ["peephole"]


def decompositions():
    ops = {
        "gt": "aten::gt(%x, %y)",
        "sum": "aten::sum(%x, %none)",
        "max": "aten::max(%x)",
        "view": "aten::view(%x, %l)",
        "nonzero": "aten::nonzero(%x)",
        "relu": "aten::relu(%x)",
        "detach": "aten::detach(%x)",
        "mm": "aten::mm(%x, %y)",
        "number": "prim::NumToTensor(%1)",
    }
    for name, op in ops.items():
        yield f"decompose.{name}", graph(
            "%x : Tensor, %y : Tensor, %n : int",
            "%none : NoneType = prim::Constant()\n%1 : int = prim::Constant[value=1]()\n"
            f"%l : int[] = prim::ListConstruct(%n, %1)\n%a : Tensor = {op}\n"
            "%b : Tensor = aten::addmm(%x, %y, %y, %1, %1)\n%t : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)",
            "%t",
        ), ["decompose_ops"]


def tuples():
    yield "tuples.control", graph(
        "%t : (int, Tensor), %n : int, %c : bool",
        "%u : (int, Tensor) = prim::If(%c)\n  block0():\n    -> (%t)\n  block1():\n"
        "    %a : int, %b : Tensor = prim::TupleUnpack(%t)\n    %d : int = aten::neg(%a)\n"
        "    %e : (int, Tensor) = prim::TupleConstruct(%d, %b)\n    -> (%e)\n"
        "%r : (int, Tensor) = prim::Loop(%n, %c, %u)\n  block0(%i : int, %v : (int, Tensor)):\n"
        "    %f : int, %g : Tensor = prim::TupleUnpack(%v)\n    %h : int = aten::add(%f, %i)\n"
        "    %w : (int, Tensor) = prim::TupleConstruct(%h, %g)\n    -> (%c, %w)",
        "%r",
    ), ["lower_all_tuples"]
    yield "tuples.item", graph(
        "%l : (str, int)[], %i : int",
        "%t : (str, int) = aten::__getitem__(%l, %i)\n%s : str, %n : int = prim::TupleUnpack(%t)\n%m : int = aten::neg(%n)",
        "%s, %m",
    ), ["lower_all_tuples"]
    yield "tuples.uninitialized", graph(
        "%c : bool, %t : (int, int)",
        "%u : (int, int) = prim::Uninitialized()\n%r : (int, int) = prim::If(%c)\n  block0():\n    -> (%t)\n  block1():\n    -> (%u)",
        "%r",
    ), ["lower_all_tuples"]


def main():
    for group in [activations, products, convolutions, ints, lists, numbers, decompositions, tuples]:
        for name, text, passes in group():
            after = {}
            for key in passes:
                changed = torch._C.parse_ir(text)
                arguments = [False] if key == "peephole" else []
                getattr(torch._C, f"_jit_pass_{key}")(changed, *arguments)
                after[key] = str(changed)
            print(json.dumps({"name": name, "before": str(torch._C.parse_ir(text)), "after": after}))


if __name__ == "__main__":
    main()
