"""Stores that fill registers together, lanes of several values in turns, against NumPy."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax

RNG = np.random.default_rng(4)
DTYPES = ["float32", "float64", "int8", "uint16", "int64", "bool", "float16"]


def draw(dtype, *shape) -> np.ndarray:
    return (RNG.standard_normal(shape) * 50 > 0 if dtype == "bool" else RNG.standard_normal(shape) * 50).astype(dtype)


def count_loops(function) -> int:
    return function.inspect("loop program").count("for ")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("size", [1, 7, 64, 1000, 40_003])
def test_columns_beside_each_other(size, columns, dtype):
    parts = [draw(dtype, size) for _ in range(columns)]
    stack = jit(lambda *parts: jnp.stack(parts, axis=-1))
    np.testing.assert_array_equal(stack(*parts), np.stack(parts, axis=-1))
    assert count_loops(stack) <= 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("times", [2, 3, 6, 8])
def test_repeated_elements(times, dtype):
    x = draw(dtype, 130, 17)
    run = jit(lambda x: (jnp.repeat(x, times, axis=1), jnp.repeat(x, times)))
    for found, axis in zip(run(x), (1, None)):
        np.testing.assert_array_equal(found, np.repeat(x, times, axis))


def test_work_that_columns_share_is_done_once():
    r, t = draw("float64", 5000), draw("float64", 5000)
    to_plane = jit(lambda r, t: jnp.stack([jnp.exp(-r * r) * jnp.cos(t), jnp.exp(-r * r) * jnp.sin(t)], axis=-1))
    expected = np.stack([np.exp(-r * r) * np.cos(t), np.exp(-r * r) * np.sin(t)], axis=-1)
    np.testing.assert_allclose(to_plane(r, t), expected, rtol=1e-12, atol=1e-300)
    assert to_plane.inspect("loop program").count("exp(") == 1


def test_cross_products():
    x, y = draw("float32", 1001, 3), draw("float32", 1001, 3)
    np.testing.assert_allclose(jit(jnp.cross)(x, y), np.cross(x, y), rtol=1e-4, atol=1e-3)


def test_columns_of_matrices():
    x, y = draw("float32", 30, 41), draw("float32", 30, 41)
    run = jit(lambda x, y: jnp.stack([x.T, y.T + 1], axis=-1))
    np.testing.assert_array_equal(run(x, y), np.stack([x.T, y.T + np.float32(1)], axis=-1))


def test_columns_computed_from_the_array_that_they_replace():
    x = draw("float64", 500, 2)
    swap = jit(lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.stack([x[:, 1] + 1, x[:, 0] - 1], axis=-1), x))
    expected = x
    for _ in range(3):
        expected = np.stack([expected[:, 1] + 1, expected[:, 0] - 1], axis=-1)
    np.testing.assert_array_equal(swap(x), expected)
    once = jit(lambda x: jnp.stack([x[:, 1], x[:, 0]], axis=-1), donate_argnums=0)
    np.testing.assert_array_equal(once(jnp.asarray(x)), x[:, ::-1])


def test_columns_in_a_wider_array():
    x, base = draw("float32", 700), draw("float32", 700, 20)
    run = jit(lambda base, x: base.at[:, 9:11].set(jnp.stack([x, 2 * x], axis=-1)))
    expected = base.copy()
    expected[:, 9:11] = np.stack([x, 2 * x], axis=-1)
    np.testing.assert_array_equal(run(base, x), expected)


def test_nothing_beside_the_array_is_written():
    x = draw("float32", 37)
    run = jit(lambda x: (jnp.stack([x, -x, x + 1], axis=-1), jnp.zeros(64, np.float32)))
    for _ in range(3):
        found, zeros = run(x)
        np.testing.assert_array_equal(found, np.stack([x, -x, x + np.float32(1)], axis=-1))
        np.testing.assert_array_equal(zeros, np.zeros(64))


def test_complex_columns():
    x = (draw("float64", 300) + 1j * draw("float64", 300)).astype(np.complex64)
    np.testing.assert_array_equal(jit(lambda x: jnp.stack([x, x.conj()], -1))(x), np.stack([x, x.conj()], -1))
