"""Arrays of few columns, of short rows, and of elements that lie beside each other: shapes of which neither
threads nor lanes get enough by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.numba_loops import REORDER, parallel_loop
from benchmarks.programs import make_softmax
from benchmarks.workload import DTYPES, Workload
from benchmarks.workloads.reductions import BLOCKS, add_squared_differences

STEPS = 20  # of gradient descent


@parallel_loop(fastmath=REORDER)
def sum_columns(x):
    """Sums of each column, block by block."""
    parts = np.zeros((BLOCKS, x.shape[1]), x.dtype)
    for block in numba.prange(BLOCKS):
        part = parts[block]
        for i in range(block * x.shape[0] // BLOCKS, (block + 1) * x.shape[0] // BLOCKS):
            row = x[i]
            for j in range(part.size):
                part[j] += row[j]
    return parts.sum(axis=0)


@parallel_loop
def scale_columns(x, means, deviations):
    out = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - means[j]) / deviations[j]
    return out


def standardize_columns(x):
    count = x.dtype.type(x.shape[0])
    means = sum_columns(x) / count
    return scale_columns(x, means, np.sqrt(add_squared_differences(x, means).sum(axis=0) / count))


@parallel_loop
def find_largest_of_short_rows(x):
    out = np.empty(x.shape[0], np.int64)
    for i in numba.prange(x.shape[0]):
        best = 0
        for j in range(1, x.shape[1]):
            best = j if x[i, j] > x[i, best] else best
        out[i] = best
    return out


@parallel_loop(fastmath=REORDER)
def log_softmax_rows(x):
    out = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        largest, total = x[i].max(), x.dtype.type(0)
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        shift = largest + x.dtype.type(math.log(total))
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] - shift
    return out


@parallel_loop
def cross_rows(x, y):
    out = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        out[i, 0] = x[i, 1] * y[i, 2] - x[i, 2] * y[i, 1]
        out[i, 1] = x[i, 2] * y[i, 0] - x[i, 0] * y[i, 2]
        out[i, 2] = x[i, 0] * y[i, 1] - x[i, 1] * y[i, 0]
    return out


@parallel_loop
def repeat_elements(x):
    out = np.empty(3 * x.size, x.dtype)
    for i in numba.prange(x.size):
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = x[i]
    return out


@parallel_loop
def cumsum_columns(x):
    """Sums of each block, then those up to each element of it."""
    out, totals = np.empty_like(x), np.zeros((BLOCKS + 1, x.shape[1]), x.dtype)
    for block in numba.prange(BLOCKS):
        for i in range(block * x.shape[0] // BLOCKS, (block + 1) * x.shape[0] // BLOCKS):
            for j in range(x.shape[1]):
                totals[block + 1, j] += x[i, j]
    for block in range(BLOCKS):
        for j in range(x.shape[1]):
            totals[block + 1, j] += totals[block, j]
    for block in numba.prange(BLOCKS):
        for i in range(block * x.shape[0] // BLOCKS, (block + 1) * x.shape[0] // BLOCKS):
            for j in range(x.shape[1]):
                totals[block, j] += x[i, j]
                out[i, j] = totals[block, j]
    return out


@parallel_loop(fastmath=REORDER)
def compare_points(x, y):
    out = np.empty((x.shape[0], y.shape[0]), x.dtype)
    for i in numba.prange(x.shape[0]):
        for j in range(y.shape[0]):
            total = x.dtype.type(0)
            for k in range(x.shape[1]):
                difference = x[i, k] - y[j, k]
                total += difference * difference
            out[i, j] = math.exp(-total)
    return out


@parallel_loop(fastmath=REORDER)
def add_errors(x, y, w):
    """Sums, of blocks of rows, of rows times their errors."""
    parts = np.zeros((BLOCKS, x.shape[1]), x.dtype)
    for block in numba.prange(BLOCKS):
        for i in range(block * x.shape[0] // BLOCKS, (block + 1) * x.shape[0] // BLOCKS):
            total = x.dtype.type(0)
            for j in range(w.size):
                total += x[i, j] * w[j]
            error = 1 / (1 + math.exp(-total)) - y[i]
            for j in range(w.size):
                parts[block, j] += x[i, j] * error
    return parts.sum(axis=0)


def descend_in_loops(x, y, w):
    step = x.dtype.type(0.1 / x.shape[0])
    for _ in range(STEPS):
        w = w - step * add_errors(x, y, w)
    return w


def descend_once(np_like, x, y, w):
    """A step of logistic regression, as scripts spell it."""
    return w - 0.1 * x.T @ (1 / (1 + np_like.exp(-(x @ w))) - y) / x.shape[0]


def descend_in_numpy(x, y, w):
    for _ in range(STEPS):
        w = descend_once(np, x, y, w)
    return w


def make_descent(api) -> Callable:
    return lambda x, y, w: api.lax.fori_loop(0, STEPS, lambda _, w: descend_once(api.numpy, x, y, w), w)


def make_log_softmax(api) -> Callable:
    jnp = api.numpy

    def log_softmax(x):
        shifted = x - jnp.max(x, axis=1, keepdims=True)
        return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))

    return log_softmax


def make_masked_attention(api) -> Callable:
    jnp, softmax = api.numpy, make_softmax(api, -1)

    def attend(q, k, v):
        seen = jnp.tril(jnp.ones((q.shape[1], q.shape[1]), bool))
        return softmax(jnp.where(seen, q @ jnp.swapaxes(k, 1, 2), -1e9)) @ v

    return attend


#: name -> (shapes of the arguments with n for the size, size, program, Numba's loop, perhaps NumPy's).
_CASES: dict[str, tuple] = {
    "sum 10000x100 axis 0": ([("n", 100)], 10_000, lambda api: lambda x: x.sum(0), sum_columns),
    "standardize columns 10000x100": (
        [("n", 100)], 10_000, lambda api: lambda x: (x - x.mean(0)) / x.std(0), standardize_columns),
    "argmax 100000x10 axis 1": (
        [("n", 10)], 100_000, lambda api: lambda x: api.numpy.argmax(x, axis=1), find_largest_of_short_rows),
    "log_softmax 100000x10 axis 1": ([("n", 10)], 100_000, make_log_softmax, log_softmax_rows),
    "cross products 300000x3": (
        [("n", 3), ("n", 3)], 300_000, lambda api: lambda x, y: api.numpy.cross(x, y), cross_rows),
    "repeat 3 times, 300000": (
        [("n",)], 300_000, lambda api: lambda x: api.numpy.repeat(x, 3), repeat_elements),
    "cumsum 10000x100 axis 0": (
        [("n", 100)], 10_000, lambda api: lambda x: api.numpy.cumsum(x, axis=0), cumsum_columns),
    "exp(-distances) 1000x1000x10": (
        [("n", 10), ("n", 10)], 1_000,
        lambda api: lambda x, y: api.numpy.exp(-((x[:, None] - y) ** 2).sum(-1)), compare_points),
    f"logistic regression, {STEPS} steps, 10000x20": (
        [("n", 20), ("n",), (20,)], 10_000, make_descent, descend_in_loops, descend_in_numpy),
    "y @ x 1000x1000": ([("n",), ("n", "n")], 1_000, lambda api: lambda y, x: y @ x, None),
    "masked attention 8x256x32": ([(8, "n", 32)] * 3, 256, make_masked_attention, None),
}


def _make_row(name: str, dtype_name: str) -> Workload:
    shapes, size, program, loop, *in_numpy = _CASES[name]

    def make_inputs(size):
        return tuple(make_normal(*(size if extent == "n" else extent for extent in shape),
                                 dtype=DTYPES[dtype_name], seed=seed)
                     for seed, shape in enumerate(shapes))

    return Workload(f"{name} {dtype_name}", make_inputs, program, size, min(size, 300), *in_numpy, numba=loop)


ROWS = tuple(_make_row(name, dtype_name) for name in _CASES for dtype_name in DTYPES)
