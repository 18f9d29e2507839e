"""What names of Python mean: the compiler asks an `Answers` object when it encounters them; the answers are tuples that
`src/host.rs` reads. Modules answer for themselves, in `_module_types`."""

from __future__ import annotations

import ast
import collections
import dataclasses
import enum
import inspect
import sys
import types
import typing
from typing import Any, Callable

from . import _flambeau
from ._flambeau import Tensor
from ._kinds import _is_torch
from ._modules import ScriptFunction, ScriptModule, ScriptObject
from ._names import (
    _TUPLES,
    _by_name,
    _function_path,
    _is_plain_class,
    _is_scriptable,
    _module_path,
    info_of,
    type_text,
)
from ._random import Generator
from ._scopes import CompilerError, Scope, _ignored, _numbered, _scopes, number_of, scope_number, unique_name
from ._source import FrontendError, NotSupportedError, Text, function_text

# --- the compiler's questions ---


class Described:
    """A thing that knows its own meaning."""

    def meaning(self, answers: Answers) -> tuple[Any, ...]:
        raise NotImplementedError


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
        if isinstance(thing, Described):
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
        if isinstance(value, types.ModuleType) and (path := _module_path(value)) in ("torch", "torch.nn"):
            inner = getattr(value, name, None)
            if isinstance(inner, type):
                return self.meaning(inner, name)
            if type(inner).__name__ == "memory_format":
                return ("constant", inner)
            if name == "ops":
                return ("value", number_of(inner), "module")
            if not isinstance(inner, types.ModuleType) or _module_path(inner):
                return ("path", f"{path}.{name}")
        operators = self.namespace(value, name)
        if operators is not None:
            return operators
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
            parts = [self.source(part) if part else None for part in (found.fget, found.fset)]
            for part in parts:
                if part is not None:
                    _scopes[part[0]].names = {**info_of(python).scope.names, **_scopes[part[0]].names}
            return ("property", *parts)
        if isinstance(found, types.FunctionType):
            return ("method", self.method_source(found))
        return None

    # --- meanings ---

    def meaning(self, value: Any, name: str) -> tuple[Any, ...] | None:
        """What a value of Python means in a script."""
        if isinstance(value, types.ModuleType):
            path = _module_path(value)
            # Of PyTorch itself scripts know much by name, but not all of its modules.
            return ("path", path) if path and path not in ("torch", "torch.nn") else ("value", number_of(value), "module")
        if isinstance(value, ScriptFunction):
            return ("compiled", value._c, value.qualified_name)
        if isinstance(value, ScriptModule):
            return ("value", number_of(value), type(value).__name__)
        if value is None or type(value) in (bool, int, float, complex, str):
            return ("constant", value)
        if isinstance(value, enum.Enum):
            # The class must be known before its members are.
            info_of(type(value))
            return ("constant", value)
        if type(value).__name__ in ("dtype", "device", "layout", "memory_format"):
            return ("constant", value)
        if isinstance(value, tuple) and not hasattr(value, "_fields") and _is_constant(value):
            return ("constant", value)
        if isinstance(value, type):
            return self.class_meaning(value, name)
        if is_operator(value):
            return self.operator(value)
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
            # What `script_if_tracing` wraps is compiled.
            return self.function(getattr(value, "__original_fn", value))
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

    def namespace(self, value: Any, name: str) -> tuple[Any, ...] | None:
        """What `torch.ops`, a namespace of it, or an operator in one has under a name."""
        torch = sys.modules.get("torch")
        ops = getattr(torch, "_ops", None)
        if ops is None:
            return None
        if value is torch.ops:
            inner = getattr(value, name)
            return ("value", number_of(inner), "module")
        if isinstance(value, ops._OpNamespace) and _flambeau.known_op(f"{value.name}::{name}"):
            return ("path", f"ops.{value.name}.{name}")
        return None

    def operator(self, value: Any) -> tuple[Any, ...]:
        """An operator of PyTorch: the op of that name, or a call of PyTorch where there is none."""
        from ._operators import called_operator, overloads_of

        overloads = overloads_of(value)
        if _flambeau.known_op(overloads[0]._schema.name):
            return ("path", f"ops.{overloads[0]._schema.name.replace('::', '.')}")
        if value not in self.functions:
            texts = [called_operator(overload) for overload in overloads]
            self.functions[value] = ("function", texts[0]) if len(texts) == 1 else ("overloads", texts)
        return self.functions[value]

    def repeated(self, value: Any) -> tuple[Any, ...] | None:
        """`_pair` and similar functions of `torch.nn.modules.utils`."""
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
            return ("exception", f"{cls.__module__}.{cls.__name__}")
        if cls is collections.OrderedDict:
            return ("path", "collections.OrderedDict")
        if cls is _flambeau.device:
            return ("path", "torch.device")
        text = None if _is_scriptable(cls) or _is_plain_class(cls) else type_text(cls)
        if _is_torch(cls, "device"):
            return ("path", "torch.device")
        legacy = cls.__module__ == "torch" and type(cls).__name__ == "tensortype"
        if legacy or _is_torch(cls, "Size") or _is_torch(cls, "Generator") or cls is Generator:
            return ("path", f"torch.{cls.__name__}")
        if text is not None:
            return ("path", "torch.Tensor") if text == "Tensor" else ("type", text)
        module = cls.__module__ or ""
        if cls.__name__ == "Future" and (module.startswith("flambeau") or module.startswith("torch")):
            return ("path", "typing.Future")
        if cls.__name__ in ("no_grad", "enable_grad", "record_function", "strict_fusion") and module.split(".")[0] in ("torch", "flambeau"):
            places = {"record_function": "torch.autograd.profiler.record_function", "strict_fusion": "torch.jit.strict_fusion"}
            return ("path", places.get(cls.__name__, f"torch.{cls.__name__}"))
        if cls.__name__ == "autocast" and module in ("torch.amp.autocast_mode", "torch.cuda.amp.autocast_mode", "torch.cpu.amp.autocast_mode"):
            return ("path", f"{module if module == 'torch.amp.autocast_mode' else module.removesuffix('.autocast_mode')}.autocast")
        if _is_module_class(cls) and "__flambeau_interface__" not in vars(cls):
            return ("value", number_of(cls), "type")
        if not cls.__flags__ & _HEAP_TYPE:
            # A class of an extension: it has no source.
            raise CompilerError(f"Unknown type name '{cls.__name__}'")
        return ("class", self.class_text(cls))

    def class_text(self, cls: type) -> dict[str, Any]:
        """A class as text."""
        info = info_of(cls)
        short = info.name.rsplit(".", 1)[-1]
        scope = scope_number(info.scope)
        methods: list[Any] = []
        properties: list[str] = []
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
            made = made_methods(cls)
            properties = [name for name, found in vars(cls).items() if _is_compiled_property(found)]
            for function in vars(cls).values():
                if isinstance(function, types.FunctionType):
                    if function.__name__ in made:
                        methods.append((scope, f"<dataclass {short}>", 1, made[function.__name__]))
                        continue
                    if function.__name__ in ("__eq__", "__hash__", "__repr__") and not _has_source(function):
                        continue
                    method = self.method_source(function)
                    _scopes[method[0]].names = {**info.scope.names, **_scopes[method[0]].names}
                    methods.append(method)
        return {
            "name": info.name,
            "header": (scope, f"<class {short}>", 1, header),
            "methods": methods,
            "properties": properties,
            "has_init": has_init,
            "container": None,
            "items": [],
        }

    def tuple_header(self, cls: Any, short: str) -> str:
        """A named tuple as text."""
        hints: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            hints.update(vars(base).get("__annotations__", {}))
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

    def library(self, function: types.FunctionType, path: str) -> tuple[Any, ...]:
        """A function of PyTorch's library that we have under a path: one with its parameters that calls ours."""
        text = function_text(function, runs=False)
        head, names = _head(text)
        scope = Scope(function)
        scope.names.update(__library__=_Path(path))
        body = f"{head}    return __library__({', '.join(names)})\n"
        name = unique_name(function.__module__, function.__name__)
        return ("function", (name, (scope_number(scope), text.file, text.first_line, body)))

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
        text = function_text(function, runs=False)
        head, _ = _head(text)
        body = f"{head}    raise NotImplementedError('Cannot run function marked unused: {function.__name__}')\n"
        return (scope_number(Scope(function)), text.file, text.first_line, body)

    def ignored(self, function: Callable[..., Any], bound: Any) -> tuple[Any, ...]:
        """A function that calls Python."""
        text = function_text(function, runs=False)
        head, names = _head(text)
        scope = Scope(function)
        if bound is not None or (names and names[0] == "self"):
            function, names = function.__get__(bound) if bound is not None else function, names[1:]
        body = head + call_of_python(function, names, _result_text(text), scope)
        return (scope_number(scope), text.file, text.first_line, body)


# The flag of classes that are made at run time, as those of Python are.
_HEAP_TYPE = 1 << 9


class _Path:
    """A name that generated text has for a path."""

    def __init__(self, path: str) -> None:
        self.__flambeau_path__ = path
        self.__name__ = path


def call_of_python(function: Any, names: list[str], result: str, scope: Scope) -> str:
    """The body of a function of programs that calls one of Python with its parameters, and checks that it gives a `result`."""
    _ignored.append(function)
    scope.names.update(__ops__=_Path("ops"), __like__=_Path("uninitialized"))
    given = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    gives = "" if result in ("None", "NoneType") else "return "
    return f"    {gives}__ops__.python.call({len(_ignored) - 1}, {given}, __like__({result}))\n"


class _Wrapped:
    """A function with what a decorator of Flambeau says of it."""

    def __init__(self, function: Any) -> None:
        self.function = function


def made_methods(cls: type) -> dict[str, str]:
    """The methods that `dataclasses.dataclass` made for a class, as text."""
    if not dataclasses.is_dataclass(cls):
        return {}
    given, lines = ["self"], []
    fields = dataclasses.fields(cls)
    for field in fields:
        text = field.type if isinstance(field.type, str) else type_text(field.type)
        if text is None:
            raise CompilerError(f"the field '{field.name}' of {cls.__name__} has a type that TorchScript does not have: {field.type}")
        if field.default_factory is not dataclasses.MISSING:
            raise NotSupportedError("Default factory initializers are not supported in TorchScript dataclasses")
        default = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
        if field.init:
            given.append(f"{field.name}: {text}{default}")
            lines.append(f"    self.{field.name} = {field.name}\n")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()\n")
    init = f"def __init__({', '.join(given)}):\n" + ("".join(lines) or "    pass\n")

    optional = {field.name for field in fields if type(None) in typing.get_args(field.type) or str(field.type).startswith("Optional[")}

    def differs(name: str) -> str:
        if name not in optional:
            return f"    if self.{name} != other.{name}:\n        return False\n"
        return (
            f"    own_{name} = self.{name}\n    other_{name} = other.{name}\n"
            f"    if own_{name} is not None and other_{name} is not None:\n"
            f"        if own_{name} != other_{name}:\n            return False\n"
            f"    elif own_{name} is not None or other_{name} is not None:\n        return False\n"
        )

    def compared(name: str, sign: str) -> str:
        names = [field.name for field in fields if field.compare]
        if sign == "==":
            body = "".join(map(differs, names)) + "    return True\n"
        else:
            tests = "".join(f"    if self.{n} != other.{n}:\n        return self.{n} {sign[0]} other.{n}\n" for n in names)
            body = tests + f"    return {len(sign) == 2}\n"
        return f"def {name}(self, other: {cls.__name__}) -> bool:\n{body}"

    made = {"__init__": init}
    signs = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
    for name, sign in signs.items():
        function = vars(cls).get(name)
        if isinstance(function, types.FunctionType) and not _has_source(function):
            made[name] = compared(name, sign)
    return made


def _is_compiled_property(found: Any) -> bool:
    """Whether a member is a property that is not left to Python."""
    if not isinstance(found, property):
        return False
    mark = getattr(found.fget, "__flambeau_modifier__", None) or getattr(found.fget, "_torchscript_modifier", None)
    return _modifier(mark) is None


def _has_source(function: Any) -> bool:
    try:
        function_text(function)
    except (OSError, FrontendError):
        return False
    return True


def is_operator(value: Any) -> bool:
    """Whether a value is an operator of PyTorch: `torch.ops.aten.relu`, one overload of it, or what `custom_op` made."""
    ops = getattr(sys.modules.get("torch"), "_ops", None)
    if ops is None:
        return False
    return isinstance(value, (ops.OpOverload, ops.OpOverloadPacket)) or type(value).__name__ == "CustomOpDef"


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
    if first == 0:
        # The body stands on the line of `def`.
        return head + "".join(f"    {line}\n" for statement in body.node.body for line in ast.unparse(statement).splitlines())
    return head + "".join(lines[first:])


# --- overloads ---

_overloads: dict[Any, list[Any]] = {}


def _overload_key(function: Any) -> Any:
    return (getattr(function, "__module__", None), getattr(function, "__qualname__", None))


def _overload_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declares a signature of the method of that name that follows."""
    return _overload(function)


def _overload(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declares a signature of the function of that name that follows."""
    _overloads.setdefault(_overload_key(function), []).append(function)
    return function
