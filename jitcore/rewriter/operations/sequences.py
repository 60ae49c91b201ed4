"""Comparisons of tuples and lists with traced elements: by the first two that differ.

In: two sequences, and how elements are compared. Out: a bool, or a traced one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.rewriter.control_flow.raising import negate
from jitcore.rewriter.handles import current
from jitcore.rewriter.values import as_predicate, is_traced, wrap_predicate

_SEQUENCES = (tuple, list)


def holds_traced(value: Any) -> bool:
    """Whether a sequence has a traced element, at any depth."""
    return any(holds_traced(part) if type(part) in _SEQUENCES else is_traced(part) for part in value)


def compare_sequences(name: str, one: Sequence, other: Sequence, compare: Callable) -> Any:
    """Args: name: of the comparison, "lt"; compare: (name, x, y) does the same for elements."""
    is_order = name not in ("eq", "ne")
    if len(one) != len(other) and not is_order:
        return name == "ne"
    result = getattr(operator, name)(len(one), len(other))
    for x, y in reversed(list(zip(one, other))):
        is_equal = True if x is y else compare("eq", x, y)
        if is_equal is not True:
            result = _choose(is_equal, result, compare(name, x, y) if is_order else name == "ne")
    return result


def _choose(condition: Any, one: Any, other: Any) -> Any:
    """`one if condition else other` of truths, which may be of two types."""
    if not is_traced(condition):
        return one if condition else other
    holds = as_predicate(condition)
    if current.mode is not None:
        return current.mode.select(holds, one, other)
    one, other = (as_predicate(x) if is_traced(x) else bool(x) for x in (one, other))
    return wrap_predicate(holds & one | negate(holds) & other)
