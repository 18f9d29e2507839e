"""Records PyTorch's and torchvision's answers for the layers that vision models are made of, as `flambeau check` reads them.

Run with a Python that has torch (2.15.0) and torchvision:

    python tests/golden/record_vision.py > tests/golden/vision.jsonl
"""

import json
import textwrap

import torch
import torchvision  # noqa: F401  registers its operators

from record_programs import encode

torch.manual_seed(0)


def record(name, source, *args):
    source = textwrap.dedent(source).lstrip()
    before = [encode(arg) for arg in args]
    case = {"name": name, "entry": "f", "how": "source", "source": source, "args": before}
    unit = torch.jit.CompilationUnit(source)
    with torch.no_grad():
        case["returns"] = encode(unit.f(*args))
    after = [encode(arg) for arg in args]
    if after != before:
        case["args_after"] = after
    print(json.dumps(case))


def boxes(n, dtype=torch.float32):
    corner = torch.rand(n, 2, dtype=dtype) * 10
    return torch.cat([corner, corner + torch.rand(n, 2, dtype=dtype) * 8], 1)


def regions(n, images, dtype=torch.float32):
    return torch.cat([torch.randint(0, images, (n, 1)).to(dtype), boxes(n, dtype)], 1)


NMS = """
    def f(boxes: Tensor, scores: Tensor, threshold: float):
        return torch.ops.torchvision.nms(boxes, scores, threshold)
"""
for n, threshold in ((12, 0.1), (20, 0.4), (1, 0.5)):
    record(f"nms.{n}", NMS, boxes(n), torch.rand(n), threshold)
record("nms.equal_scores", NMS, boxes(8, torch.float64), torch.ones(8, dtype=torch.float64), 0.3)
record("nms.none", NMS, torch.zeros(0, 4), torch.zeros(0), 0.5)

image = torch.randn(2, 8, 9, 11)
for aligned in (False, True):
    for samples in (-1, 2):
        record(
            f"roi_align.{'aligned' if aligned else 'plain'}.{samples}",
            """
            def f(x: Tensor, rois: Tensor, samples: int, aligned: bool):
                return torch.ops.torchvision.roi_align(x, rois, 0.8, 3, 2, samples, aligned)
            """,
            image[:, :2],
            regions(4, 2),
            samples,
            aligned,
        )
for name, arguments, channels in (
    ("roi_pool", "0.7, 3, 2", 2),
    ("ps_roi_align", "0.7, 2, 2, 2", 8),
    ("ps_roi_align", "0.7, 2, 2, -1", 8),
    ("ps_roi_pool", "0.9, 2, 2", 8),
):
    record(
        f"{name}.{arguments.split(', ')[-1]}",
        f"""
        def f(x: Tensor, rois: Tensor):
            return torch.ops.torchvision.{name}(x, rois, {arguments})
        """,
        image[:, :channels],
        regions(4, 2),
    )
record(
    "roi_align.double",
    """
    def f(x: Tensor, rois: Tensor):
        return torch.ops.torchvision.roi_align(x, rois, 1.0, 2, 2, 2, False)
    """,
    image[:1, :2].double(),
    regions(2, 1, torch.float64),
)

for groups, parts, masked in ((1, 1, False), (2, 2, True)):
    record(
        f"deform_conv2d.{groups}.{'masked' if masked else 'plain'}",
        f"""
        def f(x: Tensor, w: Tensor, offset: Tensor, mask: Tensor, bias: Tensor):
            return torch.ops.torchvision.deform_conv2d(
                x, w, offset, mask, bias, 2, 1, 1, 1, 1, 2, {groups}, {parts}, {masked})
        """,
        torch.randn(2, 4, 6, 7),
        torch.randn(6, 4 // groups, 3, 2),
        torch.randn(2, 2 * parts * 6, 3, 7),
        torch.rand(2, parts * 6, 3, 7),
        torch.randn(6),
    )

CONV = """
    def f(x: Tensor, w: Tensor, b: Optional[Tensor], stride: List[int], pad: List[int], dilation: List[int], groups: int):
        return torch.conv2d(x, w, b, stride, pad, dilation, groups)
"""
for name, sizes, kernel, out, stride, pad, dilation, groups in (
    ("depthwise", (2, 6, 9, 40), (3, 3), 6, [1, 1], [1, 1], [1, 1], 6),
    ("depthwise_stride", (1, 6, 9, 8), (3, 5), 6, [2, 2], [1, 2], [1, 1], 6),
    ("depthwise_dilated", (1, 4, 9, 11), (3, 3), 8, [2, 1], [2, 0], [2, 3], 4),
    ("grouped", (2, 6, 7, 8), (3, 3), 4, [1, 2], [1, 0], [1, 1], 2),
    ("pointwise", (2, 5, 4, 6), (1, 1), 3, [1, 1], [0, 0], [1, 1], 1),
    ("strided", (1, 3, 12, 13), (5, 3), 4, [3, 2], [2, 1], [1, 1], 1),
):
    weight = torch.randn(out, sizes[1] // groups, *kernel)
    record(f"conv2d.{name}", CONV, torch.randn(sizes), weight, torch.randn(out), stride, pad, dilation, groups)
    record(f"conv2d.{name}.no_bias", CONV, torch.randn(sizes), weight, None, stride, pad, dilation, groups)

record(
    "batch_norm.then_clamp",
    """
    def f(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, var: Tensor):
        y = torch.batch_norm(x, w, b, mean, var, False, 0.1, 1e-5, True)
        return torch.clamp_(y, 0.0, 6.0)
    """,
    torch.randn(2, 3, 5, 7) * 4,
    torch.randn(3),
    torch.randn(3),
    torch.randn(3),
    torch.rand(3) + 0.5,
)
record(
    "in_place.on_views",
    """
    def f(x: Tensor, y: Tensor):
        whole = torch.relu_(x)
        part = x[:, 1:3]
        part.mul_(y)
        x.t().add_(x.t())
        x[0].clamp_(-1.0, 1.5)
        x[1:1].mul_(2.0)
        x[1].add_(x[0], alpha=2)
        return whole, part
    """,
    torch.randn(3, 4),
    torch.randn(2),
)
