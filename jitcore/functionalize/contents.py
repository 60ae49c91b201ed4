"""Values on their way into an array: converted as item assignment does, and the shapes that they get."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array
from jitcore.functionalize.errors import needs_value, not_traceable
from jitcore.functionalize.promotion import promotion_type, to_raw
from jitcore.rewriter.handles import Handle


def to_item(value: Any, dtype: np.dtype) -> Array:
    """The value of an operand as elements of this dtype: converted as item assignment does.

    Raises: TypeError for a complex number into a real one; OverflowError for an int that does not fit."""
    kind = promotion_type(value)
    if kind is complex and dtype.kind not in "cb":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    if kind is float and dtype.kind in "iu":
        if isinstance(value, Handle):
            _check_whole(value.read(), dtype)
        else:
            value = np.float64(value)
    if getattr(kind, "kind", "") == "c" and dtype.kind not in "cb":
        raise not_traceable("complex numbers lose their imaginary part, of which NumPy warns")
    return to_raw(value, dtype)


def _check_whole(raw: Array, dtype: np.dtype) -> None:
    """Leaves a Python float that no int of the dtype holds to Python, which raises."""
    from jitcore.functionalize.arithmetic import fail
    from jitcore.functionalize.numbers import Number

    limits = np.iinfo(dtype)
    above = lax.ge(raw, np.float64(float(limits.max) + 1))
    below = lax.le(raw, np.float64(float(limits.min) - 1)) if limits.bits < 64 else (
        lax.lt(raw, np.float64(limits.min)))  # fmt: skip
    outside = lax.bitwise_or(lax.bitwise_or(above, below), lax.ne(raw, raw))
    fail(Number(bool, outside), ValueError("cannot convert float to integer"))


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


def check_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def repeat_elements(raw: Array, size: int) -> Array:
    """The elements again and again, as `a.flat = v` takes them."""
    count = -(-size // raw.shape[0])
    tiled = lax.reshape(lax.broadcast_in_dim(raw, (count, raw.shape[0]), (1,)), (count * raw.shape[0],))
    return lax.slice(tiled, [0], [size])
