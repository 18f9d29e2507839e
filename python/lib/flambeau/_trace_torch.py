"""What a trace writes down of PyTorch's own functions, which it hears of by a `TorchFunctionMode`."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator

from . import _flambeau
from ._sizes import plain, remembered, warn_of_value

if TYPE_CHECKING:
    from ._trace_text import Trace

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "floordiv": "//", "mod": "%", "matmul": "@", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip
_UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not", "pos": "positive"}
_IN_PLACE = {"add": "add_", "sub": "sub_", "mul": "mul_", "truediv": "div_", "div": "div_"}
# What makes values of Python of tensors.
_VALUES = {
    "__bool__": "boolean", "__int__": "integer", "__float__": "float", "__index__": "index", "item": "number",
    "tolist": "list", "numpy": "NumPy array", "__array__": "NumPy array", "__contains__": "boolean",
}  # fmt: skip
# What asks for a property that a trace takes as it is.
_PLAIN = {
    "__get__", "dim", "stride", "is_floating_point", "is_complex", "is_contiguous", "element_size", "__set__", "__len__",
    "data_ptr", "storage_offset", "ndimension", "get_device", "__repr__", "__format__", "__hash__", "__dlpack__",
    "_set_grad_enabled", "set_grad_enabled", "is_grad_enabled",
    "__dlpack_device__", "requires_grad_", "_version", "is_same_size", "__deepcopy__", "has_torch_function", "is_tensor",
}  # fmt: skip
_TENSOR_PROPERTIES = ("T", "H", "mT", "mH", "real", "imag", "data")


_says_lock = threading.Lock()
_says = 0


@contextlib.contextmanager
def torch_says_tracing(is_tracing: Callable[[], bool]) -> Iterator[None]:
    """A context in which `torch.jit.is_tracing()` is true for threads that write a trace, and after which the grad mode is what
    it was, though the traced function may have raised between two changes of it."""
    global _says
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "jit"):
        yield
        return
    former = torch.is_grad_enabled()
    with _says_lock:
        if _says == 0:
            own = torch.jit.is_tracing

            @functools.wraps(own)
            def says() -> bool:
                return is_tracing() or own()

            torch.jit.is_tracing = says
        _says += 1
    try:
        yield
    finally:
        torch._C._set_grad_enabled(former)
        with _says_lock:
            _says -= 1
            if _says == 0:
                torch.jit.is_tracing = torch.jit.is_tracing.__wrapped__


def torch_mode(trace: Trace) -> Any:
    """A context in which the trace hears of PyTorch's functions; nothing where PyTorch is not there."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "overrides"):
        return contextlib.nullcontext()

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            result = func(*plain(args), **plain(kwargs))
            return _note(torch, trace, func, args, kwargs, result) if trace.depth == 0 else result

    return Mode()


def _note(torch: Any, trace: Trace, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """Writes a call down; gives its result, sizes as numbers that remember where they are from."""
    name = getattr(func, "__name__", "")
    if name == "size" or (name == "__get__" and _attribute(func) == "shape"):
        if isinstance(result, int):
            return trace.size(args[0], plain(args[1] if len(args) > 1 else kwargs["dim"]), result)
        return torch.Size(trace.sizes(args[0], tuple(result)))
    if name in ("numel", "nelement"):
        return remembered(result, f"{trace.name(args[0])}.numel()", trace, trace.frame)
    if name in _VALUES:
        warn_of_value(_VALUES[name])
    elif name in _PLAIN:
        _note_property(trace, name, _attribute(func), args, result)
    elif not (_note_access(trace, name, args, result) or _note_operator(trace, name, args, result)):
        _note_call(torch, trace, func, name, args, kwargs, result)
    return result


def _attribute(func: Any) -> str:
    """The attribute that a getter gives."""
    return getattr(getattr(func, "__self__", None), "__name__", "")


def _note_property(trace: Trace, name: str, attribute: str, args: Any, result: Any) -> None:
    if name == "__get__" and attribute in _TENSOR_PROPERTIES:
        trace.result(f"{trace.text(args[0])}.{attribute}", result)
    elif name == "requires_grad_":
        trace.bind(result, trace.text(args[0]))


def _note_access(trace: Trace, name: str, args: Any, result: Any) -> bool:
    """Indices and what goes over a tensor."""
    if name == "__getitem__":
        trace.result(f"{trace.text(args[0])}[{trace.index(args[1])}]", result)
    elif name == "__setitem__":
        trace.line(f"{trace.text(args[0])}[{trace.index(args[1])}] = {trace.text(args[2])}")
    elif name == "unbind":
        trace.result(f"{trace.text(args[0])}.unbind({', '.join(trace.text(a) for a in args[1:])})", list(result))
    else:
        return False
    return True


def _note_operator(trace: Trace, name: str, args: Any, result: Any) -> bool:
    """`x + y`, `2 - x`, `x += y`, `-x`"""
    if not name.startswith("__"):
        return False
    short = name.strip("_")
    if short in _UNARY:
        trace.result(f"{trace.text(args[0])}.{_UNARY[short]}()", result)
    elif short in _OPERATORS:
        trace.result(f"{trace.text(args[0])} {_OPERATORS[short]} {trace.text(args[1])}", result)
    elif short[:1] == "r" and short[1:] in _OPERATORS:
        trace.result(f"{trace.text(args[1])} {_OPERATORS[short[1:]]} {trace.text(args[0])}", result)
    elif short[:1] == "i" and short[1:] in _OPERATORS:
        method = _IN_PLACE.get(short[1:], short[1:] + "_")
        trace.result(f"{trace.text(args[0])}.{method}({trace.text(args[1])})", result)
    else:
        return False
    return True


def _note_call(torch: Any, trace: Trace, func: Any, name: str, args: Any, kwargs: Any, result: Any) -> None:
    parts = [trace.text(a) for a in args]
    named = [f"{k}={trace.text(v)}" for k, v in kwargs.items() if k != "generator"]
    if getattr(torch.Tensor, name, None) is func or type(func).__name__ == "method_descriptor":
        trace.result(f"{parts[0]}.{name}({', '.join([*parts[1:], *named])})", result)
        return
    path = _operator_path(torch, trace, func) or _path_of(torch, func, name)
    if path is None:
        raise RuntimeError(f"a trace cannot write down {func}")
    trace.result(f"{path}({', '.join([*parts, *named])})", result)


def _operator_path(torch: Any, trace: Trace, func: Any) -> str | None:
    """What a line calls for `torch.ops.aten.relu.default` and its kin: an op by its name, or PyTorch's operator itself."""
    if isinstance(func, torch._ops.OpOverload):
        found = func._schema.name
    elif isinstance(func, torch._ops.OpOverloadPacket):
        found = func._qualified_op_name
    else:
        return None
    if _flambeau.known_op(found):
        return f"ops.{found.replace('::', '.')}"
    name = f"operator_{len(trace.kept)}"
    trace.kept.append(func)
    trace.scope.names[name] = func
    return name


def _path_of(torch: Any, func: Any, name: str) -> str | None:
    """Where a function of PyTorch is found by name."""
    functional = torch.nn.functional
    places = (
        ("torch.nn.functional", functional), ("torch", torch), ("torch.linalg", torch.linalg), ("torch.fft", torch.fft),
        ("torch.special", torch.special),
    )  # fmt: skip
    for path, where in places:
        if getattr(where, name, None) is func:
            return f"{path}.{name}"
    if name.startswith("boolean_dispatch") or name == "fn":
        for candidate in ("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d"):
            if getattr(functional, candidate, None) is func:
                return f"torch.nn.functional.{candidate}"
    if hasattr(functional, name):
        return f"torch.nn.functional.{name}"
    if hasattr(torch, name):
        return f"torch.{name}"
    for prefix in ("linalg_", "fft_", "special_"):
        if name.startswith(prefix):
            return f"torch.{prefix[:-1]}.{name.removeprefix(prefix)}"
    is_of_module = getattr(func, "__module__", "") is not None
    return f"ops.aten.{name}" if is_of_module and _flambeau.known_op(f"aten::{name}") else None
