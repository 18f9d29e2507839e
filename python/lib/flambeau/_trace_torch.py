"""What a trace writes down of PyTorch's own functions, which it hears of by a `TorchFunctionMode`."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types
import warnings
from typing import Any, Callable, Iterator

from . import _flambeau
from ._kinds import is_torch_object
from ._sizes import TracerWarning, plain, remembered, warn_of_value
from ._trace_text import Trace, Writer, leaves

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
    "tolist": "list", "numpy": "NumPy array", "__array__": "NumPy array", "__contains__": "boolean", "__complex__": "complex",
}  # fmt: skip
_CONSTANTS = (
    "torch.{} results are registered as constants in the trace. You can safely ignore this warning if you use this function to "
    "create tensors out of constant variables that would be the same every time you call this function. In any other case, this "
    "might cause the trace to be incorrect."
)
_WARNINGS = {
    "__iter__": "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't change the "
    "number of iterations executed (and might lead to errors or silently give incorrect results).",
    "__len__": "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be tensor.shape[0]. "
    "Passing a tensor of different shape might lead to errors or silently give incorrect results.",
    "tensor": _CONSTANTS.format("tensor"),
}
# What means something else in TorchScript.
_OTHERWISE = {"__rfloordiv__", "type"}
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
            if trace.depth:
                return func(*plain(args), **plain(kwargs))
            body = _body(func)
            if body is not None:
                # What PyTorch wrote in Python is gone through.
                with self:
                    return body(*args, **kwargs)
            return _noted(torch, trace, func, args, kwargs)

    return Mode()


_patched: dict[str, dict[str, Any]] = {}


def _body(func: Any) -> Callable[..., Any] | None:
    """A function of `torch.nn.functional` that does not ask whether a mode wants to know of it: its calls are seen instead."""
    if type(func) is not types.FunctionType or func.__module__ not in ("torch.nn.functional", "torch._jit_internal"):
        return None
    if func.__globals__.get("has_torch_function") is None and func.__closure__ is None:
        return None
    home = func.__globals__
    names = _patched.setdefault(home["__name__"], {})
    if len(names) < len(home):
        names.update(home)
        names.update({name: _never for name in home if name.startswith("has_torch_function")})
    # What decides by a flag between two functions has both in its closure.
    cells = (cell.cell_contents for cell in func.__closure__ or ())
    closure = tuple(types.CellType(_body(held) or held) for held in cells) if func.__closure__ else None
    made = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__, closure)
    made.__kwdefaults__ = func.__kwdefaults__
    return made


def _never(*_: Any) -> bool:
    return False


def _noted(torch: Any, trace: Trace, func: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function and writes the call down; gives its result, sizes as numbers that remember where they are from."""
    name = getattr(func, "__name__", "")
    if name in _VALUES:
        result = func(*plain(args), **plain(kwargs))
        warn_of_value(_VALUES[name])
        return result
    # `for row in x` calls `unbind` itself.
    caller = sys._getframe(2).f_code
    asked = "__iter__" if name == "unbind" and caller is torch.Tensor.__iter__.__code__ else name
    if asked in _WARNINGS:
        warnings.warn(_WARNINGS[asked], TracerWarning, stacklevel=4 if asked == "__iter__" else 3)
    line = _line(torch, trace, func, name, args, kwargs)
    if line is not None and (name in _OTHERWISE or not _compiles(line)):
        return _noted_by_ops(torch, trace, func, args, kwargs)
    result = func(*plain(args), **plain(kwargs))
    if name == "size" or (name == "__get__" and _attribute(func) == "shape"):
        if isinstance(result, int):
            return trace.size(args[0], plain(args[1] if len(args) > 1 else kwargs["dim"]), result)
        return torch.Size(trace.sizes(args[0], tuple(result)))
    if name in ("numel", "nelement"):
        return remembered(result, f"{trace.name(args[0])}.numel()", trace, trace.frame)
    if name == "requires_grad_":
        trace.bind(result, trace.text(args[0]))
    elif line is not None:
        text = line(trace)
        if name == "__setitem__":
            trace.line(text)
        else:
            trace.result(text, list(result) if name == "unbind" else result)
    return result


def _attribute(func: Any) -> str:
    """The attribute that a getter gives."""
    return getattr(getattr(func, "__self__", None), "__name__", "")


Line = Callable[[Any], str]


def _line(torch: Any, trace: Trace, func: Any, name: str, args: Any, kwargs: Any) -> Line | None:
    """What writes a call with the names of a trace; None for what a trace takes as it is."""
    if name == "__get__" and _attribute(func) in _TENSOR_PROPERTIES:
        return lambda trace: f"{trace.text(args[0])}.{_attribute(func)}"
    if name in _PLAIN or name in ("size", "numel", "nelement"):
        return None
    if name == "__getitem__":
        return lambda trace: f"{trace.text(args[0])}[{trace.index(args[1])}]"
    if name == "__setitem__":
        return lambda trace: f"{trace.text(args[0])}[{trace.index(args[1])}] = {trace.text(args[2])}"
    if name == "unbind":
        return lambda trace: f"{trace.text(args[0])}.unbind({', '.join(trace.text(a) for a in args[1:])})"
    return _operator_line(name, args) or _call_line(torch, trace, func, name, args, kwargs)


def _operator_line(name: str, args: Any) -> Line | None:
    """`x + y`, `2 - x`, `x += y`, `-x`"""
    if not name.startswith("__"):
        return None
    short = name.strip("_")
    if short in _UNARY:
        return lambda trace: f"{trace.text(args[0])}.{_UNARY[short]}()"
    if short in _OPERATORS:
        return lambda trace: f"{trace.text(args[0])} {_OPERATORS[short]} {trace.text(args[1])}"
    if short[:1] == "r" and short[1:] in _OPERATORS:
        return lambda trace: f"{trace.text(args[1])} {_OPERATORS[short[1:]]} {trace.text(args[0])}"
    if short[:1] == "i" and short[1:] in _OPERATORS:
        method = _IN_PLACE.get(short[1:], short[1:] + "_")
        return lambda trace: f"{trace.text(args[0])}.{method}({trace.text(args[1])})"
    return None


def _call_line(torch: Any, trace: Trace, func: Any, name: str, args: Any, kwargs: Any) -> Line:
    given = {k: v for k, v in kwargs.items() if k != "generator"}

    def parts(trace: Any, args: Any) -> str:
        return ", ".join([*map(trace.text, args), *(f"{k}={trace.text(v)}" for k, v in given.items())])

    if getattr(torch.Tensor, name, None) is func or type(func).__name__ == "method_descriptor":
        return lambda trace: f"{trace.text(args[0])}.{name}({parts(trace, args[1:])})"
    path = _operator_path(torch, trace, func) or _path_of(torch, func, name)
    if path is None:
        raise RuntimeError(f"a trace cannot write down {func}")
    return lambda trace: f"{path}({parts(trace, args)})"


class _Probe(Writer):
    """Writes a call with parameters in place of what the trace knows, to see whether it compiles."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.has_objects = False

    def name(self, value: Any) -> str:
        return self.names.setdefault(id(value), f"a{len(self.names)}")

    def number(self, value: Any) -> str:
        return repr(plain(value))

    def constant(self, value: Any) -> str:
        return self.name(value)

    def object(self, value: Any) -> str | None:
        self.has_objects = self.has_objects or is_torch_object(value)
        return self.name(value) if is_torch_object(value) else None


_compiled: dict[str, bool] = {}


def _compiles(line: Line) -> bool:
    """Whether TorchScript takes a call as written. Operators by their names it does."""
    probe = _Probe()
    try:
        text = line(probe)
    except RuntimeError:
        return False
    if probe.has_objects or text.startswith("operator_"):
        return True
    source = f"def op({', '.join(f'{name}: Tensor' for name in probe.names.values())}):\n    {text}\n"
    if source not in _compiled:
        if len(_compiled) > 10_000:
            _compiled.clear()
        try:
            _flambeau.load_bytes(source.encode(), "<trace>")
            _compiled[source] = True
        except RuntimeError:
            _compiled[source] = False
    return _compiled[source]


def _op_text(torch: Any, trace: Trace, op: Any, args: Any, kwargs: Any) -> str:
    """The call of an operator, with tensors of numbers where it takes tensors."""
    by_name = {argument.name: argument.type for argument in op._schema.arguments}

    def text(value: Any, kind: Any) -> str:
        is_tensor = isinstance(value, (int, float, complex)) and kind.kind() == "TensorType"
        return f"torch.tensor({trace.text(value)})" if is_tensor else trace.text(value)

    parts = [text(value, argument.type) for value, argument in zip(args, op._schema.arguments)]
    parts += [f"{name}={text(value, by_name[name])}" for name, value in kwargs.items() if name != "generator"]
    return f"{_operator_path(torch, trace, op)}({', '.join(parts)})"


def _noted_by_ops(torch: Any, trace: Trace, func: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function that TorchScript does not take as written, and writes down the operators that it runs."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            result = op(*args, **kwargs)
            if op._schema.name == "aten::_local_scalar_dense":
                warn_of_value("number")
            else:
                trace.result(_op_text(torch, trace, op, args, kwargs), result)
            return result

    with Mode():
        result = func(*plain(args), **plain(kwargs))
    for tensor in leaves(result):
        if isinstance(tensor, torch.Tensor) and not trace.knows(tensor):
            raise RuntimeError(f"a trace cannot write down {func}: no operator says how its result is made")
    return result


def _operator_path(torch: Any, trace: Trace, func: Any) -> str | None:
    """What a line calls for `torch.ops.aten.relu.default` and similar functions: an op by its name, or PyTorch's operator itself."""
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
    if getattr(torch._C._nn, name, None) is func and _flambeau.known_op(f"aten::{name}"):
        # Its arguments are the operator's, not those of the function in Python that has its name.
        return f"ops.aten.{name}"
    if hasattr(functional, name):
        return f"torch.nn.functional.{name}"
    if hasattr(torch, name):
        return f"torch.{name}"
    for prefix in ("linalg_", "fft_", "special_"):
        if name.startswith(prefix):
            return f"torch.{prefix[:-1]}.{name.removeprefix(prefix)}"
    is_of_module = getattr(func, "__module__", "") is not None
    return f"ops.aten.{name}" if is_of_module and _flambeau.known_op(f"aten::{name}") else None
