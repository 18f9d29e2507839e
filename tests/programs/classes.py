#--- counter
#! module
import torch
from typing import Dict, List, Optional

@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.value = start
        self.seen: List[int] = []

    def step(self, by: int = 2) -> "Counter":
        self.value += by
        self.seen.append(self.value)
        return self

    @property
    def double(self) -> int:
        return self.value * 2

    @double.setter
    def double(self, to: int):
        self.value = to // 2

    @staticmethod
    def largest(a: int, b: int) -> int:
        return a if a > b else b

    def __len__(self) -> int:
        return len(self.seen)

    def __contains__(self, x: int) -> bool:
        return x in self.seen

    def __getitem__(self, n: int) -> int:
        return self.seen[n]

    def __setitem__(self, n: int, to: int) -> None:
        self.seen[n] = to

    def __call__(self, x: int) -> int:
        return x + self.value

    def __bool__(self) -> bool:
        return self.value != 0

    def __str__(self) -> str:
        return "counter at " + str(self.value)

    def __lt__(self, other: "Counter") -> bool:
        return self.value < other.value

    def __eq__(self, other: "Counter") -> bool:
        return self.value == other.value

    def __neg__(self) -> int:
        return -self.value

    def __iadd__(self, by: int) -> "Counter":
        self.value += by
        return self

class Model(torch.nn.Module):
    def forward(self, n: int):
        c = Counter(n)
        c.step().step(5)
        c[0] = 77
        c.double = 10
        c += 100
        many = [Counter(3), Counter(1), Counter(2)]
        many.sort()
        table: Dict[str, Counter] = {"a": c}
        table["a"].step()
        maybe: Optional[Counter] = None
        if n > 0:
            maybe = c
        found = -1
        if maybe is not None:
            found = maybe.value
        return (c.value, c.seen, c.double, Counter.largest(n, 4), len(c), 77 in c, c[1], c(1), str(c), -c,
                "yes" if c else "no", [m.value for m in many], c == table["a"], found)

model = Model()
#> forward(3)
#> forward(-3)
#--- context
#! module
import torch
from typing import Any, List

@torch.jit.script
class Scope:
    def __init__(self, log: List[str], name: str):
        self.log = log
        self.name = name

    def __enter__(self) -> str:
        self.log.append("in " + self.name)
        return self.name

    def __exit__(self, a: Any, b: Any, c: Any) -> None:
        self.log.append("out " + self.name)

class Model(torch.nn.Module):
    def forward(self, n: int):
        log: List[str] = []
        with Scope(log, "a") as name, Scope(log, "b"):
            log.append(name)
            if n > 0:
                return log
        with Scope(log, "c"):
            for i in range(3):
                if i == 1:
                    continue
                log.append(str(i))
        return log

model = Model()
#> forward(0)
#> forward(1)
#--- enums
#! module
import torch
from enum import Enum
from typing import Dict, List

class Color(Enum):
    RED = 1
    GREEN = 2

class Word(Enum):
    A = "a"
    B = "bb"

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.now = Color.GREEN

    def forward(self, x: int):
        by_name: Dict[str, int] = {}
        for c in Color:
            by_name[c.name] = c.value
        words = [w.value for w in Word]
        was = self.now.name
        self.now = Color.RED
        return by_name, words, was, self.now == Color.RED, self.now != Color.RED, self.now.value + x

model = Model()
#> forward(3)
#--- named_tuples
#! module
import torch
from collections import namedtuple
from typing import NamedTuple, Optional
from torch import Tensor

class Point(NamedTuple):
    x: int
    y: float = 2.5
    z: Optional[Tensor] = None

Pair = namedtuple("Pair", ["a", "b"])

def area(p: Point) -> float:
    return p.x * p.y

class Model(torch.nn.Module):
    def forward(self, n: int, t: Tensor):
        p = Point(n)
        q = Point(y=1.0, x=n, z=t)
        x, y, z = q
        r = Pair(t, t + 1)
        return area(p), q.x + x, y, r.a + r.b, p[0], len(q), p.z is None, p

model = Model()
#> forward(3, torch.ones(2))
#--- interface_by_value
#! module
import torch
from torch import Tensor

@torch.jit.interface
class Step(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass

class Add(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1

class Scale(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 3

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = torch.nn.ModuleList([Add(), Scale()])
        self.named = torch.nn.ModuleDict({"add": Add(), "scale": Scale()})

    def forward(self, x: Tensor, n: int, name: str):
        a: Step = self.steps[n]
        b: Step = self.named[name]
        return a.forward(x), b.forward(x)

model = Model()
#> forward(torch.ones(2), 1, "add")
#> forward(torch.ones(2), 0, "scale")
