"""Sums of squared distances from the mean: which rows are divided into blocks, and results against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import grad, jit, make_jaxpr
from jitcore.config import config
from jitcore.core.check import check_jaxpr
from jitcore.passes import list_passes, run_pipeline
from jitcore.passes.tuning import Tuning
from tests.loop_program import show_loop_program

BLOCK = 16  # float64 numbers in a block of these tests


@pytest.fixture
def short_blocks(monkeypatch):
    tuning = Tuning(min_row_bytes=4 * BLOCK * 8, block_bytes=BLOCK * 8)
    monkeypatch.setattr("jitcore.passes.PIPELINE", list_passes(tuning))
    with config.override(cache_dir=""):
        jitcore.clear_caches()
        yield
    jitcore.clear_caches()


def optimize(function, *arguments):
    closed = run_pipeline(make_jaxpr(function)(*arguments))
    check_jaxpr(closed)
    return closed


def is_divided(function, x) -> bool:
    return any("reshape" == eqn.primitive.name for eqn in optimize(function, x).jaxpr.eqns)


def make_rows(*shape, dtype=np.float64):
    return (np.random.default_rng(0).standard_normal(shape) * 3 + 100).astype(dtype)


def scale(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True))


def scale_traced(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True))


def root_of_squares(x):
    distance = x - x.mean()
    return (distance * distance).sum() ** 0.5


# As jitcore and as NumPy have it.
FUNCTIONS = {
    "var": (lambda x: x.var(-1), lambda x: x.var(-1)),
    "of all": (lambda x: x.var(), lambda x: x.var()),
    "std": (lambda x: x.std(-1, ddof=1, keepdims=True), lambda x: x.std(-1, ddof=1, keepdims=True)),
    "with mean": (lambda x: x.mean(-1) / x.var(-1), lambda x: x.mean(-1) / x.var(-1)),
    "by hand": (root_of_squares, root_of_squares),
    "scaled": (scale_traced, scale),
    "of a function": (lambda x: jnp.exp(x / 100).var(-1), lambda x: np.exp(x / 100).var(-1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(128,), (131,), (5, 160), (3, 2 * BLOCK * 4 + 7), (2, 3, 259)])
def test_results(short_blocks, name, dtype, shape):
    function, reference = FUNCTIONS[name]
    x = make_rows(*shape, dtype=dtype)
    assert is_divided(function, x)
    expected = reference(x.astype(np.float64))
    tolerance = 2e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(np.asarray(jit(function)(x)), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("function", "shape"), [
    (lambda x: x.var(-1), (100, 63)),  # rows that are short
    (lambda x: x.var(0), (128, 128)),  # columns
    (lambda x: x.var(1), (3, 128, 5)),
    (lambda x: ((x - x.max()) ** 2).sum(), (128,)),
    (lambda x: ((x - x.sum() / 100) ** 2).sum(), (128,)),
    (lambda x: ((x - x[::-1].mean()) ** 2).sum(), (128,)),
    (lambda x: ((x - x.mean()) ** 3).sum(), (128,)),
    (lambda x: ((x - x.mean(0)) ** 2).sum(-1), (128, 128)),
    (lambda x: ((x - x.mean(-1)) ** 2).sum(-1), (128, 128)),  # the means of other rows
    (lambda x: x.astype(jnp.int32).sum() * x, (128,)),
])
def test_what_stays(short_blocks, function, shape):
    x = make_rows(*shape)
    assert not is_divided(function, x)


def test_all_axes_of_several(short_blocks):
    x = make_rows(7, 11, 13)
    for axes in (None, (1, 2), (0, 1, 2)):
        assert is_divided(lambda x, axes=axes: x.var(axes), x)
        np.testing.assert_allclose(np.asarray(jit(lambda x, axes=axes: x.var(axes))(x)), x.var(axes), rtol=1e-12)


def test_values_without_number(short_blocks):
    for bad in (np.nan, np.inf, -np.inf):
        x = make_rows(3, 200)
        x[1, 77] = bad
        found = np.asarray(jit(lambda x: x.var(-1))(x))
        assert np.isnan(found).tolist() == [False, True, False]


def test_large_means_do_not_cancel(short_blocks):
    x = make_rows(1000) * 1e-3 + 1e6
    np.testing.assert_allclose(np.asarray(jit(lambda x: x.var())(x)), x.var(), rtol=1e-9)


def test_derivatives(short_blocks):
    x = make_rows(200)
    found = np.asarray(jit(grad(lambda x: x.var()))(x))
    np.testing.assert_allclose(found, 2 * (x - x.mean()) / x.size, rtol=1e-9, atol=1e-12)


@pytest.mark.machine_code
def test_the_same_bits_for_any_number_of_threads():
    x = np.random.default_rng(1).random((3, 200_001), np.float32)
    options = ({"parallel": False}, {"num_threads": 2}, {"num_threads": 3})
    results = [np.asarray(jit(lambda x: x.var(-1), compiler_options=chosen)(x)) for chosen in options]
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def test_one_reading():
    """Sums and squares of blocks are one kernel."""
    for count in (1_000_000, 1 << 20):
        text = show_loop_program(lambda x: x.var(), np.ones(count, np.float32))
        assert text.count("in range(4096)") == 2 and text.count("in0[4096*") == 2
        assert text.count("in range(1000000)") == text.count("of 32768") == 0
