"""Cosine transforms with SciPy's names and arguments (`jitcore.scipy.fft`).

In: arrays, of whose complex values the parts are transformed. Out: Arrays of that inexact dtype. Source:
scipy.fft, of which what JAX has.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import promote_arrays

__all__ = ["dct", "dctn", "idct", "idctn"]


def _start(name: str, x, type: int, norm: str | None) -> Array:
    if type != 2:
        raise NotImplementedError(f"{name} has transforms of type 2 alone")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: norm must be None, 'backward' or 'ortho', got {norm!r}")
    (x,) = promote_arrays(name, x, to=dtypes.inexact_dtype)
    return x


def _of_parts(transform: Callable) -> Callable:
    """A transform of real values for complex ones too, whose parts it transforms."""

    @functools.wraps(transform)
    def apply(x, *args, **kwargs):
        if not jnp.iscomplexobj(x):
            return transform(x, *args, **kwargs)
        return lax.complex(*(transform(part, *args, **kwargs) for part in (jnp.real(x), jnp.imag(x))))

    return apply


def _fit(x, n: int | None) -> Array:
    """The last axis cut off or filled up with zeros to n elements. Raises: ValueError for none."""
    if (x.shape[-1] if n is None else n) == 0:
        raise ValueError("a cosine transform of no points is undefined")
    if n is None or n == x.shape[-1]:
        return x
    if n < x.shape[-1]:
        return x[..., :n]
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])


def _scales(n: int, dtype) -> np.ndarray:
    """Of the elements of an orthonormal transform."""
    scales = np.full(n, math.sqrt(1 / (2 * n)))
    scales[:1] /= math.sqrt(2)
    return scales.astype(dtype)


def _twist(n: int, sign: int, dtype) -> np.ndarray:
    return np.exp(sign * 0.5j * np.pi * np.arange(n) / n).astype(dtypes.result_type(dtype, dtypes.complex64))


@_of_parts
def dct(x, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Discrete cosine transform along an axis: y[k] = 2 sum x[i] cos(pi k (2 i + 1) / (2 n)).

    Args:
        type: 2 alone. n: extent of the axis, cut off or filled up with zeros. norm: None, or "ortho".

    Raises: NotImplementedError for another type.
    Example: `dct([1., 1.])` is `[4., 0.]`.
    Source: J. Makhoul, A fast cosine transform in one and two dimensions (1980), as scipy.fft.dct."""
    x = _fit(jnp.moveaxis(_start("dct", x, type, norm), axis, -1), n)
    n = x.shape[-1]
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    out = 2 * (jnp.fft.fft(x[..., order]) * _twist(n, -1, x.dtype)).real
    if norm == "ortho":
        out = out * _scales(n, x.dtype)
    return jnp.moveaxis(out, -1, axis)


@_of_parts
def idct(x, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct` with the same arguments. Source: as there."""
    x = _fit(jnp.moveaxis(_start("idct", x, type, norm), axis, -1), n)
    n = x.shape[-1]
    if norm == "ortho":
        x = x / _scales(n, x.dtype)
    reversed_ = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :0:-1]], -1)
    spectrum = (x - 1j * reversed_) * (_twist(n, 1, x.dtype) / 2)
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    return jnp.moveaxis(jnp.fft.ifft(spectrum).real[..., np.argsort(order)], -1, axis)


def _along_axes(transform: Callable, x, type: int, s: Sequence[int] | None, axes: Sequence[int] | None,
                norm: str | None) -> Array:
    ndim = jnp.ndim(x)
    if s is not None and axes is None and len(s) > ndim:
        raise ValueError(f"s must have at most x.ndim ({ndim}) elements, got {len(s)}")
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError(f"s and axes must have the same length, got {s} and {axes}")
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    for axis, n in zip(axes, [None] * ndim if s is None else s):
        x = transform(x, type, n, axis, norm)
    return jnp.asarray(x)


def dctn(x, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None) -> Array:
    """`dct` along several axes, all by default. s: extents of these axes. Source: scipy.fft.dctn."""
    return _along_axes(dct, x, type, s, axes, norm)


def idctn(x, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """The inverse of `dctn` with the same arguments. Source: scipy.fft.idctn."""
    return _along_axes(idct, x, type, s, axes, norm)
