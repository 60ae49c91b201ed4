"""Rows that are read for each of many others: copies that lie the other way, and the same results."""

import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.schedule.tuning import Tuning
from tests.combinations import pairwise

RNG = np.random.default_rng(0)


def draw(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def count_copies(function) -> int:
    """Temporaries of two dimensions."""
    return len(re.findall(r"temp f\d+\[\w+,\w+\]", function.inspect("loop program")))


def square_distances(x, y):
    return ((x[:, None] - y[None]) ** 2).sum(-1)


@pytest.mark.parametrize(
    "sizes, length, dtype",
    pairwise([(200, 70), (16, 16), (300, 17)], [3, 5, 8, 9, 10, 16, 33, 64], [np.float32, np.float64]),
)
def test_distances(sizes, length, dtype):
    rows, others = sizes
    x, y = draw(others, length, dtype=dtype), draw(rows, length, dtype=dtype)
    function = jit(square_distances)
    expected = square_distances(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(function(x, y), expected, rtol=1e-5 if dtype is np.float32 else 1e-13)
    assert count_copies(function) == (
        y.nbytes <= Tuning.max_copy_bytes and rows * others * length >= Tuning.min_reads)


@pytest.mark.parametrize("function, count", [
    (lambda x, y: jnp.exp(-square_distances(x, y)), 1),
    (lambda x, y: jnp.abs(x[:, None] - y[None]).max(-1), 1),
    (lambda x, y: (x[:, None] * y[None]).sum(-1) + y[:, 3], 1),
    (lambda x, y: jnp.where(x[:, None] > 2 * y[None], 1, 0).sum(-1), 1),
    (lambda x, y: (x[:, None] - y[None, :, ::-1]).max(-1), 0),  # from the last element on
    (lambda x, y: (x[:, None, 2:9] - y[None, :, 3:10]).max(-1), 1),
    (lambda x, y: square_distances(x, y).min(1), None),
    (lambda x, y: square_distances(x, y).argmin(1), None),
    (lambda x, y: lax.fori_loop(0, 3, lambda i, y: y + square_distances(x, y).sum(0)[:, None] * 1e-3, y), None),
    (lambda x, y: y.at[:].set(square_distances(x, y)[:, :12].T @ x), None),
])
def test_other_programs(function, count):
    x, y = draw(60, 12), draw(90, 12)
    if function.__code__.co_names and "at" in function.__code__.co_names:
        y = y[:12]
    compiled = jit(function)
    result = compiled(x, y)
    np.testing.assert_allclose(result, jit(function, backend="reference")(x, y), rtol=1e-11, atol=1e-11)
    assert count is None or count_copies(compiled) == count


@pytest.mark.parametrize("rows, others, length", [(10, 100, 10), (100, 10, 10), (100, 100, 70), (100, 100, 2)])
def test_what_is_read_as_it_lies(rows, others, length):
    x, y = draw(others, length), draw(rows, length)
    function = jit(square_distances)
    np.testing.assert_allclose(function(x, y), square_distances(x, y), rtol=1e-13)
    assert count_copies(function) == 0
