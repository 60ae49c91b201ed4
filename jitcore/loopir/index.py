"""Index arithmetic: affine forms over loop axes, with run-time sizes as coefficients.

In: axes, sizes (ints or symbolic dimensions). Out: `Index` values in normal form, so that strides can be read
off: `coefficient(axis)` is the stride, and equal forms are equal objects.
"""

from __future__ import annotations

import itertools

from jitcore.core.algebra import UNKNOWN, Affine, Interval, is_number

_axis_serial = itertools.count()


class Axis:
    """A loop variable that runs over range(extent)."""

    __slots__ = ("extent", "serial")
    exprs = ()

    def __init__(self, extent):
        self.extent = extent
        self.serial = next(_axis_serial)

    @property
    def axes(self) -> frozenset[Axis]:
        return frozenset((self,))

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

    @property
    def axes(self) -> frozenset[Axis]:
        return self.index.axes()

    @property
    def exprs(self) -> list:
        return self.index.exprs

    def of(self, index: Index) -> Index:
        """The same of another index."""
        return index.floordiv(self.size)

    def __eq__(self, other) -> bool:
        return other.__class__ is self.__class__ and self.index == other.index and self.size == other.size

    def __hash__(self) -> int:
        return hash((self.__class__, self.index, self.size))

    def __repr__(self) -> str:
        return f"({self.index!r} // {self.size})"


class Mod(FloorDiv):
    """`index % size`, where it does not simplify."""

    __slots__ = ()

    def of(self, index: Index) -> Index:
        return index.mod(self.size)

    def __repr__(self) -> str:
        return f"({self.index!r} % {self.size})"


class Dynamic:
    """An integer scalar expression used as an index."""

    __slots__ = ("expr", "serial")

    def __init__(self, expr):
        self.expr, self.serial = expr, 0

    @property
    def axes(self) -> frozenset[Axis]:
        return self.expr.axes

    @property
    def exprs(self) -> tuple:
        return (self.expr,)

    def __eq__(self, other) -> bool:
        return other.__class__ is Dynamic and self.expr is other.expr

    def __hash__(self) -> int:
        return hash((Dynamic, id(self.expr)))

    def __repr__(self) -> str:
        return f"[{self.expr!r}]"


class Index(Affine):
    """An affine form of axes and opaque terms, in the order in which these were made."""

    __slots__ = ("_axes",)

    @property
    def order(self) -> int:
        return max((atom.serial for atom, _ in self.terms), default=0)

    def axes(self) -> frozenset:
        """Every axis the index depends on, through opaque terms too."""
        try:
            return self._axes
        except AttributeError:
            self._axes = frozenset().union(*[atom.axes for atom, _ in self.terms])
            return self._axes

    @property
    def exprs(self) -> list:
        """The dynamic expressions that it reads."""
        return [expr for atom, _ in self.terms for expr in atom.exprs]

    def coefficient(self, axis: Axis):
        """The stride along an axis, or None when the axis also occurs inside an opaque term."""
        stride = 0
        for atom, coefficient in self.terms:
            if atom is axis:
                stride = coefficient
            elif not isinstance(atom, Axis) and axis in atom.axes:
                return None
        return stride

    def interval(self) -> Interval:
        """The smallest and the largest value, where all that it depends on is axes of known extents."""
        if not isinstance(self.const, (int, RunTimeSize)):
            return UNKNOWN
        low = high = int(self.const)
        for atom, step in self.terms:
            if not _is_known(atom, step):
                return UNKNOWN
            reach = step * (atom.extent - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    def _make_sum(self, terms: tuple, const, other: Index) -> Index:
        whole = _join_quotient(terms)
        if whole is not None:
            return whole + const
        return Index(tuple(sorted(terms, key=lambda term: term[0].serial)), const)

    def floordiv(self, size) -> Index:
        if is_number(size, 1):
            return self
        split = self._split(size)
        if split is not None:
            return split[0]
        return Index.of(FloorDiv(self, size))

    def mod(self, size) -> Index:
        if is_number(size, 1):
            return ZERO
        split = self._split(size)
        if split is not None:
            return split[1]
        return Index.of(Mod(self, size))

    def _split(self, size) -> tuple[Index, Index] | None:
        """(quotient, remainder) when the multiples of `size` separate from a rest known to lie in [0,
        size)."""
        quotient, rest = self.divide(size)
        if isinstance(size, int) and isinstance(self.const, int):
            reach = rest.const
            for atom, step in rest.terms:
                if not _is_known(atom, step) or step < 0:
                    return None
                reach += step * (atom.extent - 1)
            return (quotient, rest) if reach < size else None
        is_inside = not rest.terms or len(rest.terms) == 1 and _is_range(*rest.terms[0], size)
        return (quotient, rest) if is_inside and is_number(self.const, 0) else None


def _is_known(atom, step) -> bool:
    """Whether it is known how far a term goes."""
    return isinstance(atom, Axis) and isinstance(atom.extent, int) and isinstance(step, int)


def _is_range(atom, step, size) -> bool:
    """Whether a term runs over all of range(size)."""
    return isinstance(atom, Axis) and is_number(step, 1) and atom.extent == size


ZERO = Index()


def constant(value) -> Index:
    return Index((), value)


def linearize(index: tuple[Index, ...], shape: tuple) -> Index:
    """The C-order offset of a multi-index."""
    offset, stride = ZERO, 1
    for position, extent in zip(reversed(index), reversed(shape)):
        if not is_number(extent, 1):
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
