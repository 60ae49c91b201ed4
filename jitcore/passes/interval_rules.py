"""Ranges of numbers, and how the elementwise primitives compute with them.

In: an equation and the ranges of its operands. Out: the range of its result. A range is (low, high), both
included, of the elements of an array of integers or bools, or of float64 that are known to be finite; None is
for any others. What an integer operation may wrap around has the whole range of its dtype.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.core.aval import ShapedArray
from jitcore.core.jaxpr import Equation, Literal

Range = tuple
COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))


def full_range(aval: ShapedArray) -> Range | None:
    """All numbers of a dtype; None where that is no range."""
    return _range_of_dtype(aval.dtype)


@functools.cache
def _range_of_dtype(dtype: np.dtype) -> Range | None:
    kind = dtypes.kind_of(dtype)
    if kind == "b":
        return 0, 1
    if kind not in ("i", "u") or dtype.kind not in "iu":
        return None
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def range_of_literal(literal: Literal) -> Range | None:
    """The number itself."""
    if literal.aval.dtype.kind in "biu":
        return int(literal.value), int(literal.value)
    if literal.aval.dtype == dtypes.float64 and math.isfinite(literal.value):
        return float(literal.value), float(literal.value)
    return None


def join(one: Range | None, other: Range | None) -> Range | None:
    """What holds both ranges."""
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def meet(one: Range, other: Range) -> Range:
    return max(one[0], other[0]), min(one[1], other[1])


def widen(old: Range | None, new: Range | None, aval: ShapedArray) -> Range | None:
    """A range that holds both and soon does not change any more: an end that moves goes to 0 or to the end of
    the dtype."""
    joined, whole = join(old, new), full_range(aval)
    if joined is None or whole is None or joined == old:
        return joined if whole is not None or joined == old else None
    low = joined[0] if joined[0] == old[0] else 0 if joined[0] >= 0 else whole[0]
    return low, joined[1] if joined[1] == old[1] else whole[1]


def compute_range(eqn: Equation, operands: list[Range | None]) -> Range | None:
    """The range of the result of an equation with one."""
    (var,), name = eqn.outvars, eqn.primitive.name
    aval, whole = var.aval, full_range(var.aval)
    if name == "iota" or name in ("argmax", "argmin"):
        return _range_of_positions(eqn, whole)
    if whole is None and aval.dtype != dtypes.float64:
        return None
    if eqn.primitive.traits.get("same_elements"):
        return operands[0] if operands and _has_elements(eqn) else whole
    if name in ("select_n", "concatenate"):
        return _join_cases(operands[1:] if name == "select_n" else operands, whole)
    rule = _RULES.get(name)
    if rule is None or None in operands:
        return whole
    if name not in COMPARISONS and name != "convert_element_type" and aval.dtype.kind == "b":
        rule = _BOOL_RULES.get(name)
    found = None if rule is None else rule(*operands)
    return _fit(found, whole, aval)


def _fit(found: Range | None, whole: Range | None, aval: ShapedArray) -> Range | None:
    if found is None:
        return whole
    if whole is None:
        low, high = float(found[0]), float(found[1])
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None
    if not all(isinstance(end, int) for end in found):
        return whole  # from floats
    return found if whole[0] <= found[0] and found[1] <= whole[1] else whole


def _join_cases(ranges: list[Range | None], whole: Range | None) -> Range | None:
    found = ranges[0] if ranges else whole
    for other in ranges[1:]:
        found = join(found, other)
    return found


def _has_elements(eqn: Equation) -> bool:
    """Whether a result is made of elements: of none, the largest is the least number of a dtype."""
    axes = eqn.params["axes"] if eqn.primitive.name in ("reduce_max", "reduce_min") else ()
    extents = [eqn.invars[0].aval.shape[axis] for axis in axes]
    return all(isinstance(extent, int) and extent > 0 for extent in extents)


def _range_of_positions(eqn: Equation, whole: Range | None) -> Range | None:
    if eqn.primitive.name == "iota":
        extent = eqn.params["shape"][eqn.params["dimension"]]
    else:
        extent = eqn.invars[0].aval.shape[eqn.params["axes"][0]]
    is_known = whole is not None and isinstance(extent, int) and 0 < extent <= whole[1]
    return (0, extent - 1) if is_known else whole


# -- rules --------------------------------------------------------------------------------------------------
def _add(x: Range, y: Range) -> Range:
    return x[0] + y[0], x[1] + y[1]


def _sub(x: Range, y: Range) -> Range:
    return x[0] - y[1], x[1] - y[0]


def _mul(x: Range, y: Range) -> Range:
    products = [a * b for a in x for b in y]
    return min(products), max(products)


def _neg(x: Range) -> Range:
    return -x[1], -x[0]


def _abs(x: Range) -> Range:
    return 0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1])), max(abs(x[0]), abs(x[1]))


def _div(x: Range, y: Range) -> Range | None:
    if not isinstance(x[0], int) or y[0] <= 0:
        return None
    quotients = [abs(a) // b * (1 if a >= 0 else -1) for a in x for b in y]
    return min(quotients), max(quotients)


def _rem(x: Range, y: Range) -> Range | None:
    """The remainder has the sign of x."""
    if not isinstance(x[0], int) or y[0] <= 0:
        return None
    if 0 <= x[0] and x[1] < y[0]:
        return x
    return max(min(x[0], 0), 1 - y[1]), min(max(x[1], 0), y[1] - 1)


def _shift_right(x: Range, y: Range) -> Range | None:
    if y[0] < 0 or y[1] > 63:
        return None
    ends = [end >> count for end in x for count in y]
    return min(ends), max(ends)


def _and(x: Range, y: Range) -> Range | None:
    highs = [high for low, high in (x, y) if low >= 0]
    return (0, min(highs)) if highs else None


def _compare(is_true: Callable[[Range, Range], bool], is_false: Callable[[Range, Range], bool]) -> Callable:
    return lambda x, y: (int(is_true(x, y)), int(not is_false(x, y)))


def _is_below(x: Range, y: Range) -> bool:
    return x[1] < y[0]


def _is_at_most(x: Range, y: Range) -> bool:
    return x[1] <= y[0]


def _is_above(x: Range, y: Range) -> bool:
    return x[0] > y[1]


def _is_at_least(x: Range, y: Range) -> bool:
    return x[0] >= y[1]


def _is_one(x: Range, y: Range) -> bool:
    return x[0] == x[1] == y[0] == y[1]


def _is_apart(x: Range, y: Range) -> bool:
    return _is_below(x, y) or _is_above(x, y)


_RULES: dict[str, Callable] = {
    "add": _add, "sub": _sub, "mul": _mul, "neg": _neg, "abs": _abs, "div": _div, "rem": _rem,
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "clamp": lambda low, x, high: (min(max(low[0], x[0]), high[0]), min(max(low[1], x[1]), high[1])),
    "shift_right_arithmetic": _shift_right, "and": _and, "or": lambda x, y: None, "not": lambda x: None,
    "convert_element_type": lambda x: x, "cast": lambda x: x,
    "lt": _compare(_is_below, _is_at_least), "le": _compare(_is_at_most, _is_above),
    "gt": _compare(_is_above, _is_at_most), "ge": _compare(_is_at_least, _is_below),
    "eq": _compare(_is_one, _is_apart), "ne": _compare(_is_apart, _is_one),
}
_BOOL_RULES: dict[str, Callable] = {
    "and": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "or": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "not": lambda x: (1 - x[1], 1 - x[0]),
}
