"""`flambeau.script`: functions, classes and modules of Python, compiled from their source.

The compiler asks an `Answers` object what names mean when it comes by them; the answers are tuples that `src/host.rs` reads.
"""

from __future__ import annotations

import ast
import builtins
import collections
import enum
import functools
import inspect
import math
import sys
import types
import typing
import warnings
import weakref
from typing import Any, Callable

from . import _flambeau
from ._flambeau import Program, Tensor
from ._modules import RecursiveScriptModule, ScriptFunction, ScriptModule, ScriptObject
from ._source import FrontendError, NotSupportedError, Text, function_text

# --- names ---

_taken: dict[str, int] = {}
_mangled = 0


def unique_name(module: str, name: str) -> str:
    """A qualified name that nothing of this process has yet, as PyTorch makes it."""
    global _mangled
    module = "__torch__" if module in ("__main__", "", None) else f"__torch__.{module}"
    full = f"{module}.{name}"
    if full in _taken:
        full = f"{module}.___torch_mangle_{_mangled}.{name}"
        _mangled += 1
    _taken[full] = 1
    return full


# --- things by number ---

_numbered: list[Any] = []


def number_of(thing: Any) -> int:
    """A number under which generated text and the compiler speak of a thing."""
    _numbered.append(thing)
    return len(_numbered) - 1


_ignored: list[Callable[..., Any]] = []


def call_ignored(number: int, arguments: tuple[Any, ...]) -> Any:
    """Calls a function that a program leaves to Python."""
    return _ignored[number](*arguments)


# --- scopes ---


class Scope:
    """Names around a text: a function's globals and the variables that it closes over."""

    def __init__(self, function: Callable[..., Any] | None = None, names: dict[str, Any] | None = None) -> None:
        self.names: dict[str, Any] = dict(names or {})
        self.globals: dict[str, Any] = {}
        if function is not None:
            self.globals = function.__globals__
            closure = function.__closure__ or ()
            for name, cell in zip(function.__code__.co_freevars, closure):
                try:
                    self.names[name] = cell.cell_contents
                except ValueError:
                    continue

    def find(self, name: str) -> tuple[bool, Any]:
        """Whether the name is there, and what it means."""
        if name in self.names:
            return True, self.names[name]
        if name in self.globals:
            return True, self.globals[name]
        return False, None


_scopes: list[Scope] = []


def scope_number(scope: Scope) -> int:
    """The number of a scope."""
    _scopes.append(scope)
    return len(_scopes) - 1


class CompilerError(Exception):
    """What the compiler is told of a name that cannot be used; it adds the place."""

    of_compiler = True


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
        return f"flambeau.{name}" if name in _JIT_NAMES else None
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
    """A type of `typing` as an annotation of TorchScript, with classes by their numbers; None for what is no type."""
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
    if isinstance(annotation, type) and (_is_scriptable(annotation)):
        return f"__host__.h{number_of(annotation)}"
    return None


def _is_scriptable(cls: type) -> bool:
    if issubclass(cls, enum.Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return True
    return cls in _classes or hasattr(cls, "__flambeau_interface__")


def _is_torch(value: Any, name: str) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and getattr(torch, name, None) is value


def _is_torch_subclass(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(value, type) and issubclass(value, torch.Tensor)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of ours or PyTorch's."""
    return isinstance(value, Tensor) or _is_torch_subclass(type(value))


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
    if type(value) in _classes:
        return f"__host__.h{number_of(type(value))}"
    return None


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
    """An object of a scripted class of Python as an object of programs: its attributes, converted."""
    info = _classes.get(type(value))
    if info is None or info.core is None:
        return None
    made = info.core.new_object(info.name)
    for name, *_ in made.attributes():
        made.set(name, getattr(value, name))
    return made


# --- the compiler's questions ---


class Answers:
    """Answers what names of Python mean, for one compilation."""

    def __init__(self) -> None:
        self.functions: dict[Any, tuple[Any, ...]] = {}
        self.modules: dict[str, Any] = {}

    def name(self, scope: int, name: str) -> tuple[Any, ...] | None:
        """What a name means in a scope."""
        found, value = _scopes[scope].find(name)
        if not found:
            return None
        return self.meaning(value, name)

    def numbered(self, number: int) -> tuple[Any, ...]:
        """A thing that generated text names."""
        thing = _numbered[number]
        if isinstance(thing, tuple) and thing and isinstance(thing[0], str) and thing[0] in ("class", "compiled"):
            return thing
        if isinstance(thing, ModuleType):
            return thing.meaning(self)
        if isinstance(thing, (ScriptObject, ScriptModule)):
            return ("compiled", thing._c, thing._c.class_name)
        found = self.meaning(thing, getattr(thing, "__name__", "value"))
        if found is None:
            raise CompilerError(f"{thing} has no meaning in a script")
        return found

    def attribute(self, number: int, name: str) -> tuple[Any, ...] | None:
        """What a value has under a name."""
        value = _numbered[number]
        if isinstance(value, types.ModuleType) and _module_path(value) == "torch":
            inner = getattr(value, name, None)
            if isinstance(inner, type):
                return self.meaning(inner, name)
            if not isinstance(inner, types.ModuleType) or _module_path(inner):
                return ("path", f"torch.{name}")
        if not hasattr(value, name):
            raise CompilerError(f"{'module' if isinstance(value, types.ModuleType) else type(value).__name__} has no attribute '{name}'")
        return self.meaning(getattr(value, name), name)

    def member(self, cls: str, name: str) -> tuple[Any, ...] | None:
        """A member of a class that was not declared."""
        known = self.modules.get(cls)
        if known is not None:
            return known.member(self, name)
        python = _by_name.get(cls)
        if isinstance(python, type):
            return self.class_member(python, cls, name)
        return None

    def class_member(self, python: type, cls: str, name: str) -> tuple[Any, ...] | None:
        """A static method or property of a script class."""
        found = inspect.getattr_static(python, name, None)
        if isinstance(found, staticmethod):
            return ("static", self.text_of(found.__func__, f"{cls}.{name}"))
        if isinstance(found, property):
            setter = self.source(found.fset) if found.fset else None
            return ("property", self.source(found.fget), setter)
        if isinstance(found, types.FunctionType):
            return ("method", self.method_source(found))
        return None

    # --- meanings ---

    def meaning(self, value: Any, name: str) -> tuple[Any, ...] | None:
        """What a value of Python means in a script."""
        if isinstance(value, types.ModuleType):
            path = _module_path(value)
            # Of PyTorch itself scripts know much by name, but not all of its modules.
            return ("path", path) if path and path != "torch" else ("value", number_of(value), "module")
        if isinstance(value, ScriptFunction):
            return ("compiled", value._c, value.qualified_name)
        if isinstance(value, ScriptModule):
            return ("value", number_of(value), type(value).__name__)
        if value is None or type(value) in (bool, int, float, complex, str):
            return ("constant", value)
        if isinstance(value, enum.Enum):
            number = number_of(type(value))
            # The class must be known before its members are.
            info_of(type(value))
            return ("value", number, "enum") if False else self.enum_constant(value)
        if type(value).__name__ in ("dtype", "device", "layout", "memory_format"):
            return ("constant", value)
        if isinstance(value, tuple) and not hasattr(value, "_fields") and _is_constant(value):
            return ("constant", value)
        if isinstance(value, type):
            return self.class_meaning(value, name)
        overloads = _overloads.get(_overload_key(value))
        if overloads:
            return self.overloaded(value, overloads)
        path = _function_path(value)
        if path is not None:
            return ("path", path)
        repeated = self.repeated(value)
        if repeated is not None:
            return repeated
        if isinstance(value, types.MethodType) and isinstance(value.__self__, ScriptModule):
            return ("value", number_of(value), "method")
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, _Wrapped):
            return self.meaning(value.function, name)
        text = type_text(value)
        if text is not None:
            return ("type", text)
        if type(value).__module__ in ("typing", "typing_extensions"):
            return ("path", f"typing.{getattr(value, '_name', None) or name}")
        if _is_annotation(value):
            return ("path", f"typing.{value.__name__}")
        return ("value", number_of(value), type(value).__name__)

    def repeated(self, value: Any) -> tuple[Any, ...] | None:
        """`_pair` and its kin of `torch.nn.modules.utils`."""
        utils = sys.modules.get("torch.nn.modules.utils")
        for name, count in _TUPLES.items():
            if utils is not None and getattr(utils, name, None) is value:
                if name not in self.functions:
                    items = ", ".join(f"x[{n}]" for n in range(count))
                    text = f"def {name}(x: BroadcastingList{count}[int]) -> List[int]:\n    return [{items}]\n"
                    where = (scope_number(Scope()), f"<{name}>", 1, text)
                    self.functions[name] = ("function", (unique_name("torch.nn.modules.utils", name), where))
                return self.functions[name]
        return None

    def enum_constant(self, member: enum.Enum) -> tuple[Any, ...]:
        """A member of an enum class."""
        return ("constant", member)

    def class_meaning(self, cls: type, name: str) -> tuple[Any, ...] | None:
        """What a class means in a script."""
        if cls.__module__ == "builtins":
            if issubclass(cls, BaseException):
                return ("path", cls.__name__)
            if cls is type(None):
                return ("type", "NoneType")
            # Under its own name Python's class is the compiler's; under another one it is a type.
            text = type_text(cls) if cls.__name__ != name else None
            return ("type", text) if text else None
        if issubclass(cls, BaseException):
            base = next(c for c in cls.__mro__ if c.__module__ == "builtins")
            return ("path", base.__name__)
        if cls is collections.OrderedDict:
            return ("path", "collections.OrderedDict")
        if cls is _flambeau.device:
            return ("path", "torch.device")
        text = type_text(cls) if not _is_scriptable(cls) else None
        if _is_torch(cls, "device"):
            return ("path", "torch.device")
        if text is not None:
            return ("path", "torch.Tensor") if text == "Tensor" else ("type", text)
        module = cls.__module__ or ""
        if cls.__name__ == "Future" and (module.startswith("flambeau") or module.startswith("torch")):
            return ("path", "typing.Future")
        if cls.__name__ in ("no_grad", "enable_grad", "record_function", "strict_fusion") and module.startswith("torch"):
            places = {"record_function": "torch.autograd.profiler.record_function", "strict_fusion": "torch.jit.strict_fusion"}
            return ("path", places.get(cls.__name__, f"torch.{cls.__name__}"))
        if _is_module_class(cls):
            return ("value", number_of(cls), "type")
        return ("class", self.class_text(cls))

    def class_text(self, cls: type) -> dict[str, Any]:
        """A class as text."""
        info = info_of(cls)
        short = info.name.rsplit(".", 1)[-1]
        scope = scope_number(info.scope)
        methods: list[Any] = []
        has_init = False
        if issubclass(cls, enum.Enum):
            header = f"class {short}(Enum):\n" + "".join(f"  {m.name} = {m.value!r}\n" for m in cls)
        elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
            header = self.tuple_header(cls, short)
        elif hasattr(cls, "__flambeau_interface__"):
            base = "ModuleInterface" if _is_module_class(cls) else "Interface"
            stubs = []
            for function in vars(cls).values():
                if isinstance(function, types.FunctionType):
                    node = function_text(function).node
                    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                    stubs.append(f"  def {node.name}({ast.unparse(node.args)}){returns}:\n    pass\n")
                    info.scope = Scope(function)
            scope = scope_number(info.scope)
            header = f"class {short}({base}):\n" + "".join(stubs)
        else:
            if cls.__bases__ != (object,) and any(b.__module__ not in ("abc", "typing") for b in cls.__bases__ if b is not object):
                raise CompilerError(
                    f"Inheritance is not supported for TorchScript classes: '{cls.__name__}' has bases "
                    + ", ".join(b.__name__ for b in cls.__bases__)
                )
            header = f"class {short}:\n  pass\n"
            has_init = "__init__" in vars(cls)
            for function in vars(cls).values():
                if isinstance(function, types.FunctionType):
                    if function.__name__ in ("__eq__", "__hash__", "__repr__") and not _has_source(function):
                        continue
                    methods.append(self.method_source(function))
        return {
            "name": info.name,
            "header": (scope, f"<class {short}>", 1, header),
            "methods": methods,
            "has_init": has_init,
            "container": None,
            "items": [],
        }

    def tuple_header(self, cls: Any, short: str) -> str:
        """A named tuple as text."""
        hints = dict(getattr(cls, "__annotations__", {}))
        rows = []
        defaults = getattr(cls, "_field_defaults", {})
        for field in cls._fields:
            hint = hints.get(field, Tensor)
            text = hint if isinstance(hint, str) else type_text(hint)
            if isinstance(hint, typing.ForwardRef):
                text = hint.__forward_arg__
            if text is None:
                raise CompilerError(f"the field '{field}' of {cls.__name__} has a type that TorchScript does not have: {hint}")
            default = f" = {defaults[field]!r}" if field in defaults else ""
            rows.append(f"  {field} : {text}{default}\n")
        return f"class {short}(NamedTuple):\n" + "".join(rows)

    # --- functions ---

    def source(self, function: Callable[..., Any]) -> tuple[Any, ...]:
        """The text of a function with its scope."""
        text = function_text(function)
        return (scope_number(Scope(function)), text.file, text.first_line, text.text)

    def method_source(self, function: Callable[..., Any], bound: Any = None) -> tuple[Any, ...]:
        """The text of a method; what is left to Python becomes a call of it."""
        modifier = getattr(function, "__flambeau_modifier__", None) or getattr(function, "_torchscript_modifier", None)
        modifier = _modifier(modifier)
        if modifier == "unused":
            return self.unused(function)
        if modifier == "ignore":
            return self.ignored(function, bound)
        return self.source(function)

    def text_of(self, function: Callable[..., Any], name: str) -> tuple[Any, ...]:
        """A function under a name of its own."""
        return (name, self.method_source(function))

    def function(self, function: types.FunctionType) -> tuple[Any, ...]:
        """What a function of Python means: itself, compiled."""
        key = function
        if key not in self.functions:
            name = unique_name(function.__module__, function.__name__)
            self.functions[key] = ("function", self.text_of(function, name))
        return self.functions[key]

    def overloaded(self, function: Any, overloads: list[Any]) -> tuple[Any, ...]:
        """A function with several signatures and one body."""
        key = ("overloads", function)
        if key not in self.functions:
            texts = []
            body = function_text(function)
            for n, overload in enumerate(overloads):
                text = _with_signature(body, function_text(overload).node)
                name = unique_name(function.__module__, f"{function.__name__}__{n}")
                texts.append((name, (scope_number(Scope(function)), body.file, body.first_line, text)))
            self.functions[key] = ("overloads", texts)
        return self.functions[key]

    def unused(self, function: Callable[..., Any]) -> tuple[Any, ...]:
        """A function that raises when it is called."""
        text = function_text(function)
        head, _ = _head(text)
        body = f"{head}    raise NotImplementedError('Cannot run function marked unused: {function.__name__}')\n"
        return (scope_number(Scope(function)), text.file, text.first_line, body)

    def ignored(self, function: Callable[..., Any], bound: Any) -> tuple[Any, ...]:
        """A function that calls Python."""
        text = function_text(function)
        head, names = _head(text)
        if bound is not None or (names and names[0] == "self"):
            _ignored.append(function.__get__(bound) if bound is not None else function)
            names = names[1:]
        else:
            _ignored.append(function)
        given = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        call = f"__ops__.python.call({len(_ignored) - 1}, {given})"
        result = _result_text(text)
        if result in ("None", "NoneType"):
            body = f"{head}    {call}\n"
        else:
            body = f"{head}    return __cast__({result}, {call})\n"
        scope = Scope(function)
        scope.names.update(__ops__=_Path("ops"), __cast__=_Path("unchecked_cast"))
        return (scope_number(scope), text.file, text.first_line, body)


class _Path:
    """A name that generated text has for a path."""

    def __init__(self, path: str) -> None:
        self.__flambeau_path__ = path
        self.__name__ = path


class _Wrapped:
    """A function with what a decorator of Flambeau says of it."""

    def __init__(self, function: Any) -> None:
        self.function = function


def _has_source(function: Any) -> bool:
    try:
        function_text(function)
    except (OSError, FrontendError):
        return False
    return True


def _is_annotation(value: Any) -> bool:
    return getattr(value, "__name__", "") == "Future" and isinstance(value, type)


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_constant(v) for v in value)
    return value is None or type(value) in (bool, int, float, complex, str)


def _is_module_class(cls: type) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "nn") and issubclass(cls, torch.nn.Module):
        return True
    return hasattr(cls, "__flambeau_module__")


def is_module(value: Any) -> bool:
    """Whether a value is a module of PyTorch, or one of `flambeau.nn`."""
    return _is_module_class(type(value))


def _modifier(found: Any) -> str | None:
    text = getattr(found, "value", found)
    if text is None:
        return None
    text = str(text)
    if "unused" in text:
        return "unused"
    if "ignore" in text:
        return "ignore"
    if "export" in text:
        return "export"
    return None


def _head(text: Text) -> tuple[str, list[str]]:
    """The line of `def` with its type comment, and the names of the parameters."""
    node = text.node
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    names = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    comment = _type_comment(text)
    line = f"    # type: {comment}\n" if comment else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}:\n{line}", names


def _type_comment(text: Text) -> str | None:
    for line in text.text.splitlines()[:4]:
        stripped = line.strip()
        if stripped.startswith("# type:") and "->" in stripped:
            return stripped.removeprefix("# type:").strip()
    return None


def _result_text(text: Text) -> str:
    if text.node.returns is not None:
        return ast.unparse(text.node.returns)
    comment = _type_comment(text)
    return comment.split("->", 1)[1].strip() if comment else "Tensor"


def _with_signature(body: Text, signature: ast.FunctionDef, name: str | None = None) -> str:
    lines = body.text.splitlines(keepends=True)
    first = body.node.body[0].lineno - body.node.lineno
    returns = f" -> {ast.unparse(signature.returns)}" if signature.returns else ""
    head = f"def {name or body.node.name}({ast.unparse(signature.args)}){returns}:\n"
    return head + "".join(lines[first:])


# --- overloads ---

_overloads: dict[Any, list[Any]] = {}


def _overload_key(function: Any) -> Any:
    return (getattr(function, "__module__", None), getattr(function, "__qualname__", None))


def _overload(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declares a signature of the function of that name that follows."""
    _overloads.setdefault(_overload_key(function), []).append(function)
    return function


# --- modules ---

_SKIPPED = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_pre_hooks", "_backward_hooks",
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks", "_is_full_backward_hook", "training", "call_super_init", "dump_patches",
}  # fmt: skip


class ModuleType:
    """The class that modules of one kind become: attributes with types, constants, methods from source."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.cls = type(module)
        self.rows: list[tuple[str, str]] = []
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.constants: list[tuple[str, str, str]] = []
        self.children: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.name = ""
        self._collect()

    def _collect(self) -> None:
        module = self.module
        for name, value in module._parameters.items():
            self.rows.append((name, "NoneType" if value is None else "Tensor"))
            self.parameters.append(name)
        for name, value in module._buffers.items():
            self.rows.append((name, "Optional[Tensor]" if value is None else "Tensor"))
            self.buffers.append(name)
        hints = _class_hints(self.cls)
        constant_names = set(getattr(self.cls, "__constants__", ()))
        for name, hint in hints.items():
            if _is_final(hint):
                constant_names.add(name)
        self.rows.append(("training", "bool"))
        for name, value in module._modules.items():
            if value is None:
                self.rows.append((name, "NoneType"))
            elif isinstance(value, ScriptModule):
                self.children[name] = value
                self.rows.append((name, f"__host__.h{number_of(value)}"))
            else:
                inner = module_type(value)
                self.children[name] = inner
                self.rows.append((name, f"__host__.h{number_of(inner)}"))
        ignored = set(getattr(self.cls, "__jit_ignored_attributes__", ())) | set(getattr(self.cls, "__jit_unused_properties__", ()))
        for name, value in vars(module).items():
            if name in _SKIPPED or name in ignored or name.startswith("__"):
                continue
            self._attribute(name, value, hints.get(name), name in constant_names)
        for name in constant_names:
            if name in vars(module) or any(n == name for n, *_ in self.constants) or name in ignored:
                continue
            if name in module._modules or name in module._parameters:
                continue
            if hasattr(self.cls, name):
                self._attribute(name, getattr(self.cls, name), hints.get(name), True)

    def _attribute(self, name: str, value: Any, hint: Any, constant: bool) -> None:
        if type(value).__name__ == "Attribute" and hasattr(value, "type"):
            text = type_text(value.type)
            if text is not None:
                self.rows.append((name, text))
                return
        if constant:
            text = _constant_type(value)
            if text is not None:
                self.constants.append((name, text, repr(value)))
                return
        text = None
        if hint is not None and not isinstance(hint, str):
            text = type_text(hint)
        elif isinstance(hint, str):
            text = hint
        if text is None:
            text = value_type(value)
        if text is not None and (isinstance(value, (list, dict)) or not callable(value) or isinstance(value, ScriptObject)):
            self.rows.append((name, text))
            return
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, ScriptFunction)) or callable(value):
            return
        self.failed[name] = type(value).__name__

    def key(self) -> Any:
        """Modules with equal keys are of one type."""
        children = tuple((n, c.key() if isinstance(c, ModuleType) else c._c.class_name) for n, c in self.children.items())
        plain = tuple((n, t) for n, t in self.rows if n not in self.children)
        functions = tuple((n, id(v)) for n, v in vars(self.module).items() if callable(v) and n not in _SKIPPED)
        own = id(self.module) if self._leaves_to_python() else None
        if any("__host__" in t for _, t in plain):
            own = id(self.module)
        return (self.cls, plain, tuple(self.constants), children, functions, own)

    def _leaves_to_python(self) -> bool:
        for name in dir(self.cls):
            found = inspect.getattr_static(self.cls, name, None)
            mark = getattr(found, "__flambeau_modifier__", None) or getattr(found, "_torchscript_modifier", None)
            if _modifier(mark) == "ignore" and name not in _torch_module_names():
                return True
        return False

    def meaning(self, answers: Answers) -> tuple[Any, ...]:
        """The class as text."""
        answers.modules[self.name] = self
        short = self.name.rsplit(".", 1)[-1]
        lines = [f"class {short}(Module):\n"]
        lines.append(f"  __parameters__ = [{', '.join(repr(n) for n in self.parameters)}]\n")
        lines.append(f"  __buffers__ = [{', '.join(repr(n) for n in self.buffers)}]\n")
        for name, text in self.rows:
            lines.append(f"  {name} : {text}\n" if name.isidentifier() else f"  __annotations__[{name!r}] = {text}\n")
        for name, text, value in self.constants:
            lines.append(f"  {name} : Final[{text}] = {value}\n")
        scope = Scope()
        scope.globals = getattr(sys.modules.get(self.cls.__module__), "__dict__", {})
        container, items = self._items()
        return (
            "class",
            {
                "name": self.name,
                "header": (scope_number(scope), f"<class {short}>", 1, "".join(lines)),
                "methods": [text for f in self._entries() for text in self._texts(answers, f)],
                "has_init": False,
                "container": container,
                "items": items,
            },
        )

    def _texts(self, answers: Answers, function: Any) -> list[Any]:
        """A method's text; several where it has overloads."""
        overloads = self._overloads(function)
        if not overloads:
            return [answers.method_source(function, self.module)]
        body = function_text(function)
        scope = scope_number(Scope(function))
        texts = []
        for n, overload in enumerate(overloads):
            text = _with_signature(body, function_text(overload).node, f"{function.__name__}__{n}")
            texts.append((scope, body.file, body.first_line, text))
        return texts

    def _overloads(self, function: Any) -> list[Any]:
        own = _overloads.get(_overload_key(function), [])
        internal = sys.modules.get("torch._jit_internal")
        if own or internal is None:
            return own
        by_class = internal._overloaded_methods.get(internal._qualified_name(function), {})
        return by_class.get(self.cls.__name__, [])

    def _items(self) -> tuple[str | None, list[Any]]:
        names = {c.__name__ for c in self.cls.__mro__}
        if "ModuleDict" in names:
            return "dict", [(n, n) for n in self.module._modules]
        if "ModuleList" in names or "Sequential" in names:
            return "list", list(self.module._modules)
        return None, []

    def _entries(self) -> list[Any]:
        entries = []
        forward = getattr(self.cls, "forward", None)
        torch = sys.modules.get("torch")
        base = torch.nn.Module.forward if torch is not None and hasattr(torch, "nn") else None
        modifier = _modifier(getattr(forward, "__flambeau_modifier__", None) or getattr(forward, "_torchscript_modifier", None))
        own = vars(self.module).get("forward")
        if isinstance(own, types.MethodType):
            forward = own.__func__
        if forward is not None and forward is not base and getattr(forward, "__name__", "") != "_forward_unimplemented":
            if modifier not in ("ignore",) and not getattr(forward, "__flambeau_unimplemented__", False):
                entries.append(forward)
        for name in dir(self.cls):
            found = inspect.getattr_static(self.cls, name, None)
            mark = getattr(found, "__flambeau_modifier__", None) or getattr(found, "_torchscript_modifier", None)
            if _modifier(mark) == "export" and isinstance(found, types.FunctionType) and name != "forward":
                entries.append(found)
        return entries

    def member(self, answers: Answers, name: str) -> tuple[Any, ...] | None:
        """A method, property or value that was not declared."""
        if name in self.failed:
            kind = self.failed[name]
            raise CompilerError(
                f"Module '{self.cls.__name__}' has no attribute '{name}' (This attribute exists on the Python module, but we "
                f"failed to convert Python type: '{kind}' to a TorchScript type. Could not infer type of list element: "
                f"Cannot infer concrete type of torch.nn.Module. Its type was inferred; try adding a type annotation for the attribute.)"
            )
        own = vars(self.module).get(name)
        if isinstance(own, (types.FunctionType, types.BuiltinFunctionType, ScriptFunction)):
            return answers.meaning(own, name)
        found = inspect.getattr_static(self.cls, name, None)
        if isinstance(found, staticmethod):
            return ("static", answers.text_of(found.__func__, f"{self.name}.{name}"))
        if isinstance(found, property):
            setter = answers.source(found.fset) if found.fset else None
            return ("property", answers.source(found.fget), setter)
        if isinstance(found, types.FunctionType):
            return ("method", answers.method_source(found, self.module))
        if own is not None:
            return answers.meaning(own, name)
        if found is not None:
            return answers.meaning(found, name)
        return None

    def build(self, core: Program, seen: dict[int, Any]) -> Program:
        """An object of the class with the module's values."""
        return build_object(self.module, self, core, seen)


def _torch_module_names() -> set[str]:
    torch = sys.modules.get("torch")
    return set(dir(torch.nn.Module)) if torch is not None and hasattr(torch, "nn") else set()


def _is_final(hint: Any) -> bool:
    if isinstance(hint, str):
        return hint.startswith(("Final", "typing.Final", "torch.jit.Final", "flambeau.Final"))
    return hint is typing.Final or typing.get_origin(hint) is typing.Final


def _class_hints(cls: type) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        own = vars(base).get("__annotations__", {})
        if base.__module__.startswith("torch.nn.modules.module"):
            continue
        scope = getattr(sys.modules.get(base.__module__), "__dict__", {})
        for name, hint in own.items():
            if isinstance(hint, str):
                try:
                    hint = eval(hint, scope)  # noqa: S307 - what `typing.get_type_hints` does
                except Exception:
                    pass
            hints[name] = hint
    return hints


def _constant_type(value: Any) -> str | None:
    if value is None:
        return "NoneType"
    if type(value) is float and not math.isfinite(value):
        return None
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str")):
        if type(value) is kind:
            return name
    if isinstance(value, tuple) and value:
        inner = [_constant_type(v) for v in value]
        return None if None in inner else f"Tuple[{', '.join(str(t) for t in inner)}]"
    if isinstance(value, list) and value:
        inner = {_constant_type(v) for v in value}
        only = inner.pop() if len(inner) == 1 else None
        return f"List[{only}]" if only else None
    return None


_types: dict[Any, ModuleType] = {}


def module_type(module: Any) -> ModuleType:
    """The type of a module; modules that differ in values alone share one."""
    made = ModuleType(module)
    key = made.key()
    known = _types.get(key)
    if known is not None:
        made.name = known.name
        return made
    made.name = unique_name(type(module).__module__, type(module).__name__)
    _types[key] = made
    return made


def build_object(module: Any, kind: ModuleType, core: Program, seen: dict[int, Any]) -> Program:
    """The object of a module, with its parameters' memory shared."""
    if id(module) in seen:
        return seen[id(module)]
    made = core.new_object(kind.name)
    seen[id(module)] = made

    def shared(tensor: Any) -> Any:
        if tensor is None or isinstance(tensor, Tensor):
            return tensor
        if id(tensor) not in seen:
            own = seen[id(tensor)] = _flambeau.from_array(tensor)
            if _is_torch_subclass(type(tensor)):
                from ._autograd import remember

                remember(own, tensor)
        return seen[id(tensor)]

    for name, _ in kind.rows:
        if name in kind.children:
            child = kind.children[name]
            value: Any = child._c if isinstance(child, ScriptModule) else child.build(core, seen)
        elif name in module._parameters:
            value = shared(module._parameters[name])
        elif name in module._buffers:
            value = shared(module._buffers[name])
        elif name == "training":
            value = bool(getattr(module, "training", True))
        else:
            value = getattr(module, name)
            if type(value).__name__ == "Attribute" and hasattr(value, "value"):
                value = value.value
        made.set(name, value)
    return made


def script_module(module: Any) -> ScriptModule:
    """Compiles a module of PyTorch or `flambeau.nn`."""
    kind = module_type(module)
    answers = Answers()
    core = _flambeau.compile(answers, [kind.meaning(answers)])
    made = build_object(module, kind, core, {})
    torch = sys.modules.get("torch")
    is_torch = torch is not None and hasattr(torch, "nn") and isinstance(module, torch.nn.Module)
    return RecursiveScriptModule(made, "torch" if is_torch else None, module)


# --- the door ---


def _kind_of(function: Any) -> str | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    names = getattr(function, "__globals__", {})
    uses = any(value is torch or value is getattr(torch, "Tensor", None) for value in list(names.values()))
    return "torch" if uses else None


_scripted: "weakref.WeakKeyDictionary[Any, ScriptFunction]" = weakref.WeakKeyDictionary()


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
    if isinstance(obj, (ScriptModule, ScriptFunction, ScriptObject)):
        return obj
    if isinstance(obj, str):
        core = _flambeau.load_bytes(obj.encode(), "<string>")
        names = core.functions()
        return ScriptFunction(core, names[0]) if len(names) == 1 else _unit(core)
    if is_module(obj):
        return script_module(obj)
    if isinstance(obj, dict):
        return dict(obj)
    if isinstance(obj, list):
        return list(obj)
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
    meaning = answers.function(obj)
    if _modifier(getattr(obj, "__flambeau_modifier__", None)) in ("ignore", "unused"):
        return obj
    core = _flambeau.compile(answers, [meaning])
    made = ScriptFunction(core, meaning[1][0], _kind_of(obj), obj)
    _scripted[obj] = made
    return made


def _unit(core: Program) -> Any:
    from ._modules import CompilationUnit

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
