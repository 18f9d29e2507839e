"""Scripted modules, objects and functions: what `load` and `script` give."""

from __future__ import annotations

import copy
import io
import os
import pathlib
from collections import OrderedDict
from typing import Any, BinaryIO, Callable, Iterable, Iterator

from . import _flambeau
from ._explain import framed
from ._flambeau import Graph, Program, Tensor

_OWN = frozenset({"_c", "_kind", "_python", "_names", "_name", "_wrapped", "_file_graph", "_called"})

# How many traces are written by all threads: calls ask for theirs only where there is one.
traces = 0


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
        return self._c.call(self._name, args, kwargs or None, self._kind)

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
        """The graph."""
        return self._c.graph(self._name)

    @property
    def inlined_graph(self) -> Graph:
        """The graph with calls inlined."""
        return self._c.graph_after(self._name, "inline")

    @property
    def code(self) -> str:
        """The function as TorchScript."""
        return self._c.code(self._name)[0]

    @property
    def code_with_constants(self) -> tuple[str, "ConstMap"]:
        """The function as TorchScript, with the values of `CONSTANTS`."""
        code, constants = self._c.code(self._name)
        return code, ConstMap(constants)

    @property
    def schema(self) -> str:
        """Arguments and results."""
        return self._c.schema(self._name)

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that runs for such arguments."""
        self(*args, **kwargs)
        plans = self._c.plan_graphs(self._name)
        return plans[-1] if plans else self._c.graph_after(self._name, "default")

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

    def get_debug_state(self) -> Any:
        """The plans that calls made so far, as text."""
        return self._c.plan_report()


def _load_function(data: bytes, name: str, kind: str | None) -> ScriptFunction:
    core = _flambeau.load_bytes(data, name).root()
    return ScriptFunction(core, "forward", kind)


class ConstMap:
    """The constants of a function by name: `c0`."""

    def __init__(self, values: list[Any]) -> None:
        self.const_mapping = {f"c{n}": value for n, value in enumerate(values)}

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
        return self._c.call(self._name, args, kwargs or None, self._kind)

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


class ScriptModule:
    """A compiled module: methods, parameters, submodules. What `torch.jit.ScriptModule` is to PyTorch."""

    _c: Program

    def __init__(self, core: Program | None = None, kind: str | None = None, python: Any = None) -> None:
        object.__setattr__(self, "_c", core)
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_python", python)
        # The program whose `forward` is known to be a compiled method, which calls need not look for again.
        object.__setattr__(self, "_called", None)

    # --- calls ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        core = self._c
        if core is not None and self._called is core and not traces:
            return core.call("forward", args, kwargs or None, self._kind)
        forward = self.forward
        if type(forward) is ScriptMethod:
            object.__setattr__(self, "_called", core)
        return forward(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        core = self._c
        if core is None:
            raise RuntimeError("the module has no code; use flambeau.script or flambeau.load")
        for row in core.attributes():
            if row[0] == name:
                value = core.get(name, self._kind)
                if isinstance(value, ScriptModule):
                    value._kind = self._kind
                    inner = getattr(self._python, name, None) if self._python is not None else None
                    object.__setattr__(value, "_python", inner)
                return value
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

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        elif name in (row[0] for row in self._c.attributes()):
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
        """The graph of `forward`."""
        return self._c.graph("forward")

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward` with calls inlined."""
        return self._c.graph_after("forward", "inline")

    @property
    def code(self) -> str:
        """`forward` as TorchScript."""
        return self._c.code("forward")[0]

    @property
    def code_with_constants(self) -> tuple[str, ConstMap]:
        """`forward` as TorchScript, with the values of `CONSTANTS`."""
        code, constants = self._c.code("forward")
        return code, ConstMap(constants)

    @property
    def schema(self) -> str:
        """Arguments and results of `forward`."""
        return self._c.schema("forward")

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

    def get_debug_state(self) -> str:
        """The plans that calls made so far, as text."""
        return self._c.plan_report()

    # --- state ---

    def _rows(self, parameters: bool, prefix: str, recurse: bool, seen: set[int]) -> Iterator[tuple[str, Any]]:
        for name, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for attribute, _, is_parameter, is_buffer, _ in module._c.attributes():
                if not (is_parameter if parameters else is_buffer):
                    continue
                value = module._c.get(attribute, None)
                if value is None or id(value) in seen:
                    continue
                kept = module._tensor(attribute, value)
                yield (f"{name}.{attribute}" if name else attribute), kept

    def _tensor(self, name: str, value: Any) -> Any:
        """A parameter as the caller's kind of tensor: PyTorch's own where the module was made of one."""
        if self._kind == "torch" and self._python is not None:
            own = getattr(self._python, name, None)
            if own is not None:
                return own
        return value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Parameters with their names."""
        return self._rows(True, prefix, recurse, set())

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Parameters."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Buffers with their names."""
        return self._rows(False, prefix, recurse, set())

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Buffers."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, "ScriptModule"]]:
        """Submodules with their names."""
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

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> "OrderedDict[str, Any]":
        """Parameters and buffers by name."""
        out: OrderedDict[str, Any] = OrderedDict()
        for name, module in self.named_modules(prefix=prefix.rstrip(".")):
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

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Compiled modules take no new buffers; one that is there gets another value."""
        if name not in (row[0] for row in self._c.attributes()):
            raise RuntimeError("a compiled module takes no new buffers")
        self._c.set(name, tensor)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        rows = (row[0] for row in self._c.attributes())
        return self._c.get("training", None) if "training" in rows else True

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

    def _converted(self, to: Callable[[Any], Any]) -> "ScriptModule":
        for module in self.modules():
            for name, _, is_parameter, is_buffer, _ in module._c.attributes():
                if is_parameter or is_buffer:
                    value = module._c.get(name, None)
                    if value is not None and value.dtype.is_floating_point:
                        made = to(value.detach())
                        if is_parameter and value.requires_grad:
                            made.requires_grad_(True)
                        module._c.set(name, made)
        return self

    def float(self) -> "ScriptModule":
        """Parameters and buffers of floats as float32."""
        return self._converted(lambda t: t.float())

    def double(self) -> "ScriptModule":
        """Parameters and buffers of floats as float64."""
        return self._converted(lambda t: t.double())

    def half(self) -> "ScriptModule":
        """Parameters and buffers of floats as float16."""
        return self._converted(lambda t: t.half())

    def to(self, *args: Any, **kwargs: Any) -> "ScriptModule":
        """The module with parameters of another dtype; the device is the cpu."""
        for word in [*args, *kwargs.values()]:
            if str(word) in ("cpu", "None") or isinstance(word, bool):
                continue
            name = str(word).removeprefix("torch.")
            from ._tensors import DTYPES

            if name in DTYPES:
                return self._converted(lambda t: t.to(DTYPES[name]))
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

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes an archive that `flambeau.load` and `torch.jit.load` read."""
        stem = pathlib.Path(f).stem if isinstance(f, (str, os.PathLike)) else "archive"
        _write(f, _archive(self._c, _extra_files, stem))

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The archive as bytes."""
        return _archive(self._c, _extra_files, "archive")

    def freeze(self, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> "ScriptModule":
        """The module with its attributes as constants."""
        return freeze(self, preserved_attrs, optimize_numerics)

    def __reduce__(self) -> Any:
        return _load_module, (self.save_to_buffer(), self._kind)

    def __copy__(self) -> "ScriptModule":
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: Any) -> "ScriptModule":
        return _load_module(self.save_to_buffer(), self._kind)

    def copy(self) -> "ScriptModule":
        """A copy with its own parameters."""
        return self.__deepcopy__({})


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
    """The object of Python for an object of a program."""
    return RecursiveScriptModule(core) if core.is_module else ScriptObject(core)


def _load_module(data: bytes, kind: str | None) -> ScriptModule:
    return RecursiveScriptModule(_flambeau.load_bytes(data, "archive").root(), kind)


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


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
    *,
    entry: str | None = None,
    mmap: bool = False,
) -> Any:
    """Loads a model: an archive of `torch.jit.save`, a `.pt2` of `torch.export`, TorchScript source, graph text.

    No code of the file is executed by loading. Of source with several functions `entry` says which one is wanted; without
    it an object with all of them as attributes is given. With `mmap` the tensors of an archive lie in the file, which all
    processes of a machine share and nobody may change meanwhile.
    """
    if map_location is not None and "cuda" in str(map_location):
        raise RuntimeError("models are loaded to the cpu; map_location='cpu' or nothing")
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
        core = _flambeau.load_path(os.fspath(f), mmap)
        data = pathlib.Path(f).read_bytes() if _extra_files else b""
    else:
        data = f.read()
        core = _flambeau.load_bytes(data, getattr(f, "name", "<buffer>"))
    if _extra_files:
        for name, content in _flambeau.extra_files(data, list(_extra_files)).items():
            _extra_files[name] = content
    root = core.root()
    if root is not None:
        return RecursiveScriptModule(root)
    names = core.functions()
    if entry is not None or len(names) == 1:
        return ScriptFunction(core, entry or names[0])
    return CompilationUnit(_core=core)


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a scripted module or function as an archive."""
    m.save(f, _extra_files=_extra_files)


def freeze(
    mod: ScriptModule, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> ScriptModule:
    """A copy of a module in evaluation mode with its attributes as constants, inlined and folded.

    `preserved_attrs` names attributes and methods that stay as they are. Without `optimize_numerics` batch norm and the like
    are not folded into weights, which changes answers by rounding.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    copied = copy.deepcopy(mod)
    preserved = ",".join(preserved_attrs or ()).replace("\\", "").replace('"', "")
    passes = f'freeze{{preserve="{preserved}" numerics={"true" if optimize_numerics else "false"}}}'
    if optimize_numerics:
        passes += ",frozen-optimization"
    return RecursiveScriptModule(copied._c.after(passes), mod._kind)


class CompilationUnit:
    """Functions of TorchScript source, as attributes."""

    def __init__(self, lang: str | None = None, _core: Program | None = None, **kwargs: Any) -> None:
        core = _core if _core is not None else None
        if core is None and lang:
            core = _flambeau.load_bytes(lang.encode(), "<string>")
        self._c = core

    def define(self, lang: str) -> None:
        """Takes the functions of another text."""
        self._c = _flambeau.load_bytes(lang.encode(), "<string>")

    def __getattr__(self, name: str) -> ScriptFunction:
        if name in _OWN or self._c is None or name not in self._c.functions():
            raise AttributeError(f"'CompilationUnit' object has no attribute '{name}'")
        return ScriptFunction(self._c, name)

    def get_functions(self) -> list[ScriptFunction]:
        """All functions."""
        return [ScriptFunction(self._c, name) for name in self._c.functions()] if self._c else []

    def find_function(self, name: str) -> ScriptFunction | None:
        """A function by name."""
        return getattr(self, name, None)
