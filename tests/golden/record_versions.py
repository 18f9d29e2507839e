"""Records what PyTorch makes of archives of older format versions, whose operators meant other things.

One case a version from 2 to 10: an empty module whose code and version record are replaced by older ones.

    python tests/golden/record_versions.py > tests/golden/versions.jsonl
"""

import base64
import io
import json
import zipfile

import torch

from record_programs import encode


class Plain(torch.nn.Module):
    def forward(self, i, j, x):
        return i


def steps(version):
    """Statements whose meaning changed in some version; the names of what they give."""
    yield "torch.div(i, j)"
    yield "torch.div(i, x)"
    yield "torch.div(i, -2)"
    yield "torch.div(i, 2.)"
    yield "torch.div_(torch.clone(x), j)"
    yield "torch.div_(torch.clone(x), 3)"
    yield "torch.div(x, j, out=torch.zeros([4]))"
    yield 'torch.div(i, j, rounding_mode="floor")'
    if version < 4:
        yield "torch.div_(torch.clone(i), j)"
        yield "torch.div_(torch.clone(i), 2)"
        yield "torch.div(i, j, out=torch.zeros([4], dtype=4))"
    yield "torch.full([2], 3)"
    yield "torch.full([2], True)"
    yield "torch.full([2], 3, dtype=3)"
    yield "torch.full([2], 3, out=torch.zeros([2], dtype=4))"
    yield "torch.linspace(0., 3., 4)"
    if version < 8:
        yield "torch.linspace(0., 3.)"
        yield "torch.linspace(0., 3., None, out=torch.zeros([100]))"
    yield "torch.logspace(0., 2., 3, 2.)"
    if version < 9:
        yield "torch.logspace(0., 2., None, 2.)"
        yield "torch.logspace(0., 2., None, 10., out=torch.zeros([100]))"
    yield "torch.gelu(x)"
    yield "torch.gelu(x, out=torch.zeros([4]))"


def archive(version):
    empty = io.BytesIO()
    torch.jit.save(torch.jit.script(Plain()), empty)
    calls = list(steps(version))
    names = [f"_{n}" for n in range(len(calls))]
    body = [f"{name} = {call}" for name, call in zip(names, calls)] + [f"return ({', '.join(names)})"]
    answer = f"Tuple[{', '.join(['Tensor'] * len(calls))}]"
    code = (
        "class Plain(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
        "  _is_full_backward_hook : Optional[bool]\n"
        f"  def forward(self: __torch__.Plain, i: Tensor, j: Tensor, x: Tensor) -> {answer}:\n"
        + "".join(f"    {line}\n" for line in body)
    )
    out = io.BytesIO()
    with zipfile.ZipFile(empty) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if name.endswith(".debug_pkl"):
                continue
            is_code = name.endswith(".py")
            content = code if is_code else f"{version}\n" if name.endswith("/version") else old.read(name)
            new.writestr(name, content, zipfile.ZIP_DEFLATED if is_code else zipfile.ZIP_STORED)
    return out.getvalue()


for version in range(2, 11):
    data = archive(version)
    args = torch.tensor([7, -7, 6, -1]), torch.tensor([2, 2, -4, 3]), torch.tensor([1.5, -0.5, 4.0, -8.0])
    with torch.no_grad():
        answer = torch.jit.load(io.BytesIO(data))(*args)
    case = {"name": f"version_{version}", "entry": "forward", "how": "script"}
    case |= {"pt": base64.b64encode(data).decode(), "args": [encode(arg) for arg in args]}
    print(json.dumps(case | {"returns": encode(answer)}))
