"""What the files of idioms share: the package that is tried (PyTorch's torch.jit, or Flambeau), and the list of idioms."""

import sys
import traceback
import warnings
from typing import Any

import torch

warnings.simplefilter("ignore")
WHICH = sys.argv[1] if len(sys.argv) > 1 else "flambeau"
if WHICH == "torch":
    import torch.jit as J
else:
    import flambeau as J  # type: ignore[no-redef]  # noqa: F401

IDIOMS: list[Any] = []


def idiom(function: Any) -> Any:
    IDIOMS.append(function)
    return function


def same(a: Any, b: Any) -> None:
    if isinstance(b, (list, tuple)):
        assert len(a) == len(b), (a, b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(b, dict):
        assert set(a) == set(b), (a, b)
        for key in b:
            same(a[key], b[key])
    elif isinstance(b, torch.Tensor):
        torch.testing.assert_close(torch.as_tensor(a), b)
    else:
        assert a == b, (a, b)


def main() -> int:
    failed = []
    for function in IDIOMS:
        try:
            function()
        except BaseException as error:  # noqa: BLE001
            failed.append(function.__name__)
            last = traceback.format_exc().strip().splitlines()
            print(f"--- {function.__name__}: {type(error).__name__}: {str(error)[:700]}")
            if "-v" in sys.argv:
                print("\n".join(last[-12:]))
    print(f"{WHICH}: {len(IDIOMS) - len(failed)} of {len(IDIOMS)}; failed: {', '.join(failed) or 'none'}")
    return len(failed)
