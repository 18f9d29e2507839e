"""Idioms at the edges of torch.jit: random numbers, custom operators, contexts, shared containers, schemas, what is refused.

`python idioms_edges.py torch` runs them with PyTorch's own, `python idioms_edges.py flambeau` with Flambeau.
"""

import dataclasses
import io
import sys
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from idiom import J, WHICH, idiom, main, same

x23 = torch.arange(6.0).view(2, 3)


def raises(kinds: Any, work: Any, words: str = "") -> None:
    try:
        work()
    except kinds as error:
        assert words in str(error), str(error)
        return
    raise AssertionError("it did not raise")


# --- text ---


@idiom
def fstring_braces():
    @J.script
    def f(x: int, y: float) -> str:
        return f"{{literal}} {x} {{{y}}}"

    @J.script
    def g() -> str:
        return f"{{only}}"

    @J.script
    def h(x: int) -> str:
        return f"a'b\n{x}"

    assert f(3, 2.5) == "{literal} 3 {2.5}", f(3, 2.5)
    assert g() == "{only}", g()
    assert h(1) == "a'b\n1", h(1)


@idiom
def fstring_form_is_refused():
    def f(x: float) -> str:
        return f"{x:.2f}"

    raises(Exception, lambda: J.script(f), "formatting in JoinedStr")
    # As it stands in the file.
    raises(Exception, lambda: J.script(f), '\n        return f"{x:.2f}"\n')


@idiom
def keyword_only_defaults_are_refused():
    def f(x: int, *, k: int = 3) -> int:
        return x + k

    raises(Exception, lambda: J.script(f), "keyword-only arguments with defaults")


@idiom
def array_annotation_is_refused():
    def f(x: np.ndarray):
        return x

    raises(RuntimeError, lambda: J.script(f), "Unknown type name")


# --- traces ---


@idiom
def trace_no_grad_inside():
    def f(a):
        with torch.no_grad():
            b = a * 2
        return b + a

    t = J.trace(f, (x23,))
    assert torch.is_grad_enabled()
    same(t(x23 + 1), (x23 + 1) * 3)


@idiom
def trace_that_raises_leaves_grad_mode():
    def f(a):
        with torch.no_grad():
            raise ValueError("stop")

    raises(ValueError, lambda: J.trace(f, (x23,)), "stop")
    assert torch.is_grad_enabled()
    with torch.no_grad():
        raises(ValueError, lambda: J.trace(f, (x23,)), "stop")
        assert not torch.is_grad_enabled()


@idiom
def trace_operators_by_name():
    def f(a):
        return torch.ops.aten.mul(a, 2) + torch.ops.aten.relu.default(a - 2)

    same(J.trace(f, (x23,))(x23 + 1), f(x23 + 1))


@idiom
def trace_operators_of_torchvision():
    import torchvision

    boxes = torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]])
    t = J.trace(lambda b, s: torchvision.ops.nms(b, s, 0.5), (boxes, torch.tensor([0.1, 0.9, 0.5])))
    same(t(boxes, torch.tensor([0.9, 0.1, 0.5])), torch.tensor([0, 2]))


@idiom
def trace_old_weight_norm():
    m = nn.utils.weight_norm(nn.Linear(3, 2))
    t = J.trace(m, (x23,))
    same(t(x23 + 1), m(x23 + 1))


@idiom
def trace_says_that_it_is():
    seen = []

    def f(a):
        seen.append(torch.jit.is_tracing())
        return a + 1

    assert not torch.jit.is_tracing()
    J.trace(f, (x23,), check_trace=False)
    assert seen == [True]
    assert not torch.jit.is_tracing()


@idiom
def trace_check_raises_where_traces_differ():
    calls = []

    def f(a):
        calls.append(1)
        return a + 1 if len(calls) % 2 else a * 2

    raises(J.TracingCheckError if WHICH != "torch" else torch.jit.TracingCheckError, lambda: J.trace(f, (x23,)), "Graphs differed across invocations")


@idiom
def trace_check_raises_for_other_inputs():
    def f(a):
        return a[: int(a.sum() > 3) + 1]

    raises(torch.jit.TracingCheckError if WHICH == "torch" else J.TracingCheckError,
           lambda: J.trace(f, (torch.ones(2),), check_inputs=[(torch.ones(2) * 5,)]))


@idiom
def trace_autocast():
    def f(a):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return a @ a.t()

    t = J.trace(f, (x23,), check_trace=False)
    assert t(x23).dtype == torch.bfloat16


@idiom
def trace_keeps_gradients_of_parameters():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)

        def forward(self, a):
            return self.l(self.l(a))

    t = J.trace(M(), x23)
    assert t(x23).requires_grad


# --- random numbers ---


@idiom
def seeded_dropout_in_a_script():
    @J.script
    def f(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5, True)

    for seed in (0, 5, 123456789):
        torch.manual_seed(seed)
        found, after = f(torch.ones(40)), torch.rand(3)
        torch.manual_seed(seed)
        want, after_want = F.dropout(torch.ones(40), 0.5, True), torch.rand(3)
        same(found, want)
        same(after, after_want)


@idiom
def random_numbers_interleaved():
    @J.script
    def f() -> torch.Tensor:
        return torch.randn([5]) + torch.rand([5])

    torch.manual_seed(9)
    found = [torch.rand(2), f(), torch.randn(20), f(), torch.randperm(5)]
    torch.manual_seed(9)
    want = [torch.rand(2), torch.randn(5) + torch.rand(5), torch.randn(20), torch.randn(5) + torch.rand(5), torch.randperm(5)]
    same(found, want)


@idiom
def script_seeds_torch():
    @J.script
    def f() -> torch.Tensor:
        torch.manual_seed(3)
        return torch.rand([2])

    found = [f(), torch.rand(2)]
    torch.manual_seed(3)
    same(found, [torch.rand(2), torch.rand(2)])


@idiom
def generators_of_torch_in_a_script():
    @J.script
    def f(n: int, g: Optional[torch.Generator] = None) -> torch.Tensor:
        return torch.rand([n], generator=g)

    @J.script
    def own(n: int) -> torch.Tensor:
        return torch.randn([n], generator=torch.Generator().manual_seed(4))

    given, other = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    found = [f(3, given), torch.randn(20, generator=given), f(4, given)]
    same(found, [torch.rand(3, generator=other), torch.randn(20, generator=other), torch.rand(4, generator=other)])
    same(own(5), torch.randn(5, generator=torch.Generator().manual_seed(4)))


# --- classes ---


@idiom
def property_of_a_script_class():
    @J.script
    class Stack:
        def __init__(self, items: List[int]):
            self.items = items

        @property
        def top(self) -> int:
            return self.items[-1]

        @top.setter
        def top(self, v: int):
            self.items[-1] = v

    @J.script
    def f(n: int) -> int:
        s = Stack([1, n])
        s.top = s.top + 7
        return s.top

    @J.script
    def g() -> Stack:
        return Stack([3, 4])

    assert f(2) == 9
    assert g().top == 4


@idiom
def overload_method():
    class M(nn.Module):
        @torch.jit._overload_method
        def go(self, x: int) -> int:
            pass

        @torch.jit._overload_method  # noqa: F811
        def go(self, x: torch.Tensor) -> torch.Tensor:  # noqa: F811
            pass

        def go(self, x):  # noqa: F811
            return x + 1

        def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, int]:
            return self.go(x), self.go(2)

    assert callable(J._overload_method)
    same(J.script(M())(torch.ones(1)), (torch.full((1,), 2.0), 3))


# --- gradients ---


@idiom
def scripted_module_with_a_traced_one():
    inner = J.trace(nn.Linear(2, 2), torch.ones(1, 2))

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = inner

        def forward(self, x):
            return self.t(x)

    m = J.script(M())
    y = m(torch.ones(1, 2))
    assert y.requires_grad
    y.sum().backward()
    assert all(p.grad is not None for p in inner.parameters())


@idiom
def double_backward():
    @J.script
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * x * x * y).sum()

    x, y = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([1.0, 5.0], requires_grad=True)
    (first,) = torch.autograd.grad(f(x, y), x, create_graph=True)
    same(first, 3 * x * x * y)
    second = torch.autograd.grad(first.sum(), [x, y])
    same(second[0], 6 * x * y)
    same(second[1], 3 * x * x)


@idiom
def gradient_penalty():
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    s = J.script(m)
    found = []
    for n in (m, s):
        m.zero_grad()
        x = x23.clone().requires_grad_()
        (g,) = torch.autograd.grad(n(x).sum(), x, create_graph=True)
        (g * g).sum().backward()
        found.append(m[0].weight.grad.clone())
    torch.testing.assert_close(found[0], found[1])


# --- containers ---


@idiom
def shared_list():
    @J.script
    def f(xs: List[int]) -> int:
        xs.append(7)
        return len(xs)

    xs = J.script([1, 2])
    assert type(xs).__name__ == "ScriptList"
    assert f(xs) == 3
    assert list(xs) == [1, 2, 7] and xs[2] == 7 and len(xs) == 3
    xs.append(4)
    xs[0] = 9
    assert f(xs) == 5
    assert list(xs) == [9, 2, 7, 4, 7] and xs.pop() == 7 and 4 in xs
    plain = [1]
    f(plain)
    assert plain == [1]


@idiom
def shared_dict():
    @J.script
    def f(d: Dict[str, int]):
        d["new"] = 5

    d = J.script({"a": 1})
    assert type(d).__name__ == "ScriptDict"
    f(d)
    assert d["new"] == 5 and len(d) == 2 and sorted(d) == ["a", "new"]
    d["b"] = 2
    del d["a"]
    f(d)
    assert sorted(d.items()) == [("b", 2), ("new", 5)]


@idiom
def list_of_two_types_is_refused():
    raises(Exception, lambda: J.script([1, "a"]))


# --- operators and modules of PyTorch ---

torch.library.define("flambeau_edges::twice", "(Tensor x, int n=2) -> Tensor")


@torch.library.impl("flambeau_edges::twice", "CompositeExplicitAutograd")
def _twice(x, n=2):
    return x * n


@torch.library.custom_op("flambeau_edges::split_sum", mutates_args=())
def split_sum(x: torch.Tensor, k: float) -> Tuple[torch.Tensor, torch.Tensor]:
    return x.sum() + k, x * k


@idiom
def custom_operators():
    @J.script
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.flambeau_edges.twice(x, 3) + torch.ops.flambeau_edges.twice(x)

    @J.script
    def g(x: torch.Tensor):
        a, b = torch.ops.flambeau_edges.split_sum(x, 2.0)
        return a, b

    same(f(x23), x23 * 5)
    same(g(x23), (x23.sum() + 2, x23 * 2))


@idiom
def packed_sequences_by_nn():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.g = nn.GRU(3, 4, batch_first=True)

        def forward(self, x, n):
            p = nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True)
            o, h = self.g(p)
            return nn.utils.rnn.pad_packed_sequence(o, batch_first=True)[0]

    m = M()
    args = torch.ones(2, 3, 3), torch.tensor([3, 2])
    same(J.script(m)(*args), m(*args))


@idiom
def autocast_in_a_script():
    @J.script
    def f(x: torch.Tensor):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            return torch.mm(x, x)

    assert f(torch.ones(2, 2)).dtype == torch.bfloat16


@idiom
def fx_of_a_module_with_a_scripted_one():
    m = nn.Sequential(J.script(nn.Linear(3, 2)), nn.ReLU())
    g = torch.fx.symbolic_trace(m)
    same(g(x23), m(x23))


# --- schemas and types ---


@idiom
def schema_as_an_object():
    @J.script
    def f(x: torch.Tensor, t: Tuple[int, int] = (1, 2), k: float = 0.5) -> Dict[str, int]:
        return {"a": 1}

    s = f.schema
    assert str(s) == "f(Tensor x, (int, int) t=(1, 2), float k=0.5) -> Dict(str, int)", str(s)
    assert s.name == "f" and [a.name for a in s.arguments] == ["x", "t", "k"]
    assert s.arguments[1].default_value == (1, 2) and s.arguments[2].default_value == 0.5
    assert s.arguments[0].has_default_value() is False
    assert s.returns[0].type.kind() == "DictType"


@idiom
def types_as_objects():
    @J.script
    def f(x: torch.Tensor, xs: List[int]):
        return {"a": x}, xs

    types = [v.type() for v in f.graph.inputs()]
    assert types[0].kind() == "TensorType" and types[1].kind() == "ListType"
    assert types[1].getElementType().kind() == "IntType"
    assert str(types[1]) == "List[int]" or str(types[1]) == "int[]", str(types[1])
    out = [v.type() for v in f.graph.outputs()]
    assert out[0].kind() == "TupleType" and out[0].elements()[0].kind() == "DictType"


@idiom
def empty_buffer_is_refused():
    raises(RuntimeError, lambda: J.load(io.BytesIO(b"")))


class Defined(J.ScriptModule):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.define("def forward(self, x):\n    return x + self.w\n")


@idiom
def methods_defined_while_a_module_is_made():
    same(Defined()(torch.ones(2)), torch.full((2,), 2.0))


@J.script
@dataclasses.dataclass
class Named:
    x: int
    z: Optional[torch.Tensor] = None


@idiom
def data_classes_with_optional_fields():
    @J.script
    def f(x: int):
        a, b, c = Named(x), Named(x), Named(x, torch.ones(1))
        return a == b, a == c, c == c, a.z

    assert f(3) == (True, False, True, None)


@idiom
def objects_come_back_as_their_class():
    @J.script
    def f(x: int):
        return Named(x)

    made = f(4)
    assert isinstance(made, Named) and made.x == 4


only = J.isinstance


@idiom
def isinstance_under_any_name():
    @J.script
    def f(x: Any):
        if only(x, List[torch.Tensor]):
            return x[0]
        return torch.ones(1)

    @J.script
    def g(x: Any):
        if J.isinstance(x, List[torch.Tensor]):
            return x[0]
        return torch.ones(1)

    same((f([torch.zeros(1)]), g([torch.zeros(1)]), f(1)), (torch.zeros(1), torch.zeros(1), torch.ones(1)))


class Ragged(nn.Module):
    def forward(self, x):
        """A line
at the left
"""
# A comment at the left.
        y = "a\
b"
        return x + len(y)


@idiom
def text_at_the_left_of_a_method():
    same(J.script(Ragged())(torch.ones(1)), torch.full((1,), 3.0))


class TooLong(ValueError):
    pass


@idiom
def exceptions_keep_their_name():
    @J.script
    def f(x: int):
        if x > 1:
            raise TooLong("no more")
        return x

    try:
        f(3)
    except Exception as e:  # noqa: BLE001
        assert "__main__.TooLong: no more" in str(e), e
    else:
        assert False


# --- what PyTorch has only marked ---


@idiom
def conjugated_and_negated_arguments() -> None:
    @J.script
    def real_and_twice(z: torch.Tensor, y: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return torch.view_as_real(z.clone()) * 2, y + y

    z = torch.tensor([1 + 2j, 3 - 4j])
    marked, negative = z.conj(), z.conj().imag
    assert marked.is_conj() and negative.is_neg()
    a, b = real_and_twice(marked, negative)
    same(a, torch.tensor([[2.0, -4.0], [6.0, 8.0]]))
    same(b, torch.tensor([-4.0, 8.0]))


@idiom
def writes_to_conjugated_arguments_are_seen() -> None:
    @J.script
    def add(z: torch.Tensor) -> torch.Tensor:
        z += 1j
        return z

    z = torch.tensor([1 + 2j, 3 - 4j])
    marked = z.conj()
    same(add(marked).resolve_conj(), torch.tensor([1 - 1j, 3 + 5j]))
    same(z, torch.tensor([1 + 1j, 3 - 5j]))


@idiom
def writes_before_an_error_are_seen() -> None:
    @J.script
    def add(z: torch.Tensor) -> torch.Tensor:
        z += 1j
        if z.numel() > 0:
            raise RuntimeError("after the write")
        return z

    z = torch.tensor([1 + 2j, 3 - 4j])
    raises(Exception, lambda: add(z.conj()), "after the write")
    same(z, torch.tensor([1 + 1j, 3 - 5j]))


if __name__ == "__main__":
    sys.exit(min(1, main()))
