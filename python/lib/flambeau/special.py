"""`flambeau.special`: the functions of `torch.special` on tensors of Flambeau."""

from __future__ import annotations

from ._functions import getter as _getter

__getattr__ = _getter("torch.special")
