"""Python numbers whose value is traced: bool, int (64 bits), float, complex.

In: traced scalars. Out: `Number`s with Python's arithmetic, which is in `arithmetic.py`. An int is a linear
form of traced int64 scalars (terms) with an interval where one is known, so that equality is decidable; what
is known altogether is an ordinary int or bool again. A term's bounds are numbers, and forms in other terms:
`j` of `range(i)` is below `i`, so that `i - j - 1 >= 0` is known although neither is.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core import algebra
from jitcore.core.algebra import UNKNOWN, Affine, Interval
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import context
from jitcore.numpy_semantics.errors import needs_identity, needs_value, not_traceable
from jitcore.numpy_semantics.values.equality import is_visible
from jitcore.numpy_semantics.values.operators import WithoutValue
from jitcore.process.effort import spend
from jitcore.rewriter.handles import CompoundHandle, ConflictError, Handle, Kind, LeafType

# -- linear forms -------------------------------------------------------------------------------------------
#: How far bounds are followed that are forms themselves, and how many forms are looked at for one of them.
_MAX_DEPTH, _MAX_FORMS = 4, 100
#: Steps of looking at one.
_FORM = 50


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

    def minimum(self) -> float:
        """A bound from below."""
        return self._find_minimum(_MAX_DEPTH, itertools.count())

    def _find_minimum(self, depth: int, forms: Iterator[int]) -> float:
        """forms: counts those that are looked at."""
        low: float = self.const
        for term, coefficient in self.terms:
            low += limit(coefficient * (term.low if coefficient > 0 else term.high))
        for term, coefficient in self.terms if depth else ():
            bound = term.above if coefficient > 0 else term.below
            if bound is not None and not bound.coefficient(term) and next(forms) < _MAX_FORMS:
                spend(_FORM)
                substituted = self.without(term) + bound * coefficient
                low = max(low, substituted._find_minimum(depth - 1, forms))
        return low

    def maximum(self) -> float:
        return -(-self).minimum()

    def interval(self) -> Interval:
        return self.minimum(), self.maximum()


def limit(bound: float) -> float:
    """A bound; those beyond 2**62 count as unknown."""
    return bound if abs(bound) < 2**62 else math.copysign(math.inf, bound)


# -- numbers ------------------------------------------------------------------------------------------------
#: Dtypes of traced Python numbers, in the order in which arithmetic goes from one to the next.
NUMBER_DTYPES = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
RANKS = {kind: rank for rank, kind in enumerate(NUMBER_DTYPES)}


#: Of ints that may be anywhere in 64 bits: sums with them are checked. All others are below `LARGEST_INT` in
#: size, or were at some time, and sums with small numbers, such as counts, are not checked: it would take too
#: many of them to leave 64 bits.
LARGE: Interval = (-(2**63), 2**63 - 1)
LARGEST_INT = 2**62


def is_large(interval: Interval) -> bool:
    """Whether an int may have any size, by the bounds that are known of it: infinite ones say nothing."""
    return any(math.isfinite(bound) and abs(bound) > LARGEST_INT for bound in interval)


class NumberKind(Kind):
    """What a carried Python number is. Numbers of two kinds are carried with their kind (`mixed`).
    is_large: of an int, see `LARGE`."""

    __slots__ = ("python_type", "is_large")

    def __init__(self, python_type: type, is_large: bool = False):
        self.python_type, self.is_large = python_type, is_large

    def __eq__(self, other) -> bool:
        return (type(other) is NumberKind and other.python_type is self.python_type
                and other.is_large == self.is_large)

    def __hash__(self) -> int:
        return hash((self.python_type, self.is_large))

    def __repr__(self) -> str:
        return f"Python {self.python_type.__name__}"

    def join(self, aval: ShapedArray, other: LeafType) -> LeafType:
        if type(other.kind) is NumberKind:
            if self.python_type is not other.kind.python_type:
                raise ConflictError(f"a {self!r} and a {other.kind!r}")
            return number_type(self.python_type, self.is_large or other.kind.is_large)
        if other.kind is None or type(other.kind).__name__ != "ScalarKind":
            raise ConflictError(f"a {self!r} and {other.kind!r}")
        return other.kind.join(other.aval, LeafType(aval, self))

    def wrap(self, raw: Array, aval: ShapedArray) -> Number:
        return Number(self.python_type, raw, interval=LARGE if self.is_large else UNKNOWN)


def number_type(python_type: type, is_large: bool = False) -> LeafType:
    return LeafType(ShapedArray((), NUMBER_DTYPES[python_type]), NumberKind(python_type, is_large))


class Number(WithoutValue, Handle):
    """A traced Python number; immutable.

    Attributes:
        python_type: bool, int, float or complex; form, low, high: of an int; bounds may be infinite."""

    __slots__ = ("python_type", "form", "low", "high", "_raw")
    is_padded = False
    __array_priority__ = 200

    def __init__(self, python_type: type, raw: Array | None, form: Form | None = None,
                 interval: Interval = UNKNOWN):
        self.python_type, self._raw, self.form = python_type, raw, form
        self.low, self.high = interval
        if python_type is int and form is None:
            self.form = Form.of(Term(raw, *interval))

    # -- as a handle ----------------------------------------------------------------------------------------
    @property
    def dtype(self) -> np.dtype:
        return NUMBER_DTYPES[self.python_type]

    @property
    def defers(self) -> bool:
        return True

    @property
    def leaf_type(self) -> LeafType:
        return number_type(self.python_type, self.python_type is int and is_large((self.low, self.high)))

    def read(self) -> Array:
        """Its value: bool, int64, float64 or complex128, without axes."""
        if self._raw is None or self.form is not None and not is_visible(self._raw):
            self._raw = _evaluate(self.form)
        return self._raw

    def is_same(self, other: Handle) -> bool:
        if type(other) is not Number or other.python_type is not self.python_type:
            return False
        return self.form.key == other.form.key if self.form is not None else self._raw is other._raw

    def is_object(self, other: Any) -> Any:
        """Of bools, and of ints that Python keeps, there is one object for each value."""
        if isinstance(other, CompoundHandle):  # of several types
            return other.is_object(self)
        other_type = other.python_type if type(other) is Number else type(other)
        if self is other or other_type is not self.python_type:
            return self is other
        if self.python_type is bool:
            return lax.eq(self.read(), other.read() if type(other) is Number else np.bool_(other))
        if type(other) is Number and self.is_same(other):
            return True
        if self.python_type is int:
            raise needs_value(self, "`is`")
        raise needs_identity(self.python_type)

    def is_made_in(self, trace) -> bool:
        if self.form is None:
            return getattr(self._raw, "owner", None) is trace
        return any(getattr(term.raw, "owner", None) is trace for term, _ in self.form.terms)

    def as_predicate(self):
        return self.read() if self.python_type is bool else lax.ne(self.read(), self.dtype.type(0))

    def __repr__(self) -> str:
        return f"Traced<{self.python_type.__name__}>"

    # -- attributes of numbers ------------------------------------------------------------------------------
    @property
    def real(self):
        if self.python_type is complex:
            return Number(float, lax.real(self.read()))
        return +self

    @property
    def imag(self):
        return Number(float, lax.imag(self.read())) if self.python_type is complex else self.plain_type(0)

    @property
    def plain_type(self) -> type:
        """The type of arithmetic with it: a bool counts as an int."""
        return int if self.python_type is bool else self.python_type

    def conjugate(self):
        return Number(complex, lax.conj(self.read())) if self.python_type is complex else +self

    def is_integer(self):
        if self.python_type is not float:
            return True
        raw = self.read()
        inside = lax.lt(lax.abs(raw), np.float64(math.inf))
        return Number(bool, lax.bitwise_and(lax.eq(lax.floor(raw), raw), inside))

    def __getattr__(self, name: str):
        if hasattr(self.python_type, name):
            raise not_traceable(f"{self.python_type.__name__}.{name} of a traced number")
        raise AttributeError(f"'{self.python_type.__name__}' object has no attribute '{name}'")


def _evaluate(form: Form) -> Array:
    """The form's value, recorded under the current trace."""
    total: Any = None
    for term, coefficient in sorted(form.terms, key=lambda part: part[1] < 0):
        if total is None:
            total = term.raw if coefficient == 1 else lax.mul(term.raw, np.int64(coefficient))
        elif abs(coefficient) == 1:
            total = (lax.add if coefficient == 1 else lax.sub)(total, term.raw)
        else:
            total = lax.add(total, lax.mul(term.raw, np.int64(coefficient)))
    if form.const > 0:
        return lax.add(total, np.int64(form.const))
    return lax.sub(total, np.int64(-form.const)) if form.const < 0 else total


def make_int(form: Form, interval: Interval = UNKNOWN, raw: Array | None = None) -> Number | int:
    """An int of this form, of which an interval is known besides what the form says."""
    if not form.terms:
        return form.const
    low, high = algebra.meet(interval, form.interval())
    if low == high:
        return int(low)
    return Number(int, raw, form, (low, high))


def bound_int(number: Any, low: Any = None, high: Any = None) -> Any:
    """An int of which it is known that low <= number <= high, each an int, a traced int or None."""
    if type(number) is not Number or number.python_type is not int:
        return number
    least = number.low if low is None else max(number.low, interval_of(low)[0])
    most = number.high if high is None else min(number.high, interval_of(high)[1])
    if least == most:
        return int(least)
    above, below = (form_of(bound) if type(bound) is Number else None for bound in (low, high))
    form = _bound_term(number.form, (least, most), above, below)
    if form is not None:
        return make_int(form, (least, most))
    raw = number.read()
    return Number(int, raw, Form.of(Term(raw, least, most, above, below)), (least, most))


def follow_int(number: Any) -> Any:
    """number + 1, where that is known to fit 64 bits."""
    low, high = interval_of(number)
    return make_int(form_of(number) + 1, (low + 1, high + 1 if high < LARGEST_INT else math.inf))


def _bound_term(form: Form, interval: Interval, above: Form | None, below: Form | None) -> Form | None:
    """A form between bounds, in which the one term that the current trace has computed is bounded."""
    for term, coefficient in form.terms:
        if abs(coefficient) == 1 and getattr(term.raw, "owner", None) is context.trace and not term.precision:
            rest = form.without(term)
            bounds = algebra.subtract(*(interval, rest.interval())[::coefficient])
            outer = (above, below) if coefficient == 1 else (below, above)
            ends = [None if bound is None else (bound - rest) * coefficient for bound in outer]
            if not rest.terms or any(end is not None for end in ends):
                ends = [(Form((), int(last)) - rest) * coefficient
                        if end is None and rest.terms and math.isfinite(last) else end
                        for end, last in zip(ends, interval[::coefficient])]
            bounded = Term(term.raw, *map(limit, bounds), *ends)
            return Form(tuple((bounded if one is term else one, c) for one, c in form.terms), form.const)
    return None


def form_of(value: Any) -> Form:
    """The form of a plain or traced int or bool."""
    if type(value) is not Number:
        return Form((), operator.index(value))
    return as_int(value).form


def interval_of(value: Any) -> Interval:
    """Bounds of a plain or traced int or bool."""
    if type(value) is not Number:
        value = operator.index(value)
        return value, value
    return (0, 1) if value.python_type is bool else (value.low, value.high)


def as_int(value: Any) -> Any:
    """A plain or traced int or bool as an int."""
    if type(value) is not Number:
        return int(value)
    if value.python_type is int:
        return value
    raw = lax.convert_element_type(value.read(), dtypes.int64)
    return Number(int, raw, interval=(0, 1))


def is_at_most(one: Any, other: Any) -> bool:
    """Whether one <= other is known of two ints."""
    return interval_of(other)[0] >= interval_of(one)[1] or (form_of(other) - form_of(one)).minimum() >= 0
