"""Sums of powers by their exponents: `logaddexp` and `logaddexp2`.

In: arrays and scalars that broadcast. Out: one array, of floats or complex numbers.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import apply_elementwise, apply_select, ensure_array, promote
from jitcore.numpy.ufuncs.arithmetic import (add, exp, exp2, imag, log1p, multiply, real, remainder, subtract,
                                             ufunc)

_INEXACT = dtypes.inexact_dtype


@ufunc(identity=-np.inf)
def logaddexp(x, y, /):
    """log(exp(x) + exp(y)) without overflow. Same as: `numpy.logaddexp`."""
    x, y = promote("logaddexp", x, y, to=_INEXACT)
    larger, difference, is_nan = _order_exponents(x, y)
    return _join_exponents(is_nan, x, y, add(larger, log1p(exp(difference))), 2 * np.pi)


@ufunc(identity=-np.inf)
def logaddexp2(x, y, /):
    """log2(2**x + 2**y) without overflow. Same as: `numpy.logaddexp2`."""
    x, y = promote("logaddexp2", x, y, to=_INEXACT)
    larger, difference, is_nan = _order_exponents(x, y)
    stable = add(larger, multiply(log1p(exp2(difference)), float(1 / np.log(2))))
    return _join_exponents(is_nan, x, y, stable, float(2 * np.pi / np.log(2)))


def _order_exponents(x, y) -> tuple:
    """(the larger, the other less the larger, whether that is NaN: of equal infinities, or of NaN).

    One comparison decides both, so that the derivatives of equal operands are a half each."""
    parts = (real(x), real(y)) if _is_complex(x, y) else (x, y)
    is_first = apply_elementwise(lax.ge.primitive, parts)
    larger, smaller = apply_select(is_first, x, y), apply_select(is_first, y, x)
    difference = subtract(smaller, larger)
    return larger, difference, apply_elementwise(lax.ne.primitive, (difference, difference))


def _is_complex(x, y) -> bool:
    return dtypes.is_complex((x if isinstance(x, Array) else ensure_array("logaddexp", y)).dtype)


def _join_exponents(is_nan, x, y, stable, period: float):
    """The result of `logaddexp`. Where it is NaN, x + y: infinity of two infinities, and else NaN, with a NaN
    as slope too. Imaginary parts lie within half a period around 0."""
    total = add(x, y)
    total = apply_select(apply_elementwise(lax.ne.primitive, (total, total)), multiply(total, total), total)
    result = apply_select(is_nan, total, stable)
    if not dtypes.is_complex(result.dtype):
        return result
    turned = subtract(remainder(add(imag(result), period / 2), period), period / 2)
    return lax.complex(real(result), turned)


__all__ = ["logaddexp", "logaddexp2"]
