"""Functions of one number, 1e6 of them in float32 and float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import make_uniform


class Function(NamedTuple):
    """Its arguments (low, high); (api, x) -> value; its formula for loops; numexpr's text, if it has it."""

    low: float
    high: float
    of_array: Callable
    make_of_number: Callable[[type], Callable]
    numexpr: str | None


def _make_power(real: type):
    exponent = real(1.7)  # of the type of the elements: a Python float would widen float32
    return lambda x: x**exponent


def _make_sigmoid(real: type):
    one = real(1)
    return lambda x: one / (one + math.exp(-x))


FUNCTIONS = {
    "tanh": Function(-5, 5, lambda api, x: api.numpy.tanh(x), lambda real: lambda x: math.tanh(x), "tanh(a)"),
    "sin": Function(-10, 10, lambda api, x: api.numpy.sin(x), lambda real: lambda x: math.sin(x), "sin(a)"),
    "log1p": Function(0, 10, lambda api, x: api.numpy.log1p(x), lambda real: lambda x: math.log1p(x),
                      "log1p(a)"),
    "erf": Function(-4, 4, lambda api, x: api.scipy.special.erf(x), lambda real: lambda x: math.erf(x), None),
    "pow": Function(0, 10, lambda api, x: x**1.7, _make_power, "a ** 1.7"),
    "sigmoid": Function(-10, 10, lambda api, x: api.scipy.special.expit(x), _make_sigmoid,
                        "1 / (1 + exp(-a))"),
}  # fmt: skip
_TOLERANCES = {"float32": 1e-6, "float64": 1e-14}


def _make_loop(of_number: Callable):
    import numba

    compiled = numba.njit(of_number)

    @numba.njit(parallel=True)
    def run(x):
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            out[i] = compiled(x[i])
        return out

    return run


def _make_row(name: str, dtype: str) -> Workload:
    function = FUNCTIONS[name]
    return Workload(
        f"{name} 1e6 {dtype.replace('float', 'f')}",
        lambda size: (make_uniform(function.low, function.high, size, dtype=dtype),),
        lambda api: lambda x: function.of_array(api, x),
        numba=lambda: _make_loop(function.make_of_number(np.dtype(dtype).type)),
        numexpr=function.numexpr,
        tolerance=_TOLERANCES[dtype],
    )  # fmt: skip


ROWS = tuple(_make_row(name, dtype) for dtype in _TOLERANCES for name in FUNCTIONS)
