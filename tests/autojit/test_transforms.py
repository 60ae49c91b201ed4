"""An autojitted function inside jit, grad, vmap and other autojitted functions."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp


@jitcore.autojit(strict=True)
def energy(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            total += np.sin(x[i]) ** 2
    return total


@jitcore.autojit
def writes(x):
    x[0] = 1.0
    return x.sum()


X = np.array([0.5, -1.0, 2.0, 0.1])


def test_inside_jit():
    assert isinstance(jitcore.jit(energy)(X), jitcore.Array)
    np.testing.assert_allclose(jitcore.jit(energy)(X), energy(X), rtol=1e-12)
    np.testing.assert_allclose(jitcore.jit(lambda x: energy(2 * x) + 1)(X), energy(2 * X) + 1, rtol=1e-12)


def test_inside_grad():
    expected = np.where(X > 0, 2 * np.sin(X) * np.cos(X), 0)
    np.testing.assert_allclose(jitcore.grad(energy)(X), expected, rtol=1e-10)


def test_inside_vmap():
    batch = np.stack([X, 2 * X, -X])
    np.testing.assert_allclose(jitcore.vmap(energy)(batch), [energy(row) for row in batch], rtol=1e-12)


def test_writing_to_a_tracer_is_an_error():
    with pytest.raises(Exception, match="writes to an array that is traced"):
        jitcore.jit(writes)(X)
    copying = jitcore.autojit(lambda x: writes(x.copy()), strict=True)
    assert copying(X) == jitcore.jit(lambda x: copying(x))(X)


def test_autojitted_functions_call_each_other():
    @jitcore.autojit(strict=True)
    def outer(x):
        y = x * 2
        writes(y)
        return energy(y) + y[0]

    expected = X * 2
    expected[0] = 1
    np.testing.assert_allclose(outer(X), energy(expected) + 1, rtol=1e-12)


def test_jitted_function_inside():
    @jitcore.jit
    def inner(x):
        return jnp.sin(x) + 1

    @jitcore.autojit(strict=True)
    def outer(x):
        return np.asarray(inner(x)) * 2

    np.testing.assert_allclose(outer(X), (np.sin(X) + 1) * 2, rtol=1e-12)


def test_numba_function_inside():
    numba = pytest.importorskip("numba")

    @numba.njit
    def inner(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i]
        return total

    outer = jitcore.autojit(lambda x: inner(x * 2) + 1, strict=True)
    np.testing.assert_allclose(outer(X), X.sum() * 2 + 1)


def test_errors_inside_jit_are_raised_when_the_program_runs():
    @jitcore.autojit
    def pick(x, i):
        if i > 100:
            raise ValueError("too large")
        return x[i]

    compiled = jitcore.jit(lambda x, i: pick(x, i))
    assert compiled(X, np.int64(2)) == X[2] and compiled(X, np.int64(-1)) == X[-1]
    with pytest.raises(Exception, match="index|out of bounds"):
        compiled(X, np.int64(4))
    with pytest.raises(Exception, match="too large"):
        compiled(X, np.int64(101))
