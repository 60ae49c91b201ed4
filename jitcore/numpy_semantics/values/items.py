"""Items of arrays: `x[index]` and `x[index] = value`.

In: an array and an index: ints, slices, None, Ellipsis, integer and boolean arrays, any of them traced. Out:
views for basic indices, copies for the others, NumPy scalars for single elements. A traced index is used as
it is where its bounds are known to lie inside; else it is checked when the program runs.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import context
from jitcore.numpy.indexing.plan import (Entry, IndexRules, check_known_array, check_known_index, parse_index,
                                         parse_known_slice, plan_index)
from jitcore.numpy.indexing.reading import gather_plan
from jitcore.numpy_semantics.errors import NeedsRows, not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.equality import is_current
from jitcore.numpy_semantics.values.letters import Letters
from jitcore.numpy_semantics.values.lists import ListHandle
from jitcore.numpy_semantics.values.mixed import Mixed, distribute
from jitcore.numpy_semantics.values.ndarray import NDArray, drop_leading_ones, new_array, to_item
from jitcore.numpy_semantics.values.numbers import Number, as_int, form_of, interval_of, is_at_most, make_int
from jitcore.numpy_semantics.values.promotion import adopt_array, as_operand, int_of_scalar, to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.sequences import has_handle, stack_sequence
from jitcore.numpy_semantics.values.storage import C_ORDER, find_item_order
from jitcore.numpy_semantics.values.views import Axis, Window, broadcast_raw
from jitcore.rewriter.control_flow.arms import make_final
from jitcore.rewriter.handles import Handle, current

#: Lists in a list, from which on none is picked by looking at each.
MANY_ROWS = 64
_NOT_AN_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
    "valid indices")


class TracedExtent(Exception):
    """A slice whose number of elements is traced, or a mask that is."""


# -- reading and writing ------------------------------------------------------------------------------------
def get_item(array: NDArray, index: Any) -> Any:
    """Raises: IndexError as NumPy; NotTraceable for combinations that are not supported."""
    index = _read_lists(index)
    try:
        entries = parse_index(array.shape, index, NUMPY_RULES)
    except TracedExtent:
        return tables.find_hook("read_item", "an item")(array, index)
    if any(entry.kind == "mask" for entry in entries):
        return tables.find_hook("read_item", "an item")(array, index)
    if not any(entry.kind == "array" for entry in entries):
        view = _view(array, entries)
        return Scalar(view.read()) if _is_element(index, entries) else view
    target, rest = _apply_moved_slices(array, entries)
    found = gather_plan(target.read(), plan_index(target.shape, rest))
    is_plain = found.ndim < 2 or 0 in found.shape
    return new_array(found, C_ORDER if is_plain else find_item_order(array, list(map(_outline, entries))))


def pick_item(values: list | tuple, place: Any) -> Any:
    """An item of a str, or of a list or tuple, where all are numbers of one kind, or tuples of such."""
    if type(values) is str:
        return Letters.of(values)[place]
    kinds = {value.python_type if type(value) is Number else type(value) for value in values}
    if kinds == {tuple} and len({*map(len, values)}) == 1:
        return tuple([pick_item(column, place) for column in zip(*values)])
    is_place = type(place) is Number and place.python_type is int
    if is_place and len(values) >= MANY_ROWS and any(isinstance(value, ListHandle) for value in values):
        error = NeedsRows(str(not_traceable("a row of a list of lists at a place that is not known")))
        make_final(error)  # to go through the loop in Python would make too long a program
        raise error
    if not is_place or kinds not in ({int}, {float}):
        return values[place]
    return Number(kinds.pop(), to_raw(get_item(stack_sequence(values), place)))


def _read_lists(index: Any) -> Any:
    """An index with arrays in place of lists of traced length."""
    if type(index) is tuple:
        return tuple(map(_read_lists, index))
    return index.to_array(is_index=True) if hasattr(type(index), "to_array") else index


def _is_element(index: Any, entries: list[Entry]) -> bool:
    """Whether NumPy gives a scalar."""
    has_ellipsis = any(item is Ellipsis for item in (index if isinstance(index, tuple) else (index,)))
    return not has_ellipsis and all(entry.kind == "integer" for entry in entries)


def _outline(entry: Entry) -> Any:
    """What stands for an entry where only the layout of the result is asked for."""
    if entry.kind == "slice":
        return slice(0, entry.size)
    plain = {"integer": 0, "new": None, "gap": Ellipsis}
    return plain[entry.kind] if entry.kind in plain else tuple(entry.value.shape)


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
        entries = parse_index(array.shape, index, NUMPY_RULES)
    except TracedExtent:
        return tables.find_hook("write_item", "an item")(array, index, value)
    if getattr(value, "is_padded", False):
        return tables.find_hook("write_item", "a value")(array, index, value)
    if any(entry.kind == "mask" for entry in entries):
        return _set_masked(array, entries, value)
    if any(entry.kind == "array" for entry in entries):
        return scatter_entries(*_apply_moved_slices(array, entries), value)
    if _is_element(index, entries) and isinstance(value, NDArray) and value.ndim and value.size == 1:
        np.zeros(1, array.dtype)[0] = np.zeros(value.shape, value.dtype)  # raises, as NumPy does by now
    return _view(array, entries).assign(value)


def scatter_entries(target: NDArray, entries: list[Entry], value: Any) -> None:
    """Writes values to the places of an index with arrays; those outside are dropped."""
    plan = plan_index(target.shape, entries)
    raw = broadcast_raw(drop_leading_ones(to_item(value, target.dtype), len(plan.shape)), plan.shape)
    if 0 in plan.shape:
        return
    numbers = lax.ScatterDimensionNumbers(plan.window_dims, plan.collapsed, plan.index_map)
    raw = lax.reshape(raw, plan.core_shape) if plan.new_axes else raw
    mode = lax.GatherScatterMode.FILL_OR_DROP
    target.write(lax.scatter(target.read(), plan.indices, raw, numbers, mode=mode))


def _view(array: NDArray, entries: list[Entry]) -> NDArray:
    """The view that basic items name."""
    axes = [Axis(entry.value, 1) if entry.kind == "integer" else Axis(*entry[3:])
            for entry in entries if entry.axis >= 0]
    dims = [None if entry.kind == "new" else entry.axis for entry in entries
            if entry.kind in ("new", "slice")]
    return array.add_view(Window(array.shape, axes, dims))


def _apply_moved_slices(array: NDArray, entries: list[Entry]) -> tuple[NDArray, list[Entry]]:
    """A view by the slices, if one of them starts at a traced place, and the entries of the rest."""
    if any(isinstance(entry.start, Number) for entry in entries):
        whole = [whole_entry(*axis) for axis in enumerate(array.shape)]
        array = _view(array, [entry if entry.kind == "slice" else whole[entry.axis]
                              for entry in entries if entry.axis >= 0])
        entries = [entry._replace(start=0, step=1) if entry.kind == "slice" else entry for entry in entries]
    return array, [entry._replace(kind="scalar", value=entry.value.read())
                   if isinstance(entry.value, Number) else entry for entry in entries]


def whole_entry(axis: int, extent: int) -> Entry:
    """The entry of `:`."""
    return Entry("slice", axis, None, 0, extent)


# -- parsing ------------------------------------------------------------------------------------------------
class NumpyRules(IndexRules):
    """NumPy's own: lists are arrays. Numbers may be positions and bounds of slices; what is not known to lie
    inside is checked when the program runs. Raises: IndexError; TracedExtent."""

    too_many = "too many indices for array: array is {}-dimensional, but {} were indexed"
    takes_lists = True

    def normalize(self, value: Any) -> Any:
        """An int, Number, slice, None, Ellipsis, or an array of integers or bools. Raises: IndexError."""
        if value is None or value is Ellipsis or isinstance(value, slice):
            return value
        value = normalize_array(value)
        if isinstance(value, (np.ndarray, np.generic)) and not value.shape:
            value = value[()]
        if isinstance(value, (int, np.integer)):
            return int(value)
        if type(value) is Number:
            if value.python_type is not int:
                raise IndexError(_NOT_AN_INDEX)
            return value
        if getattr(value, "is_padded", False):
            raise TracedExtent
        if isinstance(value, (Handle, np.ndarray)):
            if value.dtype.kind not in "biu":
                text = "arrays used as indices must be of integer (or boolean) type"
                raise IndexError(text if value.shape else _NOT_AN_INDEX)
            return value if value.shape else int_of_scalar(value.read())
        if hasattr(type(value), "__index__"):
            return value.__index__()
        raise IndexError(_NOT_AN_INDEX)

    def parse_integer(self, index, axis, extent):
        return Entry("integer", axis, check_index(index, axis, extent))

    def parse_mask(self, mask, axis, shape):
        for i, (own, extent) in enumerate(zip(mask.shape, shape[axis : axis + mask.ndim])):
            if own != extent:
                text = f"size of axis is {extent} but size of corresponding boolean axis is {own}"
                raise IndexError(f"boolean index did not match indexed array along axis {axis + i}; {text}")
        is_known = isinstance(mask, np.ndarray)
        return super().parse_mask(mask, axis, shape) if is_known else [Entry("mask", axis, mask)]

    def check_array(self, item, axis, extent):
        if isinstance(item, np.ndarray):
            return check_known_array(item, axis, extent)
        raw = to_raw(item, dtypes.int64)
        if item.dtype.kind == "i":
            raw = lax.select(lax.lt(raw, np.int64(0)), lax.add(raw, np.int64(extent)), raw)
        if item.dtype.kind == "i" or extent < np.iinfo(item.dtype).max:
            outside = lax.bitwise_or(lax.lt(raw, np.int64(0)), lax.ge(raw, np.int64(extent)))
            any_outside = lax.reduce_or(outside, tuple(range(outside.ndim)))
            error = IndexError(f"an index is out of bounds for axis {axis} with size {extent}")
            fail(Number(bool, any_outside), error)
        return raw

    def parse_slice(self, item, axis, extent, position):
        bounds = [_to_bound(bound) for bound in (item.start, item.stop, item.step)]
        if not any(isinstance(bound, Number) for bound in bounds):
            return parse_known_slice(slice(*bounds), axis, extent)
        return Entry("slice", axis, None, *_resolve_slice(*bounds, extent))


NUMPY_RULES = NumpyRules()


def normalize_array(value: Any) -> Any:
    """A list, a range or an ndarray in an index as an array, known or adopted; all else as it is.

    Raises: NotTraceable for a single bool, which makes a new axis or an empty one."""
    if type(value) is Mixed:
        return value.as_index()
    if isinstance(value, (list, tuple, range)):
        value = as_operand(list(value)) if has_handle(value) else np.asarray(value)
    elif isinstance(value, np.ndarray) and value.shape:
        value = adopt_array(value)
    if isinstance(value, np.ndarray) and not value.size:
        value = value.astype(np.intp)
    is_bool = isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_
    if is_bool and not getattr(value, "shape", ()):
        raise not_traceable("an index that is a single bool")
    return value


def check_index(index: Any, axis: int, extent: int) -> Any:
    """A position from 0 on. Raises: IndexError for a known one outside."""
    if type(index) is not Number:
        return check_known_index(index, axis, extent)
    error = IndexError(f"index {index!r} is out of bounds for axis {axis} with size {extent}")
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


# -- slices -------------------------------------------------------------------------------------------------
def _resolve_slice(start: Any, stop: Any, step: Any, extent: int) -> Axis:
    """The elements of a slice with traced bounds. Raises: TracedExtent."""
    if isinstance(step, Number) or step not in (None, 1) and not (step > 1 and None not in (start, stop)):
        raise TracedExtent
    step = 1 if step is None else step
    start = 0 if start is None else _from_end(start, extent)
    stop = extent if stop is None else _from_end(stop, extent)
    size = make_int(form_of(stop) - form_of(start))
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
    is_array = isinstance(bound, Handle) and type(bound) is not Number
    if is_array and bound.dtype.kind in "iu" and not bound.shape:
        return int_of_scalar(bound.read())
    if not isinstance(bound, Handle) and hasattr(type(bound), "__index__"):
        return bound.__index__()
    raise TypeError("slice indices must be integers or None or have an __index__ method")


def _from_end(bound: Any, extent: int) -> Any:
    """A bound from the beginning, as far as it is known to count from the end."""
    return bound + extent if is_at_most(bound, -1) else bound


# -- masks --------------------------------------------------------------------------------------------------
def _set_masked(array: NDArray, entries: list[Entry], value: Any) -> None:
    """`x[mask] = value` with basic items around the mask: a selection."""
    kinds = [entry.kind for entry in entries]
    if kinds.count("mask") > 1 or "array" in kinds:
        raise not_traceable("an index of a mask and other arrays")
    place = kinds.index("mask")
    mask, before, after = entries[place], entries[:place], entries[place + 1 :]
    own = [whole_entry(mask.axis + i, n) for i, n in enumerate(mask.value.shape)]
    target = _view(array, [entry for entry in (*before, *own, *after) if entry.kind != "gap"])
    lead = sum(entry.kind in ("slice", "new") for entry in before)
    if "integer" in kinds and lead and any(value.shape):
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
    entries = [whole_entry(i, n) for i, n in enumerate(values.shape)]
    entries[place] = Entry("array", place, ranks)
    found = gather_plan(values, plan_index(values.shape, entries))
    return lax.reshape(found, (*values.shape[:place], *mask.shape, *values.shape[place + 1 :]))
