"""Flambeau: TorchScript without libtorch.

Models of `torch.jit.save` and `torch.export` are loaded and called with arrays of NumPy, PyTorch or any library with DLPack;
functions, classes and modules are compiled from their source. The names are those of `torch.jit` and, for tensors, of `torch`.
"""

from __future__ import annotations

import math as _math
import sys as _sys
from typing import Any, Callable, Final, Optional

from . import _flambeau
from ._extend import Dialect, Rule, RuleError, create_function, dialect, op, pass_, passes, pipeline, rule, run_passes, term
from ._flambeau import Block, CompileError, Error, Future, Graph, Node, Tensor, Use, Value, device, dtype, parse_ir
from ._flambeau import __version__, get_num_threads, set_num_threads
from ._flambeau import grad_enabled as is_grad_enabled
from ._explain import Explanation, diff, explain
from ._files import CompilationUnit, freeze, load, save
from ._limits import LimitError, Limits, limits
from ._modules import ConstMap, RecursiveScriptModule, ScriptFunction, ScriptMethod, ScriptModule, ScriptObject
from ._answers import _overload, _overload_method
from ._script import interface, script
from ._source import FrontendError, NotSupportedError, UnsupportedNodeError
from ._tensors import (
    Size, as_tensor, enable_grad, from_dlpack, from_numpy, function as _function, is_tensor, no_grad, ops,
    sized as _sized, tensor,
)  # fmt: skip
from ._dtypes import DTYPES as _DTYPES
from ._dtypes import dtype_of as _dtype_of
from ._containers import ScriptDict, ScriptList
from ._numbers import finfo, iinfo
from ._random import Generator, manual_seed
from ._types import Argument, Schema, Type
from ._trace import (
    TopLevelTracedModule, TracedModule, TracerWarning, TracingCheckError, is_tracing, trace, trace_module,
)  # fmt: skip
from ._jit import (
    Attribute, annotate, enable_onednn_fusion, export, fork, fuser, ignore, is_scripting, isinstance as isinstance, last_executed_optimized_graph,
    optimize_for_inference, optimized_execution, run_frozen_optimizations, script_if_tracing, script_method,
    set_fusion_strategy, set_plans_in_background, finish_plans, strict_fusion, unused, wait, _fork, _wait, _unwrap_optional, _script_if_tracing, _IgnoreContextManager, onednn_fusion_enabled,
    jit_module_from_flatbuffer, save_jit_module_to_flatbuffer, set_module, export_opnames, ScriptWarning,
)  # fmt: skip

uint8: dtype = _DTYPES["uint8"]
int8: dtype = _DTYPES["int8"]
int16: dtype = _DTYPES["int16"]
int32: dtype = _DTYPES["int32"]
int64: dtype = _DTYPES["int64"]
float16: dtype = _DTYPES["float16"]
float32: dtype = _DTYPES["float32"]
float64: dtype = _DTYPES["float64"]
complex32: dtype = _DTYPES["complex32"]
complex64: dtype = _DTYPES["complex64"]
complex128: dtype = _DTYPES["complex128"]
bool: dtype = _DTYPES["bool"]
qint8: dtype = _DTYPES["qint8"]
quint8: dtype = _DTYPES["quint8"]
qint32: dtype = _DTYPES["qint32"]
bfloat16: dtype = _DTYPES["bfloat16"]
quint4x2: dtype = _DTYPES["quint4x2"]
quint2x4: dtype = _DTYPES["quint2x4"]
float8_e5m2: dtype = _DTYPES["float8_e5m2"]
float8_e4m3fn: dtype = _DTYPES["float8_e4m3fn"]
float8_e5m2fnuz: dtype = _DTYPES["float8_e5m2fnuz"]
float8_e4m3fnuz: dtype = _DTYPES["float8_e4m3fnuz"]
uint16: dtype = _DTYPES["uint16"]
uint32: dtype = _DTYPES["uint32"]
uint64: dtype = _DTYPES["uint64"]
float8_e8m0fnu: dtype = _DTYPES["float8_e8m0fnu"]
float, double, half, long, int, short = (
    _DTYPES["float32"], _DTYPES["float64"], _DTYPES["float16"], _DTYPES["int64"], _DTYPES["int32"], _DTYPES["int16"],
)  # fmt: skip
cfloat, cdouble = _DTYPES["complex64"], _DTYPES["complex128"]
pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan
strided, sparse_coo = 0, 1
contiguous_format, preserve_format, channels_last, channels_last_3d = 0, 1, 2, 3
newaxis = None

zeros, ones, empty, rand, randn = _sized("zeros"), _sized("ones"), _sized("empty"), _sized("rand"), _sized("randn")


def __getattr__(name: str) -> Any:
    """Functions of `torch` are made when they are asked for: each op whose name is asked."""
    if name in ("_C", "jit", "nn", "linalg", "fft", "special", "frontend"):
        import importlib

        return importlib.import_module(f"flambeau.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _REFUSED:
        raise AttributeError(f"flambeau has no {name}: {_REFUSED[name]}")
    if _flambeau.known_op(f"aten::{name}") or name in _PYTHON_FUNCTIONS:
        made = _function(f"torch.{name}")
        globals()[name] = made
        return made
    if name == "from_torch":
        from ._torch import from_torch

        return from_torch
    raise AttributeError(f"module 'flambeau' has no attribute '{name}'")


# What `from flambeau import *` brings: all names but those that stand for Python's own (`int`, `isinstance`).
__all__ = [
    "Any", "Argument", "Attribute", "Block", "CompilationUnit", "CompileError", "ConstMap", "Dialect", "Error",
    "Explanation", "Final", "FrontendError", "Future", "Generator", "Graph", "LimitError", "Limits", "Node", "NotSupportedError", "Optional",
    "RecursiveScriptModule", "Rule", "RuleError", "Schema", "ScriptDict", "ScriptFunction", "ScriptList",
    "ScriptMethod", "ScriptModule", "ScriptObject", "ScriptWarning", "Size", "Tensor", "TopLevelTracedModule",
    "TracedModule", "TracerWarning", "TracingCheckError", "Type", "UnsupportedNodeError", "Use", "Value",
    "__version__", "annotate", "as_tensor", "bfloat16", "bool", "cdouble", "cfloat", "channels_last",
    "channels_last_3d", "complex128", "complex32", "complex64", "contiguous_format", "create_function", "device",
    "dialect", "diff", "double", "dtype", "empty", "enable_grad", "enable_onednn_fusion", "explain", "export",
    "export_opnames", "finfo", "float16", "float32", "float64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "fork", "freeze", "from_dlpack", "from_numpy", "fuser", "get_num_threads",
    "half", "ignore", "iinfo", "int16", "int32", "int64", "int8", "interface", "is_grad_enabled", "is_scripting",
    "is_tensor", "is_tracing", "jit_module_from_flatbuffer", "last_executed_optimized_graph", "limits", "load", "long",
    "manual_seed", "newaxis", "no_grad", "onednn_fusion_enabled", "ones", "op", "ops", "optimize_for_inference",
    "optimized_execution", "parse_ir", "pass_", "passes", "pipeline", "preserve_format", "qint32", "qint8",
    "quint2x4", "quint4x2", "quint8", "rand", "randn", "rule", "run_frozen_optimizations", "run_passes", "save",
    "save_jit_module_to_flatbuffer", "script", "script_if_tracing", "script_method", "set_fusion_strategy",
    "set_plans_in_background", "finish_plans",
    "set_module", "set_num_threads", "short", "sparse_coo", "strict_fusion", "strided", "tensor", "term", "trace",
    "trace_module", "uint16", "uint32", "uint64", "uint8", "unused", "wait", "zeros",
]  # fmt: skip

# Parts of `torch.jit` that stay PyTorch's, and why.
_REFUSED = {
    "_state": "it switches PyTorch's compiler off; here `script` is called, or is not",
    "_recursive": "it is the inside of PyTorch's compiler; flambeau.script takes modules",
}

# Functions of `torch` that PyTorch writes in Python.
_PYTHON_FUNCTIONS = frozenset(
    "align_tensors atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul einsum "
    "meshgrid norm split stft istft tensordot unique unique_consecutive lu broadcast_shapes".split()
)


def __dir__() -> list[str]:
    return sorted([*globals(), "jit", "nn", "linalg", "fft", "special", "frontend"])
