"""NumPy's functions that join, repeat, move and pad arrays over handles. All of them copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import jitcore.numpy as jnp
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import dtype_of, finish, given, is_given, to_common, unpack
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.functions.tables import CREATION, implements
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.promotion import (
    as_operand,
    cast_raw,
    is_python_number,
    result_dtype,
    shape_of,
    to_raw,
)
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.rewriter.handles import Handle


def _to_common_arrays(arrays: Sequence, dtype: Any) -> list:
    """Operands as arrays of one dtype."""
    if not is_given(dtype):
        return to_common(*arrays)
    return [to_raw(as_operand(x), dtype) for x in arrays]


def _define_joining(function: Callable, compute: Callable, *, has_axis=False, has_out=False) -> None:
    def join(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
        options = {"axis": axis} if has_axis else {}
        return finish(compute(_to_common_arrays(unpack(arrays), dtype), **options), out)

    def join_plain(tup, *, dtype=None, casting="same_kind"):
        return join(tup, dtype=dtype, casting=casting)

    implements(function)(join if has_out else join_plain)


_define_joining(np.concatenate, jnp.concatenate, has_axis=True, has_out=True)
_define_joining(np.stack, jnp.stack, has_axis=True, has_out=True)
_define_joining(np.vstack, jnp.vstack)
_define_joining(np.hstack, jnp.hstack)
_define_joining(np.dstack, jnp.dstack)
_define_joining(np.column_stack, jnp.column_stack)


@implements(np.block)
def block(arrays):
    leaves: list = []

    def collect(item):
        for part in item if isinstance(item, list) else ():
            collect(part)
        if not isinstance(item, list):
            leaves.append(item)

    collect(arrays)
    converted = iter(_to_common_arrays(leaves, None))

    def rebuild(item):
        return [rebuild(part) for part in item] if isinstance(item, list) else next(converted)

    return new_array(jnp.block(rebuild(arrays)))


@implements(np.append)
def append(arr, values, axis=None):
    one, other = _to_common_arrays((arr, values), None)
    return new_array(jnp.append(one, other, axis=axis))


@implements(np.insert)
def insert(arr, obj, values, axis=None):
    raw = to_raw(as_operand(arr))
    return new_array(jnp.insert(raw, obj, to_raw(as_operand(values), raw.dtype), axis=axis))


@implements(np.delete)
def delete(arr, obj, axis=None):
    if isinstance(obj, Handle) or has_handle(obj):
        return _delete_traced(arr, as_operand(obj), axis)
    return new_array(jnp.delete(to_raw(as_operand(arr)), obj, axis=axis))


def _delete_traced(arr: Any, obj: Any, axis: Any) -> Any:
    """The elements that are not listed: a selection, of traced extent."""
    array = as_operand(arr)
    array, axis = (array.ravel(), 0) if axis is None else (array, normalize_axis_index(axis, array.ndim))
    extent, dtype = array.shape[axis], dtype_of(obj)
    if dtype.kind == "b" and shape_of(obj) != (extent,):
        raise ValueError("boolean array argument `obj` to delete must be one-dimensional and match the axis "
                         f"length of {extent}")
    if dtype.kind not in "biu" or getattr(array, "is_partial", False) or getattr(obj, "is_partial", False):
        raise not_traceable("np.delete at places of this kind")
    if dtype.kind == "b":
        kept = np.logical_not(obj)
    else:
        kept = CREATION[np.ones](extent, bool)
        kept[obj] = False
    return array[(*(slice(None),) * axis, kept)]


@implements(np.resize)
def resize(a, new_shape):
    return new_array(jnp.resize(to_raw(as_operand(a)), new_shape))


# -- np.r_ and np.c_ -----------------------------------------------------------------------------------------
def has_part(key: Any) -> bool:
    """Whether an index of `np.r_` has handles among its parts."""
    if isinstance(key, slice):
        return has_part((key.start, key.stop, key.step))
    return any(map(has_part, key)) if isinstance(key, (tuple, list)) else isinstance(key, Handle)


def join_parts(grid: Any, key: Any) -> Any:
    """`np.r_[key]` and `np.c_[key]`. grid: which of them, for its axis and number of dimensions."""
    key = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, str) for part in key):
        raise not_traceable("np.r_ with a directive")
    parts = [_make_part(part) for part in key]
    kinds = [part if shape_of(part) == () and not isinstance(part, NDArray) else part.dtype for part in parts]
    dtype, arrays = result_dtype(*kinds), []
    for part in parts:
        array = np.asarray(part, dtype) if isinstance(part, np.ndarray) else part
        array = array.astype(dtype) if isinstance(array, NDArray) else new_array(to_raw(array, dtype))
        missing = grid.ndmin - array.ndim
        if missing > 0:
            first = grid.trans1d if grid.trans1d >= 0 else missing
            array = array[(*(None,) * first, *(slice(None),) * array.ndim, *(None,) * (missing - first))]
        arrays.append(array)
    return np.concatenate(arrays, axis=grid.axis)


def _make_part(part: Any) -> Any:
    """The numbers of a slice, `start:stop:step` or `start:stop:count * 1j`; another part as an operand."""
    if not isinstance(part, slice):
        return as_operand(part)
    start, step = 0 if part.start is None else part.start, 1 if part.step is None else part.step
    if isinstance(step, complex):
        return CREATION[np.linspace](start, part.stop, int(abs(step)))
    return CREATION[np.arange](start, part.stop, step)


# -- repeating and moving -----------------------------------------------------------------------------------
@implements(np.tile)
def tile(A, reps):  # noqa: N803  NumPy's name
    return new_array(jnp.tile(to_raw(as_operand(A)), reps))


@implements(np.repeat, method="repeat")
def repeat(a, repeats, axis=None):
    return new_array(jnp.repeat(to_raw(as_operand(a)), repeats, axis=axis))


@implements(np.roll)
def roll(a, shift, axis=None):
    if isinstance(shift, Handle):
        shift = shift.read()
    elif isinstance(shift, (tuple, list)):
        shift = tuple(s.read() if isinstance(s, Handle) else s for s in shift)
    return new_array(jnp.roll(to_raw(as_operand(a)), shift, axis=axis))


@implements(np.pad)
def pad(array, pad_width, mode="constant", **options):
    raw = to_raw(as_operand(array))
    if callable(mode):
        raise TypeError("np.pad() with a function")
    if "constant_values" in options and isinstance(options["constant_values"], Handle):
        options["constant_values"] = to_raw(options["constant_values"], raw.dtype)
    return new_array(cast_raw(jnp.pad(raw, pad_width, mode=mode, **options), raw.dtype))


# -- differences --------------------------------------------------------------------------------------------
@implements(np.diff)
def diff(a, n=1, axis=-1, prepend=np._NoValue, append=np._NoValue):
    ends = given(prepend=prepend, append=append)
    raws = _to_common_arrays((a, *ends.values()), None)
    return new_array(jnp.diff(raws[0], n=n, axis=axis, **dict(zip(ends, raws[1:]))))


@implements(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    raw = to_raw(as_operand(ary))
    ends = given(to_end=to_end, to_begin=to_begin)
    raws = {name: to_raw(as_operand(x), raw.dtype) for name, x in ends.items()}
    return new_array(jnp.ediff1d(raw, **raws))


# -- triangles ----------------------------------------------------------------------------------------------
@implements(np.tril)
def tril(m, k=0):
    return new_array(jnp.tril(to_raw(as_operand(m)), k))


@implements(np.triu)
def triu(m, k=0):
    return new_array(jnp.triu(to_raw(as_operand(m)), k))


@implements(np.diagflat)
def diagflat(v, k=0):
    return new_array(jnp.diagflat(to_raw(as_operand(v)), k))


@implements(np.vander)
def vander(x, N=None, increasing=False):  # noqa: N803  NumPy's name
    raw = to_raw(as_operand(x))
    return new_array(jnp.vander(cast_raw(raw, np.result_type(raw.dtype, int)), N, increasing))


@implements(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    """A slice between traced bounds."""
    array = as_array(filt)
    ends = trim.lower()
    if isinstance(filt, (list, tuple)) or array.ndim != 1 or axis is not None or not array.size:
        raise not_traceable("np.trim_zeros of such an array")
    is_kept = array != 0
    is_any = is_kept.any()
    first = (np.argmax(is_kept) + array.size * ~is_any).item() if "f" in ends else None
    last = ((array.size - np.argmax(is_kept[::-1])) * is_any).item() if "b" in ends else None
    return array[first:last]


@implements(np.copyto)
def copyto(dst, src, casting="same_kind", where=True):
    """Writes src into dst where a mask says so."""
    source = as_operand(src)
    if casting != "unsafe" and not _may_cast(source, dst.dtype, casting):
        raise TypeError(f"Cannot cast array data from {dtype_of(source)!r} to {dst.dtype!r} "
                        f"according to the rule '{casting}'")
    if where is True:
        dst[...] = source
        return
    mask = jnp.broadcast_to(to_raw(as_operand(where), np.bool_), dst.shape)
    value = jnp.broadcast_to(to_raw(source, dst.dtype), dst.shape)
    dst[...] = wrap_result(jnp.where(mask, value, dst.read()))


def _may_cast(source: Any, dtype: np.dtype, casting: str) -> bool:
    if is_python_number(source):
        return result_dtype(dtype, source) == dtype
    return np.can_cast(source.dtype, dtype, casting)
