"""Batch inference and searches on many machines, by Ray: `Predict` for `Dataset.map_batches`, `sweep` for commands over seeds.

Ray does the distribution, and is imported only by what needs it; a worker has one program, whose file all workers of a machine share.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ._flambeau import set_num_threads
from ._files import load

__all__ = ["Outcome", "Predict", "sweep"]


class Predict:
    """A model as the callable of `map_batches`: columns in, columns out.

    `ds.map_batches(flambeau.ray.Predict, fn_constructor_args=("m.pt",), compute=ray.data.ActorPoolStrategy(size=2))` loads the model once in each worker,
    its file mapped, and calls it with batches of NumPy arrays. `inputs` names the columns in the order of the arguments (the
    arguments' own names, or the only column there is), `outputs` the columns of what it gives (`output`, or `output_0`, ... of
    a tuple; a dictionary names its own). Columns of `keep` are passed on. A worker computes on `threads` threads: one, as
    Ray starts a worker for each processor.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        method: str = "forward",
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        keep: Iterable[str] = (),
        mmap: bool = True,
        threads: int = 1,
    ) -> None:
        set_num_threads(threads)
        loaded = load(model, mmap=mmap)
        self._call = getattr(loaded, method) if hasattr(loaded, method) else loaded
        self._names = [row[0] for row in loaded._c.arguments(method if hasattr(loaded, method) else loaded._name)]
        self._inputs = list(inputs) if inputs is not None else None
        self._outputs = list(outputs) if outputs is not None else None
        self._keep = list(keep)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        made = {name: batch[name] for name in self._keep}
        result = self._call(*(_dense(batch[name]) for name in self._columns(batch)))
        if isinstance(result, Mapping):
            made.update(result)
            return made
        parts = result if isinstance(result, (tuple, list)) else (result,)
        names = self._outputs
        if names is None:
            names = ["output"] if len(parts) == 1 else [f"output_{n}" for n in range(len(parts))]
        if len(names) != len(parts):
            raise ValueError(f"the model gives {len(parts)} results, and there are {len(names)} names for them")
        made.update(zip(names, parts))
        return made

    def _columns(self, batch: Mapping[str, Any]) -> list[str]:
        if self._inputs is not None:
            return self._inputs
        given = [name for name in self._names if name in batch]
        if given:
            return given
        rest = [name for name in batch if name not in self._keep]
        if len(rest) == 1:
            return rest
        raise ValueError(f"the model takes {', '.join(self._names)}, and the columns are {', '.join(batch)}: name the `inputs`")


def _dense(column: Any) -> Any:
    """A column as one array: rows that came as a list each are put together."""
    if getattr(column, "dtype", None) == object:
        import numpy

        return numpy.stack(list(column))
    return column


class Outcome(NamedTuple):
    """What a command said for one seed."""

    seed: int
    status: int
    text: str


def sweep(words: Sequence[str], seeds: Iterable[int], *, workers: int | None = None, cpus: float = 1) -> list[Outcome]:
    """Runs a command of Flambeau once for each seed, with `--seed N` after its arguments, on the machines of a Ray cluster.

    `sweep(["rules", "check", "my.rules"], range(100))` checks rules on other random instances each time; `check` and
    `run` take seeds as well. At most `workers` run at a time (as many as the cluster has processors for, at `cpus` each). The outcomes come in the
    order of the seeds, whatever the number of workers; files that the arguments name must exist on every machine.
    """
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    folder = os.getcwd()

    @ray.remote(num_cpus=cpus)
    def one(seed: int) -> Outcome:
        command = [sys.executable, "-m", "flambeau", *words, "--seed", str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, check=False)
        return Outcome(seed, done.returncode, done.stdout)

    waiting = list(seeds)
    running: dict[Any, int] = {}
    found: dict[int, Outcome] = {}
    order = list(waiting)
    while waiting or running:
        while waiting and (workers is None or len(running) < workers):
            seed = waiting.pop(0)
            running[one.remote(seed)] = seed
        ready, _ = ray.wait(list(running), num_returns=1)
        for reference in ready:
            found[running.pop(reference)] = ray.get(reference)
    return [found[seed] for seed in order]
