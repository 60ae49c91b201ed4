"""NumPy's functions that join, repeat, move and pad arrays over handles. All of them copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import jitcore.numpy as jnp
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import as_operands, dtype_of, to_common, to_first, to_own
from jitcore.numpy_semantics.functions.rows import adapts, rows
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.functions.tables import CREATION, implements
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, wrap_result
from jitcore.numpy_semantics.values.promotion import (as_operand, cast_raw, is_python_number, result_dtype,
                                                      shape_of, to_raw)
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.rewriter.handles import Handle
from jitcore.tree_util import tree_flatten, tree_unflatten


def _of_dtype(compute: Callable) -> Callable:
    def join(arrays, dtype=None, **options):
        return compute(to_common(*arrays) if dtype is None else to_own(*arrays, dtype=dtype), **options)

    return join


rows("concatenate stack vstack hstack dstack column_stack", _of_dtype, count=0, convert=as_operands)


@implements(np.block)
def block(arrays):
    leaves, structure = tree_flatten(arrays, is_leaf=lambda x: not isinstance(x, list))
    return new_array(jnp.block(tree_unflatten(structure, to_common(*leaves))))


rows("append", count=2, convert=to_common, is_scalar=False)


rows("insert", also=["values"], convert=to_first)
rows("unpackbits", is_scalar=False)


@adapts(np.delete, convert=as_operands)
def delete(array, obj, axis=None):
    """At traced places: a selection, of traced extent."""
    if not has_handle([obj]):
        return jnp.delete(to_raw(array), obj, axis=axis)
    obj = as_operand(obj)
    array, axis = (array.ravel(), 0) if axis is None else (array, normalize_axis_index(axis, array.ndim))
    extent, dtype = array.shape[axis], dtype_of(obj)
    if dtype.kind == "b" and shape_of(obj) != (extent,):
        raise ValueError("boolean array argument `obj` to delete must be one-dimensional and match the axis "
                         f"length of {extent}")
    if dtype.kind not in "biu" or getattr(array, "is_padded", False) or getattr(obj, "is_padded", False):
        raise not_traceable("np.delete at places of this kind")
    if dtype.kind == "b":
        kept = np.logical_not(obj)
    else:
        kept = CREATION[np.ones](extent, bool)
        kept[obj] = False
    return array[(*(slice(None),) * axis, kept)]


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
rows("tile repeat resize tril triu diagflat", is_scalar=False)


@adapts(np.roll, is_scalar=False)
def roll(raw, shift, axis=None):
    if isinstance(shift, (tuple, list)):
        shift = tuple(s.read() if isinstance(s, Handle) else s for s in shift)
    return jnp.roll(raw, shift.read() if isinstance(shift, Handle) else shift, axis=axis)


@adapts(np.pad, is_scalar=False)
def pad(raw, pad_width, mode="constant", **options):
    if callable(mode):
        raise TypeError("np.pad() with a function")
    if isinstance(options.get("constant_values"), Handle):
        options["constant_values"] = to_raw(options["constant_values"], raw.dtype)
    return cast_raw(jnp.pad(raw, pad_width, mode=mode, **options), raw.dtype)


@adapts(np.vander)
def vander(raw, N=None, increasing=False):
    return jnp.vander(cast_raw(raw, np.result_type(raw.dtype, int)), N, increasing)


rows("diff", also=["prepend", "append"], convert=to_common, is_scalar=False)
rows("ediff1d", also=["to_end", "to_begin"], convert=to_first)


# -- parts and stores ---------------------------------------------------------------------------------------
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
