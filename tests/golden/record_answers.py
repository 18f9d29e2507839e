"""Records three things that PyTorch decides and a program can see: the strides of results, the random numbers that a seed
gives for tensors of any strides, and the bytes of text.

Run with a Python that has torch (2.15.0 was used):

    python tests/golden/record_answers.py > tests/golden/answers.jsonl

Every case is a TorchScript program. Strides are asked for operands that are dense, have their channels last, are permuted,
lie in a larger tensor, are expanded, or have dimensions of size 1 with unusual strides.
"""

import json
import sys
import warnings

import torch

from record_programs import encode

warnings.filterwarnings("ignore")

# Sizes, strides and the elements of the storage of operands.
OPERANDS = {
    "odd": ([1, 8, 4, 4], [8, 1, 32, 8]),
    "loose": ([1, 8, 4, 4], [5, 16, 4, 1]),
    "last": ([2, 8, 4, 4], [128, 1, 32, 8]),
    "permuted": ([2, 8, 4, 4], [32, 4, 64, 1]),
    "gap": ([2, 8, 4, 4], [512, 64, 8, 1]),
    "one": ([2, 1, 4, 4], [16, 1, 4, 1]),
    "expanded": ([2, 8, 4, 4], [16, 0, 4, 1]),
}
RESULTS = """x + x
x + 1.0
1.0 - x
x * n
n * x
x.exp()
torch.where(x > 0, x, x)
torch.where(x > 0, x, 0.0)
torch.relu(x)
F.silu(x)
x.clone()
x.double()
torch.zeros_like(x)
torch.rand_like(x)
F.dropout(x)
x.contiguous()
F.conv2d(x, torch.ones([4, C, 1, 1]))
F.conv2d(x, torch.ones([4, C, 3, 3]), None, [1, 1], [1, 1])
F.conv2d(x, torch.ones([4, C, 3, 3]).contiguous(memory_format=torch.channels_last))
F.conv_transpose2d(x, torch.ones([C, 4, 3, 3]))
F.batch_norm(x, torch.zeros([C]), torch.ones([C]))
F.group_norm(x, 1)
F.layer_norm(x, [4, 4])
F.max_pool2d(x, [2, 2])
F.avg_pool2d(x, [2, 2])
F.adaptive_avg_pool2d(x, [1, 1])
F.adaptive_avg_pool2d(x, [2, 2])
F.interpolate(x, scale_factor=2.0)
F.interpolate(x, scale_factor=2.0, mode="bilinear")
F.interpolate(x, scale_factor=2.0, mode="bicubic")
F.pad(x, [1, 1, 1, 1])
torch.cat([x, x], 1)
torch.cat([x, n], 1)
x.flip(2)
x.sum(2)
x.mean([2, 3], True)
x.gather(2, torch.zeros([B, C, 4, 4], dtype=torch.long))
x.index_select(2, torch.tensor([0, 1]))
x @ x
F.linear(x, torch.ones([3, 4]))
F.conv1d(x[:, :, 0], torch.ones([2, C, 3]))""".splitlines()


def case(name, source, args, **more):
    line = {"name": name, "entry": "f", "how": "source", "source": source, "args": [encode(a) for a in args]}
    torch.manual_seed(0)
    try:
        line["returns"] = encode(torch.jit.CompilationUnit(source).f(*args))
    except UnicodeDecodeError as error:
        line["raises"] = {"when": "run", "class": "UnicodeDecodeError", "message": str(error)}
    print(json.dumps(line | more))


def strides():
    for operand, (sizes, steps) in OPERANDS.items():
        reach = 1 + sum((n - 1) * s for n, s in zip(sizes, steps))
        lines = [f"    x = b.as_strided({sizes}, {steps})", f"    n = torch.ones({sizes})", "    out: List[List[int]] = []"]
        storage = torch.arange(reach, dtype=torch.float32) / 7
        for expression in RESULTS:
            expression = expression.replace("F.", "torch.nn.functional.").replace("C", str(sizes[1])).replace("B", str(sizes[0]))
            trial = "\n".join(["def f(b: Tensor) -> List[List[int]]:", *lines[:3], f"    out.append(({expression}).stride())", "    return out\n"])
            try:
                torch.jit.CompilationUnit(trial).f(storage)
            except RuntimeError as error:
                print(f"{operand}: {expression}: {str(error).splitlines()[-1]}", file=sys.stderr)
                continue
            lines.append(f"    out.append(({expression}).stride())")
        case(f"strides.{operand}", "\n".join(["def f(b: Tensor) -> List[List[int]]:", *lines, "    return out\n"]), [storage])


DRAWS = """torch.rand_like(x)
torch.randn_like(x)
torch.empty_like(x).uniform_(-2.0, 3.0)
torch.empty_like(x).normal_(1.0, 2.0)
torch.empty_like(x).exponential_()
torch.empty_like(x).cauchy_()
torch.empty_like(x).log_normal_()
torch.empty_like(x).geometric_(0.3)
torch.empty_like(x).random_(0, 100)
torch.empty_like(x).bernoulli_(0.4)
torch.bernoulli(torch.full_like(x, 0.4))
torch.empty_like(x).bernoulli_(torch.full_like(x, 0.4))
torch.randint_like(x, 0, 9)
torch.normal(x, 1.5)
torch.nn.functional.dropout(x, 0.3)
torch.nn.functional.alpha_dropout(x, 0.3, True)
torch.nn.functional.dropout2d(x, 0.5)
torch.randn([20], dtype=torch.half).float()
torch.randn([21], dtype=torch.bfloat16).float()
torch.randn([3, 7], dtype=torch.double)
torch.multinomial(torch.tensor([0.1, 0.5, 0.4]), 2)
torch.multinomial(torch.tensor([0.1, 0.5, 0.4]), 5, True)
torch.randperm(11)""".splitlines()


def draws():
    for operand, (sizes, steps) in OPERANDS.items():
        reach = 1 + sum((n - 1) * s for n, s in zip(sizes, steps))
        names = ", ".join(f"r{n}" for n in range(len(DRAWS)))
        lines = [f"    r{n} = {expression}" for n, expression in enumerate(DRAWS)]
        head = f"def f(b: Tensor) -> List[Tensor]:\n    x = b.as_strided({sizes}, {steps})\n    torch.manual_seed(5)\n"
        case(f"draws.{operand}", head + "\n".join(lines) + f"\n    return [{names}]\n", [torch.arange(reach, dtype=torch.float32) / 7])


TEXT = """w[0:1]
w[0:1] + w[1:2]
w[::-1]
w[::-1][::-1]
str(ord(w[0:1]))
chr(200)
chr(1084)
str(len(chr(200)))
"".join(list(w))
str(w[0:1] < w[1:2]) + str(w[0:1] < "z") + str(w[1:2] in w)
str(w.find(w[1:2])) + " " + str(w.count(w[0:1])) + " " + str(w.rfind(w[1:2]))
w.replace(w[0:1], "x")
w.replace(w[0:1], w[0:1])
str(len(w.split(w[0:1]))) + str(len(w.rsplit(w[1:2], 1)))
w[0:1].join(["", w[1:]])
w[0:1].upper() + w[1:].lower()
"{}".format(w[0:1]) + w[1:2]
"%s%s" % (w[0:1], w[1:2])
"%c%c" % (208, w[1:2])
"ab".center(4, w[0:1])
w.strip(w[0:1])
w.partition(w[2:4])[2]
str(w[0:1].isalpha()) + str(w[0:1].isspace())
str(hash(w[0:1]) == hash(w[0:1]))
w[-1]
w[1:3] + w[3:4]""".splitlines()


def text():
    for n, expression in enumerate(TEXT):
        case(f"text.{n}", f"def f(w: str) -> str:\n    return {expression}\n", ["мама é"])
    keys = "def f(w: str) -> int:\n    d: Dict[str, int] = {}\n    for c in w:\n        d[c] = 1\n    return len(d)\n"
    case("text.keys", keys, ["мама"])


def resize():
    pixels = (torch.arange(2 * 5 * 9 * 11) * 37 % 251).to(torch.uint8)
    calls = ["size=[7, 16], mode='bilinear'", "size=[7, 16], mode='bicubic'", "size=[4, 5], mode='bilinear', antialias=True"]
    calls += ["size=[4, 5], mode='bicubic', antialias=True", "size=[9, 4], mode='bilinear'", "size=[13, 11], mode='bicubic', align_corners=True"]
    calls += ["scale_factor=1.05, mode='bilinear'"]
    body = "".join(f"    out.append(torch.nn.functional.interpolate(x, {call}))\n" for call in calls)
    for channels in (3, 5):
        x = pixels[: 2 * channels * 99].reshape(2, channels, 9, 11)
        case(f"resize.bytes.{channels}", "def f(x: Tensor) -> List[Tensor]:\n    out: List[Tensor] = []\n" + body + "    return out\n", [x])
    body = "".join(f"    out.append(torch.nn.functional.interpolate(x, {call}))\n" for call in calls[2:4])
    x = pixels[: 2 * 3 * 99].reshape(2, 3, 9, 11).float()
    case("resize.smooth", "def f(x: Tensor) -> List[Tensor]:\n    out: List[Tensor] = []\n" + body + "    return out\n", [x])


strides()
draws()
text()
resize()
