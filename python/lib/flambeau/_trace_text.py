"""The lines of a trace in the making.

A trace has a frame for each traced module whose call is being written, the outermost one for what is traced. A line names
tensors; what a frame uses of the frames around it becomes a parameter of its method, and what others use of a frame that has
ended becomes a result of it.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

from . import _flambeau
from ._dtypes import DTYPES
from ._flambeau import Tensor
from ._kinds import is_tensor, is_torch_object
from ._scopes import Scope
from ._sizes import TracedFloat, TracedInt, plain, remembered


class Constant:
    """A tensor that a trace took from outside."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class Writer:
    """Writes values as expressions, by the names that it has for tensors."""

    def name(self, value: Any) -> str:
        """The name of a tensor."""
        raise NotImplementedError

    def number(self, value: Any) -> str:
        """A number that was computed from sizes."""
        raise NotImplementedError

    def constant(self, value: Any) -> str:
        """An array from outside."""
        raise NotImplementedError

    def object(self, value: Any) -> str | None:
        """An object of a class that PyTorch has in C++."""
        raise NotImplementedError

    def text(self, value: Any) -> str:
        """A value as an expression."""
        if is_tensor(value):
            return self.name(value)
        if isinstance(value, (TracedInt, TracedFloat)):
            return self.number(value)
        if type(value).__module__ == "numpy":
            return self.constant(value) if type(value).__name__ == "ndarray" else self.text(value.item())
        if value is None or isinstance(value, (bool, int)):
            return repr(value)
        if isinstance(value, float):
            return f"float({str(value)!r})" if value != value or value in (float("inf"), float("-inf")) else repr(value)
        if isinstance(value, complex):
            return f"complex({self.text(value.real)}, {self.text(value.imag)})"
        if isinstance(value, str):
            return repr(value)
        if isinstance(value, slice):
            parts = ["" if part is None else self.text(part) for part in (value.start, value.stop)]
            return ":".join(parts if value.step is None else [*parts, self.text(value.step)])
        if value is Ellipsis:
            return "..."
        if isinstance(value, (list, tuple, range)):
            return f"[{', '.join(self.text(v) for v in value)}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.text(v)}" for k, v in value.items()) + "}"
        name = type(value).__name__
        if name == "dtype":
            return "torch." + str(value).removeprefix("torch.")
        if name == "device":
            return f"torch.device({str(value)!r})"
        if name in ("memory_format", "layout"):
            return str(value)
        found = self.object(value)
        if found is None:
            raise RuntimeError(f"a trace cannot write down a value of type {name}")
        return found

    def index(self, value: Any) -> str:
        """What stands between the brackets of an index."""
        return ", ".join(map(self._index, value)) if isinstance(value, tuple) else self._index(value)

    def _index(self, value: Any) -> str:
        if isinstance(value, list) and value and all(isinstance(item, bool) for item in value):
            # Which are taken, not their numbers.
            return self.constant(_flambeau.tensor_from_bytes(bytes(value), DTYPES["bool"], [len(value)]))
        return self.text(value)


class Frame:
    """The lines of one method."""

    def __init__(self, module: Any = None, outer: Frame | None = None) -> None:
        self.module, self.outer = module, outer
        # Lines are texts, or calls whose results may become more.
        self.lines: list[Any] = []
        self.names: dict[int, str] = {}
        # Parameters by name: their types, and the values that the caller gives.
        self.parameters: dict[str, str] = {}
        self.given: list[str] = []
        self.wanted: dict[int, str] = {}
        self.results: list[str] = []
        self.call: Call | None = None

    def computed(self, value: Any) -> bool:
        """Whether the frame has a name for a tensor that was not given to it."""
        name = self.names.get(id(value))
        return name is not None and name not in self.parameters

    def parameter(self, wanted: str, annotation: str, given: str) -> str:
        """A parameter for a value of the frame around this one, which calls it `given`."""
        name, count = wanted, 0
        while name in self.parameters:
            count += 1
            name = f"{wanted}_{count}"
        self.parameters[name] = annotation
        self.given.append(given)
        return name

    def text(self, head: str, result: str | None = None) -> str:
        """The method."""
        results = ", ".join(self.results)
        result = result if result is not None else results if len(self.results) == 1 else f"({results})" if results else "None"
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"{head}\n{body}    return {result}\n"


class Call:
    """The line that calls the method of a frame."""

    def __init__(self, frame: Frame, method: str) -> None:
        self.frame, self.method = frame, method
        self.targets: list[str] = []

    def __str__(self) -> str:
        call = f"{self.method}({', '.join(self.frame.given)})"
        return f"{', '.join(self.targets)} = {call}" if self.targets else call


class Trace(Writer):
    """What is written of one function or method."""

    def __init__(self, module: Any = None) -> None:
        self.frame = Frame(module)
        self.ended: list[Frame] = []
        # Methods of modules that were called: the frame, the module's type, the method's name.
        self.methods: list[tuple[Frame, Any, str]] = []
        self.kept: list[Any] = []
        self.constants: dict[int, str] = {}
        self.scope = Scope()
        self.count = 0
        self.depth = 0

    # --- names ---

    def bind(self, value: Any, name: str) -> None:
        """Gives a tensor a name."""
        self.kept.append(value)
        self.frame.names[id(value)] = name

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"v{self.count}"

    def name(self, value: Any) -> str:
        """The name of a tensor in the frame that is written."""
        return self._known(self.frame, value) or self._of_ended(value) or self.constant(value)

    def _known(self, frame: Frame | None, value: Any) -> str | None:
        """The name of a tensor that a frame or one around it knows."""
        if frame is None:
            return None
        found = frame.names.get(id(value))
        if found is None:
            given = self._known(frame.outer, value)
            if given is None:
                return None
            found = frame.parameter(frame.wanted.get(id(value), "captured"), "Tensor", given)
            frame.names[id(value)] = found
        return found

    def _of_ended(self, value: Any) -> str | None:
        """The name of a tensor that a module computed and kept: it becomes one more result of its method."""
        frame = next((frame for frame in self.ended if frame.computed(value)), None)
        if frame is None or frame.call is None or frame.outer is None:
            return None
        while frame.call is not None and frame.outer is not None:
            frame.results.append(frame.names[id(value)])
            target = self.fresh()
            frame.call.targets.append(target)
            frame.outer.names[id(value)] = target
            frame = frame.outer
            if self._is_open(frame):
                break
        return self._known(self.frame, value)

    def _is_open(self, frame: Frame) -> bool:
        found: Frame | None = self.frame
        while found is not None and found is not frame:
            found = found.outer
        return found is frame

    def constant(self, value: Any) -> str:
        """A tensor from outside as a constant."""
        name = self.constants.get(id(value))
        if name is None:
            if getattr(value, "requires_grad", False):
                raise RuntimeError(
                    "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching "
                    "the gradient"
                )
            name = f"constant_{len(self.kept)}"
            with self.paused():
                detached = value.detach() if hasattr(value, "detach") else value
                own = detached if isinstance(detached, Tensor) else _flambeau.from_array(detached)
            self.scope.names[name] = Constant(own)
            self.constants[id(value)] = name
            self.kept.append(value)
        return name

    def number(self, value: Any) -> str:
        """A number that was computed from sizes, as an expression of the frame that is written."""
        text = self._number(self.frame, value) if value.trace is self else None
        return repr(plain(value)) if text is None else text

    def _number(self, frame: Frame | None, value: Any) -> str | None:
        if frame is None or frame is value.frame:
            return None if frame is None else value.text
        found = frame.names.get(id(value))
        if found is None:
            given = self._number(frame.outer, value)
            if given is None:
                return None
            found = frame.parameter("size", "int" if isinstance(value, TracedInt) else "float", given)
            frame.names[id(value)] = found
            self.kept.append(value)
        return found

    # --- frames ---

    def enter(self, module: Any) -> None:
        """Begins the method of a module that is called."""
        self.frame = Frame(module, self.frame)

    def leave(self, method: str, result: Any) -> None:
        """Ends it, with what the module gave: tensors in lists, tuples, dictionaries."""
        frame, outer = self.frame, self.frame.outer
        if outer is None:
            raise RuntimeError("a module ends that has not begun")
        tensors = list(filter(is_tensor, leaves(result)))
        frame.results = [self.name(tensor) for tensor in tensors]
        frame.call = call = Call(frame, method)
        self.ended.append(frame)
        self.frame = outer
        outer.lines.append(call)
        for tensor in tensors:
            call.targets.append(self.fresh())
            self.bind(tensor, call.targets[-1])

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A context in which nothing is written."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    # --- expressions ---

    def sizes(self, value: Any, sizes: tuple[int, ...]) -> list[Any]:
        """The sizes of a tensor as numbers that remember where they are from."""
        return [self.size(value, dim, size) for dim, size in enumerate(sizes)]

    def size(self, value: Any, dim: int, size: int) -> Any:
        """One size of a tensor."""
        return remembered(int(size), f"{self.name(value)}.size({dim})", self, self.frame)

    def object(self, value: Any) -> str | None:
        return self._known(self.frame, value) if is_torch_object(value) else None

    def knows(self, value: Any) -> bool:
        """Whether a tensor has a name."""
        return self._known(self.frame, value) is not None

    # --- lines ---

    def line(self, text: str) -> None:
        """Adds a line, within the context that casts where PyTorch is in one."""
        cast = _autocast()
        self.frame.lines.append(text if cast is None else f"with {cast}:\n        {text}")

    def result(self, expression: str, value: Any) -> None:
        """Adds a line whose result is a value."""
        if is_tensor(value):
            name = self.fresh()
            self.line(f"{name} = {expression}")
            self.bind(value, name)
        elif isinstance(value, (list, tuple)) and value and all(is_tensor(v) or v is None for v in value):
            if isinstance(value, list) or len(value) == 1 or type(value).__name__ in ("Size",):
                name = self.fresh()
                self.line(f"{name} = {expression}")
                for n, item in enumerate(value):
                    if item is not None:
                        self.bind(item, f"{name}[{n}]")
            else:
                names = [self.fresh() for _ in value]
                self.line(f"{', '.join(names)} = {expression}")
                for name, item in zip(names, value):
                    if item is not None:
                        self.bind(item, name)
        elif value is None:
            self.line(expression)

    def structure(self, value: Any) -> str:
        """What the function gives, as an expression."""
        if is_tensor(value):
            return self.name(value)
        if isinstance(value, tuple):
            return f"({', '.join(map(self.structure, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.structure, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.structure(v)}" for k, v in value.items()) + "}"
        if isinstance(value, (TracedInt, TracedFloat)) and value.trace is self:
            # A trace gives sizes as tensors without dimensions.
            return f"torch.tensor({self.number(value)})"
        if value is None or isinstance(value, (int, float, bool)):
            raise RuntimeError(
                f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples "
                "of Tensors can be traced"
            )
        raise RuntimeError(
            f"Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions: {type(value)}"
        )


def _autocast() -> str | None:
    """PyTorch's context that casts on the cpu, as text; None outside of one."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_autocast_dtype") or not torch.is_autocast_enabled("cpu"):
        return None
    return f"torch.autocast('cpu', dtype={torch.get_autocast_dtype('cpu')})"


def leaves(value: Any) -> Iterator[Any]:
    """What lists, tuples and dictionaries hold, in order."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value
