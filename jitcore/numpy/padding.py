"""`pad`: arrays with values put around them.

In: an array and widths known now. Out: the larger array. Constant padding is one `pad`; the other modes
join slices of the array itself, one axis after another.
"""

from __future__ import annotations

import operator

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import broadcast_array, convert_dtype, ensure_array, require_static
from jitcore.numpy.creation import asarray, linspace
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.joining import stack
from jitcore.numpy.shaping import moveaxis
from jitcore.numpy.statistics import median
from jitcore.numpy.ufuncs import arithmetic
from jitcore.numpy.ufuncs.rounding import round

_STATISTICS = {"maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean,
               "median": median}
_OPTIONS = {
    "constant": {"constant_values": 0}, "edge": {}, "empty": {}, "wrap": {}, "linear_ramp": {"end_values": 0},
    "reflect": {"reflect_type": "even"}, "symmetric": {"reflect_type": "even"},
    **{name: {"stat_length": None} for name in _STATISTICS},
}


def pad(array, pad_width, mode="constant", **kwargs):
    """array with `pad_width` elements before and after, per axis or the same for all. Same as: `numpy.pad`.

    Args:
        mode: "constant" (`constant_values`), "edge", "reflect", "symmetric" (`reflect_type`), "wrap",
        "linear_ramp"
            (`end_values`), "maximum", "minimum", "mean", "median" (`stat_length`), "empty", or a function
            as in NumPy.
    Raises: ValueError for an unknown mode or keyword."""
    array = ensure_array("pad", array)
    widths = _per_side("pad_width", pad_width, array.ndim)
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _pad_with_function(array, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise ValueError(f"Unimplemented padding mode '{mode}' for np.pad.")
    unknown = set(kwargs) - set(_OPTIONS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    options = {**_OPTIONS[mode], **kwargs}
    if mode in ("constant", "empty"):
        out = _pad_constant(array, widths, options.get("constant_values", 0))
        return convert_dtype(out, out.dtype, array.weak_type)
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            array = _pad_axis(array, axis, pair, mode, options)
    return array


def _per_side(name: str, value, rank: int) -> list[tuple]:
    """`value` as one (before, after) pair per axis."""
    if isinstance(value, dict):
        value = [value.get(i, value.get(i - rank, 0)) for i in range(rank)]
        return [_per_side(name, one, 1)[0] for one in value]
    value = np.asarray(require_static("pad", name, value))
    if name == "pad_width" and value.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(value, (rank, 2)).tolist()
    return [tuple(map(operator.index, pair)) if name == "pad_width" else tuple(pair) for pair in pairs]


def _pad_constant(array, widths: list, values) -> Array:
    values = asarray(values, array.dtype)
    if values.ndim == 0:
        return lax.pad(array, values, [(before, after, 0) for before, after in widths])
    values = broadcast_array(values, (array.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        for side, config in enumerate(((before, 0, 0), (0, after, 0))):
            configs = [config if i == axis else (0, 0, 0) for i in range(array.ndim)]
            array = lax.pad(array, get_item(values, (axis, side)), configs)
    return array


def _slice(x, start: int, stop: int, axis: int) -> Array:
    return lax.slice_in_dim(x, start, stop, 1, axis)


def _pad_axis(x, axis: int, pair: tuple[int, int], mode: str, options: dict) -> Array:
    if x.shape[axis] == 0:
        raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    if mode in ("reflect", "symmetric", "wrap"):
        return _pad_repeatedly(x, axis, pair, mode, options.get("reflect_type", "even"))
    sides = [_make_side(x, axis, width, mode, options, side) for side, width in enumerate(pair)]
    return lax.concatenate([part for part in (sides[0], x, sides[1]) if part.shape[axis]], axis)


def _make_side(x, axis: int, width: int, mode: str, options: dict, side: int) -> Array:
    """The elements that stand before (side 0) or after (side 1) the array along one axis."""
    extent = x.shape[axis]
    shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
    edge = _slice(x, 0, 1, axis) if side == 0 else _slice(x, extent - 1, extent, axis)
    if mode == "edge":
        return broadcast_array(edge, shape)
    if mode == "linear_ramp":
        end = asarray(_per_side("end_values", options["end_values"], x.ndim)[axis][side], x.dtype)
        ramp = linspace(end, lax.squeeze(edge, (axis,)), width, endpoint=False, dtype=x.dtype, axis=axis)
        return ramp if side == 0 else lax.rev(ramp, (axis,))
    length = options["stat_length"]
    count = extent if length is None else min(_per_side("stat_length", length, x.ndim)[axis][side], extent)
    part = _slice(x, 0, count, axis) if side == 0 else _slice(x, extent - count, extent, axis)
    value = _STATISTICS[mode](part, axis, keepdims=True)
    if dtypes.is_integer(x.dtype):
        value = round(value)
    return broadcast_array(convert_dtype(value, x.dtype), shape)


def _pad_repeatedly(x, axis: int, pair: tuple[int, int], mode: str, reflect_type: str) -> Array:
    """Mirrored or repeated copies of the array, as many as the widths need."""
    extent = x.shape[axis]
    before, after = pair
    offset = 1 if mode == "reflect" else 0
    if (mode == "wrap" or reflect_type == "even") and max(pair) <= extent - offset:  # of one copy at each end
        starts = (extent - before, 0) if mode == "wrap" else (offset, extent - offset - after)
        sides = [_slice(x, start, start + width, axis) for start, width in zip(starts, pair)]
        first, last = sides if mode == "wrap" else [lax.rev(side, (axis,)) for side in sides]
        return lax.concatenate([part for part in (first, x, last) if part.shape[axis]], axis)
    if mode == "wrap" or reflect_type == "even" or extent == 1:
        positions = np.arange(-before, extent + after)
        if mode == "wrap":
            source = positions % extent
        elif mode == "symmetric":
            source = positions % (2 * extent)
            source = np.minimum(source, 2 * extent - 1 - source)
        else:
            period = max(2 * (extent - 1), 1)
            source = positions % period
            source = np.minimum(source, period - source) if extent > 1 else np.zeros_like(positions)
        return get_item(x, (slice(None),) * axis + (source.astype(np.int32),))
    for side in (0, 1):
        left = pair[side]
        while left > 0:
            extent = x.shape[axis]
            count = min(left, extent - offset)
            edge = _slice(x, 0, 1, axis) if side == 0 else _slice(x, extent - 1, extent, axis)
            start = offset if side == 0 else extent - offset - count
            mirrored = lax.rev(_slice(x, start, start + count, axis), (axis,))
            mirrored = arithmetic.subtract(arithmetic.multiply(edge, 2), mirrored)
            x = lax.concatenate([mirrored, x] if side == 0 else [x, mirrored], axis)
            left -= count
    return x


def _pad_with_function(array, widths: list, function, options: dict) -> Array:
    """`function(vector, pair, axis, options)` of every vector along each axis returns the filled vector."""
    array = _pad_constant(array, widths, 0)
    for axis, pair in enumerate(widths):
        rows = moveaxis(array, axis, -1)
        flat = lax.reshape(rows, (rows.size // rows.shape[-1], rows.shape[-1]))
        filled = [function(get_item(flat, i), pair, axis, options) for i in range(flat.shape[0])]
        array = moveaxis(lax.reshape(stack(filled), rows.shape), -1, axis)
    return array


__all__ = ["pad"]
