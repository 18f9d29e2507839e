"""Whether a trace does what the function does: its answers beside the function's, and a second trace beside the first."""

from __future__ import annotations

import contextlib
import difflib
import warnings
from typing import Any, Callable, Iterator

from ._kinds import is_tensor
from ._sizes import TracerWarning
from ._trace_text import Constant, Trace, leaves


class TracingCheckError(Exception):
    """A trace that another run of the function does not give."""

    def __init__(self, graph_diff_error: str | None, tensor_compare_error: str | None, extra_msg: str | None = None) -> None:
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += extra_msg + "\n"
        if graph_diff_error is not None:
            self.message += "ERROR: Graphs differed across invocations!\n" + _indented(graph_diff_error)
        if tensor_compare_error is not None:
            self.message += (
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that the "
                "tracer has encountered untraceable code.\n" + _indented(tensor_compare_error)
            )
        super().__init__(self.message)


def _indented(text: str) -> str:
    return "".join(f"\t{line}\n" for line in text.splitlines())


def cloned(value: Any) -> Any:
    """A value with copies of its tensors."""
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(map(cloned, value))
    if isinstance(value, dict):
        return {k: cloned(v) for k, v in value.items()}
    return value


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """A context without warnings: the first trace gave them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_outputs(traced: Callable[..., Any], func: Callable[..., Any], inputs: tuple[Any, ...], tolerance: float) -> None:
    """Compares the trace with the function, on copies of the inputs; warns where they differ."""
    wanted = list(leaves(func(*map(cloned, inputs))))
    found = list(leaves(traced(*map(cloned, inputs))))
    for n, (want, have) in enumerate(zip(wanted, found)):
        if not is_tensor(want):
            continue
        problem = _difference(want.detach(), have.detach(), tolerance)
        if problem:
            warnings.warn(
                f"Output nr {n + 1}. of the traced function does not match the corresponding output of the Python function. "
                f"Detailed error:\n{problem}",
                TracerWarning,
                stacklevel=3,
            )


def _difference(want: Any, have: Any, tolerance: float) -> str | None:
    if tuple(want.shape) != tuple(have.shape):
        return f"shapes {tuple(have.shape)} and {tuple(want.shape)} differ"
    if want.dtype != have.dtype:
        return f"dtypes {have.dtype} and {want.dtype} differ"
    if not want.dtype.is_floating_point:
        return None if bool((want == have).all()) else "values differ"
    near = (want.double() - have.double()).abs() <= tolerance + tolerance * want.double().abs()
    near = near | ((want != want) & (have != have)) | (want == have)
    return None if bool(near.all()) else "values differ"


def check_records(first: list[tuple[Trace, str]], second: list[tuple[Trace, str]]) -> None:
    """Compares two traces of a function; raises where lines or constants differ."""
    graphs, tensors = None, None
    for (trace, text), (again, text_again) in zip(first, second):
        if text != text_again and graphs is None:
            lines = difflib.ndiff(text.splitlines(), text_again.splitlines())
            graphs = "Graph diff:\n" + _indented("\n".join(lines))
        elif tensors is None:
            tensors = _constants_differ(trace, again)
    if graphs is not None or tensors is not None:
        raise TracingCheckError(graphs, tensors)


def _constants_differ(trace: Trace, again: Trace) -> str | None:
    for name, value in trace.scope.names.items():
        other = again.scope.names.get(name)
        if isinstance(value, Constant) and isinstance(other, Constant):
            problem = _difference(value.tensor, other.tensor, 1e-5)
            if problem is not None:
                return f"Node:\n\t{name}\n{problem}\n\t{value.tensor}\n\t{other.tensor}"
    return None
