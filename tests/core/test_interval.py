"""Intervals hold all results, and decide comparisons only as every pair of numbers does."""

import itertools
import math
import operator

import pytest

from jitcore.core import algebra

ENDS = (-7, -3, -1, 0, 1, 2, 6)
INTERVALS = [(low, high) for low in ENDS for high in ENDS if low <= high]


def list_numbers(one):
    return range(one[0], one[1] + 1)


def truncate(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


@pytest.mark.parametrize(("rule", "operate"), [
    (algebra.add, operator.add), (algebra.subtract, operator.sub), (algebra.multiply, operator.mul),
    (algebra.maximum, max), (algebra.minimum, min), (algebra.floordiv, operator.floordiv),
    (algebra.modulo, operator.mod), (algebra.divide, truncate), (algebra.remainder, math.fmod),
])
def test_of_two(rule, operate):
    divides = rule in (algebra.floordiv, algebra.modulo, algebra.divide, algebra.remainder)
    for x, y in itertools.product(INTERVALS, INTERVALS):
        low, high = rule(x, y)
        pairs = itertools.product(list_numbers(x), list_numbers(y))
        results = [operate(*pair) for pair in pairs if pair[1] or not divides]
        assert all(low <= result <= high for result in results), (x, y)
        if not divides:
            assert (low, high) == (min(results), max(results))


@pytest.mark.parametrize(("rule", "operate"), [(algebra.negate, operator.neg), (algebra.absolute, abs)])
def test_of_one(rule, operate):
    for x in INTERVALS:
        results = list(map(operate, list_numbers(x)))
        assert rule(x) == (min(results), max(results))


@pytest.mark.parametrize("name", sorted(algebra.COMPARISONS))
def test_comparisons(name):
    for x, y in itertools.product(INTERVALS, INTERVALS):
        outcomes = {getattr(operator, name)(a, b) for a in list_numbers(x) for b in list_numbers(y)}
        assert algebra.compare(name, x, y) == (outcomes.pop() if len(outcomes) == 1 else None)


@pytest.mark.parametrize("name", sorted(algebra.COMPARISONS))
def test_negated_and_swapped(name):
    compare = getattr(operator, name)
    for x, y in itertools.product(ENDS, ENDS):
        assert getattr(operator, algebra.NEGATED[name])(x, y) != compare(x, y)
        assert getattr(operator, algebra.SWAPPED[name])(y, x) == compare(x, y)


def test_unknown_ends():
    above, unknown = (1, math.inf), algebra.UNKNOWN
    assert algebra.multiply((0, 0), unknown) == (0, 0)
    assert algebra.floordiv(above, above) == (0, math.inf)
    assert algebra.floordiv((-5, 5), above) == (-5, 5)
    assert algebra.modulo(unknown, (3, 8)) == (0, 7)
    assert algebra.modulo(above, above) == (0, math.inf)
    assert algebra.floordiv(above, (0, 3)) == unknown
    assert algebra.compare("lt", above, unknown) is None and algebra.compare("ge", above, (-2, 1)) is True


def test_joined_met_and_widened():
    assert algebra.join((1, 3), (5, 9)) == (1, 9)
    assert algebra.meet((1, 6), (5, 9)) == (5, 6)
    assert algebra.widen((1, 3), (1, 4), (-8, 8)) == (1, 8)
    assert algebra.widen((3, 4), (2, 4), (-8, 8)) == (0, 4)
    assert algebra.widen((3, 4), (-2, 4), (-8, 8)) == (-8, 4)
