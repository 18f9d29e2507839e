"""Idioms of torch.jit, one function each: the names come from `J`, which is torch.jit or flambeau.

`python idioms.py torch` runs them with PyTorch's own, `python idioms.py flambeau` with Flambeau; both need PyTorch for tensors.
"""


import copy
import enum
import io
import math
import os
import sys
import tempfile
import threading
import warnings
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn as nn
import torch.nn.functional as F

from idiom import WHICH, J, idiom, main, same

SCALE = 3
FACTORS = (1.5, 2.5)


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Point(NamedTuple):
    x: torch.Tensor
    y: int = 2


def double_it(x):
    return x * 2


def typed_helper(x: torch.Tensor, n: int) -> torch.Tensor:
    return x + n


@J.script
class Counter:
    def __init__(self, start: int):
        self.value = start

    def add(self, n: int) -> int:
        self.value += n
        return self.value

    @staticmethod
    def twice(n: int) -> int:
        return 2 * n


@J.script
class Pair(object):
    def __init__(self, a: torch.Tensor, b: torch.Tensor):
        self.a = a
        self.b = b

    def total(self):
        return self.a + self.b


@J.interface
class Transform(object):
    def run(self, x: torch.Tensor) -> torch.Tensor:
        pass


@J.interface
class ModuleTransform(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


@J.script
class Adder:
    def __init__(self, n: int):
        self.n = n

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.n


class Plain(nn.Module):
    def forward(self, x):
        return x + 1


class Linear2(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x):
        return self.linear(x) + self.offset


class Loops(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.table = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for name, layer in self.table.items():
            x = layer(x)
        return self.layers[0](x) + len(self.layers)


class Constants(nn.Module):
    __constants__ = ["k"]
    scale: Final[float]
    maybe: Optional[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.k = 4
        self.scale = 0.5
        self.names: List[str] = ["a", "b"]
        self.maybe: Optional[torch.Tensor] = None
        self.table: Dict[str, int] = {"x": 1}

    def forward(self, x):
        if self.maybe is None:
            self.maybe = x
        self.table["y"] = len(self.names)
        for i in range(self.k):
            x = x * self.scale
        return x


class Exported(nn.Module):
    def forward(self, x):
        return self.helper(x)

    def helper(self, x):
        return x * 2

    @J.export
    def other(self, x: torch.Tensor, n: int = 2) -> torch.Tensor:
        return x * n


class Ignoring(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = 5

    @J.ignore
    def python_only(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() + 1)

    @J.unused
    def never(self, x: torch.Tensor) -> torch.Tensor:
        return eval("x")

    def forward(self, x):
        if False:
            return self.never(x)
        return self.python_only(x) * self.bias


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(4 * 4 * 4, 5)

    def forward(self, x):
        x = self.body(x)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.head(x), dim=1)


class WithProperty(nn.Module):
    def __init__(self):
        super().__init__()
        self._n = 2

    @property
    def n(self) -> int:
        return self._n

    @n.setter
    def n(self, value: int):
        self._n = value

    def forward(self, x):
        return x * self.n


class WithHelperFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.activation = F.relu
        self.other = double_it

    def forward(self, x):
        return self.other(self.activation(x))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)
        self.lstm = nn.LSTM(4, 3)

    def forward(self, x):
        y, h = self.gru(x)
        z, _ = self.lstm(y)
        return z, h


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTMCell(3, 4)

    def forward(self, x, state: Tuple[torch.Tensor, torch.Tensor]):
        h, c = self.rnn(x, state)
        return h, (h, c)


def error_of(work: Any) -> str:
    try:
        work()
    except Exception as error:
        return str(error)
    raise AssertionError("it did not raise")


# --- functions ---


@idiom
def script_plain_function():
    @J.script
    def f(x, y):
        return x + y

    same(f(torch.ones(2), torch.ones(2)), torch.full((2,), 2.0))


@idiom
def script_with_annotations():
    @J.script
    def f(x: torch.Tensor, n: int, s: float = 2.0) -> torch.Tensor:
        return x * n + s

    same(f(torch.ones(2), 3), torch.full((2,), 5.0))
    same(f(torch.ones(2), 3, s=1.0), torch.full((2,), 4.0))
    same(f(x=torch.ones(2), n=1), torch.full((2,), 3.0))


@idiom
def script_type_comment():
    @J.script
    def f(x, n):
        # type: (Tensor, int) -> Tensor
        return x + n

    same(f(torch.zeros(2), 4), torch.full((2,), 4.0))


@idiom
def if_on_data():
    @J.script
    def f(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = -x
        return y

    same(f(torch.ones(2)), torch.full((2,), 2.0))
    same(f(-torch.ones(2)), torch.ones(2))


@idiom
def while_loop():
    @J.script
    def f(x, n: int):
        i = 0
        while i < n:
            x = x * 2
            i += 1
        return x

    same(f(torch.ones(1), 5), torch.tensor([32.0]))


@idiom
def for_range_break_continue():
    @J.script
    def f(n: int) -> int:
        total = 0
        for i in range(n):
            if i == 2:
                continue
            if i > 5:
                break
            total += i
        return total

    same(f(10), 13)


@idiom
def lists():
    @J.script
    def f(n: int) -> List[int]:
        out: List[int] = []
        for i in range(n):
            out.append(i * i)
        out.extend([100])
        return out[::-1]

    same(f(3), [100, 4, 1, 0])


@idiom
def list_of_tensors():
    @J.script
    def f(xs: List[torch.Tensor]) -> torch.Tensor:
        return torch.cat(xs) + torch.stack([x.sum() for x in xs]).sum()

    same(f([torch.ones(1), torch.ones(2)]), torch.full((3,), 4.0))


@idiom
def dicts():
    @J.script
    def f(d: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        out: Dict[str, torch.Tensor] = {}
        for k, v in d.items():
            out[k + "!"] = v + 1
        return out

    same(f({"a": torch.zeros(1)}), {"a!": torch.ones(1)})


@idiom
def dict_comprehension():
    @J.script
    def f(names: List[str]) -> Dict[str, int]:
        return {name: len(name) for name in names}

    same(f(["a", "bb"]), {"a": 1, "bb": 2})


@idiom
def optionals():
    @J.script
    def f(x, y: Optional[torch.Tensor] = None):
        if y is not None:
            return x + y
        return x

    same(f(torch.ones(1)), torch.ones(1))
    same(f(torch.ones(1), torch.ones(1)), torch.full((1,), 2.0))


@idiom
def pep604():
    @J.script
    def f(x: torch.Tensor, n: int | None = None) -> torch.Tensor:
        return x if n is None else x + n

    same(f(torch.ones(1), 2), torch.full((1,), 3.0))


@idiom
def unions():
    @J.script
    def f(x: Union[int, str]) -> str:
        if isinstance(x, int):
            return "int"
        else:
            return x

    same(f(1), "int")
    same(f("s"), "s")


@idiom
def tuples():
    @J.script
    def f(x: Tuple[int, torch.Tensor]) -> Tuple[torch.Tensor, int]:
        n, t = x
        return t + n, n

    same(f((2, torch.ones(1))), (torch.full((1,), 3.0), 2))


@idiom
def strings():
    @J.script
    def f(s: str, n: int) -> str:
        return "{} {}".format(s.upper(), n) + s[0]

    same(f("ab", 1), "AB 1a")


@idiom
def f_strings():
    @J.script
    def f(s: str, n: int) -> str:
        return f"{s}-{n}"

    same(f("ab", 1), "ab-1")


@idiom
def chained_comparison():
    @J.script
    def f(n: int) -> bool:
        return 0 < n < 5

    same([f(-1), f(3), f(7)], [False, True, False])


@idiom
def ternary_and_boolean():
    @J.script
    def f(x: int, y: int) -> int:
        return x if x > y and not y == 3 or x == 0 else y

    same([f(2, 1), f(4, 3), f(0, 9)], [2, 3, 0])


@idiom
def asserts():
    @J.script
    def f(x: int) -> int:
        assert x > 0, "positive please"
        return x

    same(f(1), 1)
    assert "positive please" in error_of(lambda: f(-1))


@idiom
def raises():
    @J.script
    def f(x: int) -> int:
        if x < 0:
            raise ValueError("negative")
        return x

    assert "negative" in error_of(lambda: f(-1))


@idiom
def print_statement():
    @J.script
    def f(x: int) -> int:
        print("value", x)
        return x

    same(f(3), 3)


@idiom
def globals_and_closures():
    offset = 10

    @J.script
    def f(x):
        return x * SCALE + offset

    same(f(torch.ones(1)), torch.full((1,), 13.0))


@idiom
def global_tuple():
    @J.script
    def f(x):
        return x * FACTORS[0] + FACTORS[1]

    same(f(torch.ones(1)), torch.full((1,), 4.0))


@idiom
def calls_python_function():
    @J.script
    def f(x):
        return double_it(x) + typed_helper(x, 1)

    same(f(torch.ones(1)), torch.full((1,), 4.0))


@idiom
def calls_scripted_function():
    @J.script
    def inner(x):
        return x + 1

    @J.script
    def outer(x):
        return inner(inner(x))

    same(outer(torch.zeros(1)), torch.full((1,), 2.0))


@idiom
def functional_calls():
    @J.script
    def f(x):
        return F.softmax(F.relu(x), dim=-1) + torch.nn.functional.gelu(x)

    x = torch.randn(3)
    same(f(x), F.softmax(F.relu(x), dim=-1) + F.gelu(x))


@idiom
def math_calls():
    @J.script
    def f(x: float) -> float:
        return math.sqrt(x) + math.pi + math.floor(x)

    same(f(4.0), math.sqrt(4.0) + math.pi + 4)


@idiom
def dtype_and_device():
    @J.script
    def f(n: int):
        return torch.zeros(n, dtype=torch.int64, device=torch.device("cpu")).to(torch.float32)

    same(f(2), torch.zeros(2))


@idiom
def dtype_argument():
    @J.script
    def f(x, d: torch.dtype):
        return x.to(d)

    same(f(torch.ones(1), torch.int32), torch.ones(1, dtype=torch.int32))


@idiom
def indexing():
    @J.script
    def f(x):
        return x[0], x[1:, None], x[..., -1], x[x > 2]

    x = torch.arange(6.0).reshape(2, 3)
    same(f(x), (x[0], x[1:, None], x[..., -1], x[x > 2]))


@idiom
def index_assignment():
    @J.script
    def f(x):
        y = x.clone()
        y[0] = 7.0
        y[:, 1] += 1
        return y

    x = torch.zeros(2, 2)
    same(f(x), torch.tensor([[7.0, 8.0], [0.0, 1.0]]))


@idiom
def in_place_seen_by_caller():
    @J.script
    def f(x):
        x.add_(1)
        return x

    x = torch.zeros(3)
    y = f(x)
    same(x, torch.ones(3))
    assert y.data_ptr() == x.data_ptr()


@idiom
def annotate_empty_list():
    @J.script
    def f() -> List[int]:
        xs = J.annotate(List[int], [])
        xs.append(1)
        return xs

    same(f(), [1])


@idiom
def annotate_none():
    @J.script
    def f(flag: bool) -> Optional[int]:
        x = J.annotate(Optional[int], None)
        if flag:
            x = 1
        return x

    same([f(True), f(False)], [1, None])


@idiom
def jit_isinstance():
    @J.script
    def f(x: Any) -> int:
        if J.isinstance(x, List[int]):
            return 1
        return 0

    same([f([1]), f("a")], [1, 0])


@idiom
def is_scripting():
    def f(x):
        if J.is_scripting():
            return x + 1
        else:
            return helper_that_is_not_there(x)  # noqa: F821

    same(J.script(f)(torch.zeros(1)), torch.ones(1))


@idiom
def not_is_scripting():
    def f(x):
        if not J.is_scripting():
            return [i for i in iter(x)]
        return x + 1

    same(J.script(f)(torch.zeros(1)), torch.ones(1))


@idiom
def fork_and_wait():
    def slow(x):
        return x.relu()

    @J.script
    def f(x):
        futures = J.annotate(List[J.Future[torch.Tensor]], [])
        for i in range(3):
            futures.append(J.fork(slow, x + i))
        total = J.wait(futures[0])
        for future in futures[1:]:
            total = total + J.wait(future)
        return total

    same(f(torch.zeros(1)), torch.full((1,), 3.0))


@idiom
def enums():
    @J.script
    def f(c: Color) -> int:
        if c == Color.RED:
            return c.value
        return 10

    same([f(Color.RED), f(Color.GREEN)], [1, 10])


@idiom
def enum_result():
    @J.script
    def f(n: int) -> Color:
        if n == 0:
            return Color.RED
        return Color.GREEN

    assert f(0) == Color.RED and f(1) is Color.GREEN


@idiom
def named_tuples():
    @J.script
    def f(x) -> Point:
        return Point(x + 1, 5)

    p = f(torch.zeros(1))
    same(p.x, torch.ones(1))
    same(p.y, 5)


@idiom
def named_tuple_argument():
    @J.script
    def f(p: Point) -> torch.Tensor:
        return p.x * p.y

    same(f(Point(torch.ones(1), 3)), torch.full((1,), 3.0))


@idiom
def script_class():
    @J.script
    def f(n: int) -> int:
        c = Counter(n)
        c.add(2)
        return c.value + Counter.twice(4)

    same(f(1), 11)


@idiom
def script_class_of_tensors():
    @J.script
    def f(x):
        p = Pair(x, x)
        p.a = p.a + 1
        return p.total()

    same(f(torch.zeros(1)), torch.ones(1))


@idiom
def script_class_from_python():
    c = Counter(3)

    @J.script
    def f(c: Counter) -> int:
        return c.add(1)

    same(f(c), 4)


@idiom
def interfaces():
    @J.script
    def use(t: Transform, x: torch.Tensor) -> torch.Tensor:
        return t.run(x)

    @J.script
    def f(x):
        return use(Adder(2), x)

    same(f(torch.zeros(1)), torch.full((1,), 2.0))


@idiom
def compilation_unit():
    cu = J.CompilationUnit("def f(x):\n    return x + 1\ndef g(x: int) -> int:\n    return x * 2\n")
    same(torch.as_tensor(cu.f(torch.zeros(1))), torch.ones(1))
    same(cu.g(4), 8)


@idiom
def no_grad_in_script():
    @J.script
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y

    same(f(torch.ones(1)), torch.full((1,), 2.0))


@idiom
def numeric_builtins():
    @J.script
    def f(x: int, y: float) -> Tuple[int, float, int, float]:
        return abs(x), max(float(x), y), int(y), round(y)

    same(f(-2, 1.6), (2, 1.6, 1, 2.0))


@idiom
def zip_enumerate_reversed():
    @J.script
    def f(xs: List[int], ys: List[int]) -> int:
        total = 0
        for i, (x, y) in enumerate(zip(xs, ys)):
            total += i * x * y
        return total

    same(f([1, 2], [3, 4]), 8)


@idiom
def nested_lists():
    @J.script
    def f(n: int) -> List[List[int]]:
        return [[i, i + 1] for i in range(n)]

    same(f(2), [[0, 1], [1, 2]])


@idiom
def complex_numbers():
    @J.script
    def f(x: complex) -> complex:
        return x * 2j

    same(f(1 + 1j), (1 + 1j) * 2j)


@idiom
def sorting():
    @J.script
    def f(xs: List[int]) -> List[int]:
        xs.sort(reverse=True)
        return sorted(xs) + xs

    same(f([2, 1, 3]), [1, 2, 3, 3, 2, 1])


@idiom
def docstring_and_comments():
    @J.script
    def f(x):
        """Says what it does.

        On several lines.
        """
        # a comment
        return x + 1  # another

    same(f(torch.zeros(1)), torch.ones(1))


@idiom
def multiline_calls():
    @J.script
    def f(
        x: torch.Tensor,
        n: int = 1,
    ) -> torch.Tensor:
        return torch.add(
            x,
            n,
            alpha=2,
        )

    same(f(torch.zeros(1)), torch.full((1,), 2.0))


@idiom
def ignored_function():
    @J.ignore
    def python(x: torch.Tensor) -> torch.Tensor:
        return x + len([1, 2, 3])

    @J.script
    def f(x):
        return python(x)

    same(f(torch.zeros(1)), torch.full((1,), 3.0))


@idiom
def unused_function():
    @J.unused
    def python(x: torch.Tensor) -> torch.Tensor:
        return x

    @J.script
    def f(x, flag: bool):
        if flag:
            x = python(x)
        return x

    same(f(torch.zeros(1), False), torch.zeros(1))
    error_of(lambda: f(torch.zeros(1), True))


# --- errors ---


@idiom
def undefined_name():
    def f(x):
        return missing(x)  # noqa: F821

    text = error_of(lambda: J.script(f))
    assert "undefined value missing" in text and "idioms.py" in text and "~~~" in text


@idiom
def wrong_return_type():
    def f(x: int) -> str:
        return x  # type: ignore

    assert "Return value was annotated as having type str but is actually of type int" in error_of(lambda: J.script(f))


@idiom
def wrong_argument_type():
    @J.script
    def f(x: int) -> int:
        return x

    text = error_of(lambda: f("a"))
    assert "Expected a value of type 'int' for argument 'x' but instead found type 'str'" in text


@idiom
def missing_argument():
    @J.script
    def f(x: int, y: int) -> int:
        return x

    assert "missing value for argument 'y'" in error_of(lambda: f(1))


@idiom
def too_many_arguments():
    @J.script
    def f(x: int) -> int:
        return x

    assert "expected at most 1 argument(s) but received 2" in error_of(lambda: f(1, 2))


@idiom
def unknown_keyword():
    @J.script
    def f(x: int) -> int:
        return x

    text = error_of(lambda: f(x=1, z=2))
    assert "z" in text


@idiom
def variable_of_two_types():
    def f(flag: bool):
        if flag:
            x = 1
        else:
            x = "a"
        return x

    assert "Type mismatch" in error_of(lambda: J.script(f))


@idiom
def defined_in_one_branch():
    def f(flag: bool):
        if flag:
            x = 1
        return x

    assert "x is not defined in the false branch" in error_of(lambda: J.script(f))


@idiom
def try_is_not_supported():
    def f(x):
        try:
            return x
        except Exception:
            return x

    assert "try blocks aren't supported" in error_of(lambda: J.script(f)) or "aren't supported" in error_of(lambda: J.script(f))


@idiom
def varargs_are_not_supported():
    def f(*xs):
        return xs

    assert "variable number of arguments" in error_of(lambda: J.script(f))


@idiom
def runtime_error_has_traceback():
    @J.script
    def f(x, y):
        return x.matmul(y)

    text = error_of(lambda: f(torch.ones(2, 3), torch.ones(2, 3)))
    assert "The following operation failed in the TorchScript interpreter" in text
    assert "return x.matmul(y)" in text and "<--- HERE" in text


@idiom
def jit_error_class():
    @J.script
    def f(xs: List[int]) -> int:
        return xs[5]

    try:
        f([1])
    except (RuntimeError, IndexError) as error:
        assert "index" in str(error)
    else:
        raise AssertionError


@idiom
def recursive_call_is_refused():
    def f(x: int) -> int:
        return g_recursive(x)

    def g_recursive(x: int) -> int:
        return f(x)

    error_of(lambda: J.script(f))


# --- functions as objects ---


@idiom
def graph_of_function():
    @J.script
    def f(x, y):
        return x + 2 * y

    text = str(f.graph)
    assert text.startswith("graph(%x.1 : Tensor,\n      %y.1 : Tensor):") or text.startswith("graph(%x"), text
    assert "aten::mul" in text and "aten::add" in text and "return (" in text
    assert [n.kind() for n in f.graph.nodes()][-1] == "aten::add"


@idiom
def code_of_function():
    @J.script
    def f(x, n: int):
        for i in range(n):
            x = x + i
        return x

    assert f.code.startswith("def f(x: Tensor,\n    n: int) -> Tensor:\n"), f.code
    assert "for i in range(n):" in f.code


@idiom
def schema_of_function():
    @J.script
    def f(x: torch.Tensor, n: int = 2) -> torch.Tensor:
        return x * n

    assert str(f.schema) == "f(Tensor x, int n=2) -> Tensor", str(f.schema)


@idiom
def name_of_function():
    @J.script
    def some_name(x):
        return x

    assert some_name.name == "some_name"


@idiom
def find_nodes():
    @J.script
    def f(x):
        if x.sum() > 0:
            x = x.relu()
        return x

    assert len(f.graph.findAllNodes("aten::relu")) == 1
    assert f.graph.findNode("prim::If") is not None


@idiom
def node_walk():
    @J.script
    def f(x):
        return torch.relu(x) + 1

    for node in f.graph.nodes():
        assert isinstance(node.kind(), str)
        for value in node.inputs():
            assert value.debugName() and str(value.type())
    assert next(iter(f.graph.inputs())).debugName()


@idiom
def inlined_graph():
    @J.script
    def f(x):
        return double_it(x)

    assert "prim::CallFunction" in str(f.graph)
    assert "aten::mul" in str(f.inlined_graph)


@idiom
def graph_for():
    @J.script
    def f(x):
        return x.relu() * 2

    x = torch.ones(2)
    f(x)
    assert f.graph_for(x) is not None


@idiom
def save_function():
    @J.script
    def f(x):
        return x * 3

    buffer = io.BytesIO()
    J.save(f, buffer)
    buffer.seek(0)
    g = J.load(buffer)
    same(g(torch.ones(1)), torch.full((1,), 3.0))


@idiom
def file_check():
    @J.script
    def f(x):
        return torch.tanh(x)

    from torch.testing import FileCheck

    FileCheck().check("aten::tanh").run(str(f.graph))


# --- modules ---


@idiom
def script_module():
    m = Linear2()
    s = J.script(m)
    x = torch.randn(2, 4)
    same(s(x), m(x))


@idiom
def module_text():
    s = J.script(Linear2())
    assert "original_name=Linear2" in repr(s) and "(linear)" in repr(s)
    assert "prim::GetAttr" in str(s.graph) and "def forward(self" in s.code


@idiom
def module_without_state():
    same(J.script(Plain())(torch.zeros(1)), torch.ones(1))


@idiom
def module_containers():
    m = Loops()
    x = torch.randn(2, 4)
    same(J.script(m)(x), m(x))


@idiom
def module_constants():
    m = Constants()
    s = J.script(m)
    x = torch.ones(2)
    same(s(x), Constants()(x))
    assert s.table["y"] == 2
    same(s.maybe, x)


@idiom
def module_export():
    s = J.script(Exported())
    same(s.other(torch.ones(1), 3), torch.full((1,), 3.0))
    same(s.other(torch.ones(1)), torch.full((1,), 2.0))
    same(s(torch.ones(1)), torch.full((1,), 2.0))


@idiom
def module_ignore():
    m = Ignoring()
    same(J.script(m)(torch.ones(2)), torch.full((2,), 10.0))


@idiom
def convolutions():
    m = Conv().eval()
    s = J.script(m)
    x = torch.randn(2, 3, 8, 8)
    same(s(x), m(x))


@idiom
def train_and_eval():
    s = J.script(Conv())
    assert s.training
    s.eval()
    assert not s.training and not s.body.training
    s.train()
    assert s.training


@idiom
def dropout_in_eval():
    s = J.script(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))).eval()
    x = torch.ones(1, 2)
    same(s(x), s(x))


@idiom
def parameters_of_module():
    m = Linear2()
    s = J.script(m)
    assert [n for n, _ in s.named_parameters()] == ["linear.weight", "linear.bias"]
    assert [n for n, _ in s.named_buffers()] == ["offset"]
    assert len(list(s.parameters())) == 2
    assert [n for n, _ in s.named_modules()] == ["", "linear"]
    assert len(list(s.children())) == 1
    assert sum(p.numel() for p in s.parameters()) == 15


@idiom
def state_dict_of_module():
    m = Linear2()
    s = J.script(m)
    assert list(s.state_dict()) == list(m.state_dict()) or set(s.state_dict()) == set(m.state_dict())
    for name, value in s.state_dict().items():
        same(value, m.state_dict()[name])


@idiom
def load_state_dict():
    a, b = J.script(Linear2()), J.script(Linear2())
    b.load_state_dict(a.state_dict())
    x = torch.randn(1, 4)
    same(b(x), a(x))
    assert "Missing key(s)" in error_of(lambda: a.load_state_dict({}))


@idiom
def shared_memory_with_python_module():
    m = Linear2()
    s = J.script(m)
    with torch.no_grad():
        m.linear.bias.add_(1)
    x = torch.randn(1, 4)
    same(s(x), m(x))


@idiom
def attribute_get_and_set():
    s = J.script(Constants())
    assert s.k == 4
    assert s.names == ["a", "b"]
    s.names = ["c"]
    assert s.names == ["c"]


@idiom
def attribute_of_wrong_type():
    s = J.script(Constants())
    error_of(lambda: setattr(s, "names", 3))


@idiom
def missing_attribute():
    s = J.script(Plain())
    try:
        s.nothing
    except AttributeError:
        pass
    else:
        raise AssertionError


@idiom
def submodule_call():
    m = Linear2()
    s = J.script(m)
    x = torch.randn(1, 4)
    same(s.linear(x), m.linear(x))
    same(s.linear.weight, m.linear.weight)


@idiom
def properties():
    m = WithProperty()
    s = J.script(m)
    same(s(torch.ones(1)), torch.full((1,), 2.0))
    assert s.n == 2


@idiom
def functions_as_attributes():
    m = WithHelperFunction()
    x = torch.randn(3)
    same(J.script(m)(x), m(x))


@idiom
def lstm_cell():
    m = LSTM()
    s = J.script(m)
    x, state = torch.randn(2, 3), (torch.zeros(2, 4), torch.zeros(2, 4))
    same(s(x, state), m(x, state))


@idiom
def module_of_modules_with_interface():
    class Holder(nn.Module):
        inner: ModuleTransform

        def __init__(self):
            super().__init__()
            self.inner = Plain()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner.forward(x)

    same(J.script(Holder())(torch.zeros(1)), torch.ones(1))


@idiom
def attribute_with_type():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = J.Attribute({}, Dict[str, int])

        def forward(self, key: str) -> int:
            self.words[key] = len(key)
            return len(self.words)

    same(J.script(Holder())("abc"), 1)


@idiom
def empty_list_attribute_annotated():
    class Holder(nn.Module):
        xs: List[int]

        def __init__(self):
            super().__init__()
            self.xs = []

        def forward(self, n: int) -> int:
            self.xs.append(n)
            return len(self.xs)

    s = J.script(Holder())
    same([s(1), s(2)], [1, 2])
    same(s.xs, [1, 2])


@idiom
def buffer_mutation():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count += 1
            return x + self.count

    s = J.script(Steps())
    s(torch.zeros(1))
    same(s(torch.zeros(1)), torch.full((1,), 2.0))
    same(s.count, torch.full((1,), 2.0))


@idiom
def sequential():
    m = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    s = J.script(m)
    x = torch.randn(2, 3)
    same(s(x), m(x))
    assert len(s) == 3
    same(s[0].weight, m[0].weight)


@idiom
def embedding_and_layernorm():
    m = nn.Sequential(nn.Embedding(10, 4), nn.LayerNorm(4))
    x = torch.tensor([[1, 2], [3, 4]])
    same(J.script(m)(x), m(x))


@idiom
def transformer_layer():
    m = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        same(J.script(m)(x), m(x))


@idiom
def gru():
    m = Recurrent()
    x = torch.randn(2, 5, 3)
    with torch.no_grad():
        same(J.script(m)(x), m(x))


@idiom
def save_and_load_path():
    m = Linear2()
    s = J.script(m)
    x = torch.randn(1, 4)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.pt")
        s.save(path)
        same(J.load(path)(x), m(x))
        same(torch.jit.load(path)(x), m(x))


@idiom
def save_and_load_buffer():
    s = J.script(Linear2())
    buffer = io.BytesIO()
    J.save(s, buffer)
    buffer.seek(0)
    x = torch.randn(1, 4)
    same(J.load(buffer)(x), s(x))


@idiom
def load_what_torch_saved():
    m = Conv().eval()
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(m), buffer)
    buffer.seek(0)
    x = torch.randn(1, 3, 8, 8)
    same(J.load(buffer)(x), m(x))


@idiom
def extra_files():
    s = J.script(Plain())
    buffer = io.BytesIO()
    J.save(s, buffer, _extra_files={"note.txt": "hello"})
    buffer.seek(0)
    files = {"note.txt": ""}
    J.load(buffer, _extra_files=files)
    assert files["note.txt"] in (b"hello", "hello")


@idiom
def load_map_location():
    buffer = io.BytesIO()
    J.save(J.script(Plain()), buffer)
    buffer.seek(0)
    same(J.load(buffer, map_location=torch.device("cpu"))(torch.zeros(1)), torch.ones(1))


@idiom
def load_missing_file():
    assert "does not exist" in error_of(lambda: J.load("/nowhere/model.pt"))


@idiom
def freezing():
    m = J.script(Conv().eval())
    frozen = J.freeze(m)
    x = torch.randn(1, 3, 8, 8)
    same(frozen(x), m(x))
    assert "prim::GetAttr" not in str(frozen.graph)


@idiom
def freezing_wants_eval():
    assert "eval" in error_of(lambda: J.freeze(J.script(Linear2())))


@idiom
def optimize_for_inference():
    m = J.script(Linear2().eval())
    x = torch.randn(1, 4)
    same(J.optimize_for_inference(m)(x), m(x))


@idiom
def deepcopy_module():
    s = J.script(Linear2())
    c = copy.deepcopy(s)
    x = torch.randn(1, 4)
    same(c(x), s(x))


@idiom
def threads():
    s = J.script(Linear2())
    x = torch.randn(1, 4)
    wanted = s(x)
    found: list[Any] = []
    workers = [threading.Thread(target=lambda: found.append(s(x))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 8
    for one in found:
        assert torch.equal(torch.as_tensor(one), torch.as_tensor(wanted))


@idiom
def script_twice():
    s = J.script(Plain())
    assert J.script(s) is s


@idiom
def is_instance_of_script_module():
    assert isinstance(J.script(Plain()), J.ScriptModule)

    @J.script
    def f(x):
        return x

    assert isinstance(f, J.ScriptFunction)


@idiom
def module_failing_attribute():
    class Bad(nn.Module):
        def __init__(self):
            super().__init__()
            self.thing = object()

        def forward(self, x):
            return self.thing

    assert "thing" in error_of(lambda: J.script(Bad()))


@idiom
def script_module_in_module():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = J.script(Linear2()) if WHICH == "torch" else Linear2()

        def forward(self, x):
            return self.inner(x)

    m = Outer()
    x = torch.randn(1, 4)
    same(J.script(m)(x), m(x))


@idiom
def gradient_of_function():
    @J.script
    def f(x):
        return (x * x).sum()

    x = torch.ones(3, requires_grad=True)
    f(x).backward()
    same(x.grad, torch.full((3,), 2.0))


@idiom
def gradient_of_parameters():
    m = Linear2()
    s = J.script(m)
    s(torch.ones(1, 4)).sum().backward()
    assert m.linear.weight.grad is not None
    same(m.linear.weight.grad, torch.ones(3, 4))


@idiom
def training_step():
    m = Linear2()
    s = J.script(m)
    optimizer = torch.optim.SGD(s.parameters(), lr=0.1)
    before = m.linear.weight.detach().clone()
    loss = s(torch.ones(1, 4)).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    assert not torch.equal(before, m.linear.weight.detach())


# --- traces ---


@idiom
def trace_function():
    def f(x, y):
        return x.relu() + torch.tanh(y) * 2

    x, y = torch.randn(3), torch.randn(3)
    t = J.trace(f, (x, y))
    same(t(y, x), f(y, x))


@idiom
def trace_single_input():
    t = J.trace(lambda x: x * 2, torch.ones(2))
    same(t(torch.full((2,), 3.0)), torch.full((2,), 6.0))


@idiom
def trace_module():
    m = Conv().eval()
    x = torch.randn(2, 3, 8, 8)
    t = J.trace(m, x)
    same(t(x), m(x))
    y = torch.randn(3, 3, 8, 8)
    same(t(y), m(y))


@idiom
def trace_state():
    m = Linear2()
    t = J.trace(m, torch.randn(2, 4))
    assert [n for n, _ in t.named_parameters()] == ["linear.weight", "linear.bias"]
    assert "linear" in t.code or "linear" in str(t.graph)


@idiom
def trace_keeps_scripted_control_flow():
    @J.script
    def g(x):
        if x.sum() > 0:
            return x
        return -x

    def f(x):
        return g(x) + 1

    t = J.trace(f, (torch.ones(2),))
    same(t(-torch.ones(2)), torch.full((2,), 2.0))
    assert "prim::CallFunction" in str(t.graph) or "prim::If" in str(t.inlined_graph)


@idiom
def trace_warns_about_values():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        J.trace(f, (torch.ones(2),))
    assert any(issubclass(w.category, J.TracerWarning) for w in seen)


@idiom
def trace_several_outputs():
    t = J.trace(lambda x: (x + 1, [x * 2, x * 3]), (torch.ones(1),))
    a, b = t(torch.ones(1))
    same(a, torch.full((1,), 2.0))
    same(b[1], torch.full((1,), 3.0))


@idiom
def trace_in_place():
    def f(x):
        y = x.clone()
        y[0] = 5
        y += 1
        return y

    t = J.trace(f, (torch.zeros(2),))
    same(t(torch.ones(2)), torch.tensor([6.0, 2.0]))


@idiom
def trace_and_save():
    t = J.trace(Linear2(), torch.randn(1, 4))
    buffer = io.BytesIO()
    J.save(t, buffer)
    buffer.seek(0)
    x = torch.randn(1, 4)
    same(J.load(buffer)(x), t(x))


@idiom
def trace_constant():
    c = torch.tensor([1.0, 2.0])
    t = J.trace(lambda x: x + c, (torch.zeros(2),))
    same(t(torch.zeros(2)), c)


@idiom
def trace_functional():
    def f(x):
        return F.max_pool2d(F.conv2d(x, torch.ones(1, 1, 2, 2)), 2)

    x = torch.randn(1, 1, 6, 6)
    same(J.trace(f, x)(x), f(x))


@idiom
def trace_module_methods():
    class Two(nn.Module):
        def forward(self, x):
            return x + 1

        def other(self, x):
            return x * 2

    t = J.trace_module(Two(), {"forward": torch.ones(1), "other": torch.ones(1)})
    same(t.other(torch.ones(1)), torch.full((1,), 2.0))


@idiom
def script_calls_traced():
    t = J.trace(lambda x: x * 2, (torch.ones(1),))

    @J.script
    def f(x):
        return t(x) + 1

    same(f(torch.ones(1)), torch.full((1,), 3.0))


@idiom
def is_tracing():
    seen = []

    def f(x):
        seen.append(J.is_tracing())
        return x + 1

    J.trace(f, (torch.ones(1),), check_trace=False)
    assert seen[0] and not J.is_tracing()


@idiom
def script_if_tracing():
    @J.script_if_tracing
    def g(x, n: int):
        for _ in range(n):
            x = x + 1
        return x

    t = J.trace(lambda x: g(x, 3), (torch.zeros(1),))
    same(t(torch.ones(1)), torch.full((1,), 4.0))


@idiom
def trace_dict_input():
    t = J.trace(lambda d: d["a"] + d["b"], ({"a": torch.ones(1), "b": torch.ones(1)},), strict=False)
    same(t({"a": torch.zeros(1), "b": torch.ones(1)}), torch.ones(1))


@idiom
def futures_of_forks_go_on():
    future = J.fork(torch.neg, torch.ones(1))
    same(future.then(lambda f: f.wait() + 1).wait(), torch.zeros(1))
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    same(seen, [-torch.ones(1)])


if __name__ == "__main__":
    sys.exit(min(1, main()))
