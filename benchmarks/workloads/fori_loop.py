"""A loop over one number: every step depends on the last."""

from __future__ import annotations

import numpy as np

from benchmarks.workload import Workload

FACTOR = 0.999999


def make_loop(api):
    def step(_, carry):
        return carry * FACTOR + 1.0

    return lambda start, steps: api.lax.fori_loop(0, steps, step, start)


def run_python_loop(start, steps):
    factor, one = np.float32(FACTOR), np.float32(1)
    for _ in range(steps):
        start = start * factor + one
    return start


def make_numba_loop():
    import numba

    return numba.njit(run_python_loop)


ROWS = (Workload("fori_loop 1e6 steps f32", lambda size: (np.float32(1), size), make_loop,
                 numpy=run_python_loop, numba=make_numba_loop, tolerance=1e-3),)  # fmt: skip
