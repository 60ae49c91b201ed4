"""Sets of elements: `np.unique` with what it tells besides the elements, `np.intersect1d` and its like.

In: arrays. Out: padded arrays, whose elements lie in a sorted vector where they are the first of their kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray
from jitcore.numpy_semantics.dynamic_extents.reading import join_axes
from jitcore.numpy_semantics.dynamic_extents.selecting import find_new, implements_all, unique
from jitcore.numpy_semantics.dynamic_extents.spans import Pick
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import to_common
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, to_raw


def _pick(raw: Array, mask: Array) -> NDArray:
    """The elements of a vector where a mask holds."""
    return PaddedArray(new_array(raw), [Pick(mask)])


@implements_all(np.unique)
def unique_with(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *,
                equal_nan=True, sorted=True):  # noqa: A002
    if axis is not None:
        raise not_traceable("np.unique with an axis")
    if not (return_index or return_inverse or return_counts):
        return unique(ar, equal_nan=equal_nan)
    array = as_operand(ar)
    if getattr(array, "is_padded", False):
        raise not_traceable("np.unique with other results than the elements, of an array of traced extent")
    raw = to_raw(array)
    flat = raw.reshape(-1)
    if not flat.size:
        wanted = (return_index, return_inverse, return_counts)
        empty = [new_array(lax.full((0,), 0, dtypes.int64)) for is_wanted in wanted if is_wanted]
        return new_array(flat), *empty
    if return_index or return_inverse:
        order = cast_raw(jnp.argsort(flat, stable=True), dtypes.int64)
        values = jnp.take(flat, order, mode="clip")
    else:
        values = jnp.sort(flat)
    mask = find_new(values, equal_nan)
    found = [_pick(values, mask)]
    if return_index:
        found.append(_pick(order, mask))
    if return_inverse:
        ranks = jnp.cumsum(cast_raw(mask, dtypes.int64)) - 1
        found.append(new_array(jnp.zeros_like(ranks).at[order].set(ranks).reshape(raw.shape)))
    if return_counts:
        found.append(_pick(_count_equal(mask), mask))
    return tuple(found)


def _count_equal(mask: Array) -> Array:
    """From each first element of its kind in a sorted vector, how many there are of it."""
    size = mask.shape[0]
    places = lax.iota(dtypes.int64, size)
    starts = jnp.append(jnp.where(mask, places, size)[1:], np.int64(size))
    return jnp.flip(jnp.minimum.accumulate(jnp.flip(starts))) - places


def _define_unique(function: Any, **options: bool) -> None:
    kind = type(function(np.zeros(1)))

    def call(x):
        return kind(*unique_with(x, equal_nan=False, **options))

    implements(function)(call)


_define_unique(np.unique_all, return_index=True, return_inverse=True, return_counts=True)
_define_unique(np.unique_counts, return_counts=True)
_define_unique(np.unique_inverse, return_inverse=True)


# -- two sets -----------------------------------------------------------------------------------------------
@implements_all(np.union1d)
def union1d(ar1, ar2):
    return unique(np.concatenate([join_axes(ar1), join_axes(ar2)]))


def _to_vectors(one: Any, other: Any) -> list[Array]:
    return [raw.reshape(-1) for raw in to_common(one, other)]


@implements(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    if assume_unique or return_indices:
        raise not_traceable("np.intersect1d with options")
    one, other = _to_vectors(ar1, ar2)
    if not one.size or not other.size:
        return new_array(one[:0])
    values = jnp.sort(one)
    return _pick(values, lax.bitwise_and(find_new(values, True), jnp.isin(values, other)))


@implements(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    one, other = _to_vectors(ar1, ar2)
    own = to_raw(as_operand(ar1)).reshape(-1)
    if not own.size:
        return new_array(own)
    if assume_unique:
        return _pick(own, jnp.isin(one, other, invert=True))
    values = jnp.sort(own)
    is_out = jnp.isin(cast_raw(values, one.dtype), other, invert=True)
    return _pick(values, lax.bitwise_and(find_new(values, True), is_out))


@implements(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    if assume_unique:
        raise not_traceable("np.setxor1d with options")
    one, other = _to_vectors(ar1, ar2)
    values = jnp.sort(jnp.concatenate([one, other]))
    if not values.size:
        return new_array(values)
    if values.dtype.kind in "fc":
        fail(Number(bool, jnp.any(lax.ne(values, values))), ValueError("np.setxor1d of NaN"))
    is_single = lax.ne(jnp.isin(values, one), jnp.isin(values, other))
    return _pick(values, lax.bitwise_and(find_new(values, True), is_single))
