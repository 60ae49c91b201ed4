"""Items of arrays where extents are traced, as Python asks for them and stores them.

In: an array, an index, values. Out: a view for integers, slices and new axes; a copy for masks and integer
arrays. Places of elements that are not there, which integer arrays list (`x[cols]`, `x[i, rows] = v`), are
clamped in reading, and lie outside in writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.jaxpr import sub_jaxprs
from jitcore.core.trace import Tracer, context
from jitcore.numpy.indexing.plan import Entry, plan_index
from jitcore.numpy.indexing.reading import gather_plan
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.align import adapt, assign, find_frame, join_items, list_items
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray, wrap
from jitcore.numpy_semantics.dynamic_extents.moving import run_early
from jitcore.numpy_semantics.dynamic_extents.reading import (check_number, compact_array, expand_index,
                                                             has_picks, is_integer_array, is_mask,
                                                             move_forward, needs_numbers, plan_view,
                                                             runs_backwards, share, view_item)
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span, find_axes, join_masks
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.items import scatter_entries, whole_entry
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import to_raw
from jitcore.rewriter.handles import current


class Listing:
    """An index with integer arrays.

    Attributes:
        frame: of the part of the array that slices leave; items: of the elements.
        mask: where in the frame of the integer arrays there is an element, or None; shape: of that frame."""

    def __init__(self, array: NDArray, entries: Sequence):
        if any(entry is None or is_mask(entry) for entry in entries):
            raise not_traceable("integer arrays of traced extent together with masks or new axes in an index")
        view = view_item(array, [entry if isinstance(entry, slice) else slice(None) for entry in entries])
        self.frame, own = find_frame(view), list_items(view)
        joint = join_items([list_items(entry) for entry in entries if is_integer_array(entry)])
        self.shape = tuple(extent for item in joint for extent in item.shape)
        self.mask = join_masks(joint, find_axes(joint), self.shape)
        self.entries = [found for axis, entry, item in zip(find_axes(own), entries, own)
                        for found in self._parse(axis, entry, item, joint)]
        listed = [axis for axis, entry in enumerate(entries) if not isinstance(entry, slice)]
        first = listed[0] if listed == list(range(listed[0], listed[-1] + 1)) else 0
        kept = [item for axis, item in enumerate(own) if axis not in listed]
        self.items: list[Item] = [*kept[:first], *joint, *kept[first:]]

    def _parse(self, axis: int, entry: Any, item: Item, joint: Sequence[Item]) -> list[Entry]:
        """axis: the item's first one in the frame."""
        if isinstance(entry, slice):
            return [whole_entry(axis + place, extent) for place, extent in enumerate(item.shape)]
        if is_integer_array(entry):
            return [Entry("array", axis, self._list_places(entry, item, joint))]
        place = check_number(entry, item.size)
        place = item.place_of(place) if isinstance(item, Span) else place
        is_traced = isinstance(place, Number)
        return [Entry("scalar", axis, place.read()) if is_traced else Entry("integer", axis, place)]

    def _list_places(self, entry: Any, item: Item, joint: Sequence[Item]) -> Array:
        """The places that an integer array lists, in the frame of the index arrays."""
        if entry.dtype.kind not in "iu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        raw = to_raw(adapt(entry, joint), dtypes.int64)
        error = IndexError(f"an index is out of bounds for an axis of size {item.size!r}")
        if entry.dtype.kind == "i":
            size = extents.to_raw(item.size)
            wrapped = lax.add(raw, size if isinstance(size, np.generic) else lax.full(raw.shape, size))
            raw = lax.select(lax.lt(raw, np.int64(0)), wrapped, raw)
        bad = self._find_bad_ahead(entry, item)
        extents.fail(self._find_bad(raw, item.size) if bad is None else bad, error)
        if isinstance(item, Span):
            raw = lax.add(lax.mul(raw, np.int64(item.step)), lax.full(raw.shape, extents.to_array(item.low)))
        return raw

    def _find_bad(self, places: Array, size: Any) -> Array:
        """Whether any of the places is outside of the axis."""
        size = extents.to_array(size)
        outside = lax.bitwise_or(lax.lt(places, np.int64(0)), lax.ge(places, lax.full(places.shape, size)))
        if self.mask is not None:
            first = len(self.shape) - outside.ndim
            outside = lax.broadcast_in_dim(outside, self.shape, range(first, len(self.shape)))
            outside = lax.bitwise_and(outside, self.mask)
        return lax.reduce_or(outside, tuple(range(outside.ndim)))

    def _find_bad_ahead(self, entry: Any, item: Item) -> Array | None:
        """Whether any index is outside, of all that the frame of the index array holds, computed where that
        was: before the loop that this code is in. None for indices that the loop makes."""
        frame = find_frame(entry)
        if self.mask is None or not isinstance(frame, NDArray) or isinstance(item.size, Number):
            return None
        value = frame.storage.value
        if not isinstance(value, Tracer) or value.owner is context.trace or _has_rest(entry, value) or any(
                step.list_values() for step in frame.steps):
            return None

        def find_bad() -> Array:
            raw = to_raw(NDArray(frame.storage, frame.steps), dtypes.int64)
            outside = lax.bitwise_or(lax.lt(raw, np.int64(-item.size)), lax.ge(raw, np.int64(item.size)))
            return lax.reduce_or(outside, tuple(range(outside.ndim)))

        return run_early(find_bad, value)

    def read(self) -> Any:
        plan = plan_index(self.frame.shape, self.entries)
        return wrap(new_array(gather_plan(self.frame.read(), plan, lax.GatherScatterMode.CLIP)), self.items)

    def write(self, value: Any) -> None:
        """Of an element that is listed twice the last value stays."""
        entries = [self._drop(entry) for entry in self.entries] if self.mask is not None else self.entries
        scatter_entries(self.frame, entries, adapt(value, self.items))

    def _drop(self, entry: Entry) -> Entry:
        """The places, where no element is outside of the axis."""
        if entry.kind != "array":
            return entry
        first = len(self.shape) - entry.value.ndim
        raw = lax.broadcast_in_dim(entry.value, self.shape, range(first, len(self.shape)))
        outside = lax.full(self.shape, self.frame.shape[entry.axis], dtypes.int64)
        return entry._replace(value=lax.select(self.mask, raw, outside))


def _has_rest(array: Any, value: Tracer) -> bool:
    """Whether elements of an array's frame may be anything, behind those of a mask: it was packed, or comes
    from a loop or a branch, where it may have been."""
    if not isinstance(array, PaddedArray):
        return False
    eqns = reversed(value.owner.eqns)
    made = next((eqn for eqn in eqns if any(var is value.atom for var in eqn.outvars)), None)
    if made is not None:
        return made.primitive.name == "compress" or bool(sub_jaxprs(made.params))
    return value.owner is not current.mode.root and any(var is value.atom for var in value.owner.invars)


def read_item(array: NDArray, index: Any) -> Any:
    """`array[index]`. Raises: IndexError as NumPy; NotTraceable for combinations that need more than one
    frame."""
    entries = expand_index(array, index)
    if any(map(is_integer_array, entries)):
        is_numbered = any(isinstance(item, Pick) and needs_numbers(entry)
                          for item, entry in zip(list_items(array), entries))
        return Listing(compact_array(array) if is_numbered else array, entries).read()
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
