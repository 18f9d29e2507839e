#--- containers
#! module
import torch
from torch import Tensor
from typing import Dict, Final, List, Optional

class Part(torch.nn.Module):
    def __init__(self, k: int):
        super().__init__()
        self.k = k
        self.w = torch.nn.Parameter(torch.full((2,), float(k)))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.k + self.w

class Model(torch.nn.Module):
    size: Final[int]
    last: Optional[int]

    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([Part(1), Part(2), Part(3)])
        self.named = torch.nn.ModuleDict({"a": Part(4), "b": Part(5)})
        self.chain = torch.nn.Sequential(Part(1), torch.nn.ReLU(), Part(2))
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2)) for _ in range(2)])
        self.size = 5
        self.absent = None
        self.register_buffer("calls", torch.zeros(1))
        self.last = None
        self.table = {"a": 1}

    def forward(self, x: Tensor):
        names: List[str] = []
        for i, part in enumerate(self.parts):
            x = part(x) + i
        for part in self.parts[1:]:
            x = part(x)
        for name, part in self.named.items():
            names.append(name)
            x = part(x)
        x = self.chain(x) + self.chain[0](x) + self.parts[-1](x) + self.named["b"](x)
        for w in self.weights:
            x = x + w
        if self.absent is not None:
            x = x + self.absent
        self.calls += 1
        self.table["b"] = len(self.parts) + len(self.named) + len(self.chain)
        return x, names, self.size, self.calls, self.table, "a" in self.named, self.training

    @torch.jit.export
    def remember(self, n: int) -> int:
        self.last = n
        last = self.last
        if last is not None:
            return last + self.parts[0].k
        return 0

model = Model()
#> forward(torch.ones(2))
#> remember(3)
#--- hooks
#! module
import torch
from torch import Tensor
from typing import Tuple

class Inner(torch.nn.Module):
    def forward(self, n: int, x: Tensor) -> Tensor:
        return x + n

def after(self, given: Tuple[int, Tensor], result: Tensor) -> Tensor:
    return result * 2 + given[0]

def before(self, given: Tuple[int, Tensor]) -> Tuple[int, Tensor]:
    return (given[0] + 1, given[1] * 3)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.inner.register_forward_hook(after)
        self.inner.register_forward_pre_hook(before)

    def forward(self, x: Tensor):
        return self.inner(2, x), self.inner.forward(2, x)

model = Model()
#> forward(torch.ones(1))
#--- state
#! module
import torch
from torch import Tensor
from typing import Tuple

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.ones(2)
        self.n = 5

    @torch.jit.export
    def __getstate__(self):
        return (self.w * 2, self.n, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, int, bool]):
        self.w = state[0] + 1
        self.n = state[1]
        self.training = state[2]

    def forward(self, x: Tensor):
        return x + self.w + self.n

model = Model()
#> forward(torch.ones(2))
#--- forked
#! module
import torch
from torch import Tensor
from typing import List

class Model(torch.nn.Module):
    def scaled(self, x: Tensor, k: int) -> Tensor:
        return x * k

    def forward(self, x: Tensor):
        futures: List[torch.jit.Future[Tensor]] = []
        for i in range(3):
            futures.append(torch.jit.fork(self.scaled, x, i))
        total = x
        for future in futures:
            total = total + torch.jit.wait(future)
        later = torch.jit.fork(self.scaled, x, k=7)
        return total, later.wait()

model = Model()
#> forward(torch.ones(2))
#--- overloads
#! module
import torch

class Model(torch.nn.Module):
    @torch.jit._overload_method
    def go(self, x: int) -> int: ...

    @torch.jit._overload_method
    def go(self, x: str) -> str: ...

    def go(self, x):
        if isinstance(x, int):
            return x + 1
        else:
            return x + "a"

    @torch.jit.unused
    def never(self, x: int) -> int:
        return x.nothing()

    def forward(self, a: int, b: str):
        if a > 100:
            return self.never(a), b
        return self.go(a), self.go(b)

model = Model()
#> forward(1, "b")
#> forward(101, "b")
#--- traced
#! module
import torch

def f(x, y):
    z = x.clone()
    z[:, 0] = 5
    return {"sum": z + y}["sum"], torch.zeros(x.shape[0]), x.size(1), (z, [y, x])

model = torch.jit.trace(f, (torch.ones(2, 3), torch.ones(3)))
#> forward(torch.ones(4, 3), torch.zeros(3))
#--- interface_list
#! module
import enum
import torch
from torch import Tensor
from typing import List

@torch.jit.interface
class Step:
    def one(self, x: Tensor) -> Tensor:
        pass

@torch.jit.script
class Add:
    def __init__(self, k: int):
        self.k = k

    def one(self, x: Tensor) -> Tensor:
        return x + self.k

@torch.jit.script
class Double:
    def __init__(self):
        self.n = 2

    def one(self, x: Tensor) -> Tensor:
        return x * self.n

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Model(torch.nn.Module):
    def forward(self, x: Tensor):
        steps = torch.jit.annotate(List[Step], [Add(1), Double()])
        for step in steps:
            x = step.one(x)
        return x, str(Color.BLUE)

model = Model()
#> forward(torch.ones(2))
#--- layer_without_rows
#! module
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
#> forward(torch.zeros(0, 4))
