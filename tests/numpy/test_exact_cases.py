"""Values where formulas overflow or arrays are cut: integer powers, rounding, roots, counts; ranges as axes."""

from __future__ import annotations

from functools import partial

import mpmath
import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, vmap
from tests.jax_answers import jax


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_integer_powers_wrap_around(dtype):
    rng = np.random.default_rng(0)
    base = rng.integers(-6 if np.dtype(dtype).kind == "i" else 0, 8, 300).astype(dtype)
    largest = min(np.iinfo(dtype).max, 2**62)
    exponent = np.minimum(2 ** rng.integers(0, 61, 300) + rng.integers(0, 3, 300), largest).astype(dtype)
    expected = np.power(base, exponent)
    for function in (jnp.power, jit(jnp.power), jit(vmap(jnp.power))):
        found = np.asarray(function(base, exponent))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
    assert jnp.int32(0) ** jnp.int32(64) == 0 == jnp.int32(2) ** jnp.int32(100)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_rounding_to_decimals_that_the_dtype_does_not_hold(dtype):
    x = np.array([1.5, -2.25, 3e4, 0.0, -0.0, np.inf, np.nan]).astype(dtype)
    for decimals in (39, 60, 310, 400):
        for function in (jnp.round, jit(jnp.round, static_argnums=1)):
            np.testing.assert_allclose(function(x, decimals), x, rtol=1e-15)
            zeros = np.where(np.isfinite(x), 0, x)
            np.testing.assert_array_equal(np.asarray(function(x, -decimals)).real, zeros.real)
    assert jnp.round(np.float64(1e300), 20) == 1e300 and jnp.round(np.float32(3e4), -3) == 3e4


@pytest.mark.parametrize("p", [[0, 1, -1], [1, -3, 2], [0, 0, 1, -3, 2, 0, 0], [0, 0, 0], [2, 0], [0, 0, 3]], ids=repr)
def test_roots_with_leading_zeros(p):
    p = np.array(p, np.float32)
    found = np.asarray(jit(partial(jnp.roots, strip_zeros=False))(p))
    expected = np.asarray(jax.numpy.roots(p, strip_zeros=False))
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_parts_of_unique_of_a_size(size):
    for x in ([3, 2, 1, 1, 2], [1.0, np.nan, np.nan, 0.5]):
        parts = dict(return_counts=True, return_index=True, return_inverse=True, size=size)
        x = np.array(x, np.float32)
        for function in (jnp.unique, jit(partial(jnp.unique, **parts))):
            found = function(x) if function is not jnp.unique else function(x, **parts)
            for ours, theirs in zip(found, jax.numpy.unique(x, **parts), strict=True):
                np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_ranges_are_axes():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jnp.roll(x, (1, 1), axis=range(2)), np.roll(x, (1, 1), (0, 1)))
    np.testing.assert_array_equal(jnp.roll(x, range(1, 3), (0, 1)), np.roll(x, (1, 2), (0, 1)))
    traced = jit(lambda x, i, j: jnp.roll(x, (i, j), (0, 1)))
    np.testing.assert_array_equal(traced(x, 1, -2), np.roll(x, (1, -2), (0, 1)))  # of any shifts
    assert jnp.sum(x, range(2)) == jnp.sum(x, axis=range(2)) == x.sum() and jnp.max(x, range(2)) == 5
    assert jnp.expand_dims(x, range(2)).shape == (1, 1, 2, 3) and jnp.flip(x, range(2))[0, 0] == 5
    np.testing.assert_allclose(jnp.fft.fftn(x, axes=range(2)), np.fft.fftn(x), atol=1e-12)
    np.testing.assert_allclose(jnp.gradient(x, axis=range(2))[1], 1)


@pytest.mark.parametrize("kind", [np.int8, np.dtype("int8"), "int8", jnp.int8, np.int8(3)])
def test_limits_of_integers(kind):
    assert (jnp.iinfo(kind).min, jnp.iinfo(kind).max, jnp.iinfo(kind).bits) == (-128, 127, 8)


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arcsinh", "arccosh"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_inverse_functions_of_the_largest_complex_numbers(name, dtype):
    """Whose products of roots are beyond all numbers."""
    large = float(np.finfo(dtype).max)
    parts = [-large, -large / 3, -1e20, -2.5, 1.5, large / 3, large]
    x = np.array([complex(re, im) for re in parts for im in parts], dtype)
    found = np.asarray(jit(getattr(jnp, name))(x))
    expected = [complex(getattr(mpmath, name.replace("arc", "a"))(mpmath.mpc(complex(value)))) for value in x]
    np.testing.assert_allclose(found, np.array(expected), rtol=10 * np.finfo(dtype).eps)
