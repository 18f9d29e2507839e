"""The classes that modules of Python become: attributes with types, constants, methods from source."""

from __future__ import annotations

import inspect
import math
import sys
import types
import typing
from typing import Any

from . import _flambeau
from ._answers import Answers, Described, _modifier, _overload_key, _overloads, _with_signature
from ._flambeau import Program, Tensor
from ._kinds import _is_torch, _is_torch_subclass
from ._modules import RecursiveScriptModule, ScriptFunction, ScriptMethod, ScriptModule, ScriptObject
from ._names import type_text, value_type
from ._scopes import CompilerError, Scope, number_of, scope_number, unique_name
from ._source import function_text
from ._torch_module import nn

# --- modules ---

_SKIPPED = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_pre_hooks", "_backward_hooks",
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks", "_is_full_backward_hook", "training", "call_super_init", "dump_patches",
}  # fmt: skip


class ModuleType(Described):
    """The class that modules of one kind become: attributes with types, constants, methods from source."""

    def __init__(self, module: Any, cls: type | None = None) -> None:
        self.module = module
        self.cls = cls or type(module)
        self.rows: list[tuple[str, str]] = []
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.constants: list[tuple[str, str, str]] = []
        self.children: dict[str, Any] = {}
        self.failed: dict[str, tuple[str, str]] = {}
        self.pre_hooks = self._hooks("_forward_pre_hooks")
        self.hooks = self._hooks("_forward_hooks")
        self.name = ""
        self._collect()

    def _hooks(self, kind: str) -> list[Any]:
        """Hooks in the order in which they run. Two of one name must be the same function."""
        found = list(getattr(self.module, kind, {}).values())
        named: dict[str, Any] = {}
        for hook in found:
            what = "Hook" if kind == "_forward_hooks" else "Pre-hook"
            if not hasattr(hook, "__name__"):
                raise RuntimeError(
                    f"{what} of {self.cls.__name__} is an object of {type(hook).__name__}: only functions can be compiled as hooks."
                    " Trace the module, or take the hook away."
                )
            known = named.setdefault(hook.__name__, hook)
            if known is not hook:
                raise RuntimeError(
                    f"{what} '{hook.__name__}' on {self.cls.__name__} has at least two different python definitions."
                    " Please use unique names for all hooks."
                )
        return found

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
                continue
            inner = value if isinstance(value, ScriptModule) else module_type(value)
            self.children[name] = inner
            hint = hints.get(name)
            # An attribute that is of an interface takes other modules later.
            is_open = isinstance(hint, type) and "__flambeau_interface__" in vars(hint)
            self.rows.append((name, f"__host__.h{number_of(hint if is_open else inner)}"))
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
        is_object = text is not None and "__host__" in text
        if text is not None and (is_object or isinstance(value, (list, dict)) or not callable(value) or isinstance(value, ScriptObject)):
            self.rows.append((name, text))
            return
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, ScriptFunction)) or callable(value):
            return
        self.failed[name] = (type(value).__name__, _why_no_type(value))

    def below(self) -> list[Any]:
        """The types of all modules below, once each: where an attribute is of an interface nothing else names them."""
        found: list[Any] = []
        for child in self.children.values():
            for inner in [child, *(child.below() if isinstance(child, ModuleType) else [])]:
                if all(inner is not known for known in found):
                    found.append(inner)
        return found

    def key(self) -> Any:
        """Modules with equal keys are of one type."""
        children = tuple((n, c.key() if isinstance(c, ModuleType) else c._c.class_name) for n, c in self.children.items())
        plain = tuple((n, t) for n, t in self.rows if n not in self.children)
        functions = tuple((n, id(v)) for n, v in vars(self.module).items() if callable(v) and n not in _SKIPPED)
        own = id(self.module) if self._leaves_to_python() else None
        if any("__host__" in t for _, t in plain):
            own = id(self.module)
        hooks = tuple(id(hook) for hook in [*self.pre_hooks, None, *self.hooks])
        return (self.cls, plain, tuple(self.constants), children, functions, hooks, own)

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
        methods = {function.__name__ for function in self._entries()}
        for hook in [*self.hooks, *self.pre_hooks]:
            if hook.__name__ in methods:
                raise RuntimeError(
                    f"Can't define hook: {hook.__name__} on class: {self.name} because a method or hook with that name already exists."
                )
        lines = [f"class {short}(Module):\n"]
        lines.append(f"  __parameters__ = [{', '.join(repr(n) for n in self.parameters)}]\n")
        lines.append(f"  __buffers__ = [{', '.join(repr(n) for n in self.buffers)}]\n")
        for kind, hooks in (("__forward_pre_hooks__", self.pre_hooks), ("__forward_hooks__", self.hooks)):
            if hooks:
                lines.append(f"  {kind} = [{', '.join(repr(hook.__name__) for hook in hooks)}]\n")
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
                "methods": [
                    *(text for f in self._entries() for text in self._texts(answers, f)),
                    *(answers.source(hook) for hook in dict.fromkeys([*self.hooks, *self.pre_hooks])),
                ],
                "properties": [],
                "has_init": False,
                "container": container,
                "items": items,
            },
        )

    def _texts(self, answers: Answers, function: Any) -> list[Any]:
        """A method's text; several where it has overloads."""
        # Each overload has a body of its own, or all of them have the function's.
        bodies = [getattr(self.cls, name) for name in self._named_overloads(function.__name__)]
        overloads = bodies or self._overloads(function)
        if not overloads:
            return [answers.method_source(function, self.module)]
        texts = []
        for n, overload in enumerate(overloads):
            of = overload if bodies else function
            body = function_text(of)
            text = _with_signature(body, function_text(overload).node, f"{function.__name__}__{n}")
            texts.append((scope_number(Scope(of)), body.file, body.first_line, text))
        return texts

    def _named_overloads(self, name: str) -> list[str]:
        """The methods that a call of that name may mean, by the class's `__overloads__`."""
        return getattr(self.cls, "__overloads__", {}).get(name, [])  # type: ignore[no-any-return]

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
        if "ParameterDict" in names:
            return "dict", [(n, n) for n in self.module.keys()]
        if "ParameterList" in names:
            return "list", [str(n) for n in range(len(self.module))]
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
            if (modifier not in ("ignore",) or self._named_overloads("forward")) and not getattr(forward, "__flambeau_unimplemented__", False):
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
            kind, why = self.failed[name]
            raise CompilerError(
                f"Module '{self.cls.__name__}' has no attribute '{name}' (This attribute exists on the Python module, but we "
                f"failed to convert Python type: '{kind}' to a TorchScript type. {why}. Its type was inferred; try adding a type "
                f"annotation for the attribute.)"
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
            if self._overloads(found) or self._named_overloads(name):
                return ("methods", self._texts(answers, found))
            return ("method", answers.method_source(found, self.module))
        if own is not None:
            return answers.meaning(own, name)
        if found is not None:
            return answers.meaning(found, name)
        return None

    def build(self, core: Program, seen: dict[int, Any]) -> Program:
        """An object of the class with the module's values."""
        return build_object(self.module, self, core, seen)


def _why_no_type(value: Any) -> str:
    """Why a value has no type, in PyTorch's wording."""
    if isinstance(value, (list, dict)) and not value:
        return "List trace inputs must have elements" if isinstance(value, list) else "Dictionary inputs must have entries"
    parts = [value] if isinstance(value, list) else [list(value), list(value.values())] if isinstance(value, dict) else []
    for part in parts:
        kinds = list(dict.fromkeys(value_type(item) or type(item).__name__ for item in part))
        if len(kinds) > 1:
            of = "List inputs to traced functions must have consistent element type"
            what = of if isinstance(value, list) else "Dictionary inputs to traced functions must have consistent type"
            return f"{what}. Found {kinds[0]} and {kinds[1]}"
    if isinstance(value, list):
        return f"Could not infer type of list element: {_why_no_type(value[0])}"
    torch_nn = nn()
    if torch_nn is not None and isinstance(value, torch_nn.Module):
        return "Cannot infer concrete type of torch.nn.Module"
    return (
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of traced functions, "
        f"but instead got value of type {type(value).__name__}."
    )


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


def module_type(module: Any, cls: type | None = None) -> ModuleType:
    """The type of a module, or of one whose methods are those of another class; modules that differ in values alone share one."""
    made = ModuleType(module, cls)
    key = made.key()
    known = _types.get(key)
    if known is not None:
        made.name = known.name
        return made
    made.name = unique_name(made.cls.__module__, made.cls.__name__)
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
            if _is_torch(type(tensor), "Tensor") or _is_torch_subclass(type(tensor)):
                from ._autograd import remember

                remember(own, tensor)
                core.links()
        return seen[id(tensor)]

    for name, _ in kind.rows:
        if name in kind.children:
            child = kind.children[name]
            value: Any = child._c if isinstance(child, ScriptModule) else child.build(core, seen)
            if isinstance(child, ScriptModule) and child._kind == "torch":
                # Its parameters are PyTorch's, which record gradients from the first call on.
                core.links()
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


def _compiled(module: Any, kind: ModuleType) -> Program:
    answers = Answers()
    wanted = [kind.meaning(answers), *(answers.numbered(number_of(inner)) for inner in kind.below())]
    core = _flambeau.compile(answers, wanted)
    return build_object(module, kind, core, {})


def script_built(cls: type, form: type, args: Any, kwargs: Any) -> ScriptModule:
    """An object of a user's class that derives from `ScriptModule`: what `__init__` sets goes to a module of PyTorch, which is
    compiled with the class's methods."""
    torch_nn = nn()
    if torch_nn is None:
        raise RuntimeError(f"{cls.__name__} derives from ScriptModule, whose parameters and submodules need PyTorch: import torch")
    made = form.__new__(form)
    holder = torch_nn.Module()
    for name, value in (("_holder", holder), ("_c", None), ("_kind", "torch"), ("_python", holder), ("_called", None)):
        object.__setattr__(made, name, value)
    made.__init__(*args, **kwargs)  # type: ignore[misc]
    defined = holder.__dict__.pop("_defined", [])
    core = _compiled(holder, module_type(holder, cls))
    for text in defined:
        core = core.defined(text)
    object.__setattr__(made, "_c", core)
    object.__setattr__(made, "_holder", None)
    # Under the names of the methods of Python stand those that were compiled.
    for name in core.functions():
        if not isinstance(getattr(type(made), name, None), property):
            object.__setattr__(made, name, ScriptMethod(core, name, "torch", made))
    return made


def script_module(module: Any) -> ScriptModule:
    """Compiles a module of PyTorch or `flambeau.nn`."""
    made = _compiled(module, module_type(module))
    torch = sys.modules.get("torch")
    is_torch = torch is not None and hasattr(torch, "nn") and isinstance(module, torch.nn.Module)
    return RecursiveScriptModule(made, "torch" if is_torch else None, module)
