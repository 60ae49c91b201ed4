"""Cumulative sums and products, differences, integrals.

In: an array and an axis. Out: an array of the same extent along it (`diff` and `trapezoid` shorten it).
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import (apply_select, broadcast_array, convert_dtype, ensure_array,
                                            promote_arrays, reject_out)
from jitcore.numpy.creation import asarray
from jitcore.numpy.joining import concatenate
from jitcore.numpy.shaping import moveaxis, ravel
from jitcore.numpy.ufuncs import arithmetic, logic


def _widen_bool(dtype):
    return dtypes.default_dtype("i") if dtype == dtypes.bool_ else dtype


def _accumulate(name: str, function, a, axis, dtype, out) -> Array:
    reject_out(name, out)
    a = ensure_array(name, a)
    if axis is None or a.ndim == 0:
        a, axis = ravel(a), 0
    dtype = _widen_bool(a.dtype) if dtype is None else dtypes.canonicalize_for(dtype, a.dtype)
    return _run(function, convert_dtype(a, dtype), canonicalize_axis(axis, a.ndim))


def _run(function, a, axis: int) -> Array:
    """Bools by way of numbers: a sum is whether any was true."""
    if a.dtype != dtypes.bool_:
        return function(a, axis)
    return convert_dtype(function(convert_dtype(a, dtypes.int32), axis), dtypes.bool_)


def cumsum(a, axis: int | None = None, dtype=None, out=None):
    """Running sum along an axis (of all elements by default). Same as: `numpy.cumsum`; integers keep their
    dtype."""
    return _accumulate("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(a, axis: int | None = None, dtype=None, out=None):
    """Running product along an axis (of all elements by default). Same as: `numpy.cumprod`."""
    return _accumulate("cumprod", lax.cumprod, a, axis, dtype, out)


def _cumulative(name: str, function, x, axis, dtype, include_initial: bool, identity: int) -> Array:
    x = ensure_array(name, x)
    if not x.ndim:
        raise ValueError(f"The input to {name} must be non-scalar to take a cumulative value.")
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"The input array has rank {x.ndim}, however axis was not set to an explicit value. "
                "The axis argument is only optional for one-dimensional arrays.")
        axis = 0
    axis = canonicalize_axis(axis, x.ndim)
    dtype = reductions.widen_integer(x.dtype) if dtype is None else dtypes.canonicalize_for(dtype, x.dtype)
    out = _run(function, convert_dtype(x, dtype), axis)
    if include_initial:
        first = lax.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), identity, dtype)
        out = lax.concatenate([first, out], axis)
    return out


def cumulative_sum(x, /, *, axis: int | None = None, dtype=None, include_initial: bool = False):
    """Running sum, optionally with a leading 0. Same as: `numpy.cumulative_sum`."""
    return _cumulative("cumulative_sum", lax.cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x, /, *, axis: int | None = None, dtype=None, include_initial: bool = False):
    """Running product, optionally with a leading 1. Same as: `numpy.cumulative_prod`."""
    return _cumulative("cumulative_prod", lax.cumprod, x, axis, dtype, include_initial, 1)


def _without_nan(name: str, a, replacement: int) -> Array:
    a = ensure_array(name, a)
    if not dtypes.is_inexact(a.dtype):
        return a
    return apply_select(logic.isnan(a), a.dtype.type(replacement), a)


def nancumsum(a, axis: int | None = None, dtype=None, out=None):
    """Running sum that takes NaN as 0. Same as: `numpy.nancumsum`."""
    return cumsum(_without_nan("nancumsum", a, 0), axis, dtype, out)


def nancumprod(a, axis: int | None = None, dtype=None, out=None):
    """Running product that takes NaN as 1. Same as: `numpy.nancumprod`."""
    return cumprod(_without_nan("nancumprod", a, 1), axis, dtype, out)


# -- differences --------------------------------------------------------------------------------------------
def _slice_axis(x, start, stop, axis: int) -> Array:
    return lax.slice_in_dim(x, start, stop, 1, axis)


def diff(a, n: int = 1, axis: int = -1, prepend=None, append=None):
    """The n-th difference of neighbours along an axis. Same as: `numpy.diff`."""
    a = ensure_array("diff", a)
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional; got {a}")
    axis = canonicalize_axis(axis, a.ndim)
    edge = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    parts = [asarray(p) for p in (prepend, a, append) if p is not None]
    parts = [broadcast_array(p, edge) if p.ndim == 0 else p for p in parts]
    a = concatenate(parts, axis) if len(parts) > 1 else a
    minus = logic.not_equal if a.dtype == dtypes.bool_ else arithmetic.subtract
    for _ in range(n):
        extent = a.shape[axis]
        if not isinstance(extent, int) or extent:
            a = minus(_slice_axis(a, 1, extent, axis), _slice_axis(a, 0, extent - 1, axis))
    return a


def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours of the flattened array, with given ends. Same as: `numpy.ediff1d`."""
    ary = ravel(ensure_array("ediff1d", ary))
    parts = [diff(ary)]
    if to_begin is not None:
        parts.insert(0, convert_dtype(ravel(asarray(to_begin)), ary.dtype))
    if to_end is not None:
        parts.append(convert_dtype(ravel(asarray(to_end)), ary.dtype))
    return concatenate(parts) if len(parts) > 1 else parts[0]


def gradient(f, *varargs, axis=None, edge_order: int | None = None):
    """Central differences inside, one-sided at the ends, per axis. Same as: `numpy.gradient` with
    edge_order=1.

    Args:
        varargs: spacing: one number for all axes, or per axis a number or the coordinates."""
    if edge_order not in (None, 1):
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    (f,) = promote_arrays("gradient", f, to=dtypes.inexact_dtype)
    axes = range(f.ndim) if axis is None else axis if isinstance(axis, Sequence) else (axis,)
    axes = [canonicalize_axis(i, f.ndim) for i in axes]
    spacings = list(varargs) if len(varargs) == len(axes) else list(varargs or (1,)) * len(axes)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for {axes=}")
    for i in axes:
        if f.shape[i] < 2:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least 2 elements needed")
    spacings = [asarray(h, f.dtype) if isinstance(h, (int, float)) else asarray(h) for h in spacings]
    out = [_gradient_axis(f, h, i) for h, i in zip(spacings, axes)]
    if f.weak_type and all(isinstance(h, (int, float)) for h in varargs):
        out = [convert_dtype(slope, slope.dtype, True) for slope in out]
    return out[0] if len(out) == 1 else out


def _gradient_axis(f, h, axis: int) -> Array:
    f = moveaxis(f, axis, 0)
    n = f.shape[0]
    ahead, behind, middle = _slice_axis(f, 2, n, 0), _slice_axis(f, 0, n - 2, 0), _slice_axis(f, 1, n - 1, 0)
    steps = diff(f, axis=0)
    first, last = _slice_axis(steps, 0, 1, 0), _slice_axis(steps, n - 2, n - 1, 0)
    if h.ndim == 0:
        h = convert_dtype(h, f.dtype)
        parts = [arithmetic.divide(first, h),
                 arithmetic.divide(arithmetic.subtract(ahead, behind), arithmetic.multiply(h, 2)),
                 arithmetic.divide(last, h)]
    else:
        widths = lax.reshape(diff(convert_dtype(h, f.dtype)), (n - 1, *[1] * (f.ndim - 1)))
        left, right = _slice_axis(widths, 0, n - 2, 0), _slice_axis(widths, 1, n - 1, 0)
        total = arithmetic.add(left, right)
        terms = [
            arithmetic.multiply(arithmetic.divide(right, arithmetic.multiply(left, total)), behind),
            arithmetic.multiply(
                arithmetic.divide(arithmetic.subtract(right, left), arithmetic.multiply(left, right)), middle
            ),
            arithmetic.multiply(arithmetic.divide(left, arithmetic.multiply(right, total)), ahead),
        ]
        inside = arithmetic.add(arithmetic.subtract(terms[1], terms[0]), terms[2])
        parts = [arithmetic.divide(first, _slice_axis(widths, 0, 1, 0)), inside,
                 arithmetic.divide(last, _slice_axis(widths, n - 2, n - 1, 0))]
    return moveaxis(lax.concatenate(parts, 0), 0, axis)


def trapezoid(y, x=None, dx=1.0, axis: int = -1):
    """Integral along an axis by the trapezoidal rule. Same as: `numpy.trapezoid`."""
    if x is None:
        (y,) = promote_arrays("trapezoid", y, to=dtypes.inexact_dtype)
        widths = asarray(dx, y.dtype)
        if widths.ndim:
            widths = moveaxis(lax.expand_dims(widths, range(y.ndim - widths.ndim)), axis, -1)
        y = moveaxis(y, axis, -1)
    else:
        y, x = promote_arrays("trapezoid", y, x, to=dtypes.inexact_dtype)
        widths = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
        y = moveaxis(y, axis, -1)
    n = y.shape[-1]
    pairs = arithmetic.add(_slice_axis(y, 1, n, y.ndim - 1), _slice_axis(y, 0, n - 1, y.ndim - 1))
    return arithmetic.multiply(reductions.sum(arithmetic.multiply(pairs, widths), -1), 0.5)


__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff", "ediff1d", "gradient",
           "nancumprod", "nancumsum", "trapezoid"]
