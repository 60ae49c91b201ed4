"""Items of arrays where extents are traced: of partial arrays, and slices and masks that make partial
ones.

In: an array and an index. Out: a view of it (`view_item`), or a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.numpy.indexing.plan import expand_ellipsis
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.align import adapt, find_frame, list_items, require_equal
from jitcore.numpy_semantics.dynamic_extents.array import PartialArray
from jitcore.numpy_semantics.dynamic_extents.elementwise import wrap
from jitcore.numpy_semantics.dynamic_extents.moving import compact, move_forward
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span, Whole, join_masks
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.items import NUMPY_RULES, normalize_array
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number, is_at_most


def read_item(array: NDArray, index: Any) -> Any:
    """`array[index]`: a view for integers, slices and new axes, a copy for masks and integer arrays.

    Raises: IndexError as NumPy; NotTraceable for combinations that need more than one frame."""
    entries = expand_index(array, index)
    if any(is_integer_array(entry) for entry in entries):
        from jitcore.numpy_semantics.dynamic_extents.listing import Listing

        return Listing(compact_array(array) if has_picks(array) else array, entries).read()
    if has_picks(array) and any(map(_needs_numbers, entries)):
        return _read_numbered(array, entries)
    has_mask = any(is_mask(entry) for entry in entries)
    view = view_item(move_forward(array) if has_mask else array, entries)
    if has_mask:
        return PartialArray(view.frame.copy(), view.items) if isinstance(view, PartialArray) else view.copy()
    return view


def _needs_numbers(entry: Any) -> bool:
    """Whether an entry of an index says which elements by number."""
    if isinstance(entry, slice):
        return not (entry.start is None and entry.stop is None and entry.step is None)
    return entry is not None and not is_mask(entry)


def _read_numbered(array: PartialArray, entries: Sequence) -> Any:
    """Items of an array that has elements of a mask: of a copy in which these are numbered."""
    copy = compact_array(array)
    found = view_item(copy, entries)
    if isinstance(found, NDArray):  # a view, for NumPy: a store could not be seen through both
        array.mark_shared()
        copy.mark_shared()
    return found


# -- kinds of entries ---------------------------------------------------------------------------------------
def is_array(entry: Any) -> bool:
    return isinstance(entry, (NDArray, np.ndarray, list))


def is_mask(entry: Any) -> bool:
    return is_array(entry) and find_dtype(entry).kind == "b" and (isinstance(entry, list) or entry.ndim > 0)


def is_integer_array(entry: Any) -> bool:
    return is_array(entry) and not is_mask(entry)


def find_dtype(entry: Any) -> np.dtype:
    return np.asarray(entry).dtype if isinstance(entry, list) else entry.dtype


def expand_index(array: NDArray, index: Any) -> list:
    """One entry for each axis, and None for new ones: without an ellipsis. A mask stands for its axes."""
    entries = list(map(normalize_array, index if isinstance(index, tuple) else (index,)))
    entries = expand_ellipsis(entries, array.ndim, NUMPY_RULES.too_many)
    return [entry for entry in entries if entry is not Ellipsis]


# -- views --------------------------------------------------------------------------------------------------
class _View:
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
    own = list_items(array)
    view, place = _View(), 0
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
    frame = find_frame(array)[tuple(view.index)]
    return wrap(frame, view.items)


def _view_slice(view: _View, item: Item, entry: slice) -> None:
    if not _needs_numbers(entry):
        view.add([slice(None)] * len(item.shape), item)
        return
    if isinstance(item, Pick):
        raise not_traceable("a slice of the elements that a mask picks, as a view")
    start, size, step = extents.resolve_slice(entry, item.size)
    if isinstance(item, Span):
        view.add([slice(None)], item.slice(start, size, step))
    elif type(size) is Number:
        view.add([slice(None)], Span(item.size, start, size, step))
    elif type(start) is Number and step == 1:
        view.add([slice(start, start + size)], Whole(size))
    elif type(start) is Number:
        view.add([slice(None)], Span(item.size, start, size, step))
    else:
        view.add([entry], Whole(size))


def _view_integer(view: _View, item: Item, entry: Any) -> None:
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


def _view_mask(view: _View, items: Sequence[Item], entry: Any) -> None:
    """A mask over several axes makes one item of them."""
    shape = tuple(extent for item in items for extent in item.shape)
    for item, own in zip(items, list_items(entry)):
        if not own.is_same(item):
            require_equal(own.size, item.size)
    raw = adapt(entry, items).read() if isinstance(entry, NDArray) else lax.asarray(entry)
    axes, axis = [], 0
    for item in items:
        axes.append(axis)
        axis += len(item.shape)
    raw = lax.broadcast_in_dim(raw, shape, range(len(shape)))
    inside = join_masks(list(items), axes, shape)
    view.add([slice(None)] * len(shape), Pick(raw if inside is None else lax.bitwise_and(inside, raw)))


def compact_array(array: PartialArray) -> PartialArray:
    """A copy whose elements lie one after another: masks become counts."""
    raw, items, axis = array.frame.read(), [], 0
    for item in array.items:
        if isinstance(item, Pick):
            raw, item = compact(raw, axis, item)
        items.append(item)
        axis += len(item.shape)
    return PartialArray(new_array(raw), items)


def has_picks(array: Any) -> bool:
    return isinstance(array, PartialArray) and any(isinstance(item, Pick) for item in array.items)
