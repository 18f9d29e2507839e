"""Writes src/frontend/script/unknown_returns.txt: what operators of PyTorch give that give no single tensor.

Run with a Python that has torch (2.15.0 was used):

    python scripts/unknown_returns.py > src/frontend/script/unknown_returns.txt

Archives may speak of operators that are not built here, in branches that are never taken. Their code is read with
these types. The first overload of a name speaks for all.
"""

import torch

seen = {}
for schema in torch._C._jit_get_all_schemas():
    name = schema.name
    if not name.startswith("aten::") or name in seen or name.endswith("_"):
        continue
    types = [result.type.str() for result in schema.returns]
    plain = all(t in ("Tensor", "Tensor[]", "int", "int[]", "float", "float[]", "bool", "str", "Scalar") for t in types)
    seen[name] = " ".join(types) if plain and types else "Tensor"
for name in sorted(seen):
    if seen[name] != "Tensor":
        print(name.removeprefix("aten::"), seen[name])
