"""Random numbers: each library draws from its own generator, so that moments are compared, not numbers."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from benchmarks.numba_loops import parallel_loop
from benchmarks.workload import DTYPES, Workload

NORMALS, POINTS = 1_000_000, 10_000_000


def make_normals(dtype: str) -> Callable:
    def make(api):
        return lambda key: api.random.normal(key, (NORMALS,), dtype)

    return make


def make_estimate(api) -> Callable:
    """Pi from the share of random points of a square that lie in a circle."""
    jnp = api.numpy

    def estimate(key):
        x, y = api.random.uniform(key, (2, POINTS))
        return 4.0 * jnp.mean(x * x + y * y <= 1.0)

    return estimate


@parallel_loop
def draw_normals(like):
    out = np.empty(NORMALS, like.dtype)
    for i in numba.prange(NORMALS):
        out[i] = np.random.standard_normal()
    return out


@parallel_loop
def estimate_pi():
    inside = 0
    for _ in numba.prange(POINTS):
        x, y = np.random.random(), np.random.random()
        inside += x * x + y * y <= 1.0
    return 4.0 * inside / POINTS


def estimate_numpy(key):
    x, y = np.random.Generator(np.random.SFC64(0)).random((2, POINTS), np.float32)
    return 4.0 * np.count_nonzero(x * x + y * y <= 1.0) / POINTS


def find_moments(numbers) -> np.ndarray:
    """Mean, deviation, mean of the fourth powers, share below -1."""
    x = np.asarray(numbers, np.float64)
    return np.array([x.mean(), x.std(), (x**4).mean(), (x < -1).mean()])


def _make_key(size: int) -> tuple:
    return (np.array([0, 7], np.uint32),)


def _make_normal_row(name: str, dtype: str) -> Workload:
    like = np.empty(0, dtype)
    return Workload(
        f"random normal 1e6 {name}", _make_key, make_normals(dtype), size=1, tiny=1,
        numpy=lambda key: np.random.Generator(np.random.SFC64(0)).standard_normal(NORMALS, dtype),
        numba=lambda key: draw_normals(like),
        reference=lambda key: np.random.default_rng(0).standard_normal(NORMALS),
        summarize=find_moments, tolerance=5e-3,
    )


ROWS = (
    *(_make_normal_row(name, dtype) for name, dtype in DTYPES.items()),
    Workload("pi from 1e7 random points f32", _make_key, make_estimate, size=1, tiny=1, numpy=estimate_numpy,
             numba=lambda key: estimate_pi(), reference=lambda key: np.pi, tolerance=1e-3),
)
