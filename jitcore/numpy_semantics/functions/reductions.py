"""NumPy's reductions and cumulative functions over handles.

Each takes NumPy's parameters and gives NumPy's dtype, which NumPy itself is asked for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.array import Array
from jitcore.numpy.statistics import pick_quantiles
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import (as_operands, ask_numpy, dtype_of, to_flags, to_inexact,
                                                     to_inexacts)
from jitcore.numpy_semantics.functions.rows import adapts, rows
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import new_array
from jitcore.numpy_semantics.values.promotion import cast_raw, is_python_number, to_raw
from jitcore.rewriter.handles import Handle


# -- sums, products, means ----------------------------------------------------------------------------------
def _start(initial: Any, dtype: np.dtype) -> dict[str, Array]:
    """The option with which a fold begins, where it was given."""
    return {} if initial is None else {"initial": to_raw(initial, dtype)}


def _define_fold(name: str, widen: Callable) -> None:
    """Folds and running folds, whose results have the dtype that was asked for, or that NumPy gives."""
    function, compute = getattr(np, name), getattr(jnp, name)

    @adapts(function, convert=as_operands)
    def reduce(a, dtype=None, initial=None, **options):
        found = np.dtype(dtype) if dtype is not None else ask_numpy(function, dtype_of(a))
        return cast_raw(compute(widen(a, dtype, found), **_start(initial, found), **options), found)


def _widen(a: Any, dtype: Any, found: np.dtype) -> Array:
    """The operand in the dtype in which NumPy computes: float32 for float16, float64 for integers."""
    if dtype is not None:
        return to_raw(a, dtype)
    own = dtype_of(a)
    if own.kind in "biu":
        return to_raw(a, found)
    return to_raw(a, dtypes.float32 if own == np.float16 else own)


for _name in "sum prod nansum nanprod cumsum cumprod nancumsum nancumprod".split():
    _define_fold(_name, lambda a, dtype, found: to_raw(a, found))
for _name in "mean nanmean".split():
    _define_fold(_name, _widen)


# -- extrema and truth --------------------------------------------------------------------------------------
def _begin(compute: Callable) -> Callable:
    def reduce(raw, initial=None, **options):
        if initial is None and "where" in options:
            raise ValueError("reduction operation does not have an identity, so to use a where mask one has "
                             "to specify 'initial'")
        return compute(raw, **_start(initial, raw.dtype), **options)

    return reduce


rows("max amax min amin nanmax nanmin", _begin)
rows("ptp")


def _find_known(compute: Callable) -> Callable:
    def reduce(raw, axis=None, **options):
        if raw.dtype.kind in "fc" and raw.size:
            fail(jnp.any(jnp.all(jnp.isnan(raw), axis=axis)), ValueError("All-NaN slice encountered"))
        return compute(raw, axis=axis, **options)

    return reduce


rows("argmax argmin", dtype=dtypes.int64)
rows("nanargmax nanargmin", _find_known, dtype=dtypes.int64)
rows("all any", convert=to_flags)
adapts(np.count_nonzero, convert=to_flags)(functools.partial(jnp.sum, dtype=dtypes.int64))


# -- moments ------------------------------------------------------------------------------------------------
def _count(shape: tuple, axis: Any) -> int:
    """Elements along axes."""
    return math.prod(shape if axis is None else [shape[i] for i in normalize_axis_tuple(axis, len(shape))])


def _define_spread(function: Callable, compute: Callable) -> None:
    @adapts(function, convert=as_operands, also=["mean"])
    def reduce(a, axis=None, dtype=None, ddof=0, mean=None, correction=None, **options):
        found = ask_numpy(function, np.dtype(dtype) if dtype is not None else dtype_of(a))
        options |= {} if mean is None else {"mean": to_raw(mean)}
        ddof = ddof if correction is None else correction
        if dtype_of(a).kind == "c" and dtype is not None and np.dtype(dtype).kind != "c":
            raise not_traceable(f"np.{function.__name__} of complex numbers as {found}")
        if not isinstance(ddof, Handle) and ddof >= _count(a.shape, axis):
            raise not_traceable(f"np.{function.__name__} without degrees of freedom")
        return cast_raw(compute(_widen(a, dtype, found), axis=axis, ddof=ddof, **options), found)


for _name in "var std nanvar nanstd".split():
    _define_spread(getattr(np, _name), getattr(jnp, _name))


@adapts(np.average, convert=as_operands)
def average(a, weights=None, returned=False, **options):
    if weights is None:
        found = jnp.average(to_inexact(a), returned=True, **options)
    else:
        dtype = np.result_type(dtype_of(a), dtype_of(weights))
        dtype = np.result_type(dtype, np.float64) if dtype_of(a).kind in "biu" else dtype
        raws = [to_raw(x, dtype) for x in as_operands(a, weights)]
        found = jnp.average(raws[0], weights=raws[1], returned=True, **options)
        error = ZeroDivisionError("Weights sum to zero, can't be normalized")
        fail(jnp.any(found[1] == 0), error)
    return found if returned else found[0]


# -- quantiles ----------------------------------------------------------------------------------------------
def _without_sign(compute: Callable) -> Callable:
    """A mean of elements, of which -0.0 is 0.0."""

    def reduce(raw, **options):
        found = compute(raw, **options)
        return found + found.dtype.type(0)

    return reduce


rows("median nanmedian", _without_sign, convert=to_inexacts)


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
        fail(~inside, ValueError("portions must be in their range"))


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
    return picked.reshape((*portions.shape, *kept)) if keepdims else picked


def _lerp(below: Array, above: Array, share: Array) -> Array:
    """Between two elements, with NumPy's bits: the step is rounded as they are."""
    dtype = np.result_type(below.dtype, share.dtype)
    step, low, high = (cast_raw(x, dtype) for x in (above - below, below, above))
    share = cast_raw(share, dtype)
    return jnp.where(share >= 0.5, high - step * (1 - share), low + step * share)


def _define_quantile(function: Callable, factor: float, skips_nan: bool = False) -> None:
    @adapts(function, count=2, convert=as_operands, only={"weights": (None,)})
    def reduce(a, q, axis=None, method="linear", keepdims=False):
        _check_portions(q, factor)
        if method not in (*_PLACES, "linear", "midpoint"):
            raise not_traceable(f"np.{function.__name__}() with method={method!r}")
        if method in _PLACES:
            return _pick(a, q, factor, axis, method, keepdims, skips_nan=skips_nan)
        raw = to_inexact(a)
        portions = np.true_divide(q, factor) if factor != 1 or dtype_of(q).kind != "f" else q

        def find_between(below, above, share):
            share = jnp.where(share == 0, share, share.dtype.type(0.5)) if method == "midpoint" else share
            return _lerp(below, above, cast_raw(share, raw.dtype) if is_python_number(q) else share)

        return pick_quantiles(raw, to_raw(portions), axis, bool(keepdims), find_between, skips_nan)


_define_quantile(np.quantile, 1)
_define_quantile(np.percentile, 100)
_define_quantile(np.nanquantile, 1, skips_nan=True)
_define_quantile(np.nanpercentile, 100, skips_nan=True)
