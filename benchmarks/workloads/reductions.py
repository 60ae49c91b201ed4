"""Sum, mean and maximum of a matrix: of all elements, of columns, of rows."""

from __future__ import annotations

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import make_square

NAMES = ("sum", "mean", "max")


def _make_program(name: str, axis: int | None):
    def make(api):
        reduce = getattr(api.numpy, name)
        return lambda x: reduce(x, axis=axis)

    return make


def _make_sum_loop(axis: int | None):
    """Sums by hand; of columns row by row, as memory lies."""
    import numba

    if axis is None:

        @numba.njit(parallel=True, fastmath=True)
        def reduce(x):
            total = np.float32(0)
            for i in numba.prange(x.shape[0]):
                part = np.float32(0)
                for j in range(x.shape[1]):
                    part += x[i, j]
                total += part
            return total
    elif axis == 0:

        @numba.njit(fastmath=True)
        def reduce(x):
            total = np.zeros(x.shape[1], x.dtype)
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    total[j] += x[i, j]
            return total
    else:

        @numba.njit(parallel=True, fastmath=True)
        def reduce(x):
            totals = np.empty(x.shape[0], x.dtype)
            for i in numba.prange(x.shape[0]):
                total = np.float32(0)
                for j in range(x.shape[1]):
                    total += x[i, j]
                totals[i] = total
            return totals

    return reduce


def _make_loop(name: str, axis: int | None):
    """A loop for sums, which means divide; for the maximum `ndarray.max`, which Numba compiles."""
    import numba

    if name == "max":
        return numba.njit(lambda x: x.max()) if axis is None else None
    sum_loop = _make_sum_loop(axis)
    if name == "sum":
        return sum_loop

    @numba.njit
    def mean(x):
        total = sum_loop(x)
        return total / np.float32(x.size // np.asarray(total).size)

    return mean


def _make_row(name: str, axis: int | None) -> Workload:
    has_loop = name != "max" or axis is None
    return Workload(f"{name} 1000x1000 f32, axis {axis}", lambda size: (make_square(size),),
                    _make_program(name, axis), numba=(lambda: _make_loop(name, axis)) if has_loop else None,
                    tolerance=1e-5)  # fmt: skip


ROWS = tuple(_make_row(name, axis) for name in NAMES for axis in (None, 0, 1))
