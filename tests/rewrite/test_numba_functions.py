"""Functions that Numba has made, called in rewritten functions."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba import cuda

import jitcore
import jitcore.numpy as jnp


def damp(x, k):
    if x > 0:
        return x * math.exp(-k * x)
    return 0.5 * x


MADE = {"njit": numba.njit(damp), "device": cuda.jit(device=True)(damp)}
X = np.linspace(-1, 1, 5)
EXPECTED = np.array([damp(x, 2.0) for x in X])


@pytest.mark.parametrize("name", MADE)
def test_the_python_of_a_compiled_function_is_traced(name):
    made = MADE[name]
    values = jitcore.jit(jitcore.vmap(lambda x: made(x, 2.0)), rewrite=True)
    np.testing.assert_allclose(values(X), EXPECTED, rtol=1e-6)
    slope = jitcore.jit(jitcore.grad(lambda x: made(x, k=2.0)), rewrite=True)
    assert float(slope(-1.0)) == 0.5
    np.testing.assert_allclose(slope(0.5), math.exp(-1.0) * (1 - 2 * 0.5), atol=1e-7)


def test_on_numbers_it_runs_as_it_always_did():
    @numba.njit
    def count(n):
        return n + 1

    assert int(jitcore.jit(lambda x: x + count(x), rewrite=True)(1)) == 3 and not count.signatures
    assert int(jitcore.jit(lambda x: x + count(3), rewrite=True)(1)) == 5 and len(count.signatures) == 1
    device = MADE["device"]  # which only kernels may call
    assert float(jitcore.jit(lambda x: x * device(-1.0, 2.0), rewrite=True)(2.0)) == -1.0


def test_loops_and_arrays():
    @numba.njit
    def total(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * x[i]
        return s

    assert float(jitcore.jit(lambda x: total(x) + 1, rewrite=True)(jnp.arange(4.0))) == 15.0
