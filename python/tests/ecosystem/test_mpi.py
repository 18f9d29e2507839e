"""Data-parallel training over MPI: three processes give what one gives on the whole batch."""

import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import flambeau

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
MODEL = os.path.join(ROOT, "examples", "lstm_cell.pt")


class DataParallel(unittest.TestCase):
    def test_three_processes_equal_one(self) -> None:
        weights = []
        with tempfile.TemporaryDirectory() as folder:
            for processes in (1, 3):
                path = os.path.join(folder, f"{processes}.npz")
                launcher = os.path.join(os.path.dirname(sys.executable), "mpiexec")
                command = [launcher, "-n", str(processes), sys.executable, "examples/data_parallel.py", MODEL, path]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.count("step "), 5)
                weights.append(dict(np.load(path)))
        before = {name: np.asarray(value) for name, value in flambeau.load(MODEL).state_dict().items()}
        self.assertEqual(set(weights[0]), set(before))
        for name, one in weights[0].items():
            np.testing.assert_allclose(weights[1][name], one, rtol=1e-5, atol=1e-6)
            self.assertGreater(np.abs(one - before[name]).max(), 1e-3)


if __name__ == "__main__":
    unittest.main()
