"""Small names of `torch.jit`: decorators, annotations, switches."""

from __future__ import annotations

import builtins
import contextlib
import functools
import typing
import warnings
from typing import Any, Callable, Iterator

from . import _flambeau


class ScriptWarning(Warning):
    """What Flambeau warns of."""


class Attribute(typing.NamedTuple):
    """A value with the type that a module's attribute is to have."""

    value: Any
    type: Any


def is_scripting() -> bool:
    """False in Python, true in a compiled program."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value; in a compiled program, of the type."""
    return the_value


def _unwrap_optional(x: Any) -> Any:
    """The value, which is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Whether a value is of a type, containers by what they hold."""
    types_ = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(_of_type(obj, one) for one in types_)


def _of_type(obj: Any, one: Any) -> bool:
    origin, arguments = typing.get_origin(one), typing.get_args(one)
    if origin is None:
        if one in (typing.List, typing.Dict, typing.Tuple, list, dict, tuple) and one not in (list, dict, tuple):
            raise RuntimeError(
                f"Attempted to use {one._name} without a contained type. Please add a contained type, e.g. {one._name}[int]"
            )
        return one is typing.Any or builtins.isinstance(obj, type(None) if one is None else one)
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        return any(_of_type(obj, a) for a in arguments)
    if origin is list:
        return builtins.isinstance(obj, list) and all(_of_type(x, arguments[0]) for x in obj)
    if origin is dict:
        return builtins.isinstance(obj, dict) and all(
            _of_type(k, arguments[0]) and _of_type(v, arguments[1]) for k, v in obj.items()
        )
    if origin is tuple:
        return builtins.isinstance(obj, tuple) and len(obj) == len(arguments) and all(map(_of_type, obj, arguments))
    return builtins.isinstance(obj, origin)


def export(fn: Any) -> Any:
    """Compiles a method of a module though `forward` does not call it."""
    fn.__flambeau_modifier__ = "export"
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Leaves a function to Python: compiled programs call it there."""
    if callable(drop):
        drop.__flambeau_modifier__ = "ignore"
        return drop
    dropped = bool(drop) or bool(kwargs.get("drop_on_export"))

    def decorate(fn: Any) -> Any:
        fn.__flambeau_modifier__ = "unused" if dropped else "ignore"
        return fn

    return decorate


def unused(fn: Any) -> Any:
    """Leaves a function out of compiled programs, which raise where they call it."""
    if builtins.isinstance(fn, property):
        for part in (fn.fget, fn.fset):
            if part is not None:
                part.__flambeau_modifier__ = "unused"
        return fn
    fn.__flambeau_modifier__ = "unused"
    return fn


class _Done:
    """What `fork` gives in Python, as `torch.Future`: a result, or an error, that is there already."""

    def __init__(self, value: Any = None, error: str | None = None) -> None:
        self._value, self._error = value, error

    def wait(self) -> Any:
        """The result. Raises the error of a callback that made this future."""
        if self._error is not None:
            raise RuntimeError(self._error)
        return self._value

    value = wait

    def done(self) -> bool:
        """True."""
        return True

    def then(self, callback: Callable[[_Done], Any]) -> _Done:
        """A future of what the callback gives for this one."""
        try:
            return _Done(callback(self))
        except Exception as error:
            return _Done(error=f"Got the following error when running the callback: {type(error).__name__}: {error}")

    def add_done_callback(self, callback: Callable[[_Done], Any]) -> None:
        """Calls the callback with this future."""
        callback(self)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function; in a compiled program, beside what follows."""
    return _Done(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """The result of `fork`."""
    return future.wait()


_fork, _wait = fork, wait


def script_method(fn: Any) -> Any:
    """Compiles a method of a module."""
    return export(fn)


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function when a trace first calls it."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        from . import _trace
        from ._script import script

        if not _trace.is_active():
            return fn(*args, **kwargs)
        return script(fn)(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """A module frozen for inference. Plans are made by calls, whichever way a module came."""
    from ._files import freeze

    # A frozen module has no mode.
    return freeze(mod.eval(), other_methods) if hasattr(mod, "training") else mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None) -> None:
    """Folds constants and, unless `optimize_numerics` is False, batch norm and sums into the weights of a frozen module."""
    passes = "frozen-optimization" if optimize_numerics else "remove-dropout,constant-propagation,dce"
    mod._c = mod._c.after(passes)


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Calls of this thread run programs as compiled where this is False: without passes, fusion and plans."""
    former = _flambeau.set_optimized(bool(should_optimize))
    try:
        yield
    finally:
        _flambeau.set_optimized(former)


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Chooses one of PyTorch's fusers. Flambeau has one, and says so."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")  # noqa: TRY002 - what torch.jit raises
    warnings.warn(f"Flambeau has one fuser, which fuses what '{name}' would fuse", ScriptWarning, stacklevel=3)
    yield


class strict_fusion:
    """In scripts, raises in the first call where the work within it is not one fusion group, and says what is not. Around eager calls: nothing."""

    def __init__(self) -> None:
        if not is_scripting():
            warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]
_planning = {"executor": True, "mode": True}


def _set_plan_limit() -> None:
    depth = sum(depth for _, depth in _strategy)
    behaviors = [behavior for behavior, depth in _strategy if depth > 0]
    # What stands behind the first DYNAMIC is for sizes that are open.
    first = behaviors.index("DYNAMIC") if "DYNAMIC" in behaviors else None
    own = None if first is None else sum([depth for _, depth in _strategy if depth > 0][:first])
    _flambeau.set_plan_limit(depth if all(_planning.values()) else 0, own)


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sets how many plans of a function are kept: the sum of the depths. Gives what was before.

    Kinds of arguments that differ in sizes alone have plans of their own first, as many as STATIC says; then one plan is made that leaves
    the sizes open which differ (DYNAMIC). Without DYNAMIC every kind has its own.
    """
    global _strategy
    for behavior, depth in strategy:
        if behavior not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {behavior}")
        if depth < 0:
            raise ValueError(f"a depth is not negative, got: {depth}")
    former, _strategy = _strategy, list(strategy)
    _set_plan_limit()
    return former


def set_plans_in_background(on: bool) -> bool:
    """Lets other threads make the plans of this thread's calls: a call runs without one until it is there. Gives what was before."""
    return _flambeau.set_plans_in_background(on)


def finish_plans(function: Any) -> None:
    """Waits until no other thread makes a plan of a module or function."""
    function._c.finish_plans()


def _switch(name: str, on: bool) -> bool:
    """Sets one of the two switches without which calls have no plans; gives what it was."""
    former, _planning[name] = _planning[name], bool(on)
    _set_plan_limit()
    return former


def enable_onednn_fusion(enabled: bool) -> None:
    """Switches oneDNN, which Flambeau does not use; a program that asks for it is warned."""
    if enabled:
        warnings.warn("Flambeau does not use oneDNN; its own fuser is at work", ScriptWarning, stacklevel=2)


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


def last_executed_optimized_graph() -> Any:
    """The graph of the plan that the function which this thread called last used last; of the function itself where it has no plan."""
    graph = _flambeau.last_graph()
    if graph is None:
        raise RuntimeError("No graph executor was run")
    return graph


_script_if_tracing = script_if_tracing


class _IgnoreContextManager:
    """Refuses: PyTorch rewrites the block into a function of its own."""

    def __init__(self, **kwargs: Any) -> None:
        raise NotImplementedError("a block that is left to Python is written as a function with @flambeau.ignore")


def export_opnames(m: Any) -> list[str]:
    """The ops that a module's methods name."""
    kinds = {node.kind() for name in m._c.functions() for node in m._c.graph(name).all_nodes()}
    return sorted(kind for kind in kinds if not kind.startswith("prim::"))


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Not supported: archives are written as zip files."""
    raise NotImplementedError("flatbuffers are read, not written; use save")


def jit_module_from_flatbuffer(f: Any) -> Any:
    """Loads a module from a flatbuffer."""
    from ._files import load

    return load(f)


def set_module(obj: Any, mod: str) -> None:
    """Sets the module of an object."""
    if not builtins.isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
