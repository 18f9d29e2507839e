"""Names of Python for the compiler: classes, and what values and annotations are called in TorchScript.

It knows no question of the compiler: those are answered in `_answers`."""

from __future__ import annotations

import collections
import enum
import functools
import sys
import types
import weakref
import typing
from typing import Any

from . import _flambeau
from ._flambeau import Program, Tensor
from ._kinds import _is_torch, _is_torch_subclass, is_tensor, is_torch_object
from ._modules import ScriptObject
from ._scopes import CompilerError, Scope, call_ignored as call_ignored, number_of, unique_name
from ._torch_objects import script_object

# --- what values of Python mean ---

_PATHS = {
    "torch", "torch.nn", "torch.nn.init", "torch.jit", "torch.linalg", "torch.fft", "torch.special",
    "torch.ops", "torch.autograd", "torch.autograd.profiler", "torch.sparse", "torch.nested", "torch.functional",
    "math", "cmath", "typing", "warnings", "collections", "torch._C._nn", "torch.profiler",
}


def _module_path(module: types.ModuleType) -> str | None:
    name = module.__name__
    if name in ("flambeau", "flambeau.jit"):
        return "flambeau"
    if name.startswith("flambeau."):
        name = "torch." + name.removeprefix("flambeau.")
    if name == "typing_extensions":
        return "typing"
    return name if name in _PATHS else None


def _function_path(value: Any) -> str | None:
    """The path of a function of PyTorch, Python or Flambeau that scripts know by name."""
    path = getattr(value, "__flambeau_path__", None)
    if isinstance(path, str):
        return path
    name = getattr(value, "__name__", None)
    module = getattr(value, "__module__", None) or ""
    if not isinstance(name, str):
        return None
    if isinstance(value, types.BuiltinFunctionType) and module in ("math", "cmath", "builtins", "_warnings"):
        if module == "_warnings":
            return "warnings.warn"
        return name if module == "builtins" else f"{module}.{name}"
    if module.startswith("flambeau"):
        own = "torch.jit" if name in ("isinstance", "strict_fusion") else "flambeau"
        return f"{own}.{name}" if name in _JIT_NAMES else None
    torch = sys.modules.get("torch")
    if torch is not None:
        if module.startswith("torch.jit") and name in _JIT_NAMES:
            return f"torch.jit.{name}"
        if module == "torch.nn.functional" and _is_known(f"torch.nn.functional.{name}"):
            return f"torch.nn.functional.{name}"
        if isinstance(value, types.BuiltinFunctionType) and getattr(torch, name, None) is value:
            return f"torch.{name}"
        if module.startswith("torch") and not isinstance(value, type):
            for path, where in (("torch", torch), ("torch.nn.functional", torch.nn.functional), ("torch.nn.init", torch.nn.init)):
                if getattr(where, name, None) is value and _is_known(f"{path}.{name}"):
                    return f"{path}.{name}"
            found = _torch_builtin(torch, value)
            if found is not None and _flambeau.known_op(found.removeprefix("ops.").replace(".", "::", 1)):
                return found
    return None


@functools.cache
def _is_known(path: str) -> bool:
    """Whether scripts know a function of PyTorch; others are compiled from their source."""
    try:
        _flambeau.load_bytes(f"def known():\n    return {path}\n".encode(), "<known>")
    except RuntimeError as error:
        return "has no attribute" not in str(error)
    return True


# Small functions of PyTorch that are made by a closure, so that Python has no source to compile.
_TUPLES = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}


def _torch_builtin(torch: Any, value: Any) -> str | None:
    try:
        found = torch.jit._builtins._find_builtin(value)
    except Exception:
        return None
    return "ops." + found.replace("::", ".") if found else None


_JIT_NAMES = {
    "annotate", "isinstance", "fork", "wait", "is_scripting", "is_tracing", "_unwrap_optional", "_fork", "_wait",
    "_awaitable", "_awaitable_wait", "_awaitable_nowait", "strict_fusion", "no_grad", "enable_grad", "manual_seed",
}  # fmt: skip


def type_text(annotation: Any) -> str | None:
    """A type of `typing` as an annotation of TorchScript, with classes by their numbers; None for what is not a type."""
    if annotation is None or annotation is type(None):
        return "NoneType"
    if isinstance(annotation, (str, typing.ForwardRef)):
        return None
    if annotation is Tensor or _is_torch(annotation, "Tensor") or _is_torch_subclass(annotation):
        return "Tensor"
    simple = {int: "int", float: "float", bool: "bool", str: "str", complex: "complex", typing.Any: "Any"}
    if isinstance(annotation, typing.Hashable) and annotation in simple:
        return simple[annotation]
    if annotation is _flambeau.device or _is_torch(annotation, "device"):
        return "Device"
    if annotation is _flambeau.dtype or any(_is_torch(annotation, n) for n in ("dtype", "layout", "memory_format")):
        return "int"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        if origin in (typing.Union, types.UnionType):
            inner = [type_text(a) for a in arguments]
            if any(t is None for t in inner):
                return None
            rest = [t for t in inner if t != "NoneType"]
            if len(rest) == 1 and len(rest) < len(inner):
                return f"Optional[{rest[0]}]"
            return f"Union[{', '.join(t for t in inner if t)}]"
        if origin is typing.Final:
            return type_text(arguments[0])
        names = {list: "List", dict: "Dict", tuple: "Tuple"}
        name = names.get(origin) or ("Future" if getattr(origin, "__name__", "") == "Future" else None)
        if name is None:
            return None
        if origin is tuple and arguments == ():
            return "Tuple[()]"
        inner = [type_text(a) for a in arguments if a is not Ellipsis]
        if any(t is None for t in inner) or Ellipsis in arguments:
            return None
        return f"{name}[{', '.join(t for t in inner if t)}]"
    if isinstance(annotation, type) and (_is_scriptable(annotation) or _is_plain_class(annotation) and compiled_class(annotation)):
        return f"__host__.h{number_of(annotation)}"
    return None


def _is_scriptable(cls: type) -> bool:
    if issubclass(cls, enum.Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return True
    return cls in _classes or hasattr(cls, "__flambeau_interface__")


def value_type(value: Any) -> str | None:
    """The type of an attribute's value as an annotation; None where TorchScript has none."""
    if value is None:
        return "NoneType"
    if is_tensor(value):
        return "Tensor"
    if isinstance(value, enum.Enum):
        return f"__host__.h{number_of(type(value))}"
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float"), (complex, "complex"), (str, "str")):
        if type(value) is kind:
            return name
    name = type(value).__name__
    if name == "device":
        return "Device"
    if name in ("dtype", "layout", "memory_format"):
        return "int"
    if isinstance(value, list) and value:
        return _joined("List", [value_type(v) for v in value])
    if isinstance(value, dict) and value:
        key, inner = _joined("", [value_type(k) for k in value]), _joined("", [value_type(v) for v in value.values()])
        return f"Dict[{key}, {inner}]" if key and inner else None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"__host__.h{number_of(type(value))}"
    if isinstance(value, tuple):
        inner = [value_type(v) for v in value]
        return None if None in inner else f"Tuple[{', '.join(str(t) for t in inner)}]" if inner else "Tuple[()]"
    if isinstance(value, ScriptObject):
        return f"__host__.h{number_of(value)}"
    if is_torch_object(value):
        return f"__host__.h{number_of(script_object(value))}"
    if type(value) in _classes or _is_plain_class(type(value)) and compiled_class(type(value)):
        return f"__host__.h{number_of(type(value))}"
    return None


def _is_plain_class(cls: type) -> bool:
    """Whether a class is written in Python, with an `__init__`, and no class of modules or exceptions."""
    torch = sys.modules.get("torch")
    other = (BaseException, type, torch.nn.Module) if torch is not None and hasattr(torch, "nn") else (BaseException, type)
    return isinstance(vars(cls).get("__init__"), types.FunctionType) and not issubclass(cls, other)


def compiled_class(cls: type) -> bool:
    """Compiles a class of which a module holds an object. False where that fails: nothing but a use of the object is an error then."""
    if cls not in _refused:
        from ._script import script_class

        _refused[cls] = ""
        try:
            script_class(cls)
        except (RuntimeError, OSError, CompilerError) as error:
            _refused[cls] = str(error)
            _classes.pop(cls, None)
    return not _refused[cls]


# Classes that a module's objects are of, with the reason why they are not compiled; empty where they are.
_refused: "weakref.WeakKeyDictionary[type, str]" = weakref.WeakKeyDictionary()


def _joined(name: str, inner: list[str | None]) -> str | None:
    kinds = list(dict.fromkeys(inner))
    if None in kinds or not kinds:
        return None
    rest = [k for k in kinds if k != "NoneType"]
    if len(rest) == 1:
        one = rest[0] if len(kinds) == 1 else f"Optional[{rest[0]}]"
    elif all(str(k).startswith("__host__") for k in kinds):
        one = rest[0]
    else:
        return None
    return f"{name}[{one}]" if name else one


# --- classes ---


class ClassInfo:
    """A class of Python that programs know."""

    def __init__(self, cls: type, name: str, scope: Scope) -> None:
        self.cls, self.name, self.scope = cls, name, scope
        self.core: Program | None = None


_classes: dict[type, ClassInfo] = {}
_by_name: dict[str, Any] = {}
_tuples: dict[tuple[str, tuple[str, ...]], type] = {}


def python_class(name: str | None) -> type | None:
    """The class of Python that was scripted under a name."""
    return next((cls for cls, info in _classes.items() if info.name == name and info.core is not None), None)


def info_of(cls: type, scope: Scope | None = None) -> ClassInfo:
    """What is known of a class."""
    found = _classes.get(cls)
    if found is None:
        name = unique_name(cls.__module__, cls.__name__)
        found = _classes[cls] = ClassInfo(cls, name, scope or _scope_of_class(cls))
        _by_name[name] = cls
        if issubclass(cls, tuple):
            _tuples[(name, tuple(cls._fields))] = cls  # type: ignore[attr-defined]
    return found


def _scope_of_class(cls: type) -> Scope:
    scope = Scope()
    scope.globals = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    scope.names[cls.__name__] = cls
    return scope


def named_tuple(name: str, fields: list[str]) -> type:
    """The class of a named tuple of a program."""
    key = (name, tuple(fields))
    if key not in _tuples:
        _tuples[key] = collections.namedtuple(name.rsplit(".", 1)[-1], fields)  # type: ignore[misc]
    return _tuples[key]


def enum_name(cls: type) -> str:
    """The qualified name of an enum class."""
    return info_of(cls).name


def enum_member(cls: str, member: str, value: Any) -> Any:
    """The member of an enum class of Python; its value where Python has no such class."""
    found = _by_name.get(cls)
    return found[member] if found is not None else value


def object_core(value: Any) -> Program | None:
    """An object of a scripted class of Python, or of one that derives from it, as an object of programs: its attributes, converted."""
    if is_torch_object(value):
        return script_object(value)._c  # type: ignore[no-any-return]
    known = (_classes.get(cls) for cls in type(value).__mro__)
    info = next((info for info in known if info is not None and info.core is not None), None)
    if info is None or info.core is None:
        return None
    made = info.core.new_object(info.name)
    for name, *_ in made.attributes():
        made.set(name, getattr(value, name))
    return made
