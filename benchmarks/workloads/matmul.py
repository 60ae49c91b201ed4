"""A layer of a neural network: matrix product, bias, tanh."""

from __future__ import annotations

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import make_normal, make_square


def make_layer(api):
    jnp = api.numpy
    return lambda x, weights, bias: jnp.tanh(x @ weights + bias)


def make_layer_loop():
    import numba

    return numba.njit(lambda x, weights, bias: np.tanh(x @ weights + bias))


def _make_inputs(size: int):
    x, weights = make_square(size), make_square(size, seed=1) / np.float32(size**0.25)
    return x, weights.astype(np.float32), make_normal(x.shape[1], seed=2)


ROWS = (Workload("tanh(x @ w + b) 1000x1000 f32", _make_inputs, make_layer, numba=make_layer_loop),)
