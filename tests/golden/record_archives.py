"""Records small TorchScript archives with PyTorch, and beside each what PyTorch itself reads from it.

Run with a Python that has torch (2.15.0 was used): `python tests/golden/record_archives.py`.
The results in tests/golden/archives are committed, so that no test needs PyTorch.
"""

import enum
import json
import math
import pathlib
import re
import warnings
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.jit.frontend
from torch import Tensor, nn

warnings.filterwarnings("ignore")

_lines_and_file = torch._sources.get_source_lines_and_file


def lines_and_short_file(obj, error_msg=None):
    """Source lines with a file name that is the same on every machine."""
    lines, number, file = _lines_and_file(obj, error_msg)
    parts = pathlib.Path(file).parts
    start = parts.index("torch") if "torch" in parts else len(parts) - 1
    return lines, number, "/".join(parts[start:])


torch._sources.get_source_lines_and_file = lines_and_short_file
torch.jit.frontend.get_source_lines_and_file = lines_and_short_file
FOLDER = pathlib.Path(__file__).parent / "archives"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 1000


class Point(NamedTuple):
    x: int
    t: Tensor


@torch.jit.script
class Pair:
    def __init__(self, xs: List[int]):
        self.first = xs
        self.second = xs
        self.name = "pair"


@torch.jit.script
def make_pair(xs: List[int]) -> Pair:
    return Pair(xs)


class Holder(nn.Module):
    """Holds an object whose two lists are one list, twice."""

    a: Pair
    b: Pair

    def __init__(self):
        super().__init__()
        self.a = make_pair([0])
        self.b = make_pair([0])

    @torch.jit.export
    def fill(self):
        # Inside TorchScript, because an object that crosses from Python is copied.
        self.a = make_pair([1, 2, 3])
        self.b = self.a

    def forward(self, x: Tensor) -> Tensor:
        return x + len(self.a.first) + len(self.b.second)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        self.a.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x) + self.b(x)


class Attributes(nn.Module):
    maybe: Optional[int]
    none: Optional[Tensor]
    empty: List[str]
    point: Point
    color: Color
    level: Level

    def __init__(self):
        super().__init__()
        self.maybe = 7
        self.none = None
        self.empty = []
        self.ints = [1, -2, 1 << 40, -(1 << 63)]
        self.floats = [0.1, -0.0, math.inf, 1e300]
        self.bools = [True, False]
        self.tensors = [torch.ones(2), torch.arange(3)]
        self.strs = ["a", "é✓", "", "line\nbreak"]
        self.table = {"one": 1, "two": 2}
        self.deep = {3: [("x", 1.5), ("y", 2.5)]}
        self.pair = (1, ("two", 3.0, None))
        self.z = 1 - 2j
        self.device = torch.device("cpu")
        self.flag = True
        self.scale = 0.5
        self.point = Point(3, torch.full((2,), 4.0))
        self.color = Color.BLUE
        self.level = Level.HIGH

    def forward(self, x: Tensor) -> Tensor:
        if self.color == Color.RED or self.level == Level.LOW:
            x = x * self.scale
        n = len(self.ints) + len(self.floats) + len(self.bools) + len(self.strs) + len(self.empty)
        n += len(self.table) + len(self.deep) + self.pair[0] + int(self.flag) + len(self.tensors)
        if self.maybe is not None or self.none is not None:
            n += 1
        if self.z == 1j or self.device == torch.device("cpu"):
            n += 1
        return x + n + self.point.t


class Dtypes(nn.Module):
    def __init__(self):
        super().__init__()
        values = torch.tensor([[0.0, 1.0, -2.5], [3.0, 100.0, -0.0]])
        for dtype in [torch.float16, torch.bfloat16, torch.float32, torch.float64]:
            self.register_buffer("v_" + str(dtype)[6:], values.to(dtype))
        for dtype in [torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]:
            self.register_buffer("v_" + str(dtype)[6:], values.to(dtype))
        for dtype in [torch.uint8, torch.uint16, torch.uint32, torch.uint64]:
            self.register_buffer("v_" + str(dtype)[6:], values.abs().to(dtype))
        for dtype in [torch.complex32, torch.complex64, torch.complex128]:
            self.register_buffer("v_" + str(dtype)[6:], torch.complex(values, values + 1).to(dtype))
        self.register_buffer("v_float8_e4m3fn", values.to(torch.float8_e4m3fn))
        self.register_buffer("conjugated", torch.complex(values, values + 1).conj())
        self.register_buffer("scalar", torch.tensor(3))
        self.register_buffer("empty", torch.zeros(0, 4))
        self.register_buffer("absent", None)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.v_float32


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.arange(24.0)
        self.register_buffer("base", base)
        self.register_buffer("grid", base.view(4, 6))
        self.register_buffer("transposed", base.view(4, 6).t())
        self.register_buffer("sliced", base.view(4, 6)[1:, ::2])
        self.register_buffer("expanded", base[5:6].expand(3, 2))
        self.register_buffer("as_int", base.view(torch.int32)[2:4])
        self.register_buffer("other", torch.arange(24.0))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.base.sum() + self.other.sum()


class Constant(nn.Module):
    """Frozen, its tensors stand in `constants.pkl`."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("shift", torch.tensor([[7], [8]]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale + self.shift


class Long(nn.Module):
    """Enough code to be deflated, and functions of a second file."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            if i % 2 == 0:
                x = torch.relu(x) + i
            else:
                x = nn.functional.gelu(x) - i
        return nn.functional.softmax(x, dim=-1)


class Lists(nn.Module):
    """Lists of tensors that are looked at, and lists that others come to hold."""

    def __init__(self):
        super().__init__()
        self.seen = [torch.ones(2), torch.zeros(2)]
        self.given = [torch.ones(2)]
        self.held = [torch.ones(2)]
        self.grown = [torch.ones(2)]
        self.chosen = [torch.ones(2)]

    def forward(self, x: Tensor, flag: bool) -> Tuple[Tensor, List[Tensor], Tuple[List[Tensor], int]]:
        chosen = self.chosen
        if flag:
            chosen = [x]
        x = x + self.seen[0] + self.seen[1] + torch.cat(self.seen) + chosen[0]
        return x, self.given, (self.held, len(self.seen))

    @torch.jit.export
    def grow(self, x: Tensor) -> int:
        self.grown.append(x)
        return len(self.grown) + len(self.seen)


class Scaled(nn.Module):
    """Buffers without dimensions: tensors, which numbers are not."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5, dtype=torch.float64))
        self.register_buffer("table", torch.tensor([1.0, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale + self.table


def described(value, groups):
    """A value as JSON; tensors of one storage have one group number."""
    if value is None:
        return {"none": None}
    if isinstance(value, Tensor):
        plain = value.conj() if value.is_conj() else value
        data = plain.detach().clone(memory_format=torch.contiguous_format).contiguous()
        pointer = value.untyped_storage().data_ptr()
        numbers = data.flatten().view(torch.uint8) if data.numel() else torch.zeros(0, dtype=torch.uint8)
        return {
            "tensor": {
                "dtype": str(value.dtype)[6:],
                "sizes": list(value.shape),
                "strides": list(value.stride()),
                "offset": value.storage_offset(),
                "requires_grad": value.requires_grad,
                "conj": value.is_conj(),
                "group": groups.setdefault(pointer, len(groups)) if pointer else None,
                "data": bytes(numbers.tolist()).hex(),
            }
        }
    if isinstance(value, enum.Enum):
        return {"enum": [type(value).__name__, described(value.value, groups)]}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, str):
        return {"str": value}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, list):
        return {"list": [described(item, groups) for item in value]}
    if isinstance(value, tuple):
        return {"tuple": [described(item, groups) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[described(k, groups), described(v, groups)] for k, v in value.items()]}
    raise TypeError(type(value))


def attributes_of(archive, class_name):
    """Names and types of a class's attributes, read from the archive's code."""
    path, name = class_name.rsplit(".", 1)
    root = archive.namelist()[0].split("/")[0]
    code = archive.read(f"{root}/code/{path.replace('.', '/')}.py").decode()
    body = re.search(rf"^class {name}\b.*\n((?:(?:  .*)?\n)*)", code, re.M).group(1)
    body = body.split("  def ")[0]
    return re.findall(r'^  (?:__annotations__\[")?(\w+)(?:"\])? : ([^=\n]+)$', body, re.M)


def described_object(archive, obj, class_name, groups):
    """An object: a module or an instance of a script class, by PyTorch's own reading."""
    out = {}
    for name, type_text in attributes_of(archive, class_name):
        value = obj.getattr(name) if isinstance(obj, torch._C.ScriptModule) else getattr(obj, name)
        if isinstance(value, Pair):
            out[name] = described_object(archive, value, "__torch__.Pair", groups)
        elif isinstance(value, torch._C.ScriptModule):
            out[name] = described_object(archive, value, value._type().qualified_name(), groups)
        else:
            out[name] = described(value, groups)
            if type_text.startswith(("List[", "Dict[")):
                out[name]["type"] = type_text
    return {"object": class_name, "attributes": out}


class Hooked(nn.Module):
    """A module whose hooks change what it is given and what it gives."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 10


def one_more(self, given: Tuple[Tensor]) -> Tuple[Tensor]:
    return (given[0] + 1,)


def twice(self, given: Tuple[Tensor], result: Tensor) -> Tensor:
    return result * 2


def hooked():
    module = Hooked()
    module.register_forward_pre_hook(one_more)
    module.register_forward_hook(twice)
    return torch.jit.script(module)


def code_constants(loaded):
    """The constants that the code of `forward` names, by their name (`c0`)."""
    if not hasattr(loaded, "forward"):
        return {}
    return loaded.code_with_constants[1].const_mapping


def record(name, model, files=None):
    path = FOLDER / f"{name}.pt"
    torch.jit.save(model, str(path), _extra_files=files or {})
    loaded = torch.jit.load(str(path))
    archive = zipfile.ZipFile(path)
    groups = {}
    data = described_object(archive, loaded._c, loaded._c._type().qualified_name(), groups)
    root = archive.namelist()[0].split("/")[0]
    version = ".data/version" if f"{root}/.data/version" in archive.namelist() else "version"
    constants = sorted(code_constants(loaded).items())
    description = {
        "root": root,
        "version": int(archive.read(root + "/" + version)),
        "code": {
            n[len(root) + 1 :]: archive.read(n).decode() for n in archive.namelist() if n.endswith(".py")
        },
        "extra": files or {},
        "data": data,
        "constants": [described(value, groups) for _, value in constants],
    }
    text = json.dumps(description, indent=1, ensure_ascii=True)
    (FOLDER / f"{name}.json").write_text(text + "\n")
    print(name, path.stat().st_size, "bytes")


def main():
    torch.manual_seed(0)
    FOLDER.mkdir(exist_ok=True)
    record("shared_parameter", torch.jit.script(Shared()))
    record("attributes", torch.jit.script(Attributes()))
    record("lists", torch.jit.script(Lists()))
    record("dtypes", torch.jit.script(Dtypes()))
    record("views", torch.jit.script(Views()))
    record("empty", torch.jit.script(nn.Identity()), {"note.txt": "hello", "sub/config.json": "{}"})
    record("constants", torch.jit.freeze(torch.jit.script(Constant().eval())))
    record("deflated_code", torch.jit.script(Long()))
    holder = torch.jit.script(Holder())
    holder.fill()
    record("script_class", holder)
    record("scaled", torch.jit.script(Scaled()))
    record("hooked", hooked())


main()
