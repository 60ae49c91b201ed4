"""Bounds of symbolic dimensions: the interval of values that an expression may have.

In: an int or a `DimExpr` of `jitcore.core.symbolic`, known here by its `kind`, `terms`, `left` and `right`.
Out: `(low, high)`, with infinities where nothing is known. An interval always holds; it need not be tight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitcore.core.polynomial import Terms, multiply_terms

Interval = tuple[float, float]


def as_interval(lower: int | None, upper: int | None) -> Interval:
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def find_interval(dim: Any) -> Interval:
    """The smallest and the largest value that the dimension may have, as far as is known."""
    if isinstance(dim, int):
        return dim, dim
    if dim._bounds is None:
        dim._bounds = _INTERVALS[dim.kind](dim)
    return dim._bounds


def _bound_polynomial(dim: Any) -> Interval:
    low, high = _bound_terms(dict(dim.terms))
    for monomial, coefficient in dim.terms:
        atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        if atom is not None and atom.kind == "floordiv" and isinstance(atom.right, int):
            # e - (k-1) <= k*floordiv(e, k) <= e says more than the bounds of the quotient: it lets n - n//2
            # cancel. Both sides are multiplied by k to stay with integers.
            k = atom.right
            scaled = (dim - coefficient * atom) * k + coefficient * atom.left
            least, most = find_interval(scaled)
            slack = abs(coefficient) * (k - 1)
            low = max(low, _ceil_divide(least - (slack if coefficient > 0 else 0), k))
            high = min(high, (most + (slack if coefficient < 0 else 0)) // k if most < math.inf else most)
    return low, high


def _ceil_divide(value: float, k: int) -> float:
    return -(-value // k) if value > -math.inf else value


def _bound_terms(terms: Terms) -> Interval:
    """Bounds of a polynomial, counting every atom from its own bound, where all powers are at least 0.

    So n*n - n with n >= 1 is seen to be at least 0: with n = m + 1 it is m*m + m.
    """
    shifted: Terms = {}
    for monomial, coefficient in terms.items():
        product: Terms = {(): coefficient}
        for atom, power in monomial:
            for _ in range(power):
                product = multiply_terms(product, _shift_atom(atom))
        for key, value in product.items():
            shifted[key] = shifted.get(key, 0) + value
    low: float = 0
    high: float = 0
    for monomial, coefficient in shifted.items():
        if not coefficient:
            continue
        intervals = [find_interval(atom) for atom, _ in monomial]
        if (-math.inf, math.inf) in intervals:
            return -math.inf, math.inf
        widths = [(most - least) ** power for (least, most), (_, power) in zip(intervals, monomial)]
        reach = 0 if 0 in widths else coefficient * math.prod(widths)
        low += reach if coefficient < 0 or not monomial else 0
        high += reach if coefficient > 0 or not monomial else 0
    return low, high


def _shift_atom(atom: Any) -> Terms:
    """The atom in terms of its distance from a known bound; `_bound_terms` lets the atom stand for that."""
    least, most = find_interval(atom)
    if least > -math.inf:
        return {((atom, 1),): 1, (): int(least)}
    return {((atom, 1),): -1, (): int(most)} if most < math.inf else {((atom, 1),): 1}


def _bound_floordiv(dim: Any) -> Interval:
    (least, most), (smallest, largest) = find_interval(dim.left), find_interval(dim.right)
    if smallest < 1:
        return -math.inf, math.inf
    low = _floor_divide(least, smallest if least < 0 else largest)
    return low, _floor_divide(most, smallest if most >= 0 else largest)


def _floor_divide(value: float, divisor: float) -> float:
    if abs(value) == math.inf:
        return value
    if divisor == math.inf:
        return -1 if value < 0 else 0
    return value // divisor


def _bound_mod(dim: Any) -> Interval:
    (least, most), (smallest, largest) = find_interval(dim.left), find_interval(dim.right)
    if smallest < 1:
        return -math.inf, math.inf
    return 0, min(largest - 1, most) if least >= 0 else largest - 1


_INTERVALS: dict[str, Callable[[Any], Interval]] = {
    "polynomial": _bound_polynomial,
    "floordiv": _bound_floordiv,
    "mod": _bound_mod,
    "max": lambda dim: tuple(map(max, find_interval(dim.left), find_interval(dim.right))),
    "min": lambda dim: tuple(map(min, find_interval(dim.left), find_interval(dim.right))),
}
