"""`flambeau.script`: functions, classes and modules of Python, compiled from their source."""

from __future__ import annotations

import enum
import inspect
import sys
import types
import warnings
import weakref
from typing import Any, Callable, Protocol, TypeVar, overload

from . import _flambeau
from ._answers import Answers, _is_module_class, _modifier, is_module
from ._containers import ScriptDict, ScriptList
from ._flambeau import Program
from ._jit import ScriptWarning
from ._module_types import script_module
from ._modules import RecursiveScriptModule, ScriptFunction, ScriptModule, ScriptObject
from ._names import _scope_of_class, _function_path, info_of

# --- the door ---


def _kind_of(function: Any) -> str | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    names = getattr(function, "__globals__", {})
    uses = any(value is torch or value is getattr(torch, "Tensor", None) for value in list(names.values()))
    return "torch" if uses else None


_scripted: "weakref.WeakKeyDictionary[Any, ScriptFunction]" = weakref.WeakKeyDictionary()


class _Module(Protocol):
    """A module of PyTorch, for checkers of types."""

    def named_parameters(self) -> Any: ...
    def named_modules(self) -> Any: ...


_T = TypeVar("_T")


@overload
def script(obj: _Module, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> RecursiveScriptModule: ...
@overload
def script(obj: type[_T], optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> type[_T]: ...
@overload
def script(obj: str, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any: ...
@overload
def script(obj: list[Any], optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> ScriptList: ...
@overload
def script(obj: dict[Any, Any], optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> ScriptDict: ...
@overload
def script(obj: Callable[..., Any], optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> ScriptFunction: ...
def script(
    obj: Any = None, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:
    """Compiles a function, class or module from its source. A text is compiled as TorchScript source."""
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=2,
        )
    if example_inputs is not None:
        warnings.warn("example_inputs gives Flambeau no types: annotate parameters that are not tensors", ScriptWarning, stacklevel=2)
    if isinstance(obj, (ScriptModule, ScriptFunction, ScriptObject, ScriptList, ScriptDict)):
        return obj
    if isinstance(obj, str):
        core = _flambeau.load_bytes(obj.encode(), "<string>")
        names = core.functions()
        return ScriptFunction(core, names[0]) if len(names) == 1 else _unit(core)
    if is_module(obj):
        return script_module(obj)
    if isinstance(obj, dict):
        return ScriptDict(obj)
    if isinstance(obj, list):
        return ScriptList(obj)
    if isinstance(obj, type):
        return script_class(obj)
    if isinstance(obj, types.MethodType):
        raise RuntimeError("Cannot script a bound method; script the module or the function")
    if not isinstance(obj, types.FunctionType):
        if callable(obj) and hasattr(type(obj), "__call__") and not hasattr(obj, "__code__"):
            raise RuntimeError(
                f"Type '{type(obj)}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead"
                if isinstance(obj, type)
                else f"expected a function, class or module, but got an object of type {type(obj).__name__}"
            )
        raise RuntimeError(f"expected a function, class or module, but got an object of type {type(obj).__name__}")
    known = _scripted.get(obj)
    if known is not None:
        return known
    answers = Answers()
    whole = inspect.unwrap(obj)
    # Those of PyTorch that choose among two functions take any arguments, of which no types are known.
    takes_any = whole.__code__.co_flags & inspect.CO_VARARGS
    path = _function_path(obj) if obj.__module__ == "torch.nn.functional" and not takes_any else None
    meaning = answers.library(whole, path) if path else answers.function(obj)
    if _modifier(getattr(obj, "__flambeau_modifier__", None)) in ("ignore", "unused"):
        return obj
    core = _flambeau.compile(answers, [meaning])
    made = ScriptFunction(core, meaning[1][0], _kind_of(obj), obj)
    _scripted[obj] = made
    return made


def _unit(core: Program) -> Any:
    from ._files import CompilationUnit

    return CompilationUnit(_core=core)


def script_class(cls: type) -> type:
    """Compiles a class; the class itself stays usable from Python."""
    if _is_module_class(cls):
        raise RuntimeError(
            f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead"
        )
    if issubclass(cls, enum.Enum):
        return cls
    frame = inspect.currentframe()
    scope = _scope_of_class(cls)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("flambeau"):
        frame = frame.f_back
    if frame is not None and frame.f_locals is not frame.f_globals:
        scope.names = {**frame.f_locals, cls.__name__: cls}
    info = info_of(cls, scope)
    for function in vars(cls).values():
        if isinstance(function, types.FunctionType):
            _class_cells[function] = cls
    answers = Answers()
    info.core = _flambeau.compile(answers, [("class", answers.class_text(cls))])
    return cls


_class_cells: "weakref.WeakKeyDictionary[Any, type]" = weakref.WeakKeyDictionary()


def interface(cls: type) -> type:
    """Declares an interface: classes and modules with these methods are of it."""
    cls.__flambeau_interface__ = True  # type: ignore[attr-defined]
    frame = inspect.currentframe()
    scope = _scope_of_class(cls)
    if frame is not None and frame.f_back is not None:
        scope.names = {**frame.f_back.f_locals, cls.__name__: cls}
    info_of(cls, scope)
    return cls
