"""The algebra of numbers that are not known: intervals that they lie in, and affine forms.

In: operands of operations. Out: an interval, (low, high), both included, with infinities where an end is not
known, that holds every result, in numbers that do not wrap around; it need not be the smallest one. Sizes of
arrays, Python ints, elements of arrays, places in loops: all use it.

Affine forms are const + sum(coefficient * atom), each atom once and none with the coefficient 0. Places in
loops are forms of axes (`loopir.index`), Python's ints under tracing those of traced scalars
(`numpy_semantics.values.forms`): subclasses say what atoms are. Coefficients are ints, or sizes known to
calls only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

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


# -- affine forms ------------------------------------------------------------------------------------------
class Affine:
    """terms: (atom, coefficient) of each atom. Immutable; equal where terms and their order are."""

    __slots__ = ("terms", "const", "_hash")

    def __init__(self, terms: tuple = (), const: Any = 0):
        self.terms, self.const = terms, const

    @classmethod
    def of(cls, atom: Any) -> Self:
        return cls(((atom, 1),))

    def _make_sum(self, terms: tuple, const: Any, other: Self) -> Self:
        """The sum with another form, which has these terms; a subclass brings it to its normal form."""
        return type(self)(terms, const)

    def coefficient(self, atom: Any) -> Any:
        return next((coefficient for other, coefficient in self.terms if other == atom), 0)

    def without(self, atom: Any) -> Self:
        """The form without one of its terms."""
        return type(self)(tuple(term for term in self.terms if term[0] != atom), self.const)

    def __add__(self, other: Any) -> Self:
        if not isinstance(other, Affine):
            return self if is_number(other, 0) else type(self)(self.terms, self.const + other)
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        merged = dict(self.terms)
        for atom, coefficient in other.terms:
            merged[atom] = merged.get(atom, 0) + coefficient
        terms = tuple([term for term in merged.items() if not is_number(term[1], 0)])
        return self._make_sum(terms, self.const + other.const, other)

    def __neg__(self) -> Self:
        return self * -1

    def __sub__(self, other: Any) -> Self:
        return self + (-other)

    def __mul__(self, factor: Any) -> Self:
        if isinstance(factor, int) and factor in (0, 1):
            return self if factor else type(self)()
        terms = tuple([(atom, coefficient * factor) for atom, coefficient in self.terms])
        return type(self)(terms, self.const * factor)

    def divide(self, size: Any) -> tuple[Self, Self]:
        """(quotient, rest) with quotient * size + rest == self; what `size` divides is in the quotient."""
        quotient, rest = [], []
        for atom, coefficient in self.terms:
            whole = _divide_exactly(coefficient, size)
            if whole is None:
                rest.append((atom, coefficient))
            else:
                quotient.append((atom, whole))
        are_ints = isinstance(self.const, int) and isinstance(size, int)
        whole, left = divmod(self.const, size) if are_ints else (0, self.const)
        return type(self)(tuple(quotient), whole), type(self)(tuple(rest), left)

    def substitute(self, replace: Callable[[Any], Self]) -> Self:
        """Each atom becomes the form that stands for it."""
        result = type(self)((), self.const)
        for atom, coefficient in self.terms:
            result = result + replace(atom) * coefficient
        return result

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is type(self) and self.terms == other.terms and self.const == other.const)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.terms, self.const))
            return self._hash

    def __repr__(self) -> str:
        parts = [repr(atom) if is_number(c, 1) else f"{c}*{atom!r}" for atom, c in self.terms]
        return " + ".join(parts if parts and is_number(self.const, 0) else [*parts, str(self.const)])


def is_number(value: Any, number: int) -> bool:
    """Whether a coefficient is known to be a number."""
    return isinstance(value, int) and value == number


def _divide_exactly(coefficient: Any, size: Any) -> Any | None:
    if isinstance(coefficient, int) and isinstance(size, int):
        return coefficient // size if size and coefficient % size == 0 else None
    return 1 if coefficient == size else None
