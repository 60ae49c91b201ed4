"""Ranges of numbers, how the elementwise primitives compute with them, and how counters of loops change.

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
from jitcore.core import algebra
from jitcore.core.algebra import COMPARISONS, Interval as Range, add, meet
from jitcore.core.jaxpr import Equation, Literal, ShapedArray


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
    return None if one is None or other is None else algebra.join(one, other)


def widen(old: Range | None, new: Range | None, aval: ShapedArray) -> Range | None:
    """A range that holds both and soon does not change any more."""
    joined, whole = join(old, new), full_range(aval)
    return joined if joined is None or joined == old else whole and algebra.widen(old, new, whole)


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
    return functools.reduce(join, ranges) if ranges else whole


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
def _of_ints(rule: Callable) -> Callable:
    return lambda x, y: rule(x, y) if isinstance(x[0], int) else None


def _shift_right(x: Range, y: Range) -> Range | None:
    return None if y[0] < 0 or y[1] > 63 else algebra.floordiv(x, (1 << y[0], 1 << y[1]))


def _and(x: Range, y: Range) -> Range | None:
    highs = [high for low, high in (x, y) if low >= 0]
    return (0, min(highs)) if highs else None


def _compare(name: str) -> Callable:
    def rule(x: Range, y: Range) -> Range:
        known = algebra.compare(name, x, y)
        return (0, 1) if known is None else (int(known), int(known))

    return rule


_RULES: dict[str, Callable] = {
    "add": algebra.add, "sub": algebra.subtract, "mul": algebra.multiply, "neg": algebra.negate,
    "abs": algebra.absolute, "div": _of_ints(algebra.divide), "rem": _of_ints(algebra.remainder),
    "max": algebra.maximum, "min": algebra.minimum,
    "clamp": lambda low, x, high: algebra.minimum(algebra.maximum(low, x), high),
    "shift_right_arithmetic": _shift_right, "and": _and, "or": lambda x, y: None, "not": lambda x: None,
    "convert_element_type": lambda x: x, "cast": lambda x: x,
    **{name: _compare(name) for name in COMPARISONS},
}
_BOOL_RULES: dict[str, Callable] = {
    "and": algebra.minimum, "or": algebra.maximum, "not": lambda x: algebra.subtract((1, 1), x)}


# -- counters of loops -----------------------------------------------------------------------------------
# Rounds after which a loop's carry is taken to be anything: a guard of what compiling takes.
MAX_ROUNDS = 8


def step_of_carry(scope, argument: int, output: int) -> tuple | None:
    """By how much a round changes a carry, at least and at most."""
    atom, var = scope.closed.jaxpr.outvars[output], scope.closed.jaxpr.invars[argument]
    if isinstance(atom, Literal) or atom not in scope.steps or scope.steps[atom][0] is not var:
        return None
    return scope.steps[atom][1]


def range_after(start: Range | None, step: tuple | None, rounds: int, aval) -> Range | None:
    """The range of a counter in the rounds up to one; None where it may wrap around."""
    if start is None or step is None or aval.dtype.kind not in "iu":
        return None
    found = add(start, (min(0, step[0] * rounds), max(0, step[1] * rounds)))
    return found if meet(found, full_range(aval)) == found else None


def widen_after(number: int, old: Range | None, new: Range | None, step: tuple | None, aval) -> Range | None:
    """What a range that a round made larger is taken to be: twice, of what is no counter, both together, as
    remainders and choices soon have all the values that they can have."""
    if number < 2 and step is None:
        return join(old, new)
    return widen(old, new, aval) if number < MAX_ROUNDS // 2 else full_range(aval)
