"""Limits of programs that are not trusted, cancelling them, and Ctrl-C."""

import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import flambeau
from flambeau import Limits, LimitError, limits

SOURCE = """
def endless(n: int) -> int:
    while n > 0:
        n += 1
    return n

def tensors(n: int) -> Tensor:
    x = torch.ones(4)
    while n > 0:
        x = x + 1
    return x

def wide(n: int) -> Tensor:
    return torch.zeros(n)

def deep(n: int) -> int:
    return n if n == 0 else deeper(n - 1)

def deeper(n: int) -> int:
    return n if n == 0 else deepest(n - 1)

def deepest(n: int) -> int:
    return n

def prints(n: int) -> int:
    for i in range(n):
        print("0123456789")
    return n

def keeps(n: int) -> List[Tensor]:
    kept: List[Tensor] = []
    for i in range(n):
        kept.append(torch.ones(1000))
    return kept
"""


def unit():
    return flambeau.CompilationUnit(SOURCE)


class Reached(unittest.TestCase):
    def reaches(self, name, work):
        with self.assertRaises(LimitError) as caught:
            work()
        self.assertIsInstance(caught.exception, RuntimeError)
        self.assertEqual(caught.exception.limit, name)
        return caught.exception

    def test_each_limit_has_a_typed_error_with_its_line(self):
        m = unit()
        with limits(steps=10_000):
            error = self.reaches("steps", lambda: m.endless(1))
        self.assertRegex(str(error), r"the limit of 10000 steps was reached \(<string>:\d+:\d+\)")
        self.assertEqual(error.place[0], "<string>")
        self.assertIn(error.place[1], (3, 4))
        self.assertEqual(error.hints, ["flambeau.Limits(steps=...) sets it"])
        with limits(memory="1M"):
            error = self.reaches("memory", lambda: m.wide(1 << 20))
        self.assertIn("memory limit of 1.0 MiB", str(error))
        self.assertEqual(error.place[1], 14)
        with limits(seconds=0.05):
            self.assertIn("time limit of 0.05 s", str(self.reaches("seconds", lambda: m.tensors(1))))
        with limits(output=35):
            self.reaches("output", lambda: m.prints(10))
        # Passes inline calls; as compiled, they nest.
        with flambeau.optimized_execution(False), limits(depth=2):
            self.assertIn("line", str(self.reaches("depth", lambda: m.deep(5))))

    def test_below_the_limits_answers_are_the_same(self):
        m = unit()
        with limits(memory="1G", steps=10**6, seconds=100, depth=100, output="1M", warnings=5, forks=10):
            self.assertEqual(m.endless(0), 0)
            self.assertEqual(m.wide(3).tolist(), [0.0] * 3)
            self.assertEqual(m.deep(2), 0)
        # What was reached once ends nothing later.
        with limits(steps=1):
            self.reaches("steps", lambda: m.keeps(10))
        self.assertEqual(len(m.keeps(10)), 10)

    def test_a_block_is_bounded_as_a_whole(self):
        m = unit()
        with limits(memory=100_000) as block:
            kept = m.keeps(15)
            self.reaches("memory", lambda: m.keeps(15))
            del kept
            self.assertEqual(len(m.keeps(15)), 15)
            # Single operations are charged, too.
            self.reaches("memory", lambda: flambeau.ones(100_000))
            self.assertEqual(block.memory, 100_000)
        self.assertEqual(len(m.keeps(50)), 50)
        with limits(output=40):
            m.prints(3)
            self.reaches("output", lambda: m.prints(3))

    def test_blocks_nest_and_both_hold(self):
        m = unit()
        with limits(steps=5_000):
            with limits(steps=10**9, memory="1M"):
                self.reaches("steps", lambda: m.endless(1))
            self.reaches("steps", lambda: m.endless(1))
        with limits(memory="10M"):
            with limits(memory="1M"):
                self.reaches("memory", lambda: m.wide(1 << 20))
            m.wide(1 << 20)

    def test_limits_are_the_threads(self):
        m, answers = unit(), []
        with limits(memory="1M"):
            thread = threading.Thread(target=lambda: answers.append(len(m.wide(1 << 20))))
            thread.start()
            thread.join()
        self.assertEqual(answers, [1 << 20])

    def test_compiling_is_bounded(self):
        with limits() as block:
            block.cancel()
            self.reaches("cancel", lambda: unit().endless(0))
            self.reaches("cancel", lambda: flambeau.ones(2))

    def test_loading_is_bounded_and_calls_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.py")
            with open(path, "w") as file:
                file.write(SOURCE)
            bounds = Limits(memory="1M", steps=10_000)
            m = flambeau.load(path, limits=bounds)
            self.reaches("steps", lambda: m.endless(1))
            self.reaches("memory", lambda: m.wide(1 << 20))
            # Each call has its steps, and so have those of a method taken before.
            for _ in range(5):
                self.assertEqual(len(m.keeps(10)), 10)
            self.assertEqual(len(flambeau.load(path).wide(1 << 20)), 1 << 20)
            bounds.cancel()
            self.reaches("cancel", lambda: m.keeps(10))
            self.reaches("cancel", lambda: flambeau.load(io.BytesIO(SOURCE.encode()), limits=bounds))

    def test_what_is_no_limit_is_refused(self):
        for odd in (dict(memory="much"), dict(steps=-1), dict(seconds=-1.0), dict(seconds=float("nan")), dict(depth="deep"), dict(output=1.5)):
            with self.assertRaises(ValueError, msg=str(odd)):
                Limits(**odd)
        with self.assertRaises(TypeError):
            Limits("1G")
        with self.assertRaises(RuntimeError):
            Limits().__exit__(None, None, None)
        bounds = Limits(memory="1.5K", seconds=2)
        self.assertEqual((bounds.memory, bounds.steps, bounds.seconds, bounds.depth, bounds.forks), (1536, None, 2.0, 4000, 100_000))
        self.assertEqual(repr(bounds), "Limits(memory=1536, seconds=2)")


class Cancelled(unittest.TestCase):
    def test_from_another_thread(self):
        for name in ("endless", "tensors"):
            method = getattr(unit(), name)
            with limits() as block:
                threading.Timer(0.1, block.cancel).start()
                begin = time.monotonic()
                with self.assertRaisesRegex(LimitError, "cancelled") as caught:
                    method(1)
                self.assertEqual(caught.exception.limit, "cancel")
                self.assertTrue(block.cancelled)
                self.assertLess(time.monotonic() - begin, 20)
                # And nothing begins under it any more.
                with self.assertRaises(LimitError):
                    method(0)
            method(0)


def heed() -> None:
    """A shell starts what is in its background with the signal ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Interrupted(unittest.TestCase):
    def setUp(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def test_ctrl_c_ends_a_call(self):
        for name in ("endless", "tensors"):
            method = getattr(unit(), name)
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                method(1)
            self.assertLess(time.monotonic() - begin, 20)
            method(0)

    def test_other_handlers_run_and_the_call_goes_on(self):
        seen = []

        def handler(number, frame):
            # A handler may call flambeau itself.
            seen.append(flambeau.ones(2).sum().item())
            if len(seen) == 2:
                raise ValueError("enough")

        former = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
            with self.assertRaisesRegex(ValueError, "enough"):
                unit().endless(1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)
        self.assertEqual(seen, [2.0, 2.0])

    @unittest.skipUnless(os.name == "posix", "signals of POSIX")
    def test_a_program_of_the_command_line_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.py")
            with open(path, "w") as file:
                file.write("def f(n: int) -> int:\n    while n > 0:\n        n += 1\n    return n\n")
            child = subprocess.Popen([sys.executable, "-m", "flambeau", "run", path, "--input", "n=1"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=heed)
            self.addCleanup(child.kill)
            time.sleep(3)
            self.assertIsNone(child.poll(), "it runs without end")
            child.send_signal(signal.SIGINT)
            self.assertNotEqual(child.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
