"""Discrete Fourier transforms over the last axes.

In: a complex array, or a real one for RFFT. Out: complex (real for IRFFT) in the same precision.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.trace import to_array
from jitcore.lax.define import canonicalize_shape, define, product
from jitcore.lax.elementwise import conj, convert_element_type, mul
from jitcore.lax.shape import broadcast_in_dim
from jitcore.process.concurrency import default_threads
from jitcore.process.lazy import LazyFunctions
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary

scipy_fft = LazyFunctions("scipy.fft")


class FftType(enum.IntEnum):
    """Forward and inverse transforms of complex, and of real signals."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _to_fft_type(fft_type) -> FftType:
    """The transform of that name ("fft", "irfft" ...). Raises: ValueError, TypeError for another."""
    if isinstance(fft_type, FftType):
        return fft_type
    if not isinstance(fft_type, str):
        raise TypeError(f"Unknown FFT type value {fft_type!r}")
    try:
        return FftType[fft_type.upper()]
    except KeyError:
        raise ValueError(f"Unknown FFT type {fft_type!r}") from None


def _fft_aval(x: ShapedArray, *, fft_type: FftType, fft_lengths) -> ShapedArray:
    count = len(fft_lengths)
    if not count:
        raise ValueError("FFT needs at least one axis, got no fft_lengths")
    if count > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths "
            f"{fft_lengths}.")
    leading, last = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    if fft_type is FftType.RFFT:
        if x.dtype not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"RFFT input must be float32 or float64, got {x.dtype.name}")
        expected, dtype = tuple(fft_lengths), dtypes.complex_dtype(x.dtype)
        shape = (*leading, *fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    else:
        if not dtypes.is_complex(x.dtype):
            raise ValueError(f"{fft_type.name} input must be complex64 or complex128, got {x.dtype.name}")
        half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
        expected = half if fft_type is FftType.IRFFT else tuple(fft_lengths)
        dtype = dtypes.real_dtype(x.dtype) if fft_type is FftType.IRFFT else x.dtype
        shape = (*leading, *fft_lengths)
    if not last == expected:
        raise ValueError(
            f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to {expected} "
            f"for fft_lengths {fft_lengths}")
    return ShapedArray(shape, dtype)


# Over one axis, which has less overhead, and over several.
_TRANSFORMS = {
    FftType.FFT: (scipy_fft.fft, scipy_fft.fftn),
    FftType.IFFT: (scipy_fft.ifft, scipy_fft.ifftn),
    FftType.RFFT: (scipy_fft.rfft, scipy_fft.rfftn),
    FftType.IRFFT: (scipy_fft.irfft, scipy_fft.irfftn),
}

# Elements from which on SciPy's threads share the lines of an array.
_SHARED_SIZE = 1 << 15


def _count_workers(size: int, length: int) -> int:
    if size < _SHARED_SIZE or size < 2 * length:
        return 1
    return config.num_threads or default_threads()


def _fft(x, *, fft_type: FftType, fft_lengths):
    if not product(fft_lengths) or not x.size:
        aval = _fft_aval(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(aval.shape, aval.dtype)
    one_axis, several = _TRANSFORMS[fft_type]
    workers = _count_workers(x.size, fft_lengths[-1])
    if len(fft_lengths) == 1:
        return one_axis(x, fft_lengths[0], workers=workers)
    return several(x, s=fft_lengths, axes=range(x.ndim - len(fft_lengths), x.ndim), workers=workers)


def _hlo_fft(b, x, *, fft_type: FftType, fft_lengths):
    """Up to three axes are one operation; of more, the others are transformed in a second one."""
    aval = _fft_aval(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
    if 0 in (*x.shape, *fft_lengths):
        return b.full(0, aval.shape, aval.dtype)
    if len(fft_lengths) > _MAX_AXES:
        outer = fft_lengths[:-_MAX_AXES]
        kind = FftType.FFT if fft_type in (FftType.FFT, FftType.RFFT) else FftType.IFFT
        order = [*range(x.ndim - _MAX_AXES - len(outer)), *range(x.ndim - _MAX_AXES, x.ndim),
                 *range(x.ndim - _MAX_AXES - len(outer), x.ndim - _MAX_AXES)]
        back = [order.index(dim) for dim in range(x.ndim)]

        def transform_outer(value):
            moved = _hlo_fft(b, b.transpose(value, order), fft_type=kind, fft_lengths=outer)
            return b.transpose(moved, back)

        x = transform_outer(x) if fft_type is FftType.IRFFT else x
        x = _hlo_fft(b, x, fft_type=fft_type, fft_lengths=fft_lengths[-_MAX_AXES:])
        return x if fft_type is FftType.IRFFT else transform_outer(x)
    return b.op("fft", x, shape=aval.shape, dtype=aval.dtype, fft_length=tuple(fft_lengths),
                fft_type=f"#stablehlo<fft_type {fft_type.name}>")


# Of one transform of XLA's.
_MAX_AXES = 3


def _transpose_fft(ct, x, *, fft_type: FftType, fft_lengths):
    """The matrices of FFT and IFFT are symmetric; a half spectrum stands for two elements but at its ends."""
    if fft_type in (FftType.FFT, FftType.IFFT):
        return fft.primitive.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)
    last, size = fft_lengths[-1], product(fft_lengths)
    share = np.full(last // 2 + 1, 0.5 if fft_type is FftType.RFFT else 2.0)
    share[[0] if last % 2 else [0, -1]] = 1.0
    share *= size if fft_type is FftType.RFFT else 1 / size if size else 0
    dtype = dtypes.complex_dtype(x.aval.dtype) if fft_type is FftType.RFFT else x.aval.dtype
    half = (*aval_of(ct).shape[:-1], last // 2 + 1)
    weights = broadcast_in_dim(share.astype(dtype), half, (len(half) - 1,))
    if fft_type is FftType.RFFT:
        return fft.primitive.bind(mul(conj(ct), weights), fft_type=FftType.IRFFT, fft_lengths=fft_lengths)
    return mul(conj(fft.primitive.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)), weights)


@define("fft", impl=_fft, aval=_fft_aval, jvp=jvp_linear(), transpose=transpose_unary(_transpose_fft),
        batch=rebind(), hlo=_hlo_fft)
def fft(x, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Discrete Fourier transform over the last `len(fft_lengths)` axes.

    Args:
        x: complex, or real for RFFT; FFT and IFFT take a real x as complex.
        fft_type: `FftType` or its name.
        fft_lengths: extents of the signal; the last axis of a half spectrum is `n // 2 + 1` long.
    Raises: ValueError when dtype or shape do not fit the transform."""
    kind = _to_fft_type(fft_type)
    dtype = aval_of(x).dtype
    if kind is FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError("only real valued inputs supported for rfft")
    elif not dtypes.is_complex(dtype):
        x = convert_element_type(x, dtypes.complex_dtype(dtype))
    lengths = tuple(map(operator.index, canonicalize_shape(fft_lengths)))
    return fft.primitive.bind(x, fft_type=kind, fft_lengths=lengths) if lengths else to_array(x)
