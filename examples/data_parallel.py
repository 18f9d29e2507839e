"""Data-parallel training over MPI: each process takes its part of each batch, and gradients are averaged in their own memory.

    mpiexec -n 3 python examples/data_parallel.py examples/lstm_cell.pt trained.safetensors

One process and three give the same weights but for rounding. Needs the packages flambeau, numpy and mpi4py.
"""

import sys

import numpy as np
from mpi4py import MPI

import flambeau

STEPS, BATCH, RATE = 5, 12, 0.1


def main(model: str, output: str) -> None:
    world = MPI.COMM_WORLD
    m = flambeau.load(model)
    parameters = list(m.parameters())
    for p in parameters:
        p.requires_grad_(True)
    data = np.random.default_rng(0)
    for step in range(STEPS):
        # Every process draws the whole batch and keeps its rows; real programs read theirs from files.
        x, h, c, target = (data.standard_normal((BATCH, n), dtype=np.float32) for n in (12, 16, 16, 16))
        mine = slice(world.rank * BATCH // world.size, (world.rank + 1) * BATCH // world.size)
        x, h, c, target = (flambeau.from_numpy(a[mine]) for a in (x, h, c, target))
        hidden, _ = m(x, h, c)
        loss = (hidden - target).square().mean()
        loss.backward()
        for p in parameters:
            # A view of the gradient's memory: MPI sums into it, and nothing is copied.
            gradient = np.asarray(p.grad)
            world.Allreduce(MPI.IN_PLACE, gradient)
            gradient /= world.size
            with flambeau.no_grad():
                p.add_(p.grad, alpha=-RATE)
            p.grad = None
        mean = world.allreduce(loss.item()) / world.size
        if world.rank == 0:
            print(f"step {step}: loss {mean:.6f}")
    if world.rank == 0:
        m.save_weights(output)


if __name__ == "__main__":
    main(*sys.argv[1:3])
