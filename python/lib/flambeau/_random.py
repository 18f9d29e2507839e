"""Random numbers: the generator that all programs draw from, PyTorch's own where that is imported, and further ones."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import threading
from typing import Any, Iterator

from . import _flambeau
from ._dtypes import DTYPES

_WORDS = 624
_local = threading.local()


def _seeded(seed: int) -> bytes:
    """The state of a Mersenne twister after `torch.manual_seed(seed)`, in the form of `torch.get_rng_state()`."""
    words = [seed & 0xFFFFFFFF]
    for n in range(1, _WORDS):
        words.append((1812433253 * (words[-1] ^ (words[-1] >> 30)) + n) & 0xFFFFFFFF)
    head = struct.pack("<QIIQ", seed & 0xFFFFFFFFFFFFFFFF, 1, 1, 0)
    return (head + struct.pack(f"<{_WORDS}Q", *words)).ljust(5056, b"\0")


class Generator:
    """A generator of one's own, for the `generator` of functions that draw random numbers."""

    def __init__(self, device: Any = "cpu") -> None:
        if str(device) != "cpu":
            raise RuntimeError(f"generators are on the cpu, not on '{device}'")
        self._state = _seeded(67280421310721)

    def manual_seed(self, seed: int) -> "Generator":
        """Seeds it."""
        self._state = _seeded(seed)
        return self

    def seed(self) -> int:
        """Seeds it from the system's entropy, and gives the seed."""
        seed = int.from_bytes(os.urandom(8), "little") & ((1 << 53) - 1)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """What it was seeded with."""
        return int(struct.unpack_from("<Q", self._state)[0])

    def get_state(self) -> _flambeau.Tensor:
        """Its state: bytes."""
        return _flambeau.tensor_from_bytes(self._state, DTYPES["uint8"], [len(self._state)])

    def set_state(self, state: Any) -> "Generator":
        """Takes a state that `get_state` gave."""
        taken = bytes(state.tolist())
        if len(taken) != len(self._state):
            raise RuntimeError("RNG state is wrong size")
        self._state = taken
        return self

    @contextlib.contextmanager
    def drawn_from(self) -> Iterator[None]:
        """A context in which calls of this thread draw from it."""
        former = getattr(_local, "generator", None)
        _local.generator = self
        try:
            yield
        finally:
            _local.generator = former


def _state() -> bytes | None:
    """The state that the next numbers are drawn from; None for the generator of Flambeau itself."""
    own = getattr(_local, "generator", None)
    if own is not None:
        return own._state  # type: ignore[no-any-return]
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "default_generator"):
        return None
    state = torch.default_generator.get_state()
    return ctypes.string_at(state.data_ptr(), state.numel())


def _keep(state: bytes) -> None:
    own = getattr(_local, "generator", None)
    torch = sys.modules.get("torch")
    if own is not None:
        own._state = state
    elif torch is not None and hasattr(torch, "default_generator"):
        torch.default_generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def manual_seed(seed: int) -> None:
    """Seeds random numbers; where PyTorch is imported its own, which programs draw from."""
    _flambeau.manual_seed(seed)


_flambeau.draw_from(_state, _keep)
