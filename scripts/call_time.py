"""Times a call of examples/lstm_cell.pt from Python, batch 1, beside torch.jit: least of seven times 20,000 calls.

    pip install numpy torch==2.15.0 target/wheels/flambeau-*.whl
    taskset -c 0 python scripts/call_time.py
"""

import pathlib
import time

import flambeau
import numpy
import torch

FILE = str(pathlib.Path(__file__).parent.parent / "examples" / "lstm_cell.pt")


def least(call, calls=20_000, rounds=7):
    """Microseconds a call, the first hundred left out."""
    for _ in range(100):
        call()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def main():
    torch.set_num_threads(1)
    arrays = [numpy.random.default_rng(0).standard_normal((1, n), dtype="float32") for n in (12, 16, 16)]
    tensors = [torch.from_numpy(array) for array in arrays]
    ours, theirs = flambeau.load(FILE), torch.jit.load(FILE)
    rows = [("arrays of NumPy", least(lambda: ours(*arrays))), ("tensors of PyTorch", least(lambda: ours(*tensors)))]
    loaded = least(lambda: theirs(*tensors))
    with torch.no_grad():
        peer = least(lambda: theirs(*tensors))
    print(f"torch.jit {peer:.1f} us under no_grad, {loaded:.1f} us as it is loaded")
    for name, time_of in rows:
        print(f"flambeau, {name}: {time_of:.1f} us, ratio {time_of / peer:.2f} and {time_of / loaded:.2f}")


main()
