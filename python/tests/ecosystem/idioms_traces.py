"""Idioms of traces.

`python idioms_traces.py torch` runs them with PyTorch's own, `python idioms_traces.py flambeau` with Flambeau.
"""

import copy
import sys
import warnings
from collections import namedtuple
from typing import Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from idiom import J, idiom, main, same

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
def trace_check_tolerance():
    t = J.trace(lambda x: x * 2 + 1, x34, check_tolerance=1e-3, check_trace=True)
    same(t(x34), x34 * 2 + 1)


@idiom
def trace_kwargs():
    def f(a, b):
        return a - b

    t = J.trace(f, example_kwarg_inputs={"a": x34, "b": x34 * 2})
    same(t(a=x34, b=x34), x34 * 0)


@idiom
def trace_module_inputs():
    class M(nn.Module):
        def forward(self, x):
            return x + 1

        def other(self, x):
            return x * 2

    t = J.trace_module(M(), {"forward": x34, "other": x34})
    same(t.other(x34), x34 * 2)


@idiom
def trace_random_warns():
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        J.trace(lambda x: x + torch.rand(3, 4), x34)
    assert any(
        "nondeterministic" in str(i.message).lower() or "differ" in str(i.message).lower() or "did not match" in str(i.message)
        for i in w
    ), [str(i.message)[:80] for i in w]


@idiom
def trace_dynamic_size():
    t = J.trace(lambda x: x.view(x.size(0), -1).sum(1), torch.rand(2, 3, 4))
    same(t(torch.ones(5, 2, 2)), torch.full((5,), 4.0))


@idiom
def trace_len_and_shape():
    t = J.trace(lambda x: torch.zeros(x.shape[0], x.shape[1]) + x, x34)
    same(t(torch.ones(2, 2)), torch.ones(2, 2))


@idiom
def trace_dropout_train():
    m = nn.Dropout(0.5).eval()
    t = J.trace(m, x34)
    same(t(x34), x34)


@idiom
def trace_rnn():
    m = nn.LSTM(4, 5, batch_first=True)
    x = torch.rand(2, 3, 4)
    t = J.trace(m, x)
    same(t(x), m(x))


@idiom
def traced_in_scripted():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = J.trace(nn.Linear(4, 4), x34)

        def forward(self, x, n: int):
            for _ in range(n):
                x = self.t(x)
            return x

    m = M()
    s = J.script(m)
    same(s(x34, 2), m.t(m.t(x34)))


@idiom
def in_python_module_all():
    class P(nn.Module):
        def __init__(self):
            super().__init__()
            self.s = J.script(Foo())
            self.t = J.trace(nn.Linear(4, 4), x34)
            self.q = nn.Linear(4, 4)

        def forward(self, x):
            return self.q(self.t(self.s(x)))

    p = P()
    assert len(list(p.parameters())) == 6
    assert "s.l.weight" in p.state_dict()
    p.eval()
    assert not p.s.training
    p.train()
    assert p.s.training
    p.double()
    assert p(x34.double()).dtype == torch.float64
    p.float()
    sd = {k: torch.zeros_like(v) for k, v in p.state_dict().items()}
    p.load_state_dict(sd)
    same(p(x34), torch.zeros(3, 4))
    p.zero_grad()
    str(p)
    p.apply(lambda m: None)
    c = copy.deepcopy(p)
    same(c(x34), p(x34))
    p.requires_grad_(False) if False else None


@idiom
def sequential_holds_scripted():
    s = nn.Sequential(J.script(nn.Linear(4, 4)), nn.ReLU())
    s(x34)
    J.script(s)(x34)
    J.trace(s, x34)(x34)


@idiom
def isinstance_checks():
    s = J.script(Foo())
    assert isinstance(s, nn.Module) and isinstance(s, J.ScriptModule) and isinstance(s, J.RecursiveScriptModule)
    assert isinstance(J.script(lambda_free), J.ScriptFunction)
    assert not isinstance(J.script(lambda_free), nn.Module)
    assert isinstance(J.trace(Foo(), x34), J.ScriptModule)
    assert isinstance(J.trace(lambda_free, x34), J.ScriptFunction)


def lambda_free(x):
    return x + 1


@idiom
def graph_output_types():
    t = J.trace(lambda_free, x34)
    o = list(t.graph.outputs())[0]
    assert "Tensor" in str(o.type())
    i = list(t.graph.inputs())[0]
    assert i.debugName()


@idiom
def traced_with_hooks():
    t = J.trace(nn.Linear(4, 4), x34)
    seen = []
    h = t.register_forward_hook(lambda m, i, o: seen.append(1))
    t(x34)
    h.remove()
    t(x34)
    assert seen == [1], seen


@idiom
def trace_training_flag():
    m = nn.BatchNorm1d(4)
    m.eval()
    t = J.trace(m, x34)
    same(t(x34), m(x34))


@idiom
def trace_optional_inputs():
    def f(x, y=None):
        return x if y is None else x + y

    t = J.trace(f, (x34,))
    same(t(x34), x34)
    t2 = J.trace(f, (x34, x34))
    same(t2(x34, x34), x34 * 2)


@idiom
def trace_indexing_slices():
    f = lambda x: x[:, 1:3].t()[0] + x[0, -1] + x[..., 0].sum()
    t = J.trace(f, x34)
    same(t(x34 + 1), f(x34 + 1))


@idiom
def trace_loop_unrolled():
    def f(x):
        for i in range(3):
            x = x * 2 + i
        return x

    same(J.trace(f, x34)(x34), f(x34))


@idiom
def trace_namedtuple_out():
    P = namedtuple("P", ["a", "b"])
    t = J.trace(lambda x: P(x, x + 1), x34)
    r = t(x34)
    same(r[1], x34 + 1)


@idiom
def trace_checks_shapes_python():
    m = nn.MultiheadAttention(8, 2).eval()
    x = torch.rand(3, 2, 8)
    t = J.trace(m, (x, x, x))
    same(t(x, x, x), m(x, x, x))


@idiom
def trace_conv_pool():
    m = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3)).eval()
    x = torch.rand(2, 1, 8, 8)
    t = J.trace(m, x)
    same(t(x), m(x))
    f = J.freeze(t)
    same(f(x), m(x))


@idiom
def trace_gives_sizes():
    t = J.trace(lambda x: (x.view(x.size(0), -1), x.shape[0], x.size(1) * 2, x.shape), torch.ones(2, 3))
    a, b, c, (d, e) = t(torch.ones(4, 1))
    same([a, b, c, d, e], [torch.ones(4, 1), torch.tensor(4), torch.tensor(2), torch.tensor(4), torch.tensor(1)])


@idiom
def methods_that_pytorch_writes_in_python():
    x = torch.arange(6.0).reshape(2, 3)
    for f in (
        lambda x: x.norm(), lambda x: x.norm(2, 1), lambda x: x.bool(), lambda x: x.bfloat16(), lambda x: x.new(2, 3).zero_() + x,
        lambda x: x.unique(), lambda x: 3 // (x + 1), lambda x: torch.cdist(x, x), lambda x: torch.asarray(x) * 2,
        lambda x: x.type(torch.LongTensor), lambda x: x.type("torch.DoubleTensor"), lambda x: torch.stack(list(reversed(x))),
        lambda x: F.triplet_margin_loss(x, x + 1, x - 1), lambda x: F.upsample(x[None], scale_factor=2),
        lambda x: F.gaussian_nll_loss(x, x + 1, x * 0 + 1), lambda x: F.embedding_bag(torch.tensor([[0, 1]]), x),
        lambda x: F.max_pool1d(x, 2), lambda x: F.interpolate(x[None], scale_factor=2.0), lambda x: F.softmax(x, -1),
    ):  # fmt: skip
        same(J.trace(f, (x,), check_trace=False)(x + 1), f(x + 1))


@idiom
def indices_and_numbers_of_numpy():
    x = torch.arange(6.0).reshape(2, 3)
    for f in (
        lambda x: x * np.prod((2, 3)), lambda x: x / np.sqrt(2.0), lambda x: x * np.int64(3), lambda x: x * np.float32(3),
        lambda x: x.sum(np.int64(0)), lambda x: x[np.array([0])], lambda x: x[range(1)], lambda x: x[True],
        lambda x: x[[True, False]], lambda x: x[:, [True, False, True]], lambda x: x[..., [0, 2]],
        lambda x: x[..., torch.tensor([0])], lambda x: x[..., x[0] > 0], lambda x: complex(1, 2) * x,
    ):  # fmt: skip
        same(J.trace(f, (x,), check_trace=False)(x + 1), f(x + 1))


@idiom
def traced_graphs_know_types_and_kinds():
    t = J.trace(lambda x: F.relu(x) + 1, (torch.ones(2, 3),))
    out = next(t.graph.outputs()).type()
    assert (out.sizes(), out.scalarType(), str(out)) == ([2, 3], "Float", "Tensor")
    assert [n.kind() for n in t.graph.nodes() if n.kind() != "prim::Constant"] == ["aten::relu", "aten::add"]
    m = J.trace(nn.Sequential(nn.Conv1d(1, 1, 1), nn.ReLU(), nn.MaxPool1d(2)), (torch.ones(1, 1, 4),))
    kinds = {n.kind() for n in m.inlined_graph.nodes()}
    assert "aten::relu" in kinds and "aten::max_pool1d" in kinds and "prim::CallFunction" not in kinds, kinds


@idiom
def loops_over_tensors_and_constants_warn():
    def f(x):
        return sum(row for row in x) + len(x) + torch.tensor([1.0, 2.0])

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        J.trace(f, (torch.ones(3, 2),), check_trace=False)
    found = [str(w.message).split(" ")[0] for w in seen if issubclass(w.category, J.TracerWarning)]
    assert found == ["Iterating", "Using", "torch.tensor"], found


@idiom
def tensors_with_history_are_no_constants():
    w = torch.ones(2, requires_grad=True)
    try:
        J.trace(lambda x: x * w, (torch.ones(2),))
    except RuntimeError as e:
        assert "Cannot insert a Tensor that requires grad as a constant" in str(e), e
    else:
        assert False


if __name__ == "__main__":
    sys.exit(min(1, main()))
