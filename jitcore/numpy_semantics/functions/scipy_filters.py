"""SciPy's filters over handles: `scipy.signal` and `scipy.ndimage`.

A filter with few weights is a sum of shifted windows of the padded array, which is one sweep when compiled.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import (as_arrays, dtype_of, require_finite, to_common,
                                                     to_common_inexact, to_own)
from jitcore.numpy_semantics.functions.rows import adapts_scipy
from jitcore.numpy_semantics.values.promotion import cast_raw, to_raw
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.rewriter.handles import Handle

#: Weights up to which a convolution of several axes is a sum of windows; beyond, transforms take less time.
_MAX_WINDOWS = 128


def _slide(raw, counts: Sequence[int], weights: dict[tuple, Any]):
    """The sum of windows of an array. weights: by the place at which a window of these extents begins."""
    total = None
    for starts, weight in weights.items():
        window = raw[tuple(slice(start, start + count) for start, count in zip(starts, counts))]
        term = window * weight
        total = term if total is None else total + term
    return total


# -- signal -------------------------------------------------------------------------------------------------
def _convolve(one: Array, other: Array, mode: str = "full", method: str = "auto") -> Array:
    """The convolution of two arrays. method: whichever, it is chosen here."""
    if mode not in ("full", "same", "valid"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    if one.ndim != other.ndim or not one.ndim or 0 in (*one.shape, *other.shape):
        raise not_traceable("a convolution of scipy.signal of arrays of such shapes")
    if one.dtype.kind == "b" or one.dtype.itemsize == 2 and one.dtype.kind == "f":
        raise not_traceable(f"a convolution of scipy.signal of {one.dtype.name}")
    require_finite(one, other)
    if mode == "valid" and any(a < b for a, b in zip(one.shape, other.shape)):
        if any(a > b for a, b in zip(one.shape, other.shape)):
            raise ValueError("For 'valid' mode, one must be at least as large as the other in every "
                             "dimension")
        one, other = other, one
    found = _convolve_full(one, other)
    if mode == "full":
        return found
    wanted = one.shape if mode == "same" else [a - b + 1 for a, b in zip(one.shape, other.shape)]
    starts = [(full - extent) // 2 for full, extent in zip(found.shape, wanted)]
    return found[tuple(slice(start, start + extent) for start, extent in zip(starts, wanted))]


def _convolve_full(one, other):
    if one.ndim == 1 and one.dtype.kind in "fc":
        return jnp.convolve(one, other, mode="full")
    if one.size < other.size:
        one, other = other, one
    counts = [a + b - 1 for a, b in zip(one.shape, other.shape)]
    if other.size <= _MAX_WINDOWS:
        padded = jnp.pad(one, [(extent - 1, extent - 1) for extent in other.shape])
        places = itertools.product(*map(range, other.shape))
        weights = {tuple(n - 1 - i for i, n in zip(place, other.shape)): other[place] for place in places}
        return _slide(padded, counts, weights)
    if one.dtype.kind not in "fc":
        raise not_traceable("scipy.signal.convolve of integers with many weights")
    axes = range(one.ndim)
    if one.dtype.kind == "c":
        product = jnp.fft.fftn(one, counts, axes) * jnp.fft.fftn(other, counts, axes)
        return jnp.fft.ifftn(product, counts, axes)
    product = jnp.fft.rfftn(one, counts, axes) * jnp.fft.rfftn(other, counts, axes)
    return cast_raw(jnp.fft.irfftn(product, counts, axes), one.dtype)


adapts_scipy("signal.convolve", count=2, convert=to_common)(_convolve)
adapts_scipy("signal.fftconvolve", "signal.oaconvolve", count=2, convert=to_common_inexact,
             only={"axes": (None,)})(_convolve)


@adapts_scipy("signal.correlate", count=2, convert=to_common)
def correlate(one, other, mode="full", method="auto"):
    if mode == "valid" and any(a < b for a, b in zip(one.shape, other.shape)):
        raise not_traceable("scipy.signal.correlate with a template that is longer than the signal")
    return _convolve(one, jnp.conj(jnp.flip(other)), mode)


@adapts_scipy("signal.convolve2d", count=2, convert=to_common)
def convolve2d(one, other, mode="full", boundary="fill", fillvalue=0):
    if one.ndim != 2 or other.ndim != 2:
        raise ValueError("convolve2d inputs must both be 2-D arrays")
    if mode == "valid" or boundary == "fill" and fillvalue == 0:
        return _convolve(one, other, mode)
    modes = {"wrap": "wrap", "symm": "symmetric"}
    if boundary not in modes:
        raise not_traceable("scipy.signal.convolve2d with such a boundary")
    padded = jnp.pad(one, [(n - 1, n - 1) for n in other.shape], mode=modes[boundary])
    full = _convolve(padded, other, "valid")
    starts = [(n - 1) // 2 for n in other.shape]
    window = tuple(slice(start, start + extent) for start, extent in zip(starts, one.shape))
    return full[window] if mode == "same" else full


@adapts_scipy("signal.lfilter", count=3, convert=to_common_inexact, also=["zi"])
def lfilter(b, a, x, axis=-1, zi=None):
    """The direct form II transposed, a scan along the axis."""
    if b.ndim != 1 or a.ndim != 1 or x.dtype.itemsize == 2 or not x.size or not a.shape[0]:
        raise not_traceable("scipy.signal.lfilter of such arrays")
    axis = normalize_axis_index(axis, x.ndim)
    order = max(a.shape[0], b.shape[0]) - 1
    a, b = (jnp.pad(v / a[0], (0, order + 1 - v.shape[0])) for v in (a, b))
    rows = jnp.moveaxis(x, axis, 0)
    if not order:
        return x * b[0]
    parts = rows.shape[1:]
    first = lax.full((order, *parts), 0, x.dtype) if zi is None else jnp.moveaxis(zi, axis, 0)
    if tuple(first.shape) != (order, *parts):
        raise not_traceable("scipy.signal.lfilter with an initial state of another shape")
    b_rest, a_rest = (v[1:].reshape(order, *[1] * len(parts)) for v in (b, a))

    def step(held, value):
        out = held[0] + b[0] * value
        moved = jnp.concatenate([held[1:], lax.full((1, *parts), 0, x.dtype)])
        return moved + b_rest * value[None] - a_rest * out[None], out

    held, outs = lax.scan(step, first, rows)
    found = jnp.moveaxis(outs, 0, axis)
    return found if zi is None else (found, jnp.moveaxis(held, 0, axis))


def _to_double(x: Any) -> list[Array]:
    if dtype_of(x) not in (dtypes.float64, dtypes.int64):
        raise not_traceable("a filter of scipy.signal of such an array")
    return to_own(x, dtype=dtypes.float64)


@adapts_scipy("signal.savgol_filter", convert=_to_double, only={"mode": ("interp",)})
def savgol_filter(x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, cval=0.0):
    """Weights do not depend on values: they are what SciPy's own filter makes of unit vectors."""
    options = (window_length, polyorder, deriv, delta)
    require_finite(x)
    rows = jnp.moveaxis(x, axis, 0)
    is_traced = any(isinstance(option, Handle) for option in options)
    if is_traced or window_length % 2 == 0 or window_length > rows.shape[0]:
        raise not_traceable("scipy.signal.savgol_filter with an even window, or a traced one")
    signal = importlib.import_module("scipy.signal")
    weights = signal.savgol_filter(np.eye(window_length), *options, axis=0)
    half, count = window_length // 2, rows.shape[0] - window_length + 1
    inner = _slide(rows, (count,), {(k,): float(weights[half, k]) for k in range(window_length)})
    ends = [jnp.tensordot(part, edge, 1) for part, edge in (
        (weights[:half], rows[:window_length]), (weights[half + 1 :], rows[-window_length:]))]
    return jnp.moveaxis(jnp.concatenate([ends[0], inner, ends[1]]), 0, axis)


@adapts_scipy("signal.hilbert", convert=_to_double, only={"N": (None,)})
def hilbert(x, axis=-1):
    raw = jnp.moveaxis(x, axis, -1)
    count = raw.shape[-1]
    factors = np.zeros(count)
    factors[0] = factors[count // 2] = 1
    factors[1 : (count + 1) // 2] = 2
    return jnp.moveaxis(jnp.fft.ifft(jnp.fft.fft(raw) * factors), -1, axis)


# -- ndimage ------------------------------------------------------------------------------------------------
_PADS = {"reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "edge", "mirror": "reflect",
         "wrap": "wrap", "grid-wrap": "wrap", "constant": "constant"}


def _filters(name: str) -> Callable[[Callable], Callable]:
    """Decorator: a filter of images. It gets one of floats as float64, how that goes on beyond its ends (mode
    and value), and by name the options that were given. The result has the image's dtype."""

    def register(compute: Callable) -> Callable:
        def call(image, mode="reflect", cval=0.0, **options):
            numbers = [cval, *[x for key, x in options.items() if key != "weights"]]
            if any(isinstance(x, Handle) or has_handle(x) for x in numbers):
                raise not_traceable(f"scipy.ndimage.{name} with traced options")
            if dtype_of(image).kind != "f" or dtype_of(image).itemsize < 4:
                raise not_traceable(f"scipy.ndimage.{name} of {dtype_of(image).name}")
            raw = to_raw(image, dtypes.float64)
            require_finite(raw)
            found = compute(raw, (mode, cval), **options)
            return cast_raw(found, dtype_of(image))

        only = {"output": (None,), "mode": tuple(_PADS)}
        adapts_scipy(f"ndimage.{name}", convert=as_arrays, only=only)(call)
        return compute

    return register


def _correlate(raw, weights: dict[tuple, Any], counts: Sequence[int], origins: Sequence[int], edge: tuple):
    """The sum of the neighbours of each element times weights. counts: extents of the neighbourhood."""
    mode, value = edge
    before = [count // 2 + origin for count, origin in zip(counts, origins)]
    widths = [(low, count - 1 - low) for low, count in zip(before, counts)]
    if any(low < 0 or high < 0 for low, high in widths):
        raise ValueError("invalid origin")
    options = {"constant_values": value} if mode == "constant" else {}
    if mode == "mirror" and any(n == 1 and max(w) for n, w in zip(raw.shape, widths)):
        mode = "nearest"  # one element is its own mirror image
    return _slide(jnp.pad(raw, widths, mode=_PADS[mode], **options), raw.shape, weights)


def _along(raw, weights: Sequence, axis: int, edge: tuple, origin: int = 0):
    """`_correlate` with weights along one axis."""
    place = normalize_axis_index(axis, raw.ndim)
    counts, origins = [1] * raw.ndim, [0] * raw.ndim
    counts[place], origins[place] = len(weights), origin
    places = itertools.product(*map(range, counts))
    return _correlate(raw, dict(zip(places, weights)), counts, origins, edge)


def _list_weights(weights: Any) -> list:
    """Weights of a kernel in order: numbers where they are known."""
    if isinstance(weights, Handle):
        raw = to_raw(weights, dtypes.float64).reshape(-1)
        return [raw[k] for k in range(raw.shape[0])]
    if np.asarray(weights).dtype.kind == "c":
        raise not_traceable("filters of scipy.ndimage with complex weights")
    return np.asarray(weights, np.float64).reshape(-1).tolist()


def _per_axis(value: Any, count: int) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


@_filters("correlate")
def correlate_image(raw, edge, weights, origin=0, axes=None, is_flipped=False):
    shape = np.shape(weights)
    if axes is not None or len(shape) != raw.ndim or not raw.size or math.prod(shape) > _MAX_WINDOWS:
        raise not_traceable("filters of scipy.ndimage with such weights")
    values, origins = _list_weights(weights), _per_axis(origin, raw.ndim)
    if is_flipped:
        values = values[::-1]
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, shape)]
    places = itertools.product(*map(range, shape))
    return _correlate(raw, dict(zip(places, values)), shape, origins, edge)


_filters("convolve")(functools.partial(correlate_image, is_flipped=True))


@_filters("correlate1d")
def correlate1d(raw, edge, weights, axis=-1, origin=0):
    return _along(raw, _list_weights(weights), axis, edge, origin)


@_filters("convolve1d")
def convolve1d(raw, edge, weights, axis=-1, origin=0):
    return _along(raw, _list_weights(weights)[::-1], axis, edge, -origin - (len(weights) % 2 == 0))


@functools.cache
def _list_gaussian(sigma: float, order: int, truncate: float, radius: int | None) -> list:
    """The weights of SciPy's own filter: what it makes of a unit vector."""
    ndimage = importlib.import_module("scipy.ndimage")
    half = int(truncate * sigma + 0.5) if radius is None else radius
    unit = np.zeros(2 * half + 1)
    unit[half] = 1
    found = ndimage.gaussian_filter1d(unit, sigma, order=order, mode="constant", truncate=truncate,
                                      radius=radius)
    return found[::-1].tolist()


@_filters("gaussian_filter")
def gaussian_filter(raw, edge, sigma, order=0, truncate=4.0, radius=None, axes=None):
    axes = normalize_axis_tuple(range(raw.ndim) if axes is None else axes, raw.ndim)
    options = [_per_axis(value, len(axes)) for value in (sigma, order, radius)]
    for axis, own, times, half in zip(axes, *options):
        if own > 1e-15:
            raw = _along(raw, _list_gaussian(float(own), times, truncate, half), axis, edge)
    return raw


@_filters("gaussian_filter1d")
def gaussian_filter1d(raw, edge, sigma, axis=-1, order=0, truncate=4.0, radius=None):
    return _along(raw, _list_gaussian(float(sigma), order, truncate, radius), axis, edge)


@_filters("uniform_filter")
def uniform_filter(raw, edge, size=3, origin=0, axes=None):
    axes = normalize_axis_tuple(range(raw.ndim) if axes is None else axes, raw.ndim)
    for axis, own, shift in zip(axes, _per_axis(size, len(axes)), _per_axis(origin, len(axes))):
        if own > 1:
            raw = _along(raw, [1.0] * own, axis, edge, shift) / own
    return raw


@_filters("uniform_filter1d")
def uniform_filter1d(raw, edge, size, axis=-1, origin=0):
    return uniform_filter(raw, edge, (size,), (origin,), (axis,))


@_filters("sobel")
def sobel(raw, edge, axis=-1):
    place = normalize_axis_index(axis, raw.ndim)
    raw = _along(raw, [-1.0, 0.0, 1.0], place, edge)
    for other in range(raw.ndim):
        raw = raw if other == place else _along(raw, [1.0, 2.0, 1.0], other, edge)
    return raw


@_filters("laplace")
def laplace(raw, edge, axes=None):
    first, *rest = [_along(raw, [1.0, -2.0, 1.0], axis, edge)
                    for axis in (range(raw.ndim) if axes is None else axes)]
    return sum(rest, first)
