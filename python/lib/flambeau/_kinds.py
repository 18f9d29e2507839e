"""What values of Python are tensors and objects of PyTorch, which may be absent. It knows nothing of programs."""

from __future__ import annotations

import sys
from typing import Any

from ._flambeau import Tensor


def _is_torch(value: Any, name: str) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and getattr(torch, name, None) is value


def _is_torch_subclass(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(value, type) and issubclass(value, torch.Tensor)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of ours or PyTorch's."""
    return isinstance(value, Tensor) or _is_torch_subclass(type(value))


def is_torch_object(value: Any) -> bool:
    """Whether it is such an object of PyTorch's."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "ScriptObject") and type(value) is torch.ScriptObject
