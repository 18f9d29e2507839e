"""Compilers from Python: graphs edited by hand, passes, rules, dialects, ops, and what notebooks show."""

import random
import unittest
from typing import Any

import flambeau
from flambeau import Tensor

TEXT = """graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%a)
  %c : Tensor = aten::add(%b, %x, %one)
  return (%c)
"""


def graph() -> Any:
    return flambeau.parse_ir(TEXT)


class Edits(unittest.TestCase):
    def test_parts_are_lists_and_iterators(self) -> None:
        g = flambeau.parse_ir("graph(%x : Tensor, %y : Tensor):\n  %z : Tensor = aten::mul(%x, %y)\n  return (%z)\n")
        inputs = g.inputs()
        self.assertEqual((len(inputs), next(inputs).debugName()), (2, "x"))
        self.assertEqual([v.debugName() for v in inputs], ["y"])
        self.assertEqual(next(g.nodes()).kind(), "aten::mul")
        self.assertRaises(StopIteration, next, next(g.nodes()).blocks())

    def test_types_tell_what_they_know(self) -> None:
        g = flambeau.parse_ir("graph(%x : Float(2, *, device=cpu), %y : Long(3, strides=[1]), %n : int[]):\n  return (%n)\n")
        x, y, n = (v.type() for v in g.inputs())
        self.assertEqual((x.scalarType(), x.dim(), x.sizes(), x.varyingSizes(), str(x.device())), ("Float", 2, None, [2, None], "cpu"))
        self.assertEqual((y.scalarType(), y.sizes(), y.strides(), y.device()), ("Long", [3], [1], None))
        self.assertEqual((n.isSubtypeOf(n), x.isSubtypeOf(n), y.isSubtypeOf(y)), (True, False, True))
        self.assertRaisesRegex(RuntimeError, "is not a tensor", n.sizes)
        g.inputs()[0].inferTypeFrom(flambeau.ones(4, 1))
        self.assertEqual(g.inputs()[0].type().sizes(), [4, 1])

    def test_passes_have_the_names_of_pytorch(self) -> None:
        @flambeau.script
        def f(x: Tensor):
            return (x + 1) * (x + 1)

        self.assertIs(f.graph, f.graph)
        flambeau._C._jit_pass_cse(f.graph)
        self.assertEqual(len(f.graph.findAllNodes("aten::add")), 1)
        flambeau._C._jit_pass_lint(f.graph)
        flambeau._C._jit_pass_complete_shape_analysis(f.graph, (flambeau.ones(2, 3),))
        self.assertEqual(next(f.graph.outputs()).type().sizes(), [2, 3])
        self.assertRaisesRegex(AttributeError, "no attribute", lambda: flambeau._C._jit_pass_that_is_unknown)
        self.assertEqual(f(flambeau.ones(1)).tolist(), [4])

    def test_reading(self) -> None:
        g = graph()
        add = g.findNode("aten::add")
        self.assertEqual([v.debugName() for v in add.inputs()], ["b", "x", "one"])
        self.assertEqual(add.inputsAt(0).node().kind(), "aten::neg")
        self.assertEqual(add.namedInput("other"), g.inputs()[0])
        self.assertEqual(g.inputs()[0].node().kind(), "prim::Param")
        self.assertEqual([(u.user.kind(), u.offset) for u in g.inputs()[0].uses()], [("aten::neg", 0), ("aten::add", 1)])
        self.assertEqual(g.findNode("prim::Constant").output().toIValue(), 1)
        self.assertTrue(add.isAfter(g.findNode("aten::neg")))
        self.assertEqual(add.next(), None)
        self.assertEqual(g.return_node().prev(), add)
        self.assertTrue(add.schema().startswith("aten::add.Tensor("))
        self.assertEqual(len({add, g.findNode("aten::add")}), 1)

    def test_replacing_and_destroying(self) -> None:
        g = graph()
        first, second = g.findAllNodes("aten::neg")
        with self.assertRaisesRegex(RuntimeError, "%a is still used"):
            first.destroy()
        second.output().replaceAllUsesWith(g.inputs()[0])
        second.destroy()
        first.destroy()
        for gone in (first.kind, second.inputs, first.output):
            with self.assertRaisesRegex(RuntimeError, "is gone"):
                gone()
        self.assertEqual([n.kind() for n in g.nodes()], ["prim::Constant", "aten::add"])
        g.lint()
        f = flambeau.create_function(g)
        self.assertEqual(f(flambeau.tensor([2.0]), 3).tolist(), [4.0])

    def test_inserting(self) -> None:
        g = graph()
        add = g.findNode("aten::add")
        with g.insert_point_guard(add):
            doubled = g.insert("aten::mul", [add.inputsAt(0), 2])
            text = g.insert("aten::relu", [doubled])
        add.replaceInput(0, text)
        made = g.create("aten::tanh", [add.output()]).insertAfter(add)
        g.return_node().replaceInput(0, made.output())
        g.lint()
        x = flambeau.tensor([0.5, -1.0])
        want = flambeau.tanh(flambeau.relu(x * 2) + x)
        self.assertEqual(flambeau.create_function(g)(x, 0).tolist(), want.tolist())
        with self.assertRaisesRegex(RuntimeError, "no overload of aten::relu takes"):
            g.insert("aten::relu", [doubled, 1, 2.5])
        with self.assertRaisesRegex(RuntimeError, "is already in the graph"):
            made.insertBefore(add)

    def test_blocks(self) -> None:
        g = flambeau.parse_ir("graph(%c : bool, %x : Tensor):\n  return (%x)\n")
        c, x = g.inputs()
        branch = g.appendNode(g.create("prim::If", [c], 1))
        for kind in ("aten::neg", "aten::abs"):
            block = branch.addBlock()
            block.registerOutput(block.addNode(kind, [x]).output())
        g.registerOutput(branch.output())
        g.eraseOutput(0)
        g.lint()
        f = flambeau.create_function(g)
        self.assertEqual([f(b, flambeau.tensor([-2.0])).tolist() for b in (True, False)], [[2.0], [2.0]])
        inner = list(branch.blocks())[0].nodes()[0]
        with self.assertRaisesRegex(RuntimeError, "nested in itself"):
            branch.moveBefore(inner)
        with self.assertRaisesRegex(RuntimeError, "ends its block"):
            g.return_node().destroy()

    def test_attributes(self) -> None:
        g = flambeau.parse_ir("graph():\n  return ()\n")
        node = g.create("mine::op", [], 0)
        node.i_("n", 3).f_("p", 0.5).s_("s", "text").is_("ints", [1, 2]).fs_("fs", [0.5]).ss_("ss", ["a"]).ty_("T", "int[]")
        node.t_("w", flambeau.tensor([1.0]))
        self.assertEqual((node.i("n"), node.f("p"), node.s("s"), getattr(node, "is")("ints")), (3, 0.5, "text", [1, 2]))
        self.assertEqual((node.fs("fs"), node.ss("ss"), node.ty("T"), node.t("w").tolist()), ([0.5], ["a"], "int[]", [1.0]))
        self.assertEqual([node.kindOf(n) for n in node.attributeNames()], ["i", "f", "s", "is", "fs", "ss", "ty", "t"])
        with self.assertRaisesRegex(AttributeError, "wrong type: it is 'i', not 'f'"):
            node.f("n")
        node.removeAttribute("n")
        self.assertFalse(node.hasAttribute("n"))

    def test_lint_names_what_is_wrong(self) -> None:
        g = graph()
        add, neg = g.findNode("aten::add"), g.findNode("aten::neg")
        add.moveBefore(neg)
        with self.assertRaisesRegex(RuntimeError, "%b"):
            g.lint()
        with self.assertRaises(RuntimeError):
            g.run_pass("dce")
        with self.assertRaises(RuntimeError):
            flambeau.create_function(g)

    def test_random_edits_never_crash(self) -> None:
        # Whatever is done, an error is an exception and the structure stays whole: only `lint` may find fault.
        for seed in range(60):
            pick = random.Random(seed)
            g = graph()
            kept: list[Any] = list(g.all_nodes())
            values: list[Any] = [*g.inputs(), *(v for n in kept for v in n.outputs())]
            for _ in range(40):
                a, b = pick.choice(kept), pick.choice(kept)
                v, w = pick.choice(values), pick.choice(values)
                edits = [
                    lambda: a.destroy(), lambda: a.moveBefore(b), lambda: a.moveAfter(b), lambda: a.insertBefore(b),
                    lambda: v.replaceAllUsesWith(w), lambda: a.replaceInput(pick.randrange(3), v), lambda: a.addInput(v),
                    lambda: a.removeInput(pick.randrange(3)), lambda: values.append(a.addOutput()), lambda: a.eraseOutput(0),
                    lambda: kept.append(g.insertNode(g.create("aten::abs", [v]))), lambda: g.registerOutput(v),
                    lambda: g.eraseOutput(0), lambda: g.eraseInput(0), lambda: values.append(g.addInput()),
                    lambda: values.append(a.addBlock().addInputToBlock()), lambda: a.replaceAllUsesWith(b),
                    lambda: g.setInsertPoint(a), lambda: v.replaceAllUsesAfterNodeWith(a, w), lambda: a.isBefore(b),
                ]  # fmt: skip
                try:
                    pick.choice(edits)()
                except (RuntimeError, IndexError):
                    pass
                str(g)
            try:
                g.lint()
                g.run_pass("dce,cse")
            except RuntimeError:
                pass


class Passes(unittest.TestCase):
    def test_a_pass_is_part_of_pipelines(self) -> None:
        @flambeau.pass_
        def drop_double_neg(graph: Any) -> bool:
            """Removes neg(neg(x))."""
            changed = False
            for node in graph.findAllNodes("aten::neg"):
                inner = node.input().node()
                if inner.kind() == "aten::neg":
                    node.output().replaceAllUsesWith(inner.input())
                    node.destroy()
                    changed = True
            return changed

        g = graph()
        g.run_pass("drop-double-neg,dce")
        self.assertIsNone(g.findNode("aten::neg"))
        flambeau.pipeline("mine", "inline,drop-double-neg,dce")

        @flambeau.script
        def f(x: Tensor) -> Tensor:
            return -(-x) + 1

        after = flambeau.run_passes(f, "mine")
        self.assertNotIn("aten::neg", str(after.graph))
        self.assertEqual(after(flambeau.ones(1)).tolist(), [2.0])

    def test_what_is_defined_again_may_build_on_what_came_between(self) -> None:
        flambeau.pipeline("again", "dce")

        @flambeau.pass_("between")
        def between(graph: Any) -> bool:
            return False

        flambeau.pipeline("again", "dce,between")
        graph().run_pass("again")
        with self.assertRaisesRegex(RuntimeError, "there is no pass 'nothing'"):
            flambeau.pipeline("again", "nothing")
        graph().run_pass("again")

    def test_what_a_pass_raises_and_breaks(self) -> None:
        @flambeau.pass_("raises")
        def first(graph: Any) -> None:
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            graph().run_pass("raises")

        @flambeau.pass_("breaks")
        def second(graph: Any) -> None:
            nodes = graph.nodes()
            nodes[-1].moveBefore(nodes[0])

        g = graph()
        with self.assertRaisesRegex(RuntimeError, "%b"):
            g.run_pass("breaks")
        self.assertEqual(len(g.findAllNodes("aten::neg")), 2)
        with self.assertRaises(RuntimeError) as caught:
            g.run_pass("break")
        self.assertEqual(caught.exception.hints, ["did you mean 'breaks'?"])


class Rules(unittest.TestCase):
    def test_a_rule_is_checked_and_applied(self) -> None:
        @flambeau.rule
        def log1p_of_expm1(x: Tensor) -> Any:
            return flambeau.square(flambeau.neg(x)), flambeau.square(x), "is_float(?x)"

        self.assertIn("aten::square(aten::neg(?x: Tensor)) => aten::square(?x) if is_float(?x)", repr(log1p_of_expm1))
        g = flambeau.parse_ir(
            "graph(%x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n"
            "  %a : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::neg(%x)\n"
            "  %b : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::square(%a)\n  return (%b)\n"
        )
        g.run_pass("simplify")
        self.assertEqual([n.kind() for n in g.nodes()], ["aten::square"])

    def test_rules_speak_of_ops_of_python_dialects(self) -> None:
        mine = flambeau.dialect("pyrules")

        @mine.op()
        def twice(x: Tensor) -> Tensor:
            return x + x

        flambeau.rule("rule twice-is-a-sum exact pyrules::twice(?x: Tensor) => aten::add(?x, ?x, 1)")
        with self.assertRaises(flambeau.RuleError) as caught:
            flambeau.rule("rule twice-is-nothing exact pyrules::twice(?x: Tensor) => ?x")
        self.assertIn("x", caught.exception.counterexample)

    def test_a_lie_is_refused_with_a_counterexample(self) -> None:
        with self.assertRaisesRegex(flambeau.RuleError, "rule wrong does not hold") as caught:

            @flambeau.rule
            def wrong(x: Tensor) -> Any:
                return x.abs(), x

        example = caught.exception.counterexample
        self.assertNotEqual(flambeau.abs(example["x"]).tolist(), example["x"].tolist())
        with self.assertRaisesRegex(RuntimeError, "aten::relux"):
            flambeau.rule("rule r exact aten::relux(?x) => ?x")


class Dialects(unittest.TestCase):
    def test_an_op_means_its_body(self) -> None:
        mine = flambeau.dialect("pymine", "for tests")

        @mine.op(surrogate={"x": "grad"})
        def snap(x: Tensor, step: float = 0.5) -> Tensor:
            """Rounds to the nearest multiple of step."""
            return torch.round(x / step) * step  # noqa: F821

        self.assertIn("op pymine::snap(Tensor x, float step=0.5) -> Tensor {", mine.text)
        self.assertEqual(snap(flambeau.tensor([0.7]), 0.5).tolist(), [0.5])

        @flambeau.script
        def f(x: Tensor) -> Tensor:
            return torch.ops.pymine.snap(x, 0.25) + 1  # noqa: F821

        self.assertIn("pymine::snap", str(f.graph))
        self.assertEqual(f(flambeau.tensor([0.3])).tolist(), [1.25])
        x = flambeau.tensor([0.3], requires_grad=True)
        f(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [1.0])
        with self.assertRaisesRegex(RuntimeError, "there is no fact 'commutativ'"):

            @mine.op(facts=["commutativ"])
            def bad(x: Tensor, y: Tensor) -> Tensor:
                return x + y

        self.assertNotIn("bad", mine.text)

    def test_an_op_of_python(self) -> None:
        other = flambeau.dialect("pyother")
        calls = []

        @other.op(schema="(Tensor x, str how) -> Tensor", python=True, effects=["reads_world"])
        def noted(x: Any, how: str) -> Any:
            calls.append(how)
            return x * 2

        self.assertEqual(noted(flambeau.ones(2), "twice").tolist(), [2.0, 2.0])
        self.assertEqual(calls, ["twice"])

    def test_text(self) -> None:
        made = flambeau.dialect('dialect pytext "as text"\n\nop pytext::twice(Tensor x) -> Tensor {\n    meaning\n        def twice(x: Tensor) -> Tensor:\n            return x + x\n}\n')
        self.assertEqual(made.name, "pytext")
        self.assertEqual(flambeau.ops.pytext.twice(flambeau.ones(1)).tolist(), [2.0])


class Shown(unittest.TestCase):
    def test_explanations_and_differences(self) -> None:
        @flambeau.script
        def f(x: Tensor) -> Tensor:
            return (x * 2).tanh() + 1

        text = flambeau.explain(f, flambeau.ones(3))
        self.assertIn("the plan of", text)
        g = f.graph
        before = str(g)
        g.run_pass("fuse")
        shown = flambeau.diff(before, g)
        self.assertIn("+", shown)
        for value in (text, shown, g, f):
            self.assertIn("<", value._repr_html_())
        self.assertIn("srcdoc=", g._repr_html_())


if __name__ == "__main__":
    unittest.main()
