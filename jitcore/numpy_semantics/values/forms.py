"""Linear forms: what is known of a traced Python int.

In: traced int64 scalars (terms) and ints. Out: sums of coefficient times term plus a constant, whose equality
is decidable, and bounds of them. A term's bounds are numbers, and forms in other terms: `j` of `range(i)` is
below `i`, so that `i - j - 1 >= 0` is known although neither is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from jitcore.array import Array

Interval = tuple[float, float]
UNKNOWN: Interval = (-math.inf, math.inf)
_MAX_DEPTH = 4


class Term:
    """A traced int64 scalar. low, high: bounds; above, below: forms that it is at least and at most."""

    __slots__ = ("raw", "low", "high", "above", "below")

    def __init__(self, raw: Array, low: float = -math.inf, high: float = math.inf,
                 above: Form | None = None, below: Form | None = None):
        self.raw, self.low, self.high, self.above, self.below = raw, low, high, above, below

    @property
    def precision(self) -> int:
        """How much is known of it: of two terms of one scalar the better one is kept."""
        known = math.isfinite(self.low) + math.isfinite(self.high)
        return known + 3 * ((self.above is not None) + (self.below is not None))


class Form:
    """constant + sum of coefficient * term. parts: (coefficient, term) by the scalar's id."""

    __slots__ = ("constant", "parts")

    def __init__(self, constant: int, parts: dict[int, tuple[int, Term]]):
        self.constant, self.parts = constant, parts

    @staticmethod
    def of_term(term: Term) -> Form:
        return Form(0, {id(term.raw): (1, term)})

    @property
    def key(self) -> tuple:
        """Equal for equal forms, as long as their terms live."""
        return (self.constant, *sorted((name, part[0]) for name, part in self.parts.items()))

    @property
    def terms(self) -> Iterable[Term]:
        return (term for _, term in self.parts.values())

    def add(self, other: Form, factor: int = 1) -> Form:
        """self + factor * other."""
        parts = dict(self.parts)
        for name, (coefficient, term) in other.parts.items():
            own, own_term = parts.get(name, (0, term))
            total = own + factor * coefficient
            if total:
                parts[name] = (total, max(term, own_term, key=lambda t: t.precision))
            else:
                parts.pop(name, None)
        return Form(self.constant + factor * other.constant, parts)

    def scale(self, factor: int) -> Form:
        if not factor:
            return Form(0, {})
        parts = {name: (factor * coefficient, term) for name, (coefficient, term) in self.parts.items()}
        return Form(factor * self.constant, parts)

    def minimum(self, depth: int = _MAX_DEPTH) -> float:
        """A bound from below."""
        low: float = self.constant
        for coefficient, term in self.parts.values():
            low += _scale(coefficient, term.low if coefficient > 0 else term.high)
        if not depth:
            return low
        for name, (coefficient, term) in self.parts.items():
            bound = term.above if coefficient > 0 else term.below
            if bound is not None and name not in bound.parts:
                rest = Form(
                    self.constant, {other: part for other, part in self.parts.items() if other != name}
                )
                low = max(low, rest.add(bound, coefficient).minimum(depth - 1))
        return low

    def maximum(self) -> float:
        return -self.scale(-1).minimum()


def _scale(coefficient: int, bound: float) -> float:
    """The product; bounds beyond 2**62 count as unknown."""
    product = coefficient * bound
    return product if abs(product) < 2**62 else math.copysign(math.inf, product)
