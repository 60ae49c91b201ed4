"""NumPy's functions of positions in arrays over handles, and what counts by them: `np.unravel_index`,
`np.bincount`; bits and bytes."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray
from jitcore.numpy_semantics.dynamic_extents.spans import Span
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import as_shape, dtype_of, is_given, unpack
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import new_array, wrap_result
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, as_promotable, cast_raw, to_raw
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.rewriter.handles import Handle


# -- positions ----------------------------------------------------------------------------------------------
def _to_position(x: Any, text: str) -> Array:
    """An operand as int64. Raises: TypeError for other numbers than integers."""
    x = as_operand(x)
    if dtype_of(x).kind not in "iu":
        raise TypeError(text)
    return to_raw(x, dtypes.int64)


def _in_order(parts: Any, order: str) -> list:
    """The axes of a shape, the one that changes slowest first."""
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    return list(parts) if order == "C" else list(parts)[::-1]


@implements(np.unravel_index, always=True)
def unravel_index(indices, shape, order="C"):
    extents = as_shape(shape)
    raw = _to_position(indices, "only int indices permitted")
    size = math.prod(extents)
    if raw.size:
        outside = jnp.any((raw < 0) | (raw >= size))
        fail(outside, ValueError(f"index is out of bounds for array with size {size}"))
    found, rest = [], raw
    for extent in _in_order(extents, order)[:0:-1]:
        found.append(jnp.remainder(rest, max(extent, 1)))
        rest = jnp.floor_divide(rest, max(extent, 1))
    found += [rest] * bool(extents)
    # NumPy's are columns of one array.
    parts = [wrap_result(part, order=() if len(extents) < 2 or part.ndim < 1 else None) for part in found]
    return tuple(_in_order(parts[::-1], order))


@implements(np.ravel_multi_index, always=True)
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    extents, indices = as_shape(dims), unpack(multi_index)
    if len(indices) != len(extents):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(extents)}")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
    found: Any = np.int64(0)
    parts = [_fit(_to_position(index, "only int indices permitted"), extent, each)
             for index, extent, each in zip(indices, extents, modes)]
    for part, extent in zip(_in_order(parts, order), _in_order(extents, order)):
        found = jnp.add(jnp.multiply(found, extent), part)
    return wrap_result(cast_raw(found, dtypes.int64))


def _fit(index: Array, extent: int, mode: str) -> Array:
    """Positions along an axis, with those outside of it moved into it as the mode says."""
    if mode == "wrap":
        return jnp.remainder(index, max(extent, 1))
    if mode == "clip":
        return jnp.clip(index, 0, extent - 1)
    if mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if index.size:
        outside = jnp.any((index < 0) | (index >= extent))
        fail(outside, ValueError("invalid entry in coordinates array"))
    return index


# -- counting -----------------------------------------------------------------------------------------------
#: Counts of small numbers have at least so many places, where the length of the result is traced.
_MIN_COUNTS = 1024


@implements(np.bincount, always=True)
def bincount(x, /, weights=None, minlength=0):
    """With `minlength`, and for small integer types, larger numbers than have a place leave the call to
    Python. Otherwise the result has a traced length, up to the number of elements."""
    minlength = operator.index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    numbers = as_operand(x)
    dtype = dtype_of(numbers)
    if not np.can_cast(dtype, dtypes.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {dtype!r} to dtype('int64') "
                        "according to the rule 'safe'")
    raw = to_raw(numbers, dtypes.int64)
    if raw.ndim != 1:
        raise ValueError("object too deep for desired array" if raw.ndim else
                         "object of too small depth for desired array")
    amounts = _find_amounts(weights, raw)
    if not raw.size:
        return new_array(lax.full((minlength,), 0, dtypes.int64))
    largest = jnp.max(raw)
    fail(jnp.min(raw) < 0, ValueError("'list' argument must have no negative elements"))
    capacity = minlength or max(raw.size, _MIN_COUNTS)
    if dtype.itemsize == 1 and not minlength:
        capacity = 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1
    else:
        fail(largest >= capacity, ValueError("a number beyond the places of np.bincount"))
    counts = jnp.zeros(capacity, amounts.dtype).at[raw].add(amounts)
    if minlength:
        return new_array(counts)
    length = Number(int, cast_raw(largest + 1, dtypes.int64), interval=(1, capacity))
    return PaddedArray(new_array(counts), [Span(capacity, 0, length)])


def _find_amounts(weights: Any, raw: Array) -> Array:
    """What each element of `np.bincount` adds."""
    if not is_given(weights):
        return lax.full(raw.shape, 1, dtypes.int64)
    weights = as_operand(weights)
    if not np.can_cast(dtype_of(weights), dtypes.float64, "safe"):
        raise TypeError(f"Cannot cast array data from {dtype_of(weights)!r} to dtype('float64') "
                        "according to the rule 'safe'")
    amounts = to_raw(weights, dtypes.float64)
    if amounts.shape != raw.shape:
        raise ValueError("The weights and list don't have the same length.")
    return amounts


# -- bits ---------------------------------------------------------------------------------------------------
def _list_shifts(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError("'bitorder' must be either 'little' or 'big'")
    return np.arange(8, dtype=np.uint8)[:: 1 if bitorder == "little" else -1].copy()


def _to_last_axis(a: Any, axis: Any) -> tuple[Array, int]:
    """The values with an axis as the last one; flat for None. Returns: also where it was."""
    raw = to_raw(as_operand(a))
    if axis is None:
        return raw.reshape(-1), 0
    place = normalize_axis_index(operator.index(axis), raw.ndim)
    return jnp.moveaxis(raw, place, -1), place


@implements(np.packbits)
def packbits(a, /, axis=None, bitorder="big"):
    raw, place = _to_last_axis(a, axis)
    if raw.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    bits = cast_raw(lax.ne(raw, raw.dtype.type(0)) if raw.dtype.kind != "b" else raw, dtypes.uint8)
    missing = -bits.shape[-1] % 8
    bits = jnp.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    bits = bits.reshape((*bits.shape[:-1], bits.shape[-1] // 8, 8))
    found = cast_raw(jnp.sum(jnp.left_shift(bits, _list_shifts(bitorder)), axis=-1), dtypes.uint8)
    return new_array(jnp.moveaxis(found, -1, place))


@implements(np.unpackbits)
def unpackbits(a, /, axis=None, count=None, bitorder="big"):
    raw, place = _to_last_axis(a, axis)
    if raw.dtype != dtypes.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    bits = jnp.bitwise_and(jnp.right_shift(raw[..., None], _list_shifts(bitorder)), np.uint8(1))
    bits = bits.reshape((*raw.shape[:-1], raw.shape[-1] * 8))
    if count is not None:
        count = operator.index(count)
        if count < 0:
            if -count > bits.shape[-1]:
                raise ValueError(f"-{-count} is too small: axis has {bits.shape[-1]} bits")
            count += bits.shape[-1]
        missing = max(count - bits.shape[-1], 0)
        bits = jnp.pad(bits[..., :count], [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    return new_array(jnp.moveaxis(cast_raw(bits, dtypes.uint8), -1, place))


# -- dtypes -------------------------------------------------------------------------------------------------
@implements(np.result_type, always=True)
def result_type(*arrays_and_dtypes):
    if not arrays_and_dtypes or any(map(has_handle, arrays_and_dtypes)):
        raise not_traceable("np.result_type of a sequence")
    return np.result_type(*[as_promotable(x) if isinstance(x, Handle) else x for x in arrays_and_dtypes])


@implements(np.common_type, always=True)
def common_type(*arrays):
    return np.common_type(*[np.empty(0, dtype_of(x)) for x in arrays])
