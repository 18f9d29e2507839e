"""`flambeau.trace`: what a function of Python does to tensors, written down as TorchScript and compiled.

Each operation becomes a line of text, with tensors by name; calls of scripted functions stay calls, with their control flow.
Tensors of ours report their operations themselves, those of PyTorch through a `TorchFunctionMode`.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import traceback
import warnings
from typing import Any, Callable, Iterator

from . import _flambeau
from ._flambeau import Tensor
from ._modules import RecursiveScriptModule, ScriptFunction, ScriptModule
from ._script import Answers, ModuleType, Scope, build_object, is_module, is_tensor, scope_number, unique_name


class TracerWarning(Warning):
    """A value of a tensor steers Python where a trace cannot follow."""


class TracingCheckError(Exception):
    """A trace that does not do what the function does."""

    def __init__(self, graph_diff_error: Any, tensor_compare_error: Any, extra_msg: str | None = None) -> None:
        self.message = "Tracing failed sanity checks!\n" + (extra_msg or "") + (tensor_compare_error or "")
        super().__init__(self.message)


class TopLevelTracedModule(RecursiveScriptModule):
    """A module that `trace` made."""


class Trace:
    """The lines of a trace in the making."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: list[str] = []
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []
        self.scope = Scope()
        self.count = 0
        self.depth = 0

    def bind(self, value: Any, name: str) -> None:
        """Gives a tensor a name."""
        self.kept.append(value)
        self.names[id(value)] = name

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        """A tensor from outside as a constant."""
        name = f"constant_{len(self.kept)}"
        with _paused(self):
            detached = value.detach() if hasattr(value, "detach") else value
            own = detached if isinstance(detached, Tensor) else _flambeau.from_array(detached)
        self.scope.names[name] = _Constant(own)
        self.bind(value, name)
        return name

    def text(self, value: Any) -> str:
        """A value as an expression."""
        if is_tensor(value):
            return self.names.get(id(value)) or self.constant(value)
        if value is None or isinstance(value, (bool, int)):
            return repr(value)
        if isinstance(value, float):
            return f"float({str(value)!r})" if value != value or value in (float("inf"), float("-inf")) else repr(value)
        if isinstance(value, str):
            return repr(value)
        if isinstance(value, slice):
            parts = ["" if part is None else self.text(part) for part in (value.start, value.stop)]
            return ":".join(parts if value.step is None else [*parts, self.text(value.step)])
        if value is Ellipsis:
            return "..."
        if isinstance(value, (list, tuple)):
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
        raise RuntimeError(f"a trace cannot write down a value of type {name}")

    def index(self, value: Any) -> str:
        """What stands between the brackets of an index."""
        return ", ".join(map(self.text, value)) if isinstance(value, tuple) else self.text(value)

    def line(self, text: str) -> None:
        """Adds a line."""
        self.lines.append(text)
        self.places.append(_place())

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
            return self.names.get(id(value)) or self.constant(value)
        if isinstance(value, tuple):
            return f"({', '.join(map(self.structure, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.structure, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.structure(v)}" for k, v in value.items()) + "}"
        if value is None or isinstance(value, (int, float, bool)):
            raise RuntimeError(
                f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples "
                "of Tensors can be traced"
            )
        raise RuntimeError(
            f"Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions: {type(value)}"
        )


class _Constant:
    """A tensor that a trace took from outside."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


_local = threading.local()
_active = 0
_lock = threading.Lock()


def _current() -> Trace | None:
    return getattr(_local, "trace", None)


def is_active() -> bool:
    """Whether this thread writes a trace."""
    found = _current()
    return found is not None and found.depth == 0


def is_tracing() -> bool:
    """Whether a trace is being written."""
    return _current() is not None


def _place() -> str:
    for frame in reversed(traceback.extract_stack(limit=24)):
        if "/flambeau/" not in frame.filename and "/torch/" not in frame.filename and not frame.filename.startswith("<"):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def note(expression: str, gives: bool, inputs: list[Any], result: Any) -> None:
    """Writes down an operation on tensors of ours."""
    trace = _current()
    if trace is None or trace.depth:
        return
    if re.search(r"\.(item|tolist|is_nonzero)\(", expression):
        _warn_of_value("item")
        return
    text = re.sub(r"\ba(\d+)\b", lambda m: trace.text(inputs[int(m.group(1))]), expression)
    if gives:
        trace.result(text, result)
    else:
        trace.line(text)


def _warn_of_value(what: str) -> None:
    warnings.warn(
        f"Converting a tensor to a Python value ({what}) might cause the trace to be incorrect. We can't record the data flow "
        "of Python values, so this value will be treated as a constant in the future. This means that the trace might not "
        "generalize to other inputs!",
        TracerWarning,
        stacklevel=4,
    )


def call_scripted(function: ScriptFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a scripted function and writes the call down."""
    trace = _current()
    if trace is None:
        return function._c.call(function._name, args, kwargs or None, function._kind)
    name = f"function_{len(trace.kept)}"
    trace.kept.append(function)
    trace.scope.names[name] = function
    with _paused(trace):
        result = function._c.call(function._name, args, kwargs or None, function._kind)
    parts = [trace.text(a) for a in args] + [f"{k}={trace.text(v)}" for k, v in kwargs.items()]
    trace.result(f"{name}({', '.join(parts)})", result)
    return result


def call_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a method of a scripted module and writes the call down, where the module is part of what is traced."""
    trace = _current()
    path = trace.names.get(method._c.id()) if trace is not None else None
    if trace is None or path is None:
        if trace is not None:
            raise RuntimeError("a scripted module is called in a trace that is not a submodule of the traced module")
        return method._c.call(method._name, args, kwargs or None, method._kind)
    with _paused(trace):
        result = method._c.call(method._name, args, kwargs or None, method._kind)
    parts = [trace.text(a) for a in args] + [f"{k}={trace.text(v)}" for k, v in kwargs.items()]
    trace.result(f"{path}.{method._name}({', '.join(parts)})", result)
    return result


@contextlib.contextmanager
def _paused(trace: Trace) -> Iterator[None]:
    trace.depth += 1
    try:
        yield
    finally:
        trace.depth -= 1


@contextlib.contextmanager
def _writing(trace: Trace) -> Iterator[None]:
    global _active
    if _current() is not None:
        raise RuntimeError("a trace is being written already")
    _local.trace = trace
    with _lock:
        _active += 1
        _flambeau.set_tracing(True)
    try:
        with _torch_mode(trace):
            yield
    finally:
        _local.trace = None
        with _lock:
            _active -= 1
            _flambeau.set_tracing(_active > 0)


_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "floordiv": "//", "mod": "%", "matmul": "@", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip
_VALUES = {"__bool__", "__int__", "__float__", "__index__", "__len__", "item", "tolist", "numpy", "__array__", "__contains__"}
_PLAIN = {
    "__get__", "size", "dim", "stride", "numel", "is_floating_point", "is_complex", "is_contiguous", "element_size", "__set__",
    "data_ptr", "storage_offset", "nelement", "ndimension", "get_device", "__repr__", "__format__", "__hash__", "__dlpack__",
    "__dlpack_device__", "requires_grad_", "_version", "is_same_size", "__deepcopy__", "has_torch_function", "is_tensor",
}  # fmt: skip


def _torch_mode(trace: Trace) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "overrides"):
        return contextlib.nullcontext()

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            if trace.depth == 0:
                _note_torch(torch, trace, func, args, kwargs, result)
            return result

    return Mode()


def _note_torch(torch: Any, trace: Trace, func: Any, args: Any, kwargs: Any, result: Any) -> None:
    name = getattr(func, "__name__", "")
    if name in _VALUES:
        if name not in ("__len__",):
            _warn_of_value(name)
        return
    if name in _PLAIN:
        attribute = getattr(getattr(func, "__self__", None), "__name__", "")
        if name == "__get__" and attribute in ("T", "H", "mT", "mH", "real", "imag", "data") and is_tensor(result):
            trace.result(f"{trace.text(args[0])}.{attribute}", result)
        elif name == "requires_grad_":
            trace.bind(result, trace.text(args[0]))
        return
    if name == "__getitem__":
        trace.result(f"{trace.text(args[0])}[{trace.index(args[1])}]", result)
        return
    if name == "__setitem__":
        trace.line(f"{trace.text(args[0])}[{trace.index(args[1])}] = {trace.text(args[2])}")
        return
    if name == "unbind" or name == "__iter__":
        trace.result(f"{trace.text(args[0])}.unbind({', '.join(trace.text(a) for a in args[1:])})", list(result) if name == "unbind" else None)
        if name == "unbind":
            return
    plain = name.strip("_")
    if name.startswith("__"):
        if name in ("__neg__", "__abs__", "__invert__", "__pos__"):
            method = {"neg": "neg", "abs": "abs", "invert": "bitwise_not", "pos": "positive"}[plain]
            trace.result(f"{trace.text(args[0])}.{method}()", result)
            return
        if plain in _OPERATORS:
            trace.result(f"{trace.text(args[0])} {_OPERATORS[plain]} {trace.text(args[1])}", result)
            return
        if plain[:1] == "r" and plain[1:] in _OPERATORS:
            trace.result(f"{trace.text(args[1])} {_OPERATORS[plain[1:]]} {trace.text(args[0])}", result)
            return
        if plain[:1] == "i" and plain[1:] in _OPERATORS:
            words = {"add": "add_", "sub": "sub_", "mul": "mul_", "truediv": "div_", "div": "div_"}
            trace.result(f"{trace.text(args[0])}.{words.get(plain[1:], plain[1:] + '_')}({trace.text(args[1])})", result)
            return
    parts = [trace.text(a) for a in args]
    named = [f"{k}={trace.text(v)}" for k, v in kwargs.items() if k != "generator"]
    if getattr(torch.Tensor, name, None) is func or type(func).__name__ == "method_descriptor":
        trace.result(f"{parts[0]}.{name}({', '.join([*parts[1:], *named])})", result)
        return
    path = _torch_path(torch, func, name)
    if path is None:
        raise RuntimeError(f"a trace cannot write down {func}")
    trace.result(f"{path}({', '.join([*parts, *named])})", result)


def _torch_path(torch: Any, func: Any, name: str) -> str | None:
    functional = torch.nn.functional
    for path, where in (("torch.nn.functional", functional), ("torch", torch), ("torch.linalg", torch.linalg), ("torch.fft", torch.fft), ("torch.special", torch.special)):
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
    module = getattr(func, "__module__", "") or ""
    short = name
    for prefix in ("linalg_", "fft_", "special_"):
        if name.startswith(prefix):
            return f"torch.{prefix[:-1]}.{name.removeprefix(prefix)}"
    return f"ops.aten.{short}" if _flambeau.known_op(f"aten::{short}") and module is not None else None


class _TracedType(ModuleType):
    """The class of a traced module: state as it is, one method from the trace."""

    def __init__(self, module: Any, root: bool = True) -> None:
        self.texts: list[Any] = []
        super().__init__(module)
        self.name = unique_name(type(module).__module__, type(module).__name__)

    def _collect(self) -> None:
        from ._script import number_of

        module = self.module
        for name, value in module._parameters.items():
            self.rows.append((name, "NoneType" if value is None else "Tensor"))
            self.parameters.append(name)
        for name, value in module._buffers.items():
            self.rows.append((name, "Optional[Tensor]" if value is None else "Tensor"))
            self.buffers.append(name)
        self.rows.append(("training", "bool"))
        for name, value in module._modules.items():
            if value is None:
                self.rows.append((name, "NoneType"))
                continue
            self.children[name] = value if isinstance(value, ScriptModule) else _TracedType(value)
            self.rows.append((name, f"__host__.h{number_of(self.children[name])}"))

    def _entries(self) -> list[Any]:
        return []

    def _items(self) -> tuple[str | None, list[Any]]:
        return None, []

    def meaning(self, answers: Answers) -> tuple[Any, ...]:
        what, text = super().meaning(answers)
        text["methods"] = self.texts
        return what, text

    def member(self, answers: Answers, name: str) -> tuple[Any, ...] | None:
        return None


def _tuple(inputs: Any) -> tuple[Any, ...]:
    if is_tensor(inputs) or isinstance(inputs, dict):
        return (inputs,)
    return tuple(inputs)


def _annotation(value: Any) -> str:
    if is_tensor(value):
        return "Tensor"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(_annotation, value))}]" if value else "Tuple[()]"
    if isinstance(value, list):
        return f"List[{_annotation(value[0])}]" if value else "List[Tensor]"
    if isinstance(value, dict):
        return f"Dict[str, {_annotation(next(iter(value.values())))}]"
    raise RuntimeError(
        f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
    )


def _bind(trace: Trace, name: str, value: Any) -> None:
    if is_tensor(value):
        trace.bind(value, name)
    elif isinstance(value, (list, tuple)):
        for n, item in enumerate(value):
            _bind(trace, f"{name}[{n}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _bind(trace, f"{name}[{key!r}]", item)


def _cloned(value: Any) -> Any:
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_cloned, value))
    if isinstance(value, dict):
        return {k: _cloned(v) for k, v in value.items()}
    return value


def _parameter_names(function: Any, count: int) -> list[str]:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return [f"argument_{n + 1}" for n in range(count)]
    names = [n for n in code.co_varnames[: code.co_argcount] if n != "self"]
    return [names[n] if n < len(names) else f"argument_{n + 1}" for n in range(count)]


class _Answers(Answers):
    def meaning(self, value: Any, name: str) -> tuple[Any, ...] | None:
        if isinstance(value, _Constant):
            return ("constant", value.tensor)
        return super().meaning(value, name)


def _record(trace: Trace, function: Callable[..., Any], inputs: tuple[Any, ...], names: list[str]) -> tuple[str, Any]:
    copies = tuple(map(_cloned, inputs))
    for name, value in zip(names, copies):
        _bind(trace, name, value)
    with _writing(trace):
        result = function(*copies)
    return trace.structure(result), result


def _text(trace: Trace, head: str, result: str) -> str:
    trace.scope.names.setdefault("torch", _Namespace("torch"))
    trace.scope.names.setdefault("ops", _Namespace("ops"))
    trace.scope.names.setdefault("Tensor", Tensor)
    body = "".join(f"    {line}\n" for line in trace.lines)
    return f"{head}\n{body}    return {result}\n"


class _Namespace:
    def __init__(self, path: str) -> None:
        self.__flambeau_path__ = path
        self.__name__ = path


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: Any = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """Runs a function or module on examples, and compiles what it did to tensors."""
    if isinstance(func, (ScriptFunction, ScriptModule)):
        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.", stacklevel=2
        )
        return func
    if example_inputs is None:
        if example_kwarg_inputs is None:
            raise RuntimeError("example_kwarg_inputs should be a dict" if example_kwarg_inputs is not None else "example_inputs is missing")
        inputs = tuple(example_kwarg_inputs.values())
    else:
        inputs = _tuple(example_inputs)
    if is_module(func):
        return trace_module(func, {"forward": inputs}, check_trace=check_trace, check_tolerance=check_tolerance, _names=list(example_kwarg_inputs or ()) or None)
    if hasattr(func, "__self__") and is_module(func.__self__):
        if func.__name__ == "forward":
            return trace_module(func.__self__, {"forward": inputs}, check_trace=check_trace)
        raise AttributeError("trace doesn't support compiling individual module's functions.\nPlease use trace_module")
    made = Trace()
    names = list(example_kwarg_inputs) if example_inputs is None else _parameter_names(func, len(inputs))
    result, value = _record(made, func, inputs, names)
    short = getattr(func, "__name__", "forward")
    short = short if short.isidentifier() else "forward"
    parameters = ", ".join(f"{n}: {_annotation(v)}" for n, v in zip(names, inputs))
    text = _text(made, f"def {short}({parameters}):", result)
    name = unique_name(getattr(func, "__module__", None) or "", short)
    answers = _Answers()
    where = (scope_number(made.scope), "<trace>", 1, text)
    core = _flambeau.compile(answers, [("function", (name, where))])
    torch = sys.modules.get("torch")
    uses_torch = torch is not None and any(isinstance(v, torch.Tensor) for v in _leaves(inputs))
    traced = ScriptFunction(core, name, "torch" if uses_torch else None, func if callable(func) and hasattr(func, "__name__") else None)
    if check_trace:
        for one in [inputs, *map(_tuple, check_inputs or [])]:
            _check(traced, func, one, check_tolerance)
    return traced


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def _check(traced: Callable[..., Any], func: Callable[..., Any], inputs: tuple[Any, ...], tolerance: float) -> None:
    """Compares the trace with the function, on copies of the inputs."""
    wanted = list(_leaves(func(*map(_cloned, inputs))))
    found = list(_leaves(traced(*map(_cloned, inputs))))
    for n, (want, have) in enumerate(zip(wanted, found)):
        if not is_tensor(want):
            continue
        want, have = want.detach(), have.detach()
        if tuple(want.shape) != tuple(have.shape):
            problem = f"shapes {tuple(have.shape)} and {tuple(want.shape)} differ"
        elif not want.dtype.is_floating_point:
            problem = None if bool((want == have).all()) else "values differ"
        else:
            near = (want.double() - have.double()).abs() <= tolerance + tolerance * want.double().abs()
            near = near | ((want != want) & (have != have)) | (want == have)
            problem = None if bool(near.all()) else "values differ"
        if problem:
            warnings.warn(
                f"Output nr {n + 1}. of the traced function does not match the corresponding output of the Python function. "
                f"Detailed error:\n{problem}",
                TracerWarning,
                stacklevel=3,
            )


def trace_module(
    mod: Any, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False, _store_inputs: bool = True, _names: Any = None,
) -> Any:  # fmt: skip
    """Traces methods of a module, each on its examples."""
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    kind = _TracedType(mod)
    for method, examples in inputs.items():
        examples = _tuple(examples)
        made = Trace()
        _bind_state(made, mod, "self")
        function = mod if method == "forward" else getattr(mod, method)
        names = _names or _parameter_names(getattr(type(mod), method, None), len(examples))
        result, _ = _record(made, function, examples, names)
        parameters = "".join(f", {n}: {_annotation(v)}" for n, v in zip(names, examples))
        text = _text(made, f"def {method}(self{parameters}):", result)
        kind.texts.append((scope_number(made.scope), "<trace>", 1, text))
    answers = _Answers()
    core = _flambeau.compile(answers, [kind.meaning(answers)])
    made_object = build_object(mod, kind, core, {})
    torch = sys.modules.get("torch")
    is_torch = torch is not None and isinstance(mod, torch.nn.Module)
    traced = TopLevelTracedModule(made_object, "torch" if is_torch else None, mod)
    if check_trace:
        for method, examples in inputs.items():
            function = mod if method == "forward" else getattr(mod, method)
            _check(getattr(traced, method), function, _tuple(examples), check_tolerance)
    return traced


def _bind_state(trace: Trace, module: Any, path: str) -> None:
    for name, value in [*module._parameters.items(), *module._buffers.items()]:
        if value is not None:
            trace.bind(value, f"{path}.{name}" if name.isidentifier() else f"getattr({path}, {name!r})")
    for name, child in module._modules.items():
        inner = f"{path}.{name}" if name.isidentifier() else f"getattr({path}, {name!r})"
        if isinstance(child, ScriptModule):
            trace.names[child._c.id()] = inner
        elif child is not None:
            _bind_state(trace, child, inner)
