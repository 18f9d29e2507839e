"""Records archives of other times and places: with packed weights, of old layouts, for mobile devices.

Where PyTorch writes such files no more, they are built here by the rules of their format, and the answers are those of
plain ops.

    python tests/golden/record_old.py > tests/golden/old.jsonl        (with torch 2.15.0)
"""

import base64
import io
import json
import pickle
import sys
import types
import warnings
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from record_programs import encode

warnings.filterwarnings("ignore")


class Point(NamedTuple):
    where: int
    value: Tensor


def define(path):
    """A class that pickles by its qualified name alone."""
    module, name = path.rsplit(".", 1)
    holder = sys.modules.setdefault(module, types.ModuleType(module))
    if not hasattr(holder, name):
        setattr(holder, name, type(name, (), {"__module__": module, "__getstate__": lambda self: self.state}))
    return getattr(holder, name)


def instance(path, state):
    """An object with a state: a dict of attributes, or what its class takes."""
    made = define(path)()
    made.state = state
    return made


class Pickler(pickle.Pickler):
    """Writes storages beside the pickle; `extra` is what old persistent ids had behind the number of elements."""

    def __init__(self, out, storages, extra=()):
        super().__init__(out, protocol=2)
        self.storages, self.extra = storages, extra

    def persistent_id(self, value):
        if not isinstance(value, torch.storage.TypedStorage):
            return None
        key = str(value.data_ptr())
        at = self.storages.setdefault(key, (str(len(self.storages)), value))[0]
        kind = getattr(torch, f"{value.pickle_storage_type()}")
        return ("storage", kind, at, "cpu", value.size(), *self.extra)


def pickled(value, extra=()):
    out, storages = io.BytesIO(), {}
    Pickler(out, storages, extra).dump(value)
    content = {key: bytes(s.untyped()) for key, s in storages.values()}
    return out.getvalue(), content


def archive(entries, root="m"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in entries.items():
            file.writestr(f"{root}/{name}", content)
    return out.getvalue()


def model(data, code, constants=(), version=3):
    """An archive of today's layout."""
    tree, storages = pickled(data)
    table, more = pickled(tuple(constants))
    return archive({
        "data.pkl": tree,
        **{f"data/{key}": content for key, content in storages.items()},
        "code/__torch__.py": code,
        "constants.pkl": table,
        **{f"constants/{key}": content for key, content in more.items()},
        "version": f"{version}\n",
    })


CASES = []


def case(name, pt, args, returns, entry="forward"):
    CASES.append({
        "name": name,
        "entry": entry,
        "pt": base64.b64encode(pt).decode(),
        "args": [encode(a) for a in args],
        "returns": encode(returns),
    })


def loads(pt, args, entry="forward"):
    """What PyTorch makes of an archive."""
    loaded = torch.jit.load(io.BytesIO(pt))
    with torch.no_grad():
        return getattr(loaded, entry)(*args)


def packed():
    """Contexts of XNNPACK, which optimize_for_mobile makes; PyTorch's wheels have no XNNPACK any more."""
    g = torch.Generator().manual_seed(3)
    r = lambda *sizes: torch.randn(*sizes, generator=g)
    xnnpack = "__torch__.torch.classes.xnnpack."
    w, b, cw, cb, tw, tb = r(4, 6), r(4), r(4, 2, 3, 3), r(4), r(4, 2, 2, 2), r(4)
    contexts = {
        "linear": instance(xnnpack + "LinearOpContext", (w, b, 0.0, None)),
        "conv": instance(xnnpack + "Conv2dOpContext", (cw, cb, [2, 2], [1, 1], [1, 1], 2, -0.5, 0.5)),
        "depthwise": instance(xnnpack + "Conv2dOpContext", (r(4, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], 4, None, None)),
        "turned": instance(
            xnnpack + "TransposeConv2dOpContext", (tw, tb, [2, 2], [0, 0], [1, 1], [1, 1], 2, None, 1.0)),
    }
    kinds = ["LinearOpContext", "Conv2dOpContext", "Conv2dOpContext", "TransposeConv2dOpContext"]
    code = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
    code += "".join(f"  {n} : {xnnpack}{k}\n" for n, k in zip(contexts, kinds))
    code += """  def forward(self: __torch__.M, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    a = ops.prepacked.linear_clamp_run(x, self.linear)
    b = ops.prepacked.conv2d_clamp_run(y, self.conv)
    c = ops.prepacked.conv2d_clamp_run(y, self.depthwise)
    d = ops.prepacked.conv2d_transpose_clamp_run(y, self.turned)
    return (a, b, c, d)
  def pack(self: __torch__.M, x: Tensor, w: Tensor, b: Tensor) -> Tuple[Tensor, List[int], Optional[List[int]]]:
    packed = ops.prepacked.linear_clamp_prepack(w, b, -1, 0.5)
    sizes = ops.prepacked.unpack_prepacked_sizes_linear(packed)
    weight, bias = unchecked_cast(Tuple[List[int], Optional[List[int]]], sizes)
    return (ops.prepacked.linear_clamp_run(x, packed), weight, bias)
"""
    pt = model(instance("__torch__.M", {"training": False, **contexts}), code)
    x, y = r(3, 6), r(2, 4, 5, 5)
    depthwise = contexts["depthwise"].state[0]
    answer = (
        F.linear(x, w, b).clamp(min=0.0),
        F.conv2d(y, cw, cb, 2, 1, 1, 2).clamp(-0.5, 0.5),
        F.conv2d(y, depthwise, None, 1, 1, 1, 4),
        F.conv_transpose2d(y, tw, tb, 2, 0, 1, 2).clamp(max=1.0),
    )
    case("packed.xnnpack", pt, (x, y), answer)
    case("packed.xnnpack_prepack", pt, (x, w, b), (F.linear(x, w, b).clamp(-1, 0.5), [4, 6], [4]), "pack")


class Steps(torch.nn.Module):
    """Every construct that bytecode has jumps for, and what it has instructions for."""

    maybe: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("count", torch.zeros(1))
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.names = {"a": 1}
        self.maybe = None

    def forward(self, x: Tensor, n: int, extra: Optional[Tensor] = None) -> Tuple[
        Tensor, Dict[str, int], List[int], Point, str, Tensor
    ]:
        y = self.inner(x) * self.scale
        seen: List[int] = []
        table: Dict[str, int] = {"n": n}
        for i in range(n):
            if i % 2 == 0 and n > 1:
                y = y + i
                seen.append(i)
            elif i == 5:
                break
            else:
                y = y * 2
        while y.sum().item() > 100:
            y = y / 2
            if y.sum() < 0:
                continue
            table[str(len(seen))] = n
        if extra is not None:
            y = y + extra
        if self.maybe is None:
            self.maybe = y
        maybe = self.maybe
        if maybe is not None:
            y = y + maybe
        self.count = self.count + 1
        a, b = torch.topk(y, 2)
        rows: List[float] = y.tolist()
        first, second = y.unsqueeze(0).expand(2, 3).unbind(0)
        assert n < 100, "too many"
        total = 0
        for i in range(2):
            for j in range(3):
                if j == i:
                    continue
                total += i * j
        point = Point(total + len(self.names) + len(rows), a + first[:2])
        text = f"{y.dtype} {y.dim()} {3 in seen} {isinstance(extra, torch.Tensor)} {not n > 2} {second.size(0)}"
        return torch.cat([y, b.to(torch.float32)]), table, seen, point, text, self.count


class Branches(torch.nn.Module):
    def forward(self, x: Tensor, k: int) -> Tensor:
        if k > 2:
            if k > 5:
                x = x + torch.tensor([1.0, 2.0])
            return x * 2
        for _ in range(k):
            x = torch.tanh(x)
            if bool(x.sum() > 1):
                return x - 1
        return x


def without_code(pt):
    """A mobile archive with its methods in bytecode only."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(pt)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if "/code/" not in name:
                new.writestr(name, old.read(name))
    return out.getvalue()


def mobile():
    torch.manual_seed(5)
    x = torch.tensor([0.5, -1.0, 2.0])
    calls = [
        ("steps", Steps(), [(x, 3, None), (x, 6, torch.ones(3)), (-x, 0, None)]),
        ("branches", Branches(), [(x[:2], 7), (x[:2], 4), (x[:2], 2), (-x[:2], 0)]),
    ]
    for name, module, all_arguments in calls:
        script = torch.jit.script(module.eval())
        for n, arguments in enumerate(all_arguments):
            pt = script._save_to_buffer_for_lite_interpreter()
            # PyTorch loads it by its code.
            answer = loads(pt, arguments)
            case(f"mobile.{name}.{n}", without_code(pt), arguments, answer)
    frozen = torch.jit.freeze(torch.jit.script(torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU6()).eval()))
    image = torch.randn(1, 1, 5, 5)
    pt = without_code(frozen._save_to_buffer_for_lite_interpreter())
    case("mobile.frozen", pt, (image,), frozen(image))


class Kept(torch.nn.Module):
    """Values of every kind that a flatbuffer has."""

    names: Dict[str, List[int]]

    def __init__(self):
        super().__init__()
        self.flags, self.ints, self.floats = [True, False], [1, 2, 3], [0.5, 1.5]
        self.pair, self.turn, self.place = (1, "two"), complex(1.0, -2.0), torch.device("cpu")
        self.names = {"a": [4], "b": [5, 6]}
        self.tensors = [torch.ones(2), torch.arange(3)]
        weight = torch.arange(6.0).reshape(2, 3)
        self.register_buffer("whole", weight)
        self.register_buffer("part", weight.t()[1:])

    def forward(self, x: Tensor) -> Tuple[Tensor, List[bool], float, str, complex, Dict[str, List[int]], bool]:
        text = self.pair[1]
        y = x + self.whole.sum() + self.part[0, 1] * len(self.ints) + self.tensors[0][0]
        self.part[0, 0] = 7.0
        same = bool(self.whole[0, 1] == 7.0)
        return y, self.flags, sum(self.floats), text, self.turn, self.names, same and x.device == self.place


class Loops(torch.nn.Module):
    """What `Steps` does, without a named tuple: PyTorch writes none into flatbuffers."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor, n: int, extra: Optional[Tensor] = None) -> Tuple[Tensor, List[int], str]:
        y, seen = self.inner(x), [0]
        for i in range(n):
            if i % 2 == 0 and n > 1:
                y = y + i
                seen.append(i)
            elif i == 5:
                break
        while y.sum().item() > 10:
            y = y / 2
        if extra is not None:
            y = y + extra
        self.count = self.count + 1
        first, second = y.unsqueeze(0).expand(2, 3).unbind(0)
        return first + self.count, seen, f"{y.dim()} {3 in seen} {second.size(0)}"


def flatbuffers():
    """Mobile models as flatbuffers: with bytecode, with packed weights, with code."""
    torch.manual_seed(6)
    x = torch.tensor([0.5, -1.0, 2.0])
    flat = lambda script: script._save_to_buffer_for_lite_interpreter(_use_flatbuffer=True)
    calls = [
        ("loops", Loops(), [(x, 3, None), (x, 6, torch.ones(3))]),
        ("branches", Branches(), [(x[:2], 7), (x[:2], 2)]),
        ("kept", Kept(), [(x,)]),
    ]
    for name, module, all_arguments in calls:
        for n, arguments in enumerate(all_arguments):
            script = torch.jit.script(module.eval())
            pt = flat(script)
            with torch.no_grad():
                case(f"flat.{name}.{n}", pt, arguments, script(*arguments))
    script = torch.jit.script(Branches())
    pt = torch.jit._serialization.save_jit_module_to_flatbuffer
    out = io.BytesIO()
    try:
        pt(script, out)
        case("flat.code", out.getvalue(), (x[:2], 4), script(x[:2], 4))
    except (AttributeError, RuntimeError, TypeError) as error:
        print(f"PyTorch: {error}", file=sys.stderr)
    torch.backends.quantized.engine = "fbgemm"
    linear = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(4, 3)), {torch.nn.Linear})
    image = torch.randn(2, 4)
    script = torch.jit.script(linear)
    case("flat.dynamic", flat(script), (image,), script(image))

    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("q", torch.quantize_per_channel(
                image, torch.tensor([0.1, 0.2]), torch.tensor([3, 4]), 0, torch.qint8))
            self.register_buffer("p", torch.quantize_per_tensor(image, 0.05, 100, torch.quint8))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.q.dequantize() * self.p.dequantize()

    script = torch.jit.script(Holder())
    case("flat.quantized", flat(script), (image,), script(image))


class Restored(torch.nn.Module):
    """An object that restores itself: bytecode has no names of its attributes."""

    last: Optional[Tensor]

    def __init__(self, scale: float):
        super().__init__()
        self.weight, self.scale, self.bias = torch.nn.Parameter(torch.randn(3, 2)), scale, torch.zeros(1)
        self.last = None

    @torch.jit.export
    def __getstate__(self):
        return self.weight, self.scale, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, float, bool]):
        self.weight, self.scale, self.training = state[0], state[1], state[2]
        self.bias, self.last = state[0].sum().reshape(1), None

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.weight * self.scale + self.bias
        last = self.last
        if last is not None:
            y = y + last
        self.last = y
        return y


class Restoring(torch.nn.Module):
    """Two such objects, one of them twice."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.plain = Restored(2.0), Restored(-0.5), torch.nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.first(self.plain(self.first(x))) + self.second(x)


def restored():
    """Objects with `__setstate__` in flatbuffers and in bytecode without code."""
    from torch.jit.mobile import _load_for_lite_interpreter

    torch.manual_seed(8)
    x = torch.randn(2, 3)
    for name, module in [("alone", Restored(1.5)), ("nested", Restoring())]:
        script = torch.jit.script(module.eval())
        for form, pt in [
            ("flat", script._save_to_buffer_for_lite_interpreter(_use_flatbuffer=True)),
            ("mobile", without_code(script._save_to_buffer_for_lite_interpreter())),
        ]:
            with torch.no_grad():
                answer = _load_for_lite_interpreter(io.BytesIO(pt))(x)
            case(f"{form}.restored_{name}", pt, (x,), answer)


def old_ids():
    """Persistent ids of six parts, as PyTorch wrote them up to 1.4."""
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tree, storages = pickled(instance("__torch__.M", {"training": False, "w": w}), extra=(None,))
    code = (
        "op_version_set = 1\nclass M(Module):\n  __parameters__ = [\"w\", ]\n  training : bool\n  w : Tensor\n"
        "  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return torch.matmul(x, self.w)\n"
    )
    pt = archive({
        "data.pkl": tree,
        **{f"data/{key}": content for key, content in storages.items()},
        "code/__torch__.py": code,
        "constants.pkl": pickled(())[0],
        "version": "1\n",
    })
    x = torch.tensor([[5.0, 6.0]])
    try:
        answer = loads(pt, (x,))
    except RuntimeError as error:
        print(f"PyTorch: {error}", file=sys.stderr)
        answer = x @ w
    case("old.six_part_ids", pt, (x,), answer)


def mkldnn():
    """A model whose weights are in the layout of oneDNN."""
    from torch.utils import mkldnn as layout

    torch.manual_seed(7)
    inner = torch.nn.Conv2d(2, 4, 3, padding=1, stride=2), torch.nn.Linear(36, 5)
    x = torch.randn(2, 2, 6, 6)

    class Outer(torch.nn.Module):
        def __init__(self, conv, linear):
            super().__init__()
            self.conv, self.linear = conv, linear

        def forward(self, x):
            return self.linear(torch.relu(self.conv(x)).flatten(1))

    conv, linear = layout.MkldnnConv2d(inner[0], torch.float), layout.MkldnnLinear(inner[1], torch.float)
    answer = inner[1](torch.relu(inner[0](x)).flatten(1))
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(Outer(conv, linear)), out)
    case("packed.mkldnn", out.getvalue(), (x,), answer)


def listed(version, tensors, modules, files, attributes=None, snake=False):
    """An archive of PyTorch 1.0 to 1.3: modules and tensors are listed in `model.json`."""
    import re

    names = {torch.float32: "FLOAT", torch.int64: "INT64", torch.float64: "DOUBLE", torch.int8: "INT8"}
    rows, entries = [], {}
    for n, (tensor, options) in enumerate(tensors):
        rows.append({
            "dims": [str(d) for d in tensor.shape],
            "offset": str(tensor.storage_offset()),
            "strides": [str(s) for s in tensor.stride()],
            "requiresGrad": False,
            "dataType": names[tensor.dtype],
            "data": {"key": f"tensors/{n}"},
            "device": "cpu",
            **options,
        })
        entries[f"tensors/{n}"] = bytes(tensor.untyped_storage())
    model = {"protoVersion": str(version), "mainModule": modules, "producerName": "pytorch", "tensors": rows}
    if snake:
        change = lambda v: (
            {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), k): change(x) for k, x in v.items()}
            if isinstance(v, dict)
            else [change(x) for x in v] if isinstance(v, list) else v
        )
        model = change(model)
    if attributes is not None:
        entries["attributes.pkl"] = attributes
    return archive({"model.json": json.dumps(model), **entries, **files, "version": "1\n"})


def parameter(name, tensor, is_buffer=False):
    return {"name": name, "tensorId": str(tensor), "isBuffer": is_buffer}


def inlined():
    """1.0 and 1.1: calls of modules are inlined, code names parameters by their path, constants are tensors of the table."""
    g = torch.Generator().manual_seed(5)
    w, b, c, x = (torch.randn(*sizes, generator=g) for sizes in ((3, 4), (3,), (2, 3), (2, 4)))
    code = """op_version_set = 0
def forward(self,
    x: Tensor) -> Tensor:
  _0 = torch.addmm(self.fc.bias, x, torch.t(self.fc.weight), beta=1, alpha=1)
  _1 = getattr(self, "0").scale
  y = torch.mul(torch.add(torch.relu(_0), CONSTANTS.c3, alpha=2), _1)
  return y
def twice(self,
    x: Tensor) -> Tensor:
  return torch.add(x, x)
"""
    inner = {"name": "fc", "parameters": [parameter("weight", 0), parameter("bias", 1)]}
    numbered = {"name": "0", "parameters": [parameter("scale", 2, True)]}
    root = {"name": "net", "submodules": [inner, numbered], "torchscriptArena": {"key": "code/net.py"}}
    # One storage, of which the weight is a part in another order.
    whole = torch.zeros(20)
    view = whole[2:14].view(4, 3).t()
    view.copy_(w)
    scale = torch.tensor([3.0])
    tensors = [(view, {"requiresGrad": True}), (b, {}), (scale, {}), (c, {})]
    pt = listed(1, tensors, root, {"code/net.py": code})
    case("listed.inlined", pt, (x,), (torch.relu(x @ w.t() + b) + 2 * c) * scale)
    case("listed.method", pt, (x,), x + x, entry="twice")
    snake = listed(1, tensors, root, {"code/net.py": code}, snake=True)
    case("listed.other_names", snake, (x,), (torch.relu(x @ w.t() + b) + 2 * c) * scale)


def attributes():
    """1.1 to 1.3: attributes of all kinds, classes, modules that restore themselves, integers divided as then."""
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    mark = torch.tensor([7, -8])

    class Id:
        def __init__(self, n):
            self.n = n

    # Instructions as they were written; a pickler of today makes others.
    def put(value):
        if isinstance(value, Id):
            return b"ctorch.jit._pickle\nbuild_tensor_from_id\n(K" + bytes([value.n]) + b"tR"
        if isinstance(value, list) and all(type(v) is int for v in value):
            return b"ctorch.jit._pickle\nbuild_intlist\n(](" + b"".join(map(put, value)) + b"etR"
        if isinstance(value, list) and all(isinstance(v, Id) for v in value):
            return b"ctorch.jit._pickle\nbuild_tensorlist\n(](" + b"".join(map(put, value)) + b"etR"
        if isinstance(value, list):
            return b"](" + b"".join(map(put, value)) + b"e"
        if isinstance(value, dict):
            return b"}(" + b"".join(put(k) + put(v) for k, v in value.items()) + b"u"
        if isinstance(value, tuple):
            return b"(" + b"".join(map(put, value)) + b"t"
        return pickle.dumps(value, protocol=2)[2:-1]

    code = """op_version_set = 1
import __torch__.helpers
def forward(self,
    x: Tensor,
    key: str) -> Tuple[Tensor, List[int], Tensor, int]:
  _0 = self.inner.forward(x, )
  sizes = self.sizes
  n = torch.add(torch.__getitem__(self.table, key), torch.len(self.names))
  if self.training:
    _1 = torch.add(_0, self.tensor, alpha=1)
  else:
    _1 = _0
  _2 = __torch__.helpers.shift(_1, n, )
  _3 = torch.__getitem__(self.several, 1)
  return (_2, sizes, torch.div(_3, 2), n)
"""
    inner_code = """op_version_set = 1
def forward(self,
    x: Tensor) -> Tensor:
  return torch.mul(x, self.factor)
def __getstate__(self) -> Tuple[Tensor, float]:
  return (self.factor, self.power)
def __setstate__(self,
    state: Tuple[Tensor, float]) -> None:
  factor, power, = state
  self.factor = torch.mul(factor, power)
  self.power = power
  return None
"""
    library = """op_version_set = 1
def shift(x: Tensor,
    n: int) -> Tensor:
  return torch.add(x, n, 1)
"""
    names = ("sizes", "List[int]"), ("table", "Dict[str, int]"), ("names", "List[str]"), ("training", "bool")
    names += ("tensor", "Tensor"), ("several", "List[Tensor]"), ("nothing", "Optional[Tensor]")
    values = [[1, 2, 3], {"a": 5, "b": -1}, ["p", "q"], True, Id(0), [Id(0), Id(1)], None, (Id(0), 2.0)]
    inner = {
        "name": "inner",
        "attributes": [{"type": "Tensor", "name": "factor", "id": "-1"}, {"type": "float", "name": "power", "id": "-1"}],
        "torchscriptArena": {"key": "code/inner.py"},
        "getStateAttributeId": "7",
    }
    root = {
        "name": "net",
        "submodules": [inner],
        "attributes": [{"type": ty, "name": name, "id": str(n)} for n, (name, ty) in enumerate(names)],
        "torchscriptArena": {"key": "code/net.py"},
    }
    files = {"code/net.py": code, "code/inner.py": inner_code, "libs/__torch__/helpers.py": library}
    x = torch.tensor([[0.5, -1.0], [2.0, 8.0]])
    answer = (x * (table * 2) + table + 7, [1, 2, 3], torch.tensor([3, -4]), 7)
    for version, root_value in ((2, values), (3, tuple(values))):
        body = put(root_value) if version > 2 else b"](" + b"".join(map(put, values)) + b"e"
        pt = listed(version, [(table, {}), (mark, {})], root, files, b"\x80\x02" + body + b".")
        case(f"listed.attributes_{version}", pt, (x, "a"), answer)


def ids_of_1_1():
    """The first pickles of attributes: instances of two classes stand for tensors and lists of ints."""
    w = torch.tensor([2.0, 3.0])
    body = b"\x80\x02](c__main__\nTensorID\n)\x81K\x00bc__main__\nIntList\n)\x81](K\x04K\x05eb(G@\x04\x00\x00\x00\x00\x00\x00K\x01te."
    code = """op_version_set = 0
def forward(self,
    x: Tensor) -> Tuple[Tensor, List[int]]:
  a, b, = self.pair
  return (torch.mul(torch.mul(x, self.w), a), self.sizes)
"""
    root = {
        "name": "m",
        "attributes": [
            {"type": "Tensor", "name": "w", "id": "0"},
            {"type": "List[int]", "name": "sizes", "id": 1},
            {"type": "Tuple[float, int]", "name": "pair", "id": 2},
        ],
        "torchscriptArena": {"key": "code/m.py"},
    }
    x = torch.tensor([1.0, -1.0])
    case("listed.first_ids", listed(2, [(w, {})], root, {"code/m.py": code}, body), (x,), (x * w * 2.5, [4, 5]))


def listed_quantized():
    """A quantized tensor of the table, its numbers in the list."""
    integers = torch.tensor([[1, -2], [3, 100]], dtype=torch.int8)
    code = """op_version_set = 1
def forward(self,
    x: Tensor) -> Tensor:
  return torch.add(torch.dequantize(self.w), x)
"""
    root = {"name": "m", "parameters": [parameter("w", 0)], "torchscriptArena": {"key": "code/m.py"}}
    options = {"isQuantized": True, "scale": 0.5, "zeroPoint": "-3"}
    x = torch.ones(2, 2)
    pt = listed(4, [(integers, options)], root, {"code/m.py": code})
    case("listed.quantized", pt, (x,), (integers.float() + 3) * 0.5 + x)


def flat_convolutions():
    """Quantized convolutions in flatbuffers: their `__getstate__` calls a method of a custom class."""
    torch.manual_seed(9)
    torch.backends.quantized.engine = "fbgemm"
    image = torch.randn(1, 2, 5, 5)
    network = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.Conv2d(3, 2, 1, bias=False))
    wrapped = torch.ao.quantization.QuantWrapper(network).eval()
    wrapped.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
    torch.ao.quantization.prepare(wrapped, inplace=True)
    wrapped(image)
    torch.ao.quantization.convert(wrapped, inplace=True)
    script = torch.jit.script(wrapped)
    with torch.no_grad():
        pt = script._save_to_buffer_for_lite_interpreter(_use_flatbuffer=True)
        case("flat.quantized_conv", pt, (image,), script(image))


if __name__ == "__main__":
    mkldnn()
    packed()
    mobile()
    flatbuffers()
    restored()
    old_ids()
    inlined()
    attributes()
    ids_of_1_1()
    listed_quantized()
    flat_convolutions()
    for row in CASES:
        print(json.dumps(row))
