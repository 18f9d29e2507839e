"""The executor's switches by the names that they have in `torch._C`. Each gives what was before.

Flambeau makes a plan for each kind of arguments, from the arguments of the call itself; there is no second executor. So a switch
that turns PyTorch's profiling off turns plans off, the bailout depth is how many plans of a function are kept, and with more than one
profiled run the calls before the last of these run without a plan.
"""
from __future__ import annotations

from typing import Any

from . import _flambeau, _jit


def _jit_set_profiling_executor(on: bool) -> bool:
    """Turns plans on or off."""
    return _jit._switch("executor", on)


def _jit_set_profiling_mode(on: bool) -> bool:
    """Turns plans on or off; both this and the executor must be on."""
    return _jit._switch("mode", on)


def _jit_set_bailout_depth(depth: int) -> int:
    """Sets how many plans of a function are kept, each for one kind of arguments."""
    if depth < 0:
        raise ValueError(f"a depth is not negative, got: {depth}")
    return sum(former for _, former in _jit.set_fusion_strategy([("STATIC", depth)]))


_jit_set_fusion_strategy = _jit.set_fusion_strategy


def _jit_set_num_profiled_runs(calls: int) -> int:
    """Sets which call of a kind of arguments makes its plan, counted from 1."""
    if calls < 0:
        raise ValueError(f"a number of calls is not negative, got: {calls}")
    return _flambeau.set_profiled_runs(calls)


def _jit_get_num_profiled_runs() -> int:
    """Which call of a kind of arguments makes its plan."""
    former = _flambeau.set_profiled_runs(1)
    _flambeau.set_profiled_runs(former)
    return former


def _get_graph_executor_optimize(on: bool | None = None) -> bool:
    """Whether calls of this thread run what the passes made, by plans; sets it where `on` is given."""
    return _flambeau.optimized() if on is None else _flambeau.set_optimized(on)


def _set_graph_executor_optimize(on: bool) -> None:
    """Sets whether calls of this thread run what the passes made, by plans."""
    _flambeau.set_optimized(on)


def _last_executed_optimized_graph() -> Any:
    """The graph that this thread's last call ran."""
    return _jit.last_executed_optimized_graph()
