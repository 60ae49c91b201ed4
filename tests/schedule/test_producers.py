"""Temporaries that are read within ranges only: their kernels compute these ranges, with the same results."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import autojit, jit, lax, numpy as jnp

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 37, 70
X, START = RNG.standard_normal((ROWS, COLUMNS)), RNG.standard_normal((COLUMNS, COLUMNS))
LIMIT = st.integers(-3, COLUMNS + 3)
K = np.arange(COLUMNS)


def places():
    return lax.iota(np.int64, COLUMNS)


def ranges_of_reductions(function) -> list[str]:
    """The range of the loop right around each reduction over rows, in the body of the program's loop."""
    body = function.inspect("loop program").partition("do:")[2]
    return re.findall(rf"for i\d+ in (range\([^)]*\))(?: of \d+)?:\s+reduce i\d+ in range\({ROWS}\)", body)


def product(x, k):
    """A row of x.T @ x, all of it."""
    return (x * lax.dynamic_slice(x, (0 * k, k), (ROWS, 1))).sum(axis=0)


def put_row(out, k, mask, values):
    return out.at[k].set(jnp.where(mask, values, out[k]))


def put_column(out, k, mask, values):
    return out.at[:, k].set(jnp.where(mask, values, out[:, k]))


def loop(step):
    """jit of `out = step(x, k, out, limits)` for each k."""
    return jit(lambda x, out, limits: lax.fori_loop(0, COLUMNS, lambda k, out: step(x, k, out, limits), out))


def check(function, limits, expected_step) -> None:
    expected, limits = START.copy(), np.asarray(limits, np.int64)
    for k in range(COLUMNS):
        expected_step(expected, k, limits)
    np.testing.assert_allclose(function(X, START, limits), expected, rtol=1e-11, atol=1e-11)


# -- what is narrowed -------------------------------------------------------------------------------------
@loop
def triangle(x, k, out, limits):
    values = product(x, k)
    out = put_row(out, k, places() >= k, values)
    return put_column(out, k, places() >= k, values / 3)


def test_one_range_of_all_readers():
    def expected(out, k, limits):
        out[k, k:] = X[:, k] @ X[:, k:]
        out[k:, k] = X[:, k] @ X[:, k:] / 3

    check(triangle, [0], expected)
    (found,) = ranges_of_reductions(triangle)
    assert re.fullmatch(rf"range\(t\d+, {COLUMNS}\)", found), found


@loop
def union(x, k, out, limits):
    values, places_ = product(x, k), places()
    out = put_row(out, k, (places_ >= limits[0]) & (places_ < limits[1]), values)
    return put_column(out, k, (places_ >= limits[2]) & (places_ < limits[3]), values * 2)


@settings(max_examples=12, deadline=None)
@given(st.lists(LIMIT, min_size=4, max_size=4))
def test_union_of_ranges(limits):
    def expected(out, k, limits):
        values = X[:, k] @ X
        row, column = (K >= limits[0]) & (K < limits[1]), (K >= limits[2]) & (K < limits[3])
        out[k] = np.where(row, values, out[k])
        out[:, k] = np.where(column, values * 2, out[:, k])

    check(union, limits, expected)
    (found,) = ranges_of_reductions(union)
    assert re.fullmatch(r"range\(t\d+, t\d+\)", found), found


@loop
def open_end(x, k, out, limits):
    values, places_ = product(x, k), places()
    out = put_row(out, k, (places_ >= limits[0]) & (places_ < limits[1]), values)
    return put_column(out, k, places_ >= limits[2], values)


@settings(max_examples=8, deadline=None)
@given(st.lists(LIMIT, min_size=3, max_size=3))
def test_an_end_that_one_reader_does_not_have(limits):
    def expected(out, k, limits):
        values = X[:, k] @ X
        out[k] = np.where((K >= limits[0]) & (K < limits[1]), values, out[k])
        out[:, k] = np.where(K >= limits[2], values, out[:, k])

    check(open_end, limits, expected)
    (found,) = ranges_of_reductions(open_end)
    assert re.fullmatch(rf"range\(t\d+, {COLUMNS}\)", found), found


def test_a_kernel_waits_for_its_range():
    """The limits are known after the temporary could have been computed."""

    def correlate(x, out):
        for k in range(COLUMNS - 1):
            out[k + 1 :, k] = out[k, k + 1 :] = x[:, k] @ x[:, k + 1 :]
        return out

    run = autojit(correlate)
    np.testing.assert_allclose(run(X, START.copy()), correlate(X, START.copy()), rtol=1e-11, atol=1e-11)
    (text,) = [part for name, part in run.inspect().items() if name == "loop program"]
    body = text.partition("do:")[2]
    assert re.search(rf"for i\d+ in range\(t\d+, {COLUMNS}\) of {COLUMNS}:\s+reduce", body), body


def test_producers_of_producers():
    """A temporary that is computed in part needs another one in part only."""

    @loop
    def run(x, k, out, limits):
        first = product(x, k)
        second = (x[: ROWS // 2] * first).sum(axis=0)
        return put_row(out, k, places() < k, second)

    def expected(out, k, limits):
        out[k, :k] = (X[: ROWS // 2] * (X[:, k] @ X)).sum(axis=0)[:k]

    check(run, [0], expected)
    body = run.inspect("loop program").partition("do:")[2]
    assert len(re.findall(rf"for i\d+ in range\(0, t\d+\) of {COLUMNS}:\s+reduce", body)) == 2, body


def test_an_element_that_is_read_besides():
    """What a reader reads at one place, whatever its range, is computed too."""

    @loop
    def run(x, k, out, limits):
        first = product(x, k)
        return put_row(out, k, places() >= k, first * first[3])

    def expected(out, k, limits):
        first = X[:, k] @ X
        out[k, k:] = (first * first[3])[k:]

    check(run, [0], expected)
    assert ranges_of_reductions(run) == [f"range({COLUMNS})"]


@loop
def window(x, k, out, limits):
    """A matrix of which a window is read, across."""
    table = (x[:20, :, None] * x[10:30, None, :] * (k + 1)).sum(axis=0)
    r, c = places()[:, None], places()[None, :]
    return jnp.where((r < limits[0]) & (c >= limits[1]) & (c < k), table.T, out)


@settings(max_examples=4, deadline=None)
@given(st.lists(LIMIT, min_size=2, max_size=2))
def test_windows_of_matrices(limits):
    def expected(out, k, limits):
        r, c = K[:, None], K[None, :]
        out[:] = np.where(
            (r < limits[0]) & (c >= limits[1]) & (c < k), (X[:20].T @ X[10:30]).T * (k + 1), out
        )

    check(window, limits, expected)
    body = window.inspect("loop program").partition("do:")[2]
    inside = rf"for i\d+ in range\(t\d+, t\d+\) of {COLUMNS}:.*?for i\d+ in range\(0, t\d+\) of {COLUMNS}"
    assert re.search(rf"{inside}:\s+reduce", body, re.DOTALL), body


# -- what is not ------------------------------------------------------------------------------------------
def read_elsewhere(x, k, out, limits):
    return put_row(out, k, places() >= k, product(x, k)[::-1])


def read_whole(x, k, out, limits):
    values = product(x, k)
    out = put_row(out, k, places() >= k, values)
    return put_column(out, k, places() < COLUMNS, values)


def limit_of_the_result(x, k, out, limits):
    values = product(x, k)
    return put_row(out, k, places() >= (values > 0).sum(), values)


def in_numpy(step, out, k):
    values = X[:, k] @ X
    if step is read_elsewhere:
        out[k, k:] = values[::-1][k:]
    elif step is read_whole:
        out[k, k:] = values[k:]
        out[:, k] = values
    else:
        low = (values > 0).sum()
        out[k, low:] = values[low:]


@pytest.mark.parametrize("step", [read_elsewhere, read_whole, limit_of_the_result])
def test_kernels_that_stay_whole(step):
    run = loop(step)
    check(run, [0], lambda out, k, limits: in_numpy(step, out, k))
    assert all(found == f"range({COLUMNS})" for found in ranges_of_reductions(run))


@pytest.mark.machine_code
# -- columns of a product ---------------------------------------------------------------------------------
@pytest.mark.parametrize("columns", [9, 64, 71, 300])
def test_products_sweep_many_columns(columns):
    """Where a column begins is found ahead: it takes no registers from the sums of neighbours."""

    @jit
    def run(x, k):
        return (x * lax.dynamic_slice(x, (0 * k, k), (ROWS, 1))).sum(axis=0)

    x = RNG.standard_normal((ROWS, columns))
    np.testing.assert_allclose(run(x, np.int64(3)), x[:, 3] @ x, rtol=1e-11, atol=1e-11)
    widths = set(map(int, re.findall(r"<(\d+) x double>", run.inspect("llvm"))))
    assert max(widths) == 4 * min(widths), widths
