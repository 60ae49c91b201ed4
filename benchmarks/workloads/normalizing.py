"""Reductions and what depends on them: softmax, logsumexp and layer normalization along either axis of a
matrix."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.numba_loops import REORDER, parallel_loop
from benchmarks.programs import make_softmax
from benchmarks.workload import DTYPES, Workload
from benchmarks.workloads.elementwise import count_in_and_out

EPSILON = 1e-5
BLOCKS = 4


def make_logsumexp(api, axis: int) -> Callable:
    jnp = api.numpy

    def logsumexp(x):
        largest = jnp.max(x, axis=axis, keepdims=True)
        total = jnp.sum(jnp.exp(x - largest), axis=axis, keepdims=True)
        return jnp.squeeze(largest + jnp.log(total), axis)

    return logsumexp


def make_layernorm(api, axis: int) -> Callable:
    jnp = api.numpy

    def layernorm(x):
        centred = x - jnp.mean(x, axis=axis, keepdims=True)
        return centred / jnp.sqrt(jnp.mean(centred**2, axis=axis, keepdims=True) + EPSILON)

    return layernorm


@parallel_loop(fastmath=REORDER)
def softmax_rows(x):
    out = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        largest, total = x[i].max(), x.dtype.type(0)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - largest)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


@parallel_loop(fastmath=REORDER)
def logsumexp_rows(x):
    out = np.empty(x.shape[0], x.dtype)
    for i in numba.prange(x.shape[0]):
        largest, total = x[i].max(), x.dtype.type(0)
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        out[i] = largest + math.log(total)
    return out


@parallel_loop(fastmath=REORDER)
def layernorm_rows(x):
    out = np.empty_like(x)
    real = x.dtype.type
    count, epsilon = real(x.shape[1]), real(EPSILON)
    for i in numba.prange(x.shape[0]):
        mean, square = x[i].sum() / count, real(0)
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) ** 2
        scale = real(1) / math.sqrt(square / count + epsilon)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale
    return out


@parallel_loop(fastmath=REORDER)
def softmax_columns(x):
    out = np.empty_like(x)
    for block in numba.prange(BLOCKS):
        own = slice(block * x.shape[1] // BLOCKS, (block + 1) * x.shape[1] // BLOCKS)
        largest = x[0, own].copy()
        total = np.zeros_like(largest)
        for i in range(1, x.shape[0]):
            values = x[i, own]
            for j in range(values.size):
                largest[j] = max(largest[j], values[j])
        for i in range(x.shape[0]):
            values, into = x[i, own], out[i, own]
            for j in range(values.size):
                into[j] = math.exp(values[j] - largest[j])
                total[j] += into[j]
        for i in range(x.shape[0]):
            into = out[i, own]
            for j in range(into.size):
                into[j] /= total[j]
    return out


@parallel_loop(fastmath=REORDER)
def logsumexp_columns(x):
    out = np.empty(x.shape[1], x.dtype)
    for block in numba.prange(BLOCKS):
        own = slice(block * x.shape[1] // BLOCKS, (block + 1) * x.shape[1] // BLOCKS)
        largest = x[0, own].copy()
        total = np.zeros_like(largest)
        for i in range(1, x.shape[0]):
            values = x[i, own]
            for j in range(values.size):
                largest[j] = max(largest[j], values[j])
        for i in range(x.shape[0]):
            values = x[i, own]
            for j in range(values.size):
                total[j] += math.exp(values[j] - largest[j])
        out[own] = largest + np.log(total)
    return out


@parallel_loop(fastmath=REORDER)
def layernorm_columns(x):
    out = np.empty_like(x)
    real = x.dtype.type
    count, epsilon = real(x.shape[0]), real(EPSILON)
    for block in numba.prange(BLOCKS):
        own = slice(block * x.shape[1] // BLOCKS, (block + 1) * x.shape[1] // BLOCKS)
        mean = np.zeros_like(x[0, own])
        square = np.zeros_like(mean)
        for i in range(x.shape[0]):
            values = x[i, own]
            for j in range(values.size):
                mean[j] += values[j]
        mean /= count
        for i in range(x.shape[0]):
            values = x[i, own]
            for j in range(values.size):
                square[j] += (values[j] - mean[j]) ** 2
        scale = real(1) / np.sqrt(square / count + epsilon)
        for i in range(x.shape[0]):
            values, into = x[i, own], out[i, own]
            for j in range(values.size):
                into[j] = (values[j] - mean[j]) * scale[j]
    return out


#: (api, axis) -> function; the loops over columns (axis 0) and over rows (axis 1).
FUNCTIONS = {
    "softmax": (make_softmax, (softmax_columns, softmax_rows)),
    "logsumexp": (make_logsumexp, (logsumexp_columns, logsumexp_rows)),
    "layernorm": (make_layernorm, (layernorm_columns, layernorm_rows)),
}


def _make_row(name: str, axis: int, dtype_name: str) -> Workload:
    make, loops = FUNCTIONS[name]
    return Workload(
        f"{name} 1000x1000 axis {axis} {dtype_name}",
        lambda side: (make_normal(side, side, dtype=DTYPES[dtype_name]),),
        lambda api: make(api, axis),
        size=1000, tiny=30, numba=loops[axis],
        bytes_moved=(lambda x: x.nbytes) if name == "logsumexp" else count_in_and_out,
    )


ROWS = tuple(_make_row(name, axis, dtype) for name in FUNCTIONS for axis in (0, 1) for dtype in DTYPES)
