"""The executor's switches by the names that they have in `torch._C`. Each gives what was before.

Flambeau makes a plan for each kind of arguments, from the arguments of the call itself; there is no second executor. So a switch
that turns PyTorch's profiling off turns plans off, the bailout depth is how many plans of a function are kept, and with more than one
profiled run the calls before the last of these run without a plan.

Passes have their names of `torch._C` as well: `_jit_pass_constant_propagation(graph)` is `graph.run_pass("constant-propagation")`.
"""
from __future__ import annotations

import functools
from typing import Any, Callable

from . import _flambeau, _jit

_PASS = "_jit_pass_"
# Passes that have another name here.
_RENAMED = {"propagate-shapes-on-graph": "propagate-shapes"}


def _jit_pass_lint(graph: _flambeau.Graph) -> None:
    """Fails where the graph breaks a law."""
    graph.lint()


def _jit_pass_canonicalize(graph: _flambeau.Graph) -> _flambeau.Graph:
    """A copy of the graph whose values have the numbers of their order."""
    copy = graph.copy()
    copy.run_pass("canonicalize")
    return copy


def _jit_pass_peephole(graph: _flambeau.Graph, disable_shape_peepholes: bool = False) -> None:
    """Applies PyTorch's peephole rules; those of shapes are part of `fold-sizes` here."""
    graph.run_pass("peephole" if disable_shape_peepholes else "peephole,fold-sizes")


def _jit_pass_complete_shape_analysis(graph: _flambeau.Graph, inputs: Any, with_grad: bool = False) -> None:
    """Takes the types of the inputs from tensors, and infers the others; not as if all inputs required gradients."""
    if with_grad:
        raise NotImplementedError("types are inferred as the inputs are, not with gradients: give False")
    for value, given in zip(graph.inputs(), inputs):
        if hasattr(given, "shape"):
            value.inferTypeFrom(given)
    graph.run_pass("propagate-shapes")


def __getattr__(name: str) -> Callable[..., None]:
    known = name[len(_PASS) :].replace("_", "-")
    known = _RENAMED.get(known, known)
    if not name.startswith(_PASS) or known not in {passed for passed, _ in _flambeau.passes()}:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return functools.partial(_run_pass, known)


def _run_pass(name: str, graph: _flambeau.Graph) -> None:
    graph.run_pass(name)


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


def _jit_set_logging_option(option: str) -> None:
    """Sets what is logged of functions that are called for the first time from now on: passes by name, those that make plans among
    them, and `fusion`. `cse:>simplify` logs changes by `cse` and everything of `simplify`; "" logs nothing."""
    _flambeau.set_logging_option(option)


def _jit_get_logging_option() -> str:
    """What is logged."""
    return _flambeau.logging_option()


def _jit_set_logging_stream(stream: str) -> None:
    """Sets where logs go: "stdout" or "stderr", which they go to at first."""
    if stream not in ("stdout", "stderr"):
        raise RuntimeError(f"only stdout and stderr are supported for logs, got: {stream}")
    _flambeau.set_logging_to_stdout(stream == "stdout")


def _last_executed_optimized_graph() -> Any:
    """The graph that this thread's last call ran."""
    return _jit.last_executed_optimized_graph()
