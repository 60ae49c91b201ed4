"""Sweeps along short rows, one row in each lane, against NumPy in float64."""

import numpy as np
import pytest
from scipy import special

import jitcore
import jitcore.nn as nn
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.mapping import memory_order
from jitcore.scipy.special import logsumexp

RNG = np.random.default_rng(3)
TOLERANCE = {"float32": 1e-5, "float64": 1e-13}


def goes_in_lanes(function) -> bool:
    """Or would, if registers were wide enough on this machine."""
    is_wide = host.native_vector_bytes() >= memory_order.MIN_VECTOR_BYTES
    return not is_wide or "rows in lanes" in function.inspect("loop program")


def standardize(x):
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1)


PROGRAMS = {
    "sum": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "max": (lambda x: x.max(1), lambda x: x.max(1)),
    "argmin": (lambda x: x.argmin(1), lambda x: x.argmin(1)),
    "var": (lambda x: x.var(1), lambda x: x.var(1)),
    "logsumexp": (lambda x: logsumexp(x, axis=1), lambda x: special.logsumexp(x, axis=1)),
    "softmax": (lambda x: nn.softmax(x, axis=1), lambda x: special.softmax(x, axis=1)),
    "log_softmax": (lambda x: nn.log_softmax(x, axis=1), lambda x: special.log_softmax(x, axis=1)),
    "standardize": (
        standardize,
        lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1),
    ),
    "several": (
        lambda x: (jnp.exp(x), jnp.exp(x).sum(1), x.max(1)),
        lambda x: (np.exp(x), np.exp(x).sum(1), x.max(1)),
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("rows, length", [(64, 9), (1000, 10), (997, 16), (130, 17), (65, 31)])
def test_values(name, dtype, rows, length):
    x = RNG.standard_normal((rows, length)).astype(dtype)
    program, reference = PROGRAMS[name]
    run = jit(lambda x: program(x))
    found, expected = run(x), reference(x.astype(np.float64))
    for value, wanted in zip(*(pair if isinstance(pair, tuple) else (pair,) for pair in (found, expected))):
        np.testing.assert_allclose(value, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    if length <= 10 and host.native_vector_bytes() == 64:
        assert goes_in_lanes(run)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32"])
def test_places_of_equal_extremes_and_nan(dtype):
    x = RNG.integers(0, 4, (500, 12)).astype(dtype)
    if dtype == "float32":
        x[7, 3] = x[7, 9] = x[100, 0] = np.nan
    place = jit(lambda x: x.argmax(axis=1))
    np.testing.assert_array_equal(place(x), x.argmax(axis=1))
    assert goes_in_lanes(place)


def test_nothing_outside_of_the_arrays_is_written():
    x = RNG.standard_normal((100, 11)).astype(np.float32)
    double = jit(lambda x, y: (x / x.sum(1, keepdims=True), y + 1))
    y = np.zeros(3, np.float32)
    for _ in range(3):
        found, rest = double(x, y)
        np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-4)
        np.testing.assert_array_equal(rest, [1, 1, 1])


def test_rows_of_a_larger_array():
    x = RNG.standard_normal((300, 40)).astype(np.float32)
    part = jit(lambda x: x[:, 5:17].sum(1) + x[:, 3])
    np.testing.assert_allclose(part(x), x[:, 5:17].sum(1) + x[:, 3], atol=1e-5)
    assert goes_in_lanes(part)
    backwards = jit(lambda x: x[::-1, :10].sum(1))
    np.testing.assert_allclose(backwards(x), x[::-1, :10].sum(1), atol=1e-5)


def test_a_weight_for_each_place_of_a_row():
    x, w = RNG.standard_normal((300, 12)).astype(np.float32), RNG.standard_normal(12).astype(np.float32)
    weighted = jit(lambda x, w: jnp.abs(x * w).sum(1))
    np.testing.assert_allclose(weighted(x, w), np.abs(x * w).sum(1), rtol=1e-5)
    assert goes_in_lanes(weighted)


def test_elements_chosen_by_an_index_of_the_row():
    x, label = RNG.standard_normal((300, 12)), RNG.integers(0, 12, 300)
    loss = jit(lambda x, k: logsumexp(x, axis=1) - jnp.take_along_axis(x, k[:, None], axis=1)[:, 0])
    expected = special.logsumexp(x, axis=1) - x[np.arange(300), label]
    np.testing.assert_allclose(loss(x, label), expected, rtol=1e-12, atol=1e-12)


def test_donated_rows_are_overwritten_after_they_were_read():
    x = RNG.standard_normal((200, 10))
    expected = x / np.sqrt((x * x).sum(1, keepdims=True))
    run = jit(lambda x: x / jnp.sqrt((x * x).sum(1, keepdims=True)), donate_argnums=0)
    np.testing.assert_allclose(run(jnp.asarray(x)), expected, rtol=1e-12)


def test_rows_that_a_loop_carries():
    x = RNG.uniform(1, 2, (200, 10))
    step = jit(lambda x: lax.fori_loop(0, 5, lambda i, x: x / x.sum(1, keepdims=True) + 1, x))
    expected = x
    for _ in range(5):
        expected = expected / expected.sum(1, keepdims=True) + 1
    np.testing.assert_allclose(step(x), expected, rtol=1e-12)


@pytest.mark.parametrize("why, program", [
    ("few rows", lambda x: x[:20, :10].sum(1)),
    ("long rows", lambda x: x.sum(1)),
    ("columns", lambda x: x[:, :10].sum(0)),
    ("ranges", lambda x: jnp.where(jnp.arange(10) < 7, x[:, :10], 0).sum(1)),
])
def test_other_sweeps_stay(why, program):
    x = RNG.standard_normal((300, 200))
    run = jit(lambda x: program(x))
    with_numpy = {"few rows": x[:20, :10].sum(1), "long rows": x.sum(1), "columns": x[:, :10].sum(0),
                  "ranges": x[:, :7].sum(1)}
    np.testing.assert_allclose(run(x), with_numpy[why], rtol=1e-12, atol=1e-12)
    assert "rows in lanes" not in run.inspect("loop program")


def test_new_lengths_do_not_compile():
    jitcore.clear_caches()
    total = jit(lambda x: jnp.cos(x).sum(1))
    for rows, length in ((200, 9), (300, 12), (77, 15)):
        total(np.ones((rows, length), np.float32))
    assert total.cache_info().compiles == 1
