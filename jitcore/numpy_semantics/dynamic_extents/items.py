"""Items of arrays where extents are traced, as Python asks for them and stores them.

In: an array, an index, values. Out: a view for integers, slices and new axes; a copy for masks and integer
arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore.numpy_semantics.dynamic_extents.align import assign, find_frame
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray
from jitcore.numpy_semantics.dynamic_extents.listing import Listing
from jitcore.numpy_semantics.dynamic_extents.reading import (
    compact_array,
    expand_index,
    has_picks,
    is_integer_array,
    is_mask,
    move_forward,
    needs_numbers,
    plan_view,
    runs_backwards,
    share,
    view_item,
)
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.ndarray import NDArray


def read_item(array: NDArray, index: Any) -> Any:
    """`array[index]`. Raises: IndexError as NumPy; NotTraceable for combinations that need more than one
    frame."""
    entries = expand_index(array, index)
    if any(map(is_integer_array, entries)):
        return Listing(compact_array(array), entries).read()
    if has_picks(array) and any(map(needs_numbers, entries)):
        return _read_numbered(array, entries)
    if any(map(is_mask, entries)):
        return view_item(move_forward(array), entries).copy()
    return view_item(array, entries)


def _read_numbered(array: PaddedArray, entries: Sequence) -> Any:
    """Items of an array that has elements of a mask: of a copy in which these are numbered."""
    copy = compact_array(array)
    found = view_item(copy, entries)
    if isinstance(found, NDArray):  # a view, for NumPy: a store could not be seen through both
        share(array, copy)
    return found


def write_item(array: NDArray, index: Any, value: Any) -> None:
    """`array[index] = value`. Raises: as `read_item`; ValueError where values do not broadcast."""
    entries = expand_index(array, index)
    if any(map(is_integer_array, entries)):
        if has_picks(array):
            raise not_traceable("a store by an integer array into the elements that a mask picks")
        return Listing(array, entries).write(value)
    has_mask = any(map(is_mask, entries))
    if not has_mask and not any(entry is None or isinstance(entry, slice) for entry in entries):
        if has_picks(array):
            raise not_traceable("a store into one of the elements that a mask picks")
        find_frame(array)[tuple(plan_view(array, entries).index)] = value
        return None
    if has_mask and runs_backwards(array):
        raise not_traceable("a store by a mask into an array of traced extent that runs backwards")
    return assign(view_item(array, entries), value)
