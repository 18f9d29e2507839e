"""Scripted modules as modules of PyTorch: where PyTorch is imported they stand in its modules, optimizers and containers."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any, Callable

_forms: dict[type, type] = {}


class ScriptMeta(type):
    """Classes of scripted modules. An object of one is a module of PyTorch too where that is imported; an object of a class that
    a user derived is compiled when its `__init__` is done."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = form(cls)
        if _is_own(cls):
            return type.__call__(made, *args, **kwargs)
        from ._module_types import script_built

        return script_built(cls, made, args, kwargs)


def _is_own(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "flambeau"


def nn() -> Any:
    """`torch.nn` where PyTorch is imported, else None."""
    torch = sys.modules.get("torch")
    return getattr(torch, "nn", None)


def form(cls: type) -> type:
    """The class with PyTorch's module as a further base."""
    torch_nn = nn()
    if torch_nn is None or issubclass(cls, torch_nn.Module):
        return cls
    if cls not in _forms:
        names = {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            # A method of the program, where PyTorch's module has one that only raises.
            **({} if hasattr(cls, "forward") else {"forward": property(lambda self: self.__getattr__("forward"))}),
            "_parameters": property(lambda self: _values(self, 2)),
            "_buffers": property(lambda self: _values(self, 3)),
            "_modules": property(lambda self: OrderedDict(self.named_children())),
            **{name: OrderedDict() for name in _EMPTY},
            "_non_persistent_buffers_set": frozenset(),
            "_is_full_backward_hook": None,
            **_methods(cls, torch_nn.Module),
        }
        _forms[cls] = ScriptMeta(cls.__name__, (cls, torch_nn.Module), names)
    return _forms[cls]


# What a module of PyTorch has in each object.
_EMPTY = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip

# Methods of PyTorch's modules that work on compiled ones as they are.
_TAKEN = {
    "_get_name", "_load_from_state_dict", "_named_members", "_save_to_state_dict", "_slow_forward", "_tracing_name", "add_module",
    "get_extra_state", "register_module", "register_parameter", "set_extra_state", "share_memory", "type", "_call_impl",
    "_wrapped_call_impl", "_get_backward_hooks", "_maybe_warn_non_full_backward_hook", "get_parameter", "get_buffer",
    "get_submodule",
}  # fmt: skip


def _methods(cls: type, base: type) -> dict[str, Callable[..., Any]]:
    """What compiled modules have instead of methods of PyTorch's modules: refusals, but for hooks where the class takes them."""

    def refused(name: str) -> Callable[..., Any]:
        def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"{name} is not supported on ScriptModules")

        return refuse

    def hooking(name: str) -> Callable[..., Any]:
        def register(self: Any, *args: Any, **kwargs: Any) -> Any:
            for kind in _EMPTY:
                if kind not in self.__dict__:
                    object.__setattr__(self, kind, OrderedDict())
            object.__setattr__(self, "_called", None)
            return getattr(base, name)(self, *args, **kwargs)

        return register

    own = {name for c in cls.__mro__ for name in vars(c) if c is not object}
    made = {}
    for name, found in vars(base).items():
        if not callable(found) or name.startswith("__") or name in own or name in _TAKEN or name == "forward":
            continue
        takes = getattr(cls, "takes_hooks", False) and name.startswith("register_forward")
        made[name] = hooking(name) if takes else refused(name)
    return made


def _values(module: Any, column: int) -> "OrderedDict[str, Any]":
    """Parameters (2) or buffers (3) of a module without those below it."""
    rows = ((row[0], module._c.get(row[0], None)) for row in module._c.attributes() if row[column])
    return OrderedDict((name, value if value is None else module._tensor(name, value)) for name, value in rows)


def fx_call(target: Any, name: str | None, args: Any, kwargs: Any) -> Any:
    """The node of a call in a graph that FX traces; None where no argument is one of FX's. `name` is a method's, of `target`."""
    fx = getattr(sys.modules.get("torch"), "fx", None)
    given = [*args, *kwargs.values()]
    proxy = next((value for value in given if fx is not None and isinstance(value, fx.Proxy)), None)
    if proxy is None:
        return None
    tracer = proxy.tracer
    if name is None:
        return tracer.create_proxy("call_function", target, tuple(args), kwargs)
    if name == "__call__":
        return tracer.create_proxy("call_module", tracer.path_of_module(target), tuple(args), kwargs)
    return tracer.create_proxy("call_method", name, (target, *args), kwargs)


def run_hooked(module: Any, args: Any, kwargs: Any) -> Any:
    """A call of a traced module with its hooks of Python."""
    return nn().Module._call_impl(module, *args, **kwargs)
