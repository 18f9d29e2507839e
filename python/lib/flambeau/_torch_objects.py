"""Objects of classes that PyTorch has in C++, such as packed weights, as objects of programs: an archive carries them over."""

from __future__ import annotations

import io
import weakref
from typing import Any

# By the numbers of PyTorch's objects, which cannot be compared.
_known: dict[int, Any] = {}


def script_object(value: Any) -> Any:
    """The object with the state that PyTorch's has when it is first asked for; the same one each time."""
    made = _known.get(id(value))
    if made is None:
        made = _known[id(value)] = _carried(value)
        weakref.finalize(value, _known.pop, id(value), None)
    return made


def _carried(value: Any) -> Any:
    import torch

    from ._files import load

    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = value

        def forward(self) -> int:
            return 0

    archive = torch.jit.script(Holder()).save_to_buffer()
    return load(io.BytesIO(archive)).held
