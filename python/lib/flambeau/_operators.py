"""Operators of PyTorch that Flambeau does not have (`torch.library`, torchvision): programs call PyTorch for them."""

from __future__ import annotations

from typing import Any

import torch

from ._dtypes import DTYPES
from ._flambeau import Tensor, grad_enabled
from ._scopes import CompilerError, Scope, scope_number, unique_name

_DTYPES = {str(d).removeprefix("torch."): d for d in vars(torch).values() if isinstance(d, torch.dtype)}


def overloads_of(value: Any) -> list[Any]:
    """The overloads of an operator."""
    if type(value).__name__ == "CustomOpDef":
        return [value._opoverload]
    if isinstance(value, torch._ops.OpOverload):
        return [value]
    return [getattr(value, name) for name in value.overloads()]


def _annotation(of: Any, operator: Any) -> str:
    text = of.annotation_str
    for foreign, own in (("number", "Union[complex, float, int]"), ("SymInt", "int"), ("Scalar", "Union[complex, float, int]")):
        text = own if text == foreign else text.replace(f"[{foreign}]", f"[{own}]")
    if any(word in text for word in ("Generator", "Stream", "__torch__", "ScriptObject")):
        raise CompilerError(f"operator {operator} takes or gives a {text}, which only PyTorch has")
    return text


def called_operator(operator: Any) -> tuple[str, tuple[Any, ...]]:
    """A function that calls an operator of PyTorch, by the types of its schema."""
    schema = operator._schema
    parameters: list[str] = []
    for argument in schema.arguments:
        if argument.kwarg_only and "*" not in parameters:
            parameters.append("*")
        default = f" = {argument.default_value!r}" if argument.has_default_value() else ""
        parameters.append(f"{argument.name}: {_annotation(argument.type, operator)}{default}")
    results = [_annotation(result.type, operator) for result in schema.returns]
    short = schema.name.rsplit("::", 1)[-1]
    names = [argument.name for argument in schema.arguments]
    result = results[0] if len(results) == 1 else f"Tuple[{', '.join(results)}]" if results else "None"
    head = f"def {short}({', '.join(parameters)}) -> {result}:\n"
    scope = Scope()
    from ._answers import call_of_python

    body = call_of_python(_Called(operator), names, result, scope)
    name = unique_name(f"torch.ops.{schema.name.split('::', 1)[0]}", short)
    return name, (scope_number(scope), f"<{schema.name}>", 1, head + body)


class _Called:
    """An operator that is called with tensors of ours."""

    def __init__(self, operator: Any) -> None:
        self.operator = operator
        self.arguments = operator._schema.arguments

    def __call__(self, *args: Any) -> Any:
        tracked = any(_requires_grad(value) for value in args) and grad_enabled()
        given, named = [], {}
        for argument, value in zip(self.arguments, args):
            value = _for_torch(value)
            if str(argument.real_type).startswith("ScalarType") and isinstance(value, int):
                value = _dtype(value)
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                given.append(value)
        with torch.no_grad():
            result = self.operator(*given, **named)
        if tracked and any(value.is_floating_point() for value in _tensors(result)):
            raise RuntimeError(
                f"operator {self.operator} is PyTorch's, and a program of Flambeau has no gradient of it: call it with "
                "tensors that require none, or under torch.no_grad()"
            )
        return result


def _dtype(code: int) -> Any:
    for name, own in DTYPES.items():
        if own.code == code:
            return _DTYPES[name]
    raise RuntimeError(f"{code} is not a dtype")


def _requires_grad(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_requires_grad, value))
    return isinstance(value, Tensor) and value.requires_grad


def _for_torch(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().torch()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_for_torch, value))
    return value


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [inner for item in value for inner in _tensors(item)]
    return [value] if isinstance(value, torch.Tensor) else []
