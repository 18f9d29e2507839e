"""Scripted modules, objects and functions: what `load` and `script` give."""

from __future__ import annotations

import os
import pathlib
from collections import OrderedDict
from typing import Any, Callable, Iterable, Iterator, Sequence

from . import _flambeau
from ._debug_state import GraphExecutorState
from ._dtypes import DTYPES
from ._explain import framed
from ._flambeau import Graph, Program, Tensor
from ._torch_module import ScriptMeta, fx_call, nn, run_hooked
from ._types import Schema

_OWN = frozenset({"_c", "_kind", "_python", "_names", "_name", "_wrapped", "_file_graph", "_called", "_holder", "_graph", "_types"})

# How many traces are written by all threads: calls ask for theirs only where there is one.
traces = 0


def _graph_of(owner: Any, core: Program, name: str) -> Graph:
    kept = vars(owner).get("_graph")
    if kept is None or kept[0] is not core:
        kept = (core, _typed(owner, core.graph(name)))
        object.__setattr__(owner, "_graph", kept)
    return kept[1]  # type: ignore[no-any-return]


def keep_types(traced: Any, examples: Sequence[Any]) -> None:
    """Keeps the types of the tensors that a function or module was traced with, which its graphs show."""
    value = next(_flambeau.parse_ir("graph(%x : Tensor):\n  return (%x)\n").inputs())
    types = [value.inferTypeFrom(example).type().str() if hasattr(example, "shape") else None for example in examples]
    object.__setattr__(traced, "_types", types)


def _typed(owner: Any, graph: Graph) -> Graph:
    types = vars(owner).get("_types")
    if types:
        for value, text in zip(reversed(graph.inputs()), reversed(types)):
            if text is not None and value.type().str() == "Tensor":
                value.setType(text)
        graph.run_pass("propagate-shapes")
    return graph


class ScriptFunction:
    """A compiled function. It is called like the function that it was made of."""

    def __init__(self, core: Program, name: str, kind: str | None = None, python: Any = None) -> None:
        self._c = core
        self._name = name
        self._kind = kind
        self._wrapped = python
        if python is not None:
            self.__doc__ = python.__doc__
            self.__wrapped__ = python

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if traces:
            from . import _trace

            if _trace.is_active():
                return _trace.call_scripted(self, args, kwargs)
        try:
            return self._c.call(self._name, args, kwargs or None, self._kind)
        except Exception:
            made = fx_call(self, None, args, kwargs)
            if made is None:
                raise
            return made

    @property
    def name(self) -> str:
        """Name without module."""
        return self._name.rsplit(".", 1)[-1]

    @property
    def __name__(self) -> str:  # type: ignore[override]
        return self.name

    @property
    def qualified_name(self) -> str:
        """Name with module."""
        return self._c.qualified_name(self._name)

    @property
    def graph(self) -> Graph:
        """The graph: one object, which shows edits when it is asked for again. Calls run what was compiled."""
        return _graph_of(self, self._c, self._name)

    @property
    def inlined_graph(self) -> Graph:
        """The graph with calls inlined."""
        return _typed(self, self._c.graph_after(self._name, "inline"))

    @property
    def code(self) -> str:
        """The function as TorchScript."""
        return self._c.code(self._name)[0]

    @property
    def code_with_constants(self) -> tuple[str, "ConstMap"]:
        """The function as TorchScript, with the values of `CONSTANTS`."""
        code, constants = self._c.code(self._name)
        return code, ConstMap(constants, self._kind)

    @property
    def schema(self) -> Schema:
        """Arguments and results."""
        return Schema(self._c.schema(self._name), self._c.schema_parts(self._name))

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that runs for such arguments."""
        self(*args, **kwargs)
        plan = self._c.graph_for(self._name, args, kwargs)
        return self._c.graph_after(self._name, "default") if plan is None else plan

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes an archive that `flambeau.load` and `torch.jit.load` read."""
        _write(f, _archive(self._c, _extra_files, self._c.qualified_name(self._name)))

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The archive as bytes."""
        return _archive(self._c, _extra_files, self._c.qualified_name(self._name))

    def _repr_html_(self) -> str:
        return self.graph._repr_html_()

    def __repr__(self) -> str:
        return f"<flambeau.ScriptFunction {self.name}>"

    def __reduce__(self) -> Any:
        return _load_function, (self.save_to_buffer(), self.name, self._kind)

    def __deepcopy__(self, memo: Any) -> "ScriptFunction":
        return self

    def get_debug_state(self) -> GraphExecutorState:
        """What the executor holds for this function: its plans, and what runs without one."""
        return GraphExecutorState(self._c.debug_state(self._name))


def _load_function(data: bytes, name: str, kind: str | None) -> ScriptFunction:
    core = _flambeau.load_bytes(data, name).root()
    return ScriptFunction(core, "forward", kind)


class ConstMap:
    """The constants of a function by name: `c0`."""

    def __init__(self, values: list[Any], kind: str | None) -> None:
        own = [value.torch() if kind == "torch" and isinstance(value, Tensor) else value for value in values]
        self.const_mapping = {f"c{n}": value for n, value in enumerate(own)}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["const_mapping"][name]
        except KeyError:
            raise AttributeError(name) from None


class ScriptMethod(ScriptFunction):
    """A compiled method with its object."""

    def __init__(self, core: Program, name: str, kind: str | None, owner: Any) -> None:
        super().__init__(core, name, kind)
        self.owner = owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if traces:
            from . import _trace

            if _trace.is_active():
                return _trace.call_method(self, args, kwargs)
        try:
            return self._c.call(self._name, args, kwargs or None, self._kind)
        except Exception:
            made = fx_call(self.owner, self._name, args, kwargs)
            if made is None:
                raise
            return made

    def __repr__(self) -> str:
        return f"<flambeau.ScriptMethod {self.name}>"


class ScriptObject:
    """An object of a scripted class."""

    def __init__(self, core: Program, kind: str | None = None) -> None:
        object.__setattr__(self, "_c", core)
        object.__setattr__(self, "_kind", kind)

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        core = self._c
        if name in (row[0] for row in core.attributes()):
            return core.get(name, self._kind)
        if name in core.functions():
            return ScriptMethod(core, name, self._kind, self)
        if name in core.properties():
            return core.get_property(name)
        constants = core.constants()
        if name in constants:
            return constants[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        elif name in (row[0] for row in self._c.attributes()):
            self._c.set(name, value)
        elif name in self._c.properties():
            self._c.call(f"__{name}_setter", (value,), None, None)
        else:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _magic(self, name: str, *args: Any) -> Any:
        if name not in self._c.functions():
            raise TypeError(f"'{self._c.class_name}' has no method '{name}'")
        return self._c.call(name, args, None, self._kind)

    def __len__(self) -> int:
        return self._magic("__len__")

    def __getitem__(self, key: Any) -> Any:
        return self._magic("__getitem__", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._magic("__setitem__", key, value)

    def __contains__(self, key: Any) -> bool:
        return self._magic("__contains__", key)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._c.call("__call__", args, kwargs or None, self._kind)

    def __add__(self, other: Any) -> Any:
        return self._magic("__add__", other)

    def __sub__(self, other: Any) -> Any:
        return self._magic("__sub__", other)

    def __mul__(self, other: Any) -> Any:
        return self._magic("__mul__", other)

    def __lt__(self, other: Any) -> bool:
        return self._magic("__lt__", other)

    def __gt__(self, other: Any) -> bool:
        return self._magic("__gt__", other)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, ScriptObject) and "__eq__" in self._c.functions():
            return self._magic("__eq__", other)
        return isinstance(other, ScriptObject) and self._c.same(other._c)

    def __hash__(self) -> int:
        return self._c.id()

    def __str__(self) -> str:
        return self._magic("__str__") if "__str__" in self._c.functions() else repr(self)

    def __repr__(self) -> str:
        return f"<flambeau.ScriptObject of {self._c.class_name}>"


class ScriptModule(metaclass=ScriptMeta):
    """A compiled module: methods, parameters, submodules. What `torch.jit.ScriptModule` is to PyTorch.

    A class of one's own with methods that `script_method` marks is compiled when its `__init__` is done.
    """

    _c: Program

    def __init__(self, core: Program | None = None, kind: str | None = None, python: Any = None) -> None:
        if core is None and self._holder is not None:
            return
        object.__setattr__(self, "_c", core)
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_python", python)
        # The program whose `forward` is known to be a compiled method, which calls need not look for again.
        object.__setattr__(self, "_called", None)

    # What takes attributes until `__init__` of a class of the user's own is done.
    _holder: Any = None
    # Whether hooks of Python run around calls.
    takes_hooks = False

    # --- calls ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        core = self._c
        if core is not None and self._called is core and not traces:
            try:
                return core.call("__call__", args, kwargs or None, self._kind)
            except Exception:
                made = fx_call(self, "__call__", args, kwargs)
                if made is None:
                    raise
                return made
        if self.__dict__.get("_forward_hooks") or self.__dict__.get("_forward_pre_hooks"):
            return run_hooked(self, args, kwargs)
        forward = self.forward
        if traces or type(forward) is not ScriptMethod:
            return forward(*args, **kwargs)
        object.__setattr__(self, "_called", core)
        return ScriptMethod(core, "__call__", self._kind, self)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if self._holder is not None:
            return getattr(self._holder, name)
        core = self._c
        if core is None:
            raise RuntimeError("the module has no code; use flambeau.script or flambeau.load")
        for row in core.attributes():
            if row[0] == name:
                return self._attribute(row)
        if name in core.functions():
            return ScriptMethod(core, name, self._kind, self)
        if name in core.properties():
            return core.get_property(name)
        constants = core.constants()
        if name in constants:
            return constants[name]
        python = self._python
        if python is not None and hasattr(python, name):
            found = getattr(python, name)
            ignored = getattr(getattr(type(python), name, None), "__flambeau_modifier__", None)
            if ignored == "ignore" and callable(found):
                return getattr(type(python), name).__get__(self)
            return found
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _attribute(self, row: Any) -> Any:
        name, _, is_parameter, is_buffer, _ = row
        if self._kind == "torch" and (is_parameter or is_buffer):
            value = self._c.get(name, None)
            return value if value is None else self._tensor(name, value)
        value = self._c.get(name, self._kind)
        if isinstance(value, ScriptModule):
            inner = getattr(self._python, name, None) if self._python is not None else None
            for own, kept in (("_kind", self._kind), ("_python", inner)):
                object.__setattr__(value, own, kept)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        elif self._holder is not None:
            setattr(self._holder, name, value)
        elif name in (row[0] for row in self._c.attributes()):
            if isinstance(value, ScriptModule):
                object.__setattr__(self, "_c", self._c.joined(value._c))
                value = value._c
            self._c.set(name, value)
        elif name in self._c.constants():
            raise AttributeError(
                f"Cannot mutate TorchScript constant value: '{name}'. Value: '{self._c.constants()[name]}'"
            )
        elif name in self._c.properties():
            self._c.call(f"__{name}_setter", (value,), None, None)
        else:
            object.__setattr__(self, "_called", None)
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"'{name}' of a compiled module cannot be deleted")

    def __dir__(self) -> Iterable[str]:
        rows = [row[0] for row in self._c.attributes()]
        return sorted({*object.__dir__(self), *rows, *self._c.functions()})

    def __bool__(self) -> bool:
        # As of any object of Python: modules without children would count as none else.
        return True

    def __len__(self) -> int:
        return len(list(self.children()))

    def __iter__(self) -> Iterator["ScriptModule"]:
        return iter(list(self.children()))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return list(self.children())[key]
        if isinstance(key, int):
            return list(self.children())[key]
        return dict(self.named_children())[key]

    def __contains__(self, key: Any) -> bool:
        return key in dict(self.named_children())

    # --- code ---

    @property
    def graph(self) -> Graph:
        """The graph of `forward`: one object, which shows edits when it is asked for again. Calls run what was compiled."""
        return _graph_of(self, self._c, "forward")

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward` with calls inlined."""
        return _typed(self, self._c.graph_after("forward", "inline"))

    @property
    def code(self) -> str:
        """`forward` as TorchScript."""
        return self._c.code("forward")[0]

    @property
    def code_with_constants(self) -> tuple[str, ConstMap]:
        """`forward` as TorchScript, with the values of `CONSTANTS`."""
        code, constants = self._c.code("forward")
        return code, ConstMap(constants, self._kind)

    @property
    def schema(self) -> Schema:
        """Arguments and results of `forward`."""
        return Schema(self._c.schema("forward"), self._c.schema_parts("forward"))

    @property
    def original_name(self) -> str:
        """The name of the class that the module was."""
        return (self._c.class_name or "").rsplit(".", 1)[-1]

    @property
    def qualified_name(self) -> str:
        """The name of the module's class."""
        return self._c.class_name or ""

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that runs for such arguments."""
        return self.forward.graph_for(*args, **kwargs)

    def _repr_html_(self) -> str:
        return framed(self._c.page(self.original_name))

    def get_debug_state(self) -> GraphExecutorState:
        """What the executor holds for `forward`: its plans, and what runs without one."""
        return self.forward.get_debug_state()

    # --- state ---

    def _rows(self, parameters: bool, prefix: str, recurse: bool, seen: set[int] | None) -> Iterator[tuple[str, Any]]:
        if self._holder is not None:
            held = self._holder.named_parameters if parameters else self._holder.named_buffers
            yield from held(prefix, recurse)
            return
        for name, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for attribute, _, is_parameter, is_buffer, _ in module._c.attributes():
                if not (is_parameter if parameters else is_buffer):
                    continue
                value = module._c.get(attribute, None)
                if value is None or seen is not None and value._id in seen:
                    continue
                if seen is not None:
                    seen.add(value._id)
                yield (f"{name}.{attribute}" if name else attribute), module._tensor(attribute, value)

    def _tensor(self, name: str, value: Any) -> Any:
        """A parameter as the caller's kind of tensor: PyTorch's own where the module was made of one."""
        if self._kind != "torch":
            return value
        from ._autograd import original

        return original(value, self._c.links(), any(row[0] == name and row[2] for row in self._c.attributes()))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Parameters with their names."""
        return self._rows(True, prefix, recurse, set() if remove_duplicate else None)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Parameters."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Buffers with their names."""
        return self._rows(False, prefix, recurse, set() if remove_duplicate else None)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Buffers."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, "ScriptModule"]]:
        """Submodules with their names."""
        if self._holder is not None:
            yield from self._holder.named_children()
            return
        for name, _, _, _, is_module in self._c.attributes():
            if is_module:
                yield name, getattr(self, name)

    def children(self) -> Iterator["ScriptModule"]:
        """Submodules."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "ScriptModule"]]:
        """The module and all below it, with their names."""
        memo = set() if memo is None else memo
        if remove_duplicate:
            if self._c.id() in memo:
                return
            memo.add(self._c.id())
        yield prefix, self
        for name, module in self.named_children():
            yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator["ScriptModule"]:
        """The module and all below it."""
        return (module for _, module in self.named_modules())

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> "OrderedDict[str, Any]":
        """Parameters and buffers by name, added to `destination` where one is given."""
        out: OrderedDict[str, Any] = OrderedDict() if destination is None else destination
        for name, module in self.named_modules(prefix=prefix.rstrip("."), remove_duplicate=False):
            for attribute, _, is_parameter, is_buffer, _ in module._c.attributes():
                if is_parameter or is_buffer:
                    value = module._c.get(attribute, None)
                    if value is not None:
                        value = module._tensor(attribute, value)
                        key = f"{name}.{attribute}" if name else attribute
                        out[key] = value if keep_vars else value.detach()
        return out

    def save_weights(self, path: Any) -> None:
        """Writes parameters and buffers to a `.safetensors` or `.npz` file, by the names of `state_dict()`."""
        self._c.write_weights(os.fspath(path))

    def load_weights(self, path: Any) -> None:
        """Takes parameters and buffers from such a file. Raises, and changes nothing, where names or sizes do not fit."""
        self._c.read_weights(os.fspath(path))

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copies values into parameters and buffers of the same names."""
        own = self.state_dict(keep_vars=True)
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        problems = []
        if strict and unexpected:
            problems.append(f"Unexpected key(s) in state_dict: {', '.join(repr(n).replace(chr(39), chr(34)) for n in unexpected)}. ")
        if strict and missing:
            problems.append(f"Missing key(s) in state_dict: {', '.join(repr(n).replace(chr(39), chr(34)) for n in missing)}. ")
        for name, target in own.items():
            if name in state_dict and tuple(target.shape) != tuple(state_dict[name].shape):
                problems.append(
                    f"size mismatch for {name}: copying a param with shape torch.Size({list(state_dict[name].shape)}) "
                    f"from checkpoint, the shape in current model is torch.Size({list(target.shape)})."
                )
        if problems:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(self.original_name, "\n\t".join(problems))
            )
        for name, target in own.items():
            if name in state_dict:
                value = state_dict[name]
                value = value.detach() if hasattr(value, "detach") else value
                if isinstance(target, Tensor) and not isinstance(value, Tensor):
                    value = _flambeau.from_array(value)
                elif not isinstance(target, Tensor) and isinstance(value, Tensor):
                    value = value.torch()
                target.detach().copy_(value)
        return _IncompatibleKeys(missing, unexpected)

    def define(self, src: str) -> None:
        """Adds methods, written as TorchScript; those of a class of one's own when its `__init__` is done."""
        if self._holder is not None:
            self._holder.__dict__.setdefault("_defined", []).append(src)
            return
        object.__setattr__(self, "_c", self._c.defined(src))

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Compiled modules take no new buffers; one that is there gets another value."""
        if self._holder is not None:
            self._holder.register_buffer(name, tensor, persistent)
            return
        if name not in (row[0] for row in self._c.attributes()):
            raise RuntimeError("a compiled module takes no new buffers")
        self._c.set(name, tensor)

    def register_parameter(self, name: str, param: Any) -> None:
        """Takes a parameter, while `__init__` of a class of one's own runs."""
        self._held("register_parameter")(name, param)

    def add_module(self, name: str, module: Any) -> None:
        """Takes a submodule, while `__init__` of a class of one's own runs."""
        self._held("add_module")(name, module)

    register_module = add_module

    def _held(self, method: str) -> Any:
        if self._holder is None:
            raise RuntimeError(f"{method} is not supported on ScriptModules")
        return getattr(self._holder, method)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        if self._holder is not None:
            return self._holder.training
        if "training" not in (row[0] for row in self._c.attributes()):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute 'training'")
        return self._c.get("training", None)  # type: ignore[no-any-return]

    @training.setter
    def training(self, mode: bool) -> None:
        self._c.set("training", mode)

    def train(self, mode: bool = True) -> "ScriptModule":
        """Sets training mode, of submodules as well."""
        for module in self.modules():
            if "training" in (row[0] for row in module._c.attributes()):
                module._c.set("training", bool(mode))
        return self

    def eval(self) -> "ScriptModule":
        """Sets evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> "ScriptModule":
        """Makes parameters require gradients or not."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of parameters."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.zero_()

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> "ScriptModule":
        for module in self.modules() if recurse else [self]:
            for name, _, is_parameter, is_buffer, _ in module._c.attributes():
                value = module._c.get(name, None) if is_parameter or is_buffer else None
                if value is not None:
                    module._replace(name, value, fn)
        return self

    def _replace(self, name: str, value: Any, fn: Callable[[Any], Any]) -> None:
        """Another tensor for a parameter or buffer; PyTorch's own, where there is one, takes its memory."""
        kept = self._tensor(name, value)
        made = fn(kept.detach())
        if isinstance(made, Tensor):
            self._c.set(name, made.requires_grad_(True) if value.requires_grad else made)
        elif made.data_ptr() != kept.data_ptr() or made.dtype != kept.dtype:
            from ._autograd import remember

            kept.data = made
            own = _flambeau.from_array(kept)
            remember(own, kept)
            self._c.links()[own._id] = kept
            self._c.set(name, own)

    def _floats(self, dtype: str) -> "ScriptModule":
        def to(t: Any) -> Any:
            return getattr(t, dtype)() if t.dtype.is_floating_point else t

        return self._apply(to)

    def float(self) -> "ScriptModule":
        """Parameters and buffers of floats as float32."""
        return self._floats("float")

    def double(self) -> "ScriptModule":
        """Parameters and buffers of floats as float64."""
        return self._floats("double")

    def half(self) -> "ScriptModule":
        """Parameters and buffers of floats as float16."""
        return self._floats("half")

    def bfloat16(self) -> "ScriptModule":
        """Parameters and buffers of floats as bfloat16."""
        return self._floats("bfloat16")

    def to(self, *args: Any, **kwargs: Any) -> "ScriptModule":
        """The module with parameters of another dtype; the device is the cpu."""
        for word in [*args, *kwargs.values()]:
            if str(word) in ("cpu", "None") or isinstance(word, bool):
                continue
            name = str(word).removeprefix("torch.")
            if name in DTYPES and name in ("float16", "float32", "float64", "bfloat16"):
                return self._floats({"float16": "half", "float32": "float", "float64": "double"}.get(name, name))
            raise RuntimeError(f"modules stay on the cpu: '{word}' is not supported")
        return self

    def cpu(self) -> "ScriptModule":
        """The module: it is on the cpu."""
        return self

    def apply(self, fn: Callable[["ScriptModule"], Any]) -> "ScriptModule":
        """Calls a function with each submodule, and the module last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def extra_repr(self) -> str:
        """What the text of the module says besides its submodules."""
        return f"original_name={self.original_name}"

    def _shown_as(self) -> str:
        """The class that the module's text names."""
        return "RecursiveScriptModule"

    def __repr__(self) -> str:
        lines = []
        for name, module in self.named_children():
            text = repr(module).replace("\n", "\n  ")
            lines.append(f"  ({name}): {text}")
        class_name = self._shown_as()
        if not lines:
            return f"{class_name}({self.extra_repr()})"
        body = "\n".join(lines)
        return f"{class_name}(\n  {self.extra_repr()}\n{body}\n)"

    # --- files ---

    def _follow(self) -> None:
        """Takes over which of PyTorch's parameters require gradients: they share memory, and nothing else."""
        for module in self.modules() if self._kind == "torch" else ():
            for name, _, is_parameter, _, _ in module._c.attributes():
                value = module._c.get(name, None) if is_parameter else None
                if value is not None and value.requires_grad != module._tensor(name, value).requires_grad:
                    value.requires_grad_(not value.requires_grad)

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes an archive that `flambeau.load` and `torch.jit.load` read."""
        self._follow()
        stem = pathlib.Path(f).stem if isinstance(f, (str, os.PathLike)) else "archive"
        _write(f, _archive(self._c, _extra_files, stem))

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The archive as bytes."""
        self._follow()
        return _archive(self._c, _extra_files, "archive")

    def _save_for_lite_interpreter(self, *args: Any, **kwargs: Any) -> None:
        """Refuses: mobile bytecode is read, not written."""
        raise NotImplementedError("bytecode for the lite interpreter is read, not written; save writes what every reader takes")

    _save_to_buffer_for_lite_interpreter = _save_for_lite_interpreter

    def freeze(self, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> "ScriptModule":
        """The module with its attributes as constants."""
        from ._files import freeze

        return freeze(self, preserved_attrs, optimize_numerics)

    def __reduce__(self) -> Any:
        return _load_module, (self.save_to_buffer(), self._kind)

    def __copy__(self) -> "ScriptModule":
        return RecursiveScriptModule(self._c.shallow(), self._kind)

    def __deepcopy__(self, memo: Any) -> "ScriptModule":
        made = _load_module(self.save_to_buffer(), self._kind)
        if self._c.is_linked():
            made._c.links()
        return made

    def copy(self) -> "ScriptModule":
        """A copy that shares parameters and submodules."""
        return self.__copy__()


class RecursiveScriptModule(ScriptModule):
    """A module that `script` or `load` made."""


class _IncompatibleKeys(tuple):
    """What `load_state_dict` found missing and unexpected."""

    def __new__(cls, missing: list[str], unexpected: list[str]) -> "_IncompatibleKeys":
        return super().__new__(cls, (missing, unexpected))

    @property
    def missing_keys(self) -> list[str]:
        """Names that the dictionary lacks."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """Names that the module lacks."""
        return self[1]

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def wrap(core: Program) -> Any:
    """The object of Python for an object of a program; of a class that was scripted one of that class, with the same values."""
    if core.is_module:
        return RecursiveScriptModule(core)
    from ._names import python_class

    cls = python_class(core.class_name)
    if cls is None:
        return ScriptObject(core)
    made = cls.__new__(cls)
    for name, *_ in core.attributes():
        setattr(made, name, core.get(name, None))
    return made


def _load_module(data: bytes, kind: str | None) -> ScriptModule:
    return _linked(RecursiveScriptModule(_flambeau.load_bytes(data, "archive").root(), kind))


def _linked(module: ScriptModule) -> ScriptModule:
    """A module that was loaded: its parameters are PyTorch's where that is imported."""
    if nn() is not None:
        module._kind = "torch"
    return module


def _archive(core: Program, extra: dict[str, Any] | None, name: str) -> bytes:
    if _flambeau.python_calls(core):
        raise RuntimeError(
            "Could not export Python function call. Remove calls to Python functions before export. "
            "Did you forget to add @script or @script_method annotation? If this is a nn.ModuleList, add it to __constants__"
        )
    files = [(file, data.encode() if isinstance(data, str) else bytes(data)) for file, data in (extra or {}).items()]
    return core.archive(files, name)


def _write(f: Any, data: bytes) -> None:
    if isinstance(f, (str, os.PathLike)):
        path = pathlib.Path(f)
        part = path.with_name(path.name + ".part")
        part.write_bytes(data)
        os.replace(part, path)
    else:
        f.write(data)
