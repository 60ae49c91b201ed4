"""Functions whose results have as many elements as are found: `np.nonzero`, `np.extract`; concatenation.

In: arrays, padded ones or not. Out: padded arrays, whose elements lie where they were found.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents.align import (adapt, find_frame, finish, is_single, join_items,
                                                           list_items)
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray, accepts_padded, wrap
from jitcore.numpy_semantics.dynamic_extents.moving import number_true, take
from jitcore.numpy_semantics.dynamic_extents.reading import join_axes, move_forward
from jitcore.numpy_semantics.dynamic_extents.reductions import list_axes
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span, Whole, find_axes, join_masks
from jitcore.numpy_semantics.functions import \
    searching  # noqa: F401  it fills the table that is extended here
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.promotion import as_operand, to_raw


def implements_all(*functions: Any, method: str | None = None) -> Callable[[Callable], Callable]:
    """Decorator: the implementation for padded arrays and for others."""
    return lambda function: implements(*functions, method=method)(
        accepts_padded(*functions, method=method)(function))


def _find(a: Any) -> tuple[list[Array], Pick]:
    """(the number of each element along each axis, in the frame, where an array is not zero)."""
    if not a.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
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


@implements_all(np.nonzero, method="nonzero")
def nonzero(a):
    numbers, pick = _find(as_operand(a))
    return tuple([PaddedArray(new_array(raw), [pick]) for raw in numbers])


@implements_all(np.flatnonzero)
def flatnonzero(a):
    return nonzero(join_axes(a))[0]


@implements_all(np.argwhere)
def argwhere(a):
    numbers, pick = _find(as_operand(a))
    raw = lax.concatenate([lax.expand_dims(raw, (raw.ndim,)) for raw in numbers], numbers[0].ndim)
    return PaddedArray(new_array(raw), [pick, Whole(len(numbers))])


@implements_all(np.extract)
def extract(condition, arr):
    return join_axes(arr)[join_axes(condition) != 0]


@implements_all(np.compress)
def compress(condition, a, axis=None, out=None):
    a = join_axes(a) if axis is None else as_operand(a)
    (place,) = list_axes(0 if axis is None else axis, a.ndim)
    return finish(a[(slice(None),) * place + (as_operand(condition) != 0,)], out)


@implements_all(method="compress")
def compress_method(a, condition, axis=None, out=None):
    return compress(condition, a, axis, out)


def unique(ar: Any, equal_nan: bool = True) -> NDArray:
    """The elements, each once, in order."""
    found = np.sort(join_axes(ar))
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
@accepts_padded(np.concatenate)
def concatenate(arrays, axis=0, out=None, dtype=None, casting="same_kind"):
    arrays = [as_operand(array) for array in arrays]
    if axis is None:
        arrays, axis = list(map(join_axes, arrays)), 0
    (place,) = list_axes(axis, arrays[0].ndim)
    if any(array.ndim != arrays[0].ndim for array in arrays):
        raise ValueError("all the input array dimensions must match")
    dtype = np.result_type(*[array.dtype for array in arrays]) if dtype is None else np.dtype(dtype)
    joint = functools.reduce(lambda one, other: _append(one, other, place), arrays)
    return finish(joint if joint.dtype == dtype else joint.astype(dtype), out)


def _append(one: Any, other: Any, place: int) -> PaddedArray:
    """Two arrays one behind the other along an axis."""
    lists = list_items(one), list_items(other)
    ends = [items[place].front() for items in lists]
    sides = [[*items[:place], *items[place + 1 :]] for items in lists]
    if any(is_single(own) != is_single(item) for own, item in zip(*sides)):
        raise ValueError("all the input array dimensions but that of the concatenation must match exactly")
    joint = join_items(sides)
    axis = sum(len(item.shape) for item in joint[:place])
    dtype = np.result_type(one.dtype, other.dtype)
    raws = [to_raw(adapt(array, [*joint[:place], end, *joint[place:]]), dtype)
            for array, end in zip((one, other), ends)]
    capacity, size = sum(end.capacity for end in ends), ends[0].size + ends[1].size
    numbers, behind = lax.iota(dtypes.int64, capacity), Span(capacity, ends[0].size, ends[1].size)
    first, second = take(raws[0], axis, numbers), take(raws[1], axis, behind.number_places())
    is_first = lax.broadcast_in_dim(lax.lt(numbers, behind.place_operand()), first.shape, (axis,))
    raw = lax.select(is_first, first, second)
    return wrap(new_array(raw), [*joint[:place], Span(capacity, 0, size), *joint[place:]])
