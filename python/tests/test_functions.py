"""Functions, numbers and random generators without PyTorch; containers and types as objects; what is refused."""

import io
import unittest

import numpy as np

import flambeau


class Functions(unittest.TestCase):
    def test_modules_of_functions(self):
        x = flambeau.tensor([3.0, 4.0])
        self.assertEqual(flambeau.linalg.norm(x).item(), 5.0)
        self.assertEqual(flambeau.nn.functional.relu(flambeau.tensor([-1.0, 2.0])).tolist(), [0.0, 2.0])
        self.assertAlmostEqual(flambeau.special.expit(flambeau.tensor(0.0)).item(), 0.5)
        self.assertEqual(flambeau.fft.fft(flambeau.ones(2)).real.tolist(), [2.0, 0.0])
        with self.assertRaisesRegex(AttributeError, "no function 'nonsense'"):
            flambeau.linalg.nonsense
        with self.assertRaisesRegex(AttributeError, "import torch first"):
            flambeau.nn.Linear

    def test_limits_of_numbers(self):
        for name in ("float16", "float32", "float64"):
            own, numpy = flambeau.finfo(getattr(flambeau, name)), np.finfo(name)
            self.assertEqual((own.eps, own.max, own.min, own.tiny), tuple(map(float, (numpy.eps, numpy.max, numpy.min, numpy.tiny))))
            self.assertAlmostEqual(own.resolution / float(numpy.resolution), 1.0, places=2)
        for name in ("int8", "int32", "int64", "uint8"):
            own, numpy = flambeau.iinfo(getattr(flambeau, name)), np.iinfo(name)
            self.assertEqual((own.bits, own.max, own.min), (numpy.bits, numpy.max, numpy.min))
        with self.assertRaises(TypeError):
            flambeau.finfo(flambeau.int64)

    def test_generators(self):
        flambeau.manual_seed(5)
        want = flambeau.rand(3).tolist(), flambeau.rand(3).tolist()
        generator = flambeau.Generator().manual_seed(5)
        self.assertEqual(flambeau.rand(3, generator=generator).tolist(), want[0])
        state = generator.get_state()
        self.assertEqual(flambeau.rand(3, generator=generator).tolist(), want[1])
        generator.set_state(state)
        self.assertEqual(flambeau.rand(3, generator=generator).tolist(), want[1])
        self.assertEqual(generator.initial_seed(), 5)
        for seed in (-1, 2**64 - 1):
            self.assertEqual(generator.manual_seed(seed).initial_seed(), 2**64 - 1)
        with self.assertRaises(TypeError):
            flambeau.rand(3, generator=7)

    def test_generators_that_programs_are_given_and_give(self):
        draw = flambeau.script("def f(n: int, g: Optional[Generator] = None):\n    return torch.rand([n], generator=g)\n")
        make = flambeau.script("def f():\n    return torch.Generator(seed=5)\n")
        both = flambeau.script("def f(g: Generator):\n    return torch.rand([3], generator=g), g\n")
        want = draw(3, make()).tolist()
        generator = flambeau.Generator().manual_seed(5)
        self.assertEqual(draw(3, generator).tolist(), want)
        self.assertNotEqual(draw(3, generator).tolist(), want)
        self.assertEqual(make().initial_seed(), 5)
        given = flambeau.Generator().manual_seed(5)
        self.assertIs(both(given)[1], given)
        again = make()
        draw(3, again)
        self.assertEqual(given.get_state().tolist(), again.get_state().tolist())
        flambeau.manual_seed(5)
        self.assertEqual(draw(3).tolist(), want)
        with self.assertRaises(RuntimeError):
            draw(3, 7)

    def test_what_numpy_lacks_is_refused(self):
        with self.assertRaisesRegex(TypeError, "unsupported ScalarType BFloat16"):
            flambeau.ones(2, dtype=flambeau.bfloat16).numpy()

    def test_type_of_a_tensor(self):
        self.assertEqual(flambeau.ones(2).type(), "torch.FloatTensor")
        self.assertEqual(flambeau.ones(2).type(flambeau.int64).type(), "torch.LongTensor")


class Loading(unittest.TestCase):
    def test_nothing_is_no_model(self):
        with self.assertRaisesRegex(RuntimeError, "empty"):
            flambeau.load(io.BytesIO(b""))
        with self.assertRaises(RuntimeError):
            flambeau.load(io.BytesIO(b"# a comment\n"))

    def test_other_places_are_refused_by_name(self):
        for place in ("meta", "cuda", "cuda:1"):
            with self.assertRaisesRegex(RuntimeError, place):
                flambeau.load("examples/lstm_cell.pt", map_location=place)
        with self.assertRaises(RuntimeError):
            flambeau.tensor([1.0], device="meta")


class Containers(unittest.TestCase):
    def test_lists_are_shared(self):
        f = flambeau.script("def f(xs: List[int]) -> int:\n    xs.append(7)\n    return len(xs)\n")
        xs = flambeau.script([1, 2, 3])
        self.assertEqual(f(xs), 4)
        self.assertEqual(list(xs), [1, 2, 3, 7])
        xs[1:3] = [9]
        del xs[0]
        xs.insert(0, 4)
        self.assertEqual(xs, [4, 9, 7])
        self.assertEqual((xs.pop(), xs.count(9), 4 in xs), (7, 1, True))
        with self.assertRaises(IndexError):
            xs[5]
        with self.assertRaises(TypeError):
            flambeau.script([1, "a"])

    def test_dictionaries_are_shared(self):
        f = flambeau.script("def f(d: Dict[str, int]):\n    d['b'] = 2\n")
        d = flambeau.script({"a": 1})
        f(d)
        self.assertEqual(dict(d), {"a": 1, "b": 2})
        del d["a"]
        with self.assertRaises(KeyError):
            d["a"]


class Schemas(unittest.TestCase):
    def test_parts(self):
        f = flambeau.script("def f(x, xs: List[int], k: float=0.5) -> Dict[str, Tensor]:\n    return {'a': x}\n")
        schema = f.schema
        self.assertEqual([a.name for a in schema.arguments], ["x", "xs", "k"])
        self.assertEqual([a.has_default_value() for a in schema.arguments], [False, False, True])
        self.assertEqual(schema.arguments[2].default_value, 0.5)
        self.assertEqual(schema.returns[0].type.getValueType().kind(), "TensorType")
        kinds = [value.type().kind() for value in f.graph.inputs()]
        self.assertEqual(kinds, ["TensorType", "ListType", "FloatType"])
        with self.assertRaisesRegex(RuntimeError, "element type"):
            schema.arguments[0].type.getElementType()


class Compilers(unittest.TestCase):
    def test_passes_are_listed(self):
        self.assertIn("dce", flambeau.passes())
        self.assertIn("inline", flambeau.passes()["default"])

    def test_an_op_by_its_name(self):
        @flambeau.op("test_functions::twice")
        def twice(x: flambeau.Tensor) -> flambeau.Tensor:
            """Twice its argument."""
            return x * 2

        self.assertEqual(twice(flambeau.ones(2)).tolist(), [2.0, 2.0])
        with self.assertRaises(TypeError):
            flambeau.op("test_functions::other")(lambda x: x)


if __name__ == "__main__":
    unittest.main()
