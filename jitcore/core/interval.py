"""Intervals of numbers: (low, high), both included, with infinities where an end is not known.

In: intervals of operands. Out: an interval that holds every result, in numbers that do not wrap around; it
need not be the smallest one. Sizes of arrays, Python ints, elements of arrays, places in loops: all use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

Interval = tuple[float, float]
UNKNOWN: Interval = (-math.inf, math.inf)

#: A comparison: the one that holds where it does not; the one of exchanged operands.
NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
COMPARISONS = frozenset(NEGATED)


def join(one: Interval, other: Interval) -> Interval:
    """The smallest interval that holds both."""
    return min(one[0], other[0]), max(one[1], other[1])


def meet(one: Interval, other: Interval) -> Interval:
    """What both have in common; empty where the ends come in the wrong order."""
    return max(one[0], other[0]), min(one[1], other[1])


def widen(old: Interval, new: Interval, whole: Interval) -> Interval:
    """One that holds both and soon stays as it is: an end that moves goes to 0, or to that of `whole`."""
    low, high = join(old, new)
    if low != old[0]:
        low = 0 if low >= 0 else whole[0]
    return low, high if high == old[1] else whole[1]


def add(x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


def subtract(x: Interval, y: Interval) -> Interval:
    return x[0] - y[1], x[1] - y[0]


def negate(x: Interval) -> Interval:
    return -x[1], -x[0]


def multiply(x: Interval, y: Interval) -> Interval:
    return _hull(0 if 0 in (a, b) else a * b for a in x for b in y)


def absolute(x: Interval) -> Interval:
    return 0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1])), max(abs(x[0]), abs(x[1]))


def maximum(x: Interval, y: Interval) -> Interval:
    return max(x[0], y[0]), max(x[1], y[1])


def minimum(x: Interval, y: Interval) -> Interval:
    return min(x[0], y[0]), min(x[1], y[1])


def floordiv(x: Interval, y: Interval) -> Interval:
    """Quotients of whole numbers, rounded down."""
    return UNKNOWN if y[0] <= 0 else _hull(_floor(a, b) for a in x for b in y)


def modulo(x: Interval, y: Interval) -> Interval:
    """What `floordiv` leaves, with the sign of the divisor."""
    (low, high), (least, most) = x, y
    if least <= 0:
        return -math.inf if least < 0 else 0, most - 1 if most > 0 else 0
    return x if low >= 0 and high < least else (0, min(most - 1, high if low >= 0 else math.inf))


def divide(x: Interval, y: Interval) -> Interval:
    """Quotients of whole numbers, rounded to zero."""
    return UNKNOWN if y[0] <= 0 else _hull(_floor(abs(a), b) * (1 if a >= 0 else -1) for a in x for b in y)


def remainder(x: Interval, y: Interval) -> Interval:
    """What `divide` leaves, with the sign of x."""
    if y[0] <= 0:
        return UNKNOWN
    if 0 <= x[0] and x[1] < y[0]:
        return x
    return max(min(x[0], 0), 1 - y[1]), min(max(x[1], 0), y[1] - 1)


def _hull(values: Iterable[float]) -> Interval:
    found = list(values)
    return min(found), max(found)


def _floor(value: float, divisor: float) -> float:
    if abs(value) == math.inf:
        return value
    return (-1 if value < 0 else 0) if divisor == math.inf else value // divisor


def compare(name: str, x: Interval, y: Interval) -> bool | None:
    """How a comparison comes out, where that is known."""
    if name in _RULES:
        return _RULES[name](x, y)
    if name in ("gt", "ge"):
        return compare(SWAPPED[name], y, x)
    return None if (found := compare("eq", x, y)) is None else not found


def _is_equal(x: Interval, y: Interval) -> bool | None:
    if x[1] < y[0] or y[1] < x[0]:
        return False
    return True if x[0] == x[1] == y[0] == y[1] else None


_RULES: dict[str, Callable[[Interval, Interval], bool | None]] = {
    "lt": lambda x, y: True if x[1] < y[0] else False if x[0] >= y[1] else None,
    "le": lambda x, y: True if x[1] <= y[0] else False if x[0] > y[1] else None,
    "eq": _is_equal,
}
