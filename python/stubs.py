"""Writes `lib/flambeau/_flambeau.pyi` from the extension module: names, parameters, docstrings. A test holds the file to it."""

import inspect
import keyword
import pathlib
import sys

TARGET = pathlib.Path(__file__).parent / "lib" / "flambeau" / "_flambeau.pyi"
RESULTS = {"__repr__": "str", "__str__": "str", "__bool__": "bool", "__len__": "int", "__hash__": "int", "__init__": "None"}

# Results of members by class, `.` for functions of the module; what stands here is what the extension gives.
_TENSOR = (
    "abs add and copy deepcopy floordiv getitem iadd iand ifloordiv imod imul invert ior isub itruediv ixor lshift matmul mod mul "
    "neg or pos pow radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor sub truediv xor"
).split()
TYPED = {
    "Tensor": {
        **{f"__{name}__": "Tensor" for name in _TENSOR}, "__iter__": "Iterator[Tensor]", "__contains__": "bool", "__dir__": "list[str]",
        "__float__": "float", "__int__": "int", "__index__": "int", "__complex__": "complex", "__dlpack_device__": "tuple[int, int]",
        "__lt__": "Tensor", "__le__": "Tensor", "__gt__": "Tensor", "__ge__": "Tensor", "__format__": "str",
        "_id": "int", "_version": "int", "cpu": "Tensor", "data": "Tensor", "data_ptr": "int", "device": "device", "dim": "int",
        "dtype": "dtype", "element_size": "int", "grad": "Tensor | None", "is_contiguous": "bool", "is_leaf": "bool", "ndim": "int",
        "nelement": "int", "numel": "int", "requires_grad": "bool", "requires_grad_": "Tensor", "storage_offset": "int", "shape": "Size",
    },
    "Graph": {
        "nodes": "Parts[Node]", "inputs": "Parts[Value]", "outputs": "Parts[Value]", "findNode": "Node | None",
        "findAllNodes": "list[Node]", "copy": "Graph", "block": "Block", "param_node": "Node", "return_node": "Node", "all_nodes": "list[Node]",
    },
    "Node": {
        "kind": "str", "inputs": "Parts[Value]", "outputs": "Parts[Value]", "output": "Value", "input": "Value", "blocks": "Parts[Block]",
        "inputsSize": "int", "outputsSize": "int", "scopeName": "str",
    },
    "Value": {"debugName": "str", "node": "Node", "unique": "int", "offset": "int", "requiresGrad": "bool", "uses": "list[Use]", "type": "Type", "isCompleteTensor": "bool"},
    "Block": {"nodes": "Parts[Node]", "inputs": "Parts[Value]", "outputs": "Parts[Value]"},
    "Use": {"user": "Node", "offset": "int"},
    "Future": {"done": "bool"},
    "Limits": {
        "memory": "int | None", "steps": "int | None", "seconds": "float | None", "depth": "int", "output": "int | None",
        "warnings": "int | None", "forks": "int", "cancelled": "bool", "cancel": "None", "__enter__": "Limits", "__exit__": "bool",
    },
    "device": {"type": "str", "index": "int | None"},
    "dtype": {"is_complex": "bool", "is_floating_point": "bool", "is_signed": "bool", "itemsize": "int", "code": "int"},
    ".": {
        "get_num_threads": "int", "set_num_threads": "None", "grad_enabled": "bool", "set_grad_enabled": "bool", "known_op": "bool", "is_subtype": "bool",
        "parse_ir": "Graph", "from_array": "Tensor", "tensor_of": "Tensor", "tensor_from_bytes": "Tensor", "load_bytes": "Program",
        "load_path": "Program", "compile": "Program", "manual_seed": "None", "all_dtypes": "list[tuple[str, dtype]]", "optimized": "bool", "logging_option": "str",
        "set_logging_option": "None", "set_logging_to_stdout": "None",
        "exported_programs": "list[str]", "passes": "list[tuple[str, str]]", "command": "int", "set_optimized": "bool",
    },
}  # fmt: skip
# Parameters that are not Any.
GIVEN = {("Value", "setType", "ty"): "str"}


def result(owner: str, name: str) -> str:
    """What a member gives."""
    return TYPED.get(owner, {}).get(name) or RESULTS.get(name, "Any")


def signature(value: object, name: str, owner: str = ".") -> str:
    """Parameters of a function as a stub has them."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return f"(*args: Any, **kwargs: Any) -> {result(owner, name)}"
    parts, seen_positional, starred = [], False, False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}: Any")
            starred = True
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}: Any")
            continue
        if seen_positional and parameter.kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
            seen_positional = False
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        seen_positional = seen_positional or parameter.kind is parameter.POSITIONAL_ONLY
        given = GIVEN.get((owner, name, parameter.name), "Any")
        text = parameter.name if parameter.name in ("self", "cls") else f"{parameter.name}: {given}"
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}" if parameter.default in (None, True, False) or isinstance(parameter.default, str) else " = ..."
        parts.append(text)
    if seen_positional:
        parts.append("/")
    return f"({', '.join(parts)}) -> {result(owner, name)}"


def class_text(name: str, value: type) -> list[str]:
    """A class of the module."""
    if name == "LimitError":
        return ["class LimitError(RuntimeError):", "    limit: str", "    place: tuple[str, int, int] | None"]
    if issubclass(value, Exception):
        return [f"class {name}(RuntimeError): ..."]
    # Whether Python may subclass it is a flag of the type.
    marks = ["@disjoint_base"] if value.__flags__ & (1 << 10) else ["@final"]
    lines = [*marks, f"class {name}:"]
    if name == "device":
        lines.append("    def __new__(cls, type: Any, index: Any = None) -> Any: ...")
    if name == "Limits":
        lines.append(
            "    def __new__(cls, *, memory: int | str | None = None, steps: int | None = None, seconds: float | None = None, depth: int | None = None,"
            " output: int | str | None = None, warnings: int | None = None, forks: int | None = None) -> Limits: ..."
        )
    for member, found in sorted(vars(value).items()):
        if member in ("__doc__", "__module__", "__dict__", "__weakref__", "__getattribute__", "__new__", "__buffer__", "__release_buffer__", "__delattr__", "__delitem__", "__setattr__"):
            continue
        if isinstance(found, staticmethod) or keyword.iskeyword(member):
            continue
        if inspect.isgetsetdescriptor(found) or inspect.ismemberdescriptor(found):
            lines += ["    @property", f"    def {member}(self) -> {result(name, member)}: ..."]
            continue
        if callable(found):
            lines.append(f"    def {member}{signature(found, member, name)}: ...")
    if name == "Tensor":
        # Parameters of Python's own methods are objects; a setter is a property's.
        lines = [line.replace("(self, value: Any, /) -> Any: ...", "(self, value: Any, /) -> Tensor: ...  # type: ignore[override]") if "def __eq__" in line or "def __ne__" in line else line for line in lines]
        for setter, kind in (("grad", "Tensor | None"), ("data", "Tensor"), ("requires_grad", "bool")):
            at = lines.index(f"    def {setter}(self) -> {kind}: ...")
            lines[at + 1 : at + 1] = [f"    @{setter}.setter", f"    def {setter}(self, value: Any) -> None: ..."]
        lines.append("    def __getattr__(self, name: str) -> Any: ...")
    return lines


def text() -> str:
    """The whole stub."""
    sys.path.insert(0, str(TARGET.parent.parent))
    from flambeau import _flambeau

    lines = ["# Generated by stubs.py.", "from typing import Any, Iterator, final", "", "from typing_extensions import disjoint_base", "", "from ._tensors import Size", "from ._types import Parts, Type", "", "__version__: str", f"__all__ = {sorted(_flambeau.__all__)!r}", ""]
    for name, value in sorted(vars(_flambeau).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            lines += class_text(name, value)
        elif callable(value):
            lines.append(f"def {name}{signature(value, name)}: ...")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text() == text() else "the stub is stale: run python stubs.py")
    TARGET.write_text(text())
