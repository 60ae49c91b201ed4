"""Comparison of whole arrays: equal or close, element by element and altogether.

In: arrays (sequences too). Out: arrays of bools.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import promote_arrays
from jitcore.numpy.creation import asarray
from jitcore.numpy.ufuncs import arithmetic, logic


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan: bool = False):
    """Whether |a - b| <= atol + rtol |b| of each element; equal infinities are close. Same as:
    `numpy.isclose`."""
    a, b = promote_arrays("isclose", a, b, to=dtypes.inexact_dtype)
    tolerance = arithmetic.add(atol, arithmetic.multiply(rtol, arithmetic.absolute(b)))
    close = logic.less_equal(arithmetic.absolute(arithmetic.subtract(a, b)), tolerance)
    close = logic.logical_or(logic.logical_and(close, logic.isfinite(b)), logic.equal(a, b))
    return logic.logical_or(close, logic.logical_and(logic.isnan(a), logic.isnan(b))) if equal_nan else close


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan: bool = False):
    """Whether all elements are close. Same as: `numpy.allclose`."""
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2, equal_nan: bool = False):
    """Whether shapes and all elements are equal. Same as: `numpy.array_equal`."""
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return asarray(False)
    same = logic.equal(a1, a2)
    if equal_nan:
        same = logic.logical_or(same, logic.logical_and(logic.isnan(a1), logic.isnan(a2)))
    return reductions.all(same)


def array_equiv(a1, a2):
    """Whether shapes broadcast and all elements are equal. Same as: `numpy.array_equiv`."""
    try:
        return reductions.all(logic.equal(asarray(a1), asarray(a2)))
    except ValueError:
        return asarray(False)


__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]
