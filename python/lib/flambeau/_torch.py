"""Flambeau beneath PyTorch: `torch.compile(f, backend="flambeau")`, and modules of PyTorch recorded as programs."""

from __future__ import annotations

import operator
import warnings
from typing import Any, Callable

import torch
import torch.fx.passes.operator_support

from . import _flambeau
from ._answers import Answers
from ._modules import ScriptFunction
from ._scopes import scope_number, unique_name
from ._trace_text import Constant, Trace


def from_torch(module: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
    """A module or function of PyTorch as a program of the ATen ops that it runs on these arguments.

    What the result is made of (tuples, lists, dictionaries) stays unchanged. Parameters and buffers are part of the program, with
    their memory shared. Sizes are those of the examples.
    """
    return Recorded(module, args if isinstance(args, tuple) else (args,), kwargs or {})


class Recorded:
    """A module or function of PyTorch as a program of ATen ops."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.utils import _pytree as pytree

        leaves, self._form = pytree.tree_flatten((args, kwargs))
        self._spec: Any = None

        def flat(*given: Any) -> list[Any]:
            again, named = pytree.tree_unflatten(list(given), self._form)
            found, self._spec = pytree.tree_flatten(module(*again, **named))
            return found

        with torch.no_grad():
            recorded = make_fx(flat, pre_dispatch=False)(*leaves)
        self._tensors = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self._leaves = leaves
        self._text = _Text(recorded)
        self._function = self._text.function("forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from torch.utils import _pytree as pytree

        leaves, form = pytree.tree_flatten((args, kwargs))
        if form != self._form:
            raise TypeError(f"the arguments are built otherwise than the examples: {form} and not {self._form}")
        for given, known, is_tensor in zip(leaves, self._leaves, self._tensors):
            if not is_tensor and given != known:
                raise ValueError(f"{given!r} is not the {known!r} that was recorded: values that are not tensors are part of the program")
        found = self._function(*leaves)
        return pytree.tree_unflatten(list(found), self._spec)

    @property
    def graph(self) -> Any:
        """The graph of ATen ops."""
        return self._function.graph

    @property
    def code(self) -> str:
        """The program as TorchScript."""
        return self._function.code

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes an archive, whose function takes the tensors one by one and gives a tuple."""
        self._function.save(f, _extra_files)


class Refused(Exception):
    """A graph that is left to PyTorch, and why."""


_OPERATORS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.truediv: "/", operator.mod: "%"}


class _Text:
    """A graph of FX as TorchScript."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.graph = graph
        self.trace = Trace()
        self.parameters: list[str] = []
        self.many = True

    def value(self, value: Any) -> str:
        """An argument as an expression."""
        if isinstance(value, torch.fx.Node):
            return value.name
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise Refused(f"the graph contains a symbolic value {value}")
        return self.trace.text(value)

    def line(self, node: torch.fx.Node) -> str:
        """A node as an expression."""
        target = node.target
        if target is operator.getitem:
            return f"{self.value(node.args[0])}[{self.value(node.args[1])}]"
        if target in _OPERATORS:
            left, right = map(self.value, node.args)
            return f"{left} {_OPERATORS[target]} {right}"
        if not isinstance(target, torch._ops.OpOverload):
            raise Refused(f"{target} is not an operator")
        name = target._schema.name
        if not _flambeau.known_op(name):
            raise Refused(f"operator {name} is not known")
        names = [a.name for a in target._schema.arguments]
        keyword_only = {a.name for a in target._schema.arguments if a.kwarg_only}
        parts = [self.value(a) for a in node.args]
        for key, value in node.kwargs.items():
            if key == "pin_memory" and not value:
                continue
            parts.append(f"{key}={self.value(value)}")
        if len(node.args) > len(names) - len(keyword_only):
            raise Refused(f"operator {name} has more arguments than its schema")
        return f"ops.{name.replace('::', '.')}({', '.join(parts)})"

    def function(self, title: str) -> ScriptFunction:
        """The graph as a function, which gives a tuple."""
        lines: list[str] = []
        result = "None"
        for node in self.graph.graph.nodes:
            if node.op == "placeholder":
                found = node.meta.get("val")
                kind = "int" if isinstance(found, (int, torch.SymInt)) else "float" if isinstance(found, (float, torch.SymFloat)) else "Tensor"
                self.parameters.append(f"{node.name}: {'bool' if isinstance(found, bool) else kind}")
            elif node.op == "get_attr":
                # Recorded without gradients: a parameter is a constant over the same memory.
                tensor = operator.attrgetter(node.target)(self.graph).detach()
                lines.append(f"{node.name} = {self.trace.constant(tensor)}")
            elif node.op == "call_function":
                lines.append(f"{node.name} = {self.line(node)}")
            elif node.op == "output":
                self.many = isinstance(node.args[0], (list, tuple))
                outputs = node.args[0] if self.many else (node.args[0],)
                result = f"({', '.join(self.value(v) for v in outputs)},)"
        scope = self.trace.scope
        scope.names.update(ops=_Path("ops"), torch=_Path("torch"), Tensor=torch.Tensor)
        text = f"def graph({', '.join(self.parameters)}):\n" + "".join(f"    {x}\n" for x in lines) + f"    return {result}\n"
        name = unique_name("torch_compile", title)
        core = _flambeau.compile(_Answers(), [("function", (name, (scope_number(scope), "<graph>", 1, text)))])
        return ScriptFunction(core, name, "torch")

    def compile(self) -> Callable[..., Any]:
        """The graph compiled."""
        function = self.function("graph")

        def call(*args: Any) -> Any:
            with torch.no_grad():
                found = function(*args)
                return list(found) if self.many else found[0]

        return call


class _Path:
    def __init__(self, path: str) -> None:
        self.__flambeau_path__ = path
        self.__name__ = path


class _Answers(Answers):
    def meaning(self, value: Any, name: str) -> Any:
        if isinstance(value, Constant):
            return ("constant", value.tensor)
        return super().meaning(value, name)


def _refusal(node: torch.fx.Node) -> str | None:
    """Why a node is left to PyTorch; None for what Flambeau computes."""
    target = node.target
    if node.op != "call_function":
        return f"{node.op} is not a call of an operator"
    if target is operator.getitem or target in _OPERATORS:
        return None
    if not isinstance(target, torch._ops.OpOverload):
        return f"{target} is not an operator"
    name, overload = target._schema.name, target._schema.overload_name
    if not _flambeau.known_op(name):
        return f"operator {name} is not known"
    return None if _flambeau.built_op(name, overload) else f"operator {target} is not supported"


class _Known(torch.fx.passes.operator_support.OperatorSupportBase):
    """Nodes that Flambeau computes; why it leaves the others is kept."""

    def __init__(self) -> None:
        self.refused: dict[str, None] = {}

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        reason = _refusal(node)
        if reason is not None and node.op == "call_function":
            self.refused[reason] = None
        return reason is None


class _Part(torch.nn.Module):
    """A part of a graph: compiled, or as PyTorch runs it once that has failed."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__()
        self.graph_module = graph
        self.compiled: Callable[..., Any] | None = None
        try:
            self.compiled = _Text(graph).compile()
        except (Refused, RuntimeError, TypeError) as error:
            _tell(_reason(error))

    def forward(self, *args: Any) -> Any:
        """Runs the part."""
        if self.compiled is not None:
            try:
                return self.compiled(*args)
            except RuntimeError as error:
                # An operator may refuse a dtype or a form of its arguments only when it is reached.
                if "is not supported" not in str(error):
                    raise
                _tell(_reason(error))
                self.compiled = None
        return self.graph_module(*args)


def _compiled(graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
    from functorch.compile import make_boxed_func
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

    known = _Known()
    for node in graph.graph.nodes:
        known.is_node_supported(None, node)
    if not known.refused:
        return make_boxed_func(_Part(graph))
    for reason in known.refused:
        _tell(reason)
    partitioner = CapabilityBasedPartitioner(graph, known, allows_single_node_partition=True)
    mixed = partitioner.partition_and_fuse()
    for name, part in list(mixed.named_children()):
        if isinstance(part, torch.fx.GraphModule):
            setattr(mixed, name, _Part(part))
    return make_boxed_func(mixed)


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if "is not supported" in line or "operator" in line]
    return lines[-1] if lines else (str(error).strip().splitlines() or [type(error).__name__])[0]


def _tell(reason: str) -> None:
    warnings.warn(f"flambeau leaves a part of a graph to PyTorch: {reason}", RuntimeWarning, stacklevel=3)


def backend(graph: torch.fx.GraphModule, inputs: Any, **options: Any) -> Callable[..., Any]:
    """What `torch.compile(f, backend="flambeau")` calls: forward and backward graphs by AOT autograd."""
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=_compiled, bw_compiler=_compiled)(graph, inputs)
