"""Processes: children of every kind that Python has answer as their parent does, and in time."""

import concurrent.futures
import multiprocessing
import os
import signal
import time
import unittest
from pathlib import Path
from typing import Any

import numpy as np

import flambeau

EXAMPLES = Path(__file__).parents[2] / "examples"
# Seconds within which all children of one kind have answered.
PATIENCE = 5.0

MODEL: Any = None


def inputs() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(size).astype(np.float32) for size in ((3, 12), (3, 16), (3, 16))]


def answer(_: int) -> bytes:
    """What a child answers: of the model that it inherited, or else of one that it loads."""
    model = MODEL if MODEL is not None else flambeau.load(EXAMPLES / "lstm_cell.pt")
    return model(*inputs())[0].tobytes()


def large(_: int) -> float:
    """Work that takes the team of threads."""
    return float(flambeau.ones(512, 512).matmul(flambeau.ones(512, 512)).sum())


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        global MODEL
        MODEL = flambeau.load(EXAMPLES / "lstm_cell.pt")
        cls.wanted = MODEL(*inputs())[0].tobytes()
        large(0)

    def answers(self, method: str, work: Any, wanted: Any) -> None:
        context = multiprocessing.get_context(method)
        start = time.monotonic()
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            found = list(pool.map(work, range(4), timeout=30))
        self.assertEqual(found, [wanted] * 4)
        self.assertLess(time.monotonic() - start, PATIENCE, method)

    def test_fork(self) -> None:
        self.answers("fork", answer, self.wanted)
        self.answers("fork", large, 512.0**3)

    def test_spawn(self) -> None:
        self.answers("spawn", answer, self.wanted)

    def test_forkserver(self) -> None:
        self.answers("forkserver", answer, self.wanted)

    def test_a_child_of_os_fork_ends_by_itself(self) -> None:
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            good = answer(0) == self.wanted and large(0) == 512.0**3
            os._exit(0 if good else 3)
        while time.monotonic() - start < PATIENCE:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                self.assertEqual(status, 0)
                return
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        self.fail("the child hangs")

    def test_modules_travel_to_children(self) -> None:
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            self.assertEqual(pool.submit(MODEL, *inputs()).result(30)[0].tobytes(), self.wanted)


if __name__ == "__main__":
    unittest.main()
