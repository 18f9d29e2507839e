"""`ScriptList` and `ScriptDict`: lists and dictionaries that Python and scripts share, as `script([1, 2])` gives them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any

from ._flambeau import Shared, call_op
from ._kinds import is_tensor


def _kind(items: Iterable[Any]) -> str | None:
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and any(isinstance(item, torch.Tensor) for item in items) else None


class ScriptList(MutableSequence[Any]):
    """A list that scripts change in place."""

    def __init__(self, items: Iterable[Any]) -> None:
        held = list(items)
        self._kind = _kind(held)
        self._c = Shared(held)

    def _run(self, name: str, *args: Any) -> Any:
        return call_op(f"ops.aten.{name}", (self._c, *args))

    def _all(self) -> list[Any]:
        return self._c.copied(self._kind)

    def _at(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError("list index out of range")
        return index

    def __len__(self) -> int:
        return self._run("len")

    def __getitem__(self, index: Any) -> Any:
        found = self._all()[index]
        return ScriptList(found) if isinstance(index, slice) and found else found

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            held = self._all()
            held[index] = list(value)
            self._c.replace(held)
            return
        self._run("_set_item", self._at(index), value)

    def __delitem__(self, index: Any) -> None:
        held = self._all()
        del held[index]
        self._c.replace(held)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __contains__(self, value: Any) -> bool:
        return any(value is item or bool(_same(value, item)) for item in self._all())

    def insert(self, index: int, value: Any) -> None:
        """Puts an item before another one."""
        self._run("insert", index, value)

    def append(self, value: Any) -> None:
        """Puts an item at the end."""
        self._run("append", value)

    def clear(self) -> None:
        """Takes all items out."""
        self._run("clear")

    def pop(self, index: int = -1) -> Any:
        """Takes an item out, and gives it."""
        if not len(self):
            raise IndexError("pop from empty list")
        return self._run("pop", self._at(index))

    def extend(self, values: Iterable[Any]) -> None:
        """Puts items at the end."""
        for value in values:
            self.append(value)

    def count(self, value: Any) -> int:
        """How often an item is there."""
        return self._all().count(value)

    def remove(self, value: Any) -> None:
        """Takes the first such item out."""
        del self[self._all().index(value)]

    def __eq__(self, other: object) -> Any:
        return self._all() == (other._all() if isinstance(other, ScriptList) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())


def _same(a: Any, b: Any) -> Any:
    equal = a == b
    return equal.all() if is_tensor(equal) else equal


class ScriptDict(MutableMapping[Any, Any]):
    """A dictionary that scripts change in place."""

    def __init__(self, items: Any) -> None:
        held = dict(items)
        self._kind = _kind(held.values())
        self._c = Shared(held)

    def _all(self) -> dict[Any, Any]:
        return self._c.copied(self._kind)

    def __len__(self) -> int:
        return call_op("ops.aten.len", (self._c,))

    def __getitem__(self, key: Any) -> Any:
        return self._all()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        call_op("ops.aten._set_item", (self._c, key, value))

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        call_op("ops.aten.Delete", (self._c, key))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __contains__(self, key: Any) -> bool:
        return key in self._all()

    def __eq__(self, other: object) -> Any:
        return self._all() == (other._all() if isinstance(other, ScriptDict) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())
