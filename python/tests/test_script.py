"""Scripts and traces without PyTorch: sources, places of errors, globals, classes, files."""

import contextlib
import enum
import io
import math
import os
import re
import tempfile
import unittest
import warnings
from typing import Dict, List, NamedTuple, Optional

import flambeau
from flambeau import Tensor

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
SCALE = 3


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Point(NamedTuple):
    x: Tensor
    y: int = 2


def helper(x):
    return x * SCALE


@flambeau.script
class Counter:
    def __init__(self, start: int):
        self.value = start

    def add(self, n: int) -> int:
        self.value += n
        return self.value


class Scripts(unittest.TestCase):
    def test_control_flow_and_globals(self) -> None:
        offset = 1

        @flambeau.script
        def f(x: Tensor, n: int = 2) -> Tensor:
            for i in range(n):
                x = helper(x) + offset
            return x

        self.assertEqual(f(flambeau.ones(1)).tolist(), [13])
        self.assertEqual(f(flambeau.ones(1), n=0).tolist(), [1])
        self.assertEqual(str(f.schema), "f(Tensor x, int n=2) -> Tensor")

    def test_places_of_errors(self) -> None:
        def f(x):
            return x + missing  # noqa: F821

        with self.assertRaises(flambeau.CompileError) as caught:
            flambeau.script(f)
        line = f.__code__.co_firstlineno + 1
        self.assertIn(f'test_script.py", line {line}\n', str(caught.exception))
        self.assertEqual(caught.exception.place[1], line)

    def test_places_at_run_time(self) -> None:
        @flambeau.script
        def f(x, y):
            return x @ y

        with self.assertRaisesRegex(RuntimeError, "(?s)most recent call last.*test_script.py.*return x @ y.*<--- HERE"):
            f(flambeau.ones(2, 3), flambeau.ones(2, 3))

    def test_what_only_python_writes(self) -> None:
        @flambeau.script
        def f(n: int, s: str) -> str:
            """A text
            on two lines."""
            if 0 < n < 0x10 and s == r"\d" or n == 1_000:
                return f"{s}:{n}"
            return "no" if all(c == "a" for c in [s]) else "other"

        self.assertEqual([f(3, r"\d"), f(1000, "b"), f(0, "a"), f(0, "b")], [r"\d:3", "b:1000", "no", "other"])

    def test_and_binds_tighter_than_or(self) -> None:
        @flambeau.script
        def f(a: bool, b: bool, c: bool) -> bool:
            return a or b and c

        self.assertEqual([f(True, False, False), f(False, True, False), f(False, True, True)], [True, False, True])

    def test_what_is_not_supported_says_so(self) -> None:
        def f(x):
            try:
                return x
            finally:
                pass

        def g(*xs):
            return xs

        with self.assertRaisesRegex(flambeau.NotSupportedError, "try blocks aren't supported"):
            flambeau.script(f)
        with self.assertRaisesRegex(flambeau.NotSupportedError, "variable number of arguments"):
            flambeau.script(g)

    def test_classes(self) -> None:
        @flambeau.script
        def f(c: Counter) -> int:
            return c.add(2) + Counter(5).value

        self.assertEqual(f(Counter(1)), 8)

    def test_enums_and_named_tuples(self) -> None:
        @flambeau.script
        def f(c: Color, x: Tensor) -> Point:
            return Point(x, c.value if c == Color.RED else 7)

        self.assertEqual(f(Color.GREEN, flambeau.ones(1)).y, 7)
        self.assertIsInstance(f(Color.RED, flambeau.ones(1)), Point)

        @flambeau.script
        def g(n: int) -> Color:
            return Color.RED if n == 0 else Color.GREEN

        self.assertIs(g(1), Color.GREEN)

    def test_exceptions_of_python_code_pass_through(self) -> None:
        @flambeau.ignore
        def python(x: Tensor) -> Tensor:
            raise KeyError("from python")

        @flambeau.script
        def f(x):
            return python(x)

        with self.assertRaisesRegex(Exception, "from python"):
            f(flambeau.ones(1))

    def test_ignored_functions_cannot_be_saved(self) -> None:
        @flambeau.ignore
        def python(x: Tensor) -> Tensor:
            return x + 1

        @flambeau.script
        def f(x):
            return python(x)

        self.assertEqual(f(flambeau.ones(1)).tolist(), [2])
        with self.assertRaisesRegex(RuntimeError, "Could not export Python function"):
            f.save(io.BytesIO())

    def test_names_of_torch_jit(self) -> None:
        @flambeau.script
        def f(x: Optional[Tensor]) -> Dict[str, int]:
            out = flambeau.annotate(Dict[str, int], {})
            if flambeau.is_scripting():
                out["scripting"] = 1
            futures = flambeau.jit.annotate(List[flambeau.Future[Tensor]], [])
            futures.append(flambeau.fork(helper, flambeau.ones(1)))
            out["value"] = int(flambeau.wait(futures[0]).item())
            return out

        self.assertEqual(f(None), {"scripting": 1, "value": 3})

    def test_files(self) -> None:
        @flambeau.script
        def f(x):
            return x * 2

        buffer = io.BytesIO()
        flambeau.save(f, buffer, _extra_files={"a.txt": "hello"})
        buffer.seek(0)
        extra = {"a.txt": ""}
        self.assertEqual(flambeau.load(buffer, _extra_files=extra)(flambeau.ones(1)).tolist(), [2])
        self.assertEqual(extra["a.txt"], b"hello")

    def test_weights(self) -> None:
        m = flambeau.load(os.path.join(EXAMPLES, "lstm_cell.pt"))
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/w.safetensors"
            m.save_weights(path)
            first = next(iter(m.parameters()))
            kept = first.tolist()
            with flambeau.no_grad():
                first.zero_()
            m.load_weights(path)
            self.assertEqual(first.tolist(), kept)
            with self.assertRaisesRegex(RuntimeError, "there is no file|No such file"):
                m.load_weights(f"{folder}/other.safetensors")

    def test_graphs(self) -> None:
        @flambeau.script
        def f(x):
            return helper(x) + helper(x)

        graph = f.graph.copy()
        node = graph.findNode("prim::CallFunction")
        graph.run_pass("inline,cse,dce")
        self.assertEqual([n.kind() for n in graph.nodes()].count("aten::mul"), 1)
        with self.assertRaisesRegex(RuntimeError, "gone"):
            node.kind()

    def test_printing_goes_to_python(self) -> None:
        import contextlib

        @flambeau.script
        def f(n: int) -> int:
            print("n is", n)
            return n

        with contextlib.redirect_stdout(io.StringIO()) as out:
            f(3)
        self.assertEqual(out.getvalue(), "n is 3\n")


class Switches(unittest.TestCase):
    def setUp(self) -> None:
        self.f = flambeau.script("def f(x: Tensor) -> Tensor:\n    return x.relu() * 2 + 1\n")

    def test_optimized_execution(self) -> None:
        x = flambeau.ones(2)
        with flambeau.optimized_execution(False):
            self.assertEqual(self.f(x).tolist(), [3, 3])
            self.assertEqual(self.f._c.plan_graphs("f"), [])
        self.assertEqual(self.f(x).tolist(), [3, 3])
        self.assertEqual(len(self.f._c.plan_graphs("f")), 1)

    def test_graph_for_is_of_these_arguments(self) -> None:
        for n in (2, 3, 2):
            self.assertIn(f"Float({n}, ", str(self.f.graph_for(flambeau.ones(n))))
        self.assertEqual(len(self.f._c.plan_graphs("f")), 2)

    def test_debug_state(self) -> None:
        self.assertEqual(self.f.get_debug_state().execution_plans, {})
        for n in (2, 3, 2):
            self.f(flambeau.ones(n))
        state = self.f.get_debug_state()
        kinds = sorted(state.execution_plans)
        self.assertEqual([kind[0].partition(",")[0] for kind in kinds], ["x : Float(2", "x : Float(3"])
        plans = [state.execution_plans[kind] for kind in kinds]
        self.assertEqual([plan.calls for plan in plans], [2, 1])
        for n, plan in zip((2, 3), plans):
            self.assertIn(f"Float({n}, ", plan.graph)
            self.assertIn("return", plan.code)
            self.assertEqual(plan.guards[0]["asks"], "arguments")
        self.assertIsNone(state.fallback)
        self.assertIn("graph(%x", state.graph)

    def test_logging(self) -> None:
        switches = flambeau._C
        stream = io.StringIO()
        with self.assertRaises(Exception):
            switches._jit_set_logging_option("no-such-pass")
        switches._jit_set_logging_option("propagate-shapes")
        switches._jit_set_logging_stream("stdout")
        try:
            self.assertEqual(switches._jit_get_logging_option(), "propagate-shapes")
            with contextlib.redirect_stdout(stream):
                self.f(flambeau.ones(3))
        finally:
            switches._jit_set_logging_stream("stderr")
            switches._jit_set_logging_option("")
        self.assertIn("[UPDATE propagate-shapes] finds Float(3", stream.getvalue())
        with self.assertRaises(RuntimeError):
            switches._jit_set_logging_stream("file")

    def test_fusion_strategy(self) -> None:
        former = flambeau.set_fusion_strategy([("STATIC", 2)])
        try:
            for n in range(1, 5):
                self.f(flambeau.ones(n))
            self.assertEqual(len(self.f._c.plan_graphs("f")), 2)
            self.assertEqual(flambeau.set_fusion_strategy(former), [("STATIC", 2)])
        finally:
            flambeau.set_fusion_strategy(former)
        with self.assertRaisesRegex(ValueError, "only supported 'STATIC' or 'DYNAMIC', got: X"):
            flambeau.set_fusion_strategy([("X", 2)])

    def test_a_dynamic_strategy_leaves_sizes_open(self) -> None:
        former = flambeau.set_fusion_strategy([("STATIC", 1), ("DYNAMIC", 4)])
        try:
            for n in range(2, 9):
                self.assertEqual(self.f(flambeau.ones(n)).tolist(), [3] * n)
            graphs = self.f._c.plan_graphs("f")
            self.assertEqual(len(graphs), 2)
            self.assertIn("Float(s0, strides=[1]", str(self.f.graph_for(flambeau.ones(5))))
        finally:
            flambeau.set_fusion_strategy(former)

    def test_plans_may_be_made_in_the_background(self) -> None:
        self.assertFalse(flambeau.set_plans_in_background(True))
        try:
            self.assertEqual(self.f(flambeau.ones(3)).tolist(), [3, 3, 3])
            flambeau.finish_plans(self.f)
            self.assertEqual(self.f(flambeau.ones(3)).tolist(), [3, 3, 3])
            state = self.f.get_debug_state()
            self.assertEqual(len(self.f._c.plan_graphs("f")), 1)
            self.assertIsNotNone(state.fallback)
        finally:
            self.assertTrue(flambeau.set_plans_in_background(False))

    def test_switches_of_the_executor_have_pytorchs_names(self) -> None:
        switches = flambeau._C
        for switch in (switches._jit_set_profiling_executor, switches._jit_set_profiling_mode):
            self.assertTrue(switch(False))
            try:
                self.assertEqual(self.f(flambeau.ones(2)).tolist(), [3, 3])
                self.assertEqual(self.f._c.plan_graphs("f"), [])
                self.assertIn("aten::", str(flambeau.last_executed_optimized_graph()))
            finally:
                self.assertFalse(switch(True))
        self.assertEqual(switches._jit_set_num_profiled_runs(3), 1)
        try:
            self.assertEqual(switches._jit_get_num_profiled_runs(), 3)
            made = []
            for _ in range(3):
                self.f(flambeau.ones(2))
                made.append(len(self.f._c.plan_graphs("f")))
            self.assertEqual(made, [0, 0, 1])
        finally:
            self.assertEqual(switches._jit_set_num_profiled_runs(1), 3)
        self.assertIn("Float(2, ", str(flambeau.last_executed_optimized_graph()))
        depth = switches._jit_set_bailout_depth(1)
        try:
            self.assertEqual(depth, 12)
            for n in range(1, 4):
                self.f(flambeau.ones(n))
            self.assertEqual(len(self.f._c.plan_graphs("f")), 1)
            self.assertIn("Float(3, ", str(flambeau.last_executed_optimized_graph()))
        finally:
            self.assertEqual(switches._jit_set_bailout_depth(depth), 1)
        self.assertTrue(switches._get_graph_executor_optimize(False))
        self.assertFalse(switches._get_graph_executor_optimize())
        switches._set_graph_executor_optimize(True)

    def test_what_does_nothing_says_so(self) -> None:
        with self.assertWarns(flambeau.ScriptWarning), flambeau.fuser("fuser1"):
            self.f(flambeau.ones(2))
        with self.assertRaisesRegex(Exception, "unrecognized fuser option"), flambeau.fuser("x"):
            pass
        with self.assertWarns(flambeau.ScriptWarning):
            flambeau.enable_onednn_fusion(True)


class Traces(unittest.TestCase):
    def test_scripted_calls_keep_their_control_flow(self) -> None:
        @flambeau.script
        def g(x):
            if x.sum() > 0:
                return x
            return -x

        traced = flambeau.trace(lambda x: g(x) + 1, (flambeau.ones(2),))
        self.assertEqual(traced(-flambeau.ones(2)).tolist(), [2, 2])
        self.assertIn("prim::CallFunction", str(traced.graph))

    def test_results_of_ignored_functions_are_of_their_type(self) -> None:
        def calls(result):
            @flambeau.ignore
            def f(x: Tensor) -> float:
                return result

            @flambeau.script
            def g(x: Tensor):
                return f(x)

            return g(flambeau.ones(1))

        self.assertEqual(repr(calls(3)), "3.0")
        with self.assertRaisesRegex(RuntimeError, "expected value of type float for return value but instead got value of type str"):
            calls("a")

    def test_constants_slices_and_writes(self) -> None:
        c = flambeau.tensor([1.0, 2.0])

        def f(x):
            y = x.clone()
            y[0] = 5
            y += c
            return y[:1], [y * 2]

        a, b = flambeau.trace(f, (flambeau.zeros(2),))(flambeau.ones(2))
        self.assertEqual((a.tolist(), b[0].tolist()), ([6], [12, 6]))

    def test_sizes_are_computed_anew(self) -> None:
        def f(x):
            n, c = x.shape
            y = x.reshape(n * 2, c // 2) * x.size(-1) ** -0.5
            return flambeau.cat([y, flambeau.zeros(n * 2, 1)], 1) + x.numel()

        traced = flambeau.trace(f, (flambeau.ones(2, 4),))
        x = flambeau.ones(3, 16)
        self.assertEqual(traced(x).tolist(), f(x).tolist())

    def test_sizes_are_given_as_tensors(self) -> None:
        traced = flambeau.trace(lambda x: (x, x.size(0) * 2, [x.shape[1]]), (flambeau.ones(2, 4),), strict=False)
        _, double, rest = traced(flambeau.ones(3, 5))
        self.assertEqual((double.item(), rest[0].item(), double.dtype), (6, 5, flambeau.int64))

    def test_sizes_that_steer_python_are_warned_of(self) -> None:
        def f(x):
            return x if x.size(0) > 1 else -x

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            traced = flambeau.trace(f, (flambeau.ones(2),), check_trace=False)
        self.assertEqual([w.category for w in seen], [flambeau.TracerWarning])
        self.assertEqual(traced(flambeau.ones(1)).tolist(), [1])

    def test_numbers_taken_from_sizes_are_warned_of(self) -> None:
        def f(x):
            up = math.ceil(x.size(0) / 2)
            return x.reshape(int(x.size(0)), -1) + float(x.shape[0]) + up + (1 if x.numel() else 2)

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            flambeau.trace(f, (flambeau.ones(4, 2),), check_trace=False)
        kinds = [re.search("Python ([a-z]+)", str(w.message)).group(1) for w in seen]
        self.assertEqual(kinds, ["float", "integer", "float", "boolean"])

    def test_containers_of_results(self) -> None:
        x = flambeau.ones(2)
        with self.assertRaisesRegex(RuntimeError, "Encountering a dict at the output of the tracer"):
            flambeau.trace(lambda x: {"a": x}, (x,))
        traced = flambeau.trace(lambda x: {"a": x + 1}, (x,), strict=False)
        self.assertEqual(traced(x)["a"].tolist(), [2, 2])
        with self.assertWarnsRegex(flambeau.TracerWarning, "Encountering a list"):
            flambeau.trace(lambda x: [x], (x,))

    def test_values_that_steer_python_are_told(self) -> None:
        def f(x):
            return x if x.sum().item() > 0 else -x

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            flambeau.trace(f, (flambeau.ones(1),), check_trace=False)
        self.assertEqual([w.category for w in seen], [flambeau.TracerWarning])


if __name__ == "__main__":
    unittest.main()
