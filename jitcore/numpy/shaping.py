"""Shapes: reshaping, moving axes, joining, splitting, repeating, padding, broadcasting.

In: arrays. Out: arrays with the same elements elsewhere. Arguments that decide a shape must be known while
tracing. Functions that only view an array are compositions of its own `transpose` and `x[index]`: of an Array
they give equations, of arrays with memory (`numpy_semantics`) views.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.symbolic import DimExpr
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy.arrays import promotion
from jitcore.numpy.arrays.promotion import (broadcast_array, canonicalize_axes, canonicalize_shape,
                                            convert_dtype, ensure_array, ensure_arrays, require_static)
from jitcore.numpy.creation import asarray


# -- questions ----------------------------------------------------------------------------------------------
def shape(a) -> tuple:
    """The extents of a, as a tuple. Same as: `numpy.shape`."""
    return np.shape(a) if isinstance(a, (list, tuple)) else ensure_array("shape", a).shape


def ndim(a) -> int:
    """The number of axes. Same as: `numpy.ndim`."""
    return len(shape(a))


def size(a, axis=None):
    """The number of elements, or the extents along `axis` multiplied. Same as: `numpy.size`."""
    extents = shape(a)
    count = 1
    for i in canonicalize_axes(axis, len(extents)):
        count = count * extents[i]
    return count


# -- reshaping ----------------------------------------------------------------------------------------------
def reshape(a, shape, order: str = "C", *, copy: bool | None = None, out_sharding=None):
    """a with another shape of as many elements; one extent may be -1. Same as: `numpy.reshape`.

    order: "C" (last axis fastest) or "F". Raises: TypeError where the sizes differ."""
    a = ensure_array("reshape", a)
    shape = _infer_extent(a, shape)
    if order == "C":
        return lax.reshape(a, shape)
    if order == "F":
        return transpose(lax.reshape(transpose(a), shape[::-1]))
    raise NotImplementedError(f"reshape with order={order!r} is not supported; use 'C' or 'F'")


def _infer_extent(a, shape) -> tuple:
    """The shape with its -1 replaced. Raises: TypeError where the extents do not multiply to a's size."""
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    given = tuple(np.asarray(g).item() if isinstance(g, (np.integer, np.ndarray)) else g for g in given)
    unknown = [i for i, extent in enumerate(given) if isinstance(extent, int) and extent == -1]
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {given}")
    known = canonicalize_shape([extent for i, extent in enumerate(given) if i not in unknown])
    count = 1
    for extent in known:
        count = count * extent
    if unknown:
        if isinstance(count, int) and isinstance(a.size, int) and (count == 0 or a.size % count):
            raise TypeError(
                f"cannot reshape array of shape {a.shape} (size {a.size}) into shape {given} "
                f"because the product of specified axis sizes ({count}) does not evenly divide {a.size}")
        return (*known[: unknown[0]], a.size // count, *known[unknown[0] :])
    if count != a.size:
        raise TypeError(
            f"cannot reshape array of shape {a.shape} (size {a.size}) into shape {given} (size {count})")
    return known


def ravel(a, order: str = "C", *, out_sharding=None):
    """a as one axis. Same as: `numpy.ravel`."""
    a = ensure_array("ravel", a)
    return reshape(a, (a.size,), "C" if order == "K" else order)


def resize(a, new_shape):
    """a repeated or cut to fill a new shape. Same as: `numpy.resize`."""
    new_shape = canonicalize_shape(new_shape)
    a = ravel(a)
    count = int(np.prod(new_shape))
    if not a.size or not count:
        return lax.full(new_shape, 0, a.dtype)
    repeats = -(-count // a.size)
    repeated = lax.concatenate([a] * repeats, 0) if repeats > 1 else a
    return lax.reshape(lax.slice_in_dim(repeated, 0, count), new_shape)


def transpose(a, axes=None):
    """a with its axes in another order; reversed by default. Same as: `numpy.transpose`."""
    a = ensure_array("transpose", a)
    order = range(a.ndim)[::-1] if axes is None else [canonicalize_axis(i, a.ndim) for i in axes]
    return a if tuple(order) == tuple(range(a.ndim)) else lax.transpose(a, tuple(order))


def as_viewed(name: str, a):
    """a, if it is an array of another kind that `transpose` and `x[index]` view, or as an Array."""
    return a if getattr(type(a), "has_views", False) else ensure_array(name, a)


def permute_dims(a, /, axes):
    """a with its axes in another order. Same as: `numpy.permute_dims`."""
    return transpose(a, axes)


def matrix_transpose(x, /):
    """x with its last two axes exchanged. Raises: ValueError below two axes. Same as:
    `numpy.matrix_transpose`."""
    x = as_viewed("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return swapaxes(x, -1, -2)


def swapaxes(a, axis1: int, axis2: int):
    """a with two axes exchanged. Same as: `numpy.swapaxes`."""
    a = as_viewed("swapaxes", a)
    order = list(range(a.ndim))
    i, j = canonicalize_axis(axis1, a.ndim), canonicalize_axis(axis2, a.ndim)
    order[i], order[j] = order[j], order[i]
    return a.transpose(order)


def moveaxis(a, source, destination):
    """a with axes moved to new positions; the others keep their order. Same as: `numpy.moveaxis`."""
    a = as_viewed("moveaxis", a)
    sources, targets = (canonicalize_axes(i, a.ndim) for i in (source, destination))
    if len(sources) != len(targets):
        raise ValueError(f"Inconsistent number of elements: {len(sources)} vs {len(targets)}")
    order = [i for i in range(a.ndim) if i not in sources]
    for target, source in sorted(zip(targets, sources)):
        order.insert(target, source)
    return a.transpose(order)


def rollaxis(a, axis: int, start: int = 0):
    """a with one axis moved back to before `start`. Same as: `numpy.rollaxis`."""
    a = as_viewed("rollaxis", a)
    axis = canonicalize_axis(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


def squeeze(a, axis=None):
    """a without axes of extent 1 (all, or those named). Raises: ValueError for another extent. Same as:
    `numpy.squeeze`."""
    a = as_viewed("squeeze", a)
    ones = [i for i, extent in enumerate(a.shape) if isinstance(extent, int) and extent == 1]
    axes = tuple(ones) if axis is None else canonicalize_axes(axis, a.ndim)
    if not set(axes) <= set(ones):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={a.shape} and dimensions={axes}")
    return a[(*(0 if i in axes else slice(None) for i in range(a.ndim)), Ellipsis)] if axes else a


def expand_dims(a, axis):
    """a with new axes of extent 1 at these positions of the result. Same as: `numpy.expand_dims`."""
    a = as_viewed("expand_dims", a)
    axes = tuple(axis) if isinstance(axis, Sequence) else (operator.index(axis),)
    rank = a.ndim + len(axes)
    added = {canonicalize_axis(i, rank) for i in axes}
    if len(added) < len(axes):
        raise ValueError(f"repeated axis in lax.expand_dims: {axes}")
    return a[tuple(None if i in added else slice(None) for i in range(rank))]


def atleast_1d(*arys):
    """Each array with at least one axis. Same as: `numpy.atleast_1d`."""
    return _each(arys, lambda x: x if x.ndim else x[None])


def atleast_2d(*arys):
    """Each array with at least two axes, new ones in front. Same as: `numpy.atleast_2d`."""
    return _each(arys, lambda x: x if x.ndim > 1 else x[(None,) * (2 - x.ndim)])


def atleast_3d(*arys):
    """Each array with at least three axes; a matrix gets its new one at the end. Same as:
    `numpy.atleast_3d`."""
    extended = (None, None, None), (None, slice(None), None), (Ellipsis, None)
    return _each(arys, lambda x: x if x.ndim > 2 else x[extended[x.ndim]])


def _each(arys, function):
    out = [function(x if getattr(type(x), "has_views", False) else asarray(x)) for x in arys]
    return out[0] if len(out) == 1 else out


# -- broadcasting -------------------------------------------------------------------------------------------
def broadcast_to(array, shape, *, out_sharding=None):
    """array repeated to a larger shape. Raises: ValueError where it does not fit. Same as:
    `numpy.broadcast_to`."""
    array, shape = ensure_array("broadcast_to", array), canonicalize_shape(shape)
    if array.ndim > len(shape) or any_mismatch(array.shape, shape):
        raise ValueError(f"Incompatible shapes for broadcasting: {array.shape} and requested shape {shape}")
    return broadcast_array(array, shape)


def any_mismatch(own: tuple, wanted: tuple) -> bool:
    """Whether an extent is neither 1 nor the wanted one, counted from the last axis."""
    pairs = [(m, n) for m, n in zip(own[::-1], wanted[::-1]) if not (isinstance(m, int) and m == 1)]
    return not builtins.all(m == n for m, n in pairs)


def broadcast_arrays(*args):
    """The arrays repeated to their common shape. Same as: `numpy.broadcast_arrays`."""
    arrays = ensure_arrays("broadcast_arrays", *args)
    joint = promotion.broadcast_shapes(*[x.shape for x in arrays])
    return [broadcast_array(x, joint) for x in arrays]


def broadcast_shapes(*shapes) -> tuple:
    """The shape that these broadcast to. Same as: `numpy.broadcast_shapes`."""
    return promotion.broadcast_shapes(*[canonicalize_shape(s) for s in shapes])


# -- order and repetition -----------------------------------------------------------------------------------
def flip(m, axis=None):
    """m with the order of elements reversed along axes (all by default). Same as: `numpy.flip`."""
    m = as_viewed("flip", m)
    axes = canonicalize_axes(axis, m.ndim)
    return m[tuple(slice(None, None, -1 if i in axes else None) for i in range(m.ndim))]


def fliplr(m):
    """m reversed along its second axis. Same as: `numpy.fliplr`."""
    return flip(m, 1)


def flipud(m):
    """m reversed along its first axis. Same as: `numpy.flipud`."""
    return flip(m, 0)


def rot90(m, k: int = 1, axes=(0, 1)):
    """m turned by k quarter turns in the plane of two axes. Same as: `numpy.rot90`."""
    m = as_viewed("rot90", m)
    first, second = canonicalize_axes(axes, m.ndim)
    k = k % 4
    if k == 2:
        return flip(m, (first, second))
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second) if k == 3 else m[...]


def roll(a, shift, axis=None):
    """a shifted along axes, elements re-entering at the other end. Same as: `numpy.roll`; shift may be
    traced."""
    a = ensure_array("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    has_many = isinstance(shift, Sequence) or isinstance(shift, (np.ndarray, Array)) and shift.ndim
    shifts = list(shift) if has_many else [shift] * len(axes)
    if len(shifts) == 1 and len(axes) > 1:
        shifts *= len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    for one, i in zip(shifts, axes):
        a = _roll_axis(a, one, canonicalize_axis(i, a.ndim))
    return a


def _roll_axis(a, shift, axis: int) -> Array:
    extent = a.shape[axis]
    if isinstance(extent, int) and extent == 0:
        return a
    if isinstance(shift, Array):
        doubled = lax.concatenate([a, a], axis)
        start = (extent - shift % extent) % extent
        return lax.dynamic_slice_in_dim(doubled, start, extent, axis)
    shift = operator.index(shift)
    if isinstance(extent, DimExpr):  # a shift that is taken to be smaller than the extent
        cut = extent - shift if shift >= 0 else -shift
    else:
        cut = -shift % extent
    if isinstance(cut, int) and cut == 0:
        return a
    parts = [lax.slice_in_dim(a, cut, extent, 1, axis), lax.slice_in_dim(a, 0, cut, 1, axis)]
    return lax.concatenate(parts, axis)


def tile(A, reps):
    """A repeated `reps` times along each axis. Same as: `numpy.tile`."""
    A = asarray(A)
    reps = tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    reps = tuple(require_static("tile", "reps", r) for r in reps)
    reps = tuple(r if isinstance(r, DimExpr) else operator.index(r) for r in reps)
    reps = (1,) * (A.ndim - len(reps)) + reps
    own = (1,) * (len(reps) - A.ndim) + A.shape
    spread = tuple(extent for r, n in zip(reps, own) for extent in (r, n))
    dims = tuple(range(1, len(spread), 2))
    wide = lax.broadcast_in_dim(lax.reshape(A, own), spread, dims)
    return lax.reshape(wide, tuple(r * n for r, n in zip(reps, own)))


def astype(x, dtype, /, *, copy: bool = False, device=None):
    """x with another dtype; complex to real drops the imaginary part. Same as: `numpy.astype`."""
    x = ensure_array("astype", x)
    return convert_dtype(x, dtypes.canonicalize_for(float if dtype is None else dtype, x.dtype))


# -- bits ---------------------------------------------------------------------------------------------------
def unpackbits(a, axis: int | None = None, count: int | None = None, bitorder: str = "big"):
    """The bits of bytes along an axis, of the flat array for None. Same as: `numpy.unpackbits`.

    Args:
        count: how many are kept, or, if negative, how many are dropped at the end; a larger one adds zeros.
    Raises: TypeError for what is not uint8."""
    a = ensure_array("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    a, axis = (reshape(a, (-1,)), 0) if axis is None else (a, canonicalize_axis(axis, a.ndim))
    places = np.arange(8, dtype=np.uint8)[:: -1 if bitorder == "big" else 1]
    bits = moveaxis(a, axis, -1)[..., None] >> places & np.uint8(1)
    bits = reshape(bits, (*bits.shape[:-2], bits.shape[-2] * 8))
    if count is not None:
        extent = bits.shape[-1]
        added = builtins.max(count - extent, 0)
        bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (bits.ndim - 1) + [(0, added, 0)])
        bits = bits[..., : count if count >= 0 else extent + count]
    return moveaxis(bits, -1, axis)


__all__ = ["astype", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
           "broadcast_to", "expand_dims", "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis", "ndim",
           "permute_dims", "ravel", "reshape", "resize", "roll", "rollaxis", "rot90", "shape", "size",
           "squeeze", "swapaxes", "tile", "transpose", "unpackbits"]
