"""Compilers from Python: passes, rules, dialects and ops, known to every pipeline and program compiled afterwards."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any, Callable, Iterable

from . import _flambeau
from ._source import function_text
from ._tensors import function as of_path
from ._terms import Term, operand, term

__all__ = ["Dialect", "Rule", "RuleError", "Term", "create_function", "dialect", "op", "pass_", "passes", "pipeline", "rule", "run_passes", "term"]


def _sentence(function: Callable[..., Any]) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(function) or function.__name__).split("\n", 1)[0].rstrip(".")


def _named(name: str) -> str:
    return name.strip("_").replace("_", "-")


def pass_(name: Any = None) -> Any:
    """Makes a pass of a function over a `Graph`: `@flambeau.pass_` or `@flambeau.pass_("its-name")`.

    The function edits the graph and gives True or False, whether it changed anything; None lets the texts be compared.
    Pipelines know it by its name, with `-` for `_`: `graph.run_pass("inline,my-pass,dce")`. A graph that breaks a law
    afterwards is an error of the pass.
    """

    def made(function: Callable[..., Any]) -> Callable[..., Any]:
        title = name if isinstance(name, str) else _named(function.__name__)
        _flambeau.add_pass(title, _sentence(function), function)
        function.pass_name = title  # type: ignore[attr-defined]
        return function

    return made(name) if callable(name) else made


def passes() -> dict[str, str]:
    """All passes, each with what it does; then the named pipelines, each with the passes that it is."""
    return dict(_flambeau.passes())


def pipeline(name: str, passes: str) -> None:
    """Names a pipeline: `flambeau.pipeline("mine", "inline,my-pass,dce")`."""
    _flambeau.add_pipeline(name, passes)


# --- rules ---


class RuleError(ValueError):
    """A rule that does not hold, or that no example could be found for: `counterexample` has the values of its variables."""

    def __init__(self, message: str, name: str, counterexample: dict[str, Any] | None) -> None:
        super().__init__(message)
        self.rule = name
        self.counterexample = counterexample


class Rule:
    """A rule that was checked and is applied by `simplify`."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __repr__(self) -> str:
        return self.text.strip()


def _type_name(annotation: Any) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    if isinstance(annotation, str):
        return annotation.rsplit(".", 1)[-1]
    return getattr(annotation, "__name__", None) or str(annotation)


def _rule_text(function: Callable[..., Any], contract: str) -> tuple[str, str]:
    name = _named(function.__name__)
    parameters = inspect.signature(function).parameters
    sides = function(*(Term(f"?{p}") for p in parameters))
    if not isinstance(sides, tuple) or len(sides) not in (2, 3):
        raise TypeError(f"rule {name} gives its left side, its right side and, if it has one, its condition")
    left, right = map(operand, sides[:2])
    for parameter in parameters.values():
        type_name = _type_name(parameter.annotation)
        mark = f"?{parameter.name}"
        at = next((n for n in range(len(left)) if left.startswith(mark, n) and not left[n + len(mark) :][:1].isidentifier()), None)
        if at is None:
            raise TypeError(f"rule {name}: the left side has no variable {parameter.name}")
        if type_name is not None:
            left = f"{left[:at]}{mark}: {type_name}{left[at + len(mark) :]}"
    condition = f" if {sides[2]}" if len(sides) == 3 else ""
    return name, f"rule {name} {contract} {left} => {right}{condition}\n"


def rule(what: Any = None, *, contract: str = "exact", samples: int = 200) -> Any:
    """Adds a rewrite rule to those that `simplify` applies, after running both sides on `instances` random instances.

    Of a function over terms that gives left side, right side and, as text, a condition::

        @flambeau.rule
        def abs_square(x: flambeau.Tensor):
            return flambeau.square(flambeau.abs(x)), flambeau.square(x), "is_float(?x)"

    or of text as rule files have it: `flambeau.rule("rule abs-square exact aten::square(aten::abs(?x)) => aten::square(?x)")`.
    `contract` is "exact", "nan-relaxed" or "fast-math". Raises `RuleError` with a counterexample where the sides differ.
    """
    if what is None:
        return lambda function: rule(function, contract=contract, samples=samples)
    if isinstance(what, str):
        text = what if what.endswith("\n") else what + "\n"
        words = text.split()
        name = next((words[n + 1] for n, word in enumerate(words[:-1]) if word == "rule"), "rules")
    else:
        name, text = _rule_text(what, contract)
    refused = _flambeau.add_rules(f"python-{name}", text, samples)
    for of, reason, counterexample in refused:
        shown = "".join(f"\n    {key} = {value!r}" for key, value in (counterexample or {}).items())
        why = "does not hold" if counterexample is not None else "cannot be checked"
        raise RuleError(f"rule {of} {why}: {reason}{shown}", of, counterexample)
    return Rule(name, text)


# --- dialects ---


class Dialect:
    """A dialect in the making: each op that is added is known to what is compiled afterwards."""

    def __init__(self, name: str, summary: str = "") -> None:
        self.name = name
        self.summary = summary
        self._items: dict[str, str] = {}
        self._commit(self._items)

    @property
    def text(self) -> str:
        """The dialect as a dialect file has it."""
        return self._written(self._items)

    def _written(self, items: dict[str, str]) -> str:
        head = f'dialect {self.name} "{self.summary}"\n' if self.summary else f"dialect {self.name}\n"
        return "\n".join([head, *items.values()])

    def _commit(self, items: dict[str, str]) -> None:
        _flambeau.add_dialect(self.name, self._written(items))
        self._items = items

    def declare(self, text: str) -> None:
        """Adds ops, types and attributes as dialect files have them."""
        key = text.strip().split("{", 1)[0].strip()
        self._commit({**self._items, key: textwrap.dedent(text).strip() + "\n"})

    def op(
        self,
        function: Any = None,
        *,
        schema: str | None = None,
        facts: Iterable[str] = (),
        traits: Iterable[str] = (),
        effects: Iterable[str] = (),
        grad: dict[str, str] | None = None,
        surrogate: dict[str, str] | None = None,
        tolerance: str | None = None,
        python: bool = False,
    ) -> Any:
        """Makes an op of a function. Its body is TorchScript and what the op means: it fuses, is differentiated and runs compiled.

        The schema follows from the annotations unless it is given: `"(Tensor self, float step) -> Tensor"`. `grad` has
        derivatives by argument, as text over the arguments, `grad` and `result`. With `python` the function is called as it
        is; the op then needs a schema, and passes believe its `effects`.
        """
        if function is None:
            options = {key: value for key, value in locals().items() if key not in ("self", "function")}
            return lambda made: self.op(made, **options)
        kind = f"{self.name}::{function.__name__}"
        if python:
            if schema is None:
                raise TypeError(f"{kind} is computed by Python and needs a schema")
            _flambeau.add_op(f"{kind}{schema}", list(effects), function)
            return _op(self.name, function)
        source = function_text(function)
        if schema is None:
            from ._script import script

            found = str(script(function).schema)
            schema = found[found.index("(") :]
        lines = [f"op {kind}{schema} {{", f'    summary "{_sentence(function)}"', "    meaning"]
        lines += textwrap.indent(source.text.rstrip(), " " * 8).splitlines()
        lines += [f"    grad {name}: {text}" for name, text in (grad or {}).items()]
        lines += [f"    surrogate {name}: {text}" for name, text in (surrogate or {}).items()]
        for field, words in (("facts", facts), ("traits", traits), ("effects", effects)):
            words = [words] if isinstance(words, str) else list(words)
            if words:
                lines.append(f"    {field} {', '.join(words)}")
        if tolerance is not None:
            lines.append(f"    tolerance {tolerance}")
        self._commit({**self._items, kind: "\n".join([*lines, "}", ""])})
        return _op(self.name, function)


def _op(namespace: str, function: Callable[..., Any]) -> Any:
    """The op as a function, with the docstring of the one that it came from."""
    made = of_path(f"torch.ops.{namespace}.{function.__name__}")
    made.__doc__ = function.__doc__
    return made


_dialects: dict[str, Dialect] = {}


def op(name: Any = None, **options: Any) -> Any:
    """Makes an op of a function, by its qualified name: `@flambeau.op("mine::scale")`; `@flambeau.op` alone puts it into the
    dialect `custom`. What else may be said is what `Dialect.op` takes."""
    if callable(name):
        return op(None, **options)(name)

    def made(function: Callable[..., Any]) -> Any:
        namespace, _, short = (name or f"custom::{function.__name__}").partition("::")
        if short != function.__name__:
            raise TypeError(f"the op {name} is made of a function called {short!r}, not {function.__name__!r}")
        if namespace not in _dialects:
            _dialects[namespace] = Dialect(namespace)
        return _dialects[namespace].op(function, **options)

    return made


def dialect(name: str, summary: str = "") -> Dialect:
    """A new dialect, `flambeau.dialect("mine")`, or one from the text of a dialect file."""
    if "\n" not in name and not name.startswith("dialect "):
        return Dialect(name, summary)
    head, _, rest = name.strip().partition("\n")
    words = head.split(maxsplit=2)
    made = Dialect.__new__(Dialect)
    made.name, made.summary = words[1], words[2].strip('"') if len(words) > 2 else ""
    made._commit({"": rest.strip() + "\n"})
    return made


# --- graphs and programs ---


def run_passes(what: Any, passes: str) -> Any:
    """A copy of a graph, function or module after a pipeline: `flambeau.run_passes(m, "inline,my-pass,dce")`."""
    from ._modules import RecursiveScriptModule, ScriptFunction

    if isinstance(what, _flambeau.Graph):
        return _flambeau.run_passes(what, passes)
    core = what._c.after(passes)
    return ScriptFunction(core, what._name, what._kind) if isinstance(what, ScriptFunction) else RecursiveScriptModule(core, what._kind)


def create_function(graph: _flambeau.Graph, name: str = "graph") -> Any:
    """A function that runs a graph as it is now. Raises where the graph breaks a law."""
    from ._modules import ScriptFunction

    return ScriptFunction(graph.program(name), name)
