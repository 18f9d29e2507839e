"""Writes the schemas of PyTorch's, torchvision's and torchaudio's operators, overloads in the order in which PyTorch tries them.

usage: python scripts/record_schemas.py > src/dialects/schemas.txt     (with torch 2.15.0, torchvision and torchaudio)
"""
import torch
import torchaudio  # noqa: F401  registers its operators
import torchvision  # noqa: F401  registers its operators

names = {str(s).split("(")[0].split(".")[0] for s in torch._C._jit_get_all_schemas()}
for name in sorted(n for n in names if n.startswith(("aten::", "torchaudio::", "torchvision::"))):
    for schema in torch._C._jit_get_schemas_for_operator(name):
        print(schema)
