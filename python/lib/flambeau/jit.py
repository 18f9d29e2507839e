"""`flambeau.jit`: the names of `torch.jit`, which `flambeau` itself has as well."""

from typing import Any, Final

import flambeau as _flambeau_package
from flambeau import *  # noqa: F403
from flambeau import (  # noqa: F401
    Attribute, CompilationUnit, CompileError, Error, Future, RecursiveScriptModule, ScriptFunction, ScriptModule,
    TracerWarning, annotate, export, fork, freeze, ignore, interface, is_scripting, is_tracing, isinstance, load, save,
    script, script_if_tracing, script_method, trace, trace_module, unused, wait, _fork, _overload, _unwrap_optional, _wait,
)  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(_flambeau_package, name)
