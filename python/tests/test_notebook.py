"""The notebook of the examples: its cells run, and show what is written in it."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import notebooks  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "extend.ipynb"
# What a dialect, a rule and a pass may take.
LINES = 20


class Notebook(unittest.TestCase):
    def test_its_cells_show_what_is_written(self) -> None:
        notebook = json.loads(EXAMPLE.read_text())
        cells = notebooks.run(notebook)
        self.assertGreater(len(cells), 6)
        for cell, outputs in cells:
            source = "".join(cell["source"])
            self.assertLessEqual(len(source.splitlines()), LINES, source)
            self.assertEqual(len(outputs), len(cell["outputs"]), source)
            for now, then in zip(outputs, cell["outputs"]):
                self.assertEqual(now["output_type"], then["output_type"])
                text = [o.get("text") or o["data"]["text/plain"] for o in (now, then)]
                self.assertEqual(*text, msg=f"{source}\n(python python/tests/notebooks.py examples/extend.ipynb writes it anew)")
        shown = "".join(o["data"].get("text/html", [""])[0] for _, outputs in cells for o in outputs if "data" in o)
        self.assertIn("srcdoc=", shown)

    def test_an_error_ends_the_run(self) -> None:
        notebook = {"cells": [{"cell_type": "code", "source": ["1 / 0"]}, {"cell_type": "code", "source": ["print(1)"]}]}
        with self.assertRaises(ZeroDivisionError):
            notebooks.run(notebook)


if __name__ == "__main__":
    unittest.main()
