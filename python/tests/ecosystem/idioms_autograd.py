"""Idioms of calls in PyTorch's graph: writes to tensors that it computed, what is saved, `backward()` in programs, copies.

`python idioms_autograd.py torch` runs them with PyTorch's own, `python idioms_autograd.py flambeau` with Flambeau.
"""

import copy
import sys

import torch
import torch.nn as nn

from idiom import J, idiom, main, same


def leaf() -> torch.Tensor:
    return torch.tensor([-1.0, 2.0], requires_grad=True)


def refused(work, words: str) -> None:
    try:
        work()
    except RuntimeError as e:
        assert words in str(e), e
    else:
        assert False, "it should raise"


@J.script
def square(x):
    return x * x


@J.script
def scaled(x):
    return x.mul_(x.sigmoid())


@J.script
def first_zero(x):
    x[0] = 0.0
    return x * 2


@J.script
def parts(x, y):
    return x[0], x.t()[1:], y.detach(), x * y


@idiom
def results_that_are_views_of_arguments():
    x = torch.ones(2, 2, requires_grad=True)
    h, y = x * 3, torch.ones(2)
    row, rest, alone, product = parts(h[:, :], y)
    assert row._is_view() and rest._is_view() and not alone.requires_grad
    row.mul_(5.0)
    assert h._version == 1 and row._version == 1
    (h.sum() + rest.sum()).backward()
    same(x.grad, torch.tensor([[15.0, 30.0], [3.0, 6.0]]))
    alone.add_(1.0)
    refused(lambda: product.sum().backward(), "modified by an inplace operation")


@idiom
def views_where_nothing_is_recorded():
    x, y = torch.ones(2, 2), torch.ones(2)
    w = torch.ones(2, requires_grad=True)
    saved = w * y
    row, _, alone, _ = parts(x, y)
    alone.mul_(2.0)
    row.mul_(2.0)
    assert x._version == 1 and y._version == 1
    same((x, y), (torch.tensor([[2.0, 2.0], [1.0, 1.0]]), torch.tensor([2.0, 2.0])))
    refused(lambda: saved.sum().backward(), "modified by an inplace operation")


@idiom
def activations_in_place():
    act, x = J.script(nn.ReLU(inplace=True)), leaf()
    h = x * 2
    y = act(h)
    assert y is h
    y.sum().backward()
    same((h.detach(), x.grad), (torch.tensor([0.0, 4.0]), torch.tensor([0.0, 2.0])))


@idiom
def what_was_written_and_what_is_given():
    x = leaf()
    h = x * 2
    y = scaled(h)
    (h.sum() + y.sum()).backward()
    again = leaf()
    g = (again * 2) * (again * 2).sigmoid()
    (2 * g.sum()).backward()
    same(x.grad, again.grad)


@idiom
def parts_are_written():
    x = leaf()
    h = x * 2
    first_zero(h).sum().backward()
    same((x.grad, h.detach()), (torch.tensor([0.0, 4.0]), torch.tensor([0.0, 4.0])))


@idiom
def tensors_without_history_get_one():
    @J.script
    def add(b, x):
        b.add_(x)
        return b * 2

    x, b = leaf(), torch.zeros(2)
    y = add(b, x)
    (y.sum() + b.sum()).backward()
    same(x.grad, torch.full((2,), 3.0))


@idiom
def leaves_are_not_written():
    act, x = J.script(nn.ReLU(inplace=True)), leaf()
    refused(lambda: act(x), "a leaf Variable that requires grad is being used in an in-place operation")
    with torch.no_grad():
        act(x)
    same(x.detach(), torch.tensor([0.0, 2.0]))


@idiom
def writes_after_the_call_are_noticed():
    for view in (lambda h: h, lambda h: h.view(2, 1)):
        h = leaf() * 1
        y = square(view(h))
        h.add_(1)
        refused(y.sum().backward, "has been modified by an inplace operation")


@idiom
def writes_that_do_not_matter_are_allowed():
    @J.script
    def shifted(x):
        return x + 1

    x = leaf()
    h = x * 1
    y = shifted(h)
    h.add_(1)
    y.sum().backward()
    same(x.grad, torch.ones(2))


@idiom
def writes_of_the_call_are_noticed():
    h = leaf() * 1
    y = h * h
    scaled(h)
    refused(y.sum().backward, "has been modified by an inplace operation")


@idiom
def backward_in_a_program():
    @J.script
    def f(x):
        y = (x * x).sum()
        y.backward()
        return y

    x = leaf()
    f(x)
    same(x.grad, torch.tensor([-2.0, 4.0]))
    z = leaf()
    f(z * 3)
    same(z.grad, torch.tensor([-18.0, 36.0]))


@idiom
def backward_in_a_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x):
            loss = (self.w * x).sum()
            loss.backward()
            return loss.detach()

    m = J.script(M())
    m(torch.ones(2) * 3)
    m(torch.ones(2) * 3)
    same(m.w.grad, torch.full((2,), 6.0))


@idiom
def gradients_of_gradients():
    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad((square(x * 2) * x).sum(), x, create_graph=True)
    g.sum().backward()
    same(x.grad, torch.full((2,), 24.0))


@idiom
def copies_share_or_do_not():
    s = J.script(nn.Linear(3, 2))
    shallow, deep, x = copy.copy(s), copy.deepcopy(s), torch.ones(1, 3)
    with torch.no_grad():
        s.weight.fill_(0.5)
    same(shallow(x), s(x))
    assert not torch.equal(deep(x), s(x)) and deep(x).requires_grad and shallow.weight is s.weight


@idiom
def errors_of_recorded_calls_have_the_lines_of_the_program():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 2)

        def forward(self, x):
            return self.l(x)

    try:
        J.script(M())(torch.ones(2, 7))
    except RuntimeError as e:
        assert "return self.l(x)" in str(e) and "F.linear(input, self.weight, self.bias)" in str(e), e
    else:
        assert False


if __name__ == "__main__":
    sys.exit(min(1, main()))
