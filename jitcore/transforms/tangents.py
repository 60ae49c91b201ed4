"""Tangents and cotangents: their types, symbolic zeros, and sums.

In: avals of primals, derivatives that may be known to be zero. Out: avals and values of derivatives. A
derivative of an inexact array has its shape and dtype; one of integers or bools has no information, its dtype
is `float0`. What is known to be zero is a `Zero`, and costs no operation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.core.primitive import registry


class Zero(NamedTuple):
    """A derivative that is zero everywhere. aval: of the derivative."""

    aval: ShapedArray


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of a derivative of (or by) a value of this type."""
    return aval if dtypes.is_inexact(aval.dtype) else ShapedArray(aval.shape, dtypes.float0)


def zero_like(value) -> Zero:
    """The zero tangent of a value."""
    return Zero(tangent_aval(aval_of(value)))


def has_tangent(value) -> bool:
    """Whether a value can have a tangent other than zero."""
    return dtypes.is_inexact(aval_of(value).dtype)


def is_zero(derivative) -> bool:
    return isinstance(derivative, Zero)


def instantiate(derivative):
    """The derivative as an array, also where it is zero. One of `float0` is an ndarray, for users only."""
    if not isinstance(derivative, Zero):
        return derivative
    aval = derivative.aval
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return fill(aval, 0)


def fill(aval: ShapedArray, number: int):
    """An array of one number, of this type."""
    scalar = np.asarray(number, aval.dtype)[()]
    if not aval.shape:
        return scalar
    return registry["broadcast_in_dim"].bind(scalar, shape=aval.shape, broadcast_dimensions=())


def add_derivatives(a, b) -> Any:
    """The sum of two derivatives of one type."""
    if isinstance(a, Zero):
        return b
    if isinstance(b, Zero):
        return a
    return registry["add"].bind(a, b)
