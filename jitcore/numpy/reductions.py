"""Reductions: sums, products, extrema, means and their NaN-ignoring forms, over any axes.

In: an array, `axis` (None, an int or a tuple), `keepdims`, `where` (elements to take), `initial`. Out: an
array with those axes gone. Integers narrower than the default add up in the default integer dtype, means are
floats. The forms that leave NaN out give what the plain ones give of the elements that are not NaN; NaN where
there are none.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.lax.reduce import highest_value, lowest_value
from jitcore.numpy.arrays.promotion import (apply_elementwise, apply_select, borrow_array, broadcast_array,
                                            canonicalize_axes, convert_dtype, ensure_array, reject_out,
                                            to_numeric)
from jitcore.numpy.creation import array, asarray
from jitcore.numpy.ufuncs import arithmetic, logic

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean", "min",
           "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
           "prod", "ptp", "std", "sum", "var"]


def widen_integer(dtype) -> np.dtype:
    """The dtype in which integers add up: at least the default integer of their kind."""
    kind = dtypes.kind_of(dtype)
    if kind not in "biu":
        return np.dtype(dtype)
    default = dtypes.default_dtype("u" if kind == "u" else "i")
    return default if kind == "b" or dtype.itemsize < default.itemsize else np.dtype(dtype)


def _fold(name: str, function, a, axis, keepdims: bool, where, identity, initial, combine) -> Array:
    """One reduction primitive: elements outside `where` become the identity, `initial` takes part at the
    end."""
    axes = canonicalize_axes(axis, a.ndim)
    if where is not None:
        a = apply_select(_mask(where, a.shape), a, np.asarray(identity).astype(a.dtype)[()])
    out = function(a, axes) if axes or a.ndim == 0 else array(a)
    if initial is not None:
        out = combine(out, _read_initial(initial, out.dtype))
    if keepdims:
        out = lax.expand_dims(out, axes) if axes else out
    return convert_dtype(out, out.dtype)


def _read_initial(initial, dtype) -> Array:
    initial = asarray(initial)
    if initial.ndim:
        raise ValueError(f"initial value must be a scalar. Got array of shape {initial.shape}")
    return convert_dtype(initial, dtype)


def _mask(where, shape: tuple) -> Array:
    """The mask with leading axes, so that ranks are equal whatever `config.numpy_rank_promotion` says."""
    where = ensure_array("where", where)
    if where.dtype != dtypes.bool_:
        raise ValueError(f"the where argument must be an array of bools, got {where.dtype.name}")
    missing = len(shape) - where.ndim
    return lax.expand_dims(where, range(missing)) if missing > 0 and where.ndim else where


def _prepare(name: str, a, dtype, out, widen: bool) -> Array:
    reject_out(name, out)
    a = borrow_array(name, a)
    target = widen_integer(a.dtype) if widen else to_numeric(a.dtype)
    target = target if dtype is None else dtypes.canonicalize_for(dtype, a.dtype)
    return convert_dtype(a, target, a.weak_type and target == a.dtype)


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """Sum of the elements. Same as: `numpy.sum`, with narrow integers widened to 32 bits."""
    a = _prepare("sum", a, dtype, out, promote_integers)
    if a.dtype == dtypes.bool_:
        found = any(a, axis, None, keepdims, where=where)
        return found if initial is None else logic.logical_or(found, _read_initial(initial, a.dtype))
    return _fold("sum", lax.reduce_sum, a, axis, keepdims, where, 0, initial, arithmetic.add)


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """Product of the elements. Same as: `numpy.prod`, with narrow integers widened to 32 bits."""
    a = _prepare("prod", a, dtype, out, promote_integers)
    if a.dtype == dtypes.bool_:
        found = all(a, axis, None, keepdims, where=where)
        return found if initial is None else logic.logical_and(found, _read_initial(initial, a.dtype))
    return _fold("prod", lax.reduce_prod, a, axis, keepdims, where, 1, initial, arithmetic.multiply)


def _extremum(name: str, a, axis, out, keepdims, initial, where) -> Array:
    reject_out(name, out)
    a = borrow_array(name, a)
    axes = canonicalize_axes(axis, a.ndim)
    if where is not None and initial is None:
        raise ValueError(f"reduction operation {name} does not have an identity, so to use a where mask "
                         "one has to specify 'initial'")
    if initial is None and _is_empty([a.shape[i] for i in axes]):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    is_max = name == "max"
    if dtypes.is_complex(a.dtype):
        if where is not None:
            a = apply_select(_mask(where, a.shape), a, _read_initial(initial, a.dtype))
        found = _complex_extremum(a, axes, is_max, keepdims)
        return found if initial is None else (arithmetic.maximum if is_max else arithmetic.minimum)(
            found, _read_initial(initial, a.dtype))
    function = lax.reduce_max if is_max else lax.reduce_min
    if a.dtype == dtypes.bool_:
        function = lax.reduce_or if is_max else lax.reduce_and
    identity = (lowest_value if is_max else highest_value)(a.dtype)
    combine = arithmetic.maximum if is_max else arithmetic.minimum
    return _fold(name, function, a, axis, keepdims, where, identity, initial, combine)


def _is_empty(extents) -> bool:
    return 0 in [extent for extent in extents if isinstance(extent, int)]


def _complex_extremum(a, axes: tuple, is_max: bool, keepdims) -> Array:
    """Extremum by the real part, then among those by the imaginary part; NaN wins."""
    function = lax.reduce_max if is_max else lax.reduce_min
    real, imag = arithmetic.real(a), arithmetic.imag(a)
    best = lax.expand_dims(function(real, axes), axes)
    worst = a.real.dtype.type(-np.inf if is_max else np.inf)
    candidates = logic.logical_or(logic.equal(real, best), logic.isnan(a))
    part = function(apply_select(candidates, imag, worst), axes)
    real_part = function(real, axes)
    out = apply_elementwise(lax.complex.primitive, (real_part, part))
    return lax.expand_dims(out, axes) if keepdims else out


def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Largest element; NaN if there is one. Raises: ValueError for no elements. Same as: `numpy.max`."""
    return _extremum("max", a, axis, out, keepdims, initial, where)


def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Smallest element; NaN if there is one. Raises: ValueError for no elements. Same as: `numpy.min`."""
    return _extremum("min", a, axis, out, keepdims, initial, where)


def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether no element is 0. Same as: `numpy.all`."""
    reject_out("all", out)
    a = logic.to_bool("all", a)
    return _fold("all", lax.reduce_and, a, axis, keepdims, where, True, None, None)


def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether some element is not 0. Same as: `numpy.any`."""
    reject_out("any", out)
    a = logic.to_bool("any", a)
    return _fold("any", lax.reduce_or, a, axis, keepdims, where, False, None, None)


def ptp(a, axis=None, out=None, keepdims=False):
    """Largest minus smallest element. Same as: `numpy.ptp`."""
    reject_out("ptp", out)
    return arithmetic.subtract(max(a, axis, None, keepdims), min(a, axis, None, keepdims))


def count_nonzero(a, axis=None, keepdims=False):
    """Number of elements that are not 0. Same as: `numpy.count_nonzero`."""
    return sum(logic.to_bool("count_nonzero", a), axis, dtypes.default_dtype("i"), None, keepdims)


# -- positions ----------------------------------------------------------------------------------------------
def _arg_extremum(name: str, function, a, axis, out, keepdims) -> Array:
    reject_out(name, out)
    a = ensure_array(name, a)
    rank = a.ndim
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
        added = tuple(range(rank))
    else:
        axis = canonicalize_axis(axis, rank)
        added = (axis,)
    if _is_empty([a.shape[axis]]):
        raise ValueError(f"attempt to get {name} of an empty sequence")
    is_huge = isinstance(a.shape[axis], int) and a.shape[axis] > np.iinfo(np.int32).max
    found = function(a, axis, dtypes.int64 if is_huge else dtypes.default_dtype("i"))
    return lax.expand_dims(found, added) if keepdims else found


def argmax(a, axis=None, out=None, keepdims=False):
    """Index of the first largest element (NaN counts as largest). Same as: `numpy.argmax`."""
    return _arg_extremum("argmax", lax.argmax, a, axis, out, keepdims)


def argmin(a, axis=None, out=None, keepdims=False):
    """Index of the first smallest element (NaN counts as smallest). Same as: `numpy.argmin`."""
    return _arg_extremum("argmin", lax.argmin, a, axis, out, keepdims)


# -- means --------------------------------------------------------------------------------------------------
def _count(a, axis, where, keepdims=False):
    """Number of elements that a reduction over `axis` takes: a number, or an array where `where` decides."""
    if where is not None:
        where = broadcast_array(_mask(where, a.shape), a.shape)
        return sum(where, axis, a.dtype, None, keepdims)
    count = 1
    for i in canonicalize_axes(axis, a.ndim):
        count = count * a.shape[i]
    return count


def _to_inexact(a, dtype) -> tuple[Array, np.dtype]:
    """a in the dtype in which means are computed (float32 for halves), and the dtype of the result."""
    target = dtypes.inexact_dtype(a.dtype) if dtype is None else dtypes.canonicalize_for(dtype, a.dtype)
    work = dtypes.float32 if dtypes.is_floating(target) and target.itemsize == 2 else target
    return convert_dtype(a, work if dtypes.is_inexact(work) else a.dtype), target


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Arithmetic mean, as a float. Same as: `numpy.mean`; halves are summed in float32."""
    reject_out("mean", out)
    return _mean(ensure_array("mean", a), axis, dtype, keepdims, where)


def _mean(a, axis, dtype, keepdims: bool, where) -> Array:
    a, target = _to_inexact(a, dtype)
    total = sum(a, axis, None, None, keepdims, where=where)
    return convert_dtype(arithmetic.divide(total, _scalar(_count(a, axis, where, keepdims), total)), target)


def _scalar(count, like):
    """A count as a scalar of the dtype it divides."""
    return like.dtype.type(count) if isinstance(count, int) and dtypes.is_inexact(like.dtype) else count


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None,
        correction=None):
    """Mean squared distance from the mean; the divisor is the count minus `ddof` (or `correction`).

    Same as: `numpy.var`; NaN where the divisor is not positive. Raises: ValueError for complex numbers in a
    real dtype."""
    reject_out("var", out)
    if correction is not None and not (isinstance(ddof, (int, float)) and ddof == 0):
        raise ValueError("ddof and correction can't be provided simultaneously.")
    ddof = ddof if correction is None else correction
    a = ensure_array("var", a)
    is_complex = dtype is not None and dtypes.is_complex(dtypes.canonicalize_for(dtype, a.dtype))
    if dtype is not None and dtypes.is_complex(a.dtype) and not is_complex:
        raise ValueError(f"var and std of complex numbers in the real dtype {dtype} are not defined")
    a, target = _to_inexact(a, dtype)
    center = _mean(a, axis, None, True, where) if mean is None else mean
    distance = arithmetic.subtract(a, center)
    squares = arithmetic.square(distance)
    if dtypes.is_complex(a.dtype):
        squares = arithmetic.real(arithmetic.multiply(distance, arithmetic.conjugate(distance)))
    total = sum(squares, axis, None, None, keepdims, where=where)
    divisor = arithmetic.subtract(_count(squares, axis, where, keepdims), ddof) if where is not None else (
        _count(squares, axis, None) - ddof)
    target = target if is_complex else dtypes.real_dtype(target)
    if isinstance(divisor, (int, float)):
        out = arithmetic.divide(total, total.dtype.type(divisor if divisor > 0 else np.nan))
    else:
        quotient = arithmetic.divide(total, divisor)
        out = apply_select(logic.greater(divisor, 0), quotient, total.dtype.type(np.nan))
    return convert_dtype(out, target)


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None,
        correction=None):
    """Square root of `var`. Same as: `numpy.std`."""
    return arithmetic.sqrt(
        var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))


def average(a, axis=None, weights=None, returned: bool = False, keepdims: bool = False):
    """Mean weighted by `weights` (of a's shape, or of its extents along `axis`, one or several). Same as:
    `numpy.average`."""
    a = ensure_array("average", a)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        total = lax.full(result.shape, _count(a, axis, None), result.dtype)
        return (result, total) if returned else result
    weights = ensure_array("average", weights, 1)
    if weights.shape != a.shape:
        axes = () if axis is None else [canonicalize_axis(i, a.ndim) for i in np.ravel(axis)]
        if not axes or weights.shape != tuple(a.shape[i] for i in axes):
            raise ValueError("weights must have the shape of a, or be 1-D of its length along axis")
        weights = lax.transpose(weights, np.argsort(axes))
        weights = lax.expand_dims(weights, [i for i in range(a.ndim) if i not in axes])
    dtype = dtypes.inexact_dtype(dtypes.result_type(a, weights))
    a, weights = convert_dtype(a, dtype), broadcast_array(convert_dtype(weights, dtype), a.shape)
    total = sum(weights, axis, None, None, keepdims)
    result = arithmetic.divide(sum(arithmetic.multiply(a, weights), axis, None, None, keepdims), total)
    return (result, total) if returned else result


amax, amin = max, min


def _replace_nan(a, value) -> Array:
    return apply_select(logic.isnan(a), a.dtype.type(value), a) if dtypes.is_inexact(a.dtype) else a


def _is_valid(a, where) -> Array | None:
    if not dtypes.is_inexact(a.dtype):
        return where
    valid = logic.logical_not(logic.isnan(a))
    return valid if where is None else logic.logical_and(valid, where)


def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Sum of the elements that are not NaN. Same as: `numpy.nansum`."""
    return sum(_replace_nan(ensure_array("nansum", a), 0), axis, dtype, out, keepdims, initial, where)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Product of the elements that are not NaN. Same as: `numpy.nanprod`."""
    return prod(_replace_nan(ensure_array("nanprod", a), 1), axis, dtype, out, keepdims, initial, where)


def _nan_extremum(name: str, function, a, axis, out, keepdims, initial, where, limit: float) -> Array:
    a = ensure_array(name, a)
    if not dtypes.is_inexact(a.dtype):
        return function(a, axis, out, keepdims, initial, where)
    result = function(_replace_nan(a, limit), axis, out, keepdims, initial, where)
    if initial is not None:
        return result
    nothing = all(logic.isnan(a), axis, None, keepdims)
    return apply_select(nothing, a.dtype.type(np.nan), result)


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Largest element that is not NaN. Same as: `numpy.nanmax`."""
    return _nan_extremum("nanmax", max, a, axis, out, keepdims, initial, where, -np.inf)


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Smallest element that is not NaN. Same as: `numpy.nanmin`."""
    return _nan_extremum("nanmin", min, a, axis, out, keepdims, initial, where, np.inf)


def _nan_position(name: str, function, a, axis, out, keepdims, limit: float) -> Array:
    a = ensure_array(name, a)
    if not dtypes.is_inexact(a.dtype):
        return function(a, axis, out, keepdims)
    found = function(_replace_nan(a, limit), axis, out, keepdims)
    nothing = all(logic.isnan(a), axis, None, keepdims)
    return apply_select(nothing, found.dtype.type(-1), found)


def nanargmax(a, axis=None, out=None, keepdims=False):
    """Index of the largest element that is not NaN; -1 where there is none. Same as:
    `jax.numpy.nanargmax`."""
    return _nan_position("nanargmax", argmax, a, axis, out, keepdims, -np.inf)


def nanargmin(a, axis=None, out=None, keepdims=False):
    """Index of the smallest element that is not NaN; -1 where there is none. Same as:
    `jax.numpy.nanargmin`."""
    return _nan_position("nanargmin", argmin, a, axis, out, keepdims, np.inf)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """Mean of the elements that are not NaN. Same as: `numpy.nanmean`."""
    reject_out("nanmean", out)
    a = ensure_array("nanmean", a)
    return mean(a, axis, dtype, None, keepdims, where=_is_valid(a, where))


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """Variance of the elements that are not NaN. Same as: `numpy.nanvar`."""
    reject_out("nanvar", out)
    a = ensure_array("nanvar", a)
    return var(a, axis, dtype, None, ddof, keepdims, where=_is_valid(a, where), mean=mean)


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """Square root of `nanvar`. Same as: `numpy.nanstd`."""
    reject_out("nanstd", out)
    return arithmetic.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))
