"""Signals with SciPy's names and arguments (`jitcore.scipy.signal`): convolution, trends, spectra.

In: real or complex arrays; integers become floats. Out: Arrays of that dtype, spectra complex. Windows are
those of `scipy.signal.get_window`. Source: scipy.signal, of which what JAX has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import ensure_array, promote_arrays
from jitcore.process.lazy import LazyFunctions

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "is"
                              "tft", "stft",
           "welch"]

scipy_signal = LazyFunctions("scipy.signal")


# -- convolution --------------------------------------------------------------------------------------------
def _place(mode: str, one: Sequence[int], two: Sequence[int]) -> list[tuple[int, int]]:
    """Where the result begins within the full one, and how long it is, along each axis."""
    if mode == "full":
        return [(0, n + m - 1) for n, m in zip(one, two)]
    if mode == "same":
        return [((m - 1) // 2, n) for n, m in zip(one, two)]
    if mode != "valid":
        raise ValueError(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}")
    if not (all(n >= m for n, m in zip(one, two)) or all(n <= m for n, m in zip(one, two))):
        raise ValueError("for mode 'valid' one input must be at least as large as the other in every "
                         "dimension, "
                         f"got shapes {tuple(one)} and {tuple(two)}")
    return [(min(n, m) - 1, max(n, m) - min(n, m) + 1) for n, m in zip(one, two)]


def _convolve(name: str, in1, in2, mode: str, precision) -> Array:
    one, two = promote_arrays(name, in1, in2, to=dtypes.inexact_dtype)
    if one.ndim != two.ndim:
        raise ValueError(f"{name}: in1 and in2 need the same number of axes, got shapes {one.shape} and "
                         f"{two.shape}")
    if not one.size or not two.size:
        raise ValueError(f"zero-size arrays not supported in {name}, got shapes {one.shape} and {two.shape}")
    places = _place(mode, one.shape, two.shape)
    pads = [(m - 1 - start, start + length - n)
            for (start, length), n, m in zip(places, one.shape, two.shape)]
    if not one.ndim:
        return one * two
    images, window = (lax.reshape(x, (1, 1, *x.shape)) for x in (one, lax.rev(two, tuple(range(two.ndim)))))
    return lax.conv_general_dilated(images, window, (1,) * one.ndim, pads, precision=precision)[0, 0]


def _reverse(x) -> Array:
    x = ensure_array("correlate", x)
    return jnp.conjugate(lax.rev(x, tuple(range(x.ndim))))


def convolve(in1, in2, mode: str = "full", method: str = "auto", precision=None) -> Array:
    """Convolution of two arrays of any number of axes, the same for both.

    Args:
        mode: "full"; "same", the middle of it, of in1's shape; "valid", where the smaller lies within the
            other.
        method: "fft" goes through `fftconvolve`; "direct" and "auto" sum.

    Raises: ValueError for empty arrays and different numbers of axes.
    Example: `convolve([1., 2.], [1., 1.])` is `[1., 3., 2.]`. Source: scipy.signal.convolve."""
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise ValueError(f"method must be one of ['auto', 'direct', 'fft'], got {method!r}")
    return _convolve("convolve", in1, in2, mode, precision)


def correlate(in1, in2, mode: str = "full", method: str = "auto", precision=None) -> Array:
    """Correlation of in1 with in2: `convolve` with in2 conjugated and reversed; the arguments are the same.

    Example: `correlate([1., 2.], [1., 0.])` is `[0., 1., 2.]`. Source: scipy.signal.correlate."""
    return convolve(in1, _reverse(in2), mode, method, precision)


def _check_2d(name: str, in1, in2, boundary: str, fillvalue) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name} has the boundary 'fill' with zeros alone")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name} only supports 2-dimensional inputs.")


def convolve2d(in1, in2, mode: str = "full", boundary: str = "fill", fillvalue=0, precision=None) -> Array:
    """`convolve` of two matrices, with zeros around. Source: scipy.signal.convolve2d.

    Raises: NotImplementedError for another boundary; ValueError for other numbers of axes."""
    _check_2d("convolve2d", in1, in2, boundary, fillvalue)
    return _convolve("convolve2d", in1, in2, mode, precision)


def correlate2d(in1, in2, mode: str = "full", boundary: str = "fill", fillvalue=0, precision=None) -> Array:
    """`correlate` of two matrices, with zeros around. Source: scipy.signal.correlate2d.

    Raises: as `convolve2d`."""
    _check_2d("correlate2d", in1, in2, boundary, fillvalue)
    if mode == "same":  # for windows of even extents one element later than the middle of `correlate`
        full = _convolve("correlate2d", in1, _reverse(in2), "full", precision)
        return full[tuple(slice(m // 2, m // 2 + n) for n, m in zip(jnp.shape(in1), jnp.shape(in2)))]
    return _convolve("correlate2d", in1, _reverse(in2), mode, precision)


def fftconvolve(in1, in2, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """Convolution by Fourier transforms, faster than `convolve` for two large arrays.

    Args:
        mode: as of `convolve`. axes: those along which is convolved, all by default; the others broadcast.

    Source: scipy.signal.fftconvolve."""
    one, two = promote_arrays("fftconvolve", in1, in2, to=dtypes.inexact_dtype)
    if one.ndim != two.ndim:
        raise ValueError(f"fftconvolve: in1 and in2 need the same number of axes, got shapes {one.shape} and "
                         f"{two.shape}")
    axes = (axes,) if isinstance(axes, int) else axes
    chosen = sorted(range(one.ndim) if axes is None else {axis % one.ndim for axis in axes})
    if not chosen or not one.size or not two.size:
        return one * two
    places = _place(mode, [one.shape[axis] for axis in chosen], [two.shape[axis] for axis in chosen])
    lengths = [one.shape[axis] + two.shape[axis] - 1 for axis in chosen]
    if dtypes.is_complex(one.dtype):
        product = jnp.fft.fftn(one, lengths, chosen) * jnp.fft.fftn(two, lengths, chosen)
        full = jnp.fft.ifftn(product, lengths, chosen)
    else:
        product = jnp.fft.rfftn(one, lengths, chosen) * jnp.fft.rfftn(two, lengths, chosen)
        full = jnp.fft.irfftn(product, lengths, chosen)
    for axis, (start, length) in zip(chosen, places):
        full = lax.slice_in_dim(full, start, start + length, axis=axis)
    return jnp.asarray(full, one.dtype)


# -- trends and spectra -------------------------------------------------------------------------------------
def detrend(data, axis: int = -1, type: str = "linear", bp=0, overwrite_data: None = None) -> Array:
    """data less its trend along an axis: the mean (type "constant"), or a line fitted to each piece.

    Args:
        bp: places that part the pieces. overwrite_data: for SciPy's signature; arrays are immutable.

    Raises: ValueError for another type, and a place beyond the end. Source: scipy.signal.detrend."""
    (data,) = promote_arrays("detrend", data, to=dtypes.inexact_dtype)
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    if type[0] == "c":
        return data - jnp.mean(data, axis, keepdims=True)
    moved = jnp.moveaxis(data, axis, -1)
    ends = np.unique(np.r_[0, bp, moved.shape[-1]])
    if ends[-1] > moved.shape[-1]:
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    pieces = []
    for start, stop in zip(ends, ends[1:]):
        piece, n = moved[..., start:stop], stop - start
        line = np.stack([np.ones(n), np.arange(1, n + 1) / n], 1)
        basis = np.linalg.qr(line)[0].astype(data.dtype)
        pieces.append(piece - (piece @ basis) @ basis.T)
    return jnp.moveaxis(jnp.concatenate(pieces, -1), -1, axis)


def _read_window(window, nperseg: int | None, length: int, dtype) -> tuple[np.ndarray, int]:
    """The window's values and extent. window: a name, a tuple with parameters, or the values."""
    if isinstance(window, (str, tuple)):
        nperseg = min(256 if nperseg is None else int(nperseg), length)
        values = np.asarray(scipy_signal.get_window(window, nperseg))
    else:
        values = np.asarray(window)
        if values.ndim != 1:
            raise ValueError("window must be 1-D")
        nperseg = len(values) if nperseg is None else int(nperseg)
    if len(values) != nperseg:
        raise ValueError("value specified for nperseg is different from length of window")
    return values.astype(dtype), nperseg


def _real_dtype(x) -> np.dtype:
    return np.zeros((), x.dtype).real.dtype


def _transform(x, window, nperseg: int, noverlap: int, nfft: int, detrend_type, is_onesided: bool) -> Array:
    """Spectra of the windowed pieces of the last axis: [..., frequency, piece]."""
    starts = np.arange(0, x.shape[-1] - nperseg + 1, nperseg - noverlap)
    pieces = x[..., starts[:, None] + np.arange(nperseg)]
    if detrend_type:
        pieces = detrend(pieces, type=detrend_type) if isinstance(detrend_type, str) else detrend_type(pieces)
    transform = jnp.fft.rfft if is_onesided else jnp.fft.fft
    return jnp.swapaxes(transform(pieces * window, nfft), -1, -2)


def _lengths(nperseg: int, noverlap: int | None, nfft: int | None) -> tuple[int, int]:
    nfft = nperseg if nfft is None else int(nfft)
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    if nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    return noverlap, nfft


def _frequencies(nfft: int, fs, is_onesided: bool, dtype) -> Array:
    return jnp.asarray((np.fft.rfftfreq if is_onesided else np.fft.fftfreq)(nfft).astype(dtype) * fs)


def csd(x, y, fs=1.0, window="hann", nperseg: int | None = None, noverlap: int | None = None,
        nfft: int | None = None, detrend="constant", return_onesided: bool = True, scaling: str = "density",
        axis: int = -1, average: str = "mean") -> tuple[Array, Array]:
    """(frequencies, cross spectral density of x and y) by Welch's method: periodograms of pieces, averaged.

    Args:
        x, y: signals, of which zeros follow the shorter one; y None is x, and the density real. fs: samples
            per unit of time.
        nperseg: extent of a piece, 256 by default. noverlap: of two pieces, by default half of it.
        detrend: as `type` of `detrend`, or False. scaling: "density" or "spectrum". average: "mean",
            "median".

    Source: P. Welch (1967), as scipy.signal.csd."""
    x, other = promote_arrays("csd", x, x if y is None else y, to=dtypes.inexact_dtype)
    x, other = jnp.moveaxis(x, axis, -1), jnp.moveaxis(other, axis, -1)
    length = max(x.shape[-1], other.shape[-1])
    x, other = (jnp.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, length - s.shape[-1])]) for s in (x, other))
    dtype = _real_dtype(x)
    values, nperseg = _read_window(window, nperseg, x.shape[-1], dtype)
    noverlap, nfft = _lengths(nperseg, noverlap, nfft)
    is_onesided = return_onesided and not dtypes.is_complex(x.dtype)
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling!r}")
    scale = 1 / (fs * (values * values).sum()) if scaling == "density" else 1 / values.sum() ** 2
    one = _transform(x, values, nperseg, noverlap, nfft, detrend, is_onesided)
    two = one if y is None else _transform(other, values, nperseg, noverlap, nfft, detrend, is_onesided)
    power = (jnp.square(jnp.abs(one)) if y is None else jnp.conjugate(one) * two) * jnp.asarray(scale, dtype)
    if is_onesided:
        twice = np.full((nfft // 2 + 1, 1), 2, dtype)
        twice[0] = 1
        if nfft % 2 == 0:
            twice[-1] = 1
        power = power * twice
    if average == "median":
        even = 2 * np.arange(1, (power.shape[-1] - 1) // 2 + 1)
        bias = 1 + np.sum(1 / (even + 1) - 1 / even)
        parts = [jnp.median(part, -1) for part in ((power,) if y is None else (power.real, power.imag))]
        power = (parts[0] if y is None else lax.complex(*parts)) / dtype.type(bias)
    elif average == "mean":
        power = jnp.mean(power, -1)
    else:
        raise ValueError(f'average must be "median" or "mean", got {average!r}')
    return _frequencies(nfft, fs, is_onesided, dtype), jnp.moveaxis(power, -1, axis)


def welch(x, fs=1.0, window="hann", nperseg: int | None = None, noverlap: int | None = None,
          nfft: int | None = None, detrend="constant", return_onesided: bool = True, scaling: str = "density",
          axis: int = -1, average: str = "mean") -> tuple[Array, Array]:
    """(frequencies, power spectral density of x): `csd` of x with itself, which is real.

    Source: P. Welch (1967), as scipy.signal.welch."""
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


def stft(x, fs=1.0, window="hann", nperseg: int = 256, noverlap: int | None = None, nfft: int | None = None,
         detrend=False, return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1) -> tuple[Array, Array, Array]:
    """(frequencies, times, spectra [..., frequency, time]) of pieces of x that overlap.

    Args:
        boundary: "zeros", "even", "odd", "constant": how x goes on for half a piece before and after; None:
            not.
        padded: zeros follow, so that whole pieces cover x. Others: as of `csd`.

    Source: scipy.signal.stft."""
    (x,) = promote_arrays("stft", x, to=dtypes.inexact_dtype)
    x, dtype = jnp.moveaxis(x, axis, -1), _real_dtype(x)
    values, nperseg = _read_window(window, nperseg, x.shape[-1], dtype)
    noverlap, nfft = _lengths(nperseg, noverlap, nfft)
    step = nperseg - noverlap
    if boundary is not None:
        x = _extend(x, nperseg // 2, boundary)
    if padded:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -(x.shape[-1] - nperseg) % step % nperseg)])
    is_onesided = return_onesided and not dtypes.is_complex(x.dtype)
    spectra = _transform(x, values, nperseg, noverlap, nfft, detrend, is_onesided) / values.sum()
    times = (np.arange(spectra.shape[-1]) * step + nperseg / 2 * (boundary is None)).astype(dtype) / fs
    spectra = jnp.moveaxis(spectra, -2, axis - 1 if axis < 0 else axis)
    return _frequencies(nfft, fs, is_onesided, dtype), jnp.asarray(times), spectra


def _extend(x, n: int, boundary: str) -> Array:
    modes = {"zeros": {"mode": "constant"}, "even": {"mode": "reflect"}, "constant": {"mode": "edge"},
             "odd": {"mode": "reflect", "reflect_type": "odd"}}
    if boundary not in modes:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {[*modes, None]}")
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], **modes[boundary])


def istft(Zxx, fs=1.0, window="hann", nperseg: int | None = None, noverlap: int | None = None,
          nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1,
          freq_axis: int = -2) -> tuple[Array, Array]:
    """(times, signal) whose `stft` with the same window and overlap is Zxx: pieces overlapped and added.

    Source: scipy.signal.istft."""
    (spectra,) = promote_arrays("istft", Zxx, to=lambda dtype: dtypes.result_type(dtype, dtypes.complex64))
    spectra = jnp.moveaxis(spectra, (freq_axis, time_axis), (-2, -1))
    count, pieces = spectra.shape[-2:]
    whole = 2 * (count - 1) if input_onesided else count
    if nperseg is None:
        nperseg = whole + 1 if input_onesided and nfft == whole + 1 else whole
    nfft = (whole + 1 if input_onesided and nperseg == whole + 1 else whole) if nfft is None else int(nfft)
    noverlap, nfft = _lengths(nperseg, noverlap, nfft)
    values, nperseg = _read_window(window, nperseg, nperseg, _real_dtype(spectra))
    step = nperseg - noverlap
    parts = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(spectra, nfft, -2)[..., :nperseg, :]
    parts = jnp.swapaxes(parts, -1, -2) * (values * values.sum())
    length = nperseg + (pieces - 1) * step
    places = np.arange(pieces)[:, None] * step + np.arange(nperseg)
    signal = jnp.zeros((*parts.shape[:-2], length), parts.dtype).at[..., places].add(parts)
    norm = np.zeros(length, values.dtype)
    np.add.at(norm, places, (values * values)[None].repeat(pieces, 0))
    signal = signal / np.where(norm > 1e-10, norm, 1)
    if boundary:
        signal = signal[..., nperseg // 2 : length - nperseg // 2]
    times = jnp.asarray(np.arange(signal.shape[-1]).astype(values.dtype) / fs)
    return times, jnp.moveaxis(signal, -1, min(time_axis % Zxx.ndim, freq_axis % Zxx.ndim))
