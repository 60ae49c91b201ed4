"""Matrices: a sum with a transpose, products, a layer of a network, distances of all pairs."""

from __future__ import annotations

import math

import numba
import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.numba_loops import REORDER, loop, parallel_loop
from benchmarks.programs import make_distance_sum, make_layer
from benchmarks.workload import DTYPES, Workload

TILE = 32


@parallel_loop
def add_transpose(x, y):
    out = np.empty_like(x)
    n = x.shape[0]
    for block in numba.prange((n + TILE - 1) // TILE):
        top = block * TILE
        for left in range(0, n, TILE):
            for i in range(top, min(top + TILE, n)):
                for j in range(left, min(left + TILE, n)):
                    out[i, j] = x[i, j] + y[j, i]
    return out


run_transposed_product = loop(lambda x, y: x.T @ y)


@parallel_loop
def run_layer(x, weights, bias):
    out = x @ weights
    for i in numba.prange(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = math.tanh(out[i, j] + bias[j])
    return out


@parallel_loop(fastmath=REORDER)
def add_distances(p):
    x, y, z = p[:, 0].copy(), p[:, 1].copy(), p[:, 2].copy()
    total = 0.0
    for i in numba.prange(p.shape[0]):
        part = p.dtype.type(0)
        for j in range(p.shape[0]):
            part += math.sqrt((x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 + (z[i] - z[j]) ** 2)
        total += part
    return total


def _make_rows(name: str, dtype: str) -> tuple[Workload, ...]:
    def make_pair(side):
        return make_normal(side, side, dtype=dtype), make_normal(side, side, dtype=dtype, seed=1)

    def make_layer_inputs(side):
        x, weights = make_pair(side)
        return x, weights / weights.dtype.type(side**0.5), make_normal(side, dtype=dtype, seed=2)

    def count_flops(x, *others):
        return 2.0 * x.shape[0] ** 3

    return (
        Workload(f"x + y.T 1000x1000 {name}", make_pair, lambda api: lambda x, y: x + y.T, size=1000, tiny=40,
                 numba=add_transpose, bytes_moved=lambda x, y: 3 * x.nbytes),
        Workload(f"x.T @ y 1000x1000 {name}", make_pair, lambda api: lambda x, y: x.T @ y, size=1000, tiny=40,
                 numba=run_transposed_product, flops=count_flops),
        Workload(f"tanh(x @ w + b) 1000x1000 {name}", make_layer_inputs, make_layer, size=1000, tiny=40,
                 numba=run_layer, flops=count_flops),
        Workload(f"pairwise distance 2000x3 {name}", lambda count: (make_normal(count, 3, dtype=dtype),),
                 make_distance_sum, size=2000, tiny=50, numba=add_distances,
                 flops=lambda p: 10.0 * p.shape[0] ** 2),
    )


ROWS = tuple(row for name, dtype in DTYPES.items() for row in _make_rows(name, dtype))
