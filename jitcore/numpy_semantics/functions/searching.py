"""NumPy's functions that select, sort, search and count over handles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import (as_operands, dtype_of, finish, given, is_given,
                                                     to_common, to_inexact, to_inexacts, to_own, unpack)
from jitcore.numpy_semantics.functions.dispatch import run_source
from jitcore.numpy_semantics.functions.rows import adapts, rows
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import (as_operand, cast_raw, result_dtype, shape_of, to_item,
                                                      to_raw)
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.numpy_semantics.values.storage import find_joint_order, find_own_order
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


@adapts(np.choose)
def choose(index, choices, mode="raise"):
    arrays = to_common(*unpack(choices))
    if mode == "raise":
        _check_inside(index, len(arrays), "invalid entry in choice array", is_signed=False)
    return jnp.choose(index, arrays, mode="clip" if mode == "raise" else mode)


def _check_inside(index, extent: int, text: str, *, is_signed: bool = True) -> None:
    low = -extent if is_signed else 0
    outside = jnp.any((index < low) | (index >= extent)) if index.size else False
    if outside is not False:
        fail(outside, IndexError(text))


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


@adapts(np.round, np.around)
def round_(raw, decimals=0):
    if raw.dtype == np.bool_:
        raw = cast_raw(raw, np.float16)
    if raw.dtype != np.float16 and (raw.dtype.kind not in "iu" or decimals >= 0):
        return cast_raw(jnp.round(raw, decimals), raw.dtype)
    wide = raw if raw.dtype.kind == "f" else cast_raw(raw, dtypes.float64)
    power = wide.dtype.type(10.0 ** abs(decimals))
    found = jnp.rint(wide * power) / power if decimals > 0 else jnp.rint(wide / power) * power
    return cast_raw(found, raw.dtype)


# -- taking and putting -------------------------------------------------------------------------------------
@adapts(np.take, count=2)
def take(raw, index, axis=None, mode="raise"):
    if index.dtype.kind not in "iu":
        raise TypeError(f"Cannot cast array data from {index.dtype!r} to dtype('int64') "
                        "according to the rule 'safe'")
    if mode != "raise":
        return jnp.take(raw, cast_raw(index, dtypes.int64), axis=axis, mode=mode)
    extent = raw.size if axis is None else raw.shape[axis]
    _check_inside(index, extent, f"index is out of bounds for axis 0 with size {extent}")
    return jnp.take(raw, index, axis=axis, mode="wrap")


@adapts(np.take_along_axis, count=2, is_scalar=False)
def take_along_axis(raw, index, axis=-1):
    _check_along(raw, index, axis)
    return jnp.take_along_axis(raw, index, axis=axis)


def _check_along(raw: Array, index: Array, axis: Any) -> None:
    extent = raw.size if axis is None else raw.shape[axis]
    _check_inside(index, extent, f"index is out of bounds for axis {axis} with size {extent}")


def _stores(function: Callable, count: int) -> Callable:
    """Decorator: a function that changes the array which it gets first. It computes the contents from the old
    ones and from `count` operands, the last of which are values for the array."""

    def register(compute: Callable) -> None:
        def store(a, *operands, **options):
            values = to_item(as_operand(operands[-1]), a.dtype)
            a.write(compute(a.read(), *to_own(*operands[:-1]), values, **options))

        adapts(function, count=count + 1, convert=lambda *operands: list(operands))(store)

    return register


@_stores(np.put_along_axis, 2)
def put_along_axis(raw, index, values, axis):
    _check_along(raw, index, axis)
    return jnp.put_along_axis(raw, index, values, axis, inplace=False)


@_stores(np.put, 2)
def put(raw, index, values, mode="raise"):
    if mode == "raise":
        _check_inside(index, raw.size, f"index is out of bounds for axis 0 with size {raw.size}")
    return jnp.put(raw, index, values, mode="wrap" if mode == "raise" else mode, inplace=False)


@_stores(np.putmask, 2)
def putmask(raw, mask, values):
    values = values if tuple(values.shape) == tuple(raw.shape) else jnp.resize(values, raw.shape)
    return jnp.where(cast_raw(mask, dtypes.bool_).reshape(raw.shape), values, raw)


@_stores(np.place, 2)
def place(raw, mask, values):
    flags = cast_raw(mask, dtypes.bool_)
    if values.size:
        return jnp.place(raw, flags, values, inplace=False)
    fail(jnp.any(flags), ValueError("Cannot insert from an empty array!"))
    return raw


_stores(np.fill_diagonal, 1)(functools.partial(jnp.fill_diagonal, inplace=False))


# -- sorting ------------------------------------------------------------------------------------------------
@implements(np.sort, knows_order=True)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    _check_order(order)
    a = as_operand(a)
    axes = find_own_order(a) if isinstance(a, NDArray) and axis is not None else ()
    return new_array(jnp.sort(to_raw(a), axis=axis, stable=True), axes)


@implements(method="sort")
def _sort_in_place(self: NDArray, axis=-1, kind=None, order=None, *, stable=None) -> None:
    _check_order(order)
    self.write(jnp.sort(self.read(), axis=axis, stable=True))


def _check_order(order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


@adapts(np.sort_complex)
def sort_complex(raw):
    return jnp.sort(cast_raw(raw, np.result_type(raw.dtype, np.complex64)), axis=-1)


#: Ties stand in their order: NumPy's default kinds leave theirs open.
_IN_ORDER = {"dtype": dtypes.int64, "is_scalar": False, "only": {"order": (None,)}}
rows("argsort", **_IN_ORDER)
rows("lexsort", count=0, dtype=dtypes.int64)


def _check_kth(kth: Any, a: Any, axis: int | None) -> None:
    """Raises: ValueError for a position outside of the axis."""
    if has_handle([kth]):
        raise not_traceable("np.partition() around a traced position")
    extent = a.size if axis is None else as_array(a).shape[axis]
    for place in np.atleast_1d(kth):
        if not -extent <= place < extent:
            raise ValueError(f"kth(={place if place >= 0 else place + extent}) out of bounds ({extent})")


@implements(np.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """Sorted altogether: NumPy leaves the order on both sides open."""
    _check_kth(kth, as_operand(a), axis)
    return sort(a, axis, order=order)


@implements(method="partition")
def _partition_in_place(self: NDArray, kth, axis=-1, kind="introselect", order=None) -> None:
    _check_kth(kth, self, axis)
    _sort_in_place(self, axis, order=order)


@adapts(np.argpartition, **_IN_ORDER)
def argpartition(raw, kth, axis=-1):
    _check_kth(kth, raw, axis)
    return jnp.argsort(raw, axis=axis)


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


@adapts(np.searchsorted, count=2, convert=to_common, dtype=dtypes.int64)
def searchsorted(one, other, side="left", sorter=None):
    if sorter is not None:
        one = jnp.take(one, to_raw(as_operand(sorter)))
    if one.ndim == 1 and one.size and side in ("left", "right") and one.dtype.kind != "c":
        if not other.shape:
            return _bisect(one, other, side)
        if other.size * _FEW >= one.size:  # what NumPy finds in others depends on the keys before
            rises = one[:-1] <= one[1:]
            rises = rises | jnp.isnan(one[1:]) if one.dtype.kind == "f" else rises
            fail(~jnp.all(rises), ValueError("a vector that is not sorted"))
    return jnp.searchsorted(one, other, side=side)


# -- lengths that depend on values --------------------------------------------------------------------------
@implements(np.unique_values)
def unique_values(x):
    raise not_traceable("np.unique_values(): the shape of its result depends on values")


rows("isin", count=2, convert=to_common, is_scalar=False)


# -- interpolation and windows ------------------------------------------------------------------------------
@adapts(np.interp, count=3, convert=as_operands)
def interp(x, xp, fp, left=None, right=None, period=None):
    dtype = dtypes.complex128 if dtype_of(fp).kind == "c" else dtypes.float64
    options = {name: to_raw(value, dtype) for name, value in given(left=left, right=right).items()}
    places, known, values = *to_own(x, xp, dtype=dtypes.float64), to_raw(fp, dtype)
    is_table = known.ndim == 1 and values.shape == known.shape and known.size > 0
    if dtype != np.complex128 and period is None and is_table:
        return _interpolate(places, known, values, **options)
    if period is not None:
        options["period"] = to_raw(period, dtypes.float64) if isinstance(period, Handle) else period
    return jnp.interp(places, known, values, **options)


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


rows("polyval", count=2, convert=to_common)
rows("i0 sinc", convert=to_inexacts)


@adapts(np.angle, convert=as_operands)
def angle(z, deg=False):
    if dtype_of(z).kind not in "iu":
        return jnp.angle(to_inexact(z), deg)
    found = np.arctan2(0, z)
    return found * (180 / np.pi) if deg else found


@adapts(np.unwrap, convert=as_operands, is_scalar=False)
def unwrap(p, *, discont=None, axis=-1, period=2 * np.pi):
    if dtype_of(p).kind != "f":  # differences wrap around
        return run_source(np.unwrap, (p, discont, axis), {"period": period})
    return jnp.unwrap(to_inexact(p), discont, axis, period)


# -- comparing ----------------------------------------------------------------------------------------------
def _as_bool(compute: Callable) -> Callable:
    return lambda *raws, **options: Number(bool, compute(*raws, **options))


_weakly = functools.partial(to_common, inexact=True, is_strong=False)
rows("isclose", count=2, convert=_weakly)
rows("allclose", _as_bool, count=2, convert=_weakly)
rows("array_equiv", _as_bool, count=2, convert=to_common)


@implements(np.array_equal)
def array_equal(a1, a2, equal_nan=False):
    one, other = as_array(a1), as_array(a2)
    if one.shape != other.shape:
        return False
    values = one.read(), cast_raw(other.read(), result_dtype(one, other))
    return Number(bool, jnp.array_equal(*values, equal_nan))


# -- along axes ---------------------------------------------------------------------------------------------
@implements(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    raw = to_inexact(f)
    if edge_order != 1:
        return run_source(np.gradient, (f, *varargs), {"axis": axis, "edge_order": edge_order})
    spacings = [to_raw(as_operand(h), raw.dtype) if isinstance(h, Handle) else h for h in varargs]
    found = jnp.gradient(raw, *spacings, axis=axis)
    return tuple(map(new_array, found)) if isinstance(found, (list, tuple)) else new_array(found)


@adapts(np.trapezoid, convert=as_operands, also=["x"])
def trapezoid(y, x=None, dx=1.0, axis=-1):
    if any(dtype_of(operand).kind not in "fc" for operand in (y, y if x is None else x)):  # sums wrap around
        return run_source(np.trapezoid, (y, x, dx, axis), {})
    step = to_raw(dx) if isinstance(dx, Handle) else dx
    return jnp.trapezoid(to_inexact(y), None if x is None else to_inexact(x), step, axis=axis)


def _of_double(compute: Callable) -> Callable:
    def measure(raw, y=None, dtype=None, **options):
        dtype = np.result_type(raw.dtype, np.float64) if dtype is None else np.dtype(dtype)
        options = {name: to_raw(as_operand(v)) if isinstance(v, Handle) else v for name, v in options.items()}
        return compute(cast_raw(raw, dtype), None if y is None else to_raw(as_operand(y), dtype), **options)

    return measure


rows("cov", _of_double, convert=to_inexacts, is_scalar=False)
rows("corrcoef", _of_double, convert=to_inexacts)


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
