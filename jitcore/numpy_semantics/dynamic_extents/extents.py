"""Extents and places: ints, or Numbers whose forms and bounds say what is known of them.

In: ints, Numbers, slices of them. Out: the same, with terms that are known to be equal replaced by one,
and arrays of their values for masks and indices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.values import arithmetic
from jitcore.numpy_semantics.values.equality import find_first
from jitcore.numpy_semantics.values.mixed import Mixed
from jitcore.numpy_semantics.values.numbers import (Form, Number, Term, as_int, form_of, interval_of,
                                                    is_at_most, make_int)
from jitcore.rewriter.handles import Handle


def unify(number: Any) -> Any:
    """The number in terms of the first tracers with these values, so that equal extents have equal forms."""
    if type(number) is not Number or number.python_type is not int:
        return number
    form = number.form.substitute(_find_first_term)
    is_changed = any(find_first(term.raw) is not term.raw for term, _ in number.form.terms)
    return make_int(form, (number.low, number.high)) if is_changed else number


def _find_first_term(term: Term) -> Form:
    raw = find_first(term.raw)
    return Form.of(term if raw is term.raw else Term(raw, term.low, term.high, term.above, term.below))


def find_difference(one: Any, other: Any) -> int | None:
    """one - other where it is known."""
    if one is other:
        return 0
    difference = form_of(unify(one)) - form_of(unify(other))
    if not difference.terms:
        return difference.const
    low, high = difference.minimum(), difference.maximum()
    return int(low) if low == high else None


def is_equal(one: Any, other: Any) -> bool:
    """Whether two numbers are known to be equal."""
    return find_difference(one, other) == 0


def is_known(number: Any, value: int) -> bool:
    return type(number) is not Number and number == value


def is_traced(number: Any) -> bool:
    return type(number) is Number


def to_raw(number: Any):
    """A number as an operand of lax: a NumPy scalar or a tracer, int64."""
    return as_int(number).read() if isinstance(number, Handle) else dtypes.int64.type(number)


def to_array(number: Any) -> Array:
    """A number as an int64 array without axes."""
    return as_int(number).read() if isinstance(number, Handle) else lax.full((), int(number), dtypes.int64)


def count_true(mask: Array) -> Number:
    """How often a mask holds."""
    counts = lax.convert_element_type(mask, dtypes.int64)
    total = lax.reduce_sum(counts, tuple(range(mask.ndim))) if mask.ndim else counts
    return Number(int, total, interval=(0, math.prod(mask.shape)))


def find_upper_bound(number: Any) -> int | None:
    """What an extent cannot exceed, or None."""
    high = interval_of(number)[1]
    return int(high) if math.isfinite(high) else None


def find_lower_bound(number: Any) -> float:
    return interval_of(number)[0]


def fail(predicate: Any, error: BaseException) -> None:
    """Notes that Python would raise where a predicate holds, a bool array without axes."""
    arithmetic.fail(Number(bool, predicate), error)


# -- slices -------------------------------------------------------------------------------------------------
def resolve_slice(index: slice, size: Any) -> tuple[Any, Any, int]:
    """(start, number of elements, step) of a slice of an axis of this size, each bound an int or a Number.

    Raises: NotTraceable for a step that is traced."""
    step = 1 if index.step is None else index.step
    if isinstance(step, Handle):
        step = step.__index__()  # raises
    step = int(step)
    if not step:
        raise ValueError("slice step cannot be zero")
    first, last = (0, size) if step > 0 else (-1, size - 1)
    start = _resolve_bound(index.start, size, first, last, first if step > 0 else last)
    stop = _resolve_bound(index.stop, size, first, last, last if step > 0 else first)
    distance = unify(stop - start if step > 0 else start - stop)
    if abs(step) != 1:
        distance = (distance + (abs(step) - 1)) // abs(step)
    return start, clamp(distance, 0, None), step


def _resolve_bound(bound: Any, size: Any, first: Any, last: Any, default: Any) -> Any:
    if bound is None:
        return default
    bound = as_index(bound)
    if is_at_most(0, bound):
        return clamp(bound, None, last)
    if is_at_most(bound, -1):
        return clamp(bound + size, first, None)
    raw = to_array(bound)
    wrapped = lax.select(lax.lt(raw, np.int64(0)), lax.add(raw, to_array(size)), raw)
    return clamp(Number(int, wrapped), first, last)


def as_index(value: Any) -> Any:
    """What may stand in a slice, as an int or a Number. Raises: TypeError for anything else."""
    if type(value) is Number:
        if value.python_type not in (int, bool):
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        return unify(as_int(value))
    if type(value) is Mixed:
        return value.as_index()
    if isinstance(value, Handle):
        if value.dtype.kind not in "iu" or value.shape:
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        raw = lax.convert_element_type(value.read(), dtypes.int64)
        return unify(Number(int, raw))
    return int(value.__index__())


def clamp(number: Any, low: Any, high: Any) -> Any:
    """The number, or the nearest of the bounds, each an int, a Number or None."""
    if low is not None and not is_at_most(low, number):
        if is_at_most(number, low):
            return low
        raw = lax.max(to_array(number), to_array(low))
        number = unify(
            Number(int, raw, interval=(interval_of(low)[0], max(interval_of(number)[1], interval_of(low)[1])))
        )
    if high is not None and not is_at_most(number, high):
        if is_at_most(high, number):
            return high
        raw = lax.min(to_array(number), to_array(high))
        least = min(interval_of(number)[0], interval_of(high)[0])
        number = unify(Number(int, raw, interval=(least, min(interval_of(number)[1], interval_of(high)[1]))))
    return number
