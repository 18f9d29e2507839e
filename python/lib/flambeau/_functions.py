"""Functions of PyTorch by their paths, for the modules of functions: `flambeau.linalg`, `flambeau.nn.functional` and others."""

from __future__ import annotations

from typing import Any, Callable

from ._names import _is_known
from ._tensors import function


def getter(path: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose functions are those of a module of PyTorch."""
    made: dict[str, Any] = {}

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in made:
            if not _is_known(f"{path}.{name}"):
                raise AttributeError(f"module 'flambeau.{path.removeprefix('torch.')}' has no function '{name}'")
            made[name] = function(f"{path}.{name}")
        return made[name]

    return __getattr__
