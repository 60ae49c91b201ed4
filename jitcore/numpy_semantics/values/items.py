"""Items of arrays: `x[index]` and `x[index] = value`.

In: an array and an index: ints, slices, None, Ellipsis, integer and boolean arrays, any of them traced. Out:
views for basic indices, copies for the others, NumPy scalars for single elements. A traced index is used as
it is where its bounds are known to lie inside; else it is checked when the program runs.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import context
from jitcore.numpy.indexing.plan import Entry, plan_index
from jitcore.numpy.indexing.reading import gather_plan
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.equality import is_current
from jitcore.numpy_semantics.values.layouts import C_ORDER, find_item_order
from jitcore.numpy_semantics.values.mixed import Mixed, distribute
from jitcore.numpy_semantics.values.ndarray import NDArray, drop_leading_ones, new_array, to_item
from jitcore.numpy_semantics.values.numbers import Number, as_int, form_of, interval_of, is_at_most, make_int
from jitcore.numpy_semantics.values.promotion import adopt_array, as_operand, int_of_scalar, to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.sequences import has_handle, stack_sequence
from jitcore.numpy_semantics.values.views import Axis, Window, broadcast_raw
from jitcore.rewriter.handles import Handle, current

_NOT_AN_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
    "valid indices"
)


class Item(NamedTuple):
    """One item of an index. kind: "int", "slice", "new", "array", "mask" or "gap" (an Ellipsis for no axis).

    value: an int or a Number, an `Axis`, an integer or a boolean array."""

    kind: str
    axis: int = -1
    value: Any = None


class TracedExtent(Exception):
    """A slice whose number of elements is traced, or a mask that is."""


# -- reading and writing ------------------------------------------------------------------------------------
def get_item(array: NDArray, index: Any) -> Any:
    """Raises: IndexError as NumPy; NotTraceable for combinations that are not supported."""
    index = _read_lists(index)
    try:
        items = parse_index(array.shape, index)
    except TracedExtent:
        return tables.find_hook("read_item", "an item")(array, index)
    if any(item.kind == "mask" for item in items):
        return tables.find_hook("read_item", "an item")(array, index)
    if not any(item.kind == "array" for item in items):
        view = _view(array, items)
        is_element = all(item.kind == "int" for item in items) and not _has_ellipsis(index)
        return Scalar(view.read()) if is_element else view
    target, entries = _plan(array, items)
    found = gather_plan(target.read(), plan_index(target.shape, entries))
    is_plain = found.ndim < 2 or 0 in found.shape
    return new_array(found, C_ORDER if is_plain else find_item_order(array, list(map(_outline, items))))


def _read_lists(index: Any) -> Any:
    """An index with arrays in place of lists of traced length."""
    if type(index) is tuple:
        return tuple(map(_read_lists, index))
    return index.to_array(is_index=True) if hasattr(type(index), "to_array") else index


def _outline(item: Item) -> Any:
    """What stands for an item where only the layout of the result is asked for."""
    if item.kind == "slice":
        return slice(0, item.value.size)
    if item.kind == "int":
        return 0
    return {"new": None, "gap": Ellipsis}.get(item.kind, tuple(getattr(item.value, "shape", ())))


def set_item(array: NDArray, index: Any, value: Any) -> None:
    """Raises: IndexError, ValueError as NumPy; NotTraceable for combinations that are not supported."""
    if isinstance(value, (list, tuple, range)) and array.dtype.kind in "iu":  # one that does not fit raises
        if not has_handle(value):
            value = np.array(value, array.dtype)
        else:
            value = stack_sequence(value, array.dtype)
    value, index = as_operand(value), _read_lists(index)
    if type(value) is Mixed:
        value = distribute(lambda number: Scalar(to_item(number, array.dtype, is_packed=True)), value)
    try:
        items = parse_index(array.shape, index)
    except TracedExtent:
        return tables.find_hook("write_item", "an item")(array, index, value)
    if getattr(value, "is_partial", False):
        return tables.find_hook("write_item", "a value")(array, index, value)
    if any(item.kind == "mask" for item in items):
        return _set_masked(array, items, value)
    if not any(item.kind == "array" for item in items):
        is_element = all(item.kind == "int" for item in items) and not _has_ellipsis(index)
        if is_element and isinstance(value, NDArray) and value.ndim and value.size == 1:
            np.zeros(1, array.dtype)[0] = np.zeros(value.shape, value.dtype)  # raises, as NumPy does by now
        return _view(array, items).assign(value)
    target, entries = _plan(array, items)
    plan = plan_index(target.shape, entries)
    raw = broadcast_raw(drop_leading_ones(to_item(value, array.dtype), len(plan.shape)), plan.shape)
    if 0 in plan.shape:
        return None
    numbers = lax.ScatterDimensionNumbers(plan.window_dims, plan.collapsed, plan.index_map)
    raw = lax.reshape(raw, plan.core_shape) if plan.new_axes else raw
    target.write(
        lax.scatter(target.read(), plan.indices, raw, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)
    )
    return None


def _has_ellipsis(index: Any) -> bool:
    return any(item is Ellipsis for item in (index if isinstance(index, tuple) else (index,)))


def _view(array: NDArray, items: list[Item]) -> NDArray:
    """The view that basic items name."""
    axes = [Axis(item.value, 1) if item.kind == "int" else item.value for item in items if item.axis >= 0]
    dims = [None if item.kind == "new" else item.axis for item in items if item.kind in ("new", "slice")]
    return array.add_view(Window(array.shape, axes, dims))


def _plan(array: NDArray, items: list[Item]) -> tuple[NDArray, list[Entry]]:
    """A view that slices have been applied to, and the entries of the rest of the index."""
    is_moved = any(item.kind == "slice" and isinstance(item.value.start, Number) for item in items)
    if is_moved:
        axes = [item.value if item.kind == "slice" else Axis(0, array.shape[item.axis])
                for item in items if item.axis >= 0]
        array = array.add_view(Window(array.shape, axes, range(array.ndim)))
    entries = []
    for item in items:
        if item.kind == "slice":
            start, size, step = (0, item.value.size, 1) if is_moved else item.value
            entries.append(Entry("slice", item.axis, None, start, size, step))
        elif item.kind == "int":
            is_traced = isinstance(item.value, Number)
            value = item.value.read() if is_traced else item.value
            entries.append(Entry("scalar" if is_traced else "integer", item.axis, value))
        else:
            entries.append(Entry(item.kind, item.axis, item.value))
    return array, entries


# -- parsing ------------------------------------------------------------------------------------------------
def parse_index(shape: tuple, index: Any) -> list[Item]:
    """The items of an index, every axis named. Raises: IndexError; TracedExtent."""
    values = [_normalize(value) for value in (index if isinstance(index, tuple) else (index,))]
    counts = [0 if value is None or value is Ellipsis else _count_axes(value) for value in values]
    if sum(counts) > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {sum(counts)} were indexed"
        )
    gaps = [i for i, value in enumerate(values) if value is Ellipsis]
    if len(gaps) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    rest = [slice(None)] * (len(shape) - sum(counts))
    place = gaps[0] if gaps else len(values)
    values[place : place + 1] = rest or ([Ellipsis] if gaps else [])
    items, axis = [], 0
    for value in values:
        item = _parse_item(value, axis, shape)
        items.append(item)
        axis += 0 if item.kind in ("new", "gap") else item.value.ndim if item.kind == "mask" else 1
    if any(item.kind in ("array", "mask") for item in items):
        return [split for item in items for split in _split_known_mask(item)]
    return [item for item in items if item.kind != "gap"]


def _normalize(value: Any) -> Any:
    """An int, Number, slice, None, Ellipsis, or an array of integers or bools. Raises: IndexError."""
    if value is None or value is Ellipsis or isinstance(value, slice):
        return value
    if type(value) is Mixed:
        return value.as_index()
    if isinstance(value, (list, tuple, range)):
        value = as_operand(list(value)) if _has_handles(value) else np.asarray(value)
    elif isinstance(value, np.ndarray) and value.shape:
        value = adopt_array(value)
    if isinstance(value, np.ndarray) and not value.size:
        value = value.astype(np.intp)
    if isinstance(value, (np.ndarray, np.generic)) and not value.shape:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or getattr(value, "dtype", None) == np.bool_ and not value.shape:
        raise not_traceable("an index that is a single bool")
    if isinstance(value, (int, np.integer)):
        return int(value)
    if type(value) is Number:
        if value.python_type is not int:
            raise IndexError(_NOT_AN_INDEX)
        return value
    if getattr(value, "is_partial", False):
        raise TracedExtent
    if isinstance(value, (Handle, np.ndarray)):
        if value.dtype.kind not in "biu":
            text = "arrays used as indices must be of integer (or boolean) type"
            raise IndexError(text if value.shape else _NOT_AN_INDEX)
        return value if value.shape else int_of_scalar(value.read())
    if hasattr(type(value), "__index__"):
        return value.__index__()
    raise IndexError(_NOT_AN_INDEX)


def _has_handles(values: Any) -> bool:
    return any(_has_handles(v) if isinstance(v, (list, tuple)) else isinstance(v, Handle) for v in values)


def _count_axes(value: Any) -> int:
    return value.ndim if getattr(value, "dtype", None) == np.bool_ else 1


def _parse_item(value: Any, axis: int, shape: tuple) -> Item:
    if value is None:
        return Item("new")
    if value is Ellipsis:
        return Item("gap")
    if isinstance(value, slice):
        return Item("slice", axis, parse_slice(value, shape[axis]))
    if isinstance(value, (int, Number)) and not isinstance(value, np.generic):
        return Item("int", axis, check_index(value, axis, shape[axis]))
    if value.dtype == np.bool_:
        expected = shape[axis : axis + value.ndim]
        for i, (own, extent) in enumerate(zip(value.shape, expected)):
            if own != extent:
                text = f"size of axis is {extent} but size of corresponding boolean axis is {own}"
                raise IndexError(f"boolean index did not match indexed array along axis {axis + i}; {text}")
        return Item("mask", axis, value)
    return Item("array", axis, _check_index_array(value, axis, shape[axis]))


def _split_known_mask(item: Item) -> list[Item]:
    """A mask that is known as the integer arrays of its elements."""
    if item.kind != "mask" or not isinstance(item.value, np.ndarray):
        return [item]
    return [
        Item("array", item.axis + i, found.astype(np.int64)) for i, found in enumerate(np.nonzero(item.value))
    ]


def check_index(index: Any, axis: int, extent: int) -> Any:
    """A position from 0 on. Raises: IndexError for a known one outside."""
    error = IndexError(f"index {index!r} is out of bounds for axis {axis} with size {extent}")
    if type(index) is not Number:
        if not -extent <= index < extent:
            raise error
        return index + extent if index < 0 else index
    if not extent:
        fail(True, error)
    if is_at_most(0, index):
        return _check_inside(index, extent, error)
    if is_at_most(index, -1):
        return _check_inside(index + extent, extent, error)
    key = (form_of(index).key, extent, "wrapped")
    wrapped = _recall(key)
    if wrapped is None:
        low, high = interval_of(index)
        raw = lax.select(lax.lt(index.read(), np.int64(0)), (index + extent).read(), index.read())
        inside = low >= -extent and high < extent
        wrapped = Number(int, raw, interval=(0, extent - 1) if inside else (-math.inf, math.inf))
        wrapped = wrapped if inside else _check_inside(wrapped, extent, error)
        _remember(key, wrapped, index)
    return wrapped


def _check_inside(index: Any, extent: int, error: IndexError) -> Any:
    """The index; the mode knows that Python raises where it is outside."""
    if type(index) is not Number:
        if not 0 <= index < extent:
            fail(True, error)
        return index
    tests = [index < 0, index > extent - 1]
    outside = [test for test in tests if test is not False]
    if not outside:
        return index
    key = (form_of(index).key, extent, "inside")
    if _recall(key) is None:
        fail(functools.reduce(operator.or_, outside), error)
        _remember(key, index, index)
    return index


def _recall(key: tuple) -> Any:
    """What was found for an index under this trace or one around it."""
    for value, trace, _ in getattr(current.mode, "checked", {}).get(key, ()):
        if is_current(trace):
            return value
    return None


def _remember(key: tuple, value: Any, index: Number) -> None:
    checked = getattr(current.mode, "checked", None)
    if checked is not None:
        checked.setdefault(key, []).append((value, context.trace, index))


def _check_index_array(value: Any, axis: int, extent: int) -> Any:
    if isinstance(value, np.ndarray):
        bad = value[(value < -extent) | (value >= extent)]
        if bad.size:
            raise IndexError(f"index {bad.flat[0]} is out of bounds for axis {axis} with size {extent}")
        return np.where(value < 0, value + extent, value).astype(np.int64)
    raw = to_raw(value, dtypes.int64)
    if value.dtype.kind == "i":
        raw = lax.select(lax.lt(raw, np.int64(0)), lax.add(raw, np.int64(extent)), raw)
    if extent < np.iinfo(value.dtype).max + (value.dtype.kind == "i") or value.dtype.kind == "i":
        outside = lax.bitwise_or(lax.lt(raw, np.int64(0)), lax.ge(raw, np.int64(extent)))
        any_outside = lax.reduce_or(outside, tuple(range(outside.ndim)))
        fail(
            Number(bool, any_outside),
            IndexError(f"an index is out of bounds for axis {axis} with size {extent}"),
        )
    return raw


# -- slices -------------------------------------------------------------------------------------------------
def parse_slice(index: slice, extent: int) -> Axis:
    """The elements of a slice. Raises: TypeError; ValueError; TracedExtent."""
    start, stop, step = (_to_bound(bound) for bound in (index.start, index.stop, index.step))
    if not any(isinstance(bound, Number) for bound in (start, stop, step)):
        places = range(*slice(start, stop, step).indices(extent))
        return Axis(places.start if len(places) else 0, len(places), places.step if len(places) > 1 else 1)
    if isinstance(step, Number) or step not in (None, 1) and not (step > 1 and None not in (start, stop)):
        raise TracedExtent
    step = 1 if step is None else step
    start = 0 if start is None else _from_end(start, extent)
    stop = extent if stop is None else _from_end(stop, extent)
    size = make_int(form_of(stop).add(form_of(start), -1))
    if isinstance(size, Number):
        raise TracedExtent
    size = max(-(-size // step), 0)
    low, high = interval_of(start)
    if size == 0:
        if not is_at_most(stop, start) or not (is_at_most(0, stop) or is_at_most(start, -1)):
            fail(stop < 0, IndexError("a slice that ends as many elements before the end"))
        return Axis(0, 0)
    if not (is_at_most(0, start) and is_at_most(stop, extent)):
        if high < 0 or low > extent or size > extent:
            raise TracedExtent
        for test in (start < 0, stop > extent):  # NumPy would give fewer elements
            fail(test, IndexError("a slice that is cut off at the end of its axis"))
    return Axis(start, size, step)


def _to_bound(bound: Any) -> Any:
    if bound is None or isinstance(bound, (int, np.integer)):
        return bound if bound is None else int(bound)
    if type(bound) is Mixed:
        return bound.as_index()
    if type(bound) is Number and bound.python_type in (int, bool):
        return as_int(bound)
    if (
        isinstance(bound, Handle)
        and type(bound) is not Number
        and bound.dtype.kind in "iu"
        and not bound.shape
    ):
        return int_of_scalar(bound.read())
    if not isinstance(bound, Handle) and hasattr(type(bound), "__index__"):
        return bound.__index__()
    raise TypeError("slice indices must be integers or None or have an __index__ method")


def _from_end(bound: Any, extent: int) -> Any:
    """A bound from the beginning, as far as it is known to count from the end."""
    return bound + extent if is_at_most(bound, -1) else bound


# -- masks --------------------------------------------------------------------------------------------------
def _set_masked(array: NDArray, items: list[Item], value: Any) -> None:
    """`x[mask] = value` with basic items around the mask: a selection."""
    masks = [item for item in items if item.kind == "mask"]
    if len(masks) > 1 or any(item.kind == "array" for item in items):
        raise not_traceable("an index of a mask and other arrays")
    (mask,) = masks
    before, after = items[: items.index(mask)], items[items.index(mask) + 1 :]
    own = [Item("slice", mask.axis + i, Axis(0, n)) for i, n in enumerate(mask.value.shape)]
    target = _view(array, [item for item in (*before, *own, *after) if item.kind != "gap"])
    lead = sum(item.kind in ("slice", "new") for item in before)
    if any(item.kind == "int" for item in items) and lead and any(value.shape):
        raise not_traceable("an index of a mask and ints")
    select_masked(target, to_raw(mask.value), lead, to_item(value, array.dtype))


def select_masked(target: NDArray, mask: Array, axis: int, values: Array) -> None:
    """Writes values where a mask over the axes from `axis` on holds, as `target[..., mask, ...] = values`."""
    shape, rank = target.shape, mask.ndim
    picked = (*shape[:axis], None, *shape[axis + rank :])
    values = drop_leading_ones(values, len(picked))
    place = values.ndim - (len(picked) - axis)
    if place >= 0 and values.shape[place] != 1:
        values = _spread_values(mask, values, place)
    elif place >= 0:
        values = lax.reshape(values, (*values.shape[:place], *(1,) * rank, *values.shape[place + 1 :]))
    full = lax.broadcast_in_dim(mask, shape, range(axis, axis + rank))
    target.write(lax.select(full, broadcast_raw(values, shape), target.read()))


def _spread_values(mask: Array, values: Array, place: int) -> Array:
    """Values along an axis, one for each True of a mask in order, at the places of these."""
    count = values.shape[place]
    hits = lax.reshape(lax.convert_element_type(mask, dtypes.int64), (math.prod(mask.shape),))
    total = lax.reduce_sum(hits, (0,))
    error = ValueError(f"NumPy boolean array indexing assignment cannot assign {count} input values")
    fail(Number(bool, lax.ne(total, np.int64(count))), error)
    ranks = lax.clamp(np.int64(0), lax.sub(lax.cumsum(hits, 0), np.int64(1)), np.int64(max(count - 1, 0)))
    if not count:
        return lax.full((*values.shape[:place], *mask.shape, *values.shape[place + 1 :]), 0, values.dtype)
    entries = [Entry("slice", i, None, 0, n) for i, n in enumerate(values.shape)]
    entries[place] = Entry("array", place, ranks)
    found = gather_plan(values, plan_index(values.shape, entries))
    return lax.reshape(found, (*values.shape[:place], *mask.shape, *values.shape[place + 1 :]))
