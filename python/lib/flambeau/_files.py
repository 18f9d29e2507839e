"""Models from files and back: `load`, `save`, `freeze`, and functions of TorchScript source."""

from __future__ import annotations

import copy
import io
import os
import pathlib
from typing import Any, BinaryIO

from . import _flambeau
from ._flambeau import Limits, Program
from ._modules import _OWN, RecursiveScriptModule, ScriptFunction, ScriptModule, _linked


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
    *,
    entry: str | None = None,
    mmap: bool = False,
    limits: Limits | None = None,
) -> Any:
    """Loads a model: an archive of `torch.jit.save`, a `.pt2` of `torch.export`, TorchScript source, graph text.

    No code of the file is executed by loading. Of source with several functions `entry` says which one is wanted; without
    it an object with all of them as attributes is given. Of a `.pt2` with several programs `entry` says which one is wanted;
    without it, and where none is called `model`, a dictionary of all of them is given. With `mmap` the tensors of an archive lie in the file, which all
    processes of a machine share and that must not change during that time. `limits` hold for loading, and for each call of what was loaded anew.
    """
    if limits is None:
        return _load(f, map_location, _extra_files, entry, mmap, None)
    with limits:
        return _load(f, map_location, _extra_files, entry, mmap, limits)


def _load(f: Any, map_location: Any, _extra_files: dict[str, Any] | None, entry: str | None, mmap: bool, limits: Limits | None) -> Any:
    """The same under limits that hold already."""
    if map_location is not None and str(map_location) not in ("cpu", "cpu:0"):
        raise RuntimeError(f"models are loaded to the cpu; map_location={str(map_location)!r} is not supported: give 'cpu' or nothing")
    core: Program
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
        path, data = os.fspath(f), b""
        is_exported = path.endswith(".pt2")
        if _extra_files or is_exported:
            data = pathlib.Path(f).read_bytes()
        several = _several(data, entry) if is_exported else None
        if several is not None:
            return {name: _load(f, None, None, name, False, limits) for name in several}
        chosen = entry if is_exported else None
        core = _flambeau.load_path(path, mmap) if chosen is None else _flambeau.load_path(path, mmap, chosen)
    else:
        data = f.read()
        if not data:
            raise RuntimeError("the buffer is empty: there is no model in it")
        title = str(getattr(f, "name", "<buffer>"))
        programs = _flambeau.exported_programs(data) if data.startswith(b"PK") else []
        several = _several(data, entry) if programs else None
        if several is not None:
            return {name: _load(io.BytesIO(data), None, None, name, False, limits) for name in several}
        core = _flambeau.load_bytes(data, title, entry) if programs and entry else _flambeau.load_bytes(data, title)
    if _extra_files:
        found = _flambeau.extra_files(data, list(_extra_files))
        for name, content in list(_extra_files.items()):
            # What the archive lacks is bytes, too, as in PyTorch.
            _extra_files[name] = found.get(name, content.encode() if isinstance(content, str) else content)
    if limits is not None:
        core = core.limited(limits)
    root = core.root()
    if root is not None:
        return _linked(RecursiveScriptModule(root))
    names = core.functions()
    if not names:
        raise RuntimeError(f"{getattr(f, 'name', f)} holds no function and no module")
    if entry is not None or len(names) == 1:
        return ScriptFunction(core, entry or names[0])
    return CompilationUnit(_core=core)


def _several(data: bytes, entry: str | None) -> list[str] | None:
    """The programs of a `.pt2` where all of them are wanted."""
    programs = _flambeau.exported_programs(data) if entry is None else []
    return programs if len(programs) > 1 and "model" not in programs else None


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a scripted module or function as an archive."""
    m.save(f, _extra_files=_extra_files)


def freeze(
    mod: ScriptModule, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> ScriptModule:
    """A copy of a module in evaluation mode with its attributes as constants, inlined and folded.

    `preserved_attrs` names attributes and methods that stay unchanged. Without `optimize_numerics` batch norm and the like
    are not folded into weights, which changes answers by rounding.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    copied = copy.deepcopy(mod)
    preserved = ",".join(preserved_attrs or ()).replace("\\", "").replace('"', "")
    # The number of dimensions that batch norm checks is known of what a convolution gives.
    passes = f'freeze{{preserve="{preserved}" numerics={"true" if optimize_numerics else "false"}}},peephole,constant-propagation,dce'
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
        """Takes the functions of a further text, which may call those that are there."""
        self._c = self._c.defined(lang) if self._c is not None else _flambeau.load_bytes(lang.encode(), "<string>")

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
