"""A program of a user, which `mypy --strict` accepts and which runs."""

import numpy as np

import flambeau
from flambeau import Graph, Tensor, jit

m = flambeau.load("examples/lstm_cell.pt")
x = flambeau.zeros(2, 3)
y: Tensor = x + 1
z: Tensor = flambeau.relu(y)
sizes: tuple[int, ...] = x.shape
b: bool = x.requires_grad


@flambeau.script
def f(x: Tensor, n: int) -> Tensor:
    r: Tensor = flambeau.relu(x)
    return r * n


w = f(x, 3)
g: Graph = f.graph
kinds: list[str] = [node.kind() for node in g.nodes()]
found = g.findNode("aten::mul")
if found is not None:
    print(found.output().debugName())
print(f.schema.arguments[0].name, f.schema.name)


@flambeau.pass_
def p(graph: Graph) -> bool:
    return True


t = flambeau.trace(f, (x,))
print(jit.script, flambeau.float32, flambeau.ones(2, dtype=flambeau.float32), np.ones(2))
for name, parameter in m.named_parameters():
    print(name, parameter)

limited = flambeau.load("examples/lstm_cell.pt", limits=flambeau.Limits(memory="1G", steps=10**6))
with flambeau.limits(seconds=10.0) as block:
    try:
        bytes_at_once: int | None = block.memory
        print(f(x, 3), bytes_at_once)
    except flambeau.LimitError as error:
        reached: str = error.limit
        print(reached, error.place)
