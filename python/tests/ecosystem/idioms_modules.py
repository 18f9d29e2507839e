"""Idioms of modules: hooks, containers, classes that derive from ScriptModule, scripted modules within modules of PyTorch.

`python idioms_modules.py torch` runs them with PyTorch's own, `python idioms_modules.py flambeau` with Flambeau.
"""

import copy
import io
import os
import sys
import tempfile
import threading
from collections import OrderedDict, namedtuple
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from idiom import WHICH, J, idiom, main, same

x34 = torch.arange(12.0).reshape(3, 4)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.l(x)


def pre(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] * 2,)


def post(self, input: Tuple[Tensor], output: Tensor):
    return output + 1


class Foo(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.n = n

    def forward(self, x):
        return self.l(x) * self.n


@idiom
def hooks_scripted():
    m = Hooked()
    m.register_forward_pre_hook(pre)
    m.register_forward_hook(post)
    s = J.script(m)
    same(s(x34), m(x34))


@idiom
def hooks_of_submodule():
    m = Hooked()

    def h(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
        return output * 3

    m.l.register_forward_hook(h)
    s = J.script(m)
    same(s(x34), m(x34))


@idiom
def hook_wrong_signature():
    m = Hooked()

    def h(self, input: Tuple[int], output: Tensor):
        return output

    m.register_forward_hook(h)
    try:
        J.script(m)
    except RuntimeError as e:
        assert "incorrect type" in str(e) or "expected" in str(e), e
    else:
        assert False


@idiom
def parameter_list():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ps = nn.ParameterList([nn.Parameter(torch.full((2,), float(i))) for i in range(3)])

        def forward(self, x):
            for p in self.ps:
                x = x + p
            return x + self.ps[1]

    m = M()
    s = J.script(m)
    same(s(torch.ones(2)), m(torch.ones(2)))


@idiom
def parameter_dict():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ps = nn.ParameterDict({"a": nn.Parameter(torch.ones(2)), "b": nn.Parameter(torch.full((2,), 2.0))})

        def forward(self, x):
            return x * self.ps["a"] + self.ps["b"]

    m = M()
    s = J.script(m)
    same(s(torch.ones(2)), m(torch.ones(2)))


@idiom
def script_method_class():
    class M(J.ScriptModule):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))
            self.l = nn.Linear(3, 3)

        @J.script_method
        def forward(self, x):
            return self.l(x) + self.w + self.other(x, 2)

        @J.script_method
        def other(self, x, n: int):
            return x * n

    m = M()
    same(m(torch.ones(3)), m.l(torch.ones(3)) + 1 + 2)


@idiom
def script_method_constants():
    class M(J.ScriptModule):
        __constants__ = ["n"]

        def __init__(self, n):
            super().__init__()
            self.n = n

        @J.script_method
        def forward(self, x):
            for i in range(self.n):
                x = x + i
            return x

    same(M(3)(torch.zeros(2)), torch.full((2,), 3.0))


@idiom
def module_dict():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.d = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})

        def forward(self, x):
            names: List[str] = []
            for k, v in self.d.items():
                names.append(k)
                x = v(x)
            for v in self.d.values():
                x = v(x)
            if "a" in self.d:
                x = self.d["a"](x)
            for k in self.d.keys():
                names.append(k)
            return x, names, len(self.d)

    m = M()
    s = J.script(m)
    same(s(x34), m(x34))


@idiom
def sequential_of_ordered_dict():
    m = nn.Sequential(OrderedDict([("one", nn.Linear(4, 4)), ("two", nn.Tanh())]))
    s = J.script(m)
    same(s(x34), m(x34))
    same(s.one(x34), m.one(x34))
    assert len(s) == 2
    same(s[1](x34), m[1](x34))


@idiom
def zip_of_module_lists():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
            self.b = nn.ModuleList([nn.ReLU(), nn.Tanh()])

        def forward(self, x):
            for l, f in zip(self.a, self.b):
                x = f(l(x))
            return x

    m = M()
    s = J.script(m)
    same(s(x34), m(x34))


@idiom
def module_interface():
    @J.interface
    class Fn(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            pass

    class A(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    class B(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    class M(nn.Module):
        impl: Fn

        def __init__(self):
            super().__init__()
            self.impl = A()
            self.subs = nn.ModuleList([A(), B()])

        def forward(self, x: Tensor) -> Tensor:
            return self.impl.forward(x)

    M.__annotations__["impl"] = Fn
    s = J.script(M())
    same(s(x34), x34 + 1)
    s.impl = J.script(B())
    same(s(x34), x34 * 2)


@idiom
def none_attribute_skips_branch():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = None

        def forward(self, x):
            if self.down is not None:
                x = self.down(x)
            return x

    same(J.script(M())(x34), x34)


@idiom
def hasattr_branch():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = 1

        def forward(self, x):
            if hasattr(self, "a"):
                x = x + self.a
            if hasattr(self, "b"):
                x = x + self.b
            return x

    same(J.script(M())(x34), x34 + 1)


@idiom
def static_and_class_methods():
    class M(nn.Module):
        @staticmethod
        def helper(x: Tensor, n: int) -> Tensor:
            return x * n

        def forward(self, x):
            return self.helper(x, 2) + M.helper(x, 3)

    globals()["M"] = M
    same(J.script(M())(x34), x34 * 5)


@idiom
def super_forward():
    class A(nn.Module):
        def forward(self, x):
            return x + 1

    class B(A):
        def forward(self, x):
            return super().forward(x) * 2

    try:
        s = J.script(B())
    except Exception as e:
        s = None
        msg = str(e)
    if s is not None:
        same(s(x34), (x34 + 1) * 2)
    else:
        assert "super" in msg, msg


@idiom
def namedtuple_collections():
    Pt = namedtuple("Pt", ["a", "b"])

    class M(nn.Module):
        def forward(self, x: Tensor):
            return Pt(x, x + 1)

    globals()["Pt"] = Pt
    r = J.script(M())(x34)
    same(r.b, x34 + 1)


@idiom
def overloads():
    class M(nn.Module):
        @torch.jit._overload_method
        def fwd(self, x: int) -> int:
            pass

        @torch.jit._overload_method
        def fwd(self, x: Tensor) -> Tensor:
            pass

        def fwd(self, x):
            return x + 1

        def forward(self, x: Tensor):
            return self.fwd(x) + self.fwd(1)

    same(J.script(M())(x34), x34 + 1 + 2)


@idiom
def exports():
    class M(nn.Module):
        def forward(self, x):
            return x

        @J.export
        def twice(self, x: Tensor, n: int = 2) -> Tensor:
            return x * n

    s = J.script(M())
    same(s.twice(x34), x34 * 2)
    same(s.twice(x34, n=3), x34 * 3)


@idiom
def script_then_set_attribute():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 1
            self.xs = [1, 2]
            self.register_buffer("b", torch.zeros(2))

        def forward(self, x):
            return x + self.n + self.xs[0] + self.b.sum()

    s = J.script(M())
    s.n = 5
    same(s(x34), x34 + 6)
    s.b = torch.ones(2)
    same(s(x34), x34 + 8)


@idiom
def wrong_attribute_type():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 1

        def forward(self, x):
            return x + self.n

    s = J.script(M())
    try:
        s.n = "a"
    except Exception as e:
        pass
    else:
        assert False


@idiom
def copies():
    s = J.script(nn.Linear(4, 4))
    c = copy.deepcopy(s)
    with torch.no_grad():
        c.weight.fill_(0.0) if WHICH == "torch" else c.weight.fill_(0.0)
    assert not torch.equal(torch.as_tensor(s.weight.detach()), torch.as_tensor(c.weight.detach()))


@idiom
def state_dict_round():
    a = J.script(nn.Linear(4, 4))
    b = J.script(nn.Linear(4, 4))
    b.load_state_dict(a.state_dict())
    same(b(x34), a(x34))


@idiom
def load_state_dict_strict():
    a = J.script(nn.Linear(4, 4))
    try:
        a.load_state_dict({"weight": torch.zeros(4, 4)})
    except RuntimeError as e:
        assert "Missing key" in str(e), e
    else:
        assert False
    r = a.load_state_dict({"weight": torch.zeros(4, 4)}, strict=False)
    assert r.missing_keys == ["bias"], r


@idiom
def extra_files():
    b = io.BytesIO()
    J.save(J.script(nn.Linear(2, 2)), b, _extra_files={"info.txt": "hello"})
    b.seek(0)
    f = {"info.txt": ""}
    J.load(b, _extra_files=f)
    assert f["info.txt"] in (b"hello", "hello"), f


@idiom
def save_to_path_and_map_location():
    with tempfile.TemporaryDirectory() as d:
        p = os.path.join(d, "m.pt")
        J.script(nn.Linear(2, 2)).save(p)
        m = J.load(p, map_location="cpu")
        m(torch.ones(1, 2))
        J.load(p, map_location=torch.device("cpu"))


@idiom
def freeze_model():
    m = J.script(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval())
    f = J.freeze(m)
    same(f(x34), m(x34))
    assert "prim::GetAttr" not in str(f.graph)


@idiom
def freeze_needs_eval():
    try:
        J.freeze(J.script(nn.Linear(4, 4).train()))
    except RuntimeError as e:
        assert "eval" in str(e), e
    else:
        assert False


@idiom
def optimize_for_inf():
    m = J.script(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval())
    x = torch.rand(1, 3, 8, 8)
    same(J.optimize_for_inference(m)(x), m(x))


@idiom
def script_gru_cell():
    m = nn.GRUCell(4, 5)
    s = J.script(m)
    x = torch.rand(2, 4)
    same(s(x), m(x))


@idiom
def script_mha():
    m = nn.MultiheadAttention(8, 2).eval()
    s = J.script(m)
    x = torch.rand(3, 2, 8)
    same(s(x, x, x), m(x, x, x))


@idiom
def script_transformer_encoder():
    m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, enable_nested_tensor=False).eval()
    s = J.script(m)
    x = torch.rand(3, 2, 8)
    same(s(x), m(x))


@idiom
def script_embedding_bag():
    m = nn.EmbeddingBag(10, 3, mode="sum")
    s = J.script(m)
    same(s(torch.tensor([1, 2, 4]), torch.tensor([0, 1])), m(torch.tensor([1, 2, 4]), torch.tensor([0, 1])))


@idiom
def code_with_constants():
    s = J.script(nn.Linear(2, 2))
    c, k = s.code_with_constants
    assert "forward" in c


@idiom
def original_name():
    s = J.script(nn.Linear(2, 2))
    assert s.original_name == "Linear"


@idiom
def repr_of_module():
    s = J.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    r = repr(s)
    assert "original_name=Sequential" in r and "(0): " in r, r


@idiom
def dump_and_methods():
    s = J.script(nn.Linear(2, 2))
    assert s.forward.name == "forward"
    assert "Tensor" in str(s.forward.schema)
    s.forward.graph
    s.forward.code


@idiom
def scripted_in_python_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.s = J.script(nn.Linear(4, 4))

        def forward(self, x):
            return self.s(x) * 2

    m = M()
    same(m(x34), m.s(x34) * 2)
    s = J.script(m)
    same(s(x34), m(x34))
    assert len(list(m.parameters())) == 2


@idiom
def training_loop():
    m = J.script(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    o = torch.optim.SGD(m.parameters(), lr=0.01)
    first = None
    for _ in range(30):
        o.zero_grad()
        l = ((m(x34 / 12) - 1) ** 2).mean()
        l.backward()
        o.step()
        first = first or float(l)
    assert float(l) < first


@idiom
def train_eval_mode():
    m = J.script(nn.Dropout(0.9))
    m.eval()
    same(m(x34), x34)
    assert not m.training
    m.train()
    assert m.training


@idiom
def to_dtype():
    m = J.script(nn.Linear(4, 4))
    m.double()
    assert m(x34.double()).dtype == torch.float64
    m.to(torch.float32)
    m.half() if False else None
    m.float()


@idiom
def apply_and_named():
    m = J.script(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
    assert [n for n, _ in m.named_modules()] == ["", "0", "1"]
    assert [n for n, _ in m.named_buffers()] == ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    m.apply(lambda q: None)


@idiom
def module_getattr_missing():
    m = J.script(nn.Linear(4, 4))
    try:
        m.nothing
    except AttributeError as e:
        assert "nothing" in str(e)
    else:
        assert False


@idiom
def buffers_mutated():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))

        def forward(self, x):
            self.n += 1
            return x + self.n

    s = J.script(M())
    s(x34)
    same(s(x34), x34 + 2)
    same(s.n, torch.full((1,), 2.0))


@idiom
def shared_parameters():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    m = M()
    s = J.script(m)
    assert len(list(s.parameters())) == 3, len(list(s.parameters()))
    b = io.BytesIO()
    J.save(s, b)
    b.seek(0)
    l = J.load(b)
    assert len(list(l.parameters())) == 3
    same(l(x34), m(x34))


@idiom
def callable_argument_module():
    class Act(nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, x):
            return self.f(x)

    same(J.script(Act(F.relu))(x34 - 5), F.relu(x34 - 5))
    same(J.script(Act(torch.tanh))(x34), torch.tanh(x34))


@idiom
def drop_method_ignore():
    class M(nn.Module):
        def forward(self, x):
            return self.py(x) + 1

        @J.ignore
        def py(self, x: Tensor) -> Tensor:
            return torch.from_numpy(x.numpy() * 2) if isinstance(x, Tensor) else x * 2

    same(J.script(M())(x34), x34 * 2 + 1)


@idiom
def ignore_drop():
    class M(nn.Module):
        def forward(self, x: Tensor, t: bool = False):
            if t:
                self.log(x)
            return x

        @J.ignore(drop=True)
        def log(self, x: Tensor):
            print("x")

    s = J.script(M())
    same(s(x34), x34)
    b = io.BytesIO()
    J.save(s, b)


@idiom
def export_unused_save():
    class M(nn.Module):
        def forward(self, x: Tensor):
            return x

        @J.unused
        def never(self, x):
            return open(x)

    b = io.BytesIO()
    J.save(J.script(M()), b)


@idiom
def batchnorm_training_updates():
    m = J.script(nn.BatchNorm1d(4))
    r = nn.BatchNorm1d(4)
    same(m(x34), r(x34))
    same(m.running_mean, r.running_mean)
    same(m.num_batches_tracked, r.num_batches_tracked)


@idiom
def named_modules_prefix():
    s = J.script(nn.Sequential(Foo(), Foo()))
    assert [n for n, _ in s.named_modules()] == ["", "0", "0.l", "1", "1.l"]
    assert [n for n, _ in s.named_children()] == ["0", "1"]
    assert [n for n, _ in s.named_parameters()] == ["0.l.weight", "0.l.bias", "1.l.weight", "1.l.bias"]


@idiom
def parameters_are_torch():
    s = J.script(Foo())
    assert all(isinstance(p, torch.Tensor) for p in s.parameters())
    assert all(p.requires_grad for p in s.parameters())


@idiom
def loaded_parameters_are_torch():
    b = io.BytesIO()
    J.save(J.script(Foo()), b)
    b.seek(0)
    m = J.load(b)
    assert all(isinstance(p, torch.Tensor) for p in m.parameters())
    assert isinstance(m.l.weight, torch.Tensor)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    m(x34).sum().backward()
    assert m.l.weight.grad is not None
    w = m.l.weight.detach().clone()
    o.step()
    assert not torch.equal(w, m.l.weight)


@idiom
def loaded_state_into_python():
    f = Foo()
    b = io.BytesIO()
    J.save(J.script(f), b)
    b.seek(0)
    m = J.load(b)
    g = Foo()
    g.load_state_dict(m.state_dict())
    same(g(x34), f(x34))
    m.load_state_dict(Foo().state_dict())


@idiom
def grad_through_scripted():
    m = J.script(Foo())
    x = x34.clone().requires_grad_()
    m(x).sum().backward()
    assert x.grad is not None and m.l.weight.grad is not None
    m.zero_grad()
    assert m.l.weight.grad is None


@idiom
def share_with_original():
    f = Foo()
    s = J.script(f)
    f.l.weight.data.fill_(0.0)
    f.l.bias.data.fill_(1.0)
    same(s(x34), torch.full((3, 4), 2.0))
    s.l.bias.data.fill_(2.0)
    same(f(x34), torch.full((3, 4), 4.0))


@idiom
def dtype_changes_original():
    f = Foo()
    s = J.script(f)
    s.double()
    assert f.l.weight.dtype == torch.float64


@idiom
def getitem_magic_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ls = nn.ModuleList([nn.Linear(4, 4)])

        def __getitem__(self, i: int):
            return i

        def __len__(self):
            return 7

        def forward(self, x):
            return x

    s = J.script(M())
    s(x34)


@idiom
def const_tuple_list_attrs():
    class M(nn.Module):
        __constants__ = ["sizes", "names"]

        def __init__(self):
            super().__init__()
            self.sizes = [1, 2]
            self.names = ("a", "b")

        def forward(self, x):
            for s in self.sizes:
                x = x * s
            for n in self.names:
                x = x + len(n)
            return x

    same(J.script(M())(x34), x34 * 2 + 2)


@idiom
def optional_submodule():
    class M(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.d = nn.Linear(4, 4) if d else None

        def forward(self, x):
            if self.d is None:
                return x
            return self.d(x)

    same(J.script(M(False))(x34), x34)
    m = M(True)
    same(J.script(m)(x34), m(x34))


@idiom
def lists_of_lists_attr():
    class M(nn.Module):
        tab: List[List[int]]

        def __init__(self):
            super().__init__()
            self.tab = [[1, 2], [3]]

        def forward(self) -> int:
            return sum(self.tab[0]) + self.tab[1][0]

    assert J.script(M())() == 6


@idiom
def empty_list_attr_untyped():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.xs = []

        def forward(self, x):
            return x

    J.script(M())(x34)


@idiom
def inheritance_of_modules():
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2

        def helper(self, x):
            return x * self.k

        def forward(self, x):
            return self.helper(x)

    class B(A):
        def helper(self, x):
            return x + self.k

    same(J.script(B())(x34), x34 + 2)


@idiom
def augmented_attribute():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = 0
            self.d = {"a": 1}

        def forward(self) -> int:
            self.c += 2
            self.d["a"] += 3
            return self.c + self.d["a"]

    assert J.script(M())() == 6


@idiom
def script_method_graphs():
    s = J.script(Foo())
    g = s.graph
    assert "prim::CallMethod" in str(g) and "aten::linear" in str(s.inlined_graph)
    assert [n.kind() for n in g.nodes()][0] == "prim::GetAttr"
    assert len(list(g.inputs())) == 2 and len(list(g.outputs())) == 1
    assert s.code.startswith("def forward(self")


@idiom
def run_on_wrong_dtype_message():
    s = J.script(nn.Linear(4, 4))
    try:
        s(torch.ones(2, 3))
    except RuntimeError as e:
        assert "mat1 and mat2" in str(e) and "The following operation failed in the TorchScript interpreter" in str(e), e
    else:
        assert False


@idiom
def too_few_args_message():
    s = J.script(nn.Linear(4, 4))
    try:
        s()
    except RuntimeError as e:
        assert "missing value for argument 'input'" in str(e), e
    else:
        assert False


@idiom
def unsupported_type_attr():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.o = object()

        def forward(self, x):
            return x, self.o

    try:
        J.script(M())
    except RuntimeError as e:
        assert "o" in str(e)
    else:
        assert False


@idiom
def unused_method_raises():
    class M(nn.Module):
        def forward(self, x, n: int):
            if n > 0:
                return self.bad(x)
            return x

        @J.unused
        def bad(self, x):
            return x.no_such()

    s = J.script(M())
    same(s(x34, 0), x34)
    try:
        s(x34, 1)
    except Exception:
        pass
    else:
        assert False


@idiom
def jit_export_only():
    class M(nn.Module):
        @J.export
        def go(self, x: Tensor) -> Tensor:
            return x + 1

    s = J.script(M())
    same(s.go(x34), x34 + 1)


@idiom
def save_load_methods_and_attrs():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 3
            self.register_buffer("b", torch.ones(2))
            self.name = "x"

        def forward(self, x):
            return x * self.k

        @J.export
        def other(self, x: Tensor) -> Tensor:
            return x + self.b.sum()

    b = io.BytesIO()
    J.script(M()).save(b) if False else J.save(J.script(M()), b)
    b.seek(0)
    l = J.load(b)
    assert l.k == 3 and l.name == "x"
    same(l.other(x34), x34 + 2)
    assert hasattr(l, "other") and not hasattr(l, "nope")


@idiom
def deepcopy_scripted_in_optimizer():
    m = J.script(Foo())
    c = copy.deepcopy(m)
    c.l.weight.data.zero_()
    assert m.l.weight.abs().sum() > 0
    assert len(list(c.parameters())) == 2
    c(x34).sum().backward()


@idiom
def freeze_preserve():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2
            self.l = nn.Linear(4, 4)

        def forward(self, x):
            return self.l(x) * self.k

        @J.export
        def ver(self) -> int:
            return self.k

    f = J.freeze(J.script(M().eval()), preserved_attrs=["ver", "k"])
    assert f.ver() == 2 and f.k == 2
    f.k = 3


@idiom
def ignored_attribute_annotation():
    class M(nn.Module):
        __jit_unused_properties__ = ["p"]

        def __init__(self):
            super().__init__()
            self.x: Optional[int] = None

        @property
        def p(self):
            return object()

        def forward(self, y):
            return y if self.x is None else y + self.x

    s = J.script(M())
    same(s(x34), x34)


@idiom
def script_module_twice():
    s = J.script(Foo())
    assert J.script(s) is s


@idiom
def parameters_count():
    s = J.script(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2, bias=False)))
    assert sum(p.numel() for p in s.parameters()) == 28


@idiom
def inference_mode():
    s = J.script(Foo())
    with torch.inference_mode():
        assert s(x34).shape == (3, 4)


@idiom
def threads_same():
    s = J.script(Foo())
    out = [None] * 4
    ts = [threading.Thread(target=lambda i=i: out.__setitem__(i, s(x34).detach())) for i in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    for o in out:
        same(o, s(x34).detach())


@idiom
def python_hooks_are_refused():
    s = J.script(Hooked())
    for register in ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"):
        try:
            getattr(s, register)(lambda *a: None)
        except RuntimeError as error:
            assert str(error) == f"{register} is not supported on ScriptModules", error
        else:
            raise AssertionError(register)


@idiom
def hooks_are_saved():
    class Saved(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.l(x)

    m = Saved()
    m.register_forward_pre_hook(pre)
    m.register_forward_hook(post)
    b = io.BytesIO()
    J.save(J.script(m), b)
    b.seek(0)
    loaded = J.load(b)
    same(loaded(x34), m(x34))
    same(loaded.forward(x34), m.l(x34))


@idiom
def methods_are_added():
    s = J.script(nn.Linear(2, 2))
    s.define("def added(self, x):\n    return x + self.weight.sum()\n")
    same(s.added(torch.zeros(1)), s.weight.sum().reshape(1))


class Coder:
    def __init__(self, scale: float, shifts: List[float]):
        self.scale = scale
        self.shifts = shifts

    def decode(self, x: Tensor) -> Tensor:
        return x * self.scale + self.shifts[0]


class Finer(Coder):
    def __init__(self, scale: float):
        super().__init__(scale / 2, [0.5])


@idiom
def objects_of_plain_classes_in_modules():
    class M(nn.Module):
        finer: Coder

        def __init__(self):
            super().__init__()
            self.coder = Coder(3.0, [1.0])
            self.finer = Finer(3.0)

        def forward(self, x):
            return self.finer.decode(self.coder.decode(x))

    m = M()
    same(J.script(m)(x34), m(x34))


@idiom
def type_comments_of_methods():
    class M(nn.Module):
        def forward(self, x, n=2):
            # type: (Tensor, int) -> Tensor
            return x * n

        @J.export
        def other(self, xs):
            # type: (List[Tensor]) -> Tensor
            return xs[0]

    s = J.script(M())
    same(s(x34), x34 * 2)
    same(s.other([x34]), x34)


@idiom
def layers_come_back_from_archives_here_and_in_pytorch():
    cases = [
        (nn.ReLU(), (x34,)),
        (nn.Softmax(-1), (x34,)),
        (nn.MultiheadAttention(4, 2).eval(), (torch.ones(2, 1, 4),) * 3),
        (nn.TransformerEncoderLayer(4, 2, 8).eval(), (torch.ones(2, 1, 4),)),
        (nn.Upsample(scale_factor=2, mode="bilinear"), (torch.ones(1, 1, 2, 2),)),
        (nn.CrossEntropyLoss(), (x34, torch.tensor([0, 1, 2]))),
    ]
    for module, args in cases:
        file = io.BytesIO()
        J.save(J.script(module), file)
        file.seek(0)
        same(J.load(file)(*args), module(*args))
        file.seek(0)
        same(torch.jit.load(file)(*args), module(*args))


@idiom
def frozen_parameters_stay_frozen_in_archives():
    module = nn.Linear(2, 2).requires_grad_(False)
    file = io.BytesIO()
    J.save(J.script(module), file)
    file.seek(0)
    same([p.requires_grad for p in J.load(file).parameters()], [False, False])


@idiom
def modules_say_what_they_are_saved_as():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.v = 1

        @J.export
        def __getstate__(self) -> Tuple[int, bool]:
            return (self.v + 10, self.training)

        @J.export
        def __setstate__(self, s: Tuple[int, bool]) -> None:
            self.v = s[0] * 2
            self.training = s[1]

        def forward(self, x: int) -> int:
            return x + self.v

    file = io.BytesIO()
    J.save(J.script(nn.Sequential(M())), file)
    file.seek(0)
    same(getattr(J.load(file), "0")(1), 23)


@idiom
def modules_without_children_are_true():
    class M(nn.Module):
        def forward(self, x):
            return x

    assert J.script(M()) and J.trace(M(), x34)


@idiom
def functions_of_the_library_are_scripted():
    for name, args in {"relu": (x34,), "softmax": (x34, 0), "mse_loss": (x34, x34), "pad": (x34, [1, 1]), "layer_norm": (x34, [4])}.items():
        function = getattr(torch.nn.functional, name)
        same(J.script(function)(*args), function(*args))


@idiom
def autocast_around_a_call():
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    s = J.script(module)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = J.script(module)(x34)
        same(y, module(x34))
        assert y.dtype == torch.bfloat16
    same(s(x34), module(x34))


@idiom
def parameters_frozen_after_scripting_are_saved_so():
    s = J.script(nn.Linear(2, 2))
    for parameter in s.parameters():
        parameter.requires_grad_(False)
    file = io.BytesIO()
    J.save(s, file)
    file.seek(0)
    extra = {"none": ""}
    same([p.requires_grad for p in J.load(file, _extra_files=extra).parameters()], [False, False])
    same(extra, {"none": b""})


@idiom
def types_of_tensors_and_generators():
    def f(x: torch.LongTensor, y: torch.nn.Parameter, g: Optional[torch.Generator] = None):
        torch._assert(x.sum() > 0, "no")
        torch._assert(x.dim() == 1, "no")
        return x + y.new_zeros(torch.Size([2])) + torch.rand(2, generator=g) if g is not None else x + y

    same(J.script(f)(torch.tensor([1, 2]), torch.ones(2)), torch.tensor([2.0, 3.0]))


class Packs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = 1
        self.k = (1, 2)

    @J.export
    def __getstate__(self):
        return (self.a, self.k, self.training)

    @J.export
    def __setstate__(self, state):
        self.a = state[0] + 10
        self.k = state[1]
        self.training = state[2]

    def forward(self, x: Tensor) -> Tensor:
        return x + self.a + self.k[1]


@idiom
def state_is_of_the_type_that_getstate_gives():
    s = J.script(Packs())
    same(s(torch.ones(1)), torch.full((1,), 4.0))
    file = io.BytesIO()
    J.save(s, file)
    file.seek(0)
    same(J.load(file)(torch.ones(1)), torch.full((1,), 14.0))


class OnlySets(nn.Module):
    @J.export
    def __setstate__(self, state):
        self.training = state[0]

    def forward(self, x: Tensor) -> Tensor:
        return x


@idiom
def setstate_alone_is_refused():
    try:
        J.script(OnlySets())
    except RuntimeError as e:
        assert "`__setstate__` defined but not `__getstate__`" in str(e) and "Did you forget to use `@torch.jit.export`?" in str(e), e
    else:
        assert False


@J.interface
class OneInput(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


@J.interface
class Counts:
    def count(self, x: Tensor) -> int:
        pass


@J.script
class Sizes:
    def __init__(self, dim: int):
        self.dim = dim

    def count(self, x: Tensor) -> int:
        return x.size(self.dim)


@J.script
def through_module(m: OneInput, x: Tensor):
    return m.forward(x) + 1


@J.script
def through_object(c: Counts, x: Tensor):
    return c.count(x)


class Negative(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return -x


@idiom
def objects_are_given_for_interfaces():
    one, other = J.script(Negative()), J.script(Packs())
    same(through_module(one, x34), 1 - x34)
    same(through_module(other, torch.ones(1)), torch.full((1,), 5.0))
    same(through_module(one, x34), 1 - x34)
    try:
        # Its argument has another name.
        through_module(J.script(nn.ReLU()), x34)
    except RuntimeError as e:
        assert "is not compatible with interface __torch__.OneInput" in str(e), e
    else:
        assert False
    assert through_object(Sizes(1), x34) == 4


if __name__ == "__main__":
    sys.exit(min(1, main()))
