"""Records what PyTorch's alias analysis answers for graphs: those of tests/golden/aliasing/graphs.ir and random ones.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_aliasing.py > tests/golden/aliasing/pytorch.jsonl
    python tests/golden/record_aliasing.py --random 5000 > more.jsonl

Values count in order of appearance: inputs of the graph, then for each op its results and, block by block, the inputs
of the block and its ops. `pairs[i][j]` says whether values i and j (j <= i) may contain an alias, `written[i]` whether
value i has writers, `before[i][j]` and `after[i][j]` whether op i of the outer block may move to that side of op j.
A line `#! differs pair %a %b: why` (or `written %a`) names an answer that is known to be another here, and right.
"""

import argparse
import json
import pathlib
import random
import re

import torch

TENSOR, LIST, DICT, OPTIONAL = "Tensor", "Tensor[]", "Dict(str, Tensor)", "Tensor?"
TUPLE, LISTS, INTS = "(Tensor, Tensor[])", "Tensor[][]", "int[]"

HEAD = f"""graph(%x : {TENSOR}, %y : {TENSOR}, %l : {LIST}, %d : {DICT}, %o : {OPTIONAL}, %tt : {TUPLE}, %n : int, %p : bool, %ll : {LISTS}, %il : {INTS}):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %k : str = prim::Constant[value="k"]()
"""

# Result type, and the op with the types of its operands.
STEPS = [
    (TENSOR, "aten::neg({Tensor})"),
    (TENSOR, "aten::add({Tensor}, {Tensor}, %one)"),
    (TENSOR, "aten::t({Tensor})"),
    (TENSOR, "aten::contiguous({Tensor}, %zero)"),
    (TENSOR, "aten::detach({Tensor})"),
    (TENSOR, "aten::select({Tensor}, %zero, %zero)"),
    (TENSOR, "aten::view({Tensor}, {int[]})"),
    (TENSOR, "aten::add_({Tensor}, {Tensor}, %one)"),
    (TENSOR, "aten::relu_({Tensor})"),
    (TENSOR, "aten::__getitem__({Tensor[]}, %zero)"),
    (TENSOR, "aten::__getitem__({Dict(str, Tensor)}, %k)"),
    (TENSOR, "aten::pop({Tensor[]}, %zero)"),
    (TENSOR, "prim::TupleIndex({(Tensor, Tensor[])}, %zero)"),
    (TENSOR, "prim::unchecked_cast({Tensor?})"),
    (LIST, "prim::ListConstruct({Tensor}, {Tensor})"),
    (LIST, "aten::append({Tensor[]}, {Tensor})"),
    (LIST, "aten::add({Tensor[]}, {Tensor[]})"),
    (LIST, "aten::_set_item({Tensor[]}, %zero, {Tensor})"),
    (LIST, "aten::slice({Tensor[]}, %zero, %one, %one)"),
    (LIST, "aten::__getitem__({Tensor[][]}, %zero)"),
    (LIST, "aten::values({Dict(str, Tensor)})"),
    (LISTS, "prim::ListConstruct({Tensor[]})"),
    (DICT, "prim::DictConstruct(%k, {Tensor})"),
    (None, "aten::_set_item({Dict(str, Tensor)}, %k, {Tensor})"),
    (TUPLE, "prim::TupleConstruct({Tensor}, {Tensor[]})"),
    (INTS, "aten::size({Tensor})"),
    (INTS, "aten::append({int[]}, %one)"),
    (INTS, "prim::ListConstruct(%one, %two)"),
]


class Program:
    """A random graph over tensors and containers of them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0
        self.body = ""
        self.known = {TENSOR: ["x", "y"], LIST: ["l"], DICT: ["d"], OPTIONAL: ["o"], TUPLE: ["tt"], LISTS: ["ll"], INTS: ["il"]}
        for _ in range(self.random.randint(3, 12)):
            self.step("  ")
        outputs = [self.pick(self.random.choice([TENSOR, LIST, TUPLE, DICT])) for _ in range(self.random.randint(1, 3))]
        self.text = HEAD + self.body + f"  return ({', '.join(outputs)})\n"

    def pick(self, kind):
        known = self.known[kind]
        return "%" + (known[-1] if self.random.random() < 0.4 else self.random.choice(known))

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def emit(self, indent, kind, text):
        name = self.name()
        self.body += f"{indent}%{name} : {kind} = {text}\n" if kind else f"{indent}{text}\n"
        if kind:
            self.known[kind].append(name)
        return name

    def step(self, indent):
        shape = self.random.randrange(len(STEPS) + 5)
        if shape < len(STEPS):
            kind, text = STEPS[shape]
            self.emit(indent, kind, re.sub(r"\{(.*?)\}", lambda m: self.pick(m[1]), text))
        elif shape == len(STEPS):
            items = self.emit(indent, LIST, f"prim::ListConstruct({self.pick(TENSOR)}, {self.pick(TENSOR)})")
            self.known[LIST].pop()
            self.emit(indent, TENSOR, f"aten::cat(%{items}, %zero)")
        elif shape == len(STEPS) + 1:
            first, second, whole = self.name(), self.name(), self.pick(TUPLE)
            self.body += f"{indent}%{first} : {TENSOR}, %{second} : {LIST} = prim::TupleUnpack({whole})\n"
            self.known[TENSOR].append(first)
            self.known[LIST].append(second)
        elif shape == len(STEPS) + 2:
            first, second, whole = self.name(), self.name(), self.pick(LIST)
            self.body += f"{indent}%{first} : {TENSOR}, %{second} : {TENSOR} = prim::ListUnpack({whole})\n"
            self.known[TENSOR] += [first, second]
        elif len(indent) < 9:
            self.nested(indent, self.random.choice([TENSOR, TENSOR, LIST, TUPLE, DICT]), shape == len(STEPS) + 3)

    def nested(self, indent, kind, is_branch):
        name, saved = self.name(), {kind: list(names) for kind, names in self.known.items()}
        carried = self.name()
        if is_branch:
            self.body += f"{indent}%{name} : {kind} = prim::If(%p)\n"
        else:
            counter = self.name()
            self.body += f"{indent}%{name} : {kind} = prim::Loop(%n, %true, {self.pick(kind)})\n"
        for block in range(1 + is_branch):
            inputs = "" if is_branch else f"%{counter} : int, %{carried} : {kind}"
            self.body += f"{indent}  block{block}({inputs}):\n"
            if not is_branch:
                self.known[kind].append(carried)
            for _ in range(self.random.randint(0, 3)):
                self.step(indent + "    ")
            # PyTorch does not see that a loop may make no turn, so that it gives here what entered it.
            result = self.pick(kind) if is_branch else f"%true, %{carried}"
            self.body += f"{indent}    -> ({result})\n"
            self.known = {kind: list(names) for kind, names in saved.items()}
        self.known[kind].append(name)


def values(graph):
    found = list(graph.inputs())

    def walk(block):
        for node in block.nodes():
            found.extend(node.outputs())
            for inner in node.blocks():
                found.extend(inner.inputs())
                walk(inner)

    walk(graph)
    return found


def moves(text, kind):
    """Each question moves something, so that each needs a graph of its own."""
    count, rows = len(list(torch._C.parse_ir(text).nodes())), []
    for i in range(count):
        row = ""
        for j in range(count):
            graph = torch._C.parse_ir(text)
            nodes, known = list(graph.nodes()), graph.alias_db()
            row += "01"[i == j or getattr(known, f"move_{kind}_topologically_valid")(nodes[i], nodes[j])]
        rows.append(row)
    return rows


def answers(name, text, differs, with_moves):
    graph = torch._C.parse_ir(text)
    known, all_values = graph.alias_db(), values(graph)
    case = {"name": name, "graph": text}
    case["pairs"] = [
        "".join("01"[known.may_contain_alias(a, b)] for b in all_values[: n + 1]) for n, a in enumerate(all_values)
    ]
    case["written"] = "".join("01"[known.has_writers(value)] for value in all_values)
    if with_moves:
        case |= {"before": moves(text, "before"), "after": moves(text, "after")}
    if differs:
        case["differs"] = differs
    return case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int)
    options = parser.parse_args()
    if options.random is None:
        text = (pathlib.Path(__file__).parent / "aliasing" / "graphs.ir").read_text()
        chunks = re.split(r"^#--- *(\S+)\n", text, flags=re.M)
        for name, chunk in zip(chunks[1::2], chunks[2::2]):
            differs = re.findall(r"^#! differs (.*?): ", chunk, flags=re.M)
            graph = re.sub(r"^#!.*\n", "", chunk, flags=re.M)
            print(json.dumps(answers(name, graph, differs, name == "moves")))
    for seed in range(options.random or 120):
        print(json.dumps(answers(f"random.{seed}", Program(seed).text, [], seed % 10 == 0)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
