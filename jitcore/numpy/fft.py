"""Discrete Fourier transforms (`jitcore.numpy.fft`).

In: an array; `n`/`s` the lengths to which axes are cut or padded with zeros; `norm` where the factor 1/n
goes. Out: complex arrays, real ones for the inverse real transforms; float32 gives complex64.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.define import canonicalize_axis
from jitcore.lax.fft import FftType, fft as lax_fft
from jitcore.numpy import shaping
from jitcore.numpy.arrays.promotion import convert_dtype, ensure_array
from jitcore.numpy.creation import asarray
from jitcore.numpy.ufuncs import arithmetic

_NORMS = ("backward", "ortho", "forward")


def _scale(x, lengths, norm: str | None, is_inverse: bool) -> Array:
    """The factor that `norm` asks for beyond what the transform does: 1/n for inverse ones, none forward."""
    norm = "backward" if norm is None else norm
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho", or "forward".')
    size = math.prod(lengths)
    if norm == "ortho":
        factor = math.sqrt(size) if is_inverse else 1 / math.sqrt(size)
    elif norm == "forward":
        factor = size if is_inverse else 1 / size
    else:
        return x
    return arithmetic.multiply(x, factor)


def _fit_axis(x, axis: int, length: int) -> Array:
    """x cut or padded with zeros at the end of one axis."""
    extent = x.shape[axis]
    if length < extent:
        return lax.slice_in_dim(x, 0, length, 1, axis)
    if length > extent:
        return lax.pad(x, x.dtype.type(0),
                       [(0, length - extent if i == axis else 0, 0) for i in range(x.ndim)])
    return x


def _prepare(name: str, a, kind: FftType) -> Array:
    a = ensure_array(name, a)
    inexact = dtypes.inexact_dtype(a.dtype)
    inexact = dtypes.float32 if inexact.itemsize == 2 else inexact
    if kind is FftType.RFFT:
        if dtypes.is_complex(a.dtype):
            raise TypeError(f"only real valued inputs supported for {name}")
        return convert_dtype(a, inexact)
    return convert_dtype(a, dtypes.complex_dtype(inexact))


def transform(name: str, kind: FftType, a, s, axes, norm) -> Array:
    """The transform of `axes`, the last one real for the real kinds.

    Raises: ValueError for lengths below 1 or of another number than axes."""
    a = _prepare(name, a, kind)
    if axes is None:
        axes = tuple(range(a.ndim)) if s is None else tuple(range(a.ndim - len(s), a.ndim))
    axes = tuple(canonicalize_axis(i, a.ndim) for i in axes)
    if not axes:
        return a
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: s and axes must have the same length, got {s} and {axes}")
    lengths = [a.shape[i] for i in axes] if s is None else [operator.index(n) for n in s]
    if s is None and kind is FftType.IRFFT:
        lengths[-1] = 2 * (lengths[-1] - 1)
    may_be_empty = s is None and kind in (FftType.FFT, FftType.IFFT)
    if any(isinstance(n, int) and n < 1 for n in lengths) and not may_be_empty:
        raise ValueError(f"{name}: invalid number of data points ({lengths}) specified")
    for i, n in zip(axes, lengths):
        is_half = kind is FftType.IRFFT and i == axes[-1]
        a = _fit_axis(a, i, n // 2 + 1 if is_half else n)
    is_inverse = kind in (FftType.IFFT, FftType.IRFFT)
    return _scale(_transform_axes(a, kind, axes, lengths), lengths, norm, is_inverse)


def _transform_axes(a, kind: FftType, axes: tuple, lengths: list) -> Array:
    """Moves the axes to the end, in their order; a primitive application takes up to three."""
    if not axes:
        return a
    if len(set(axes)) != len(axes):  # NumPy transforms a repeated axis repeatedly
        for i, n in zip(axes, lengths):
            a = _transform_axes(a, kind, (i,), [n])
        return a
    last = tuple(range(a.ndim - len(axes), a.ndim))
    moved = shaping.moveaxis(a, axes, last)
    if len(axes) <= 3:
        moved = lax_fft(moved, kind, lengths)
    elif kind is FftType.IRFFT:  # the half spectrum comes last
        moved = _transform_axes(moved, FftType.IFFT, last[:-3], lengths[:-3])
        moved = lax_fft(moved, kind, lengths[-3:])
    else:
        moved = lax_fft(moved, kind, lengths[-3:])
        kind = FftType.FFT if kind is FftType.RFFT else kind
        moved = _transform_axes(moved, kind, last[:-3], lengths[:-3])
    return shaping.moveaxis(moved, last, axes)


def _define_1d(name: str, kind: FftType, doc: str):
    def function(a, n=None, axis=-1, norm=None):
        if isinstance(axis, (list, tuple)):
            raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes. "
                             f"Please use jax.numpy.fft.{name}n. Got axis = {axis!r}.")
        return transform(name, kind, a, None if n is None else (n,), (axis,), norm)

    return _name(function, name, doc)


def _define_nd(name: str, kind: FftType, doc: str, default_axes):
    def function(a, s=None, axes=None, norm=None):
        if default_axes is not None and len(axes) != 2:
            raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
        return transform(name, kind, a, s, axes, norm)

    if default_axes is not None:
        parameters = inspect.signature(function).parameters.values()
        function.__signature__ = inspect.Signature(
            [p.replace(default=default_axes) if p.name == "axes" else p for p in parameters])
        function.__defaults__ = (None, default_axes, None)
    return _name(function, name, doc)


def _name(function, name: str, doc: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Same as: `numpy.fft.{name}`."
    return function


fft = _define_1d("fft", FftType.FFT, "Transform along one axis.")
ifft = _define_1d("ifft", FftType.IFFT, "Inverse transform along one axis.")
rfft = _define_1d("rfft", FftType.RFFT,
                  "Transform of real values along one axis: the non-negative frequencies.")
irfft = _define_1d("irfft", FftType.IRFFT, "Inverse of `rfft`: real values.")
fft2 = _define_nd("fft2", FftType.FFT, "Transform of two axes.", (-2, -1))
ifft2 = _define_nd("ifft2", FftType.IFFT, "Inverse transform of two axes.", (-2, -1))
rfft2 = _define_nd("rfft2", FftType.RFFT, "Transform of real values over two axes.", (-2, -1))
irfft2 = _define_nd("irfft2", FftType.IRFFT, "Inverse of `rfft2`.", (-2, -1))
fftn = _define_nd("fftn", FftType.FFT, "Transform of several axes.", None)
ifftn = _define_nd("ifftn", FftType.IFFT, "Inverse transform of several axes.", None)
rfftn = _define_nd("rfftn", FftType.RFFT, "Transform of real values over several axes.", None)
irfftn = _define_nd("irfftn", FftType.IRFFT, "Inverse of `rfftn`.", None)

_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(a, n=None, axis=-1, norm=None):
    """Real spectrum of a signal with Hermitian symmetry. Same as: `numpy.fft.hfft`."""
    return irfft(arithmetic.conjugate(ensure_array("hfft", a)), n, axis, _OPPOSITE.get(norm, norm))


def ihfft(a, n=None, axis=-1, norm=None):
    """Inverse of `hfft`. Same as: `numpy.fft.ihfft`."""
    return arithmetic.conjugate(rfft(asarray(a), n, axis, _OPPOSITE.get(norm, norm)))


def fftfreq(n: int, d=1.0, *, dtype=None, device=None):
    """Frequencies of the elements of `fft`, in cycles per unit of d. Same as: `numpy.fft.fftfreq`."""
    n = _check_frequencies("fftfreq", n, d)
    steps = np.concatenate([np.arange((n - 1) // 2 + 1), np.arange(-(n // 2), 0)])
    return _frequencies(steps, n, d, dtype)


def rfftfreq(n: int, d=1.0, *, dtype=None, device=None):
    """Frequencies of the elements of `rfft`. Same as: `numpy.fft.rfftfreq`."""
    n = _check_frequencies("rfftfreq", n, d)
    return _frequencies(np.arange(n // 2 + 1), n, d, dtype)


def _check_frequencies(name: str, n, d) -> int:
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {list(n)}.")
    if isinstance(d, (list, tuple)):
        raise ValueError(
            f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {list(d)}.")
    if dtypes.is_complex(aval_of(d).dtype):
        raise TypeError(f"The d argument of jax.numpy.fft.{name} is a real number, got {d!r}")
    return operator.index(n)


def _frequencies(steps: np.ndarray, n: int, d, dtype) -> Array:
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.canonicalize(dtype)
    return arithmetic.divide(asarray(steps.astype(dtype)), arithmetic.multiply(asarray(d, dtype), n))


def fftshift(x, axes=None):
    """x with the zero frequency moved to the middle. Same as: `numpy.fft.fftshift`."""
    return _shift(x, axes, 1)


def ifftshift(x, axes=None):
    """Inverse of `fftshift`. Same as: `numpy.fft.ifftshift`."""
    return _shift(x, axes, -1)


def _shift(x, axes, sign: int) -> Array:
    x = ensure_array("fftshift", x)
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, Sequence) else (axes,)
    axes = tuple(canonicalize_axis(i, x.ndim) for i in axes)
    return shaping.roll(x, [sign * (x.shape[i] // 2) for i in axes], axes)


__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
           "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]
