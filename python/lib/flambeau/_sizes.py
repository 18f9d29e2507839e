"""Sizes of tensors while a trace is written: numbers that remember how they were computed.

A size of a tensor is an `int` to Python. What is computed from it with `+ - * / // % **` remembers that, so that the program
of the trace computes it from its own arguments. What Python decides by it cannot be followed: a comparison, a truth value,
`int(...)`, `float(...)` and `round(...)` warn. `range(...)` and the index of a list take the number as it is, unseen: Python
reads an `int` there without asking it.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable


class TracerWarning(Warning):
    """A value of a tensor steers Python where a trace cannot follow."""


def warn_of_value(what: str, level: int = 4) -> None:
    """Warns that a trace takes a value as a constant."""
    warnings.warn(
        f"Converting a tensor to a Python {what} might cause the trace to be incorrect. We can't record the data flow "
        "of Python values, so this value will be treated as a constant in the future. This means that the trace might not "
        "generalize to other inputs!",
        TracerWarning,
        stacklevel=level,
    )


class _Remembers:
    """What sizes and numbers computed from them have alike."""

    __slots__ = ()
    text: str
    trace: Any
    frame: Any

    def _with(self, other: Any, sign: str, swapped: bool, compute: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, bool) or not isinstance(other, (int, float)):
            return NotImplemented
        plain, given = plain_number(self), plain_number(other)
        value = compute(given, plain) if swapped else compute(plain, given)
        # Both numbers may be of other methods of the trace than the one that is written.
        right = other.trace.number(other) if isinstance(other, _Remembers) else repr(given)
        left = self.trace.number(self)
        if swapped:
            left, right = right, left
        return remembered(value, f"({left} {sign} {right})", self.trace, self.trace.frame)

    def __add__(self, other: Any) -> Any:
        return self._with(other, "+", False, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self._with(other, "+", True, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, "-", False, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, "-", True, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            return other * plain_number(self)
        return self._with(other, "*", False, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            return other * plain_number(self)
        return self._with(other, "*", True, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, "/", False, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, "/", True, lambda a, b: a / b)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, "//", False, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, "//", True, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, "%", False, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, "%", True, lambda a, b: a % b)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return NotImplemented if modulus is not None else self._with(other, "**", False, lambda a, b: a**b)

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return NotImplemented if modulus is not None else self._with(other, "**", True, lambda a, b: a**b)

    def __and__(self, other: Any) -> Any:
        return self._with(other, "&", False, lambda a, b: a & b)

    def __rand__(self, other: Any) -> Any:
        return self._with(other, "&", True, lambda a, b: a & b)

    def __or__(self, other: Any) -> Any:
        return self._with(other, "|", False, lambda a, b: a | b)

    def __ror__(self, other: Any) -> Any:
        return self._with(other, "|", True, lambda a, b: a | b)

    def __xor__(self, other: Any) -> Any:
        return self._with(other, "^", False, lambda a, b: a ^ b)

    def __rxor__(self, other: Any) -> Any:
        return self._with(other, "^", True, lambda a, b: a ^ b)

    def __lshift__(self, other: Any) -> Any:
        return self._with(other, "<<", False, lambda a, b: a << b)

    def __rshift__(self, other: Any) -> Any:
        return self._with(other, ">>", False, lambda a, b: a >> b)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __abs__(self) -> Any:
        return remembered(abs(plain_number(self)), f"abs({self.trace.number(self)})", self.trace, self.trace.frame)

    def __neg__(self) -> Any:
        return remembered(-plain_number(self), f"(-{self.trace.number(self)})", self.trace, self.trace.frame)

    def __pos__(self) -> Any:
        return self

    def _taken(self, what: str) -> Any:
        """The number as a constant of the trace, with PyTorch's warning."""
        if self.trace.depth == 0:
            warn_of_value(what, 4)
        return plain_number(self)

    def __bool__(self) -> bool:
        return bool(self._taken("boolean"))

    def __int__(self) -> int:
        return int(self._taken("integer"))

    def __float__(self) -> float:
        return float(self._taken("float"))

    def __round__(self, digits: Any = None) -> Any:
        return round(self._taken("float"), digits)

    def __trunc__(self) -> int:
        return int(self._taken("integer"))

    def __floor__(self) -> int:
        return math.floor(self._taken("float"))

    def __ceil__(self) -> int:
        return math.ceil(self._taken("float"))

    def _compared(self, other: Any, compare: Callable[[Any, Any], bool]) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        if self.trace.depth == 0:
            warn_of_value("boolean")
        return compare(plain_number(self), plain_number(other))

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a >= b)

    def __hash__(self) -> int:
        return hash(plain_number(self))

    def __reduce__(self) -> Any:
        value = plain_number(self)
        return type(value), (value,)


class TracedInt(_Remembers, int):
    """A size of a tensor, or an int computed from sizes."""

    text: str
    trace: Any
    frame: Any


class TracedFloat(_Remembers, float):
    """A float computed from sizes."""

    text: str
    trace: Any
    frame: Any


def remembered(value: Any, text: str, trace: Any, frame: Any) -> Any:
    """A number that remembers its expression, in a frame of the trace."""
    if isinstance(value, complex):
        return value
    made: Any = TracedInt(value) if isinstance(value, int) else TracedFloat(value)
    made.text, made.trace, made.frame = text, trace, frame
    return made


def plain_number(value: Any) -> Any:
    """The number alone."""
    if isinstance(value, TracedInt):
        return int.__int__(value)
    if isinstance(value, TracedFloat):
        return float.__float__(value)
    return value


def plain(value: Any) -> Any:
    """A value with plain numbers, in lists, tuples and dictionaries as well."""
    if isinstance(value, _Remembers):
        return plain_number(value)
    if type(value) in (list, tuple) or type(value).__name__ == "Size":
        return type(value)([plain(item) for item in value])
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
    return value
