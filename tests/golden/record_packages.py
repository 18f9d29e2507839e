"""Records PyTorch's answers for what models of published packages call besides the usual operators: torchaudio's own
operators and those of transformers, grouped products of mixtures of experts, attention with dropout. As `flambeau check` reads them.

Run with a Python that has torch (2.15.0), torchaudio (2.11.0) and transformers (5.23.0):

    python tests/golden/record_packages.py > tests/golden/packages.jsonl
"""

import json
import textwrap

import torch
import torchaudio  # noqa: F401  registers its operators
import transformers.integrations.moe  # noqa: F401  registers its operators

from record_programs import encode


def record(name, source, *args):
    source = textwrap.dedent(source).lstrip()
    before = [encode(arg) for arg in args]
    case = {"name": name, "entry": "f", "how": "source", "source": source, "args": before}
    unit = torch.jit.CompilationUnit(source)
    torch.manual_seed(0)
    with torch.no_grad():
        case["returns"] = encode(unit.f(*args))
    after = [encode(arg) for arg in args]
    if after != before:
        case["args_after"] = after
    print(json.dumps(case))


torch.manual_seed(1)
INT = torch.int32


def ints(*values):
    return torch.tensor(values, dtype=INT)


LFILTER = """
    def f(x: Tensor, a: Tensor, y: Tensor):
        return torch.ops.torchaudio._lfilter_core_loop(x, a, y)
"""
for dtype in (torch.float32, torch.float64):
    name = str(dtype).removeprefix("torch.")
    coefficients = torch.randn(2, 3, dtype=dtype) * 0.3
    record(f"lfilter.{name}", LFILTER, torch.randn(3, 2, 9, dtype=dtype), coefficients, torch.zeros(3, 2, 11, dtype=dtype))
    record(
        f"overdrive.{name}",
        """
        def f(x: Tensor, t: Tensor, i: Tensor, o: Tensor, y: Tensor):
            return torch.ops.torchaudio._overdrive_core_loop(x, t, i, o, y)
        """,
        torch.randn(2, 9, dtype=dtype),
        torch.randn(2, 9, dtype=dtype),
        torch.randn(2, dtype=dtype),
        torch.randn(2, dtype=dtype),
        torch.zeros(2, 9, dtype=dtype),
    )

ALIGN = """
    def f(p: Tensor, t: Tensor, n: Tensor, m: Tensor, blank: int):
        return torch.ops.torchaudio.forced_align(p, t, n, m, blank)
"""
for dtype in (torch.float16, torch.float32, torch.float64):
    for labels, blank in (([1, 2, 2, 3], 0), ([5], 6), ([3, 3, 3], 1)):
        chances = torch.randn(1, 9, 7).log_softmax(-1).to(dtype)
        targets = torch.tensor([labels], dtype=torch.int64 if blank else INT)
        name = f"forced_align.{str(dtype).removeprefix('torch.')}.{len(labels)}.{blank}"
        record(name, ALIGN, chances, targets, torch.tensor([9]), torch.tensor([len(labels)]), blank)
record("forced_align.ties", ALIGN, torch.zeros(1, 6, 4), torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2]), 0)

RNNT = """
    def f(x: Tensor, t: Tensor, n: Tensor, m: Tensor, blank: int, clamp: float, fused: bool):
        return torch.ops.torchaudio.rnnt_loss_forward(x, t, n, m, blank, clamp, fused)
"""
for dtype, blank, clamp, fused in (
    (torch.float32, 0, -1.0, True),
    (torch.float32, 4, 0.1, True),
    (torch.float32, 4, -1.0, False),
    (torch.float16, 0, -1.0, True),
):
    logits = torch.randn(2, 5, 4, 5)
    logits = (logits if fused else logits.log_softmax(-1)).to(dtype)
    name = f"rnnt_loss.{str(dtype).removeprefix('torch.')}.{blank}.{clamp}.{fused}"
    record(name, RNNT, logits, ints([1, 2, 1], [3, 1, 2]), ints(5, 4), ints(3, 2), blank, clamp, fused)

GROUPED = """
    def f(a: Tensor, b: Tensor, ends: Optional[Tensor], turned: bool):
        if turned:
            b = b.transpose(-2, -1)
        y = torch._grouped_mm(a, b, offs=ends)
        return y, y.stride()
"""
ends = ints(2, 2, 8)
for dtype in (torch.float32, torch.bfloat16):
    name = str(dtype).removeprefix("torch.")
    for case, a, b, groups in (
        ("rows", torch.randn(8, 8, dtype=dtype), torch.randn(3, 8, 8, dtype=dtype), ends),
        ("rows.columns", torch.randn(8, 8, dtype=dtype), torch.randn(3, 5, 8, dtype=dtype), ends),
        ("columns", torch.randn(3, 5, 8, dtype=dtype), torch.randn(8, 8, dtype=dtype), ends),
        ("depth", torch.randn(5, 8, dtype=dtype), torch.randn(8, 8, dtype=dtype), ends),
        ("batch", torch.randn(3, 5, 8, dtype=dtype), torch.randn(3, 5, 8, dtype=dtype), None),
    ):
        record(f"grouped_mm.{case}.{name}", GROUPED, a, b, groups, b.size(-2) != a.size(-1))

ATTENTION = """
    def f(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool):
        y = torch._C._nn.scaled_dot_product_attention(q, k, v, mask, 0.3, causal)
        return y, y.stride()
"""
for name, sizes, mask, causal in (
    ("plain", (2, 3, 5, 4), None, False),
    ("causal", (2, 3, 5, 4), None, True),
    ("mask", (2, 1, 5, 4), torch.randn(5, 5), False),
    ("flat", (3, 5, 4), None, False),
    ("large", (1, 4, 40, 8), None, False),
):
    q, k, v = (torch.randn(sizes) for _ in range(3))
    record(f"attention_dropout.{name}", ATTENTION, q, k, v, mask, causal)
record(
    "attention_dropout.transposed",
    ATTENTION.replace("(q, k, v,", "(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),"),
    *(torch.randn(2, 5, 3, 4) for _ in range(3)),
    None,
    False,
)

EXPERTS = """
    def f(x: Tensor, w: Tensor, ends: Tensor, g: Tensor):
        y = torch.ops.transformers.grouped_mm_fallback(x, w, ends)
        a, b = torch.ops.transformers.grouped_mm_fallback_backward(x, w, ends, g)
        return y, a, b
"""
for dtype in (torch.float32, torch.bfloat16):
    name = str(dtype).removeprefix("torch.")
    for case, ends in (("int32", ints(2, 2, 5)), ("int64", torch.tensor([0, 4, 5]))):
        x, w, g = (torch.randn(sizes, dtype=dtype) for sizes in ((6, 3), (3, 3, 2), (6, 2)))
        record(f"experts.{case}.{name}", EXPERTS, x, w, ends, g)
