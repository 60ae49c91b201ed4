"""SciPy's filters over handles: `scipy.signal` and `scipy.ndimage`.

A filter with few weights is a sum of shifted windows of the padded array, which is one sweep when compiled.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

import jitcore.numpy as jnp
from jitcore import lax
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import dtype_of, to_common
from jitcore.numpy_semantics.functions.scipy_table import implements_scipy
from jitcore.numpy_semantics.functions.shaping import as_array
from jitcore.numpy_semantics.values.ndarray import wrap_result
from jitcore.numpy_semantics.values.promotion import as_operand, cast_raw, to_raw
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
def _convolve(name: str, in1: Any, in2: Any, mode: str, *, by_transform: bool = False):
    """The convolution of two arrays. by_transform: in floating-point numbers whatever these are."""
    if mode not in ("full", "same", "valid"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    one, other = to_common(in1, in2, inexact=by_transform)
    if one.ndim != other.ndim or not one.ndim or 0 in (*one.shape, *other.shape):
        raise not_traceable(f"scipy.signal.{name} of arrays of such shapes")
    if one.dtype.kind == "b" or one.dtype.itemsize == 2 and one.dtype.kind == "f":
        raise not_traceable(f"scipy.signal.{name} of {one.dtype.name}")
    if mode == "valid" and any(a < b for a, b in zip(one.shape, other.shape)):
        if any(a > b for a, b in zip(one.shape, other.shape)):
            raise ValueError(
                "For 'valid' mode, one must be at least as large as the other in every dimension"
            )
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
        return jnp.fft.ifftn(
            jnp.fft.fftn(one, counts, axes) * jnp.fft.fftn(other, counts, axes), counts, axes
        )
    product = jnp.fft.rfftn(one, counts, axes) * jnp.fft.rfftn(other, counts, axes)
    return cast_raw(jnp.fft.irfftn(product, counts, axes), one.dtype)


@implements_scipy("scipy.signal.convolve")
def convolve(in1, in2, mode="full", method="auto"):
    return wrap_result(_convolve("convolve", in1, in2, mode))


@implements_scipy("scipy.signal.fftconvolve", "scipy.signal.oaconvolve")
def fftconvolve(in1, in2, mode="full", axes=None):
    if axes is not None:
        raise not_traceable("scipy.signal.fftconvolve along some axes")
    return wrap_result(_convolve("fftconvolve", in1, in2, mode, by_transform=True))


@implements_scipy("scipy.signal.correlate")
def correlate(in1, in2, mode="full", method="auto"):
    one, other = as_array(in1), as_array(in2)
    is_short = any(a < b for a, b in zip(one.shape, other.shape))
    if mode == "valid" and is_short:
        raise not_traceable("scipy.signal.correlate with a template that is longer than the signal")
    return wrap_result(_convolve("correlate", one, np.conjugate(np.flip(other)), mode))


@implements_scipy("scipy.signal.convolve2d")
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    one, other = as_array(in1), as_array(in2)
    if one.ndim != 2 or other.ndim != 2:
        raise ValueError("convolve2d inputs must both be 2-D arrays")
    if boundary == "fill" and fillvalue == 0:
        return wrap_result(_convolve("convolve2d", one, other, mode))
    if mode == "valid":
        return wrap_result(_convolve("convolve2d", one, other, mode))
    modes = {"wrap": "wrap", "symm": "symmetric"}
    if boundary not in modes:
        raise not_traceable("scipy.signal.convolve2d with such a boundary")
    widths = [(n - 1, n - 1) for n in other.shape]
    full = _convolve("convolve2d", np.pad(one, widths, mode=modes[boundary]), other, "valid")
    if mode == "same":
        full = full[tuple(slice((n - 1) // 2, (n - 1) // 2 + extent)
                          for n, extent in zip(other.shape, one.shape))]
    return wrap_result(full)


@implements_scipy("scipy.signal.lfilter")
def lfilter(b, a, x, axis=-1, zi=None):
    """The direct form II transposed, a scan along the axis."""
    operands = (b, a, x) if zi is None else (b, a, x, zi)
    b, a, x, *state = to_common(*map(as_array, operands), inexact=True)
    if b.ndim != 1 or a.ndim != 1 or x.dtype.itemsize == 2 or not x.size or not a.shape[0]:
        raise not_traceable("scipy.signal.lfilter of such arrays")
    axis = normalize_axis_index(axis, x.ndim)
    order = max(a.shape[0], b.shape[0]) - 1
    a, b = (jnp.pad(v / a[0], (0, order + 1 - v.shape[0])) for v in (a, b))
    rows = jnp.moveaxis(x, axis, 0)
    if not order:
        return wrap_result(x * b[0])
    parts = rows.shape[1:]
    first = jnp.moveaxis(state[0], axis, 0) if state else lax.full((order, *parts), 0, x.dtype)
    if tuple(first.shape) != (order, *parts):
        raise not_traceable("scipy.signal.lfilter with an initial state of another shape")
    b_rest, a_rest = (v[1:].reshape(order, *[1] * len(parts)) for v in (b, a))

    def step(held, value):
        out = held[0] + b[0] * value
        moved = jnp.concatenate([held[1:], lax.full((1, *parts), 0, x.dtype)])
        return moved + b_rest * value[None] - a_rest * out[None], out

    held, outs = lax.scan(step, first, rows)
    found = wrap_result(jnp.moveaxis(outs, 0, axis))
    return found if zi is None else (found, wrap_result(jnp.moveaxis(held, 0, axis)))


@implements_scipy("scipy.signal.savgol_filter")
def savgol_filter(x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp", cval=0.0):
    """Weights do not depend on values: they are what SciPy's own filter makes of unit vectors."""
    options = (window_length, polyorder, deriv, delta)
    if any(isinstance(option, Handle) for option in options) or dtype_of(x) not in _DOUBLES:
        raise not_traceable("scipy.signal.savgol_filter of such an array")
    signal = importlib.import_module("scipy.signal")
    rows = jnp.moveaxis(to_raw(as_operand(x), np.float64), axis, 0)
    if mode != "interp" or window_length % 2 == 0 or window_length > rows.shape[0]:
        raise not_traceable("scipy.signal.savgol_filter with another mode, or an even window")
    weights = signal.savgol_filter(np.eye(window_length), window_length, polyorder, deriv, delta, axis=0)
    half, count = window_length // 2, rows.shape[0] - window_length + 1
    inner = _slide(rows, (count,), {(k,): float(weights[half, k]) for k in range(window_length)})
    ends = [jnp.tensordot(part, edge, 1) for part, edge in (
        (weights[:half], rows[:window_length]), (weights[half + 1 :], rows[-window_length:]))]
    return wrap_result(jnp.moveaxis(jnp.concatenate([ends[0], inner, ends[1]]), 0, axis))


@implements_scipy("scipy.signal.hilbert")
def hilbert(x, N=None, axis=-1):  # noqa: N803  SciPy's name
    x = as_array(x)
    if dtype_of(x) not in _DOUBLES or N is not None:
        raise not_traceable("scipy.signal.hilbert of such an array")
    raw = jnp.moveaxis(to_raw(x, np.float64), axis, -1)
    count = raw.shape[-1]
    factors = np.zeros(count)
    factors[0] = factors[count // 2] = 1
    factors[1 : (count + 1) // 2] = 2
    found = jnp.fft.ifft(jnp.fft.fft(raw) * factors)
    return wrap_result(jnp.moveaxis(found, -1, axis))


# -- ndimage ------------------------------------------------------------------------------------------------
_DOUBLES = (np.dtype(np.float64), np.dtype(np.int64))
_PADS = {"reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "edge", "mirror": "reflect",
         "wrap": "wrap", "grid-wrap": "wrap", "constant": "constant"}


def _read_image(name: str, x: Any, mode: Any, output: Any, *numbers: Any):
    """The elements of an image of floats as float64; SciPy's results have its dtype."""
    is_odd = output is not None or any(isinstance(v, Handle) for v in numbers)
    if is_odd or dtype_of(x).kind != "f" or dtype_of(x).itemsize < 4 or mode not in _PADS:
        raise not_traceable(f"scipy.ndimage.{name} with such arguments")
    return to_raw(as_array(x), np.float64)


def _correlate(
    raw, weights: dict[tuple, Any], counts: Sequence[int], origins: Sequence[int], mode: str, cval
):
    """The sum of the neighbours of each element times weights. counts: extents of the neighbourhood."""
    before = [count // 2 + origin for count, origin in zip(counts, origins)]
    widths = [(low, count - 1 - low) for low, count in zip(before, counts)]
    if any(low < 0 or high < 0 for low, high in widths):
        raise ValueError("invalid origin")
    options = {"constant_values": cval} if _PADS[mode] == "constant" else {}
    if _PADS[mode] == "reflect" and any(n == 1 and max(w) for n, w in zip(raw.shape, widths)):
        options, mode = {}, "nearest"  # one element is its own mirror image
    return _slide(jnp.pad(raw, widths, mode=_PADS[mode], **options), raw.shape, weights)


def _along(raw, weights: Sequence, axis: int, mode: str, cval: float = 0.0, origin: int = 0):
    """`_correlate` with weights along one axis."""
    place = normalize_axis_index(axis, raw.ndim)
    around = ([0] * place, [0] * (raw.ndim - place - 1))
    rows = {(*around[0], k, *around[1]): weight for k, weight in enumerate(weights)}
    counts = [1] * raw.ndim
    counts[place] = len(weights)
    origins = [0] * raw.ndim
    origins[place] = origin
    return _correlate(raw, rows, counts, origins, mode, cval)


def _finish(raw, image: Any):
    return wrap_result(cast_raw(raw, dtype_of(image)))


def _list_weights(weights: Any, size: int) -> list:
    """Weights of a kernel in order: numbers where they are known."""
    if isinstance(weights, Handle):
        raw = to_raw(as_operand(weights), np.float64).reshape(-1)
        return [raw[k] for k in range(size)]
    return np.asarray(weights, np.float64).reshape(-1).tolist()


def _filter(name: str, image, weights, output, mode, cval, origin, axes, *, is_flipped: bool):
    raw = _read_image(name, image, mode, output, cval, origin)
    shape = np.shape(weights)
    if axes is not None or len(shape) != raw.ndim or not raw.size or math.prod(shape) > _MAX_WINDOWS:
        raise not_traceable(f"scipy.ndimage.{name} with such weights")
    if not isinstance(weights, Handle) and np.asarray(weights).dtype.kind == "c":
        raise not_traceable(f"scipy.ndimage.{name} with complex weights")
    values = _list_weights(weights, math.prod(shape))
    origins = [origin] * raw.ndim if isinstance(origin, int) else list(origin)
    if is_flipped:
        values = values[::-1]
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, shape)]
    places = dict(zip(itertools.product(*map(range, shape)), values))
    return _finish(_correlate(raw, places, shape, origins, mode, cval), image)


@implements_scipy("scipy.ndimage.correlate")
def correlate_image(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):  # noqa: A002
    return _filter("correlate", input, weights, output, mode, cval, origin, axes, is_flipped=False)


@implements_scipy("scipy.ndimage.convolve")
def convolve_image(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):  # noqa: A002
    return _filter("convolve", input, weights, output, mode, cval, origin, axes, is_flipped=True)


@implements_scipy("scipy.ndimage.correlate1d")
def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):  # noqa: A002
    raw = _read_image("correlate1d", input, mode, output, cval, origin)
    values = _list_weights(weights, len(weights))
    return _finish(_along(raw, values, axis, mode, cval, origin), input)


@implements_scipy("scipy.ndimage.convolve1d")
def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):  # noqa: A002
    origin = -origin - (len(weights) % 2 == 0)
    raw = _read_image("convolve1d", input, mode, output, cval, origin)
    return _finish(_along(raw, _list_weights(weights, len(weights))[::-1], axis, mode, cval, origin), input)


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


def _per_axis(value: Any, count: int) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


@implements_scipy("scipy.ndimage.gaussian_filter")
def gaussian_filter(input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *,  # noqa: A002
                    radius=None, axes=None):
    ndim = as_array(input).ndim
    axes = normalize_axis_tuple(range(ndim) if axes is None else axes, ndim)
    options = [_per_axis(value, len(axes)) for value in (sigma, order, radius)]
    numbers = [number for values in options for number in values]
    raw = _read_image("gaussian_filter", input, mode, output, cval, truncate, *numbers)
    for axis, own, times, half in zip(axes, *options):
        if own > 1e-15:
            raw = _along(raw, _list_gaussian(float(own), times, truncate, half), axis, mode, cval)
    return _finish(raw, input)


@implements_scipy("scipy.ndimage.gaussian_filter1d")
def gaussian_filter1d(input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0,  # noqa: A002
                      truncate=4.0, *, radius=None):
    raw = _read_image("gaussian_filter1d", input, mode, output, cval, truncate, sigma, order, radius)
    weights = _list_gaussian(float(sigma), order, truncate, radius)
    return _finish(_along(raw, weights, axis, mode, cval), input)


@implements_scipy("scipy.ndimage.uniform_filter")
def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):  # noqa: A002
    ndim = as_array(input).ndim
    axes = normalize_axis_tuple(range(ndim) if axes is None else axes, ndim)
    sizes, origins = _per_axis(size, len(axes)), _per_axis(origin, len(axes))
    raw = _read_image("uniform_filter", input, mode, output, cval, *sizes, *origins)
    for axis, own, shift in zip(axes, sizes, origins):
        if own > 1:
            raw = _along(raw, [1.0] * own, axis, mode, cval, shift) / own
    return _finish(raw, input)


@implements_scipy("scipy.ndimage.uniform_filter1d")
def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):  # noqa: A002
    return uniform_filter(input, (size,), output, mode, cval, (origin,), axes=(axis,))


@implements_scipy("scipy.ndimage.sobel")
def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0):  # noqa: A002
    raw = _read_image("sobel", input, mode, output, cval)
    axis = normalize_axis_index(axis, raw.ndim)
    raw = _along(raw, [-1.0, 0.0, 1.0], axis, mode, cval)
    for other in range(raw.ndim):
        if other != axis:
            raw = _along(raw, [1.0, 2.0, 1.0], other, mode, cval)
    return _finish(raw, input)


@implements_scipy("scipy.ndimage.laplace")
def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None):  # noqa: A002
    raw = _read_image("laplace", input, mode, output, cval)
    parts = [
        _along(raw, [1.0, -2.0, 1.0], axis, mode, cval)
        for axis in (range(raw.ndim) if axes is None else axes)
    ]
    return _finish(sum(parts[1:], parts[0]), input)
