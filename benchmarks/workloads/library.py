"""What every library hands to LAPACK or to an FFT: decompositions of 300x300, transforms."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.numba_loops import loop
from benchmarks.workload import DTYPES, Workload


class Decomposition(NamedTuple):
    """(api, arguments) -> result; the same for Numba; result -> what does not depend on signs; arguments."""

    of_api: Callable
    numba: Callable
    summarize: Callable | None
    make_inputs: Callable


def make_definite(side: int, dtype: str) -> tuple:
    """A symmetric positive definite matrix with condition number below 10."""
    x = make_normal(side, side, dtype=dtype)
    return (x @ x.T / x.dtype.type(side) + np.eye(side, dtype=dtype),)


def make_system(side: int, dtype: str) -> tuple:
    return *make_definite(side, dtype), make_normal(side, dtype=dtype, seed=1)


def make_square(side: int, dtype: str) -> tuple:
    return (make_normal(side, side, dtype=dtype),)


def rebuild_symmetric(result) -> tuple:
    values, vectors = map(np.asarray, result)
    return values, (vectors * values) @ vectors.T


def rebuild_svd(result) -> tuple:
    u, values, vh = map(np.asarray, result)
    return values, (u * values) @ vh


def rebuild_qr(result) -> tuple:
    q, r = map(np.asarray, result)
    return q @ r, q.T @ q, np.tril(r, -1)


DECOMPOSITIONS = {
    "cholesky": Decomposition(lambda api: api.numpy.linalg.cholesky, loop(lambda x: np.linalg.cholesky(x)),
                              None, make_definite),
    "solve": Decomposition(lambda api: api.numpy.linalg.solve, loop(lambda x, y: np.linalg.solve(x, y)),
                           None, make_system),
    "eigh": Decomposition(lambda api: api.numpy.linalg.eigh, loop(lambda x: np.linalg.eigh(x)),
                          rebuild_symmetric, make_definite),
    "svd": Decomposition(lambda api: lambda x: api.numpy.linalg.svd(x, full_matrices=False),
                         loop(lambda x: np.linalg.svd(x, full_matrices=False)), rebuild_svd, make_square),
    "qr": Decomposition(lambda api: api.numpy.linalg.qr, loop(lambda x: np.linalg.qr(x)), rebuild_qr,
                        make_square),
}


def _make_row(name: str, dtype_name: str) -> Workload:
    row = DECOMPOSITIONS[name]
    return Workload(
        f"{name} 300x300 {dtype_name}", lambda side: row.make_inputs(side, DTYPES[dtype_name]), row.of_api,
        size=300, tiny=6, numba=row.numba, summarize=row.summarize, same_library=True,
        tolerance={"f32": 1e-4, "f64": 1e-11}[dtype_name],
    )


def _make_transform_row(name: str, title: str, tiny: int, dtype_name: str) -> Workload:
    """`name` of NumPy's module fft; SciPy's is faster than NumPy's, and takes threads."""
    dtype, dimensions = {"c64": "complex64", "c128": "complex128"}[dtype_name], 2 if name == "fft2" else 1

    def make_inputs(size):
        shape = (size,) * dimensions
        parts = make_normal(*shape, dtype="float64"), make_normal(*shape, dtype="float64", seed=1)
        return ((parts[0] + 1j * parts[1]).astype(dtype),)

    def run_scipy(x):
        return getattr(importlib.import_module("scipy.fft"), name)(x, workers=dimensions)

    return Workload(f"{name} {title} {dtype_name}", make_inputs, lambda api: getattr(api.numpy.fft, name),
                    size={1: 2**19, 2: 512}[dimensions], tiny=tiny, numpy=run_scipy,
                    same_library=True)


ROWS = (
    *(_make_row(name, dtype) for name in DECOMPOSITIONS for dtype in DTYPES),
    *(_make_transform_row("fft", "2^19", 64, dtype) for dtype in ("c64", "c128")),
    *(_make_transform_row("fft2", "512x512", 8, dtype) for dtype in ("c64", "c128")),
)
