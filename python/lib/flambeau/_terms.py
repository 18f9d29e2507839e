"""Terms: the sides of rules, as ops over variables. It knows nothing of how rules are checked and applied."""

from __future__ import annotations

from typing import Any, Callable, Iterable

from . import _flambeau


class Term:
    """A side of a rule: ops over variables. Operators, methods and the functions of `flambeau` and `flambeau.ops` make terms of terms."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __getattr__(self, name: str) -> Callable[..., "Term"]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: applied(f"aten::{name}", (self, *args), kwargs)

    def __getitem__(self, n: int) -> "Term":
        if not isinstance(n, int):
            raise TypeError("the n-th result of an op is term[n]; a slice is flambeau.ops.aten.slice(...)")
        return Term(f"{self.text}.{n}")

    def __iter__(self) -> Any:
        raise TypeError("a term has as many results as its op: take them by number, term[0]")

    def __bool__(self) -> bool:
        raise TypeError("a term has no truth value: conditions are text after the two sides, 'is_float(?x)'")


def term(text: str) -> Term:
    """A term as rule files have it: `term("?xs...")`, `term("(?a + 1)")`."""
    return Term(text)


def _operator(name: str, swapped: bool = False) -> Callable[..., Term]:
    def made(self: Term, *others: Any) -> Term:
        args = (*others, self) if swapped else (self, *others)
        return applied(f"aten::{name}", args, {})

    return made


for _python, _op in {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "__and__", "or": "__or__", "xor": "__xor__",
}.items():  # fmt: skip
    setattr(Term, f"__{_python}__", _operator(_op))
    setattr(Term, f"__r{_python}__", _operator(_op, swapped=True))
for _python, _op in {"neg": "neg", "abs": "abs", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "invert": "bitwise_not"}.items():
    setattr(Term, f"__{_python}__", _operator(_op))


def operand(value: Any) -> str:
    if isinstance(value, Term):
        return value.text
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(operand, value))}]"
    if isinstance(value, _flambeau.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    raise TypeError(f"a rule cannot speak of {value!r}")


def applied(kind: str, args: Iterable[Any], kwargs: dict[str, Any]) -> Term:
    """A call of an op in a rule."""
    parts = [*map(operand, args), *(f"{name}={operand(value)}" for name, value in kwargs.items())]
    return Term(f"{kind}({', '.join(parts)})")


def is_term(args: Iterable[Any]) -> bool:
    """Whether a call is one in a rule."""
    return any(isinstance(x, Term) or isinstance(x, (list, tuple)) and is_term(x) for x in args)
