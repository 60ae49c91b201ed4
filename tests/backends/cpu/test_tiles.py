"""Kernels in tiles: what lies across the lanes, against NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore.numpy as jnp
from jitcore import jit

DTYPES = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]

SHAPES = [(9, 9), (16, 32), (33, 17), (100, 101), (64, 200), (1, 40), (0, 12), (12, 0), (12, 3000)]


def make_array(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    return values + (1j * rng.integers(0, 100, shape)).astype(dtype) if values.dtype.kind == "c" else values


def runs_in_tiles(function) -> bool:
    return ", tiles " in function.inspect("loop program")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_transpose(shape, dtype):
    x = make_array(shape, dtype)
    f = jit(lambda x: x.T.copy())
    np.testing.assert_array_equal(np.asarray(f(x)), x.T)
    assert runs_in_tiles(f) == (min(shape) > 8)


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("shape", [(10, 20, 30), (16, 3, 33), (2, 40, 17)])
def test_transpose_of_three_axes(shape, axes):
    x = make_array(shape, "float32")
    np.testing.assert_array_equal(np.asarray(jit(lambda x: jnp.transpose(x, axes) + 1)(x)), x.transpose(axes) + 1)


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[st.integers(9, 70)] * 3), st.permutations(range(4)), st.sampled_from(["int8", "float32", "float64"]))
def test_any_transpose(extents, axes, dtype):
    x = make_array((2, *extents), dtype)
    np.testing.assert_array_equal(np.asarray(jit(lambda x: jnp.transpose(x, axes))(x)), x.transpose(axes))


@pytest.mark.parametrize("n", [9, 31, 64, 150])
def test_fused_with_operands_along_both_axes(n):
    x, y, row, column = (make_array(s, "float64", k) for k, s in enumerate([(n, n), (n, n), (n,), (n, 1)]))

    def compute(m, x, y, row, column):
        return m.tanh(x.T / 100) * y + row - column + m.where(x > y.T, x.T, row)

    f = jit(lambda *args: compute(jnp, *args))
    np.testing.assert_allclose(np.asarray(f(x, y, row, column)), compute(np, x, y, row, column), 1e-12, 1e-12)
    assert runs_in_tiles(f)


def test_operands_of_different_widths():
    x, y = make_array((45, 70), "float64"), make_array((70, 45), "int8")
    f = jit(lambda x, y: (x + y.T, y.T > 50))
    for got, expected in zip(f(x, y), (x + y.T, y.T > 50)):
        np.testing.assert_array_equal(np.asarray(got), expected)
    assert runs_in_tiles(f)


def test_special_values_keep_their_bits():
    x = make_array((30, 30), "float32")
    x[3, 4], x[4, 3], x[29, 0], x[0, 29] = np.nan, -0.0, np.inf, -np.inf
    assert np.asarray(jit(lambda x: x.T.copy())(x)).tobytes() == x.T.tobytes()


@pytest.mark.parametrize("n", [20, 50, 131])
def test_elements_are_written_once_where_the_output_takes_over_an_input(n):
    x, y = make_array((n, n), "float32"), make_array((n, n), "float32", 1)
    f = jit(lambda x, y: x + y.T, donate_argnums=0)
    expected = x + y.T
    np.testing.assert_array_equal(np.asarray(f(jnp.asarray(x.copy()), y)), expected)
    assert runs_in_tiles(f) and "out0 overwrites in0" in f.inspect("loop program")


@pytest.mark.parametrize("offset", [1, 5, 15])
def test_arrays_that_begin_anywhere(offset):
    memory = np.arange(offset + 60 * 70, dtype=np.float32)
    x = memory[offset:].reshape(60, 70)
    np.testing.assert_array_equal(np.asarray(jit(lambda x: x.T * 2)(x)), x.T * 2)


def test_sizes_are_arguments():
    f = jit(lambda x: x.T - 0.5)
    for shape in [(20, 30), (500, 301), (13, 14)]:
        x = make_array(shape, "float32")
        np.testing.assert_array_equal(np.asarray(f(x)), x.T - np.float32(0.5))
    assert f.cache_info().compiles <= 1


def test_threads_share_rows():
    x = make_array((1500, 1400), "float32")
    f = jit(lambda x, y: x.T + y)
    y = make_array((1400, 1500), "float32", 1)
    np.testing.assert_array_equal(np.asarray(f(x, y)), x.T + y)
