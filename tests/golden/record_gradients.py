"""Records gradients of small programs, first and second order, and a training run with each optimizer.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_gradients.py > tests/golden/gradients.jsonl
"""

import base64
import io
import json

import torch
from torch import Tensor

PROGRAMS = {
    "views": "def views(x: Tensor):\n    a = x * 2\n    v = a[0]\n    v.mul_(x[1])\n    a[1:, :1] = 3.0\n    return a.t() * v.sum()\n",
    "store_in_loop": "def store_in_loop(x: Tensor):\n    out = torch.zeros([x.size(0)], dtype=x.dtype)\n    for i in range(x.size(0)):\n        out[i] = x[i].exp().sum()\n    return out * out\n",
    "unbinds": "def unbinds(x: Tensor):\n    s = torch.zeros_like(x[0])\n    for r in x.unbind(0):\n        s = s * r + r\n    return s, torch.cat([s, s * 2])\n",
    "branches": "def branches(x: Tensor):\n    y = x\n    while float(y.abs().sum()) < 30.0:\n        y = y * 1.5\n    if bool((y > 0).any()):\n        y = y.sin()\n    return y\n",
    "inner": "def inner(x: Tensor):\n    y = (x ** 3).sum()\n    g = torch.autograd.grad([y], [x], None, None, True)[0]\n    assert g is not None\n    return (g * x).sum()\n",
    "no_grad": "def no_grad(x: Tensor):\n    with torch.no_grad():\n        s = x.sum()\n    return x * s + x.detach()\n",
    "products": "def products(x: Tensor):\n    return torch.einsum('ij,kj->ik', x, x).tanh() @ x\n",
    "solve": "def solve(x: Tensor):\n    a = x @ x.t() + torch.eye(x.size(0), dtype=x.dtype) * 3\n    return torch.linalg.solve(a, x) * torch.linalg.det(a)\n",
    "extremes": "def extremes(x: Tensor):\n    v, i = x.sort(1)\n    return x.max() * v + x.amin(0) + torch.maximum(x, x * 2)\n",
    "complex": "def complex(x: Tensor):\n    z = torch.complex(x, x * 2)\n    return (torch.fft.fft(z) * z.conj()).real + z.abs()\n",
    "norms": "def norms(x: Tensor):\n    y = torch.layer_norm(x, [x.size(1)])\n    return y + torch.softmax(x, 0) * x.std() + x.norm()\n",
    "windows": "def windows(x: Tensor):\n    y = torch.max_pool1d(x.unsqueeze(0), [2], [1])\n    return torch.conv1d(y, x[:, :2].unsqueeze(0).contiguous()) + torch.avg_pool1d(x.unsqueeze(0), [2]).sum()\n",
    "bounds": "def bounds(x: Tensor):\n    y = x.round()\n    return y.clamp(-1, 1) + torch.clamp(y, torch.zeros_like(x), x.round()) + x.clamp(x.abs() * 0.5, x.abs()) + torch.clamp(y * x, max=1)\n",
    "steps": "def steps(x: Tensor):\n    y = torch.relu(x) + torch.ops.aten.leaky_relu(x, 0.1) + torch.ops.aten.hardtanh(x)\n    z = torch.ops.aten.reflection_pad1d(x, [1, 2]).sum() + torch.ops.aten.replication_pad1d(x, [2, 1]).sum()\n    w = torch.max_pool2d(x.unsqueeze(0), [2, 2]).sum() + torch.adaptive_avg_pool1d(x.unsqueeze(0), [2]).sum()\n    return y + z + w\n",
    "chunks": "def chunks(x: Tensor):\n    a, b, c, d = torch.chunk(x, 4, 1)\n    return a.sigmoid() * b + c.tanh() * d\n",
    "hermitian": "def hermitian(x: Tensor):\n    l, v = torch.linalg.eigh(x @ x.t() + x[:, :3])\n    return l, (v * v).sum(), torch.linalg.pinv(x)\n",
    "losses": "def losses(x: Tensor):\n    t = torch.arange(x.size(0))\n    return torch.ops.aten.nll_loss(torch.log_softmax(x, 1), t) + torch.ops.aten.nll_loss(x, t, x[0].detach().abs(), 2)\n",
    "groups": "def groups(x: Tensor):\n    return torch.group_norm(x.unsqueeze(0), 3, x[:, 0], x[:, 1]) * x\n",
    "unknown": "def unknown(x: Tensor):\n    y = torch.where(x > 1, x * float('nan'), x)\n    a = torch.relu(y) + torch.ops.aten.hardtanh(y) + torch.ops.aten.hardshrink(y) + torch.ops.aten.elu(y) + torch.ops.aten.threshold(y, 0.1, 20)\n    return a, y.amax([1]), torch.atan2(y * 0, y.floor() * 0), x.prod() + x.prod(0), torch.cdist(x, x), torch.ops.aten.huber_loss(x * 3, x)\n",
    "alignments": "def alignments(x: Tensor):\n    return torch.ops.aten.ctc_loss(x.unsqueeze(1), torch.ones([1, 2], dtype=torch.int64), [3], [2], 0, 0)\n",
    "waves": "def waves(x: Tensor):\n    y = x * 4 + 8\n    return torch.special.bessel_j0(y) + torch.special.bessel_j1(y) + torch.special.bessel_y0(y.abs()) + torch.special.bessel_y1(y.abs())\n",
}

OPTIMIZERS = [
    ("sgd", torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    ("adam", torch.optim.Adam, dict(lr=0.05, amsgrad=True)),
    ("adamw", torch.optim.AdamW, dict(lr=0.05)),
    ("adagrad", torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.1)),
    ("rmsprop", torch.optim.RMSprop, dict(lr=0.05, centered=True, momentum=0.5)),
    ("adamax", torch.optim.Adamax, dict(lr=0.05)),
    ("nadam", torch.optim.NAdam, dict(lr=0.05)),
    ("radam", torch.optim.RAdam, dict(lr=0.05, betas=[0.5, 0.6])),
    ("adadelta", torch.optim.Adadelta, dict(lr=1.0)),
    ("asgd", torch.optim.ASGD, dict(lr=0.1, t0=2.0)),
    ("rprop", torch.optim.Rprop, dict(lr=0.05)),
    ("adafactor", torch.optim.Adafactor, dict(lr=0.05)),
    ("muon", torch.optim.Muon, dict(lr=0.05)),
]


def encode(value):
    if value is None:
        return {"none": None}
    if isinstance(value, Tensor):
        value = value.detach().contiguous()
        data = base64.b64encode(value.numpy().tobytes()).decode()
        return {"tensor": {"dtype": str(value.dtype)[6:], "shape": list(value.shape), "data": data}}
    return {"tuple": [encode(v) for v in value]}


def gradients(name, text):
    unit = torch.jit.CompilationUnit(text)
    x = torch.randn(3, 4, dtype=torch.float64)
    leaf = x.clone().requires_grad_()
    out = getattr(unit, name)(leaf)
    outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.requires_grad]
    cotangents = [torch.randn_like(o) for o in outs]
    (grad,) = torch.autograd.grad(outs, [leaf], cotangents, create_graph=True, allow_unused=True)
    backward = {"wrt": ["args[0]"], "cotangents": [encode(c) for c in cotangents], "grads": [encode(grad)]}
    if grad.requires_grad:
        weight = torch.randn_like(grad)
        try:
            (second,) = torch.autograd.grad([grad], [leaf], [weight], allow_unused=True)
        except RuntimeError as error:
            assert "is not implemented" in str(error)
            return case(name, text, x, out, backward)
        backward["second"] = {"cotangents": [encode(weight)], "grads": [encode(second)]}
    return case(name, text, x, out, backward)


def case(name, text, x, out, backward):
    return {"name": f"gradients.{name}", "entry": name, "source": text, "args": [encode(x)], "returns": encode(out), "backward": backward}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(3, 4, dtype=torch.float64))
        self.v = torch.nn.Parameter(torch.randn(4, 2, dtype=torch.float64))

    def forward(self, x: Tensor):
        return ((x @ self.w).tanh() @ self.v).pow(2).mean()


class Notes(torch.nn.Module):
    """Writes to parts of buffers that nothing reads."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(3, dtype=torch.float64))
        self.register_buffer("seen", torch.zeros(4, dtype=torch.float64))
        self.register_buffer("rows", torch.zeros(2, 3, dtype=torch.float64))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.float64))

    def forward(self, x: Tensor):
        self.seen[0] = 5.0
        self.seen[1:] += x.detach().sum()
        for i in range(x.size(0)):
            self.rows[i % 2] = x[i].detach()
        v = self.rows.view(6)
        v.mul_(0.5)
        self.calls.add_(1)
        return (x * self.w).tanh().sum()


def training(name, optimizer, options, model=Model):
    model = torch.jit.script(model())
    file = io.BytesIO()
    torch.jit.save(model, file)
    batches = [torch.randn(5, 3, dtype=torch.float64) for _ in range(2)]
    step = optimizer(model.parameters(), **options)
    losses = []
    for n in range(6):
        step.zero_grad()
        loss = model(batches[n % 2])
        loss.backward()
        step.step()
        losses.append(loss.item())
    after = {key: encode(value) for key, value in model.named_parameters()}
    train = {"optimizer": name, "options": options, "batches": [[encode(b)] for b in batches], "steps": 6}
    buffers = {key: encode(value) for key, value in model.named_buffers()}
    train |= {"losses": losses, "parameters_after": after, "buffers_after": buffers}
    archive = base64.b64encode(file.getvalue()).decode()
    # Sums of squares are rounded in another order; bfloat16 products in one step of muon.
    return {"name": f"training.{name}", "pt": archive, "train": train, "tol": 2e-2 if name == "muon" else 1e-6}


torch.manual_seed(0)
for name, text in PROGRAMS.items():
    print(json.dumps(gradients(name, text)))
for case in OPTIMIZERS:
    print(json.dumps(training(*case)))
case = training("sgd", torch.optim.SGD, {"lr": 0.1}, Notes)
print(json.dumps(case | {"name": "training.parts_of_buffers"}))
