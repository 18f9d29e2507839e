"""Source of Python functions as TorchScript text: the same lines at the same places, rewritten where only Python has the form."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any, Callable, NamedTuple


class FrontendError(RuntimeError):
    """A function whose source cannot be compiled."""


class NotSupportedError(FrontendError):
    """A part of Python that TorchScript does not have."""


class UnsupportedNodeError(NotSupportedError):
    """A statement or expression of Python that TorchScript does not have."""


class Text(NamedTuple):
    """One `def` with its place."""

    file: str
    first_line: int
    text: str
    node: ast.FunctionDef


STATEMENTS = {
    ast.Try: "try blocks",
    ast.ClassDef: "class definitions",
    ast.Import: "import statements",
    ast.ImportFrom: "import statements",
    ast.AsyncFunctionDef: "async function definitions",
    ast.AsyncFor: "async for loops",
    ast.AsyncWith: "async with statements",
    ast.Nonlocal: "nonlocal variables",
}
EXPRESSIONS = {
    ast.Lambda: "lambda expressions",
    ast.SetComp: "set comprehensions",
    ast.Yield: "yield expressions",
    ast.YieldFrom: "yield-from expressions",
    ast.Await: "await expressions",
    ast.NamedExpr: "walrus expressions",
    ast.Set: "sets",
}


def function_text(function: Callable[..., Any], runs: bool = True) -> Text:
    """The text of a function. Raises OSError where Python has no source for it, and, unless only its head is wanted, for what
    TorchScript does not have."""
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "<unknown>"
    except (OSError, TypeError) as error:
        raise OSError(
            f"Can't get source for {function}. TorchScript requires source access in order to carry out compilation, "
            "make sure original .py files are available."
        ) from error
    margin = re.match(r"[ \t]*", lines[0]).group()  # type: ignore[union-attr]
    # Comments and lines of strings may begin before the function does.
    text = "".join(line.removeprefix(margin) for line in lines)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise FrontendError(f"{function} has no source of its own: {error}") from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise FrontendError(
            f"Expected a single top-level function: {file}:{first}" if tree.body else "there is no function"
        )
    node = tree.body[0]
    if runs:
        _check(node, text, Place(file, first, margin))
    text = re.sub(r"[ \t]*#\s*type:\s*ignore[^\n]*", "", _rewritten(text, node, Place(file, first, margin)))
    # Decorators are Python's.
    kept = text.splitlines(keepends=True)[node.lineno - 1 :]
    start = next(n for n, line in enumerate(kept) if line.lstrip().startswith("def "))
    text = _joined_comments("".join(kept[start:]))
    if not text.endswith("\n"):
        text += "\n"
    if margin and not any(_spans_lines(part) for part in ast.walk(node)):
        # As it stands in the file, which errors show.
        text = textwrap.indent(text, margin)
    return Text(file, first + node.lineno - 1 + start, text, node)


def _int_of(node: ast.AST) -> int | None:
    """The number that an int stands for, signs included."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _int_of(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _quoted(text: str) -> str:
    """A string in the escapes that TorchScript has: characters stand for themselves, control characters as octal numbers."""
    plain = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}
    return "'" + "".join(plain.get(c) or (f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c) for c in text) + "'"


def _formatted(form: str, values: list[tuple[int, str]]) -> str:
    """A call of `format`: values at their places in a text, whose own pairs of braces are values, too."""
    pieces, given, at = [], [], 0
    for place, value in [*values, (len(form), "")]:
        literal = form[at:place]
        given += [_quoted("{}")] * literal.count("{}")
        pieces.append(literal)
        at = place
        if value:
            given.append(value)
    return f"{_quoted('{}'.join(pieces))}.format({', '.join(given)})"


def _spans_lines(node: ast.AST) -> bool:
    """Whether a node is a string over several lines, whose content indentation would change."""
    is_text = isinstance(node, (ast.JoinedStr, ast.Constant)) and not isinstance(getattr(node, "value", ""), (int, float, complex))
    return is_text and node.end_lineno != node.lineno  # type: ignore[attr-defined]


def _joined_comments(text: str) -> str:
    """The text with one type comment for the whole signature where each parameter has one of its own."""
    whole = re.search(r"#[ \t]*type:[ \t]*\(\.\.\.\)[ \t]*->([^\n]*)", text)
    if whole is None:
        return text
    head, comment = text[: whole.start()], re.compile(r"#[ \t]*type:([^\n]*)")
    types = ", ".join(found.strip() for found in comment.findall(head))
    return f"{comment.sub('', head)}# type: ({types}) ->{whole.group(1)}{text[whole.end() :]}"


class Place(NamedTuple):
    """Where a text stands: its file, the number of its first line, and how far it is indented there."""

    file: str
    first_line: int
    margin: str


def _place(text: str, where: Place, node: ast.AST) -> str:
    """The lines of a node as they stand in the file."""
    line = getattr(node, "lineno", 1)
    lines = text.splitlines()
    shown = [where.margin + one for one in lines[max(0, line - 3) : line]]
    column = getattr(node, "col_offset", 0)
    end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", line) == line else None
    width = max(1, (end or len(lines[line - 1])) - column)
    marks = " " * (len(where.margin) + column) + "~" * width + " <--- HERE"
    return f'  File "{where.file}", line {where.first_line + line - 1}\n' + "\n".join([*shown, marks]) + "\n"


def _check(function: ast.FunctionDef, text: str, where: Place) -> None:
    arguments = function.args
    defaults = [default for default in arguments.kw_defaults if default is not None]
    if arguments.vararg is not None or arguments.kwarg is not None or defaults:
        raise NotSupportedError(
            "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults:\n"
            + _place(text, where, arguments.vararg or arguments.kwarg or defaults[0])
        )
    for node in ast.walk(function):
        if isinstance(node, (ast.ListComp, ast.DictComp, ast.GeneratorExp)):
            if len(node.generators) != 1:
                raise NotSupportedError(
                    "Only a single generator is currently supported:\n" + _place(text, where, node)
                )
            if node.generators[0].ifs:
                raise NotSupportedError(
                    "Comprehension ifs are not supported yet:\n" + _place(text, where, node)
                )
        what = STATEMENTS.get(type(node)) or EXPRESSIONS.get(type(node))
        if what is not None:
            raise UnsupportedNodeError(f"{what} aren't supported:\n" + _place(text, where, node))


def _offsets(text: str) -> list[int]:
    found, at = [0], 0
    for line in text.encode().splitlines(keepends=True):
        at += len(line)
        found.append(at)
    return found


def _rewritten(text: str, function: ast.FunctionDef, where: Place) -> str:
    """The text with f-strings as calls of `format`, chains of comparisons as conjunctions, literals in plain form."""
    data, offsets = text.encode(), _offsets(text)
    edits: list[tuple[int, int, str]] = []

    def place(node: ast.AST) -> str:
        return _place(text, where, node)

    def span(node: Any) -> tuple[int, int]:
        return offsets[node.lineno - 1] + node.col_offset, offsets[node.end_lineno - 1] + node.end_col_offset

    def segment(node: Any) -> str:
        start, end = span(node)
        return data[start:end].decode()

    def replace(node: Any, by: str) -> None:
        start, end = span(node)
        # Lines stay where they are.
        edits.append((start, end, by))

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr):
            form, values = "", []
            for part in node.values:
                if isinstance(part, ast.Constant):
                    form += str(part.value)
                    continue
                if not isinstance(part, ast.FormattedValue):
                    raise NotSupportedError("Unsupported value in JoinedStr:\n" + place(node))
                if part.format_spec is not None or part.conversion not in (-1, 115):
                    what = "formatting" if part.format_spec is not None else "conversion"
                    raise NotSupportedError(f"Don't support {what} in JoinedStr:\n" + place(node))
                values.append((len(form), ast.unparse(part.value)))
            # In TorchScript's `format` a brace stands for itself, and `{}` alone for a value.
            replace(node, _formatted(form, values) if values else _quoted(form))
            return
        if isinstance(node, ast.GeneratorExp):
            start, end = span(node)
            edits.append((start, start + 1, "(["))
            edits.append((end - 1, end, "])"))
        if isinstance(node, ast.Dict) and node.values:
            # The text has no comma after the last pair.
            end = span(node)[1] - 1
            between = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment.group()), data[span(node.values[-1])[1] : end])
            if b"," in between:
                at = end - len(between) + between.index(b",")
                edits.append((at, at + 1, " "))
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Tuple):
            start, end = span(node.target)
            if data[start : start + 1] != b"(":
                edits.append((start, start, "("))
                edits.append((end, end, ")"))
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            # In TorchScript text `and` binds no tighter than `or`.
            for inner in node.values[1:]:
                if isinstance(inner, ast.BoolOp):
                    edits.append((span(inner)[0], span(inner)[0], "("))
                    edits.append((span(inner)[1], span(inner)[1], ")"))
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            terms = [ast.unparse(node.left), *map(ast.unparse, node.comparators)]
            signs = [ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))[2:-2] for op in node.ops]
            pairs = [f"({terms[n]} {sign} {terms[n + 1]})" for n, sign in enumerate(signs)]
            replace(node, f"({' and '.join(pairs)})")
            return
        if isinstance(node, ast.Constant):
            written = segment(node)
            if isinstance(node.value, str) and (written[:1].lower() in ("r", "u") or re.search(r"\\[^\\'\"nt]", written)):
                # The lines after it keep their numbers.
                replace(node, _quoted(node.value) + "\\\n" * written.count("\n"))
            elif isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
                if "_" in written or written[:2].lower() in ("0x", "0b", "0o"):
                    replace(node, repr(node.value))
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in function.body:
        visit(statement)
    plain = [*function.args.posonlyargs, *function.args.args]
    given = [*zip(plain[len(plain) - len(function.args.defaults) :], function.args.defaults), *zip(function.args.kwonlyargs, function.args.kw_defaults)]
    for argument, default in given:
        if default is None:
            continue
        number = _int_of(default)
        if number is not None and argument.annotation is not None and ast.unparse(argument.annotation) in ("float", "Optional[float]"):
            replace(default, repr(float(number)))
        else:
            visit(default)
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        edits = [e for e in edits if not (span(first)[0] <= e[0] < span(first)[1])]
        start, end = span(first)
        lost = data[start:end].count(b"\n")
        edits.append((start, end, "pass" + "\n" * lost))
    for start, end, by in sorted(edits, reverse=True):
        data = data[:start] + by.encode() + data[end:]
    return data.decode()
