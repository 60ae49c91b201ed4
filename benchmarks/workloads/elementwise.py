"""Functions of each element: SELU, and one function at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from benchmarks.inputs import make_normal, make_uniform
from benchmarks.numba_loops import parallel_loop
from benchmarks.programs import ALPHA, LAMBDA, make_selu
from benchmarks.workload import DTYPES, Workload


def count_in_and_out(x: np.ndarray) -> int:
    """Bytes of reading x and of writing as much."""
    return 2 * x.nbytes


@parallel_loop
def run_selu(x):
    real = x.dtype.type
    scale, alpha, zero = real(LAMBDA), real(ALPHA), real(0)
    out = np.empty_like(x)
    for i in numba.prange(x.size):
        value = x[i]
        out[i] = scale * (value if value > zero else alpha * math.exp(value) - alpha)
    return out


def _make_selu_row(name: str, dtype: str) -> Workload:
    return Workload(
        f"selu 1e6 {name}", lambda size: (make_normal(size, dtype=dtype),), make_selu, numba=run_selu,
        numexpr=f"{LAMBDA} * where(a > 0, a, {ALPHA} * exp(a) - {ALPHA})", bytes_moved=count_in_and_out,
    )


class Function(NamedTuple):
    """Its arguments (low, high); (api, x) -> value; its formula for loops; numexpr's text, if it has it."""

    low: float
    high: float
    of_array: Callable
    of_number: Callable
    numexpr: str | None


FUNCTIONS = {
    "tanh": Function(-5, 5, lambda api, x: api.numpy.tanh(x), lambda x, real: math.tanh(x), "tanh(a)"),
    "sin": Function(-10, 10, lambda api, x: api.numpy.sin(x), lambda x, real: math.sin(x), "sin(a)"),
    "log1p(abs)": Function(-10, 10, lambda api, x: api.numpy.log1p(abs(x)),
                           lambda x, real: math.log1p(abs(x)), "log1p(abs(a))"),
    "erf": Function(-4, 4, lambda api, x: api.scipy.special.erf(x), lambda x, real: math.erf(x), None),
    "abs(x)**1.7": Function(-10, 10, lambda api, x: abs(x) ** 1.7, lambda x, real: abs(x) ** real(1.7),
                            "abs(a) ** 1.7"),
    "sigmoid": Function(-10, 10, lambda api, x: api.scipy.special.expit(x),
                        lambda x, real: real(1) / (real(1) + math.exp(-x)), "1 / (1 + exp(-a))"),
}


def _make_loop(of_number: Callable) -> Callable:
    compiled = numba.njit(of_number)

    @numba.njit(parallel=True, error_model="numpy")  # not kept on disk: `compiled` has no name there
    def run(x):
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            out[i] = compiled(x[i], x.dtype.type)
        return out

    return run


def _make_row(name: str, dtype_name: str) -> Workload:
    function, dtype = FUNCTIONS[name], DTYPES[dtype_name]
    return Workload(
        f"{name} 1e6 {dtype_name}",
        lambda size: (make_uniform(function.low, function.high, size, dtype=dtype),),
        lambda api: lambda x: function.of_array(api, x),
        numba=_LOOPS[name],
        numexpr=function.numexpr,
        bytes_moved=count_in_and_out,
    )


_LOOPS = {name: _make_loop(function.of_number) for name, function in FUNCTIONS.items()}

ROWS = (
    *(_make_selu_row(name, dtype) for name, dtype in DTYPES.items()),
    *(_make_row(name, dtype_name) for name in FUNCTIONS for dtype_name in DTYPES),
)
