"""Ray: batch inference by `map_batches`, and commands over seeds, equal to what one process gives."""

import os
import tempfile
import unittest
from typing import Any

import numpy as np
import ray

import flambeau
import flambeau.ray

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
MODEL = os.path.join(ROOT, "examples", "lstm_cell.pt")
ROWS = 100_000


class OnRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        # Workers find the package where this process finds it.
        paths = os.pathsep.join(filter(None, [os.path.dirname(os.path.dirname(flambeau.__file__)), os.environ.get("PYTHONPATH")]))
        ray.init(num_cpus=4, log_to_driver=False, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": paths}})
        ray.data.DataContext.get_current().enable_progress_bars = False

    @classmethod
    def tearDownClass(cls) -> None:
        ray.shutdown()

    def test_two_workers_equal_one_process(self) -> None:
        rows = np.random.default_rng(0)
        columns = {name: rows.standard_normal((ROWS, n), dtype=np.float32) for name, n in (("x", 12), ("hx", 16), ("cx", 16))}
        shared = ray.put(columns)

        def filled(batch: dict[str, Any]) -> dict[str, Any]:
            return {"id": batch["id"], **{name: column[batch["id"]] for name, column in ray.get(shared).items()}}

        dataset = ray.data.range(ROWS, override_num_blocks=10).map_batches(filled, batch_size=None)
        answers = dataset.map_batches(
            flambeau.ray.Predict,
            fn_constructor_args=(MODEL,),
            fn_constructor_kwargs={"outputs": ["h", "c"], "keep": ["id"]},
            batch_size=5_000,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        got: dict[str, list[Any]] = {"id": [], "h": [], "c": []}
        for batch in answers.iter_batches(batch_size=None, batch_format="numpy"):
            for name, parts in got.items():
                parts.append(batch[name])
        order = np.argsort(np.concatenate(got["id"]))
        model = flambeau.load(MODEL)
        want = [np.concatenate(part) for part in zip(*(model(b["x"], b["hx"], b["cx"]) for b in _batches(columns, 5_000)))]
        for name, expected in zip(("h", "c"), want):
            np.testing.assert_array_equal(np.stack(list(np.concatenate(got[name])))[order], expected)

    def test_columns_that_do_not_fit(self) -> None:
        predict = flambeau.ray.Predict(MODEL)
        with self.assertRaisesRegex(ValueError, "the model takes x, hx, cx, and the columns are a, b"):
            predict({"a": np.zeros(1), "b": np.zeros(1)})

    def test_a_sweep_is_the_same_on_one_worker_and_two(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "my.rules")
            with open(path, "w") as file:
                file.write("rule twice exact aten::neg(aten::neg(?x: Tensor)) => ?x\nrule lie exact aten::abs(?x: Tensor) => ?x\n")
            one, two = (flambeau.ray.sweep(["rules", "check", path, "--samples", "50"], range(4), workers=n) for n in (1, 2))
        self.assertEqual(one, two)
        self.assertEqual([outcome.seed for outcome in one], [0, 1, 2, 3])
        for outcome in one:
            self.assertEqual(outcome.status, 1)
            self.assertIn("REFUSED lie", outcome.text)
        # Other instances each time.
        self.assertGreater(len({outcome.text for outcome in one}), 1)


def _batches(columns: dict[str, Any], size: int) -> Any:
    for at in range(0, ROWS, size):
        yield {name: column[at : at + size] for name, column in columns.items()}


if __name__ == "__main__":
    unittest.main()
