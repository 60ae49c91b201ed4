"""Stores into arrays where extents are traced.

In: an array, an index, values. Out: nothing; elements outside keep their values, by a selection that
writes back what was there. The compiler runs over the elements that change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore import lax
from jitcore.numpy_semantics.dynamic_extents.align import (
    adapt,
    find_frame,
    is_single,
    list_items,
    require_equal,
)
from jitcore.numpy_semantics.dynamic_extents.moving import runs_backwards
from jitcore.numpy_semantics.dynamic_extents.spans import Item, find_axes, join_masks
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array


def assign(target: Any, value: Any, items: Sequence[Item]) -> None:
    """Writes values, which broadcast to these items, into the elements of an array that they name."""
    frame = find_frame(target)
    values = list_items(value)
    while len(values) > len(items):
        if not is_single(values[0]):
            raise ValueError("could not broadcast input array into a shape of fewer axes")
        value = value[0]
        values = values[1:]
    for own, item in zip(values[::-1], items[::-1]):
        if not is_single(own) and not own.is_same(item):
            require_equal(own.size, item.size)
    value = adapt(value, items)
    old = frame.read()
    mask = join_masks(items, find_axes(items), old.shape)
    if mask is None:
        frame[...] = value
        return
    new = new_array(old)
    new[...] = value  # casts and broadcasts
    frame.write(lax.select(mask, new.read(), old))


def write_item(array: NDArray, index: Any, value: Any) -> None:
    """`array[index] = value`. Raises: as `read_item`; ValueError where values do not broadcast."""
    from jitcore.numpy_semantics.dynamic_extents.listing import Listing
    from jitcore.numpy_semantics.dynamic_extents.reading import (
        expand_index,
        has_picks,
        is_integer_array,
        is_mask,
        view_item,
    )

    entries = expand_index(array, index)
    if any(is_integer_array(entry) for entry in entries):
        if has_picks(array):
            raise not_traceable("a store by an integer array into the elements that a mask picks")
        return Listing(array, entries).write(value)
    if not any(
        entry is None or isinstance(entry, slice) or hasattr(entry, "ndim") and entry.ndim
        for entry in entries
    ):
        return _write_element(array, entries, value)
    if runs_backwards(array) and any(map(is_mask, entries)):
        raise not_traceable("a store by a mask into an array of traced extent that runs backwards")
    view = view_item(array, entries)
    assign(view, value, list_items(view))


def _write_element(array: NDArray, entries: Sequence, value: Any) -> None:
    from jitcore.numpy_semantics.dynamic_extents.reading import check_number
    from jitcore.numpy_semantics.dynamic_extents.spans import Span

    index = []
    for entry, item in zip(entries, list_items(array)):
        if not item.is_whole and not isinstance(item, Span):
            raise not_traceable("a store into one of the elements that a mask picks")
        index.append(entry if item.is_whole else item.place_of(check_number(entry, item.size)))
    find_frame(array)[tuple(index)] = value
