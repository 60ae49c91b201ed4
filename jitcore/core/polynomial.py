"""Polynomials with integer coefficients, as dictionaries from monomial to coefficient.

In and out: `Terms`. An atom is any hashable object with `kind`, `number` and a text; `jitcore.core.symbolic`
builds symbolic dimensions on these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Monomial = tuple[tuple[Any, int], ...]  # ((atom, power), ...) sorted by `order_atom`; () is the constant
Terms = dict[Monomial, int]


def order_atom(atom: Any) -> tuple:
    return (atom.kind != "variable", repr(atom), atom.number)


def order_monomial(monomial: Monomial) -> tuple:
    """Sorts high degrees first, then by name."""
    return (-sum(power for _, power in monomial), [(order_atom(atom), -power) for atom, power in monomial])


def multiply_terms(left: Terms, right: Terms) -> Terms:
    product: Terms = {}
    for first, a in left.items():
        for second, b in right.items():
            monomial = multiply_monomials(first, second)
            product[monomial] = product.get(monomial, 0) + a * b
    return product


def multiply_monomials(first: Monomial, second: Monomial, sign: int = 1) -> Monomial:
    """first * second, or with sign -1 first / second, which must divide it."""
    powers = dict(first)
    for atom, power in second:
        powers[atom] = powers.get(atom, 0) + sign * power
    kept = [(atom, power) for atom, power in powers.items() if power]
    return tuple(sorted(kept, key=lambda pair: order_atom(pair[0])))


def divide_terms(dividend: Terms, divisor: Terms) -> tuple[Terms, Terms]:
    """Polynomial long division: quotient and remainder, unique for a given divisor."""
    atoms = sorted({a for terms in (dividend, divisor) for m in terms for a, _ in m}, key=order_atom)

    def grade(monomial: Monomial) -> tuple:
        powers = dict(monomial)
        return (sum(powers.values()), [powers.get(atom, 0) for atom in atoms])

    lead = max(divisor, key=grade)
    remaining, quotient, remainder = dict(dividend), {}, {}
    while remaining:
        monomial = max(remaining, key=grade)
        powers = dict(monomial)
        count = 0
        if all(powers.get(atom, 0) >= power for atom, power in lead):
            count = remaining[monomial] // divisor[lead]
        if count:
            factor = multiply_monomials(monomial, lead, -1)
            quotient[factor] = count
            for other, coefficient in multiply_terms({factor: count}, divisor).items():
                remaining[other] = remaining.get(other, 0) - coefficient
        if rest := remaining.pop(monomial):
            remainder[monomial] = rest
    return quotient, remainder


def format_terms(terms: Iterable[tuple[Monomial, int]]) -> str:
    """A polynomial as text: `2*n*m + n^2 - 1`."""
    text = ""
    for monomial, coefficient in terms:
        factors = [str(atom) if power == 1 else f"{atom}^{power}" for atom, power in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        text += sign + "*".join(factors)
    return text
