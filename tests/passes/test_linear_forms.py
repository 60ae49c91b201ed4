"""`jitcore.passes.linear_forms`: what tests of loops and branches say of sums of several counters."""

import numpy as np
import pytest

import jitcore
from jitcore import autojit, jit, lax
from tests.passes.test_intervals import X, check, element

ZERO = np.float32(0)


def nested(end, place, start=lambda i: 0, outer=7):
    """Sum of elements at `place(i, j)` for `j` from `start(i)` below `end(i)`."""

    def total(x):
        def around(i, s):
            return lax.fori_loop(start(i), end(i), lambda j, s: s + (1 + i) * element(x, place(i, j)), s)

        return lax.fori_loop(0, outer, around, ZERO)

    return total


@pytest.mark.parametrize("end, place, is_inside", [
    (lambda i: 7 - i, lambda i, j: i + j, True),
    (lambda i: 7 - i, lambda i, j: j + i, True),
    (lambda i: 5 - i, lambda i, j: 2 + (i + j), True),
    (lambda i: i + 1, lambda i, j: i - j, True),
    (lambda i: 2 * i, lambda i, j: 2 * i - j - 1 - i + 1, False),
    (lambda i: 8 - i, lambda i, j: i + j, False),
    (lambda i: 7 - i, lambda i, j: i + j + 1, False),
    (lambda i: 7 - i, lambda i, j: 2 * i + j, False),
    (lambda i: i + 2, lambda i, j: i - j, False),
    (lambda i: 7 + i, lambda i, j: i + j, False),
])
def test_end_of_a_loop_bounds_sums_with_its_counter(end, place, is_inside):
    check(nested(end, place), [(True,) if is_inside else None], X)


@pytest.mark.parametrize("test, place, is_inside", [
    (lambda i, k: i + k < 7, lambda i, k: i + k, True),
    (lambda i, k: 7 > k + i, lambda i, k: i + k, True),
    (lambda i, k: i + k <= 6, lambda i, k: i + k, True),
    (lambda i, k: i >= k, lambda i, k: i - k, True),
    (lambda i, k: (i + k < 7) & (k > 1), lambda i, k: i + k, True),
    (lambda i, k: (i + k < 7) | (k > 1), lambda i, k: i + k, False),
    (lambda i, k: i + k <= 7, lambda i, k: i + k, False),
    (lambda i, k: i > k - 2, lambda i, k: i - k, False),
    (lambda i, k: i + k >= 7, lambda i, k: i + k, False),
])
def test_a_branch_has_what_its_test_says(test, place, is_inside):
    def total(x):
        def inner(i, k, s):
            return lax.cond(test(i, k), lambda s: s + element(x, place(i, k)), lambda s: s - 1, s)

        return lax.fori_loop(0, 7, lambda i, s: lax.fori_loop(0, 4, lambda k, s: inner(i, k, s), s), ZERO)

    check(total, [(True,) if is_inside else None], X)


def test_the_other_branch_has_the_contrary():
    def total(x):
        def inner(i, k, s):
            return lax.cond(i + k >= 7, lambda s: s - 1, lambda s: s + element(x, i + k), s)

        return lax.fori_loop(0, 7, lambda i, s: lax.fori_loop(0, 4, lambda k, s: inner(i, k, s), s), ZERO)

    check(total, [(True,)], X)


def test_sums_that_may_wrap_around_say_nothing():
    def total(x, shift):
        return lax.while_loop(lambda carry: (carry[0] + shift < 7) & (carry[0] < 9),
                              lambda carry: (carry[0] + 1, carry[1] + element(x, carry[0] + shift)),
                              (np.int32(0), ZERO))[1]

    for shift in (-3, 2, 2**31 - 2):
        check(total, [None], X, np.int32(shift))


def test_sums_that_a_loop_does_not_change_are_not_bounded_by_its_test():
    """They may be computed before the loop, which has no rounds for most of these."""
    def total(x):
        def inner(i, k, s):
            return lax.while_loop(lambda carry: (i + k < 7) & (carry[0] < 2),
                                  lambda carry: (carry[0] + 1, carry[1] + element(x, i + k)), (0, s))[1]

        return lax.fori_loop(0, 9, lambda i, s: lax.fori_loop(0, 9, lambda k, s: inner(i, k, s), s), ZERO)

    check(total, [None], X)


@pytest.mark.parametrize("seed", range(20))
def test_random_places_agree_with_python(seed):
    rng = np.random.default_rng(seed)
    a, b, c, d, e, f = (int(n) for n in rng.integers(-2, 3, 6))
    function = nested(lambda i: a * i + 7 + b, lambda i, j: c * i + d * j + e, lambda i: f)
    with jitcore.disable_jit():
        expected = function(X)
    np.testing.assert_allclose(jit(function)(X), expected, rtol=1e-4, atol=1e-4)


def test_shifted_products_need_no_clamps():
    @autojit(strict=True)
    def autocorrelation(x, count):
        out = np.zeros(count)
        for lag in range(count):
            for i in range(len(x) - lag):
                out[lag] += x[i] * x[i + lag]
        return out

    x = np.random.default_rng(0).random(30)
    expected = [np.dot(x[: len(x) - lag], x[lag:]) for lag in range(12)]
    np.testing.assert_allclose(autocorrelation(x, 12), expected, rtol=1e-12)
    program = autocorrelation.inspect("loop program")
    assert "max(" not in program and "min(" not in program
