"""`empty`: memory that nothing has been written to, for arrays that a loop fills."""

from __future__ import annotations

import numpy as np

from jitcore.core.aval import ShapedArray
from jitcore.lax.define import define
from jitcore.transforms.batching import Unmapped


def _run_empty(*, shape, dtype, number):
    return np.zeros(shape, dtype)


def _empty_aval(*, shape, dtype, number):
    return ShapedArray(tuple(shape), np.dtype(dtype))


def _lower_empty(builder, *, shape, dtype, number):
    return builder.regions(shape, dtype, None, [])


def _batch_empty(primitive, axis, values, batched, **params):
    return Unmapped(primitive.bind(**params))


@define("empty", impl=_run_empty, aval=_empty_aval, batch=_batch_empty, lower=_lower_empty,
        hlo=lambda b, *, shape, dtype, number: b.full(0, shape, dtype))
def empty(shape, dtype, *, number: int = 0):
    """An array of any elements. number: arrays of different numbers never are one in memory."""
    return empty.primitive.bind(shape=tuple(shape), dtype=np.dtype(dtype), number=number)
