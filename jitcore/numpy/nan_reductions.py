"""Reductions that leave NaN out.

In: an array, `axis`, `keepdims`, `where`. Out: what the plain reduction gives of the elements that are
not NaN; NaN where there are none.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.numpy import logic, reductions, ufuncs
from jitcore.numpy.promotion import apply_select, ensure_array, reject_out


def _replace_nan(a, value) -> Array:
    return apply_select(logic.isnan(a), a.dtype.type(value), a)


def _is_valid(a, where) -> Array:
    valid = logic.logical_not(logic.isnan(a))
    return valid if where is None else logic.logical_and(valid, where)


def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Sum of the elements that are not NaN. Same as: `numpy.nansum`."""
    a = ensure_array("nansum", a)
    a = _replace_nan(a, 0) if dtypes.is_inexact(a.dtype) else a
    return reductions.sum(a, axis, dtype, out, keepdims, initial, where)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Product of the elements that are not NaN. Same as: `numpy.nanprod`."""
    a = ensure_array("nanprod", a)
    a = _replace_nan(a, 1) if dtypes.is_inexact(a.dtype) else a
    return reductions.prod(a, axis, dtype, out, keepdims, initial, where)


def _nan_extremum(name: str, function, a, axis, out, keepdims, initial, where, limit: float) -> Array:
    a = ensure_array(name, a)
    if not dtypes.is_inexact(a.dtype):
        return function(a, axis, out, keepdims, initial, where)
    result = function(_replace_nan(a, limit), axis, out, keepdims, initial, where)
    if initial is not None:
        return result
    nothing = reductions.all(logic.isnan(a), axis, None, keepdims)
    return apply_select(nothing, a.dtype.type(np.nan), result)


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Largest element that is not NaN. Same as: `numpy.nanmax`."""
    return _nan_extremum("nanmax", reductions.max, a, axis, out, keepdims, initial, where, -np.inf)


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Smallest element that is not NaN. Same as: `numpy.nanmin`."""
    return _nan_extremum("nanmin", reductions.min, a, axis, out, keepdims, initial, where, np.inf)


def _nan_position(name: str, function, a, axis, out, keepdims, limit: float) -> Array:
    a = ensure_array(name, a)
    if not dtypes.is_inexact(a.dtype):
        return function(a, axis, out, keepdims)
    found = function(_replace_nan(a, limit), axis, out, keepdims)
    nothing = reductions.all(logic.isnan(a), axis, None, keepdims)
    return apply_select(nothing, found.dtype.type(-1), found)


def nanargmax(a, axis=None, out=None, keepdims=False):
    """Index of the largest element that is not NaN; -1 where there is none. Same as:
    `jax.numpy.nanargmax`."""
    return _nan_position("nanargmax", reductions.argmax, a, axis, out, keepdims, -np.inf)


def nanargmin(a, axis=None, out=None, keepdims=False):
    """Index of the smallest element that is not NaN; -1 where there is none. Same as:
    `jax.numpy.nanargmin`."""
    return _nan_position("nanargmin", reductions.argmin, a, axis, out, keepdims, np.inf)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """Mean of the elements that are not NaN. Same as: `numpy.nanmean`."""
    reject_out("nanmean", out)
    a = ensure_array("nanmean", a)
    if not dtypes.is_inexact(a.dtype):
        return reductions.mean(a, axis, dtype, None, keepdims, where=where)
    return reductions.mean(a, axis, dtype, None, keepdims, where=_is_valid(a, where))


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None):
    """Variance of the elements that are not NaN. Same as: `numpy.nanvar`."""
    reject_out("nanvar", out)
    a = ensure_array("nanvar", a)
    if not dtypes.is_inexact(a.dtype):
        return reductions.var(a, axis, dtype, None, ddof, keepdims, where=where)
    return reductions.var(a, axis, dtype, None, ddof, keepdims, where=_is_valid(a, where))


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None):
    """Square root of `nanvar`. Same as: `numpy.nanstd`."""
    reject_out("nanstd", out)
    return ufuncs.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where))


__all__ = [
    "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]
