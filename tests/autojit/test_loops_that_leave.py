"""`for` loops whose body always returns, breaks or raises: they are decisions, inside of the loop around them too."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import autojit


def returns(x, y, n):
    b = y
    for _ in range(n):
        for _ in range(3):
            b = x + 2
            return b
    return b


def returns_by_a_condition(x, y, n):
    b = y
    for _ in range(n):
        for _ in range(3):
            if b[2] > 0.5:
                b = y + 1
            else:
                b = x + 2
            return b
    if y[2] > 0.5:
        b = b + b[1]
    return b


def under_a_while(x, y, n):
    b, i = y, 0
    while i < n:
        i += 1
        for _ in range(3):
            b = x + 2
            return b
    return b * 3


def over_the_array(x, y, n):
    for i in range(n):
        for v in x[i:]:
            return y + v
    return y * 5


def breaks(x, y, n):
    b = y + 0
    for i in range(n):
        for j in range(2):
            b = b + x * j + i
            break
        else:
            b = b * 100
    return b


def breaks_out_of_both(x, y, n):
    b = y + 0
    for i in range(n):
        for j in range(i, 2):
            b = b + x[j]
            break
        if b[0] > 1:
            break
        b = b * 2
    return b


def leaves_an_inner_loop(x, y, n):
    total = 0.0
    for i in range(n):
        for j in range(3):
            while x[j] > total:
                total = total + 1
                return y + total
        total = total - i
    return y - total


def raises(x, y, n):
    for _ in range(n):
        for v in x:
            if v > 100:
                raise ValueError("large")
            return y + v
    return y


PROGRAMS = [returns, returns_by_a_condition, under_a_while, over_the_array, breaks, breaks_out_of_both,
            leaves_an_inner_loop, raises]
VALUES = [(-1.0, 1.0, -1.0), (1.0, 1.0, 1.0), (1.0, -1.0, -1.0), (0.25, 3.0, 0.75)]


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("count", [1, 2, 0, 3])
def test_loops_that_leave(function, count):
    """A call of one count first, which is a constant then, and of others behind it."""
    compiled = autojit(function, strict=True)
    for n in (count, 1, 2, 0, 3):
        for values in VALUES:
            x = np.array(values)
            expected, found = function(x, x[::-1] * 2, n), compiled(x, x[::-1] * 2, n)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", PROGRAMS[:5])
def test_loops_that_leave_under_jit(function):
    compiled = jitcore.jit(function, rewrite=True, static_argnums=2)
    for n in (1, 2, 0):
        for values in VALUES:
            x = np.array(values, np.float32)
            np.testing.assert_allclose(compiled(x, x[::-1] * 2, n), function(x, x[::-1] * 2, n), rtol=1e-6)
