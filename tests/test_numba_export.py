"""Jitted functions called from Numba's nopython code."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp

numba = pytest.importorskip("numba")
TABLE = np.arange(10.0)


@jitcore.jit
def scale_sorted(x, factor):
    return jnp.sort(x) * factor + TABLE, x.sum()


def test_a_jitted_function_is_called_from_nopython_code():
    exported = scale_sorted.as_njit(np.ones(10), np.float64(1))

    @numba.njit
    def use(x):
        total = 0.0
        for i in range(3):
            values, s = exported(x * i, 3.0)
            total += values.sum() + s
        return total

    x = np.random.default_rng(0).standard_normal(20)[::2]
    expected = sum((np.sort(x * i) * 3 + TABLE).sum() + (x * i).sum() for i in range(3))
    np.testing.assert_allclose(use(x), expected, rtol=1e-12)
    np.testing.assert_allclose(exported(x, 2.0)[0], np.sort(x) * 2 + TABLE, rtol=1e-12)


def test_single_results_loops_and_dtypes():
    @jitcore.jit
    def iterate(x):
        return jitcore.lax.fori_loop(0, 50, lambda i, v: jnp.cos(v) @ jnp.ones((4, 4), np.float32), x)

    x = np.linspace(0, 1, 4, dtype=np.float32)
    found = iterate.as_njit(x)(x)
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_array_equal(found, iterate(x))
    total = jitcore.jit(lambda x: x.sum()).as_njit(jitcore.ShapeDtypeStruct((3,), np.int32))
    assert total(np.arange(3, dtype=np.int32)) == 3


def test_what_it_refuses():
    exported = scale_sorted.as_njit(np.ones(10), np.float64(1))
    with pytest.raises(ValueError, match=r"compiled for arguments of shape \(10,\)"):
        exported(np.ones(9), 1.0)
    with pytest.raises(TypeError):
        exported(np.ones(10, np.float32), 1.0)
    calls_python = jitcore.jit(
        lambda x: jitcore.pure_callback(np.sin, jitcore.ShapeDtypeStruct((3,), x.dtype), x)
    )
    with pytest.raises(NotImplementedError, match="calls Python"):
        calls_python.as_njit(np.ones(3))
