"""Gradients across PyTorch: a call of a program is one node of PyTorch's graph, whose backward runs Flambeau's."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch

from ._flambeau import Tensor, from_array
from ._files import CompilationUnit

# Parameters of PyTorch by the number of the tensor that shares their memory.
_originals: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()


def remember(own: Tensor, original: Any) -> None:
    """Notes whose memory a tensor of ours shares."""
    _originals[own._id] = original


def original(own: Tensor, links: dict[int, Any], is_parameter: bool) -> Any:
    """The tensor of PyTorch that shares a tensor's memory: the one that it was made of, or a new one, kept in `links`."""
    found = _originals.get(own._id)
    if found is not None and found.data_ptr() == own.data_ptr() and tuple(found.shape) == tuple(own.shape):
        return found
    made = own.detach().torch()
    if is_parameter:
        made = torch.nn.Parameter(made, requires_grad=own.requires_grad)
    remember(own, made)
    links[own._id] = made
    return made


_GRAD = """
def grad(outputs: List[Tensor], inputs: List[Tensor], gradients: List[Optional[Tensor]], again: bool):
    return torch.autograd.grad(outputs, inputs, gradients, retain_graph=True, create_graph=again, allow_unused=True)
"""


@functools.cache
def _grad() -> CompilationUnit:
    return CompilationUnit(_GRAD).grad


class _Link(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: list[Tensor], leaves: list[Tensor], noted: Any, *originals: Any) -> Any:
        ctx.outputs, ctx.leaves = outputs, leaves
        ctx.seen, ctx.others, written = noted
        # What the call wrote to will lead here: kept whole, it would keep itself.
        ctx.save_for_backward(*(o.detach() if n in written else o for n, o in enumerate(originals)))
        return tuple(t.detach().torch() for t in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        # With `create_graph` what is computed here is itself a function of the leaves and of the gradients that came.
        again = torch.is_grad_enabled()
        _count_writes(ctx)
        pairs = [(out, _own_gradient(g, again), g) for out, g in zip(ctx.outputs, gradients) if g is not None]
        try:
            found = _grad()([out for out, _, _ in pairs], ctx.leaves, [own for _, own, _ in pairs], again)
        except RuntimeError as error:
            # The line of `torch.autograd.grad` above is not the caller's.
            raise RuntimeError(str(error).strip().rpartition("RuntimeError: ")[2]) from None
        if not again:
            return (None, None, None, *(None if g is None else g.torch() for g in found))
        followed = [g for g in found if g is not None and g.requires_grad]
        if not followed:
            return (None, None, None, *(None if g is None else g.detach().torch() for g in found))
        tracked = [(own, g) for _, own, g in pairs if own.requires_grad]
        leaves, originals = [*ctx.leaves, *(own for own, _ in tracked)], [*ctx.saved_tensors, *(g for _, g in tracked)]
        linked_again = _Link.apply(followed, leaves, (list(map(_seen, originals)), ctx.others, ()), *originals)
        made = dict(zip(map(id, followed), linked_again))
        return (None, None, None, *(None if g is None else made[id(g)] if id(g) in made else g.detach().torch() for g in found))


def _seen(original: Any) -> tuple[Any, int]:
    return weakref.ref(original), original._version


def _count_writes(ctx: Any) -> None:
    """Tensors of ours count the writes that PyTorch's saw since, so that what was saved of them does not hold any more."""
    try:
        ctx.saved_tensors
    except RuntimeError:
        changed = [given is None or given._version != version for given, version in ((o(), v) for o, v in ctx.seen)]
        for own, is_changed in zip(ctx.leaves, changed):
            if is_changed:
                own._written_outside()
    for own, given, version in ctx.others:
        if given._version != version:
            own._written_outside()


def _own_gradient(gradient: Any, again: bool) -> Tensor:
    own = from_array(gradient.detach().contiguous())
    return own.requires_grad_(True) if again and gradient.requires_grad else own


def linked(
    result: Any,
    tracked: list[tuple[Any, Tensor]],
    parameters: list[Tensor],
    links: dict[int, Any],
    written: list[tuple[Any, Tensor]],
    shown: list[tuple[Tensor, Any, int]],
    untracked: list[tuple[Any, Tensor]],
) -> Any:
    """The result with tensors of PyTorch, which know how they were made. `written` are those that the call wrote to, `shown` the
    results in the memory of an argument, with this and the place in it, `untracked` the arguments without a gradient."""
    originals = [original for original, _ in tracked if isinstance(original, torch.Tensor)]
    leaves = [own for original, own in tracked if isinstance(original, torch.Tensor)]
    for parameter in parameters:
        originals.append(original(parameter, links, True))
        leaves.append(parameter)
    outputs: list[Tensor] = []
    _gather(result, outputs)
    changed = [(tensor, own) for tensor, own in written if leaves and own.requires_grad]
    views = [v for v in shown if not v[0].requires_grad or v[1].requires_grad or any(v[1] is tensor for tensor, _ in changed)]
    of_views = {id(own) for own, _, _ in views}
    followed = [t for t in outputs if t.requires_grad and id(t) not in of_views] if leaves else []
    seen = list(map(_seen, originals))
    wanted = [*followed, *(own for _, own in changed)]
    places = [n for n, given in enumerate(originals) if any(given is tensor for tensor, _ in changed)]
    others: list[tuple[Tensor, Any, int]] = []
    results = _Link.apply(wanted, leaves, (seen, others, places), *originals) if wanted else ()
    for tensor, own in written:
        if not (leaves and own.requires_grad):
            torch.autograd.graph.increment_version(tensor)
    # What the call wrote is there already; copied onto itself, PyTorch knows how it was made.
    for (tensor, _), result_of_write in zip(changed, results[len(followed) :]):
        tensor.copy_(result_of_write)
        seen[:] = [_seen(tensor) if of() is tensor else (of, version) for of, version in seen]
    # Detached, they count the same writes and keep nothing of a graph.
    others.extend((own, tensor.detach(), tensor._version) for tensor, own in untracked)
    made = dict(zip(map(id, followed), results))
    made.update((id(own), _view(own, tensor, offset)) for own, tensor, offset in views)
    _hand_on(leaves, originals)
    return _replaced(result, made)


def _view(own: Tensor, base: Any, offset: int) -> Any:
    """The view of an argument that a result is: PyTorch knows its gradient, and counts writes to either on both."""
    base = base if own.requires_grad else base.detach()
    return base.as_strided(tuple(own.shape), own.stride(), base.storage_offset() + offset)


def _hand_on(leaves: list[Tensor], originals: list[Any]) -> None:
    """Gradients that `backward()` in the program gave to leaves go to PyTorch's tensors, and on from there."""
    found = [(original, own) for original, own in zip(originals, leaves) if own.grad is not None]
    if found:
        torch.autograd.backward([original for original, _ in found], [own.grad.torch() for _, own in found])
        for _, own in found:
            own.grad = None


def _gather(value: Any, into: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        into.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _gather(item, into)
    elif isinstance(value, dict):
        for item in value.values():
            _gather(item, into)


def _replaced(value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, Tensor):
        return made[id(value)] if id(value) in made else value.detach().torch()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(item, made) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(item, made) for item in value)
    if isinstance(value, dict):
        return {key: _replaced(item, made) for key, item in value.items()}
    return value
