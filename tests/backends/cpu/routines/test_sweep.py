"""Products of a matrix with vectors on both sides in one sweep, against NumPy in float64: sizes, threads."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import jit
from jitcore.backends.cpu.machine import tuning
from jitcore.backends.cpu.routines.product import two_sided_routine
from jitcore.backends.cpu.runtime import threads

RNG = np.random.default_rng(23)
FLOATS = ["float32", "float64"]


def pair(a, x, y):
    return a @ x, y @ a


def chain(a, x, y):
    return a @ x, (a @ x) @ a


def draw(rows, columns, dtype) -> list[np.ndarray]:
    return [RNG.standard_normal(shape).astype(dtype) for shape in ((rows, columns), (columns,), (rows,))]


def check(function, arguments) -> None:
    """Error bound of sums of products in any order; a chain's second sum multiplies the first one's error."""
    found = jit(function)(*arguments)
    a, x, y = (value.astype(np.float64) for value in arguments)
    eps, (rows, columns) = np.finfo(arguments[0].dtype).eps, a.shape
    sizes = function(abs(a), abs(x), abs(y))
    growth = rows + columns + 4
    for one, exact, size in zip(found, function(a, x, y), sizes, strict=True):
        assert one.dtype == arguments[0].dtype and one.shape == exact.shape
        assert np.all(np.abs(np.asarray(one, np.float64) - exact) <= growth * eps * size)


@pytest.fixture
def no_limits(monkeypatch):
    """Every pair of products is made in one sweep, however small."""
    monkeypatch.setattr("jitcore.passes.matrix_vector_fusion.is_worth_sweep", lambda shape, dtype: 0 not in shape)


@pytest.mark.parametrize("function", (pair, chain))
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(512, 300), (1000, 1000), (1023, 257), (2049, 130), (5000, 65)])
def test_sizes(function, dtype, shape):
    arguments = draw(*shape, dtype)
    check(function, arguments)
    compiled = jit(function)
    compiled(*arguments)
    assert f"{function.__name__}_sweep_f" in compiled.inspect("loop program")


@pytest.mark.usefixtures("no_limits")
@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 150), columns=st.integers(1, 70), dtype=st.sampled_from(FLOATS),
       function=st.sampled_from([pair, chain]))
def test_any_sizes(rows, columns, dtype, function):
    check(function, draw(rows, columns, dtype))


@pytest.mark.parametrize("function", (pair, chain))
def test_bits_do_not_depend_on_threads(function):
    arguments, compiled = draw(3001, 517, "float64"), jit(function)
    before, results = threads.get_num_threads(), []
    try:
        for count in (1, 2, 7):
            threads.set_num_threads(count)
            results.append([np.asarray(value) for value in compiled(*arguments)])
    finally:
        threads.set_num_threads(before)
    for others in results[1:]:
        for first, other in zip(results[0], others):
            np.testing.assert_array_equal(first.view(np.uint64), other.view(np.uint64))


@pytest.mark.parametrize("function", (pair, chain))
def test_special_values_stay_in_their_rows_and_columns(function):
    a, x, y = draw(700, 301, "float64")
    a[3, 300], a[699, 7] = np.nan, np.inf
    for one, expected in zip(jit(function)(a, x, y), function(a, x, y)):
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(expected))


def test_stretches_cover_all_rows():
    for rows in (1, 31, 512, 513, 1023, 1024, 1025, 1029, 5500, 100_001):
        length, count = two_sided_routine.cut_rows(rows, tuning.Product())
        assert (count - 1) * length < rows <= count * length and count <= 32 and length % 4 == 0
