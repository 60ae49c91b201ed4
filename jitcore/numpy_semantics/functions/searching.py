"""NumPy's functions that select, sort, search and count over handles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import (
    dtype_of,
    finish,
    given,
    is_given,
    to_common,
    to_inexact,
    unpack,
)
from jitcore.numpy_semantics.functions.dispatch import run_source
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.contents import to_item
from jitcore.numpy_semantics.values.layouts import find_joint_order, find_own_order
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, result_dtype, shape_of, to_raw
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.rewriter.functions import resolve
from jitcore.rewriter.handles import Handle


# -- selecting ----------------------------------------------------------------------------------------------
@implements(np.where, knows_order=True)
def where(condition, x=None, y=None, /):
    if x is None and y is None:
        return np.nonzero(as_array(condition))
    operands = [as_operand(value) for value in (condition, x, y)]
    mask = to_raw(operands[0], dtypes.bool_)
    order = find_joint_order([value for value in operands if isinstance(value, NDArray)])
    return new_array(jnp.where(mask, *to_common(*operands[1:], is_strong=False)), order)


@implements(np.select)
def select(condlist, choicelist, default=0):
    *choices, last = to_common(*choicelist, default, is_strong=False)
    return new_array(jnp.select([to_raw(as_operand(c)) for c in condlist], choices, last))


@implements(np.choose, method="choose")
def choose(a, choices, out=None, mode="raise"):
    index = to_raw(as_operand(a))
    arrays = to_common(*unpack(choices))
    if mode == "raise":
        _check_inside(index, len(arrays), "invalid entry in choice array", is_signed=False)
    return finish(jnp.choose(index, arrays, mode="clip" if mode == "raise" else mode), out)


def _check_inside(index, extent: int, text: str, *, is_signed: bool = True) -> None:
    low = -extent if is_signed else 0
    outside = jnp.any((index < low) | (index >= extent)) if index.size else False
    if outside is not False:
        fail(Number(bool, outside), IndexError(text))


@implements(np.clip, method="clip")
def clip(a, a_min=np._NoValue, a_max=np._NoValue, out=None, *, min=np._NoValue, max=np._NoValue, **options):  # noqa: A002
    low = a_min if is_given(a_min) else min
    high = a_max if is_given(a_max) else max
    if not is_given(low) and not is_given(high):
        return np.positive(as_operand(a)) if out is None else np.copyto(out, a)
    a = as_operand(a)
    if is_given(low) and is_given(high) and _is_float_clip(a, low, high):
        return finish(_clip_floats(*to_common(a, low, high, is_strong=False)), out)
    if is_given(low):
        a = np.maximum(a, as_operand(low), **({} if is_given(high) or out is None else {"out": out}))
    if is_given(high):
        a = np.minimum(a, as_operand(high), **({} if out is None else {"out": out}))
    return a


def _is_float_clip(a: Any, low: Any, high: Any) -> bool:
    bounds = as_operand(low), as_operand(high)
    return isinstance(a, NDArray) and not any(map(shape_of, bounds)) and result_dtype(a, *bounds).kind == "f"


def _clip_floats(raw: Array, low: Array, high: Array) -> Array:
    """As NumPy's loop for single bounds: what is equal to a bound stays, a zero of either sign too."""
    found = jnp.where(raw < low, low, raw)
    found = jnp.where(found > high, high, found)
    are_known = isinstance(low, ConcreteArray) and isinstance(high, ConcreteArray)
    if are_known and not np.isnan([low.data, high.data]).any():
        return found
    return jnp.where(jnp.isnan(low) | jnp.isnan(high), found.dtype.type(np.nan), found)


@implements(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    found = jnp.nan_to_num(to_raw(as_operand(x)), nan=nan, posinf=posinf, neginf=neginf)
    return wrap_result(found) if copy else finish(found, x)


@implements(np.round, np.around, method="round")
def round_(a, decimals=0, out=None):
    raw = to_raw(as_operand(a))
    if raw.dtype == np.bool_:
        raw = cast_raw(raw, np.float16)
    if raw.dtype != np.float16 and (raw.dtype.kind not in "iu" or decimals >= 0):
        return finish(cast_raw(jnp.round(raw, decimals), raw.dtype), out)
    wide = raw if raw.dtype.kind == "f" else cast_raw(raw, dtypes.float64)
    power = wide.dtype.type(10.0 ** abs(decimals))
    found = jnp.rint(wide * power) / power if decimals > 0 else jnp.rint(wide / power) * power
    return finish(cast_raw(found, raw.dtype), out)


# -- taking -------------------------------------------------------------------------------------------------
@implements(np.take, method="take")
def take(a, indices, axis=None, out=None, mode="raise"):
    raw = to_raw(as_operand(a))
    index = to_raw(as_operand(indices))
    if index.dtype.kind not in "iu":
        raise TypeError(f"Cannot cast array data from {index.dtype!r} to dtype('int64') "
                        "according to the rule 'safe'")
    if mode == "raise":
        extent = raw.size if axis is None else raw.shape[axis]
        _check_inside(index, extent, f"index is out of bounds for axis 0 with size {extent}")
        return finish(jnp.take(raw, index, axis=axis, mode="wrap"), out)
    index = cast_raw(index, dtypes.int64)
    return finish(jnp.take(raw, index, axis=axis, mode=mode), out)


@implements(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    raw, index = to_raw(as_operand(arr)), to_raw(as_operand(indices))
    extent = raw.size if axis is None else raw.shape[axis]
    _check_inside(index, extent, f"index is out of bounds for axis {axis} with size {extent}")
    return new_array(jnp.take_along_axis(raw, index, axis=axis))


@implements(np.put_along_axis)
def put_along_axis(arr, indices, values, axis):
    raw, index = arr.read(), to_raw(as_operand(indices))
    extent = raw.size if axis is None else raw.shape[axis]
    _check_inside(index, extent, f"index is out of bounds for axis {axis} with size {extent}")
    values = to_item(as_operand(values), raw.dtype)
    arr.write(jnp.put_along_axis(raw, index, values, axis, inplace=False))


@implements(np.put, method="put")
def put(a, ind, v, mode="raise"):
    raw, index = a.read(), to_raw(as_operand(ind))
    values = to_item(as_operand(v), raw.dtype)
    if mode == "raise":
        _check_inside(index, raw.size, f"index is out of bounds for axis 0 with size {raw.size}")
        mode = "wrap"
    a.write(jnp.put(raw, index, values, mode=mode, inplace=False))


@implements(np.putmask)
def putmask(a, /, mask, values):
    raw, mask = a.read(), to_raw(as_operand(mask), dtypes.bool_)
    values = to_item(as_operand(values), raw.dtype)
    if tuple(values.shape) != tuple(raw.shape):
        values = jnp.resize(values, raw.shape)
    a.write(jnp.where(mask.reshape(raw.shape), values, raw))


@implements(np.place)
def place(arr, mask, vals):
    raw = arr.read()
    flags = to_raw(as_operand(mask), dtypes.bool_)
    if not as_array(vals).size:
        fail(Number(bool, jnp.any(flags)), ValueError("Cannot insert from an empty array!"))
        return
    a_place = jnp.place(raw, flags, to_item(as_operand(vals), raw.dtype), inplace=False)
    arr.write(a_place)


@implements(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):  # noqa: A002  NumPy's name
    raw = a.read()
    a.write(jnp.fill_diagonal(raw, to_item(as_operand(val), raw.dtype), wrap=wrap, inplace=False))


# -- sorting ------------------------------------------------------------------------------------------------
def _check_order(order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


@implements(np.sort, knows_order=True)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    _check_order(order)
    a = as_operand(a)
    axes = find_own_order(a) if isinstance(a, NDArray) and axis is not None else ()
    return new_array(jnp.sort(to_raw(a), axis=axis, stable=True), axes)


@implements(np.sort_complex)
def sort_complex(a):
    raw = to_raw(as_operand(a))
    return new_array(jnp.sort(cast_raw(raw, np.result_type(raw.dtype, np.complex64)), axis=-1))


@implements(method="sort")
def _sort_in_place(self: NDArray, axis=-1, kind=None, order=None, *, stable=None) -> None:
    _check_order(order)
    self.write(jnp.sort(self.read(), axis=axis, stable=True))


@implements(np.argsort, method="argsort")
def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    """Ties stand in their order: NumPy's default kinds leave theirs open."""
    _check_order(order)
    return new_array(cast_raw(jnp.argsort(to_raw(as_operand(a)), axis=axis, stable=True), dtypes.int64))


@implements(np.lexsort)
def lexsort(keys, axis=-1):
    raws = [to_raw(as_operand(key)) for key in unpack(keys)]
    return new_array(cast_raw(jnp.lexsort(raws, axis=axis), dtypes.int64))


def _check_kth(kth: Any, extent: int) -> None:
    """Raises: ValueError for a position outside of the axis."""
    if isinstance(kth, Handle) or has_handle(kth):
        raise not_traceable("np.partition() around a traced position")
    for place in np.atleast_1d(kth):
        if not -extent <= place < extent:
            raise ValueError(f"kth(={place if place >= 0 else place + extent}) out of bounds ({extent})")


def _find_extent(a: Any, axis: Any) -> int:
    a = as_operand(a)
    return a.size if axis is None else as_array(a).shape[axis]


@implements(np.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """Sorted altogether: NumPy leaves the order on both sides open."""
    _check_order(order)
    _check_kth(kth, _find_extent(a, axis))
    return sort(a, axis)


@implements(method="partition")
def _partition_in_place(self: NDArray, kth, axis=-1, kind="introselect", order=None) -> None:
    _check_kth(kth, _find_extent(self, axis))
    _sort_in_place(self, axis, order=order)


@implements(np.argpartition, method="argpartition")
def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    _check_order(order)
    _check_kth(kth, _find_extent(a, axis))
    return argsort(a, axis)


#: Places for each key up to which it is checked whether a vector is sorted.
_FEW = 8


def _bisect(places: Array, key: Array, side: str) -> Array:
    """Where one key belongs, by the very steps of NumPy: in vectors that are not sorted they decide."""

    def halve(_, carry):
        low, length = carry
        half = length >> 1
        at = jnp.minimum(low + half, np.int64(places.size - 1))
        before = lax.dynamic_index_in_dim(places, at, keepdims=False)
        right = before < key if side == "left" else before <= key
        if places.dtype.kind == "f":
            right = right | (jnp.isnan(key) & (~jnp.isnan(before) if side == "left" else True))
        right = right & (length > 0)
        return jnp.where(right, low + half + 1, low), jnp.where(right, length - half - 1, half)

    start = lax.full((), 0, dtypes.int64), lax.full((), places.size, dtypes.int64)
    return lax.fori_loop(0, int(places.size).bit_length(), halve, start)[0]


@implements(np.searchsorted, method="searchsorted")
def searchsorted(a, v, side="left", sorter=None):
    one, other = to_common(a, v)
    if sorter is not None:
        one = jnp.take(one, to_raw(as_operand(sorter)))
    if one.ndim == 1 and one.size and side in ("left", "right") and one.dtype.kind != "c":
        if not other.shape:
            return wrap_result(_bisect(one, other, side))
        if other.size * _FEW >= one.size:  # what NumPy finds in others depends on the keys before
            rises = one[:-1] <= one[1:]
            rises = rises | jnp.isnan(one[1:]) if one.dtype.kind == "f" else rises
            fail(Number(bool, ~jnp.all(rises)), ValueError("a vector that is not sorted"))
    return wrap_result(cast_raw(jnp.searchsorted(one, other, side=side), dtypes.int64))


# -- lengths that depend on values --------------------------------------------------------------------------
def _refuse(function: Any, method: str | None = None) -> None:
    def refuse(*args, **options):
        raise not_traceable(f"np.{function.__name__}(): the shape of its result depends on values")

    implements(function, method=method)(refuse)


_refuse(np.nonzero, method="nonzero")
_refuse(np.compress, method="compress")
for _function in (np.flatnonzero, np.argwhere, np.extract, np.unique_values):
    _refuse(_function)


@implements(np.isin)
def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    one, other = to_common(element, test_elements)
    return new_array(jnp.isin(one, other, invert=invert))


# -- interpolation and windows ------------------------------------------------------------------------------
@implements(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    dtype = dtypes.complex128 if dtype_of(fp).kind == "c" else dtypes.float64
    options = {name: to_raw(value, dtype) for name, value in given(left=left, right=right).items()}
    if period is not None:
        options["period"] = period if not isinstance(period, Handle) else to_raw(period, dtypes.float64)
    places, known = to_raw(as_operand(x), dtypes.float64), to_raw(as_operand(xp), dtypes.float64)
    values = to_raw(as_operand(fp), dtype)
    is_table = known.ndim == 1 and values.shape == known.shape and known.size > 0
    if dtype == np.complex128 or period is not None or not is_table:
        return wrap_result(jnp.interp(places, known, values, **options))
    return wrap_result(_interpolate(places, known, values, **options))


def _interpolate(x: Array, known: Array, values: Array, left: Any = None, right: Any = None) -> Array:
    """As NumPy computes it: at known places the values themselves, of equal ones the last."""
    before = jnp.clip(jnp.searchsorted(known, x, side="right") - 1, 0, max(known.size - 2, 0))
    behind = jnp.minimum(before + 1, known.size - 1)
    x0, x1, y0, y1 = known[before], known[behind], values[before], values[behind]
    slope = (y1 - y0) / (x1 - x0)
    found, other = slope * (x - x0) + y0, slope * (x - x1) + y1
    other = jnp.where(jnp.isnan(other) & (y0 == y1), y0, other)
    found = jnp.where(x0 == x, y0, jnp.where(jnp.isnan(found), other, found))
    found = jnp.where(x >= known[-1], values[-1], found)
    found = jnp.where(x < known[0], values[0] if left is None else left, found)
    found = jnp.where(x > known[-1], values[-1] if right is None else right, found)
    return jnp.where(jnp.isnan(x), x, found)


@implements(np.polyval)
def polyval(p, x):
    coefficients, places = to_common(p, x)
    return wrap_result(jnp.polyval(coefficients, places))


@implements(np.i0)
def i0(x):
    return wrap_result(jnp.i0(to_inexact(x)))


@implements(np.sinc)
def sinc(x):
    return wrap_result(jnp.sinc(to_inexact(x)))


@implements(np.angle)
def angle(z, deg=False):
    if dtype_of(z).kind in "iu":
        found = np.arctan2(0, as_operand(z))
        return found * (180 / np.pi) if deg else found
    return wrap_result(jnp.angle(to_inexact(z), deg))


@implements(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    if dtype_of(p).kind != "f":  # differences wrap around
        return run_source(np.unwrap, (p, discont, axis), {"period": period})
    return new_array(jnp.unwrap(to_inexact(p), discont, axis, period))


# -- comparing ----------------------------------------------------------------------------------------------
def _as_bool(raw) -> Number:
    return Number(bool, raw)


@implements(np.isclose)
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    one, other = to_common(a, b, inexact=True, is_strong=False)
    return wrap_result(jnp.isclose(one, other, rtol, atol, equal_nan))


@implements(np.allclose)
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    one, other = to_common(a, b, inexact=True, is_strong=False)
    return _as_bool(jnp.allclose(one, other, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1, a2, equal_nan=False):
    one, other = as_array(a1), as_array(a2)
    if one.shape != other.shape:
        return False
    return _as_bool(jnp.array_equal(one.read(), cast_raw(other.read(), result_dtype(one, other)), equal_nan))


@implements(np.array_equiv)
def array_equiv(a1, a2):
    return _as_bool(jnp.array_equiv(*to_common(a1, a2)))


# -- along axes ---------------------------------------------------------------------------------------------
@implements(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    raw = to_inexact(f)
    if edge_order != 1:
        return run_source(np.gradient, (f, *varargs), {"axis": axis, "edge_order": edge_order})
    spacings = [to_raw(as_operand(h), raw.dtype) if isinstance(h, Handle) else h for h in varargs]
    found = jnp.gradient(raw, *spacings, axis=axis)
    return tuple(map(new_array, found)) if isinstance(found, (list, tuple)) else new_array(found)


@implements(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    if any(dtype_of(operand).kind not in "fc" for operand in (y, y if x is None else x)):  # sums wrap around
        return run_source(np.trapezoid, (y, x, dx, axis), {})
    places = None if x is None else to_inexact(x)
    step = to_raw(dx) if isinstance(dx, Handle) else dx
    return wrap_result(jnp.trapezoid(to_inexact(y), places, step, axis=axis))


def _define_covariance(function: Any, compute: Any, *, is_scalar: bool) -> None:
    def measure(m, y=None, rowvar=True, *args, dtype=None, **options):
        raw = to_inexact(m)
        dtype = np.result_type(raw.dtype, np.float64) if dtype is None else np.dtype(dtype)
        other = None if y is None else to_raw(as_operand(y), dtype)
        names = ("bias", "ddof", "fweights", "aweights")
        options |= dict(zip(names, args))
        options = {name: to_raw(as_operand(v)) if isinstance(v, Handle) else v for name, v in options.items()}
        return wrap_result(compute(cast_raw(raw, dtype), other, rowvar, **options), is_scalar)

    implements(function)(measure)


_define_covariance(np.cov, jnp.cov, is_scalar=False)
_define_covariance(np.corrcoef, jnp.corrcoef, is_scalar=True)


@implements(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = as_array(arr)
    axis = normalize_axis_index(axis, arr.ndim)
    function, moved = resolve(func1d), np.moveaxis(arr, axis, -1)
    rows = [function(moved[place], *args, **kwargs) for place in np.ndindex(*moved.shape[:-1])]
    found = np.stack([as_array(row) for row in rows]).reshape(*moved.shape[:-1], *as_array(rows[0]).shape)
    first = moved.ndim - 1
    order = [*range(axis), *range(first, found.ndim), *range(axis, first)]
    return found.transpose(order)
