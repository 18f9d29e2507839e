"""PyTorch's DataLoader with workers, and Jupyter itself on the notebook of the examples."""

import json
import time
import unittest
from pathlib import Path

import numpy as np
import torch

import flambeau

EXAMPLES = Path(__file__).parents[3] / "examples"


class Rows(torch.utils.data.Dataset):
    """Rows that a model makes in the worker that loads them."""

    def __init__(self) -> None:
        self.model = flambeau.load(EXAMPLES / "lstm_cell.pt")

    def __len__(self) -> int:
        return 16

    def __getitem__(self, at: int) -> torch.Tensor:
        x = torch.full((1, 12), float(at))
        # Calls that record gradients round as those without do not: workers are not in the mode of their parent.
        with torch.no_grad():
            return self.model(x, torch.zeros(1, 16), torch.zeros(1, 16))[0][0]


class Loaders(unittest.TestCase):
    def test_a_loader_of_two_workers(self) -> None:
        rows = Rows()
        wanted = torch.stack([rows[at] for at in range(len(rows))])
        for method in ("fork", "spawn", "forkserver"):
            start = time.monotonic()
            loader = torch.utils.data.DataLoader(rows, batch_size=4, num_workers=2, multiprocessing_context=method)
            found = torch.cat(list(loader))
            torch.testing.assert_close(found, wanted, rtol=0, atol=0)
            # A spawned worker imports PyTorch first, which takes seconds of its own.
            self.assertLess(time.monotonic() - start, 5.0 if method == "fork" else 30.0, method)

    def test_a_loader_beside_the_model(self) -> None:
        model = flambeau.load(EXAMPLES / "lstm_cell.pt")
        data = torch.arange(192.0).reshape(16, 12) / 100
        start = time.monotonic()
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
        zeros = np.zeros((4, 16), np.float32)
        found = np.concatenate([model(batch.numpy(), zeros, zeros)[0] for batch in loader])
        whole = model(data.numpy(), np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32))[0]
        np.testing.assert_allclose(found, whole, rtol=1e-5)
        self.assertLess(time.monotonic() - start, 5.0)


class Jupyter(unittest.TestCase):
    def test_the_notebook_runs(self) -> None:
        import nbclient
        import nbformat

        notebook = nbformat.read(EXAMPLES / "extend.ipynb", as_version=4)
        wanted = json.loads((EXAMPLES / "extend.ipynb").read_text())
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        for now, then in zip(notebook.cells, wanted["cells"]):
            for a, b in zip(now.get("outputs", []), then.get("outputs", [])):
                if "data" in b and "text/html" in b["data"]:
                    self.assertIn("<", a["data"]["text/html"])
            self.assertEqual(len(now.get("outputs", [])), len(then.get("outputs", [])))


if __name__ == "__main__":
    unittest.main()
