"""Functions that make tensors or work on them, under PyTorch's names."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

from . import _flambeau
from ._dtypes import dtype_of
from ._flambeau import Tensor, call_op, from_array, tensor_of
from ._terms import applied, is_term

__all__ = ["Size", "tensor", "as_tensor", "from_numpy", "from_dlpack", "is_tensor", "no_grad", "enable_grad"]


class Size(tuple):
    """Sizes of a tensor: a tuple that prints as PyTorch's does."""

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """The product of the sizes."""
        count = 1
        for size in self:
            count *= size
        return count

    def __add__(self, other: Any) -> "Size":
        return Size(tuple(self) + tuple(other))

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found


def restore(data: bytes, dtype: str, sizes: list[int], requires_grad: bool) -> Tensor:
    """A tensor from what pickling kept of it."""
    made = _flambeau.tensor_from_bytes(data, dtype_of(dtype), list(sizes))
    if requires_grad:
        made.requires_grad_(True)
    return made


def _on(made: Tensor, device: Any) -> Tensor:
    """The tensor on a device; what has no such device refuses it by name."""
    return made if device is None or str(device) == str(made.device) else made.to(device=str(device))


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of numbers in nested lists; arrays are copied."""
    made = _on(tensor_of(data, dtype), device)
    if requires_grad:
        made.requires_grad_(True)
    return made


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor over an array's memory where it has the dtype, a copy else."""
    if isinstance(data, Tensor):
        return _on(data if dtype is None or data.dtype == dtype else data.to(dtype), device)
    if hasattr(data, "__dlpack__") or hasattr(data, "__array_interface__"):
        made = from_array(data)
        return _on(made if dtype is None or made.dtype == dtype else made.to(dtype), device)
    return _on(tensor_of(data, dtype), device)


def from_numpy(array: Any) -> Tensor:
    """A tensor over the memory of a NumPy array."""
    return from_array(array)


def from_dlpack(array: Any) -> Tensor:
    """A tensor over the memory of any array with `__dlpack__`."""
    return from_array(array)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of Flambeau."""
    return isinstance(value, Tensor)


class _GradMode(contextlib.ContextDecorator):
    """Records gradients or not, within `with` or a decorated function."""

    def __init__(self, on: bool) -> None:
        self.on = on
        self.former: list[bool] = []

    def __enter__(self) -> None:
        self.former.append(_flambeau.set_grad_enabled(self.on))

    def __exit__(self, *error: Any) -> None:
        _flambeau.set_grad_enabled(self.former.pop())


def no_grad() -> _GradMode:
    """Records no gradients: `with flambeau.no_grad():`."""
    return _GradMode(False)


def enable_grad() -> _GradMode:
    """Records gradients."""
    return _GradMode(True)


def function(path: str) -> Callable[..., Any]:
    """The function of PyTorch that a path names: `torch.add`, `torch.nn.functional.relu`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if is_term(args):
            return applied(_kind(path), args, kwargs)
        requires_grad = kwargs.pop("requires_grad", False)
        made = call_op(path, args, kwargs or None)
        if requires_grad:
            made.requires_grad_(True)
        return made

    call.__name__ = call.__qualname__ = path.rsplit(".", 1)[-1]
    call.__doc__ = f"PyTorch's `{path}` on tensors of Flambeau."
    call.__flambeau_path__ = path  # type: ignore[attr-defined]
    return call


def _kind(path: str) -> str:
    """The op that a path names, for rules."""
    words = path.split(".")
    return f"{words[2]}::{words[3]}" if words[1] == "ops" else f"aten::{words[-1]}"


# Functions that take sizes one by one.
_SIZED = {"zeros", "ones", "empty", "rand", "randn"}


def sized(name: str) -> Callable[..., Tensor]:
    """A function that takes sizes as a list or one by one."""
    inner = function(f"torch.{name}")

    def call(*size: Any, **kwargs: Any) -> Tensor:
        sizes = list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
        return inner(sizes, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"PyTorch's `torch.{name}`."
    call.__flambeau_path__ = f"torch.{name}"  # type: ignore[attr-defined]
    return call


class OpNamespace:
    """The ops of a namespace: `flambeau.ops.aten.add`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if not _flambeau.known_op(f"{self._name}::{name}"):
            raise AttributeError(f"'{self._name}' has no op '{name}'")
        made = function(f"torch.ops.{self._name}.{name}")
        setattr(self, name, made)
        return made


class Ops:
    """All ops by namespace and name."""

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        made = OpNamespace(name)
        setattr(self, name, made)
        return made


ops = Ops()
