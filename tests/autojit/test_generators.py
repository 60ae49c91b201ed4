"""Builtins that go through a generator: its loops and branches are those of the program."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jitcore
from tests.autojit.checking import check

X = np.array([0.5, -1.0, 2.0, 0.25, 3.0, -0.5, 1.0, 2.5, 1.5, -2.0] * 4)
#: Of many sizes, so that each order of additions rounds otherwise.
SPREAD = np.random.default_rng(0).normal(size=60) * 10.0 ** np.random.default_rng(1).uniform(-9, 9, 60)


def sum_squares(x):
    return sum(v * v for v in x)


def sum_filtered(x):
    return sum(v for v in x if v > 0), sum(1 for v in x if v > 0), sum((v > 0 for v in x), 10)


def sum_pairs(x):
    return sum(x[i] * x[j] for i in range(len(x)) for j in range(i) if x[i] < x[j])


def sum_products(x):
    return sum(p * q for p, q in zip(x, x[::-1])), sum(i * v for i, v in enumerate(x))


def sum_rows(x):
    return sum(abs(v) for row in x.reshape(-1, 4) for v in row)


def find_extrema(x):
    return min(v for v in x), max(abs(v) for v in x), min(i for i, v in enumerate(x) if v > 1)


def find_with_default(x):
    return (min((v for v in x if v > 1), default=-5.0), max((v for v in x if v > 100), default=-5.0),
            max((i for i in range(len(x)) if x[i] > 100), default=None), min((v for v in []), default=x[0]))


def ask(x):
    return (any(v > 2 for v in x), all(v > -2 for v in x), any(v > 100 for v in x), all(v < 100 for v in x),
            any(x[i] > x[i + 1] for i in range(len(x) - 1)))


def collect(x):
    return list(v * v for v in x), list(v for v in x if v > 0), len(list(v for v in x if v > 1)), list(x[:3])


def use_variables_around(x):
    scale = 3.0
    return sum((lambda v: v * scale)(v) for v in x), sum(v * scale for v in x if abs(v) < scale)


def walk(x, n):
    total = 0.0
    for i in range(n):
        total += x[i]
        if total > 0:
            yield total
        else:
            yield -total


def use_generator_function(x):
    return sum(walk(x, len(x))), max(walk(x, 20)), any(walk(x, 3)), list(walk(x, 25))


def nest(x):
    count = 0
    for a in x:
        if all(abs(a - b) < 4.5 for b in x):
            count += 1
    return count


def find_primes(n):
    return sum(1 for p in range(2, n) if all(p % d for d in range(2, int(p**0.5) + 1)))


def find_by_key(x):
    return (min(range(len(x)), key=lambda i: x[i]), max(x, key=abs), min(enumerate(x), key=lambda pair: pair[1]),
            max((v for v in x if v < 2), key=lambda v: -v), min([x[0], x[1], x[2]], key=abs), max(x[0], x[1], key=abs),
            min((v for v in x if v > 100), key=abs, default=1.5), max([3, 1, 2], key=lambda i: x[i]))


def compare_tuples(x):
    best = (x[0], 0)
    for i in range(1, len(x)):
        pair = x[i], i
        if pair < best:
            best = pair
    return (best, max((abs(v), i) for i, v in enumerate(x)), min(zip(x, range(len(x)))), (x[0], 1) == (x[0], 1),
            [x[0], x[1]] != [x[0], x[2]], (x[0], (x[1], 2)) <= (0.5, (x[2], 1)), (x[0],) < (x[0], 1), (1, x[0]) > (0, x[1]),
            max((x[3], 1), (x[4], 0)), (x[0], 1) == (x[0], 1, 2))


def apply_functions(x):
    return (list(map(float, x)), sum(map(abs, x)), sum(filter(lambda v: v > 0, x)), list(map(lambda a, b: a * b, x, x[::-1])),
            max(map(lambda i: x[i], range(len(x)))), list(filter(None, x)), any(map(lambda v: v > 2, x)),
            [*map(float, [x[0], x[1]])], [*filter(lambda v: v > 1, [3, 1, 2])])


def find_first(x):
    later = 0
    for i in range(len(x)):
        later += next((j for j in range(i, len(x)) if x[j] > x[i]), -1)
    return (next(v for v in x if v > 2), next((i for i, v in enumerate(x) if v > 100), -1),
            next((i for i, v in enumerate(x) if v > 2), None), next((v for v in x if v > 100), None) is None, later)


def multiply(x):
    return math.prod(v for v in x[:6]), math.prod(x[:5]), math.prod([x[0], 2], start=3), math.prod(range(1, 6)) * x[0]


def unrolled(x):
    return sum(v for v in [x[0], x[1], x[2]] if v > 0), max(v * 2 for v in (x[3], x[4])), sum(v for v in [])


def held(x):
    answers = (v > 2 for v in x[:6])
    return any(answers), any(answers), sum(answers)


def spend(x):
    squares = (v * v for v in x[:6])
    return sum(squares), sum(squares), list(squares)


CASES = [sum_squares, sum_filtered, sum_pairs, sum_products, sum_rows, find_extrema, find_with_default, ask,
         collect, find_by_key, compare_tuples, apply_functions, find_first, multiply, use_variables_around,
         use_generator_function, nest, unrolled]


@pytest.mark.parametrize("function", CASES)
def test_as_python(function):
    check(function, X)


def test_ranges_of_traced_bounds():
    compiled = check(find_primes, 300)
    assert compiled(np.int64(50)) == 15


@pytest.mark.parametrize("function", CASES[:6])
def test_loops_stay_loops(function):
    """The program is no longer for more elements."""
    sizes = [len(str(jitcore.make_jaxpr(jitcore.autojit(function))(np.resize(X, n)))) for n in (400, 4000)]
    assert abs(sizes[0] - sizes[1]) < 100


def ask_again(x):
    large = (v for v in x[:8] if v > 0.3)
    return next(large), next(large), next(large, None)


@pytest.mark.parametrize("function", [held, spend, ask_again])
def test_generators_that_are_used_twice(function):
    """What is left behind the element that decides is still there."""
    assert jitcore.autojit(function)(X) == function(X)


def test_nothing_to_choose_from():
    compiled = jitcore.autojit(lambda x: max(v for v in x if v > 100))
    for x in (X, X[:0]):
        with pytest.raises(ValueError, match="empty"):
            compiled(x)


def test_no_first():
    compiled = jitcore.autojit(lambda x: next(v for v in x if v > 100))
    for x in (X, X[:0]):
        with pytest.raises(StopIteration):
            compiled(x)


def test_stop_iteration_inside():
    def take(x):
        few = iter([1.0, 2.0])
        return sum(next(few) * x[i] for i in range(len(x)))

    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        jitcore.autojit(take)(X)


def test_what_raises_behind_the_answer():
    """any() does not go on behind it, so that what would raise there does not."""

    def ask_divided(x):
        return any(1 // int(v) > 0 for v in x)

    check(ask_divided, np.array([1.0] + 30 * [0.0]))
    with pytest.raises(ZeroDivisionError):
        jitcore.autojit(ask_divided)(np.array([-1.0] + 30 * [0.0]))


def test_effects_of_elements():
    def count(x):
        seen = []

        def note(v):
            seen.append(v)
            return v > 2

        return any(note(v) for v in x), len(seen)

    assert jitcore.autojit(count)(X) == count(X)


SUMS = [
    lambda x: sum(float(v) for v in x), lambda x: sum(v for v in x), lambda x: sum(float(v) for v in x if v > 0),
    lambda x: sum((float(v) for v in x), 3), lambda x: sum((float(v) for v in x), x[0]),
    lambda x: sum((float(x[i]) if i % 2 else i * 10**15) for i in range(len(x))),
    lambda x: sum((float(v) if v > 0 else 3) for v in x), lambda x: sum(float(v) * 1e308 for v in x),
    lambda x: sum([3 * 10**15, float(x[1]), 2.5, float(x[2]), 7]),
    lambda x: sum([float(x[0]), float(x[1]), 1e100, -1e100, 1])]


@pytest.mark.parametrize("function", SUMS)
def test_sums_have_the_same_bits(function):
    """From Python 3.12 on `sum` of floats carries along what additions lose, and of NumPy's scalars does not."""
    expected, found = function(SPREAD), jitcore.autojit(function, strict=True)(SPREAD)
    assert type(found) is type(expected) and (found == expected or math.isnan(found) and math.isnan(expected))


def test_generators_that_handle_exceptions_run_as_they_are():
    def walk_guarded(x):
        for v in x:
            try:
                yield 1 / v
            except ZeroDivisionError:
                yield 0.0

    def total(x):
        return sum(walk_guarded(x))

    for x in ([1, 2, 0, 4], [0.5, 0.25]):
        assert jitcore.autojit(total)(x) == total(x)


# -- loops that are some from their second iteration on ---------------------------------------------------------------
def nearest_pair(x):
    best = None
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            distance = abs(x[i] - x[j])
            if best is None or distance < best[0]:
                best = (distance, i, j)
    return best


def both_ends(x):
    low = high = None
    for i, v in enumerate(x):
        if low is None:
            low = high = (v, i)
        elif v < low[0]:
            low = (v, i)
        elif v > high[0]:
            high = (v, i)
    return low, high


def largest_step(x):
    before, largest = None, 0.0
    for row in x.reshape(-1, 4):
        if before is not None:
            largest = max(largest, np.abs(row - before).max())
        before = row.copy()
    return largest


@pytest.mark.parametrize("function", [nearest_pair, both_ends, largest_step, find_by_key, compare_tuples])
def test_what_is_none_before_the_first_iteration(function):
    check(function, X)
    check(function, X[:8])
    sizes = [len(str(jitcore.make_jaxpr(jitcore.autojit(function))(np.resize(X, n)))) for n in (200, 400)]
    assert abs(sizes[0] - sizes[1]) < 100


def test_no_iteration():
    def find(x):
        best = None
        for v in x[:0]:
            best = (v, 2)
        return best, x[0]

    check(find, X)
