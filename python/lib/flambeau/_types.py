"""Types and schemas as objects: texts that know their parts."""

from __future__ import annotations

from typing import Any, Iterator, Sequence, TypeVar

from . import _flambeau

_T = TypeVar("_T")


class Parts(list[_T]):
    """What a graph, block or node has several of: a list which, as PyTorch's iterators, `next` reads from the front.

    A loop goes over what `next` has not read yet.
    """

    _read = 0

    def __next__(self) -> _T:
        if self._read >= len(self):
            raise StopIteration
        self._read += 1
        return self[self._read - 1]

    def __iter__(self) -> Iterator[_T]:
        return iter(self[self._read :]) if self._read else super().__iter__()


class Type(str):
    """A type of a value, as TorchScript source has it (`List[int]`), with PyTorch's questions; `str()` is what graphs print."""

    _kind: str
    _text: str
    _parts: tuple["Type", ...]
    _tensor: Any

    def __new__(cls, text: str, kind: str, annotation: str, parts: Sequence["Type"], tensor: Any = None) -> "Type":
        made = super().__new__(cls, annotation)
        made._kind, made._text, made._parts, made._tensor = kind, text, tuple(parts), tensor
        return made

    def __repr__(self) -> str:
        return self.__str__()

    def __reduce__(self) -> Any:
        return Type, (self._text, self._kind, self.__str__(), self._parts, self._tensor)

    def str(self) -> str:
        """The type as graphs print it: `int[]`, `Float(2, 3)`."""
        return self._text

    def kind(self) -> str:  # type: ignore[valid-type]
        """`TensorType`, `ListType` and so on."""
        return self._kind

    @property
    def annotation_str(self) -> str:  # type: ignore[valid-type]
        """The type as TorchScript source has it."""
        return self.__str__()

    def isSubtypeOf(self, other: "Type") -> bool:  # noqa: N802 - PyTorch's name
        """Whether each value of this type is one of the other."""
        return _flambeau.is_subtype(self._text, other._text)

    def _facts(self, question: str) -> Any:  # type: ignore[valid-type]
        if self._tensor is None:
            raise RuntimeError(f"{self} is not a tensor and has no {question}()")
        return self._tensor

    def scalarType(self) -> Any:  # noqa: N802  # type: ignore[valid-type]
        """A tensor's dtype by PyTorch's old name, `Float`; None where it is open."""
        return self._facts("scalarType")[0]

    def sizes(self) -> Any:  # type: ignore[valid-type]
        """A tensor's sizes; None where any is open."""
        return _whole(self._facts("sizes")[1])

    def varyingSizes(self) -> Any:  # noqa: N802  # type: ignore[valid-type]
        """A tensor's sizes, None for each that is open; None where their number is."""
        return self._facts("varyingSizes")[1]

    def strides(self) -> Any:  # type: ignore[valid-type]
        """A tensor's strides; None where any is open."""
        return _whole(self._facts("strides")[2])

    def dim(self) -> Any:  # type: ignore[valid-type]
        """The number of a tensor's sizes; None where it is open."""
        sizes = self._facts("dim")[1]
        return None if sizes is None else len(sizes)

    def device(self) -> Any:  # type: ignore[valid-type]
        """A tensor's device; None where it is open."""
        found = self._facts("device")[3]
        return None if found is None else _flambeau.device(found)

    def _part(self, kinds: tuple[str, ...], n: int, what: str) -> "Type":  # type: ignore[valid-type]
        if self._kind not in kinds or n >= len(self._parts):
            raise RuntimeError(f"{self} has no {what}")
        return self._parts[n]

    def getElementType(self) -> "Type":  # noqa: N802 - PyTorch's name
        """What a list, an optional or a future holds."""
        return self._part(("ListType", "OptionalType", "FutureType", "AwaitType", "RRefType"), 0, "element type")

    def getKeyType(self) -> "Type":  # noqa: N802
        """The type of a dictionary's keys."""
        return self._part(("DictType",), 0, "key type")

    def getValueType(self) -> "Type":  # noqa: N802
        """The type of a dictionary's values."""
        return self._part(("DictType",), 1, "value type")

    def elements(self) -> list["Type"]:
        """The types of a tuple's items."""
        if self._kind != "TupleType":
            raise RuntimeError(f"{self} is not a tuple")
        return list(self._parts)

    def containedTypes(self) -> list["Type"]:  # noqa: N802
        """All types that it is made of."""
        return list(self._parts)


def _whole(numbers: Any) -> Any:
    return None if numbers is None or None in numbers else numbers


class Argument:
    """An argument or result of a schema."""

    def __init__(self, name: str, type: Type, default: Any = None, has_default: bool = False, kwarg_only: bool = False) -> None:
        self.name, self.type = name, type
        self.default_value, self.kwarg_only = default, kwarg_only
        self._has_default = has_default

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    def __repr__(self) -> str:
        return f"Argument({self.name}: {self.type})"


class Schema(str):
    """A function's schema: its text, with name, arguments and results."""

    name: str
    overload_name: str
    arguments: list[Argument]
    returns: list[Argument]

    def __new__(cls, text: str, parts: Any) -> "Schema":
        made = super().__new__(cls, text)
        made.name, arguments, returns = parts
        made.overload_name = ""
        made.arguments = [Argument(name, type, default, has, alone) for name, type, has, default, alone in arguments]
        made.returns = [Argument(name, type) for name, type in returns]
        return made

    def __reduce__(self) -> Any:
        return str, (str(self),)
