"""Idioms of functions and classes: forms of Python, types, containers, errors.

`python idioms_language.py torch` runs them with PyTorch's own, `python idioms_language.py flambeau` with Flambeau.
"""

import dataclasses
import enum
import math
import pickle
import sys
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from idiom import WHICH, J, idiom, main, same

x34 = torch.arange(12.0).reshape(3, 4)


def lambda_free(x):
    return x + 1


@idiom
def dataclass_script():
    @J.script
    @dataclasses.dataclass
    class P:
        x: float
        y: float = 2.0

        def norm(self) -> float:
            return self.x + self.y

    @J.script
    def f(a: float) -> float:
        p = P(a)
        return p.norm()

    assert f(1.0) == 3.0


@idiom
def class_with_operators():
    @J.script
    class V:
        def __init__(self, a: int):
            self.a = a

        def __add__(self, o: "V") -> "V":
            return V(self.a + o.a)

        def __eq__(self, o: "V") -> bool:
            return self.a == o.a

        def __len__(self) -> int:
            return self.a

        def __getitem__(self, i: int) -> int:
            return self.a * i

        def __contains__(self, i: int) -> bool:
            return i == self.a

    @J.script
    def f() -> Tuple[int, bool, int, int, bool]:
        v = V(2) + V(3)
        return v.a, v == V(5), len(v), v[2], 5 in v

    assert tuple(f()) == (5, True, 5, 10, True)


@idiom
def with_statement_class():
    @J.script
    class Ctx:
        def __init__(self):
            self.n = 0

        def __enter__(self):
            self.n += 1
            return self.n

        def __exit__(self, t: Any, v: Any, tb: Any):
            self.n += 10

    @J.script
    def f() -> int:
        c = Ctx()
        with c as k:
            pass
        return c.n

    assert f() == 11


@idiom
def strict_fusion_ctx():
    @J.script
    def f(x):
        with torch.jit.strict_fusion():
            return x + x + x

    same(f(x34), x34 * 3)


@idiom
def future_list():
    @J.script
    def g(x):
        return x + 1

    @J.script
    def f(x):
        fs: List[torch.jit.Future[Tensor]] = []
        for i in range(3):
            fs.append(torch.jit.fork(g, x + i))
        out: List[Tensor] = []
        for q in fs:
            out.append(torch.jit.wait(q))
        return torch.stack(out)

    same(f(x34), torch.stack([x34 + 1 + i for i in range(3)]))


@idiom
def lambda_unsupported():
    def f(x):
        return (lambda y: y + 1)(x)

    try:
        J.script(f)
    except Exception as e:
        assert "ambda" in str(e), e
    else:
        assert False


@idiom
def list_comp_with_condition():
    def f(xs: List[int]):
        return [x for x in xs if x > 1]

    try:
        J.script(f)
    except Exception as e:
        assert "Comprehension ifs" in str(e), e
    else:
        assert False


@idiom
def global_not_constant():
    def f(x):
        return x + SOME

    try:
        J.script(f)
    except Exception as e:
        assert "SOME" in str(e), e
    else:
        assert False


SOMELIST = [1, 2]


@idiom
def python_value_global():
    def f(x):
        return x + SOMELIST[0]

    try:
        J.script(f)
    except Exception as e:
        assert "SOMELIST" in str(e), e
    else:
        assert False


@idiom
def string_methods():
    def f(s: str) -> Tuple[List[str], str, bool, int, str]:
        return s.split(","), s.upper(), s.startswith("a"), s.find("b"), "-".join(s.split(","))

    same(list(J.script(f)("a,b")), list(f("a,b")))


@idiom
def tensor_methods_chain():
    def f(x: Tensor):
        return (
            x.t().contiguous().view(-1).chunk(3)[0].unsqueeze(0).expand(2, -1).sum(dim=1, keepdim=True).item()
            if False
            else x.sum()
        )

    same(J.script(f)(x34), x34.sum())


@idiom
def del_and_pass():
    def f(x: int) -> int:
        y = x + 1
        z = y * 2
        del y
        pass
        return z

    assert J.script(f)(1) == 4


@idiom
def star_unpack():
    def f(x: Tensor):
        a, *b = x.unbind(0)
        return a

    try:
        s = J.script(f)
    except Exception as e:
        pass
    else:
        same(s(x34), x34[0])


@idiom
def isinstance_refine():
    def f(x: Optional[Tensor], y: Union[int, float, str]) -> str:
        if x is None:
            return "none"
        if isinstance(y, (int, float)):
            return "num"
        assert isinstance(y, str)
        return y + "!"

    s = J.script(f)
    assert s(None, 1) == "none" and s(x34, 2.0) == "num" and s(x34, "a") == "a!"


@idiom
def tensor_bool_ambiguous():
    def f(x: Tensor) -> int:
        if x:
            return 1
        return 0

    s = J.script(f)
    try:
        s(x34)
    except RuntimeError as e:
        assert "ambiguous" in str(e), e
    else:
        assert False


@idiom
def optimized_execution():
    s = J.script(lambda_free)
    with J.optimized_execution(False):
        same(s(x34), x34 + 1)


@idiom
def bool_ops_short_circuit():
    def f(xs: List[int]) -> bool:
        return len(xs) > 0 and xs[0] > 1

    assert J.script(f)([]) is False


@idiom
def global_enum_dict():
    class C(enum.Enum):
        A = "a"
        B = "b"

    globals()["C"] = C

    def f(c: C) -> str:
        if c == C.A:
            return c.value
        return c.name

    s = J.script(f)
    assert s(C.A) == "a" and s(C.B) == "B"


@idiom
def iterate_enum():
    class E(enum.Enum):
        A = 1
        B = 2

    globals()["E"] = E

    def f() -> List[int]:
        return [e.value for e in E]

    def g() -> List[int]:
        out: List[int] = []
        for e in E:
            out.append(e.value)
        return out

    assert list(J.script(g)()) == [1, 2]


@idiom
def torch_device_string():
    def f(x: Tensor) -> str:
        return str(x.device)

    assert J.script(f)(x34) == "cpu"


@idiom
def dict_get_pop_update():
    def f(d: Dict[str, int]) -> Tuple[int, int, List[str]]:
        a = d.get("a", 5)
        d["q"] = 3
        b = d.pop("q")
        d.update({"z": 1})
        k = list(d.keys())
        return a, b, k

    same(list(J.script(f)({"b": 1})), [5, 3, ["b", "z"]])


@idiom
def slices_of_list():
    def f(xs: List[int]) -> Tuple[List[int], List[int], List[int]]:
        return xs[1:], xs[::-1], xs[-2:]

    same([list(q) for q in J.script(f)([1, 2, 3])], [[2, 3], [3, 2, 1], [2, 3]])


@idiom
def ellipsis_none_index():
    def f(x: Tensor):
        return x[..., None, 0], x[None, 1:, :, None], x[x > 3], x[torch.tensor([0, 1])]

    same(J.script(f)(x34), f(x34))


@idiom
def inf_nan_consts():
    def f(x: float) -> Tuple[bool, bool, float]:
        return math.isnan(x), x == float("inf"), math.pi

    same(list(J.script(f)(float("nan"))), [True, False, math.pi])


@idiom
def format_spec():
    def f(a: int, b: float) -> str:
        return "{} and {}".format(a, b)

    assert J.script(f)(1, 2.5) == "1 and 2.5"


@idiom
def percent_format():
    def f(a: int) -> str:
        return "%d items" % a

    assert J.script(f)(3) == "3 items"


@idiom
def raise_types():
    def f(x: int) -> int:
        if x > 0:
            raise ValueError("bad {}".format(x))
        return x

    try:
        J.script(f)(1)
    except Exception as e:
        assert "bad 1" in str(e), e
    else:
        assert False


@idiom
def unchecked_cast():
    def f(x: Any) -> int:
        if torch.jit.isinstance(x, List[int]):
            return len(x)
        if torch.jit.isinstance(x, Dict[str, int]):
            return 100
        return -1

    s = J.script(f)
    assert s([1, 2]) == 2 and s({"a": 1}) == 100 and s("q") == -1


@idiom
def python_fork():
    f = torch.jit.fork if WHICH == "torch" else J.fork
    w = torch.jit.wait if WHICH == "torch" else J.wait
    same(w(f(lambda x: x + 1, x34)), x34 + 1)


@idiom
def script_function_default_tensorless():
    @J.script
    def f(a: int = 3, b: str = "x", c: Optional[int] = None) -> str:
        if c is not None:
            return b + str(c)
        return b + str(a)

    assert f() == "x3" and f(c=4) == "x4" and f(1, "y") == "y1"


@idiom
def inplace_ops_on_args():
    @J.script
    def f(x: Tensor):
        x.add_(1)
        x[0] = 5
        return x

    a = torch.zeros(3, 4)
    f(a)
    assert a[0, 0] == 5 and a[1, 0] == 1


@idiom
def out_variant():
    @J.script
    def f(x: Tensor):
        o = torch.empty_like(x)
        torch.add(x, x, out=o)
        return o

    same(f(x34), x34 * 2)


@idiom
def einsum_and_stack():
    @J.script
    def f(a, b):
        return torch.einsum("ij,kj->ik", a, b), torch.einsum("ij,kj->ik", [a, b])

    same(f(x34, x34)[0], x34 @ x34.t())


@idiom
def any_all_sum_builtins():
    @J.script
    def f(xs: List[bool], ys: List[int]) -> Tuple[bool, bool, int, int]:
        return any(xs), all(xs), sum(ys), max(ys)

    same(list(f([True, False], [1, 2])), [True, False, 3, 2])


@idiom
def script_list_of_modules():
    r = J.script([1, 2, 3])
    assert list(r) == [1, 2, 3]


@idiom
def script_dict_value():
    r = J.script({"a": 1})
    assert dict(r) == {"a": 1}


@idiom
def builtin_functions_as_globals():
    act = torch.sigmoid

    def f(x):
        return act(x) + F.softmax(x, dim=1) + math.sqrt(4.0)

    same(J.script(f)(x34), torch.sigmoid(x34) + F.softmax(x34, 1) + 2)


@idiom
def nested_functions_refused():
    def f(x):
        def g(y):
            return y

        return g(x)

    try:
        J.script(f)
    except Exception as e:
        pass
    else:
        assert False


@idiom
def early_returns():
    def f(x: int) -> str:
        if x < 0:
            return "neg"
        for i in range(x):
            if i == 3:
                return "three"
        while x > 1:
            x -= 1
            if x == 2:
                return "two"
        return "end"

    s = J.script(f)
    assert [s(i) for i in (-1, 0, 2, 3, 9)] == [f(i) for i in (-1, 0, 2, 3, 9)]


@idiom
def loop_else_refused():
    def f(x: int) -> int:
        for i in range(x):
            pass
        else:
            x = 2
        return x

    try:
        J.script(f)
    except Exception:
        pass
    else:
        assert False


@idiom
def tuple_swaps():
    def f(a: int, b: int) -> Tuple[int, int]:
        a, b = b, a
        (a, b), c = (b, a), 3
        return a + c, b

    assert tuple(J.script(f)(1, 2)) == f(1, 2)


@idiom
def dict_iteration_order():
    def f(d: Dict[str, int]) -> List[str]:
        out: List[str] = []
        for k, v in d.items():
            out.append(k + str(v))
        for k in d:
            out.append(k)
        return out

    assert list(J.script(f)({"b": 1, "a": 2})) == f({"b": 1, "a": 2})


@idiom
def list_methods():
    def f(xs: List[int]) -> Tuple[List[int], int, int, int]:
        ys = xs.copy()
        ys.insert(0, 9)
        ys.extend([1, 2])
        ys.remove(9)
        p = ys.pop()
        ys.reverse()
        ys.sort(reverse=True)
        i = ys.index(1)
        ys.clear()
        return xs + [1] * 2, p, i, xs.count(1)

    same([list(q) if isinstance(q, list) else q for q in J.script(f)([3, 1])], list(f([3, 1])))


@idiom
def index_out_of_range():
    def f(xs: List[int]) -> int:
        return xs[5]

    try:
        J.script(f)([1])
    except Exception as e:
        assert "range" in str(e), e
    else:
        assert False


@idiom
def key_error():
    def f(d: Dict[str, int]) -> int:
        return d["q"]

    try:
        J.script(f)({"a": 1})
    except Exception as e:
        assert "q" in str(e) or "Key" in str(e), e
    else:
        assert False


@idiom
def shape_unpacking():
    def f(x: Tensor):
        n, c = x.shape
        b, d = x.size()
        return x.view(c, n), b * d, x.dim(), x.numel(), len(x)

    same(J.script(f)(x34), f(x34))


@idiom
def tensor_list_ops():
    def f(x: Tensor) -> List[Tensor]:
        return torch.split(x, 2, dim=1) + x.chunk(2, 1) if False else list(torch.split(x, 2, 1))

    try:
        r = J.script(f)(x34)
    except Exception:
        return
    same(list(r), list(f(x34)))


@idiom
def where_masks():
    def f(x: Tensor):
        return torch.where(x > 3, x, torch.zeros_like(x)), x.masked_fill(x > 5, 0.0), (x > 3).nonzero()

    same(J.script(f)(x34), f(x34))


@idiom
def kwargs_tensor_methods():
    def f(x: Tensor):
        return (
            x.sum(dim=1, keepdim=True),
            x.mean(1),
            x.to(dtype=torch.float64),
            x.new_zeros(2),
            torch.full((2,), 3.0),
            torch.arange(0, 5, 2),
            x.type_as(x.double()),
        )

    same(J.script(f)(x34), f(x34))


@idiom
def sort_topk_namedtuple():
    def f(x: Tensor):
        r = x.topk(2)
        v, i = torch.sort(x, descending=True)
        m = torch.max(x, dim=1)
        return r.values, r.indices, v, m.indices, m[0]

    same(J.script(f)(x34), f(x34))


@idiom
def manual_seed_dropout():
    def f(x):
        return F.dropout(x, 0.5, True)

    torch.manual_seed(0)
    a = J.script(f)(x34)
    assert a.shape == x34.shape


@idiom
def none_returning():
    def f(x: Tensor):
        x.add_(1)

    assert J.script(f)(x34.clone()) is None


@idiom
def implicit_none_return_optional():
    def f(x: int) -> Optional[int]:
        if x > 0:
            return x
        return None

    s = J.script(f)
    assert s(1) == 1 and s(0) is None


@idiom
def union_types_all():
    def f(x: Union[int, List[int], None]) -> int:
        if x is None:
            return 0
        if isinstance(x, int):
            return x
        return sum(x)

    s = J.script(f)
    assert s(None) == 0 and s(3) == 3 and s([1, 2]) == 3


@idiom
def pep585():
    def f(x: list[int], d: dict[str, tuple[int, float]]) -> tuple[int, float]:
        return x[0], d["a"][1]

    same(list(J.script(f)([1], {"a": (1, 2.5)})), [1, 2.5])


@idiom
def type_alias_global():
    def f(x: Alias) -> int:
        return len(x)

    assert J.script(f)([1, 2]) == 2


Alias = List[int]


@idiom
def annotate_local():
    def f() -> Dict[str, List[int]]:
        d: Dict[str, List[int]] = {}
        d["a"] = [1]
        return d

    r = J.script(f)()
    assert list(r["a"]) == [1]


@idiom
def graph_findnode():
    s = J.script(lambda_free)
    n = s.graph.findNode("aten::add")
    assert n is not None and n.kind() == "aten::add"
    assert len(s.graph.findAllNodes("aten::add")) == 1


@idiom
def compile_error_points():
    def f(x: Tensor):
        return x.foo_bar()

    try:
        J.script(f)
    except RuntimeError as e:
        assert "foo_bar" in str(e) and "HERE" in str(e)
    else:
        assert False


@idiom
def pickle_script_function():
    f = J.script(lambda_free)
    try:
        g = pickle.loads(pickle.dumps(f))
    except Exception:
        return
    same(g(x34), x34 + 1)


@idiom
def any_type_return():
    def f(n: int) -> Any:
        if n > 0:
            return 1
        return "a"

    s = J.script(f)
    assert s(1) == 1 and s(0) == "a"


@idiom
def generator_sum_any():
    def f(xs: List[int]) -> int:
        return sum([x * 2 for x in xs])

    assert J.script(f)([1, 2]) == 6


@idiom
def comments_type_comment_multi():
    def f(
        x,  # type: Tensor
        n=2,  # type: int
    ):
        # type: (...) -> Tensor
        return x * n

    same(J.script(f)(x34), x34 * 2)


@idiom
def data_ptr_input_output():
    f = J.script(identity_)
    x = torch.rand(2)
    assert f(x).data_ptr() == x.data_ptr()


def identity_(x):
    return x


@idiom
def statements_share_a_line():
    def f(x: int) -> Tuple[int, int]:
        if x > 3: return 1, x  # fmt: skip
        a = 1; b = 2  # fmt: skip
        for i in range(x): a += i; b *= 2  # fmt: skip
        while a > 100: a -= 1  # fmt: skip
        if a == 1: pass  # fmt: skip
        elif a == 2: b = 7; a = 3  # fmt: skip
        else: b -= 1  # fmt: skip
        return a, b

    s = J.script(f)
    for n in range(6):
        same(list(s(n)), list(f(n)))


@idiom
def comprehensions_over_tuples():
    def f(names: List[str], xs: List[int], pairs: List[Tuple[int, Tuple[int, int]]]):
        return {k: v for k, v in zip(names, xs)}, [i * v for i, v in enumerate(xs)], [a * b * c for a, (b, c) in pairs]

    given = (["a", "b"], [3, 4], [(1, (2, 3))])
    same(list(J.script(f)(*given)), list(f(*given)))


@idiom
def trailing_commas():
    # fmt: off
    def f(x: int,) -> Dict[str, List[int]]:
        return {"a": [x, x,], "b": [max(x, 3,)],  # c, d
                }
    # fmt: on
    same(J.script(f)(1), f(1))


@idiom
def escapes_in_strings():
    def f(s: str) -> str:
        return s + "it's\t\x41\u00e9\x01\r\a" + r"raw\n" + "\101\0" + "\N{BULLET}" + "a\x42"

    assert J.script(f)("x") == f("x")


@idiom
def default_of_another_type():
    def f(x: float, scale: float = 2, other: Optional[float] = -1) -> float:
        return x * scale + (other if other is not None else 0.0)

    assert J.script(f)(1.5) == 2.0


@idiom
def unused_functions_may_hold_anything():
    def f(x):
        if not J.is_scripting():
            return left_to_python(x)
        return x + 1

    same(J.script(f)(x34), x34 + 1)


@J.unused
def left_to_python(x: Tensor) -> Tensor:
    import os

    return x * len([c for c in os.getcwd() if c != "/"])


if __name__ == "__main__":
    sys.exit(min(1, main()))
