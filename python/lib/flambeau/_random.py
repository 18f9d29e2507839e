"""Random numbers: the generator that all programs draw from, PyTorch's own where that is imported, and further ones."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable

from . import _flambeau
from ._dtypes import DTYPES


class Generator:
    """A generator of one's own, for the `generator` of functions that draw random numbers, programs among them."""

    def __init__(self, device: Any = "cpu") -> None:
        if str(device) != "cpu":
            raise RuntimeError(f"generators are on the cpu, not on '{device}'")
        self._c = _flambeau.GeneratorState()

    def manual_seed(self, seed: int) -> "Generator":
        """Seeds it; of a seed, negative or not, the low 64 bits count."""
        self._c.manual_seed(seed & 0xFFFFFFFFFFFFFFFF)
        return self

    def seed(self) -> int:
        """Seeds it from the system's entropy, and gives the seed."""
        return int(self._c.seed())

    def initial_seed(self) -> int:
        """What it was seeded with."""
        return int(self._c.initial_seed())

    def get_state(self) -> _flambeau.Tensor:
        """Its state: bytes."""
        state = self._c.state()
        return _flambeau.tensor_from_bytes(state, DTYPES["uint8"], [len(state)])

    def set_state(self, state: Any) -> "Generator":
        """Takes a state that `get_state` gave."""
        self._c.set_state(bytes(state.tolist()))
        return self


def wrapped(state: _flambeau.GeneratorState) -> Generator:
    """The generator that draws from this state."""
    made = Generator.__new__(Generator)
    made._c = state
    return made


def functions_of(generator: Any) -> tuple[Callable[[], bytes], Callable[[bytes], None]]:
    """What reads and sets the state of a generator of PyTorch's."""
    import torch

    if not isinstance(generator, torch.Generator):
        raise TypeError(f"a generator is flambeau's or PyTorch's, not a {type(generator).__module__}.{type(generator).__name__}")

    def state() -> bytes:
        taken = generator.get_state()
        return ctypes.string_at(taken.data_ptr(), taken.numel())

    def keep(state: bytes) -> None:
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))

    return state, keep


def _state() -> bytes | None:
    """The state that the next numbers are drawn from; None for the generator of Flambeau itself."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "default_generator"):
        return None
    return functions_of(torch.default_generator)[0]()


def _keep(state: bytes) -> None:
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        functions_of(torch.default_generator)[1](state)


def manual_seed(seed: int) -> None:
    """Seeds random numbers; where PyTorch is imported its own, which programs draw from."""
    _flambeau.manual_seed(seed)


_flambeau.draw_from(_state, _keep)
