"""Where updates (`x.at[i].set(v)`) are made: in the memory of what they update, if nothing reads that later."""

import re

import numpy as np
import pytest

from jitcore import jit, lax, numpy as jnp
from tests.loop_program import show_loop_program

X = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
ROWS = np.array([3, 3, 40])


def into_zeros(x, rows):
    return jnp.zeros_like(x).at[rows].add(x[rows]) * 2


def chain(x, rows):
    y = jnp.sin(x).at[rows].set(1.0)
    return jnp.sum(y.at[rows[0]].add(5.0).at[1:3].multiply(3.0), axis=0)


def read_before(x, rows):
    y = jnp.sin(x)
    z = y[::2] * 2
    return y.at[rows].set(0.0)[rows] + z[:3]


def read_after(x, rows):
    y = jnp.sin(x)
    z = y.at[rows].set(0.0)
    return z[rows] + y[rows]


def covering(x, rows):
    return jnp.sum(lax.dynamic_update_slice(jnp.cos(x), x[1:] - x[:-1], (0, 0)))


@pytest.mark.parametrize("function, sweeps", [(into_zeros, 2), (chain, None), (read_before, None),
                                              (read_after, None), (covering, None)])
def test_updates_of_temporaries(function, sweeps):
    compiled = jit(function)
    np.testing.assert_allclose(compiled(X, ROWS), function(jnp.asarray(X), ROWS), rtol=1e-6, atol=1e-6)
    if sweeps is not None:  # zeros, the scatter, and the result: no copy between them
        assert compiled.inspect("loop program").count("in range(200)") == sweeps


def test_columns_of_indices_are_read_where_they_are():
    @jit
    def function(x, rows, columns, values):
        return x.at[rows, columns].set(values)

    rng = np.random.default_rng(0)
    x, values = np.zeros((9, 11)), rng.random(40)
    rows, columns = rng.integers(-9, 9, 40), rng.integers(-11, 11, 40)
    expected = x.copy()
    expected[rows, columns] = values
    np.testing.assert_array_equal(function(x, rows, columns, values), expected)
    text = function.inspect("loop program")
    assert "temp" not in text and text.count("for ") == 2


def test_updates_where_a_mask_holds_run_over_its_range():
    @jit
    def function(x, places, values, n):
        held = (lax.iota(np.int64, 300) < n) & (values > 0.5)
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        return lax.scatter(x, jnp.where(held, places, 50)[:, None], values, numbers)

    rng = np.random.default_rng(1)
    places, values = rng.permutation(300) % 50, rng.random(300)
    found = function(np.zeros(50), places, values, np.int64(100))
    expected = np.zeros(50)
    for k in range(100):
        if values[k] > 0.5:
            expected[places[k]] = values[k]
    np.testing.assert_array_equal(found, expected)
    assert "range(0, " in function.inspect("loop program")


@pytest.mark.parametrize(
    ("size", "update", "in_lanes"),
    [
        (300_000, lambda x, i, v: x.at[i].add(v), False),
        (300_000, lambda x, i, v: x.at[i].set(v, unique_indices=True), False),
        (300_000, lambda x, i, v: x.at[i].add(1), True),  # no values to list
        (300_000, lambda x, i, v: x.at[i].add(jnp.exp(v)), True),
        (60_000, lambda x, i, v: x.at[i].set(v), True),  # the core's own cache holds them
        (3_000_000, lambda x, i, v: x.at[i].set(v), True),  # no cache does
    ],
)
def test_updates_that_wait_for_their_elements_go_one_by_one(size, update, in_lanes):
    places = np.arange(0, size, 7)
    text = show_loop_program(update, np.zeros(size), places, np.ones(places.size))
    (kernel,) = re.findall(r"kernel([^\n]*):\n[^\n]*range\(%d\)" % places.size, text)
    assert ("vector" in kernel) == in_lanes
