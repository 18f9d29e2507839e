"""Limits for what is not trusted, and `LimitError`, which names the limit that was reached."""

from __future__ import annotations

from ._flambeau import LimitError, Limits

__all__ = ["LimitError", "Limits", "limits"]


def limits(
    *,
    memory: int | str | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    depth: int | None = None,
    output: int | str | None = None,
    warnings: int | None = None,
    forks: int | None = None,
) -> Limits:
    """Limits for a block: `with flambeau.limits(memory="1G", seconds=10):`.

    They hold for all that this thread does with flambeau in the block, together: loading, compiling, calls, operations on tensors.
    Blocks nest, and both hold. `memory` is bytes that live at one time, a number or "512M"; `steps` are instructions of the
    interpreter, `depth` calls nested in each other, `output` bytes printed, `forks` tasks that are open. At a limit there is a
    `LimitError`; `cancel()` of the answer, from any thread, ends the block's work with one.
    """
    return Limits(memory=memory, steps=steps, seconds=seconds, depth=depth, output=output, warnings=warnings, forks=forks)
