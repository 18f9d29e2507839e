"""What the executor holds for a function, by the names that PyTorch gives it: `get_debug_state()` of functions and modules."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["ExecutionPlan", "GraphExecutorState"]


class ExecutionPlan:
    """What calls of one kind of arguments run, or what runs where there is no plan.

    `graph` and `code` are texts. `refused` says why there is no plan for the kind of arguments; then there are no texts. `guards` are
    dictionaries: what each asks, what it expects, the line that it stems from, how often it held and missed, and what it found then.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.graph: str | None = state.get("graph")
        self.code: str | None = state.get("code")
        self.backward: str | None = state.get("backward")
        self.draws: str | None = state.get("draws")
        self.calls: int | None = state.get("calls")
        self.refused: str | None = state.get("refused")
        self.guards: list[dict[str, Any]] = state["guards"]


class GraphExecutorState:
    """The plans of a function by the kinds of arguments that they are for: a text for each argument, then the grad mode.

    `graph` is the function before plans, `fallback` what calls without a plan run, None where none ran. `unplanned_calls` counts calls
    without a plan by reason, of all functions of the program. All of it is empty before the first call.
    """

    def __init__(self, state: str | None) -> None:
        found: dict[str, Any] = json.loads(state) if state is not None else {}
        self.graph: str | None = found.get("graph")
        self.execution_plans = {tuple(plan["arguments"]): ExecutionPlan(plan) for plan in found.get("plans", [])}
        fallback = found.get("fallback")
        self.fallback = None if fallback is None else ExecutionPlan({"graph": self.graph, **fallback})
        self.unplanned_calls: dict[str, int] = found.get("unplanned_calls", {})
        self.lost_plans: int = found.get("lost_plans", 0)
