"""Cumulative sums and products, and differences: of a vector, and along either axis of a matrix."""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.inputs import make_uniform
from benchmarks.numba_loops import parallel_loop
from benchmarks.workload import DTYPES, Workload
from benchmarks.workloads.elementwise import count_in_and_out

NAMES = ("cumsum", "cumprod", "diff")
#: What a row's name says of the shape -> (dimensions, axis).
SHAPES = {"1e6": (1, 0), "1000x1000 axis 0": (2, 0), "1000x1000 axis 1": (2, 1)}
BLOCKS = 8


def make_scans(multiplies: bool) -> tuple:
    """Loops for a vector (parts, then the parts' offsets), columns and rows."""

    @parallel_loop
    def scan_vector(x):
        out = np.empty_like(x)
        ends = np.empty(BLOCKS, x.dtype)
        for block in numba.prange(BLOCKS):
            own = slice(block * x.size // BLOCKS, (block + 1) * x.size // BLOCKS)
            values, into, total = x[own], out[own], x.dtype.type(1 if multiplies else 0)
            for i in range(values.size):
                total = total * values[i] if multiplies else total + values[i]
                into[i] = total
            ends[block] = total
        for block in range(1, BLOCKS):
            ends[block] = ends[block] * ends[block - 1] if multiplies else ends[block] + ends[block - 1]
        for block in numba.prange(1, BLOCKS):
            into, offset = out[block * x.size // BLOCKS : (block + 1) * x.size // BLOCKS], ends[block - 1]
            for i in range(into.size):
                into[i] = into[i] * offset if multiplies else into[i] + offset
        return out

    @parallel_loop
    def scan_columns(x):
        out = np.empty_like(x)
        for block in numba.prange(BLOCKS):
            own = slice(block * x.shape[1] // BLOCKS, (block + 1) * x.shape[1] // BLOCKS)
            out[0, own] = x[0, own]
            for i in range(1, x.shape[0]):
                into, last, values = out[i, own], out[i - 1, own], x[i, own]
                for j in range(into.size):
                    into[j] = last[j] * values[j] if multiplies else last[j] + values[j]
        return out

    @parallel_loop
    def scan_rows(x):
        out = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            total = x.dtype.type(1 if multiplies else 0)
            for j in range(x.shape[1]):
                total = total * x[i, j] if multiplies else total + x[i, j]
                out[i, j] = total
        return out

    return scan_vector, scan_columns, scan_rows


@parallel_loop
def diff_vector(x):
    out = np.empty(x.size - 1, x.dtype)
    for i in numba.prange(x.size - 1):
        out[i] = x[i + 1] - x[i]
    return out


@parallel_loop
def diff_columns(x):
    out = np.empty((x.shape[0] - 1, x.shape[1]), x.dtype)
    for i in numba.prange(x.shape[0] - 1):
        for j in range(x.shape[1]):
            out[i, j] = x[i + 1, j] - x[i, j]
    return out


@parallel_loop
def diff_rows(x):
    out = np.empty((x.shape[0], x.shape[1] - 1), x.dtype)
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1] - 1):
            out[i, j] = x[i, j + 1] - x[i, j]
    return out


_LOOPS = {
    "cumsum": make_scans(False), "cumprod": make_scans(True), "diff": (diff_vector, diff_columns, diff_rows),
}


def _make_row(name: str, shape: str, dtype_name: str) -> Workload:
    dimensions, axis = SHAPES[shape]

    def make_inputs(size):
        extents = (size,) if dimensions == 1 else (round(size**0.5),) * 2
        wide = 1e-3 if name == "cumprod" else 1.0  # products of a million factors stay finite
        return (make_uniform(1 - wide, 1 + wide, *extents, dtype=DTYPES[dtype_name]),)

    return Workload(
        f"{name} {shape} {dtype_name}", make_inputs,
        lambda api: lambda x: getattr(api.numpy, name)(x, axis=axis),
        numba=_LOOPS[name][list(SHAPES).index(shape)], bytes_moved=count_in_and_out,
        # rounding errors of a million steps; NumPy adds and multiplies in order too
        tolerance=None if name == "diff" else {"f32": 1e-3, "f64": 1e-10}[dtype_name],
    )


ROWS = tuple(_make_row(name, shape, dtype) for name in NAMES for shape in SHAPES for dtype in DTYPES)
