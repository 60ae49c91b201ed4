"""Functions of `math` that are made of several operations, or take sequences, on traced numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.functions.tables import creates
from jitcore.numpy_semantics.values.arithmetic import fail, to_float, to_int
from jitcore.numpy_semantics.values.conversions import to_python
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.rewriter.handles import Handle

_INFINITY = np.float64(math.inf)


def _read(x: Any) -> Array:
    """The value of an argument, as float64."""
    return to_raw(to_float(to_python(x)), dtypes.float64)


def _define(plain: Any) -> Any:
    """Decorator: the form of a function of numbers for traced ones; others go to the function itself."""

    def register(compute):
        def call(*args, **kwargs):
            if kwargs or not any(isinstance(x, Handle) or has_handle(x) for x in args):
                return plain(*args, **kwargs)
            return compute(*args)

        call.__name__ = plain.__name__
        creates(plain)(call)
        return compute

    return register


def _is_finite(raw: Array) -> Array:
    return lax.lt(lax.abs(raw), _INFINITY)


def _fail(predicate: Any, error: BaseException) -> None:
    fail(Number(bool, predicate), error)


# -- parts of numbers ---------------------------------------------------------------------------------------
@_define(math.modf)
def modf(x):
    """(fraction, integer), both of the number's sign."""
    raw = _read(x)
    whole = jnp.trunc(raw)
    fraction = lax.select(lax.eq(lax.abs(raw), _INFINITY), lax.full((), 0.0, dtypes.float64), raw - whole)
    return Number(float, jnp.copysign(fraction, raw)), Number(float, whole)


@_define(math.frexp)
def frexp(x):
    mantissa, exponent = np.frexp(Scalar(_read(x)))
    return to_python(mantissa), to_python(exponent)


@_define(math.ldexp)
def ldexp(x, i):
    if isinstance(i, float) or isinstance(to_python(i), Number) and to_python(i).python_type is float:
        raise TypeError("Expected an int as second argument to ldexp.")
    raw, exponent = _read(x), jnp.clip(to_raw(to_int(to_python(i)), dtypes.int64), -5000, 5000)
    found = np.ldexp(Scalar(raw), Scalar(exponent)).read()
    _fail(lax.bitwise_and(_is_finite(raw), lax.bitwise_not(_is_finite(found))),
          OverflowError("math range error"))
    return Number(float, found)


@_define(math.remainder)
def remainder(x, y):
    """x - n * y for the integer n next to x / y, the even one of two: exact, as the C standard has it."""
    one, other = _read(x), _read(y)
    size, step = lax.abs(one), lax.abs(other)
    rest = lax.rem(size, step)
    gap = lax.sub(step, rest)
    even = rest - np.float64(2) * lax.rem(np.float64(0.5) * (size - rest), step)
    found = lax.select(lax.lt(rest, gap), rest, lax.select(lax.gt(rest, gap), lax.neg(gap), even))
    found = lax.select(lax.eq(step, _INFINITY), size, found)
    found = jnp.copysign(np.float64(1), one) * found
    is_defined = lax.bitwise_and(_is_finite(one), lax.ne(other, np.float64(0)))
    are_numbers = lax.bitwise_and(lax.eq(one, one), lax.eq(other, other))
    _fail(lax.bitwise_and(are_numbers, lax.bitwise_not(is_defined)), ValueError("math domain error"))
    return Number(float, lax.select(are_numbers, found, one + other))


@_define(math.nextafter)
def nextafter(x, y):
    return Number(float, jnp.nextafter(_read(x), _read(y)))


@_define(math.ulp)
def ulp(x):
    size = lax.abs(_read(x))
    above = jnp.nextafter(size, _INFINITY)
    found = lax.select(_is_finite(above), above - size, size - jnp.nextafter(size, -_INFINITY))
    return Number(float, lax.select(_is_finite(size), found, size))


# -- lengths ------------------------------------------------------------------------------------------------
def _measure(raw: Array) -> Number:
    """The Euclidean length of a vector; its squares neither overflow nor vanish."""
    if not raw.size:
        return Number(float, lax.full((), 0.0, dtypes.float64))
    sizes = lax.abs(raw)
    largest = jnp.max(jnp.where(lax.ne(sizes, sizes), np.float64(0), sizes))
    exponent = jnp.clip(np.frexp(Scalar(largest))[1].read(), -1020, 1020)
    down, up = (np.ldexp(1.0, Scalar(lax.convert_element_type(e, dtypes.int64))).read()
                for e in (lax.neg(exponent), exponent))
    scaled = sizes * down
    found = jnp.sqrt(jnp.sum(scaled * scaled)) * up
    return Number(float, lax.select(lax.eq(largest, _INFINITY), largest, found))


@_define(math.hypot)
def hypot(*coordinates):
    return _measure(lax.concatenate([lax.reshape(_read(x), (1,)) for x in coordinates], 0))


@_define(math.dist)
def dist(p, q, /):
    one, other = map(_to_vector, (p, q))
    if one.shape != other.shape:
        raise ValueError("both points must have the same number of dimensions")
    return _measure(one - other)


def _to_vector(point: Any) -> Array:
    if isinstance(point, NDArray) and point.ndim == 1:
        return to_raw(point, dtypes.float64)
    parts = [lax.reshape(_read(x), (1,)) for x in point]
    return lax.concatenate(parts, 0) if parts else lax.full((0,), 0.0, dtypes.float64)
