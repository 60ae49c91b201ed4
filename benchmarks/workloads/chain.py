"""A hundred operations in a row, fused into one pass over memory or not."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import make_normal

LENGTH = 100


def make_chain(api):
    jnp = api.numpy

    def chain(x):
        for _ in range(LENGTH):
            x = jnp.sin(x) * 1.01 + 0.1
        return x

    return chain


def make_chain_loop():
    import numba

    factor, offset = np.float32(1.01), np.float32(0.1)

    @numba.njit(parallel=True)
    def chain(x):
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            value = x[i]
            for _ in range(LENGTH):
                value = math.sin(value) * factor + offset
            out[i] = value
        return out

    return chain


ROWS = (Workload(f"chain of {LENGTH} sin(x)*1.01+0.1, 1e4 f32", lambda size: (make_normal(size),), make_chain,
                 size=10_000, quick_size=100, numba=make_chain_loop),)  # fmt: skip
