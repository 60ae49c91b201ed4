"""NumPy's reductions and cumulative functions over handles.

Each takes NumPy's parameters and gives NumPy's dtype, which NumPy itself is asked for.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.array import Array
from jitcore.numpy.statistics import pick_quantiles
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import (
    NO_VALUE,
    ask_numpy,
    dtype_of,
    finish,
    given,
    is_given,
    to_inexact,
    to_mask,
)
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import new_array, wrap_result
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, is_python_number, to_raw
from jitcore.rewriter.handles import Handle


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
                             "to specify 'initial'")
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


def _count(shape: tuple, axis: Any) -> int:
    """Elements along axes."""
    return math.prod(shape if axis is None else [shape[i] for i in normalize_axis_tuple(axis, len(shape))])


def _define_spread(function: Callable, compute: Callable, method: str | None = None) -> None:
    def reduce(a, axis=None, dtype=None, out=None, ddof=0, keepdims=NO_VALUE, *, where=NO_VALUE,
               mean=NO_VALUE, correction=NO_VALUE):
        a = as_operand(a)
        found = ask_numpy(function, np.dtype(dtype) if is_given(dtype) else dtype_of(a))
        options = given(keepdims=keepdims, where=to_mask(where))
        if is_given(mean):
            options["mean"] = to_raw(mean)
        ddof = correction if is_given(correction) else ddof
        if dtype_of(a).kind == "c" and is_given(dtype) and np.dtype(dtype).kind != "c":
            raise not_traceable(f"np.{function.__name__} of complex numbers as {found}")
        if not isinstance(ddof, Handle) and ddof >= _count(a.shape, _axis(axis)):
            raise not_traceable(f"np.{function.__name__} without degrees of freedom")
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
        found = jnp.average(to_inexact(a), axis=_axis(axis), returned=True, **options)
    else:
        dtype = np.result_type(dtype_of(a), dtype_of(weights))
        dtype = np.result_type(dtype, np.float64) if dtype_of(a).kind in "biu" else dtype
        found = jnp.average(to_raw(as_operand(a), dtype), axis=_axis(axis), returned=True,
                            weights=to_raw(as_operand(weights), dtype), **options)
        error = ZeroDivisionError("Weights sum to zero, can't be normalized")
        fail(Number(bool, jnp.any(found[1] == 0)), error)
    return tuple(map(wrap_result, found)) if returned else wrap_result(found[0])


# -- quantiles ----------------------------------------------------------------------------------------------
def _define_median(function: Callable, compute: Callable) -> None:
    def reduce(a, axis=None, out=None, overwrite_input=False, keepdims=False):
        found = compute(to_inexact(a), axis=_axis(axis), **given(keepdims=keepdims))
        return finish(found + found.dtype.type(0), out)  # a mean of elements, of which -0.0 is 0.0

    implements(function)(reduce)


_define_median(np.median, jnp.median)
_define_median(np.nanmedian, jnp.nanmedian)


#: How methods that take an element round its place.
_PLACES = {"lower": jnp.floor, "higher": jnp.ceil, "nearest": jnp.rint}


def _check_portions(q: Any, whole: int) -> None:
    """Leaves portions outside of all to NumPy, which raises."""
    if is_python_number(q) and not isinstance(q, Handle):
        if not 0 <= q <= whole:
            raise ValueError(f"portions must be in the range [0, {whole}]")
        return
    raw = to_raw(q)
    if raw.dtype.kind not in "c":
        inside = jnp.all((raw >= 0) & (raw <= raw.dtype.type(whole)))
        fail(Number(bool, ~inside), ValueError("portions must be in their range"))


def _pick(a: Any, q: Any, factor: float, axis: Any, method: str, keepdims: Any, *, skips_nan: bool) -> Array:
    """The elements at portions of the sorted ones, in their own dtype."""
    raw = to_raw(a)
    dtype = raw.dtype if is_python_number(q) and raw.dtype.kind == "f" else None
    portions = to_raw(q, dtype)
    if factor != 1:
        portions = np.true_divide(new_array(portions), dtype.type(factor) if dtype else factor).read()
    axes = range(raw.ndim) if axis is None else normalize_axis_tuple(axis, raw.ndim)
    rest = [i for i in range(raw.ndim) if i not in axes]
    kept = [1 if i in axes else extent for i, extent in enumerate(raw.shape)]
    columns = jnp.transpose(raw, (*axes, *rest)).reshape((-1, *(raw.shape[i] for i in rest)))
    if not columns.shape[0] or skips_nan and raw.dtype.kind == "f":
        raise not_traceable("np.quantile() of such elements by place")
    places = _PLACES[method](portions * np.float64(columns.shape[0] - 1)
                             if dtype is None else portions * dtype.type(columns.shape[0] - 1))
    found = jnp.sort(columns, axis=0)
    picked = jnp.take(found, cast_raw(places, dtypes.int64), axis=0)
    if raw.dtype.kind == "f":
        picked = jnp.where(jnp.isnan(found[-1]), found[-1], picked)
    return picked.reshape((*portions.shape, *kept)) if is_given(keepdims) and keepdims else picked


def _lerp(below: Array, above: Array, share: Array) -> Array:
    """Between two elements, with NumPy's bits: the step is rounded as they are."""
    dtype = np.result_type(below.dtype, share.dtype)
    step, low, high = (cast_raw(x, dtype) for x in (above - below, below, above))
    share = cast_raw(share, dtype)
    return jnp.where(share >= 0.5, high - step * (1 - share), low + step * share)


def _define_quantile(function: Callable, factor: float, skips_nan: bool = False) -> None:
    def reduce(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
               weights=None):
        q = as_operand(q)
        _check_portions(q, factor)
        if weights is not None or method not in (*_PLACES, "linear", "midpoint"):
            raise not_traceable(f"np.{function.__name__}() with method={method!r}")
        if method in _PLACES:
            found = _pick(as_operand(a), q, factor, _axis(axis), method, keepdims, skips_nan=skips_nan)
            return finish(found, out)
        raw = to_inexact(a)
        portions = np.true_divide(q, factor) if factor != 1 or dtype_of(q).kind != "f" else q

        def find_between(below, above, share):
            share = jnp.where(share == 0, share, share.dtype.type(0.5)) if method == "midpoint" else share
            return _lerp(below, above, cast_raw(share, raw.dtype) if is_python_number(q) else share)

        keeps = is_given(keepdims) and bool(keepdims)
        return finish(pick_quantiles(raw, to_raw(portions), _axis(axis), keeps, find_between, skips_nan), out)

    implements(function)(reduce)


_define_quantile(np.quantile, 1)
_define_quantile(np.percentile, 100)
_define_quantile(np.nanquantile, 1, skips_nan=True)
_define_quantile(np.nanpercentile, 100, skips_nan=True)
