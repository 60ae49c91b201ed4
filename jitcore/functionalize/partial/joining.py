"""Arrays of several extents as one value: what a loop carries whose body makes an array shorter.

In: two arrays that a variable may hold. Out: how to put both together alike: the same items, whose numbers
and masks are traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitcore import lax
from jitcore.functionalize.ndarray import NDArray, new_array
from jitcore.functionalize.numbers import Number
from jitcore.functionalize.partial.align import adapt_raw, find_frame, list_items
from jitcore.functionalize.partial.array import PartialArray
from jitcore.functionalize.partial.moving import as_span
from jitcore.functionalize.partial.spans import Item, Pick, Span

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
        # Elements that a mask picks from now on lie where they are already.
        places = [item if isinstance(item, Pick) else old for item, old in zip(items, own)]
        return PartialArray(new_array(adapt_raw(find_frame(value).read(), places, items)), items)

    return convert


def _join_items(one: Item, other: Item) -> Maker | None:
    if one.structure() == other.structure():
        return lambda item: item
    if isinstance(one, Pick) or isinstance(other, Pick):
        is_ordered = all(isinstance(item, Pick) or as_span(item).step > 0 for item in (one, other))
        return _as_pick if one.shape == other.shape and is_ordered else None
    one, other = as_span(one), as_span(other)
    if one.step != other.step:
        return None
    capacity = max(one.capacity, other.capacity)
    is_fixed = [_is_same_int(one.low, other.low), _is_same_int(one.size, other.size)]

    def make(item: Item) -> Span:
        span = as_span(item)
        low, size = (
            number if fixed else _as_number(number) for number, fixed in zip((span.low, span.size), is_fixed)
        )
        return Span(capacity, low, size, span.step)

    return make


def _is_same_int(one: Any, other: Any) -> bool:
    return not isinstance(one, Number) and not isinstance(other, Number) and one == other


def _as_number(number: Any) -> Number:
    return number if isinstance(number, Number) else Number(int, lax.full((), number, "int64"))


def _as_pick(item: Item) -> Pick:
    if isinstance(item, Pick):
        return item
    mask = item.make_mask()
    return Pick(lax.full(item.shape, True, bool) if mask is None else mask)
