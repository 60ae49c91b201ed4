"""Positions: of nonzero elements, of values in a sorted array, between flat and multi-axis indices.

In: arrays. Out: arrays of indices. A result whose length depends on values needs `size=` while tracing.
"""

from __future__ import annotations

import operator

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import (apply_select, convert_dtype, ensure_array, ensure_arrays,
                                            promote_arrays, require_static)
from jitcore.numpy.creation import asarray
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.indexing.update import update_item
from jitcore.numpy.shaping import ravel
from jitcore.numpy.ufuncs import arithmetic, logic


def nonzero(a, *, size: int | None = None, fill_value=None):
    """Indices of the elements that are not 0, one array per axis. Same as: `numpy.nonzero`.

    Args:
        size: length of the results: cut, or filled up with `fill_value` (0). Required while tracing.
    Raises: ConcretizationTypeError for a traced array without `size`."""
    a = ensure_array("nonzero", a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. "
                         "Use jnp.atleast_1d(scalar).nonzero() instead.")
    if size is None:
        # Whether an element is 0 may be known of a tracer: where only its tangent is not.
        mask = logic.to_bool("nonzero", a) if isinstance(a, Tracer) or dtypes.is_key(a.dtype) else a
        if isinstance(mask, Tracer):
            raise argument_errors.size_required_error("jnp.nonzero", a.aval.long(), origin_of(a.owner, a),
                                             user_snippet())
        index_dtype, places = dtypes.default_dtype("i"), np.nonzero(mask.data)
        return tuple(asarray(np.ascontiguousarray(found).astype(index_dtype)) for found in places)
    size = operator.index(require_static("nonzero", "size", size))
    fills = (
        fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * a.ndim)
    mask = ravel(logic.to_bool("nonzero", a))
    if size == 0 or a.size == 0:
        return tuple(lax.full((size,), f, dtypes.int32) for f in fills)
    flat = _compress_positions(mask, size)
    count = reductions.sum(mask)
    is_real = logic.less(np.arange(size, dtype=np.int32), count)
    found = unravel_index(flat, a.shape)
    return tuple(apply_select(is_real, index, asarray(f, index.dtype)) for index, f in zip(found, fills))


def _compress_positions(mask, size: int) -> Array:
    """Positions where a flat mask holds, in the first elements of an array of `size`."""
    index = dtypes.default_dtype("i")
    rank = arithmetic.subtract(lax.cumsum(convert_dtype(mask, index), 0), 1)
    target = apply_select(mask, rank, index.type(size))  # beyond the end: dropped
    positions = lax.iota(index, mask.shape[0])
    return update_item(lax.full((size,), 0, index), target, positions, mode="drop")


def argwhere(a, *, size: int | None = None, fill_value=None):
    """Indices of the elements that are not 0, one row each. Same as: `numpy.argwhere`."""
    a = ensure_array("argwhere", a)
    if a.ndim == 0:
        found = nonzero(ravel(a), size=size, fill_value=fill_value)
        return lax.full((found[0].shape[0], 0), 0, found[0].dtype)
    found = nonzero(a, size=size, fill_value=fill_value)
    return lax.concatenate([lax.reshape(x, (x.shape[0], 1)) for x in found], 1)


def flatnonzero(a, *, size: int | None = None, fill_value=None):
    """Flat indices of the elements that are not 0. Same as: `numpy.flatnonzero`."""
    return nonzero(ravel(ensure_array("flatnonzero", a)), size=size, fill_value=fill_value)[0]


# -- sorted arrays ------------------------------------------------------------------------------------------
def searchsorted(a, v, side: str = "left", sorter=None, *, method: str = "scan"):
    """Where to insert v so that the sorted vector a stays sorted. Same as: `numpy.searchsorted`; NaN sorts
    last.

    Args:
        side: "left" before equal elements, "right" after them.
        sorter: indices that sort a.
        method: accepted for compatibility; a bisection is used in every case."""
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'. Expected 'left' or 'right'.")
    a, v = promote_arrays("searchsorted", a, v)
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if sorter is not None:
        a = get_item(a, ensure_array("searchsorted", sorter))
    index = dtypes.int32
    if not a.shape[0]:
        return lax.full(v.shape, 0, index)

    # The answer lies in place ... place + length; the length is one for all v, so that no index leaves a.
    def halve(_, carry):
        place, length = carry
        half = arithmetic.right_shift(arithmetic.add(length, 1), 1)
        before = _read_in_bounds(a, arithmetic.add(place, arithmetic.subtract(half, 1)))
        goes_right = (
            _sorts_before(before, v) if side == "left" else logic.logical_not(_sorts_before(v, before)))
        return apply_select(goes_right, arithmetic.add(place, half), place), arithmetic.subtract(length, half)

    start = lax.full(v.shape, 0, index), index.type(a.shape[0])
    return lax.fori_loop(0, int(a.shape[0]).bit_length(), halve, start)[0]


def _read_in_bounds(a, index) -> Array:
    """`a[index]` of a vector, for indices known to be in range."""
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    indices = lax.expand_dims(index, (index.ndim,))
    return lax.gather(a, indices, numbers, (1,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _sorts_before(x, y) -> Array:
    """x < y in the order of sorting, where NaN is the largest."""
    before = logic.less(x, y)
    if not dtypes.is_inexact(x.dtype):
        return before
    return logic.logical_or(before, logic.logical_and(logic.isnan(y), logic.logical_not(logic.isnan(x))))


def digitize(x, bins, right: bool = False, *, method: str | None = None):
    """Number of the bin that each element falls into; bins rise or fall. Same as: `numpy.digitize`."""
    x, bins = promote_arrays("digitize", x, asarray(bins))
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins.shape={bins.shape}")
    n = bins.shape[0]
    if n == 0:
        return lax.full(x.shape, 0, dtypes.int32)
    side = "right" if not right else "left"
    rising = searchsorted(bins, x, side)
    falling = arithmetic.subtract(n, searchsorted(lax.rev(bins, (0,)), x, side))
    return apply_select(logic.less_equal(get_item(bins, 0), get_item(bins, -1)), rising, falling)


# -- flat and multi-axis indices ----------------------------------------------------------------------------
def unravel_index(indices, shape):
    """Flat indices as one array per axis; those out of range are clamped. Same as:
    `jax.numpy.unravel_index`."""
    indices = ensure_array("unravel_index", indices)
    extents = shape if isinstance(shape, (tuple, list)) else (shape,)
    extents = [operator.index(s) if isinstance(s, (int, np.integer)) else s for s in extents]
    if not extents:
        return ()
    total = 1
    for extent in extents:
        total = total * extent
    rest = apply_select(logic.less(indices, 0), arithmetic.add(indices, total), indices)
    rest = arithmetic.minimum(arithmetic.maximum(rest, 0), total - 1)
    out = []
    for extent in extents[:0:-1]:
        out.append(arithmetic.fmod(rest, extent))
        rest = arithmetic.floor_divide(rest, extent)
    out.append(rest)
    return tuple(out[::-1])


def ravel_multi_index(multi_index, dims, mode: str = "raise", order: str = "C", *, dtype=None):
    """Flat indices of indices per axis. Same as: `numpy.ravel_multi_index`; traced ones need mode "clip",
    "wrap" or "ignore" (in range, which is not checked). dtype: of the result."""
    flat = _ravel_multi_index(multi_index, dims, mode, order)
    return flat if dtype is None else convert_dtype(flat, dtypes.canonicalize(dtype))


def _ravel_multi_index(multi_index, dims, mode: str, order: str) -> Array:
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    indices = ensure_arrays("ravel_multi_index", *multi_index)
    if mode == "raise":
        for index in indices:
            require_static("ravel_multi_index", "multi_index", index)
        flat = np.ravel_multi_index([x.data for x in indices], tuple(dims), order=order)
        return asarray(np.asarray(flat, dtypes.result_type(*[x.dtype for x in indices])))
    if mode == "clip":
        indices = [arithmetic.minimum(arithmetic.maximum(x, 0), n - 1) for x, n in zip(indices, dims)]
    elif mode == "wrap":
        indices = [arithmetic.remainder(x, n) for x, n in zip(indices, dims)]
    elif mode != "ignore":
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    pairs = list(zip(indices, dims)) if order == "C" else list(zip(indices, dims))[::-1]
    flat = pairs[0][0]
    for index, extent in pairs[1:]:
        flat = arithmetic.add(arithmetic.multiply(flat, extent), index)
    return flat


__all__ = ["argwhere", "digitize", "flatnonzero", "nonzero", "ravel_multi_index", "searchsorted",
           "unravel_index"]
