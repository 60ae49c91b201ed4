"""Reductions of a matrix: of all elements, of columns, of rows, for three shapes of the same size."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.inputs import make_uniform
from benchmarks.numba_loops import REORDER, loop, parallel_loop
from benchmarks.workload import DTYPES, Workload

NAMES = ("sum", "mean", "max", "argmax", "var", "norm")
AXES = (None, 0, 1)
#: (rows, columns) divided by the square root of the size, which is how tiny ones are made too.
SHAPES = {"1000x1000": (1.0, 1.0), "1e6x4": (1000.0, 0.004), "4x1e6": (0.004, 1000.0)}
#: Columns that a thread reduces together, at least; a loop over fewer of them is not vectorized.
WIDE = 64
#: Parts of a matrix that threads share.
BLOCKS = 16


def find_norm(api, x, axis):
    return api.numpy.sqrt(api.numpy.sum(x * x, axis=axis))


def make_reduction(name: str, axis: int | None) -> Callable:
    def make(api):
        if name == "norm":
            return lambda x: find_norm(api, x, axis)
        return lambda x: getattr(api.numpy, name)(x, axis=axis)

    return make


@loop(fastmath=REORDER)
def join(total, value, largest, squares):
    if largest:
        return value if value > total else total
    return total + (value * value if squares else value)


@loop
def finish(total, count, squares, divides):
    if squares:
        return math.sqrt(total)
    return total / count if divides else total


def make_folds(largest: bool, squares: bool, divides: bool) -> tuple[Callable, Callable, Callable]:
    """Loops that reduce each row, each of many columns, and each of a few columns to the maximum, the sum or
    the sum of squares; the mean and the root of it are taken at the end."""

    @parallel_loop(fastmath=REORDER)
    def fold_rows(x):
        out = np.empty(x.shape[0], x.dtype)
        for i in numba.prange(x.shape[0]):
            row = x[i]
            total = row[0] if largest else x.dtype.type(0)
            for j in range(row.size):
                total = join(total, row[j], largest, squares)
            out[i] = finish(total, x.dtype.type(row.size), squares, divides)
        return out

    @parallel_loop(fastmath=REORDER)
    def fold_columns(x):
        out = np.empty(x.shape[1], x.dtype)
        blocks = min(BLOCKS, x.shape[1] // WIDE)
        for block in numba.prange(blocks):
            own = slice(block * x.shape[1] // blocks, (block + 1) * x.shape[1] // blocks)
            part = out[own]
            part[:] = x[0, own] if largest else 0
            for i in range(x.shape[0]):
                values = x[i, own]
                for j in range(part.size):
                    part[j] = join(part[j], values[j], largest, squares)
            for j in range(part.size):
                part[j] = finish(part[j], x.dtype.type(x.shape[0]), squares, divides)
        return out

    @parallel_loop(fastmath=REORDER)
    def fold_tall(x):
        parts = np.empty((BLOCKS, x.shape[1]), x.dtype)
        for block in numba.prange(BLOCKS):
            rows = x[block * x.shape[0] // BLOCKS : (block + 1) * x.shape[0] // BLOCKS]
            for j in range(x.shape[1]):
                total = rows[0, j] if largest else x.dtype.type(0)
                for i in range(rows.shape[0]):
                    total = join(total, rows[i, j], largest, squares)
                parts[block, j] = total
        out = parts[0].copy()
        for j in range(x.shape[1]):
            for block in range(1, BLOCKS):
                out[j] = join(out[j], parts[block, j], largest, False)
            out[j] = finish(out[j], x.dtype.type(x.shape[0]), squares, divides)
        return out

    return fold_rows, fold_columns, fold_tall


def make_loop(axis: int | None, folds: tuple[Callable, Callable, Callable]) -> Callable:
    """The loop that fits a matrix's shape, as somebody who knows the shape would write it. All elements are
    reduced in blocks, and then the results of the blocks: also right for means and norms, as blocks are
        equally long."""
    fold_rows, fold_columns, fold_tall = folds

    def reduce(x):
        if axis == 1:
            return fold_rows(x)
        if axis == 0:
            return fold_columns(x) if x.shape[1] >= WIDE else fold_tall(x)
        return fold_rows(fold_rows(x.reshape(BLOCKS, -1)).reshape(1, -1))[0]

    return reduce


@parallel_loop(fastmath=REORDER)
def find_variances_of_rows(x):
    out = np.empty(x.shape[0], x.dtype)
    count = x.dtype.type(x.shape[1])
    for i in numba.prange(x.shape[0]):
        row = x[i]
        mean, total = row.sum() / count, x.dtype.type(0)
        for j in range(row.size):
            total += (row[j] - mean) ** 2
        out[i] = total / count
    return out


@parallel_loop(fastmath=REORDER)
def add_squared_differences(x, means):
    """Partial sums over blocks of rows of (x - means)^2."""
    parts = np.zeros((BLOCKS, x.shape[1]), x.dtype)
    for block in numba.prange(BLOCKS):
        rows, part = x[block * x.shape[0] // BLOCKS : (block + 1) * x.shape[0] // BLOCKS], parts[block]
        for i in range(rows.shape[0]):
            row = rows[i]
            for j in range(part.size):
                part[j] += (row[j] - means[j]) ** 2
    return parts


def make_variance(axis: int | None, find_means: Callable) -> Callable:
    def find_variance(x):
        if axis == 1:
            return find_variances_of_rows(x)
        if axis == 0:
            return add_squared_differences(x, find_means(x)).sum(axis=0) / x.dtype.type(x.shape[0])
        blocks = x.reshape(BLOCKS, -1)
        means = find_means(blocks)
        return find_variances_of_rows(blocks).mean() + ((means - means.mean()) ** 2).mean()

    return find_variance


@parallel_loop(fastmath=REORDER)
def find_largest_of_rows(x):
    """The maximum first, which is vectorized, then where it is."""
    out = np.empty(x.shape[0], np.int64)
    for i in numba.prange(x.shape[0]):
        row = x[i]
        best, where = row[0], 0
        for j in range(row.size):
            best = row[j] if row[j] > best else best
        while row[where] != best:
            where += 1
        out[i] = where
    return out


@parallel_loop
def find_largest_of_columns(x):
    out = np.zeros(x.shape[1], np.int64)
    blocks = min(BLOCKS, x.shape[1] // WIDE)
    for block in numba.prange(blocks):
        own = slice(block * x.shape[1] // blocks, (block + 1) * x.shape[1] // blocks)
        where, best = out[own], x[0, own].copy()
        for i in range(1, x.shape[0]):
            values = x[i, own]
            for j in range(best.size):
                larger = values[j] > best[j]
                best[j] = values[j] if larger else best[j]
                where[j] = i if larger else where[j]
    return out


@parallel_loop
def find_largest_of_tall(x):
    where = np.empty((BLOCKS, x.shape[1]), np.int64)
    for block in numba.prange(BLOCKS):
        start, stop = block * x.shape[0] // BLOCKS, (block + 1) * x.shape[0] // BLOCKS
        for j in range(x.shape[1]):
            best = start
            for i in range(start + 1, stop):
                if x[i, j] > x[best, j]:
                    best = i
            where[block, j] = best
    out = where[0].copy()
    for block in range(1, BLOCKS):
        for j in range(x.shape[1]):
            if x[where[block, j], j] > x[out[j], j]:
                out[j] = where[block, j]
    return out


def find_largest(x):
    """Of all elements: of the largest in each block the first that is largest."""
    blocks = x.reshape(BLOCKS, -1)
    where = find_largest_of_rows(blocks)
    block = blocks[np.arange(BLOCKS), where].argmax()
    return block * blocks.shape[1] + where[block]


def make_numba(name: str, axis: int | None) -> Callable:
    if name == "var":
        return make_variance(axis, make_loop(0 if axis == 0 else 1, _FOLDS["mean"]))
    if name == "argmax" and axis is None:
        return find_largest
    return make_loop(axis, _FOLDS[name])


_FOLDS = {
    "sum": make_folds(False, False, False), "mean": make_folds(False, False, True),
    "max": make_folds(True, False, False), "norm": make_folds(False, True, False),
    "argmax": (find_largest_of_rows, find_largest_of_columns, find_largest_of_tall),
}


def _make_row(name: str, axis: int | None, shape: str, dtype_name: str) -> Workload:
    high, wide = SHAPES[shape]

    def make_inputs(size):
        rows, columns = (max(4, round(part * math.sqrt(size))) for part in (high, wide))
        return (make_uniform(-1, 2, rows, columns, dtype=DTYPES[dtype_name]),)  # sums do not cancel

    return Workload(f"{name} {shape} axis {axis} {dtype_name}", make_inputs, make_reduction(name, axis),
                    tiny=10_000, numba=make_numba(name, axis), bytes_moved=lambda x: x.nbytes,
                    # NumPy adds the rows of a matrix one after the other
                    tolerance={"f32": 5e-4, "f64": 1e-12}[dtype_name])


ROWS = tuple(
    _make_row(name, axis, shape, dtype_name)
    for shape in SHAPES for name in NAMES for axis in AXES for dtype_name in DTYPES
)
