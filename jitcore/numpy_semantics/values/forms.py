"""Linear forms: what is known of a traced Python int.

In: traced int64 scalars (terms) and ints. Out: sums of coefficient times term plus a constant, whose equality
is decidable, and bounds of them. A term's bounds are numbers, and forms in other terms: `j` of `range(i)` is
below `i`, so that `i - j - 1 >= 0` is known although neither is.
"""

from __future__ import annotations

import math

from jitcore.array import Array
from jitcore.core.algebra import Affine, Interval

_MAX_DEPTH = 4


class Term:
    """A traced int64 scalar. low, high: bounds; above, below: forms that it is at least and at most."""

    __slots__ = ("raw", "low", "high", "above", "below")

    def __init__(self, raw: Array, low: float = -math.inf, high: float = math.inf,
                 above: Form | None = None, below: Form | None = None):
        self.raw, self.low, self.high, self.above, self.below = raw, low, high, above, below

    def __eq__(self, other: object) -> bool:
        return type(other) is Term and other.raw is self.raw

    def __hash__(self) -> int:
        return id(self.raw)

    @property
    def precision(self) -> int:
        """How much is known of it: of two terms of one scalar the better one is kept."""
        known = math.isfinite(self.low) + math.isfinite(self.high)
        return known + 3 * ((self.above is not None) + (self.below is not None))


class Form(Affine):
    """An affine form of traced scalars."""

    __slots__ = ()

    def _make_sum(self, terms: tuple, const: int, other: Form) -> Form:
        """Of two terms of one scalar the one of which more is known."""
        known = sorted((term for term, _ in (*self.terms, *other.terms)), key=lambda term: term.precision)
        best = dict(zip(known, known))
        return Form(tuple((best[term], coefficient) for term, coefficient in terms), const)

    @property
    def key(self) -> tuple:
        """Equal for equal forms, in whatever order their terms are, as long as these live."""
        return (self.const, *sorted((id(term.raw), coefficient) for term, coefficient in self.terms))

    def minimum(self, depth: int = _MAX_DEPTH) -> float:
        """A bound from below."""
        low: float = self.const
        for term, coefficient in self.terms:
            low += limit(coefficient * (term.low if coefficient > 0 else term.high))
        for term, coefficient in self.terms if depth else ():
            bound = term.above if coefficient > 0 else term.below
            if bound is not None and not bound.coefficient(term):
                low = max(low, (self.without(term) + bound * coefficient).minimum(depth - 1))
        return low

    def maximum(self) -> float:
        return -(-self).minimum()

    def interval(self) -> Interval:
        return self.minimum(), self.maximum()


def limit(bound: float) -> float:
    """A bound; those beyond 2**62 count as unknown."""
    return bound if abs(bound) < 2**62 else math.copysign(math.inf, bound)
