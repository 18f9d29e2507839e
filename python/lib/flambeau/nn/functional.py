"""`flambeau.nn.functional`: the functions of `torch.nn.functional` on tensors of Flambeau."""

from __future__ import annotations

from .._functions import getter as _getter

__getattr__ = _getter("torch.nn.functional")
