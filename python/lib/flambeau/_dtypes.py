"""The dtypes by their names. It knows nothing of tensors."""

from __future__ import annotations

from . import _flambeau

DTYPES = dict(_flambeau.all_dtypes())


def dtype_of(name: str) -> _flambeau.dtype:
    """The dtype of a name: `float32`."""
    return DTYPES[name]
