"""`flambeau.trace`: what a function of Python does to tensors, written down as TorchScript and compiled.

Each operation becomes a line of text, with tensors by name; calls of scripted functions stay calls, with their control flow.
Tensors of ours report their operations themselves, those of PyTorch through a `TorchFunctionMode`.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import warnings
from typing import Any, Callable, Iterator

from . import _flambeau, _modules
from ._flambeau import Tensor
from ._modules import RecursiveScriptModule, ScriptFunction, ScriptModule, keep_types
from ._answers import Answers, is_module
from ._module_types import ModuleType, build_object
from ._kinds import is_tensor, is_torch_object
from ._names import value_type
from ._scopes import number_of, scope_number, unique_name
from ._sizes import TracerWarning, remembered
from ._tensors import Size
from ._trace_check import TracingCheckError as TracingCheckError, check_outputs, check_records, cloned, quiet
from ._trace_text import Constant, Trace, leaves
from ._trace_torch import torch_mode, torch_says_tracing


class TopLevelTracedModule(RecursiveScriptModule):
    """A module that `trace` made."""

    takes_hooks = True

    def _shown_as(self) -> str:
        return self.original_name


# PyTorch has a class of its own for traced submodules; here all are of one.
TracedModule = TopLevelTracedModule

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


def note(expression: str, gives: bool, inputs: list[Any], result: Any) -> None:
    """Writes down an operation on tensors of ours."""
    trace = _current()
    if trace is None or trace.depth:
        return
    text = re.sub(r"\ba(\d+)\b", lambda m: trace.text(inputs[int(m.group(1))]), expression)
    if gives:
        trace.result(text, result)
    else:
        trace.line(text)


def traced_sizes(tensor: Tensor, sizes: Size) -> Size:
    """The sizes of a tensor of ours, for the trace of this thread."""
    trace = _current()
    return sizes if trace is None else Size(trace.sizes(tensor, tuple(sizes)))


def traced_count(tensor: Tensor, count: int) -> int:
    """The number of its elements."""
    trace = _current()
    return count if trace is None else remembered(count, f"{trace.name(tensor)}.numel()", trace, trace.frame)


def call_scripted(function: ScriptFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a scripted function and writes the call down."""
    trace = _current()
    if trace is None:
        return function._c.call(function._name, args, kwargs or None, function._kind)
    name = f"function_{len(trace.kept)}"
    trace.kept.append(function)
    trace.scope.names[name] = function
    with trace.paused():
        result = function._c.call(function._name, args, kwargs or None, function._kind)
    parts = [trace.text(a) for a in args] + [f"{k}={trace.text(v)}" for k, v in kwargs.items()]
    trace.result(f"{name}({', '.join(parts)})", result)
    return result


def call_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a method of a scripted module and writes the call down, where the module is part of what is traced."""
    trace = _current()
    path = trace.frame.names.get(method._c.id()) if trace is not None else None
    if trace is None or path is None:
        if trace is not None:
            raise RuntimeError("a scripted module is called in a trace that is not a submodule of the traced module")
        return method._c.call(method._name, args, kwargs or None, method._kind)
    with trace.paused():
        result = method._c.call(method._name, args, kwargs or None, method._kind)
    parts = [trace.text(a) for a in args] + [f"{k}={trace.text(v)}" for k, v in kwargs.items()]
    trace.result(f"{path}.{method._name}({', '.join(parts)})", result)
    return result


@contextlib.contextmanager
def _writing(trace: Trace) -> Iterator[None]:
    global _active
    if _current() is not None:
        raise RuntimeError("a trace is being written already")
    _local.trace = trace
    with _lock:
        _active += 1
        _modules.traces = _active
        _flambeau.set_tracing(True)
    try:
        with torch_says_tracing(is_tracing), torch_mode(trace):
            yield
    finally:
        _local.trace = None
        with _lock:
            _active -= 1
            _modules.traces = _active
            _flambeau.set_tracing(_active > 0)


class _TracedType(ModuleType):
    """The class of a traced module: state as it is, one method from the trace."""

    def __init__(self, module: Any, kinds: dict[int, _TracedType]) -> None:
        self.texts: list[Any] = []
        self.calls = 0
        # A module that stands at two places is one object.
        self.kinds = kinds
        kinds[id(module)] = self
        super().__init__(module)
        self.name = unique_name(type(module).__module__, type(module).__name__)

    def _collect(self) -> None:
        module = self.module
        for name, value in module._parameters.items():
            self.rows.append((name, "NoneType" if value is None else "Tensor"))
            self.parameters.append(name)
        for name, value in module._buffers.items():
            self.rows.append((name, "Optional[Tensor]" if value is None else "Tensor"))
            self.buffers.append(name)
        for name, value in _objects(module).items():
            self.rows.append((name, value_type(value) or "Any"))
        self.rows.append(("training", "bool"))
        for name, value in module._modules.items():
            if value is None:
                self.rows.append((name, "NoneType"))
                continue
            known = self.kinds.get(id(value))
            self.children[name] = value if isinstance(value, ScriptModule) else known or _TracedType(value, self.kinds)
            self.rows.append((name, f"__host__.h{number_of(self.children[name])}"))

    def _hooks(self, kind: str) -> list[Any]:
        # What hooks do is in the trace.
        return []

    def method(self) -> str:
        """A name for one more call of `forward`."""
        self.calls += 1
        return "forward" if self.calls == 1 else f"forward{self.calls - 1}"

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


def _objects(module: Any) -> dict[str, Any]:
    """A module's attributes that are objects of PyTorch's own classes."""
    return {name: value for name, value in vars(module).items() if is_torch_object(value)}


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
    return type(value).__name__


def _parameters(names: list[str], inputs: Any) -> list[str]:
    """The parameters of a traced function with their types. Nothing but tensors can be traced."""
    if not all(map(is_tensor, leaves(inputs))):
        of = inputs[0] if len(inputs) == 1 else tuple(inputs)
        raise RuntimeError(
            f"Type '{_annotation(of)}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
        )
    return [f"{name}: {_annotation(value)}" for name, value in zip(names, inputs)]


def _bind(trace: Trace, name: str, value: Any) -> None:
    if is_tensor(value):
        trace.bind(value, name)
    elif isinstance(value, (list, tuple)):
        for n, item in enumerate(value):
            _bind(trace, f"{name}[{n}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _bind(trace, f"{name}[{key!r}]", item)


def _parameter_names(function: Any, count: int, is_method: bool = False) -> list[str]:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return [f"argument_{n + 1}" for n in range(count)]
    names = list(code.co_varnames[: code.co_argcount])[1 if is_method else 0 :]
    return [names[n] if n < len(names) else f"argument_{n + 1}" for n in range(count)]


class _Answers(Answers):
    def meaning(self, value: Any, name: str) -> tuple[Any, ...] | None:
        if isinstance(value, Constant):
            return ("constant", value.tensor)
        return super().meaning(value, name)


def _record(
    trace: Trace, function: Callable[..., Any], inputs: tuple[Any, ...], names: list[str], strict: bool
) -> tuple[str, Any]:
    copies = tuple(map(cloned, inputs))
    for name, value in zip(names, copies):
        _bind(trace, name, value)
    with _writing(trace):
        result = function(*copies)
    if strict:
        _check_containers(result)
    return trace.structure(result), result


def _check_containers(result: Any) -> None:
    """Lists and dictionaries of results are as they are with the examples."""
    if isinstance(result, dict):
        raise RuntimeError(_CONTAINER.format("dict"))
    if isinstance(result, list):
        warnings.warn(_CONTAINER.format("list"), TracerWarning, stacklevel=5)
    if isinstance(result, (list, tuple)):
        for item in result:
            _check_containers(item)


_CONTAINER = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is only valid if the container "
    "structure does not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use "
    "a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass "
    "strict=False to trace() to allow this behavior."
)


def _scope(trace: Trace) -> int:
    """The number of what the lines of a trace name."""
    trace.scope.names.setdefault("torch", _Namespace("torch"))
    trace.scope.names.setdefault("ops", _Namespace("ops"))
    trace.scope.names.setdefault("Tensor", Tensor)
    return scope_number(trace.scope)


class _Namespace:
    def __init__(self, path: str) -> None:
        self.__flambeau_path__ = path
        self.__name__ = path


def _by_method(check_inputs: Any) -> list[dict[str, Any]]:
    return [{"forward": _tuple(one)} for one in check_inputs or []]


def warn_of_optimize(optimize: Any) -> None:
    """Warns of an argument that PyTorch ignores, too."""
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=3,
        )


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: Any = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """Runs a function or module on examples, and compiles what it did to tensors.

    Calls of submodules become calls of methods of their own; sizes of tensors are computed anew in each call. With `strict`
    results may not be dictionaries, and lists are warned of.
    """
    warn_of_optimize(optimize)
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
        return trace_module(
            func, {"forward": inputs}, check_trace=check_trace, check_inputs=_by_method(check_inputs),
            check_tolerance=check_tolerance, strict=strict, _names=list(example_kwarg_inputs or ()) or None,
        )  # fmt: skip
    if hasattr(func, "__self__") and is_module(func.__self__):
        if func.__name__ == "forward":
            return trace_module(
                func.__self__, {"forward": inputs}, check_trace=check_trace, check_inputs=_by_method(check_inputs),
                check_tolerance=check_tolerance, strict=strict,
            )  # fmt: skip
        raise AttributeError("trace doesn't support compiling individual module's functions.\nPlease use trace_module")
    is_method = hasattr(func, "__self__")
    names = list(example_kwarg_inputs) if example_inputs is None else _parameter_names(func, len(inputs), is_method)
    made, short, text = _recorded_function(func, inputs, names, strict)
    name = unique_name(getattr(func, "__module__", None) or "", short)
    answers = _Answers()
    where = (_scope(made), "<trace>", 1, text)
    core = _flambeau.compile(answers, [("function", (name, where))])
    torch = sys.modules.get("torch")
    uses_torch = torch is not None and any(isinstance(v, torch.Tensor) for v in leaves(inputs))
    traced = ScriptFunction(core, name, "torch" if uses_torch else None, func if callable(func) and hasattr(func, "__name__") else None)
    keep_types(traced, inputs)
    if check_trace:
        for one in [inputs, *map(_tuple, check_inputs or [])]:
            with quiet():
                again, _, text_again = _recorded_function(func, one, names, strict)
            check_outputs(traced, func, one, check_tolerance)
            check_records([(made, text)], [(again, text_again)])
    return traced


def _recorded_function(func: Any, inputs: tuple[Any, ...], names: list[str], strict: bool) -> tuple[Trace, str, str]:
    """The trace of a function, its name, and its text."""
    made = Trace()
    parameters = ", ".join(_parameters(names, inputs))
    result, _ = _record(made, func, inputs, names, strict)
    short = getattr(func, "__name__", "forward").replace("<lambda>", "_lambda")
    short = short if short.isidentifier() else "forward"
    return made, short, made.frame.text(f"def {short}({parameters}):", result)


def trace_module(
    mod: Any, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False, _store_inputs: bool = True, _names: Any = None,
) -> Any:  # fmt: skip
    """Traces methods of a module, each on its examples."""
    warn_of_optimize(optimize)
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    kind, records = _recorded_module(mod, inputs, strict, _names)
    answers = _Answers()
    core = _flambeau.compile(answers, [kind.meaning(answers)])
    made_object = build_object(mod, kind, core, {})
    torch = sys.modules.get("torch")
    is_torch = torch is not None and isinstance(mod, torch.nn.Module)
    traced = TopLevelTracedModule(made_object, "torch" if is_torch else None, mod)
    if "forward" in inputs:
        keep_types(traced, _tuple(inputs["forward"]))
    if check_trace:
        for one in [inputs, *(check_inputs or [])]:
            with quiet():
                again = _recorded_module(mod, one, strict, _names)[1] if set(one) == set(inputs) else records
            for method, examples in one.items():
                function = mod if method == "forward" else getattr(mod, method)
                check_outputs(getattr(traced, method), function, _tuple(examples), check_tolerance)
            check_records(records, again)
    return traced


def _recorded_module(mod: Any, inputs: dict[str, Any], strict: bool, given_names: Any) -> tuple[_TracedType, list[tuple[Trace, str]]]:
    """The class of a traced module, with the texts of its methods; and each trace with its texts."""
    kinds: dict[int, _TracedType] = {}
    kind = _TracedType(mod, kinds)
    records: list[tuple[Trace, str]] = []
    for method, examples in inputs.items():
        examples = _tuple(examples)
        made = Trace(mod)
        _bind_state(made, mod, "self")
        function = mod if method == "forward" else getattr(mod, method)
        names = given_names or _parameter_names(getattr(type(mod), method, None), len(examples), is_method=True)
        parameters = "".join(f", {parameter}" for parameter in _parameters(names, examples))
        with _module_calls(made, mod, kinds):
            result, _ = _record(made, function, examples, names, strict)
        text = made.frame.text(f"def {method}(self{parameters}):", result)
        scope = _scope(made)
        texts = []
        for frame, inner, name in made.methods:
            heads = "".join(f", {n}: {annotation}" for n, annotation in frame.parameters.items())
            texts.append(frame.text(f"def {name}(self{heads}):"))
            inner.texts.append((scope, "<trace>", 1, texts[-1]))
        kind.texts.append((scope, "<trace>", 1, text))
        records.append((made, "".join([*texts, text])))
    return kind, records


@contextlib.contextmanager
def _module_calls(trace: Trace, root: Any, kinds: dict[int, _TracedType]) -> Iterator[None]:
    """A context in which calls of submodules become calls of methods of their own.

    Modules that are not part of the module around them are written down as what they do.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        yield
        return
    entered: list[Any] = []

    def before(module: Any, args: Any) -> None:
        # Hooks hear of all threads.
        if _current() is not trace:
            return
        entered.append(None)
        if trace.depth or isinstance(module, ScriptModule) or id(module) not in kinds:
            return
        path = _path_below(trace.frame.module, module)
        if not path or (len(entered) == 1 and module is root):
            return
        entered[-1] = (path, kinds[id(module)])
        trace.enter(module)
        _bind_state(trace, module, "self")
        names = _parameter_names(type(module).forward, len(args), is_method=True)
        trace.frame.wanted.update({id(v): n for n, v in zip(names, args) if is_tensor(v)})

    def after(module: Any, args: Any, result: Any) -> None:
        if _current() is not trace:
            return
        found = entered.pop() if entered else None
        if found is not None:
            path, kind = found
            name = kind.method()
            trace.leave(f"{path}.{name}", result)
            trace.methods.append((trace.ended[-1], kind, name))

    hooks = torch.nn.modules.module
    handles = [hooks.register_module_forward_pre_hook(before), hooks.register_module_forward_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _path_below(outer: Any, module: Any) -> str | None:
    """How a module is reached from one around it."""
    for path, found in outer.named_modules(remove_duplicate=False) if outer is not None else ():
        if found is module and path:
            return _attribute_path("self", path.split("."))
    return None


def _attribute_path(path: str, names: list[str]) -> str:
    for name in names:
        path = f"{path}.{name}" if name.isidentifier() else f"getattr({path}, {name!r})"
    return path


def _bind_state(trace: Trace, module: Any, path: str) -> None:
    for name, value in [*module._parameters.items(), *module._buffers.items(), *_objects(module).items()]:
        if value is not None:
            trace.bind(value, _attribute_path(path, [name]))
    for name, child in module._modules.items():
        inner = _attribute_path(path, [name])
        if isinstance(child, ScriptModule):
            trace.frame.names[child._c.id()] = inner
        elif child is not None:
            _bind_state(trace, child, inner)
