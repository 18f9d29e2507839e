"""`torch.compile(f, backend="flambeau")`: models of torchvision and torch.nn beside eager PyTorch, training, what is left to PyTorch."""

import unittest
import warnings
from typing import Any

import torch
import torchvision

import flambeau._torch

CLASSIFIERS = (
    "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5 "
    "mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5 "
    "squeezenet1_1 swin_t swin_v2_t vgg11 vgg11_bn vit_b_16 vit_b_32 wide_resnet50_2 mobilenet_v3_large"
).split()
LAYERS = {
    "lstm": (lambda: torch.nn.LSTM(8, 16, 2), (5, 3, 8)),
    "gru": (lambda: torch.nn.GRU(8, 16), (5, 3, 8)),
    "transformer": (lambda: torch.nn.TransformerEncoderLayer(16, 4, 32), (5, 3, 16)),
    "attention": (lambda: Attention(), (5, 3, 16)),
}


# An installed package is found by its entry point.
BACKEND: Any = "flambeau" if "flambeau" in torch._dynamo.list_backends() else flambeau._torch.backend


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.MultiheadAttention(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x)[0]


@torch.library.custom_op("flambeau_test::shift", mutates_args=())
def shift(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@shift.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def compiled(f: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(f, backend=BACKEND)


class Compiled(unittest.TestCase):
    def check(self, model: torch.nn.Module, x: torch.Tensor) -> None:
        model.eval()
        with torch.no_grad():
            want = model(x)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                got = compiled(model)(x)
        left = [str(w.message) for w in caught if "leaves a part" in str(w.message)]
        self.assertEqual(left, [])
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want))):
            if isinstance(a, torch.Tensor):
                torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)

    def test_classifiers(self) -> None:
        for name in CLASSIFIERS:
            with self.subTest(name):
                torch.manual_seed(0)
                extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
                size = 299 if name == "inception_v3" else 224
                self.check(torchvision.models.get_model(name, weights=None, **extra), torch.randn(1, 3, size, size))

    def test_layers(self) -> None:
        for name, (make, sizes) in LAYERS.items():
            with self.subTest(name):
                torch.manual_seed(0)
                self.check(make(), torch.randn(*sizes))

    def test_training(self) -> None:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1))
        x = torch.randn(5, 4)
        model(x).square().mean().backward()
        want = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        compiled(model)(x).square().mean().backward()
        for p, grad in zip(model.parameters(), want):
            torch.testing.assert_close(p.grad, grad)

    def test_a_third_party_operator_is_left_alone(self) -> None:
        def f(x: torch.Tensor) -> torch.Tensor:
            y = torch.tanh(x * 2) + 1
            return torch.relu(shift(y) * y).sum(1)

        x = torch.randn(3, 4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = compiled(f)(x)
        torch.testing.assert_close(got, f(x))
        left = [str(w.message) for w in caught if "leaves a part" in str(w.message)]
        self.assertEqual(left, ["flambeau leaves a part of a graph to PyTorch: operator flambeau_test::shift is not known"])

    def test_dynamic_sizes(self) -> None:
        def f(x: torch.Tensor) -> torch.Tensor:
            return x.reshape(x.shape[0] * 2, -1).softmax(1) * x.shape[0]

        torch._dynamo.reset()
        g = torch.compile(f, backend=BACKEND, dynamic=True)
        for n in (2, 4, 7):
            x = torch.randn(n, 6)
            torch.testing.assert_close(g(x), f(x))


if __name__ == "__main__":
    unittest.main()
