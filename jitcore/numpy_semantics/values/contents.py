"""Values on their way into an array: converted as item assignment does, and the shapes that they get."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import needs_value, not_traceable
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.promotion import cast_raw, is_weak_type, promotion_type, to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.rewriter.handles import Handle


def to_item(value: Any, dtype: np.dtype, *, is_packed: bool = False) -> Array:
    """The value of an operand as elements of this dtype: converted as item assignment does.

    is_packed: whether it goes to where basic indices, lists or `fill` put it. There NumPy takes a scalar for
    the Python number that it is, if the dtype is one of signed integers; elsewhere its C cast takes it.
    Raises: TypeError for a complex number into a real one; what Python's `int` raises for a float;
    OverflowError for an int that does not fit."""
    kind = promotion_type(value)
    is_scalar = isinstance(value, (Scalar, np.generic))
    is_single = is_weak_type(kind) or is_packed and dtype.kind == "i" and is_scalar
    if is_single and not isinstance(value, Handle):
        value = _set_item(value, dtype)
    elif kind is complex and dtype.kind not in "cb":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    elif is_single and dtype.kind in "iu":
        _check_whole(value.read(), dtype)
    if getattr(kind, "kind", "") == "c" and dtype.kind not in "cb":
        raise not_traceable("complex numbers lose their imaginary part, of which NumPy warns")
    return to_raw(value, dtype)


def _set_item(value: Any, dtype: np.dtype) -> np.generic:
    """What NumPy stores, or raises, for a number that is known."""
    cell = np.zeros((), dtype)
    with np.errstate(all="ignore"):
        cell[()] = value
    return cell[()]


def _check_whole(raw: Array, dtype: np.dtype) -> None:
    """Leaves a number that no integer of the dtype holds to Python, which raises."""
    if raw.dtype.kind not in "iuf" or np.can_cast(raw.dtype, dtype):
        return
    limits = np.iinfo(dtype)
    if raw.dtype.kind == "f":
        raw = cast_raw(raw, dtypes.float64)
        above = lax.ge(raw, np.float64(float(limits.max) + 1))
        below = lax.le(raw, np.float64(float(limits.min) - 1)) if limits.bits < 64 else (
            lax.lt(raw, np.float64(limits.min)))
        outside = lax.bitwise_or(lax.bitwise_or(above, below), lax.ne(raw, raw))
    else:
        own = np.iinfo(raw.dtype)
        outside = lax.gt(raw, raw.dtype.type(limits.max)) if own.max > limits.max else False
        if own.min < limits.min:
            outside = lax.bitwise_or(outside, lax.lt(raw, raw.dtype.type(limits.min)))
    fail(outside, OverflowError(f"a number that {dtype} does not hold"))


def drop_leading_ones(raw: Array, ndim: int) -> Array:
    """Without the leading axes of extent 1 that are too many."""
    extra = raw.ndim - ndim
    if extra > 0 and all(extent == 1 for extent in raw.shape[:extra]):
        return lax.squeeze(raw, tuple(range(extra)))
    return raw


def complete_shape(size: int, shape: Any) -> tuple:
    """A shape with an extent for -1. Raises: ValueError where it does not fit the size."""
    extents = tuple([_extent(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))])
    return np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (size,), (0,)).reshape(extents).shape


def _extent(extent: Any) -> int:
    if isinstance(extent, Handle):
        raise needs_value(extent, "a shape")
    return extent.__index__()


def repeat_elements(raw: Array, size: int) -> Array:
    """The elements again and again, as `a.flat = v` takes them."""
    count = -(-size // raw.shape[0])
    tiled = lax.reshape(lax.broadcast_in_dim(raw, (count, raw.shape[0]), (1,)), (count * raw.shape[0],))
    return lax.slice(tiled, [0], [size])
