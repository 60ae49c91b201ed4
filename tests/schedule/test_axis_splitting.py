"""Loops over flattened arrays, and few rows side by side: values against NumPy, and the shape of the loops."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore.numpy as jnp
from jitcore import autojit, jit, lax

RNG = np.random.default_rng(5)


def draw(shape, dtype="float64") -> np.ndarray:
    values = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.standard_normal(shape)
    return values.astype(dtype)


def text_of(function) -> str:
    return function.inspect("loop program")


def body_of(function) -> str:
    """The text of all kernels, without the line of the program's buffers."""
    return text_of(function).split("native:", 1)[1]


# -- axes ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
def test_a_flattened_transpose_has_no_divisions(dtype):
    x = (draw((10, 20, 30)) * 10).astype(dtype)
    y = (draw(6000) * 10).astype(dtype)
    f = jit(lambda x, y: x.transpose(1, 0, 2).reshape(6000) * y)
    np.testing.assert_allclose(f(x, y), x.transpose(1, 0, 2).reshape(6000) * y, rtol=1e-6)
    assert "%" not in body_of(f) and "//" not in body_of(f)
    assert "vector" in body_of(f)


def test_a_repeated_value_is_computed_once_for_all_its_copies():
    x, y = draw((30, 1)), draw(3000)
    f = jit(lambda x, y: jnp.broadcast_to(jnp.exp(x), (30, 100)).reshape(3000) + y)
    np.testing.assert_allclose(
        f(x, y), np.repeat(np.exp(x), 100, axis=1).reshape(3000) + y, rtol=1e-13, atol=1e-13
    )
    assert "%" not in body_of(f) and body_of(f).count("for ") == 2


def test_reductions_over_a_flattened_axis():
    x = draw((8, 12, 10))
    f = jit(lambda x, y: (x.transpose(2, 0, 1).reshape(10, 96) * y).sum(axis=1))
    y = draw((10, 96))
    np.testing.assert_allclose(f(x, y), (x.transpose(2, 0, 1).reshape(10, 96) * y).sum(axis=1), rtol=1e-13)
    assert "%" not in body_of(f)


def test_positions_of_extremes_count_along_the_whole_axis():
    x = draw((8, 12, 10))
    f = jit(lambda x: jnp.argmax(x.transpose(2, 1, 0).reshape(10, 96), axis=1))
    np.testing.assert_array_equal(f(x), np.argmax(x.transpose(2, 1, 0).reshape(10, 96), axis=1))
    g = jit(lambda x: jnp.cumsum(x.transpose(2, 1, 0).reshape(960)))
    np.testing.assert_allclose(g(x), np.cumsum(x.transpose(2, 1, 0).reshape(960)), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=4), st.randoms(use_true_random=False), st.booleans())
def test_any_reshape_of_any_transpose(shape, random, shifted):
    order = random.sample(range(len(shape)), len(shape))
    total = math.prod(shape)
    divisor = random.choice([n for n in range(1, total + 1) if total % n == 0])
    start = random.randrange(total) if shifted else 0
    x, y = draw(shape), draw((divisor, total // divisor))

    def compute(np, x, y):
        flat = np.exp(x).transpose(order).reshape(total)
        folded = (flat.reshape(divisor, total // divisor) + y).T
        return (
            folded.reshape(total)[start:] * 2,
            folded.sum(axis=0),
            flat[start:] - y.reshape(total)[: total - start],
        )

    for got, expected in zip(jit(lambda x, y: compute(jnp, x, y))(x, y), compute(np, x, y)):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


# -- rows side by side --------------------------------------------------------------------------------------
DTYPES = ["float32", "float64", "complex64", "complex128", "int32"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "steps"), [(1, 1), (2, 2), (3, 3), (4, 4), (8, 8), (8, 2), (2, 8), (9, 3), (3, 9)]
)
@pytest.mark.parametrize("wide_left", [False, True])
def test_a_small_matrix_times_a_wide_one(dtype, rows, steps, wide_left):
    small, wide = (draw((rows, steps)) * 9).astype(dtype), (draw((steps, 203)) * 9).astype(dtype)
    if np.dtype(dtype).kind == "c":
        small, wide = draw((rows, steps), dtype), draw((steps, 203), dtype)
    if wide_left:
        f = jit(lambda a, b: ((b * 3).T @ a.T).T + 1)
    else:
        f = jit(lambda a, b: a @ (b * 3) + 1)
    tolerance = 100 * np.finfo(dtype).eps if np.dtype(dtype).kind != "i" else 0
    np.testing.assert_allclose(f(small, wide), small @ (wide * 3) + 1, rtol=tolerance, atol=100 * tolerance)


def test_each_column_of_the_wide_matrix_is_computed_once():
    a, b = draw((4, 4), "complex128"), draw((4, 500))
    f = jit(lambda a, b: a @ jnp.exp(1j * b))
    np.testing.assert_allclose(f(a, b), a @ np.exp(1j * b), rtol=1e-13)
    assert body_of(f).count("kernel") == 1
    assert body_of(f).count("= exp(") == 4  # one for each row of b, and four rows of the result


def test_products_in_a_chain_are_stored():
    a, b = draw((2, 2), "complex128"), draw((2, 64), "complex128")

    def steps(x):
        for _ in range(12):
            x = (a @ (2 * x).T.reshape(2, 64)) / 3
        return x

    np.testing.assert_allclose(jit(steps)(b), steps(b), rtol=1e-10)
    f = jit(steps)
    f(b)
    assert len(text_of(f)) < 60000  # not each element by all that it is made of


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_gate_on_one_axis_of_a_state(axis):
    gate, state = draw((2, 2), "complex128"), draw((2,) * 10, "complex128")
    f = jit(lambda g, s: jnp.moveaxis(jnp.tensordot(g, s, axes=((1,), (axis,))), 0, axis))
    expected = np.moveaxis(np.tensordot(gate, state, axes=((1,), (axis,))), 0, axis)
    np.testing.assert_allclose(f(gate, state), expected, rtol=1e-12)


def test_rows_that_replace_what_they_read():
    x = draw((4, 300))

    @autojit(strict=True)
    def mix(x, a):
        x[:] = x[::-1] * a + x.sum(axis=0)
        return x

    expected = x[::-1] * 0.5 + x.sum(axis=0)
    np.testing.assert_allclose(mix(x, 0.5), expected, rtol=1e-13)


def test_loops_over_rows_under_a_mask():
    x = draw((3, 100))
    f = jit(lambda x: jnp.where(jnp.arange(3)[:, None] > jnp.arange(100) % 3, jnp.tanh(x[1]) * x, 0))
    expected = np.where(np.arange(3)[:, None] > np.arange(100) % 3, np.tanh(x[1]) * x, 0)
    np.testing.assert_allclose(f(x), expected, rtol=1e-13)


# -- a program made of both -----------------------------------------------------------------------------------
def fft(radix, count, x):
    """Stockham's algorithm: each step multiplies by roots of unity and by a small matrix."""
    total, y = radix**count, x
    rows, columns = np.mgrid[0:radix, 0:radix]
    matrix = np.exp(-2.0j * np.pi * rows * columns / radix)
    for step in range(count):
        done, left = radix**step, radix ** (count - step - 1)
        angle = np.arange(radix)[:, None] * np.arange(done) / radix ** (step + 1)
        roots = np.repeat(np.exp(-2.0j * np.pi * angle).reshape(radix, done, 1), left, axis=2)
        moved = np.transpose(np.reshape(y, (done, radix, left)), (1, 0, 2))
        twisted = moved.reshape(total) * roots.reshape(total)
        y = np.reshape(matrix @ twisted.reshape(radix, total // radix), total)
    return y


@pytest.mark.parametrize(("radix", "count"), [(2, 1), (2, 5), (2, 11), (3, 5), (4, 5), (5, 3), (8, 3)])
def test_fft(radix, count):
    x = draw(radix**count, "complex128")
    f = autojit(fft, strict=True)
    np.testing.assert_allclose(f(radix, count, x), np.fft.fft(x), atol=1e-12 * radix**count)
    assert " call " not in text_of(f)
    if radix**count > 1000:
        assert "%" not in body_of(f)


def test_contractions_of_every_layout():
    shapes = {"i": 3, "k": 4, "j": 50, "b": 5}
    for left, right in itertools.product(itertools.permutations("bik"), itertools.permutations("bkj")):
        x, y = (draw([shapes[name] for name in names], "complex128") for names in (left, right))
        numbers = [((names.index("k"),), (names.index("b"),)) for names in (left, right)]
        f = jit(lambda x, y, numbers=tuple(zip(*numbers)): lax.dot_general(x, jnp.conj(y), numbers))
        expected = np.einsum(f"{''.join(left)},{''.join(right)}->bij", x, y.conj())
        np.testing.assert_allclose(f(x, y), expected, rtol=1e-12)
