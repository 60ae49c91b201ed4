"""Indices from memory: histogram, segment_sum, gather and scatter-add."""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.inputs import make_integers, make_normal, make_permutation, make_uniform
from benchmarks.numba_loops import parallel_loop
from benchmarks.workload import DTYPES, Workload

BINS = 1000
PARTS = 16


@parallel_loop
def count_bins(x):
    counts = np.zeros((PARTS, BINS), np.int64)
    scale = x.dtype.type(BINS)
    for part in numba.prange(PARTS):
        for i in range(part * x.size // PARTS, (part + 1) * x.size // PARTS):
            counts[part, min(int(x[i] * scale), BINS - 1)] += 1
    return counts.sum(axis=0).astype(x.dtype)


@parallel_loop
def add_segments(x, segments):
    sums = np.zeros((PARTS, BINS), x.dtype)
    for part in numba.prange(PARTS):
        for i in range(part * x.size // PARTS, (part + 1) * x.size // PARTS):
            sums[part, segments[i]] += x[i]
    return sums.sum(axis=0)


@parallel_loop
def take(x, indices):
    out = np.empty_like(x)
    for i in numba.prange(x.size):
        out[i] = x[indices[i]]
    return out


@parallel_loop
def add_permuted(x, values, indices):
    out = x.copy()
    for i in numba.prange(x.size):  # a permutation names every element once
        out[indices[i]] += values[i]
    return out


def add_once(x, values, indices):
    out = x.copy()
    out[indices] += values  # every index occurs once
    return out


def _make_rows(name: str, dtype: str) -> tuple[Workload, ...]:
    def make_sorted_out(size):
        return make_uniform(0, 1, size, dtype=dtype), make_integers(BINS, size)

    def make_permuted(size):
        return make_normal(size, dtype=dtype), make_normal(size, dtype=dtype, seed=1), make_permutation(size)

    return (
        Workload(f"histogram 1e6 into {BINS} {name}", lambda size: make_sorted_out(size)[:1],
                 lambda api: lambda x: api.numpy.histogram(x, bins=BINS, range=(0.0, 1.0))[0],
                 numpy=lambda x: np.histogram(x, bins=BINS, range=(0.0, 1.0))[0],
                 tolerance=5e-3, mismatches=0.1, numba=count_bins, bytes_moved=lambda x: x.nbytes),
        Workload(f"segment_sum 1e6 into {BINS} {name}", make_sorted_out,
                 lambda api: lambda x, segments: api.ops.segment_sum(x, segments, num_segments=BINS),
                 numpy=lambda x, segments: np.bincount(segments, x, BINS), numba=add_segments),
        Workload(f"scatter-add 1e6 into {BINS} {name}", make_sorted_out,
                 lambda api: lambda x, segments: api.numpy.zeros(BINS, x.dtype).at[segments].add(x),
                 numpy=lambda x, segments: np.bincount(segments, x, BINS), numba=add_segments),
        Workload(f"scatter-add 1e6 permuted {name}", make_permuted,
                 lambda api: lambda x, values, indices: x.at[indices].add(values, unique_indices=True),
                 numpy=add_once, numba=add_permuted),
        Workload(f"gather 1e6 permuted {name}", lambda size: make_permuted(size)[::2],
                 lambda api: lambda x, indices: x[indices], numba=take),
    )


ROWS = tuple(row for name, dtype in DTYPES.items() for row in _make_rows(name, dtype))
