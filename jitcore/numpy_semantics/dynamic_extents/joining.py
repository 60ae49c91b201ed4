"""Arrays of several extents as one value: what a loop carries whose body makes an array shorter.

In: two arrays that a variable may hold. Out: how to put both together alike: the same items, whose numbers
and masks are traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitcore import lax
from jitcore.numpy_semantics.dynamic_extents.align import adapt_raw, find_frame, list_items
from jitcore.numpy_semantics.dynamic_extents.array import PartialArray
from jitcore.numpy_semantics.dynamic_extents.moving import as_span
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span
from jitcore.numpy_semantics.values.forms import Form
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number

Maker = Callable[[Item], Item]


def join_structures(one: Any, other: Any) -> Callable[[Any], PartialArray] | None:
    """What gives either of two arrays, or of values that stand for them, a common structure; None where there
    is none."""
    if not isinstance(one, NDArray) or not isinstance(other, NDArray) or one.dtype != other.dtype:
        return None
    pairs = list(zip(list_items(one), list_items(other)))
    if one.ndim != other.ndim:
        return None
    makers = [_join_items(*pair) for pair in pairs]
    if not all(makers):
        return None

    def convert(value: NDArray) -> PartialArray:
        own = list_items(value)
        items = [make(item) for make, item in zip(makers, own)]
        return PartialArray(new_array(adapt_raw(find_frame(value).read(), own, items)), items)

    return convert


def _join_items(one: Item, other: Item) -> Maker | None:
    if one.structure() == other.structure() and not (isinstance(one, Pick) and not one.is_same(other)):
        return lambda item: item
    # Elements of a mask are counted where they are converted: here they may be those of another trace.
    ends, steps = zip(_find_ends(one), _find_ends(other)), {_find_step(one), _find_step(other)}
    if len(steps) > 1:
        return None
    capacity = max(math.prod(item.shape) for item in (one, other))
    is_fixed = [_is_same_int(*pair) for pair in ends]

    def make(item: Item) -> Span:
        span = _to_first(item)
        low, size = (
            number if fixed else _as_number(number) for number, fixed in zip((span.low, span.size), is_fixed)
        )
        return Span(capacity, low, size, span.step)

    return make


def _find_ends(item: Item) -> tuple:
    """Where the elements begin, and how many there are: ints, or None for what is traced."""
    if isinstance(item, Pick):
        return 0, None
    span = as_span(item)
    return tuple(None if isinstance(end, Number) else end for end in (span.low, span.size))


def _find_step(item: Item) -> int:
    return item.step if isinstance(item, Span) else 1


def _is_same_int(one: int | None, other: int | None) -> bool:
    return one is not None and one == other


def _as_number(number: Any) -> Number:
    if isinstance(number, Number):
        return number
    return Number(int, lax.full((), number, "int64"), Form(number, {}), (number, number))


def _to_first(item: Item) -> Span:
    """What a mask picks goes side by side, so that rounds to come run over these elements only."""
    return item.as_span() if isinstance(item, Pick) else as_span(item)
