"""What became of a program, for people: explanations of calls, differences of texts, and how notebooks show them."""

from __future__ import annotations

import difflib
import html
from typing import Any

__all__ = ["Explanation", "diff", "explain", "framed"]

_STYLE = (
    "<style>.flambeau-text{font:12px/1.5 ui-monospace,monospace;white-space:pre;overflow:auto;max-height:40em;padding:8px;"
    "border:1px solid #8885;border-radius:6px}.flambeau-text .more{background:#2da44e33}.flambeau-text .less{background:#e5534b33}"
    ".flambeau-text .at{color:#888}</style>"
)


def framed(page: str) -> str:
    """A whole page as a part of another."""
    return (
        '<iframe title="graph" style="width:100%;height:480px;border:1px solid #8885;border-radius:6px" '
        f'sandbox="allow-scripts" srcdoc="{html.escape(page, quote=True)}"></iframe>'
    )


class Explanation(str):
    """A text that notebooks show as it is, in their own colours."""

    def _repr_html_(self) -> str:
        return f'{_STYLE}<div class="flambeau-text">{html.escape(self)}</div>'

    def __repr__(self) -> str:
        return str(self)


class Difference(Explanation):
    """The lines in which two texts differ."""

    def _repr_html_(self) -> str:
        kinds = {"+": "more", "-": "less", "@": "at"}
        lines = (f'<span class="{kinds.get(line[:1], "")}">{html.escape(line)}</span>' for line in self.splitlines())
        return f'{_STYLE}<div class="flambeau-text">{chr(10).join(lines)}</div>'


def explain(function: Any, *args: Any, graph: bool = False, **kwargs: Any) -> Explanation:
    """What becomes of a call: the plan that was made for such arguments, its ops with kernels, bytes and time, what was fused;
    or why there is no plan. The function is called eight times, without gradients. With `graph` the plan's graph stands below."""
    core, name = getattr(function, "_c", None), getattr(function, "_name", "forward")
    if core is None:
        raise TypeError(f"expected a loaded or scripted function or module, not {type(function).__name__}")
    return Explanation(core.explain(name, args, kwargs or None, graph))


def diff(a: Any, b: Any, context: int = 3) -> Difference:
    """The lines in which two graphs, modules or texts differ, as unified differences."""

    def lines(value: Any) -> list[str]:
        code = getattr(value, "code", None)
        text = value if isinstance(value, str) else code if isinstance(code, str) else str(value)
        return text.splitlines()

    return Difference("\n".join(difflib.unified_diff(lines(a), lines(b), "before", "after", lineterm="", n=context)))
