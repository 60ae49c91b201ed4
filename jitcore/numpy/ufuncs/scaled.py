"""Sums of exponentials and of squares that do not overflow where their result does not.

In: arrays and scalars that broadcast. Out: one array of the float dtype where they meet.
"""

from __future__ import annotations

import math

import numpy as np

from jitcore import dtypes, lax
from jitcore.core.jaxpr import aval_of
from jitcore.numpy.arrays.promotion import (apply_elementwise, apply_select, convert_dtype, promote,
                                            promote_arrays)
from jitcore.numpy.ufuncs.arithmetic import (absolute, add, bitwise_or, compare_complex, exp, exp2, imag,
                                             log1p, maximum, minimum, multiply, real, reject_complex,
                                             remainder, sqrt, square, subtract, true_divide, ufunc)


@ufunc(identity=-np.inf)
def logaddexp(x, y, /):
    """log(exp(x) + exp(y)) without overflow. Same as: `numpy.logaddexp`."""
    x, y = promote("logaddexp", x, y, to=dtypes.inexact_dtype)
    larger, difference, is_nan = _order_exponents(x, y)
    return _as_principal(apply_select(is_nan, _add_infinities(x, y), add(larger, log1p(exp(difference)))))


@ufunc(identity=-np.inf)
def logaddexp2(x, y, /):
    """log2(2**x + 2**y) without overflow. Same as: `numpy.logaddexp2`."""
    x, y = promote("logaddexp2", x, y, to=dtypes.inexact_dtype)
    larger, difference, is_nan = _order_exponents(x, y)
    stable = add(larger, multiply(log1p(exp2(difference)), float(1 / np.log(2))))
    return _as_principal(apply_select(is_nan, _add_infinities(x, y), stable), 1 / math.log(2))


def _add_infinities(x, y):
    """x + y: infinity of two infinities, and else NaN, with NaN as slope too."""
    total = add(x, y)
    return apply_select(apply_elementwise(lax.ne.primitive, (total, total)), exp(total), total)


def _as_principal(logarithm, scale: float = 1.0):
    """A logarithm with its imaginary part within half a turn, of which `scale * pi` are the end."""
    if not dtypes.is_complex(aval_of(logarithm).dtype):
        return logarithm
    half = math.pi * scale
    part = subtract(half, remainder(subtract(half, imag(logarithm)), 2 * half))
    return apply_elementwise(lax.complex.primitive, (real(logarithm), part))


def _order_exponents(x, y) -> tuple:
    """(the larger, the other less the larger, whether that is NaN: of equal infinities, or of NaN).

    One comparison decides both, so that the derivatives of equal operands are a half each."""
    if dtypes.is_complex(aval_of(x).dtype):
        is_first = compare_complex(lax.ge.primitive, x, y)
    else:
        is_first = apply_elementwise(lax.ge.primitive, (x, y))
    larger, smaller = apply_select(is_first, x, y), apply_select(is_first, y, x)
    difference = subtract(smaller, larger)
    return larger, difference, apply_elementwise(lax.ne.primitive, (difference, difference))


@ufunc(identity=0)
def hypot(x, y, /):
    """sqrt(x**2 + y**2) without overflow. Same as: `numpy.hypot`. Raises: ValueError for complex operands."""
    x, y = promote_arrays("hypot", x, y, to=dtypes.inexact_dtype)
    x, y = map(absolute, reject_complex("hypot", ValueError, x, y))
    larger, smaller = maximum(x, y), minimum(x, y)
    is_zero = apply_elementwise(lax.eq.primitive, promote("hypot", larger, 0))
    ratio = true_divide(smaller, apply_select(is_zero, larger.dtype.type(1), larger))
    scaled = multiply(larger, sqrt(add(square(ratio), 1)))
    infinity = larger.dtype.type(np.inf)
    # Whatever the other one is, also where that is NaN.
    is_infinite = bitwise_or(*(apply_elementwise(lax.eq.primitive, (v, infinity)) for v in (x, y)))
    weak = larger.weak_type and larger.ndim == 0
    return convert_dtype(apply_select(is_infinite, infinity, scaled), larger.dtype, weak)


__all__ = ["hypot", "logaddexp", "logaddexp2"]
