"""Softmax of a matrix along either axis: two reductions and what depends on them."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import make_square


def make_softmax(api, axis: int, scale: float = 1.0):
    jnp = api.numpy

    def softmax(x):
        unnormalized = jnp.exp((x - jnp.max(x, axis=axis, keepdims=True)) * scale)
        return unnormalized / jnp.sum(unnormalized, axis=axis, keepdims=True)

    return softmax


def make_row_loop():
    import numba

    @numba.njit(parallel=True, fastmath=True)
    def softmax(x):
        out = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            largest, total = x[i].max(), np.float32(0)
            for j in range(x.shape[1]):
                out[i, j] = math.exp(x[i, j] - largest)
                total += out[i, j]
            for j in range(x.shape[1]):
                out[i, j] /= total
        return out

    return softmax


def make_column_loop():
    import numba

    @numba.njit(fastmath=True)
    def softmax(x):
        out = np.empty_like(x)
        largest, total = x[0].copy(), np.zeros(x.shape[1], x.dtype)
        for i in range(1, x.shape[0]):
            for j in range(x.shape[1]):
                largest[j] = max(largest[j], x[i, j])
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = math.exp(x[i, j] - largest[j])
                total[j] += out[i, j]
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] /= total[j]
        return out

    return softmax


def _make_row(axis: int, make_loop) -> Workload:
    return Workload(f"softmax 1000x1000 f32, axis {axis}", lambda size: (make_square(size),),
                    lambda api: make_softmax(api, axis), numba=make_loop)  # fmt: skip


ROWS = (_make_row(0, make_column_loop), _make_row(1, make_row_loop))
