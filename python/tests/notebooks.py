"""Notebooks without Jupyter: runs the cells of one in order and gives what each shows.

`python notebooks.py FILE` runs a notebook and writes what its cells show into it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import sys
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def shown(value: Any) -> dict[str, Any]:
    """What a notebook keeps of the value of a cell."""
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return {"output_type": "execute_result", "data": data, "metadata": {}}


def run_cell(number: int, source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs the text of a cell; its outputs are what it prints, the value of its last line, or its error."""
    file = f"<cell {number}>"
    # What looks for the source of a function finds it there, as it does in Jupyter.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    parsed = ast.parse(source, file)
    last = parsed.body.pop() if parsed.body and isinstance(parsed.body[-1], ast.Expr) else None
    outputs: list[dict[str, Any]] = []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(parsed, file, "exec"), names)
        value = eval(compile(ast.Expression(last.value), file, "eval"), names) if last else None
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        outputs.append({**shown(value), "execution_count": number})
    return outputs


def run(notebook: dict[str, Any]) -> list[tuple[Cell, list[dict[str, Any]]]]:
    """Runs the code cells of a notebook in order; a cell that raises ends it with its exception."""
    names: dict[str, Any] = {"__name__": "__notebook__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [(cell, run_cell(n, "".join(cell["source"]), names)) for n, cell in enumerate(code, 1)]


def write(path: Path) -> None:
    """Runs a notebook and writes its outputs into it."""
    notebook = json.loads(path.read_text())
    for number, (cell, outputs) in enumerate(run(notebook), 1):
        cell["outputs"], cell["execution_count"] = outputs, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name))
