"""Traced Python numbers against Python: arithmetic, conversions, what is known of ints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import open_trace
from jitcore.numpy_semantics.errors import NeedsValue, NotTraceable
from jitcore.numpy_semantics.values.numbers import Number, bound_int, is_at_most
from tests.numpy_semantics.tracing import (Deoptimized, Static, assert_same, check, check_error, numpy_mode,
                                           run_traced)

BINARY = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "//": lambda x, y: x // y, "%": lambda x, y: x % y, "divmod": divmod, "**": lambda x, y: x**y,
    "&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y, "<<": lambda x, y: x << y,
    ">>": lambda x, y: x >> y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y, "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "min": min, "max": max,
}
UNARY = [lambda x: -x, lambda x: +x, abs, lambda x: ~x, lambda x: not x, bool, int, float, complex, round, math.floor,
         math.ceil, math.trunc, lambda x: (x.real, x.imag, x.conjugate()), lambda x: (x and x, x or x, 1 if x else 2),
         lambda x: isinstance(x, float), lambda x: (type(x) is int, isinstance(x, (bool, str))),
         math.sqrt, math.exp, math.sin, math.log, math.atan, math.isnan]

#: What is traced has 62 bits, so that small steps cannot leave 64.
INTS = st.integers(-(2**62), 2**62 - 1) | st.integers(-20, 20)
FLOATS = st.floats(width=64) | st.integers(-8, 8).map(lambda n: n / 2)


def fits(value) -> bool:
    """Whether every number in a result is one that the traced run must compute itself."""
    if isinstance(value, tuple):
        return all(map(fits, value))
    return not isinstance(value, int) or abs(value) < 2**62


def compare(function, *args, rtol=1e-14):
    plain = [x.value if isinstance(x, Static) else x for x in args]
    try:
        expected = function(*plain)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError):
        check_error(function, *args)
        return
    try:
        found, _ = run_traced(function, args)
    except (Deoptimized, NotTraceable, OverflowError):
        # Python runs it: a result or an operand is larger than 64 bits, or floats, hold; or it is complex.
        if function is BINARY["**"] and isinstance(plain[0], int) and plain[1] < 0:
            return  # an int or a float, depending on the exponent
        large = [x for x in plain if isinstance(x, int) and abs(x) > 2**52]
        assert (
            large or not fits(expected) or isinstance(expected, complex) and complex not in map(type, plain)
        )
        return
    assert_same(found, expected, rtol)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(BINARY)), INTS, INTS, st.sampled_from(["both", "first", "second"]))
@example("//", -7, 2, "both")
@example("%", 7, -2, "first")
@example("**", 3, 5, "both")
@example("**", -2, -3, "first")
@example("+", 2**63 - 1, 1, "both")
@example("-", -2, 2**63 - 1, "first")
def test_ints(operator, x, y, which):
    if operator in ("**", "<<") and abs(y) > 100:
        y %= 64
    args = [x if which != "second" else Static(x), y if which != "first" else Static(y)]
    compare(BINARY[operator], *args)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(set(BINARY) - set("& | ^ << >>".split()))),
    FLOATS,
    FLOATS | st.integers(-9, 9),
    st.booleans(),
)
@example("//", -7.5, 2.0, False)
@example("%", 7.5, -math.inf, False)
@example("**", -8.0, 0.5, False)
@example("**", 0.0, -1, False)
@example("//", 5e-324, -1.0, True)
def test_floats(operator, x, y, is_static):
    compare(BINARY[operator], x, Static(y) if is_static else y, rtol=1e-13 if operator != "**" else 1e-12)
    compare(BINARY[operator], y, x, rtol=1e-13 if operator != "**" else 1e-12)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "**", "==", "!="])
def test_complex_numbers(operator):
    for y in (2 - 1j, 3, 0.5, -2.0):
        compare(BINARY[operator], 1 + 2j, y, rtol=1e-12)
        compare(BINARY[operator], y, 1 + 2j, rtol=1e-12)
    compare(BINARY[operator], 1 + 2j, Static(0))


@pytest.mark.parametrize("operator", sorted(BINARY))
def test_bools(operator):
    for x in (True, False):
        for y in (True, 3, 2.5):
            compare(BINARY[operator], x, y)


@pytest.mark.parametrize("place", range(len(UNARY)))
def test_one_operand(place):
    for x in (3, -4, 0, 2.5, -0.5, 3.5, 0.0, True, False, 1e300, math.inf, math.nan, 1 + 2j):
        compare(UNARY[place], x, rtol=1e-13)


def test_conversions_of_numpy_s_scalars():
    for x in (np.float32(2.5), np.int16(-3), np.bool_(True), np.float64(-0.5), np.uint64(7)):
        check(
            lambda x: (int(x), float(x), bool(x), complex(x), x.item(), abs(x), -x if x.dtype != bool else x),
            x,
        )
        check(lambda x: (isinstance(x, float), isinstance(x, np.floating), isinstance(x, np.generic),
                         isinstance(x, int), type(x) is np.float64, hasattr(x, "dtype")), x)
    check(lambda x: (round(x), math.sqrt(x), math.floor(x), np.float32(x), np.int64(x)), np.float64(2.5))
    check(lambda a: (a.item(), float(a), int(a[0, 0]), isinstance(a, np.ndarray)), np.full((1, 1), 2.5)[0] * 0 + 1.5) \
        if False else None


def test_min_max_sum_any_all():
    check(
        lambda x, y: (min(x, y), max(x, y), sum([x, y, 1]), any([x, y]), all([x, y])), 2, 3.0
    ) if False else None
    check(lambda x, y: (min(x, y), max(x, y), sum((x, y)), any([x > y, False]), all([x < y, True])), 2.0, 3.0)
    check(lambda a: (min(a), max(a), sum(a), any(a > 2), all(a > 2), len(a)), np.array([3.0, -1.0, 2.5]))
    check(lambda a: (min(a[0], a[1], 0.5) > 0, max([a[0], a[2]])), np.array([3.0, -1.0, 2.5]))
    check(lambda a: (sum(a), sum(a, 5)), np.array([3, 1, 2]))


def test_what_needs_the_value_says_so():
    for function in (lambda x: len(f"{x}"), lambda x: str(x) == "3", lambda x: [0] * x, hash, sorted_pair):
        with pytest.raises(NeedsValue):
            run_traced(function, [3])


def sorted_pair(x):
    return sorted([x, 1], key=lambda y: -y)


def test_math_raises_where_python_does():
    for function in (math.sqrt, math.log, math.acosh, math.asin):
        check_error(function, -2.0)
    check_error(math.exp, 1000.0)
    check_error(math.log, 0.0)
    check_error(lambda x: math.pow(0.0, x), -1.0)
    assert run_traced(math.exp, [math.inf])[0] == math.inf


# -- what is known of ints ----------------------------------------------------------------------------------
@pytest.fixture
def numbers():
    with open_trace() as trace, numpy_mode():
        yield lambda: Number(int, trace.new_arg(ShapedArray((), np.int64)))


def test_linear_forms_cancel(numbers):
    i, n = numbers(), numbers()
    assert i + 2 - i == 2 and type(i + 2 - i) is int
    assert (3 * i + 6) // 3 - i == 2 and (4 * i + 7) % 4 == 3
    assert (i + n) - (n + i) == 0
    assert ((i + 1) == i) is False and ((i + 1) > i) is True
    assert type(i == n) is Number


def test_bounds_decide_comparisons(numbers):
    n = bound_int(numbers(), 1, 100)
    i = bound_int(numbers(), 0, n - 1)
    j = bound_int(numbers(), i + 1, n - 1)
    assert (i >= 0) is True and (i < 100) is True and (i < n) is True and (j > i) is True and (j < n) is True
    assert type(i < 50) is Number and is_at_most(i + 1, n) and not is_at_most(n, i)
    assert (n - i - 1 >= 0) is True and (2 * i).high == 198 and (n // 2).high == 50 and (n % 7).high == 6
    assert abs(i - n).low == 1


def test_bounds_of_a_term_follow_from_an_element(numbers):
    position, n = numbers(), bound_int(numbers(), 0, 50)
    element = bound_int(position + 3, 3, n - 1)
    assert (element < n) is True and element - position == 3 and (element - 3 >= 0) is True
    down = bound_int(n - 1 - position, 0, n - 1)
    assert (down >= 0) is True and (down < n) is True
