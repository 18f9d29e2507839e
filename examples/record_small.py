"""Records examples/small.pt, a small traced network for images, and examples/small_case with PyTorch's answers to it.

Needs PyTorch 2.15.0; run from the repository's root: python examples/record_small.py
"""
import os
import subprocess
import sys
import warnings
import zipfile

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10), nn.Softmax(1),
).eval()
torch.jit.save(torch.jit.trace(model, torch.randn(1, 3, 16, 16)), "examples/small.part")
# Tables of original places name folders of the machine that traced the model.
with zipfile.ZipFile("examples/small.part") as source, zipfile.ZipFile("examples/small.pt", "w") as target:
    for name in source.namelist():
        if not name.endswith(".debug_pkl") and ".data/" not in name:
            entry = zipfile.ZipInfo(name.replace("small.part/", "small/", 1), (1980, 1, 1, 0, 0, 0))
            target.writestr(entry, source.read(name))
os.remove("examples/small.part")
words = ["examples/small.pt", "examples/small_case", "--input", "input=float32[1,3,16,16]", "--ops"]
subprocess.run([sys.executable, "examples/record.py", *words], check=True)
