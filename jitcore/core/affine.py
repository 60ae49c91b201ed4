"""Affine forms: const + sum(coefficient * atom), each atom once and none with the coefficient 0.

Places in loops are forms of axes (`loopir.index`), Python's ints under tracing those of traced scalars
(`numpy_semantics.values.numbers`): subclasses say what atoms are. Coefficients are ints, or sizes known to
calls only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


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
