"""`flambeau.nn`: the functions of `torch.nn.functional`. Modules are PyTorch's own, which `flambeau.script` and `flambeau.trace` take."""

from __future__ import annotations

import sys as _sys
from typing import Any

from . import functional as functional


def __getattr__(name: str) -> Any:
    """A module of PyTorch, where that is imported."""
    torch = _sys.modules.get("torch")
    if torch is not None and hasattr(torch.nn, name):
        return getattr(torch.nn, name)
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"flambeau.nn has no '{name}': modules are written with torch.nn, so import torch first")
