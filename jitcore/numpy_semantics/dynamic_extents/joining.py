"""Arrays of several extents as one value: what a loop carries whose body makes an array shorter, and what a
program returns.

In: two arrays that a variable may hold. Out: how to put both together alike: the same items, whose numbers
and masks are traced. Of one array: an array of the largest extents that are possible, in which the elements
come first along each axis, and the extents, by which the caller slices it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitcore import lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents.align import adapt, list_items
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Form, Number

Maker = Callable[[Item], Item]


def join_structures(one: Any, other: Any) -> Callable[[Any], PaddedArray] | None:
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

    def convert(value: NDArray) -> PaddedArray:
        items = [make(item) for make, item in zip(makers, list_items(value))]
        return PaddedArray(new_array(adapt(value, items).read()), items)

    return convert


def _join_items(one: Item, other: Item) -> Maker | None:
    if one.structure() == other.structure() and not (isinstance(one, Pick) and not one.is_same(other)):
        return lambda item: item
    # Elements of a mask are counted where they are converted: here they may be those of another trace.
    ends = zip(_find_ends(one), _find_ends(other))
    if one.step != other.step:
        return None
    capacity = max(one.capacity, other.capacity)
    is_fixed = [low is not None and low == high for low, high in ends]

    def make(item: Item) -> Span:
        span = item.as_span()  # what a mask picks goes side by side: rounds to come run over it only
        numbers = zip((span.low, span.size), is_fixed)
        low, size = (number if fixed else _as_number(number) for number, fixed in numbers)
        return Span(capacity, low, size, span.step)

    return make


def _find_ends(item: Item) -> tuple:
    """Where the elements begin, and how many there are: ints, or None for what is traced."""
    if isinstance(item, Pick):
        return 0, None
    span = item.as_span()
    return tuple(None if isinstance(end, Number) else end for end in (span.low, span.size))


def _as_number(number: Any) -> Number:
    if isinstance(number, Number):
        return number
    return Number(int, lax.full((), number, "int64"), Form((), number), (number, number))


def pack(array: PaddedArray) -> tuple[Array, tuple]:
    """(values, extents), ints or Numbers: `values[tuple(slice(n) for n in extents)]` are the elements."""
    items: list[Item] = [item if item.is_whole else item.front() for item in array.items]
    return adapt(array, items).read(), array.shape


def unpack(values: Any, extents: tuple) -> Any:
    """The elements, given NumPy's array and ints."""
    return values[tuple(slice(int(extent)) for extent in extents)].copy()
