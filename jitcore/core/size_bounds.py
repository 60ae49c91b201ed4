"""Bounds of symbolic dimensions: the interval of values that an expression may have.

In: an int or a `DimExpr` of `jitcore.core.symbolic`, known here by its `kind`, `terms`, `left` and `right`.
Out: `(low, high)`, with infinities where nothing is known. An interval always holds; it need not be tight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitcore.core import algebra
from jitcore.core.algebra import UNKNOWN, Interval
from jitcore.core.polynomial import Terms, multiply_terms


def as_interval(lower: int | None, upper: int | None) -> Interval:
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def find_interval(dim: Any) -> Interval:
    """The smallest and the largest value that the dimension may have, as far as is known."""
    if isinstance(dim, int):
        return dim, dim
    if dim._bounds is None:
        if dim.kind == "polynomial":
            dim._bounds = _bound_polynomial(dim)
        else:
            dim._bounds = _OPERATIONS[dim.kind](find_interval(dim.left), find_interval(dim.right))
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

    So n*n - n with n >= 1 is seen to be at least 0: with n = m + 1 it is m*m + m."""
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
        if UNKNOWN in intervals:
            return UNKNOWN
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


_OPERATIONS: dict[str, Callable[[Interval, Interval], Interval]] = {
    "floordiv": algebra.floordiv, "mod": algebra.modulo, "max": algebra.maximum, "min": algebra.minimum}
