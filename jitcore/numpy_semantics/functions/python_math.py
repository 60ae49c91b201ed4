"""The functions of `math` on traced numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.functions.tables import creates
from jitcore.numpy_semantics.values.arithmetic import UNARY, fail, to_float, to_int
from jitcore.numpy_semantics.values.conversions import to_python, type_of
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.sequences import for_handles
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.operations.redirects import MATH_FUNCTIONS

_INFINITY = np.float64(math.inf)


def _read(x: Any) -> Array:
    """The value of an argument, as float64."""
    return to_raw(to_float(to_python(x)), dtypes.float64)


def _define(plain: Callable, **options: bool) -> Callable:
    """Decorator: the form of a function of numbers for traced ones. options: of `for_handles`."""
    return lambda compute: creates(plain, knows_order=True)(for_handles(plain, **options)(compute))


def _is_finite(raw: Array) -> Array:
    return lax.lt(lax.abs(raw), _INFINITY)


# -- elementary functions -----------------------------------------------------------------------------------
#: Functions that give NaN only for NaN; functions of finite numbers that may give infinity.
_TOTAL = frozenset("atan atan2 asinh tanh cbrt fabs copysign isfinite isinf isnan degrees radians".split())
_CAN_OVERFLOW = frozenset("exp exp2 expm1 sinh cosh log log2 log10 log1p pow atanh".split())


def _by_ufunc(name: str) -> Callable:
    """What NumPy's ufunc of that name gives, with the errors of `math`."""

    def compute(*args):
        raws = list(map(_read, args))
        found = getattr(np, name)(*map(Scalar, raws)).read()
        if name not in _TOTAL:
            _check_range(name, raws, found)
        return Number(bool if found.dtype == dtypes.bool_ else float, found)

    return compute


def _check_range(name: str, operands: list, found: Array) -> None:
    """`math` raises where finite or infinite arguments give NaN, and where finite ones give infinity."""

    def check(is_wrong: Array, holds: Callable, error: BaseException) -> None:
        fail(functools.reduce(lax.bitwise_and, map(holds, operands), is_wrong), error)

    check(lax.ne(found, found), lambda x: lax.eq(x, x), ValueError("math domain error"))
    if name in _CAN_OVERFLOW:
        check(lax.eq(lax.abs(found), _INFINITY), _is_finite, OverflowError("math range error"))


for _name in MATH_FUNCTIONS:
    _define(getattr(math, _name))(_by_ufunc(_name))


@_define(math.log)
def log(x, *base):
    parts = [_by_ufunc("log")(v) if isinstance(v, Handle) else math.log(v) for v in (x, *base)]
    return parts[0] / parts[1] if base else parts[0]


@_define(math.erf)
def erf(x):
    return Number(float, lax.erf(_read(x)))


@_define(math.erfc)
def erfc(x):
    return Number(float, lax.erfc(_read(x)))


@_define(math.lgamma)
def lgamma(x):
    """Raises at its poles, and where it leaves the range."""
    raw = _read(x)
    found = lax.lgamma(raw)
    is_broken = lax.bitwise_and(lax.eq(lax.abs(found), _INFINITY), _is_finite(raw))
    fail(is_broken, ValueError("math domain error"))
    return Number(float, found)


def _round(name: str) -> Callable:
    """Of the float that a number is where its type has no method of its own."""

    def compute(x):
        if isinstance(x, NDArray) and x.ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        kind, number = type_of(x), to_python(x)
        if hasattr(kind, f"__{name}__"):
            return UNARY[name](number)
        if name == "trunc":
            raise TypeError(f"type {kind.__module__}.{kind.__name__} doesn't define __trunc__ method")
        return UNARY[name](to_float(number))

    return compute


for _name in ("floor", "ceil", "trunc"):
    _define(getattr(math, _name))(_round(_name))


@_define(math.isclose)
def isclose(a, b, *, rel_tol=1e-9, abs_tol=0.0):
    one, other, relative, absolute = map(_read, (a, b, rel_tol, abs_tol))
    is_negative = lax.bitwise_or(lax.lt(relative, np.float64(0)), lax.lt(absolute, np.float64(0)))
    fail(is_negative, ValueError("tolerances must be non-negative"))
    size = lax.max(lax.abs(one), lax.abs(other))
    is_near = lax.le(lax.abs(lax.sub(one, other)), lax.max(lax.mul(relative, size), absolute))
    return Number(bool, lax.bitwise_or(lax.eq(one, other), lax.bitwise_and(is_near, _is_finite(size))))


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
    if not issubclass(type_of(i), int):
        raise TypeError("Expected an int as second argument to ldexp.")
    raw, exponent = _read(x), jnp.clip(to_raw(to_int(to_python(i)), dtypes.int64), -5000, 5000)
    found = np.ldexp(Scalar(raw), Scalar(exponent)).read()
    fail(lax.bitwise_and(_is_finite(raw), lax.bitwise_not(_is_finite(found))),
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
    fail(lax.bitwise_and(are_numbers, lax.bitwise_not(is_defined)), ValueError("math domain error"))
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


@_define(math.dist, inside=True)
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
