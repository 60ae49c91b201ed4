"""The tutorial's SELU: many elements (memory and exp), and ten (what a call costs)."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import make_normal

ALPHA, LAMBDA = 1.67, 1.05


def make_selu(api, alpha: float = ALPHA):
    jnp = api.numpy

    def selu(x):
        return LAMBDA * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    return selu


def make_selu_loop():
    import numba

    scale, alpha, zero = np.float32(LAMBDA), np.float32(ALPHA), np.float32(0)

    @numba.njit(parallel=True)
    def selu(x):
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            value = x[i]
            out[i] = scale * (value if value > zero else alpha * math.exp(value) - alpha)
        return out

    return selu


def _make_inputs(size: int):
    return (make_normal(size),)


ROWS = (
    Workload("selu 1e6 f32", _make_inputs, make_selu, numba=make_selu_loop,
             numexpr=f"{LAMBDA} * where(a > 0, a, {ALPHA} * exp(a) - {ALPHA})"),
    Workload("selu on 10 floats, from Array", _make_inputs, make_selu, size=10, quick_size=10,
             numba=make_selu_loop),
    Workload("selu on 10 floats, from ndarray", _make_inputs, make_selu, size=10, quick_size=10,
             numba=make_selu_loop, from_ndarrays=True),
)  # fmt: skip
