"""Arrays in and out: no copies, writes seen by the owner, memory that stays where it is."""

import gc
import os
import pickle
import threading
import unittest
from typing import Any

import numpy as np

import flambeau

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples")


class Arrays(unittest.TestCase):
    def test_ten_million_floats_cross_without_a_copy(self) -> None:
        @flambeau.script
        def identity(x):
            return x

        @flambeau.script
        def half(x):
            return x[: x.size(0) // 2]

        x = np.zeros(10_000_000, np.float32)
        self.assertEqual(identity(x).ctypes.data, x.ctypes.data)
        self.assertEqual(half(x).ctypes.data, x.ctypes.data)
        self.assertEqual(flambeau.from_numpy(x).numpy().ctypes.data, x.ctypes.data)

    def test_writes_in_place_are_seen_by_the_owner(self) -> None:
        @flambeau.script
        def add(x):
            return x.add_(1)

        x = np.zeros((3, 4), np.float32)
        add(x[:, ::2])
        self.assertEqual(x.tolist(), [[1, 0, 1, 0]] * 3)

    def test_read_only_arrays_are_not_written(self) -> None:
        @flambeau.script
        def add(x):
            return x.add_(1)

        x = np.zeros(3, np.float32)
        x.flags.writeable = False
        self.assertEqual(add(x).tolist(), [1, 1, 1])
        self.assertEqual(x.tolist(), [0, 0, 0])

    def test_one_piece_of_memory_is_one_storage_in_a_call(self) -> None:
        @flambeau.script
        def f(x, y):
            x.add_(1)
            return y * 1

        x = np.zeros(4, np.float32)
        self.assertEqual(f(x, x[1:]).tolist(), [1, 1, 1])

    def test_random_views(self) -> None:
        @flambeau.script
        def f(x):
            return x + 0

        rng = np.random.default_rng(0)
        base = rng.random((6, 7, 8)).astype(np.float32)
        for _ in range(300):
            parts = []
            for size in base.shape:
                start, stop = sorted(rng.integers(0, size + 1, 2))
                parts.append(slice(int(start), int(stop), int(rng.integers(1, 4))))
            view = base[tuple(parts)]
            if rng.random() < 0.3:
                view = view.transpose(rng.permutation(3))
            if rng.random() < 0.2:
                view = view[::-1]
            np.testing.assert_array_equal(f(view), view)

    def test_dtypes(self) -> None:
        names = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 uint16 uint32 uint64"
        for name in names.split():
            x = np.ones((2, 3), name)
            t = flambeau.from_numpy(x)
            self.assertEqual(t.dtype, getattr(flambeau, name, flambeau._dtype_of(name)))
            self.assertEqual(t.numpy().dtype, x.dtype)
            np.testing.assert_array_equal(t.numpy(), x)
        swapped = np.arange(3, dtype=">f4")
        self.assertEqual(flambeau.from_numpy(swapped).tolist(), [0, 1, 2])
        with self.assertRaises(TypeError):
            flambeau.from_numpy(np.array(["a"]))

    def test_an_exported_tensor_is_not_resized(self) -> None:
        t = flambeau.zeros(4)
        x = t.numpy()
        with self.assertRaisesRegex(RuntimeError, "not resizable"):
            t.resize_([400])
        x[0] = 3
        self.assertEqual(t[0].item(), 3)
        del x
        gc.collect()
        t.resize_([400])
        self.assertEqual(t.shape, (400,))

    def test_an_array_outlives_its_tensor(self) -> None:
        x = (flambeau.ones(1000) * 2).numpy()
        gc.collect()
        self.assertEqual(x.sum(), 2000)

    def test_dlpack_both_ways(self) -> None:
        t = flambeau.tensor([[1.0, 2.0], [3.0, 4.0]])
        x = np.from_dlpack(t)
        x[0, 0] = 9
        self.assertEqual(t[0, 0].item(), 9)
        self.assertEqual(t.__dlpack_device__(), (1, 0))
        back = flambeau.from_dlpack(np.arange(6).reshape(2, 3).T)
        self.assertEqual(back.stride(), (1, 3))
        capsule = flambeau.ones(2).__dlpack__()
        del capsule
        gc.collect()

    def test_buffers_in(self) -> None:
        data = bytearray(b"\x01\x02\x03")
        t = flambeau.from_dlpack(data)
        t.add_(1)
        self.assertEqual(bytes(data), b"\x02\x03\x04")

    def test_pickle(self) -> None:
        for t in (flambeau.tensor([[1.5, 2.0]]), flambeau.tensor([1, 2]), flambeau.tensor(3.0), flambeau.zeros(0, 3)):
            u = pickle.loads(pickle.dumps(t))
            self.assertEqual((u.dtype, u.shape, u.tolist()), (t.dtype, t.shape, t.tolist()))


class Tensors(unittest.TestCase):
    def test_operators(self) -> None:
        x = flambeau.tensor([1.0, -2.0])
        self.assertEqual((2 - x).tolist(), [1, 4])
        self.assertEqual((x / 2).tolist(), [0.5, -1])
        self.assertEqual((x**2).tolist(), [1, 4])
        self.assertEqual((2**x).tolist(), [2, 0.25])
        self.assertEqual((-x).abs().tolist(), [1, 2])
        self.assertEqual((x > 0).tolist(), [True, False])
        self.assertEqual((x @ x).item(), 5)
        self.assertEqual((flambeau.tensor([5, 7]) // 2).tolist(), [2, 3])
        x += 1
        self.assertEqual(x.tolist(), [2, -1])
        self.assertEqual((np.ones(2, np.float32) + x).tolist(), [3, 0])

    def test_indexing(self) -> None:
        x = flambeau.arange(6).reshape(2, 3)
        y = np.arange(6).reshape(2, 3)
        for index in [0, -1, (0, 1), (slice(None), 1), (slice(None, None, 2), slice(1, None)), (None, 0), (..., 2), [1, 0]]:
            self.assertEqual(x[index].tolist(), y[index].tolist(), index)
        self.assertEqual(x[x > 2].tolist(), [3, 4, 5])
        x[0, 1:] = 9
        self.assertEqual(x.tolist(), [[0, 9, 9], [3, 4, 5]])
        self.assertEqual([row.tolist() for row in x], [[0, 9, 9], [3, 4, 5]])
        with self.assertRaises(IndexError):
            x[5]

    def test_functions_and_methods(self) -> None:
        x = flambeau.tensor([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(flambeau.add(x, x, alpha=2).tolist(), [[3, 6], [9, 12]])
        self.assertEqual(flambeau.cat((x, x)).shape, (4, 2))
        self.assertEqual(flambeau.ops.aten.relu(-x).sum().item(), 0)
        self.assertEqual(x.sum(dim=0, keepdim=True).tolist(), [[4, 6]])
        values, indices = x.max(dim=1)
        self.assertEqual((values.tolist(), indices.tolist()), ([2, 4], [1, 1]))
        self.assertEqual(flambeau.zeros(2, 3, dtype=flambeau.int32).dtype, flambeau.int32)
        with self.assertRaises(AttributeError):
            x.no_such_method
        with self.assertRaises(TypeError):
            x.relu("a")
        with self.assertRaisesRegex(RuntimeError, "size"):
            x + flambeau.ones(3)

    def test_numbers(self) -> None:
        t = flambeau.tensor(2.5)
        self.assertEqual((float(t), int(t), bool(t), f"{t:.2f}"), (2.5, 2, True, "2.50"))
        with self.assertRaises(RuntimeError):
            bool(flambeau.ones(2))

    def test_printing(self) -> None:
        self.assertEqual(repr(flambeau.tensor([1, 2])), "tensor([1, 2])")
        self.assertEqual(repr(flambeau.tensor([1.5])), "tensor([1.5000])")
        self.assertEqual(repr(flambeau.ones(2).shape), "torch.Size([2])")

    def test_gradients(self) -> None:
        x = flambeau.tensor([2.0, 3.0], requires_grad=True)
        (x * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [4, 6])
        with flambeau.no_grad():
            self.assertFalse((x * 2).requires_grad)

    def test_seed(self) -> None:
        flambeau.manual_seed(1)
        a = flambeau.rand(3).tolist()
        flambeau.manual_seed(1)
        self.assertEqual(flambeau.rand(3).tolist(), a)


class Models(unittest.TestCase):
    def setUp(self) -> None:
        self.model = flambeau.load(os.path.join(EXAMPLES, "lstm_cell.pt"))
        rng = np.random.default_rng(0)
        shape = lambda: [n for n in self.model.w_ih.shape]  # noqa: E731
        inputs, hidden = shape()[1], shape()[0] // 4
        self.inputs = [rng.random((2, n)).astype(np.float32) for n in (inputs, hidden, hidden)]

    def test_call_with_numpy(self) -> None:
        h, c = self.model(*self.inputs)
        self.assertIsInstance(h, np.ndarray)
        with flambeau.no_grad():
            again = self.model(*[flambeau.from_numpy(x) for x in self.inputs])
        self.assertIsInstance(again[0], flambeau.Tensor)
        np.testing.assert_array_equal(again[0].detach().numpy(), h)

    def test_eight_threads_give_the_same_bits(self) -> None:
        wanted = [x.tobytes() for x in self.model(*self.inputs)]
        found = []

        def work() -> None:
            for _ in range(5):
                found.append([x.tobytes() for x in self.model(*self.inputs)])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [wanted] * 40)

    def test_fork(self) -> None:
        self.model(*self.inputs)
        child = os.fork()
        if child == 0:
            try:
                self.model(*self.inputs)
                os._exit(0)
            except BaseException:
                os._exit(3)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)

    def test_weights_that_others_write_after_a_call(self) -> None:
        """A plan relies on weights; memory that was lent since may have been written, though it is not lent any more."""

        def write_state(model: Any) -> None:
            array = np.from_dlpack(model.state_dict()["w_ih"])
            array[...] = 0.5

        def write_parameter(model: Any) -> None:
            weight = dict(model.named_parameters())["w_ih"]
            weight.numpy()[...] = 0.5

        def load_state(model: Any) -> None:
            state = {name: tensor * 0 + 0.5 for name, tensor in model.state_dict().items()}
            model.load_state_dict(state)

        for write in (write_state, write_parameter, load_state):
            with self.subTest(write.__name__), flambeau.no_grad():
                fresh = flambeau.load(os.path.join(EXAMPLES, "lstm_cell.pt"))
                write(fresh)
                wanted = fresh(*self.inputs)[0]
                model = flambeau.load(os.path.join(EXAMPLES, "lstm_cell.pt"))
                before = model(*self.inputs)[0].copy()
                write(model)
                np.testing.assert_allclose(model(*self.inputs)[0], wanted, rtol=1e-5)
                self.assertFalse(np.allclose(before, wanted))

    def test_pickle_and_copy(self) -> None:
        import copy

        wanted = self.model(*self.inputs)[0]
        for other in (pickle.loads(pickle.dumps(self.model)), copy.deepcopy(self.model)):
            np.testing.assert_array_equal(other(*self.inputs)[0], wanted)
            self.assertEqual(list(other.state_dict()), list(self.model.state_dict()))

    def test_wrong_arguments_are_quoted_briefly(self) -> None:
        with self.assertRaises(RuntimeError) as caught:
            self.model([float(n) for n in range(10_000)], *self.inputs[1:])
        self.assertLess(len(str(caught.exception)), 4000)


if __name__ == "__main__":
    unittest.main()
