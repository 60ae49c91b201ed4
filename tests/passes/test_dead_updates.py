"""Updates that are overwritten: which go away, and that the program stays right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import jitcore.numpy as jnp
from jitcore import jit, lax, make_jaxpr
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.passes import run_pipeline

SHAPE = (4, 6)


def write(x, column, values):
    return lax.dynamic_update_slice(x, values[:, None], (0, column))


def read(x, column):
    return lax.dynamic_slice(x, (0, column), (SHAPE[0], 1))[:, 0]


def count_updates(jaxpr) -> int:
    return sum(eqn.primitive.name == "dynamic_update_slice" for eqn in jaxpr.jaxpr.eqns)


def write_twice(x, k, v):
    x = write(x, k, v)
    return write(x, k, read(x, k) / (1.0 + read(x, k - 1)))


def write_thrice(x, k, v):
    x = write(x, k, v)
    x = write(x, k, read(x, k) * read(x, k + 1))
    return write(x, k, read(x, k) + read(x, k - 2))


def return_what_was_read(x, k, v):
    x = write(x, k, v)
    now, before = read(x, k)[:, None], lax.dynamic_slice(x, (0, k - 1), (SHAPE[0], 1))
    return write(x, k, now[:, 0] * 2), now, before, lax.dynamic_slice(x, (0, k), (SHAPE[0], 1))


def write_elsewhere(x, k, v):
    return write(write(x, k, v), k + 1, v)


def read_whole(x, k, v):
    x = write(x, k, v)
    return write(x, k, v * x.sum())


def return_both(x, k, v):
    first = write(x, k, v)
    return first, write(first, k, v * 2)


def read_row(x, k, v):
    x = write(x, k, v)
    return write(x, k, v * lax.dynamic_slice(x, (k, 0), (1, SHAPE[1])).sum())


def hand_on_parts(x, k, v):
    first = write(x, k, v)
    second = write(first, k + 1, read(first, k + 1) + read(first, k))
    return read(second, k), read(second, k + 1), read(second, k + 2)


def hand_on_parts_beside_a_kept_one(x, k, v):
    first = write(x, k, v)
    second = write(first, k + 1, v * 2)
    third = write(first, k, read(second, k) + read(second, k + 1) + read(first, k - 2))
    return third, read(second, k + 2)


@pytest.mark.parametrize(
    ("function", "remaining"),
    [
        (hand_on_parts, 0),
        (hand_on_parts_beside_a_kept_one, 1),
        (write_twice, 1),
        (write_thrice, 1),
        (return_what_was_read, 1),
        (write_elsewhere, 2),
        (read_whole, 2),
        (return_both, 2),
        (read_row, 2),
    ],
)
@given(k=st.integers(-3, 8))
def test_updates_that_remain(function, remaining, k):
    generator = np.random.default_rng(7)
    operands = generator.normal(size=SHAPE), np.int32(k), generator.normal(size=SHAPE[0])
    traced = make_jaxpr(function)(*operands)
    optimized = run_pipeline(traced)
    assert count_updates(optimized) == remaining
    for found, expected in zip(run_jaxpr_numpy(optimized, operands), run_jaxpr_numpy(traced, operands)):
        np.testing.assert_array_equal(found, expected)


def test_known_columns_need_no_comparison():
    def function(x, v):
        x = write(x, 2, v)
        return write(x, 2, read(x, 2) + read(x, 1))

    optimized = run_pipeline(make_jaxpr(function)(jnp.zeros(SHAPE), jnp.ones(SHAPE[0])))
    assert "select_n" not in {eqn.primitive.name for eqn in optimized.jaxpr.eqns}


def test_bodies_of_loops():
    def function(x, v):
        return lax.fori_loop(1, SHAPE[1], lambda k, x: write_twice(x, k, v), x)

    traced = make_jaxpr(function)(jnp.ones(SHAPE), jnp.ones(SHAPE[0]))
    (loop,) = [eqn for eqn in run_pipeline(traced).jaxpr.eqns if eqn.primitive.name in ("while", "scan")]
    body = loop.params["body_jaxpr" if loop.primitive.name == "while" else "jaxpr"]
    assert count_updates(body) == 1


@pytest.mark.parametrize("of_write", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("of_read", [np.uint8, np.int64])
def test_places_may_be_of_different_types(of_write, of_read):
    """The array is longer than small types count."""

    def function(x, k, other):
        written = lax.dynamic_update_slice(x, x[:1] - 5, (k,))
        read = lax.dynamic_slice(written, (other,), (1,))
        return lax.dynamic_update_slice(written, read * 2, (k,))

    x = np.arange(300.0)
    for k, other in ((7, 7), (7, 100), (0, 127)):
        expected = x.copy()
        expected[k] = -5
        expected[k] = 2 * expected[other]
        arguments = x, of_write(k), of_read(other)
        assert count_updates(run_pipeline(make_jaxpr(function)(*arguments))) == 1
        np.testing.assert_array_equal(jit(function)(*arguments), expected)
