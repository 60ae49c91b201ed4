"""Functions whose results have as many elements as are found: `np.nonzero`, `np.extract`; concatenation.

In: arrays, partial ones or not. Out: partial arrays, whose elements lie where they were found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents.align import adapt_raw, find_frame, list_items
from jitcore.numpy_semantics.dynamic_extents.array import PartialArray, accepts_partial
from jitcore.numpy_semantics.dynamic_extents.elementwise import wrap
from jitcore.numpy_semantics.dynamic_extents.moving import move_forward, number_true, take
from jitcore.numpy_semantics.dynamic_extents.reductions import list_axes
from jitcore.numpy_semantics.dynamic_extents.shaping import ravel
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span, Whole, find_axes, join_masks
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions import searching  # noqa: F401  it fills the table that is extended here
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, to_raw


def _find(a: Any) -> tuple[list[Array], Pick]:
    """(the number of each element along each axis, in the frame, where an array is not zero)."""
    if not a.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    a = move_forward(a)
    items, raw = list_items(a), to_raw(find_frame(a), dtypes.bool_)
    axes = find_axes(items)
    inside = join_masks(items, axes, raw.shape)
    numbers = [lax.broadcast_in_dim(_number(item), raw.shape, range(axis, axis + len(item.shape)))
               for item, axis in zip(items, axes)]
    return numbers, Pick(raw if inside is None else lax.bitwise_and(raw, inside))


def _number(item: Item) -> Array:
    if isinstance(item, Pick):
        return number_true(item.mask)
    return item.number_places() if isinstance(item, Span) else lax.iota(dtypes.int64, item.size)


@implements(np.nonzero, method="nonzero")
@accepts_partial(np.nonzero, method="nonzero")
def nonzero(a):
    numbers, pick = _find(as_operand(a))
    return tuple([PartialArray(new_array(raw), [pick]) for raw in numbers])


@implements(np.flatnonzero)
@accepts_partial(np.flatnonzero)
def flatnonzero(a):
    return nonzero(_flatten(a))[0]


@implements(np.argwhere)
@accepts_partial(np.argwhere)
def argwhere(a):
    numbers, pick = _find(as_operand(a))
    raw = lax.concatenate([lax.expand_dims(raw, (raw.ndim,)) for raw in numbers], numbers[0].ndim)
    return PartialArray(new_array(raw), [pick, Whole(len(numbers))])


def _flatten(a: Any) -> Any:
    a = as_operand(a)
    if isinstance(a, PartialArray):
        return ravel(a)
    return a.ravel() if isinstance(a, NDArray) else new_array(to_raw(a)).ravel()


@implements(np.extract)
@accepts_partial(np.extract)
def extract(condition, arr):
    return _flatten(arr)[_flatten(condition) != 0]


@implements(np.compress)
@accepts_partial(np.compress)
def compress(condition, a, axis=None, out=None):
    a = as_operand(a)
    if out is not None:
        raise not_traceable("np.compress with out=")
    a = _flatten(a) if axis is None else a
    (place,) = list_axes(0 if axis is None else axis, a.ndim)
    return a[(slice(None),) * place + (as_operand(condition) != 0,)]


@implements(method="compress")
@accepts_partial(method="compress")
def compress_method(a, condition, axis=None, out=None):
    return compress(condition, a, axis, out)


def unique(ar: Any, equal_nan: bool = True) -> NDArray:
    """The elements, each once, in order."""
    found = np.sort(_flatten(ar))
    items, raw = list_items(found), find_frame(found).read()
    if not raw.shape[0]:
        return found
    return found[wrap(new_array(find_new(raw, equal_nan)), items)]


def find_new(raw: Array, equal_nan: bool) -> Array:
    """Where a sorted vector has another element than before."""
    before, behind = lax.slice(raw, [0], [raw.shape[0] - 1]), lax.slice(raw, [1], list(raw.shape))
    is_new = lax.ne(before, behind)
    if equal_nan and raw.dtype.kind in "fc":
        both = lax.bitwise_and(lax.ne(before, before), lax.ne(behind, behind))
        is_new = lax.bitwise_and(is_new, lax.bitwise_not(both))
    return lax.concatenate([lax.full((1,), True, dtypes.bool_), is_new], 0)


# -- one behind the other -----------------------------------------------------------------------------------
@accepts_partial(np.concatenate)
def concatenate(arrays, axis=0, out=None, dtype=None, casting="same_kind"):
    if out is not None or axis is None:
        raise not_traceable("np.concatenate with out= or without axes of arrays whose extents are traced")
    arrays = [as_operand(array) for array in arrays]
    (place,) = list_axes(axis, arrays[0].ndim)
    if any(array.ndim != arrays[0].ndim for array in arrays):
        raise ValueError("all the input array dimensions must match")
    dtype = np.result_type(*[array.dtype for array in arrays]) if dtype is None else np.dtype(dtype)
    joint = arrays[0]
    for array in arrays[1:]:
        joint = _append(joint, array, place)
    return joint if joint.dtype == dtype else joint.astype(dtype)


def _append(one: Any, other: Any, place: int) -> PartialArray:
    """Two arrays one behind the other along an axis."""
    lists = list_items(one), list_items(other)
    for i, (own, item) in enumerate(zip(*lists)):
        if i != place and not (own.is_whole and own.is_same(item)):
            raise not_traceable("arrays one behind the other whose other extents are traced")
    dtype = np.result_type(one.dtype, other.dtype)
    fronts = [Span(items[place].shape[0], 0, items[place].size) if not isinstance(items[place], Pick)
              else items[place].as_span() for items in lists]
    raws = []
    for array, items, front in zip((one, other), lists, fronts):
        wanted = [*items[:place], front, *items[place + 1 :]]
        raws.append(cast_raw(adapt_raw(find_frame(array).read(), items, wanted), dtype))
    capacity = sum(front.capacity for front in fronts)
    size = fronts[0].size + fronts[1].size
    numbers = lax.iota(dtypes.int64, capacity)
    joint = Span(capacity, fronts[0].size, fronts[1].size)
    is_first = lax.lt(numbers, joint.place_operand())
    first, second = take(raws[0], place, numbers), take(raws[1], place, joint.number_places())
    raw = lax.select(lax.broadcast_in_dim(is_first, first.shape, (place,)), first, second)
    return wrap(new_array(raw), [*lists[0][:place], Span(capacity, 0, size), *lists[0][place + 1 :]])


@accepts_partial(np.append)
def append(arr, values, axis=None):
    if axis is None:
        arr, values, axis = _flatten(arr), _flatten(values), 0
    return np.concatenate([arr, values], axis=axis)


@accepts_partial(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    return np.concatenate(tup, axis=0 if as_operand(tup[0]).ndim == 1 else 1, dtype=dtype)
