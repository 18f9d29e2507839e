"""Records what two-tensor operators answer, and what they refuse in which words, over pairs of dtypes and of sizes.

    python tests/golden/record_refusals.py > tests/golden/refusals.jsonl        (with torch 2.15.0)
"""

import json
import warnings

import torch

from record_programs import encode, raised

warnings.filterwarnings("ignore")

F, H, D = torch.float32, torch.float16, torch.float64
LONG, BYTE, BOOL, COMPLEX = torch.int64, torch.uint8, torch.bool, torch.complex64

OPERATORS = {
    "cross": "torch.cross(a, b)",
    "linalg_cross": "torch.linalg.cross(a, b)",
    "vecdot": "torch.linalg.vecdot(a, b)",
    "vander": "torch.linalg.vander(b)",
    "equal": "torch.equal(a, b)",
    "einsum": "torch.einsum('i,i->', [a, b])",
    "einsum_outer": "torch.einsum('i,j->ij', [a, b])",
    "inner": "torch.inner(a, b)",
    "chain_matmul": "torch.chain_matmul([a, b])",
    "mse_loss": "torch.ops.aten.mse_loss(a, b, 0)",
    "smooth_l1_loss": "torch.ops.aten.smooth_l1_loss(a, b, 0, 1.0)",
    "huber_loss": "torch.ops.aten.huber_loss(a, b, 0, 1.0)",
    "binary_cross_entropy": "torch.ops.aten.binary_cross_entropy(a, b, None, 1)",
    "binary_cross_entropy_weight": "torch.ops.aten.binary_cross_entropy(a, a, b, 1)",
    "bce_with_logits": "torch.binary_cross_entropy_with_logits(a, b, None, None, 1)",
    "bce_with_logits_weight": "torch.binary_cross_entropy_with_logits(a, a, b, None, 0)",
    "bce_with_logits_pos_weight": "torch.binary_cross_entropy_with_logits(a, a, None, b, 0)",
    "soft_margin_loss": "torch.ops.aten.soft_margin_loss(a, b, 0)",
    "hinge_embedding_loss": "torch.hinge_embedding_loss(a, b, 1.0, 1)",
    "cosine_similarity": "torch.cosine_similarity(a, b, 0)",
    "kl_div": "torch.kl_div(a, b, 1)",
    "poisson_nll_loss": "torch.poisson_nll_loss(a, b, True, True, 1e-8, 1)",
    "multilabel_margin_loss": "torch.ops.aten.multilabel_margin_loss(a, b, 1)",
    "nll_loss": "torch.ops.aten.nll_loss_nd(a, b)",
    "trapezoid": "torch.trapezoid(a, b)",
    "prelu": "torch.prelu(a, b)",
    "layer_norm": "torch.layer_norm(a, [3], b)",
    "index_put": "a.index_put([torch.tensor([0])], b)",
    "repeat_interleave": "torch.repeat_interleave(a, b)",
    "bitwise_and": "a & b",
    "embedding": "torch.embedding(a, b)",
}

DTYPES = [(F, F), (F, D), (F, H), (F, LONG), (F, BYTE), (F, BOOL), (F, COMPLEX), (H, F), (LONG, F), (BOOL, F), (COMPLEX, F)]
DTYPES += [(LONG, LONG), (BOOL, BOOL), (LONG, BOOL)]
SIZES = [((3,), ()), ((3,), (2, 3)), ((2, 3), (3,)), ((3, 3), (3, 3)), ((2, 3), (3, 4))]


def tensor(dtype, sizes):
    """Numbers between 0 and 1, where the dtype has such."""
    if dtype.is_complex or dtype.is_floating_point:
        return (torch.rand(sizes) * 0.9 + 0.05).to(dtype)
    return torch.randint(0, 2, sizes).to(dtype)


def main():
    for name, expression in OPERATORS.items():
        torch.manual_seed(1)
        source = f"def f(a: Tensor, b: Tensor):\n    return {expression}\n"
        function = torch.jit.CompilationUnit(source).f
        pairs = [(x, y, (3,), (3,)) for x, y in DTYPES] + [(F, F, x, y) for x, y in SIZES]
        for x, y, first, second in pairs:
            if name == "binary_cross_entropy" and first == (3,) and second == (2, 3):
                continue  # PyTorch reduces a result that has only the sizes of the first argument.
            a, b = tensor(x, first), tensor(y, second)
            label = f"{x}_{list(first)}.{y}_{list(second)}".replace("torch.", "").replace(" ", "")
            row = {"name": f"{name}.{label}", "entry": "f", "how": "source", "source": source, "args": [encode(a), encode(b)]}
            try:
                row["returns"] = encode(function(a.clone(), b.clone()))
            except Exception as error:
                row["raises"] = raised("run", error)
            print(json.dumps(row))


if __name__ == "__main__":
    main()
