"""Modules of PyTorch recorded as ATen ops by `flambeau.from_torch`, and archives with several exported programs."""

import io
import pathlib
import tempfile
import unittest

import torch
from torch import nn

import flambeau


class Recorded(unittest.TestCase):
    def test_modules_are_recorded_as_aten_ops(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))
        x = torch.rand(5, 3)
        found = flambeau.from_torch(module, (x,))
        torch.testing.assert_close(found(x + 1), module(x + 1).detach())
        self.assertIn("aten::gelu", str(found.graph))

    def test_results_and_arguments_may_be_dictionaries(self):
        def f(x, scale=1.0, *, mask=None):
            return {"scaled": x * scale, "parts": (x.sum(), [x if mask is None else x * mask])}

        x, mask = torch.rand(3), torch.tensor([1.0, 0.0, 1.0])
        found = flambeau.from_torch(f, (x,), {"mask": mask, "scale": 2.0})
        have, want = found(x + 1, mask=mask, scale=2.0), f(x + 1, mask=mask, scale=2.0)
        self.assertEqual(list(have), list(want))
        torch.testing.assert_close(have, want)
        with self.assertRaises(ValueError):
            found(x, mask=mask, scale=3.0)
        with self.assertRaises(TypeError):
            found(x)


class Several(unittest.TestCase):
    def archive(self) -> bytes:
        from torch.export.pt2_archive._package import package_pt2

        exported = {
            "encoder": torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),)),
            "decoder": torch.export.export(nn.ReLU(), (torch.ones(1, 2),)),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "two.pt2")
            package_pt2(str(path), exported_programs=exported)
            return path.read_bytes()

    def test_one_is_chosen_or_all_are_given(self):
        data = self.archive()
        all_of_them = flambeau.load(io.BytesIO(data))
        self.assertEqual(sorted(all_of_them), ["decoder", "encoder"])
        decoder = flambeau.load(io.BytesIO(data), entry="decoder")
        self.assertEqual(decoder(torch.tensor([[-1.0, 2.0]])).tolist(), [[0.0, 2.0]])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "two.pt2")
            path.write_bytes(data)
            self.assertEqual(sorted(flambeau.load(path)), ["decoder", "encoder"])
            self.assertEqual(flambeau.load(path, entry="encoder")(torch.ones(1, 3)).shape, (1, 2))
            with self.assertRaisesRegex(RuntimeError, "no exported program 'other'"):
                flambeau.load(path, entry="other")


if __name__ == "__main__":
    unittest.main()
