"""Index arithmetic: affine forms over loop axes, with run-time sizes as coefficients.

In: axes, sizes (ints or symbolic dimensions). Out: `Index` values in normal form, so that strides can be
read off:
`coefficient(axis)` is the stride, and equal forms are equal objects.
"""

from __future__ import annotations

import itertools

_axis_serial = itertools.count()


class Axis:
    """A loop variable that runs over range(extent)."""

    __slots__ = ("extent", "serial")

    def __init__(self, extent):
        self.extent = extent
        self.serial = next(_axis_serial)

    def __repr__(self) -> str:
        return f"i{self.serial}"


class RunTimeSize:
    """A number that kernels are always told at run time, and never share with a size that happens to be
    equal."""

    __slots__ = ("value",)

    def __init__(self, value: int):
        self.value = value

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __repr__(self) -> str:
        return str(self.value)


class Address(RunTimeSize):
    """A place in the memory of this process, which `owner` keeps."""

    __slots__ = ("owner",)

    def __init__(self, value: int, owner: object):
        super().__init__(value)
        self.owner = owner

    def __str__(self) -> str:
        return "an address"  # another one in each process


class FloorDiv:
    """`index // size`, where it does not simplify."""

    __slots__ = ("index", "size", "serial")

    def __init__(self, index: Index, size):
        self.index, self.size, self.serial = index, size, index.order + 1

    def _key(self):
        return (self.__class__, self.index, self.size)

    def __eq__(self, other) -> bool:
        return other.__class__ is self.__class__ and self.index == other.index and self.size == other.size

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"({self.index!r} // {self.size})"


class Mod(FloorDiv):
    """`index % size`, where it does not simplify."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({self.index!r} % {self.size})"


class Dynamic:
    """An integer scalar expression used as an index."""

    __slots__ = ("expr", "serial")

    def __init__(self, expr):
        self.expr, self.serial = expr, 0

    def __eq__(self, other) -> bool:
        return other.__class__ is Dynamic and self.expr is other.expr

    def __hash__(self) -> int:
        return hash((Dynamic, id(self.expr)))

    def __repr__(self) -> str:
        return f"[{self.expr!r}]"


class Index:
    """`const + sum(coefficient * atom)`; atoms are axes and opaque terms. Immutable, hashable."""

    __slots__ = ("terms", "const", "_hash", "_axes")

    def __init__(self, terms: tuple = (), const=0):
        self.terms = terms
        self.const = const

    @staticmethod
    def of(atom) -> Index:
        return Index(((atom, 1),))

    @property
    def order(self) -> int:
        return max((atom.serial for atom, _ in self.terms), default=0)

    def axes(self) -> frozenset:
        """Every axis the index depends on, through opaque terms too."""
        try:
            return self._axes
        except AttributeError:
            found = set()
            for atom, _ in self.terms:
                if isinstance(atom, Axis):
                    found.add(atom)
                elif isinstance(atom, Dynamic):
                    found |= atom.expr.axes
                else:
                    found |= atom.index.axes()
            self._axes = frozenset(found)
            return self._axes

    def coefficient(self, axis: Axis):
        """The stride along an axis, or None when the axis also occurs inside an opaque term."""
        stride = 0
        for atom, coefficient in self.terms:
            if atom is axis:
                stride = coefficient
            elif not isinstance(atom, Axis) and axis in _atom_axes(atom):
                return None
        return stride

    def __add__(self, other) -> Index:
        if not isinstance(other, Index):
            return self if _is_zero(other) else Index(self.terms, self.const + other)
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        merged = dict(self.terms)
        for atom, coefficient in other.terms:
            merged[atom] = merged.get(atom, 0) + coefficient
        terms = tuple((atom, c) for atom, c in merged.items() if not _is_zero(c))
        whole = _join_quotient(terms)
        if whole is not None:
            return whole + (self.const + other.const)
        return Index(_sorted_terms(terms), self.const + other.const)

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other) -> Index:
        return self + (-other)

    def __mul__(self, size) -> Index:
        if isinstance(size, int) and size in (0, 1):
            return self if size else ZERO
        return Index(tuple((atom, c * size) for atom, c in self.terms), self.const * size)

    def floordiv(self, size) -> Index:
        if _is_one(size):
            return self
        split = self._split(size)
        if split is not None:
            return split[0]
        return Index.of(FloorDiv(self, size))

    def mod(self, size) -> Index:
        if _is_one(size):
            return ZERO
        split = self._split(size)
        if split is not None:
            return split[1]
        return Index.of(Mod(self, size))

    def _split(self, size) -> tuple[Index, Index] | None:
        """(quotient, remainder) when the multiples of `size` separate from a rest known to lie in [0,
        size)."""
        quotient, rest, reach = [], [], 0
        for atom, coefficient in self.terms:
            whole = _divide_exactly(coefficient, size)
            if whole is not None:
                quotient.append((atom, whole))
            elif isinstance(atom, Axis) and isinstance(coefficient, int) and isinstance(atom.extent, int):
                if coefficient < 0:
                    return None
                rest.append((atom, coefficient))
                reach += coefficient * (atom.extent - 1)
            elif isinstance(atom, Axis) and _is_one(coefficient) and atom.extent == size and not rest:
                rest.append((atom, coefficient))
                reach = size - 1
            else:
                return None
        const_quotient, const_rest = 0, self.const
        if isinstance(self.const, int) and isinstance(size, int):
            const_quotient, const_rest = divmod(self.const, size)
        elif not _is_zero(self.const):
            return None
        if isinstance(size, int) and isinstance(reach, int):
            if reach + const_rest >= size:
                return None
        elif not (isinstance(const_rest, int) and const_rest == 0 and (not rest or reach == size - 1)):
            return None
        return Index(tuple(quotient), const_quotient), Index(tuple(rest), const_rest)

    def substitute(self, replace) -> Index:
        """Each axis a becomes the Index replace(a) (or stays, for None); opaque terms are rebuilt."""
        result = Index((), self.const)
        for atom, coefficient in self.terms:
            result = result + replace(atom) * coefficient
        return result

    def __eq__(self, other) -> bool:
        return self is other or (
            other.__class__ is Index and self.terms == other.terms and self.const == other.const
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.terms, self.const))
            return self._hash

    def __repr__(self) -> str:
        parts = [f"{c}*{atom!r}" if not _is_one(c) else repr(atom) for atom, c in self.terms]
        if not parts or not _is_zero(self.const):
            parts.append(str(self.const))
        return " + ".join(parts)


ZERO = Index()


def constant(value) -> Index:
    return Index((), value)


def linearize(index: tuple[Index, ...], shape: tuple) -> Index:
    """The C-order offset of a multi-index."""
    offset, stride = ZERO, 1
    for position, extent in zip(reversed(index), reversed(shape)):
        if not _is_one(extent):
            offset = offset + position * stride
        stride = stride * extent
    return offset


def delinearize(offset: Index, shape: tuple) -> tuple[Index, ...]:
    """The multi-index of a C-order offset."""
    if any(isinstance(extent, int) and not extent for extent in shape):
        return (ZERO,) * len(shape)  # there is no element
    index = []
    for extent in reversed(shape[1:]):
        index.append(offset.mod(extent))
        offset = offset.floordiv(extent)
    return tuple(reversed([*index, offset] if shape else index))


def _atom_axes(atom) -> frozenset:
    return atom.expr.axes if isinstance(atom, Dynamic) else atom.index.axes()


def _sorted_terms(terms: tuple) -> tuple:
    return tuple(sorted(terms, key=lambda term: term[0].serial))


def _is_zero(value) -> bool:
    return isinstance(value, int) and value == 0


def _is_one(value) -> bool:
    return isinstance(value, int) and value == 1


def _join_quotient(terms: tuple) -> Index | None:
    """The sum of the terms when some are `(a // n) * n + a % n`, which is `a`: a reshape and back again."""
    for remainder, factor in terms:
        if remainder.__class__ is not Mod:
            continue
        for quotient, coefficient in terms:
            if quotient.__class__ is FloorDiv and (quotient.index, quotient.size) == (
                    remainder.index, remainder.size) and coefficient == factor * remainder.size:
                rest = tuple(term for term in terms if term[0] not in (quotient, remainder))
                return Index(rest) + remainder.index * factor
    return None


def _divide_exactly(coefficient, size):
    if isinstance(coefficient, int) and isinstance(size, int):
        return coefficient // size if size and coefficient % size == 0 else None
    if coefficient == size:
        return 1
    return None
