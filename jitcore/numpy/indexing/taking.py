"""Choosing, taking and putting elements by conditions and index arrays, as functions.

In: arrays, conditions that broadcast, index arrays. Out: arrays, in the dtype where alternatives meet. Traced
indices out of range give NaN (`take`'s "fill" mode) unless `mode` says otherwise; a result whose length
depends on values needs `size=` while tracing.
"""

from __future__ import annotations

import operator

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import Tracer
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy.arrays.promotion import (apply_select, broadcast_array, broadcast_shapes, convert_dtype,
                                            ensure_array, ensure_arrays, promote_arrays, reject_out,
                                            require_static)
from jitcore.numpy.creation import asarray
from jitcore.numpy.cumulative import cumsum
from jitcore.numpy.indexing.reading import get_item, read_with_mode
from jitcore.numpy.indexing.searching import nonzero, searchsorted
from jitcore.numpy.indexing.update import update_item
from jitcore.numpy.shaping import broadcast_arrays, broadcast_to, moveaxis, ravel
from jitcore.numpy.ufuncs import arithmetic, logic

__all__ = ["choose", "compress", "delete", "extract", "insert", "ix_", "piecewise", "place", "put",
           "put_along_axis", "repeat", "select", "take", "take_along_axis", "trim_zeros"]


def _as_index(name: str, indices, extent, mode) -> tuple:
    """(indices, mode for reading): "wrap" and "clip" are arithmetic on the indices; known ones need no
    mode."""
    if isinstance(indices, (list, tuple)):
        indices = asarray(indices) if any(isinstance(i, Array) for i in indices) else np.asarray(indices)
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        indices = np.asarray(indices)
    dtype = getattr(indices, "dtype", np.dtype(object))
    if dtypes.kind_of(dtype) not in "iu":
        raise TypeError(f"{name} requires integer indices, got {dtype}")
    if mode == "raise":
        raise NotImplementedError(f"The 'raise' mode to jnp.{name} is not supported.")
    if mode == "wrap":
        return arithmetic.remainder(indices, extent), "promise_in_bounds"
    if mode == "clip":
        return arithmetic.minimum(arithmetic.maximum(indices, 0), extent - 1), "promise_in_bounds"
    if isinstance(indices, np.ndarray):
        is_inside = isinstance(extent, int) and ((-extent <= indices) & (indices < extent)).all()
        indices = indices if indices.ndim else int(indices)
        if mode is None and (is_inside or not isinstance(extent, int)):
            return indices, None
    return indices, "fill" if mode is None else mode


def take(a, indices, axis: int | None = None, out=None, mode: str | None = None, unique_indices: bool = False,
         indices_are_sorted: bool = False, fill_value=None):
    """Elements (slices along axis) at indices. Same as: `jax.numpy.take`.

    Args:
        mode: for indices out of range: "fill" (default: NaN, or `fill_value`), "clip", "wrap"."""
    reject_out("take", out)
    a = ensure_array("take", a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    if isinstance(a.shape[axis], int) and not a.shape[axis] and np.size(indices):
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    indices, mode = _as_index("take", indices, a.shape[axis], mode)
    return read_with_mode(a, (slice(None),) * axis + (indices,), mode=mode, fill_value=fill_value,
                          indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def take_along_axis(arr, indices, axis: int | None = -1, mode: str | None = None, fill_value=None, *,
                    wrap_negative_indices: bool | None = None):
    """Elements at indices that vary along one axis and match along the others. Same as:
    `numpy.take_along_axis`.

    Args:
        mode: as in `take`; "one_hot" fills with 0.
        wrap_negative_indices: whether negative indices count from the end, or are out of range; by default
            they do, but for "promise_in_bounds"."""
    if wrap_negative_indices is None:
        wrap_negative_indices = mode != "promise_in_bounds"
    arr = ensure_array("take_along_axis", arr)
    if mode == "one_hot":
        mode, fill_value = "fill", 0
    if axis is None:
        return take_along_axis(ravel(arr), ravel(ensure_array("take_along_axis", indices, 1)), 0, mode,
                               fill_value, wrap_negative_indices=wrap_negative_indices)
    axis = canonicalize_axis(axis, arr.ndim)
    if len(np.shape(indices)) != arr.ndim:
        raise ValueError("indices and arr must have the same number of dimensions; "
                         f"{len(np.shape(indices))} vs. {arr.ndim}")
    if mode == "clip" and wrap_negative_indices:
        indices = _count_from_front(ensure_array("take_along_axis", indices, 1), arr.shape[axis])
    index, shape = _index_along_axis(arr, indices, axis, mode)
    mode = index[1]
    arr = broadcast_array(arr, shape)
    return read_with_mode(arr, index[0], mode=mode, fill_value=fill_value,
                          wrap_negative_indices=wrap_negative_indices)


def _index_along_axis(arr, indices, axis: int, mode):
    """((index tuple, mode), shape to which arr broadcasts): the other axes are indexed by their own
    positions."""
    indices, mode = _as_index("take_along_axis", indices, arr.shape[axis], mode)
    own = [extent for i, extent in enumerate(arr.shape) if i != axis]
    given = [extent for i, extent in enumerate(indices.shape) if i != axis]
    joint = list(broadcast_shapes(tuple(own), tuple(given)))
    index = []
    for i in range(arr.ndim):
        if i == axis:
            index.append(indices)
        else:
            extent = joint[i - (i > axis)]
            index.append(
                np.arange(extent, dtype=np.int32).reshape([-1 if j == i else 1 for j in range(arr.ndim)]))
    joint.insert(axis, arr.shape[axis])
    return (tuple(index), mode), tuple(joint)


def put_along_axis(arr, indices, values, axis: int | None, inplace: bool = True, *, mode: str | None = None):
    """A copy of arr with values at the positions `take_along_axis` reads (`inplace` must be False)."""
    _require_copy("put_along_axis", inplace)
    arr = ensure_array("put_along_axis", arr)
    if axis is None:
        return lax.reshape(put_along_axis(ravel(arr), ravel(asarray(indices)), values, 0, False), arr.shape)
    axis = canonicalize_axis(axis, arr.ndim)
    (index, _), _ = _index_along_axis(arr, indices, axis, None)
    return update_item(arr, index, values, mode=mode)


def put(a, ind, v, mode: str | None = None, *, inplace: bool = True):
    """A copy of a with v at flat indices (`inplace` must be False). Same as: `jax.numpy.put`."""
    _require_copy("put", inplace)
    a = ensure_array("put", a)
    flat, ind, v = ravel(a), ravel(asarray(ind)), ravel(asarray(v))
    if not a.size or not ind.size or not v.size:
        return a
    v = get_item(v, np.resize(np.arange(v.shape[0]), ind.shape[0]))
    if mode == "clip":
        ind = arithmetic.minimum(arithmetic.maximum(ind, 0), a.size - 1)
    elif mode == "wrap":
        ind = arithmetic.remainder(ind, a.size)
    return lax.reshape(update_item(flat, ind, v), a.shape)


def place(arr, mask, vals, *, inplace: bool = True):
    """A copy of arr with successive vals where the mask holds (`inplace` must be False). Same as:
    `jax.numpy.place`."""
    _require_copy("place", inplace)
    arr, mask = ensure_arrays("place", arr, mask)
    vals = ravel(asarray(vals))
    if not vals.size:
        if arr.size:
            raise ValueError("Cannot place values from an empty array")
        return arr
    flat_mask = ravel(logic.to_bool("place", mask))
    order = arithmetic.remainder(arithmetic.subtract(cumsum(flat_mask), 1), vals.shape[0])
    chosen = convert_dtype(get_item(vals, order), arr.dtype)
    return lax.reshape(apply_select(flat_mask, chosen, ravel(arr)), arr.shape)


def _require_copy(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"jnp.{name} cannot modify arrays in-place, because arrays are immutable. "
                         f"Pass inplace=False to return an updated array.")


# -- by conditions ------------------------------------------------------------------------------------------
def compress(condition, a, axis: int | None = None, *, size: int | None = None, fill_value=0, out=None):
    """Slices along axis where the condition holds. Same as: `numpy.compress`; `size` is required while
    tracing."""
    reject_out("compress", out)
    a, condition = ensure_array("compress", a), ensure_array("compress", asarray(condition))
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    extent = a.shape[axis]
    if not isinstance(condition, Tracer) and bool(np.any(np.asarray(condition)[extent:])):
        raise ValueError("condition contains entries that are out of bounds")
    condition = get_item(condition, slice(None, extent))
    (found,) = nonzero(condition, size=size, fill_value=extent)
    return read_with_mode(a, (slice(None),) * axis + (found,), mode="fill", fill_value=fill_value)


def extract(condition, arr, *, size: int | None = None, fill_value=0):
    """Elements where the condition holds, in one axis. Same as: `numpy.extract`; `size` is required while
    tracing."""
    return compress(ravel(asarray(condition)), ravel(asarray(arr)), 0, size=size, fill_value=fill_value)


def delete(arr, obj, axis: int | None = None, *, assume_unique_indices: bool = False):
    """arr without the slices at indices. Same as: `numpy.delete`; a traced index counts as the nearest end
    where it is out of range, and several need the promise that they differ."""
    arr = asarray(arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = canonicalize_axis(axis, arr.ndim)
    if isinstance(obj, Tracer) and (not obj.ndim or assume_unique_indices) and obj.dtype != dtypes.bool_:
        return _delete_traced(arr, ravel(obj), axis)
    if not isinstance(obj, slice):
        obj = np.asarray(obj) if np.size(obj) else np.zeros(0, np.int32)  # a list of none has no dtype
    kept = np.delete(np.arange(arr.shape[axis], dtype=np.int32), obj)
    return get_item(arr, (slice(None),) * axis + (kept,))


def _delete_traced(arr, places, axis: int) -> Array:
    extent = arr.shape[axis]
    places = lax.clamp(0, _count_from_front(places, extent), extent - 1)
    positions = lax.iota(places.dtype, extent)
    is_gone = (lax.expand_dims(positions, (0,)) == lax.expand_dims(places, (1,))).any(0)
    (kept,) = nonzero(logic.logical_not(is_gone), size=max(0, extent - places.shape[0]))
    return get_item(arr, (slice(None),) * axis + (kept,))


def _count_from_front(places, extent) -> Array:
    return arithmetic.add(places, arithmetic.multiply(logic.less(places, 0), extent))


def insert(arr, obj, values, axis: int | None = None):
    """arr with values inserted before indices. Same as: `numpy.insert`; traced indices out of range count as
    the nearest end."""
    arr, values = asarray(arr), asarray(values)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = canonicalize_axis(axis, arr.ndim)
    is_single = not isinstance(obj, slice) and np.ndim(obj) == 0
    if isinstance(obj, Tracer):
        return _insert_traced(arr, obj, values, axis)
    obj = obj if isinstance(obj, slice) else np.asarray(obj)
    extent = arr.shape[axis]
    # NumPy inserts the numbers of the new slices into the numbers of the old ones: that says where each
    # comes from.
    values = lax.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
    if is_single:
        values = moveaxis(values, 0, axis)
        count = values.shape[axis]
        obj = [int(obj)] * count
    else:
        count = len(np.arange(extent)[obj]) if isinstance(obj, slice) or obj.dtype == bool else obj.size
    source = np.insert(np.arange(extent), obj, extent + np.arange(count))
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    values = convert_dtype(broadcast_array(values, shape), arr.dtype)
    joined = lax.concatenate([arr, values], axis)
    return get_item(joined, (slice(None),) * axis + (source.astype(np.int32),))


def _insert_traced(arr, places, values, axis: int) -> Array:
    """`insert` where the indices are traced: each goes in front of what was at its place, in their order."""
    extent = arr.shape[axis]
    values = lax.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
    if places.ndim:
        count = places.shape[0]
    else:
        values = moveaxis(values, 0, axis)
        count, places = values.shape[axis], broadcast_to(places, (values.shape[axis],))
    values = broadcast_array(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    places = lax.clamp(0, _count_from_front(places, extent), extent)
    # sorted by place, the new elements first
    before = lax.concatenate([convert_dtype(places, dtypes.int32), lax.iota(dtypes.int32, extent)], 0)
    numbers = lax.iota(dtypes.int32, count + extent)
    source = lax.sort((before, numbers), 0, True, 1)[1]
    joined = lax.concatenate([convert_dtype(values, arr.dtype), arr], axis)
    return get_item(joined, (slice(None),) * axis + (source,))


def trim_zeros(filt, trim: str = "fb", axis=None):
    """An array known now without its leading ("f") and trailing ("b") zeros along an axis, several (tuple) or
    all (None): without the slices that have nothing else. Same as: `numpy.trim_zeros`."""
    filt = ensure_array("trim_zeros", asarray(filt))
    places = [np.asarray(found) for found in nonzero(filt)] if filt.ndim else []
    axes = range(filt.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    index = [slice(None)] * filt.ndim
    for i in (canonicalize_axis(i, filt.ndim) for i in axes):
        found = places[i]
        start = found.min() if "f" in trim.lower() and found.size else 0
        stop = found.max() + 1 if "b" in trim.lower() and found.size else filt.shape[i]
        index[i] = slice(int(start), int(stop) if found.size else 0)
    return get_item(filt, tuple(index)) if index else filt


# -- alternatives -------------------------------------------------------------------------------------------
def select(condlist, choicelist, default=0):
    """The choice of the first condition that holds, else `default`. Same as: `numpy.select`."""
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if not condlist:
        raise ValueError("condlist must be non-empty")
    *choices, out = promote_arrays("select", *choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        out = apply_select(logic.to_bool("select", condition), choice, out)
    return out


def choose(a, choices, out=None, mode: str = "raise"):
    """`choices[a]` of each element. Same as: `numpy.choose`; traced a needs mode "clip" or "wrap"."""
    reject_out("choose", out)
    a, *choices = broadcast_arrays(a, *promote_arrays("choose", *choices))
    if mode == "raise":
        if isinstance(a, Tracer):
            raise ValueError("jnp.choose with mode='raise' cannot be traced; use mode='clip' or mode='wrap'")
        if a.size and not 0 <= int(a.data.min()) <= int(a.data.max()) < len(choices):
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        a = arithmetic.remainder(a, len(choices))
    elif mode != "clip":
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    result = choices[-1]
    for i in range(len(choices) - 2, -1, -1):
        result = apply_select(logic.less_equal(a, i), choices[i], result)
    return result


def piecewise(x, condlist, funclist, *args, **kw):
    """The function (or number) of the last condition that holds; one more is the default. Same as:
    `numpy.piecewise`."""
    x = ensure_array("piecewise", x)
    conditions = [condlist] if isinstance(condlist, Array) and condlist.ndim == x.ndim else list(condlist)
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} "
            f"functions are expected; got {len(functions)}")

    def evaluate(function):
        value = function(x, *args, **kw) if callable(function) else function
        return convert_dtype(broadcast_array(asarray(value), x.shape), x.dtype)

    out = evaluate(functions[-1])
    for condition, function in zip(conditions, functions):
        out = apply_select(logic.to_bool("piecewise", asarray(condition)), evaluate(function), out)
    return out


def ix_(*args) -> tuple:
    """Open index grids of vectors. Same as: `numpy.ix_`."""
    out = []
    for i, one in enumerate(args):
        one = asarray(one) if not isinstance(one, Array) else one
        if one.size == 0:  # also of an empty list, which would be of floats
            one = convert_dtype(one, dtypes.default_dtype("i"))
        if one.ndim != 1:
            raise ValueError("Arguments to jnp.ix_ must be 1-dimensional")
        if one.dtype == dtypes.bool_:
            (one,) = nonzero(one)
        out.append(lax.reshape(one, (1,) * i + one.shape + (1,) * (len(args) - i - 1)))
    return tuple(out)


def repeat(a, repeats, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding=None):
    """Each element (or slice along axis) repeated. Same as: `numpy.repeat`.

    Args:
        repeats: a number, or one per element; traced ones need `total_repeat_length`."""
    a = asarray(a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonicalize_axis(axis, a.ndim)
    if total_repeat_length is not None:
        return _repeat_to_length(a, repeats, axis, operator.index(total_repeat_length))
    require_static("repeat", "repeats", repeats)
    repeats = np.asarray(repeats)
    if repeats.dtype.kind not in "biu" and repeats.size:
        raise TypeError(f"repeat: repeats must be integers, got {repeats.dtype}")
    if repeats.size != 1:
        return get_item(
            a, (slice(None),) * axis + (np.repeat(np.arange(a.shape[axis], dtype=np.int32), repeats),))
    count = int(repeats.reshape(()))
    spread = (*a.shape[: axis + 1], count, *a.shape[axis + 1 :])
    dims = tuple(i for i in range(a.ndim + 1) if i != axis + 1)
    wide = lax.broadcast_in_dim(a, spread, dims)
    return lax.reshape(wide, (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :]))


def _repeat_to_length(a, repeats, axis: int, length: int) -> Array:
    """Element i of the result is that whose cumulated repeats first exceed i; the last one fills up."""
    repeats = broadcast_to(asarray(repeats), (a.shape[axis],))
    positions = searchsorted(lax.cumsum(repeats, 0), np.arange(length, dtype=np.int32), side="right")
    return get_item(a, (slice(None),) * axis + (positions,))
