"""NumPy's reductions and cumulative functions over handles.

Each takes NumPy's parameters and gives NumPy's dtype, which NumPy itself is asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.array import Array
from jitcore.functionalize.calls import (
    NO_VALUE,
    ask_numpy,
    dtype_of,
    finish,
    given,
    is_given,
    to_inexact,
    to_mask,
)
from jitcore.functionalize.ndarray import wrap_result
from jitcore.functionalize.promotion import as_operand, cast_raw, is_python_number, to_raw
from jitcore.functionalize.tables import implements


def _axis(axis: Any) -> Any:
    if axis is None or isinstance(axis, tuple):
        return axis
    return tuple(axis) if isinstance(axis, list) else operator.index(axis)


def _result_dtype(function: Callable, a: Any, dtype: Any) -> np.dtype:
    """The dtype that was asked for, or that NumPy gives."""
    return np.dtype(dtype) if is_given(dtype) else ask_numpy(function, dtype_of(a))


# -- sums and products --------------------------------------------------------------------------------------
def _define_sum(function: Callable, compute: Callable, method: str | None = None) -> None:
    def reduce(a, axis=None, dtype=None, out=None, keepdims=NO_VALUE, initial=NO_VALUE, where=NO_VALUE):
        a = as_operand(a)
        found = _result_dtype(function, a, dtype)
        options = given(keepdims=keepdims, where=to_mask(where))
        if is_given(initial):
            options["initial"] = to_raw(initial, found)
        return finish(cast_raw(compute(to_raw(a, found), axis=_axis(axis), **options), found), out)

    implements(function, method=method)(reduce)


_define_sum(np.sum, jnp.sum, "sum")
_define_sum(np.prod, jnp.prod, "prod")
_define_sum(np.nansum, jnp.nansum)
_define_sum(np.nanprod, jnp.nanprod)


def _define_cumulative(function: Callable, compute: Callable, method: str | None = None) -> None:
    def accumulate(a, axis=None, dtype=None, out=None):
        a = as_operand(a)
        found = _result_dtype(function, a, dtype)
        return finish(cast_raw(compute(to_raw(a, found), axis=_axis(axis)), found), out)

    implements(function, method=method)(accumulate)


_define_cumulative(np.cumsum, jnp.cumsum, "cumsum")
_define_cumulative(np.cumprod, jnp.cumprod, "cumprod")
_define_cumulative(np.nancumsum, jnp.nancumsum)
_define_cumulative(np.nancumprod, jnp.nancumprod)


# -- extrema ------------------------------------------------------------------------------------------------
def _define_extremum(functions: tuple, compute: Callable, method: str | None = None) -> None:
    def reduce(a, axis=None, out=None, keepdims=NO_VALUE, initial=NO_VALUE, where=NO_VALUE):
        raw = to_raw(as_operand(a))
        options = given(keepdims=keepdims, where=to_mask(where))
        if is_given(initial):
            options["initial"] = to_raw(initial, raw.dtype)
        elif "where" in options:
            raise ValueError("reduction operation does not have an identity, so to use a where mask one has "
                             "to specify 'initial'")  # fmt: skip
        return finish(compute(raw, axis=_axis(axis), **options), out)

    implements(*functions, method=method)(reduce)


_define_extremum((np.max, np.amax), jnp.max, "max")
_define_extremum((np.min, np.amin), jnp.min, "min")
_define_extremum((np.nanmax,), jnp.nanmax)
_define_extremum((np.nanmin,), jnp.nanmin)


@implements(np.ptp)
def ptp(a, axis=None, out=None, keepdims=NO_VALUE):
    return finish(jnp.ptp(to_raw(as_operand(a)), axis=_axis(axis), **given(keepdims=keepdims)), out)


def _define_position(function: Callable, compute: Callable, method: str | None = None) -> None:
    def find(a, axis=None, out=None, *, keepdims=NO_VALUE):
        raw = to_raw(as_operand(a))
        return finish(cast_raw(compute(raw, axis=_axis(axis), **given(keepdims=keepdims)), dtypes.int64), out)

    implements(function, method=method)(find)


_define_position(np.argmax, jnp.argmax, "argmax")
_define_position(np.argmin, jnp.argmin, "argmin")
_define_position(np.nanargmax, jnp.nanargmax)
_define_position(np.nanargmin, jnp.nanargmin)


# -- truth --------------------------------------------------------------------------------------------------
def _define_truth(function: Callable, compute: Callable, method: str) -> None:
    def reduce(a, axis=None, out=None, keepdims=NO_VALUE, *, where=NO_VALUE):
        options = given(keepdims=keepdims, where=to_mask(where))
        return finish(compute(to_raw(as_operand(a), dtypes.bool_), axis=_axis(axis), **options), out)

    implements(function, method=method)(reduce)


_define_truth(np.all, jnp.all, "all")
_define_truth(np.any, jnp.any, "any")


@implements(np.count_nonzero)
def count_nonzero(a, axis=None, *, keepdims=False):
    flags = to_raw(as_operand(a), dtypes.bool_)
    return wrap_result(jnp.sum(flags, axis=_axis(axis), keepdims=keepdims, dtype=dtypes.int64))


# -- moments ------------------------------------------------------------------------------------------------
def _widen(a: Any, dtype: Any, found: np.dtype) -> Array:
    """The operand in the dtype in which NumPy computes: float32 for float16, float64 for integers."""
    if is_given(dtype):
        return to_raw(a, dtype)
    own = dtype_of(a)
    if own.kind in "biu":
        return to_raw(a, found)
    return to_raw(a, dtypes.float32 if own == np.float16 else own)


def _define_mean(function: Callable, compute: Callable, method: str | None = None) -> None:
    def reduce(a, axis=None, dtype=None, out=None, keepdims=NO_VALUE, *, where=NO_VALUE):
        a = as_operand(a)
        found = _result_dtype(function, a, dtype)
        options = given(keepdims=keepdims, where=to_mask(where))
        return finish(cast_raw(compute(_widen(a, dtype, found), axis=_axis(axis), **options), found), out)

    implements(function, method=method)(reduce)


_define_mean(np.mean, jnp.mean, "mean")
_define_mean(np.nanmean, jnp.nanmean)


def _define_spread(function: Callable, compute: Callable, method: str | None = None) -> None:
    def reduce(a, axis=None, dtype=None, out=None, ddof=0, keepdims=NO_VALUE, *, where=NO_VALUE,
               mean=NO_VALUE, correction=NO_VALUE):  # fmt: skip
        a = as_operand(a)
        found = ask_numpy(function, np.dtype(dtype) if is_given(dtype) else dtype_of(a))
        options = given(keepdims=keepdims, where=to_mask(where))
        if is_given(mean):
            options["mean"] = to_raw(mean)
        ddof = correction if is_given(correction) else ddof
        raw = compute(_widen(a, dtype, found), axis=_axis(axis), ddof=ddof, **options)
        return finish(cast_raw(raw, found), out)

    implements(function, method=method)(reduce)


_define_spread(np.var, jnp.var, "var")
_define_spread(np.std, jnp.std, "std")
_define_spread(np.nanvar, jnp.nanvar)
_define_spread(np.nanstd, jnp.nanstd)


@implements(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=NO_VALUE):
    options = given(keepdims=keepdims)
    if weights is None:
        found = jnp.average(to_inexact(a), axis=_axis(axis), returned=returned, **options)
    else:
        dtype = np.result_type(dtype_of(a), dtype_of(weights))
        dtype = np.result_type(dtype, np.float64) if dtype_of(a).kind in "biu" else dtype
        found = jnp.average(to_raw(as_operand(a), dtype), axis=_axis(axis), returned=returned,
                            weights=to_raw(as_operand(weights), dtype), **options)  # fmt: skip
    return tuple(map(wrap_result, found)) if returned else wrap_result(found)


# -- quantiles ----------------------------------------------------------------------------------------------
def _define_median(function: Callable, compute: Callable) -> None:
    def reduce(a, axis=None, out=None, overwrite_input=False, keepdims=False):
        return finish(compute(to_inexact(a), axis=_axis(axis), **given(keepdims=keepdims)), out)

    implements(function)(reduce)


_define_median(np.median, jnp.median)
_define_median(np.nanmedian, jnp.nanmedian)


def _define_quantile(function: Callable, compute: Callable, factor: float) -> None:
    def reduce(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
               weights=None):  # fmt: skip
        raw, q = to_inexact(a), as_operand(q)
        if not is_python_number(q):
            raw = cast_raw(raw, np.result_type(raw.dtype, dtype_of(q), np.float16))
        portions = to_raw(q, raw.dtype)
        options = given(keepdims=keepdims)
        if weights is not None:
            options["weights"] = to_raw(as_operand(weights), raw.dtype)
        if factor != 1:
            portions = portions / raw.dtype.type(factor)
        return finish(compute(raw, portions, axis=_axis(axis), method=method, **options), out)

    implements(function)(reduce)


_define_quantile(np.quantile, jnp.quantile, 1)
_define_quantile(np.percentile, jnp.quantile, 100)
_define_quantile(np.nanquantile, jnp.nanquantile, 1)
_define_quantile(np.nanpercentile, jnp.nanquantile, 100)
