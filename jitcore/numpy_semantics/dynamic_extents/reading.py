"""Views of arrays where extents are traced: of padded arrays, and by slices and masks that make padded
ones.

In: an array and an index. Out: a view of it. Picked elements keep their places, or lie one after another in a
copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.numpy.indexing.plan import expand_ellipsis
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.align import adapt, find_frame, list_items, require_equal
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray, wrap
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span, Whole, find_axes, join_masks
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.items import NUMPY_RULES, normalize_array
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number, is_at_most
from jitcore.numpy_semantics.values.promotion import as_operand, to_raw


# -- kinds of entries ---------------------------------------------------------------------------------------
def is_mask(entry: Any) -> bool:
    return isinstance(entry, (NDArray, np.ndarray)) and entry.dtype.kind == "b" and entry.ndim > 0


def is_integer_array(entry: Any) -> bool:
    return isinstance(entry, (NDArray, np.ndarray)) and not is_mask(entry)


def needs_numbers(entry: Any) -> bool:
    """Whether an entry says which elements by number."""
    if isinstance(entry, slice):
        return not (entry.start is None and entry.stop is None and entry.step is None)
    return entry is not None and not is_mask(entry)


def expand_index(array: NDArray, index: Any) -> list:
    """One entry for each axis, and None for new ones: without an ellipsis. A mask stands for its axes."""
    entries = list(map(normalize_array, index if isinstance(index, tuple) else (index,)))
    entries = expand_ellipsis(entries, array.ndim, NUMPY_RULES.too_many)
    return [entry for entry in entries if entry is not Ellipsis]


# -- views --------------------------------------------------------------------------------------------------
class View:
    """The index of the frame and the items that an index of an array amounts to."""

    def __init__(self):
        self.index: list[Any] = []
        self.items: list[Item] = []

    def add(self, index: Sequence, item: Item | None = None) -> None:
        self.index += index
        if item is not None:
            self.items.append(item)


def view_item(array: NDArray, entries: Sequence) -> Any:
    """The view of an array by integers, slices, new axes and masks; picked elements keep their places."""
    view = plan_view(array, entries)
    return wrap(find_frame(array)[tuple(view.index)], view.items)


def plan_view(array: NDArray, entries: Sequence) -> View:
    own = list_items(array)
    view, place = View(), 0
    for entry in entries:
        if entry is None:
            view.add([None], Whole(1))
            continue
        count = entry.ndim if is_mask(entry) else 1
        items, place = own[place : place + count], place + count
        if is_mask(entry):
            _view_mask(view, items, entry)
        elif isinstance(entry, slice):
            _view_slice(view, items[0], entry)
        else:
            _view_integer(view, items[0], entry)
    return view


def _view_slice(view: View, item: Item, entry: slice) -> None:
    if not needs_numbers(entry):
        view.add([slice(None)] * len(item.shape), item)
        return
    if isinstance(item, Pick):
        raise not_traceable("a slice of the elements that a mask picks, as a view")
    start, size, step = extents.resolve_slice(entry, item.size)
    if isinstance(item, Span):
        view.add([slice(None)], item.slice(start, size, step))
    elif type(start) is Number and type(size) is not Number and step == 1:
        view.add([slice(start, start + size)], Whole(size))
    elif type(start) is Number or type(size) is Number:
        view.add([slice(None)], Span(item.size, start, size, step))
    else:
        view.add([entry], Whole(size))


def _view_integer(view: View, item: Item, entry: Any) -> None:
    if item.is_whole:
        view.add([entry])
        return
    if isinstance(item, Pick):
        raise not_traceable("one of the elements that a mask picks, as a view")
    view.add([item.place_of(check_number(entry, item.size))])


def check_number(entry: Any, size: Any) -> Any:
    """The number of an element, counted from the front; that it exists is checked when the program runs."""
    number = extents.as_index(entry)
    error = IndexError("index is out of bounds for an axis whose extent is traced")
    if is_at_most(number, -1):
        number = number + size
    elif not is_at_most(0, number):
        raw = extents.to_array(number)
        raw = lax.select(lax.lt(raw, np.int64(0)), lax.add(raw, extents.to_array(size)), raw)
        number = Number(int, raw)
    if not is_at_most(0, number):
        extents.fail(lax.lt(extents.to_array(number), np.int64(0)), error)
    if not is_at_most(number + 1, size):
        extents.fail(lax.ge(extents.to_array(number), extents.to_array(size)), error)
    return number


def _view_mask(view: View, items: Sequence[Item], entry: Any) -> None:
    """A mask over several axes makes one item of them."""
    shape = tuple(extent for item in items for extent in item.shape)
    for item, own in zip(items, list_items(entry)):
        if not own.is_same(item):
            require_equal(own.size, item.size)
    raw = adapt(entry, items).read() if isinstance(entry, NDArray) else lax.asarray(entry)
    raw = lax.broadcast_in_dim(raw, shape, range(len(shape)))
    inside = join_masks(items, find_axes(items), shape)
    view.add([slice(None)] * len(shape), Pick(raw if inside is None else lax.bitwise_and(inside, raw)))


# -- copies in other frames ---------------------------------------------------------------------------------
def has_picks(array: Any) -> bool:
    return isinstance(array, PaddedArray) and any(isinstance(item, Pick) for item in array.items)


def compact_array(array: Any) -> Any:
    """An array without masks, which become counts: a copy whose elements lie one after another."""
    if not has_picks(array):
        return array
    items = [item.front() if isinstance(item, Pick) else item for item in array.items]
    return PaddedArray(adapt(array, items), items)


def runs_backwards(array: Any) -> bool:
    """Whether elements lie in another order in the frame."""
    return isinstance(array, PaddedArray) and any(item.step < 0 for item in array.items)


def move_forward(array: Any) -> Any:
    """The same elements in frames where they lie in their order: a copy where some lie backwards."""
    if not runs_backwards(array):
        return array
    items = [item.front() if isinstance(item, Span) else item for item in array.items]
    return PaddedArray(adapt(array, items), items)


def join_axes(array: Any) -> Any:
    """All elements of an operand along one axis, in the order of its axes."""
    array = as_operand(array)
    if not isinstance(array, PaddedArray):
        return (array if isinstance(array, NDArray) else new_array(to_raw(array))).ravel()
    if array.ndim == 1:
        return array
    array = move_forward(array)
    mask = join_masks(array.items, array.find_axes(), array.frame.shape)
    return array.frame.ravel() if mask is None else PaddedArray(array.frame, [Pick(mask)])


def share(array: NDArray, copy: NDArray) -> NDArray:
    """A copy that is a view for NumPy, or may be one: nobody may write to either."""
    array.mark_shared()
    copy.mark_shared()
    return copy
