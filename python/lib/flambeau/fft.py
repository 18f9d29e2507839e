"""`flambeau.fft`: the functions of `torch.fft` on tensors of Flambeau."""

from __future__ import annotations

from ._functions import getter as _getter

__getattr__ = _getter("torch.fft")
