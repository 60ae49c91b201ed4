"""`jitcore.scipy.{signal, ndimage, fft, interpolate, cluster}` against SciPy: eager, compiled, batched, of both widths,
and their derivatives."""

import importlib

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, vmap
from jitcore.test_util import check_grads

rng = np.random.default_rng(0)


def real(*shape):
    return rng.normal(size=shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


PAIRS = [((7,), (3,)), ((7,), (4,)), ((3,), (7,)), ((5, 6), (3, 2)), ((5, 6), (4, 4))]
X, Y = real(2, 151), real(2, 151)
PLACES = rng.uniform(-8, 12, (2, 4, 9))
CASES = []
for mode in ("full", "same", "valid"):
    for one, two in PAIRS:
        for name in ("convolve", "correlate", "fftconvolve", *(("convolve2d", "correlate2d") if len(one) == 2 else ())):
            CASES += [(f"signal.{name}", (make(*one), make(*two)), {"mode": mode}) for make in (real, complex_)]
CASES += [("signal.correlate2d", (real(2, 3), real(5, 4)), {"mode": mode}) for mode in ("full", "same", "valid")]
CASES += [("signal.fftconvolve", (real(3, 8), real(3, 5)), {"axes": 1}), ("signal.convolve", (real(9), real(4)), {"method": "fft"})]
CASES += [(f"signal.{name}", args, options) for name, args in (("welch", (X,)), ("csd", (X, Y)), ("welch", (X + 1j * Y,)))
          for options in ({}, {"nperseg": 64, "noverlap": 20, "nfft": 100}, {"nperseg": 50, "average": "median"},
                          {"nperseg": 63, "window": ("tukey", 0.3), "detrend": "linear"},
                          {"nperseg": 32, "scaling": "spectrum", "fs": 10.0}, {"nperseg": 32, "return_onesided": False})]
CASES += [("signal.stft", (X,), options) for options in (
    {"nperseg": 64}, {"nperseg": 63, "boundary": "odd"}, {"nperseg": 64, "boundary": None, "padded": False},
    {"nperseg": 64, "noverlap": 40, "nfft": 80, "boundary": "even"}, {"nperseg": 64, "boundary": "constant", "return_onesided": False})]
CASES += [("signal.csd", (X, Y[..., :70]), {"nperseg": 32}), ("signal.stft", (X,), {"nperseg": 9, "noverlap": 3, "boundary": None})]
CASES += [("signal.stft", (X.T,), {"nperseg": 32, "axis": 0}), ("signal.welch", (X.T,), {"nperseg": 32, "axis": 0})]
CASES += [("signal.istft", (complex_(33, 11),), options) for options in (
    {"nperseg": 64}, {"nperseg": 64, "noverlap": 48}, {"nperseg": 64, "boundary": False}, {"input_onesided": False})]
CASES += [("signal.detrend", (X,), options) for options in ({}, {"type": "constant"}, {"bp": [50, 100]}, {"axis": 0})]
CASES += [(f"fft.{name}", (real(3, n, 4),), {"norm": norm}) for name in ("dct", "idct", "dctn", "idctn") for n in (1, 2, 5, 8)
          for norm in (None, "ortho")]
CASES += [("fft.dct", (real(3, 5),), {"n": 7}), ("fft.idct", (real(3, 5),), {"n": 3, "axis": 0}), ("fft.dctn", (real(2, 3, 4),), {"s": (3, 6)}),
          ("fft.idctn", (real(2, 3, 4),), {"axes": (0, 2)}), ("fft.dct", (complex_(5),), {"norm": "ortho"}),
          ("fft.idct", (complex_(5),), {}), ("fft.dctn", (complex_(2, 3),), {})]
CASES += [("integrate.trapezoid", (real(3, 5),), {"dx": 0.5}), ("cluster.vq.vq", (real(20, 3), real(4, 3)), {}),
          ("cluster.vq.vq", (real(20), real(4)), {})]


def find(root, name):
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"{root}.{module}"), function)


def assert_close(ours, expected, tolerance=1e-10):
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (ours, expected)), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, args, options", CASES, ids=[f"{name}-{i}" for i, (name, _, _) in enumerate(CASES)])
def test_function(name, args, options):
    ours = find("jitcore.scipy", name)
    expected = find("scipy", name)(*args, **options)
    assert_close(ours(*args, **options), expected)
    assert_close(jit(lambda *args: ours(*args, **options))(*args), expected)
    single = [x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in args]
    outs = ours(*single, **options)
    for out in outs if isinstance(outs, tuple) else (outs,):
        assert out.dtype in (np.float32, np.complex64, np.int32)
    assert_close(outs, expected, 2e-3)
    batch = vmap(lambda *args: ours(*args, **options))(*[np.stack([x, 2 * x]) for x in args])
    twice = ours(*[2 * x for x in args], **options)
    first = batch if isinstance(batch, tuple) else (batch,)
    assert_close(tuple(x[1] for x in first), twice if isinstance(twice, tuple) else (twice,))


@pytest.mark.parametrize("name, args, options", [
    ("signal.convolve2d", (real(4, 5), real(2, 3)), {"mode": "same"}), ("signal.fftconvolve", (real(6), real(3)), {}),
    ("signal.detrend", (real(9),), {}), ("signal.welch", (real(40),), {"nperseg": 16}), ("fft.dct", (real(5),), {"norm": "ortho"}),
    ("fft.idct", (real(6),), {}), ("cluster.vq.vq", (real(5, 3), real(4, 3)), {})])
def test_derivatives(name, args, options):
    ours = find("jitcore.scipy", name)
    check_grads(lambda *args: jnp.sum(jnp.sin((lambda out: out[1] if isinstance(out, tuple) else out)(ours(*args, **options)))),
                args, order=2, rtol=1e-3)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(mode, order):
    ours, theirs = find("jitcore.scipy", "ndimage.map_coordinates"), find("scipy", "ndimage.map_coordinates")
    image = real(5, 7)
    grid = {"wrap": "grid-wrap", "constant": "grid-constant"}.get(mode, mode)
    expected = theirs(image, PLACES, order=order, mode=grid, cval=0.5)
    assert_close(ours(image, PLACES, order, mode, 0.5), expected)
    assert_close(jit(lambda image, places: ours(image, places, order, mode, 0.5))(image, PLACES), expected)
    whole = (image * 9).astype(np.int32)
    out = ours(whole, [PLACES[0], PLACES[1]], order, mode)
    assert out.dtype == np.int32 and np.abs(out - theirs(whole.astype(float), PLACES, order=order, mode=grid)).max() <= 0.5 + 1e-9
    if order:
        inside = rng.uniform(0.1, 3.9, (2, 3))
        check_grads(lambda image, places: ours(image, places, order, mode), (image, inside), order=1, rtol=1e-3)


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill_value", [np.nan, 0.0, None])
def test_regular_grid_interpolator(method, fill_value):
    points, values, places = (np.array([0, 1, 2.5, 4]), np.array([-1.0, 0, 3])), real(4, 3, 2), rng.uniform(-1, 5, (20, 2))
    ours, theirs = find("jitcore.scipy", "interpolate.RegularGridInterpolator"), find("scipy", "interpolate.RegularGridInterpolator")
    expected = theirs(points, values, method, bounds_error=False, fill_value=fill_value)(places)
    assert_close(ours(points, values, method, fill_value=fill_value)(places), expected)
    assert_close(jit(lambda values, places: ours(points, values, method, fill_value=fill_value)(places))(values, places), expected)
    assert_close(ours(points, values, method, fill_value=fill_value)((places[:, 0], places[:, 1])), expected)
    with pytest.raises(ValueError, match="dimension"):
        ours(points, values)(places[:, :1])


def test_a_signal_comes_back_from_its_spectra():
    from jitcore.scipy.signal import istft, stft

    back = jit(lambda x: istft(stft(x, nperseg=32)[2], nperseg=32)[1])(X)
    np.testing.assert_allclose(back[:, : X.shape[1]], X, atol=1e-12)


@pytest.mark.parametrize("name, args, options, message", [
    ("signal.convolve", (X, X[0]), {}, "same number of axes"), ("signal.convolve", (X[0], X[0]), {"mode": "whole"}, "mode must"),
    ("signal.convolve", (X[0][:0], X[0]), {}, "zero-size"), ("signal.convolve", (real(3, 8), real(5, 2)), {"mode": "valid"}, "as large"),
    ("signal.detrend", (X,), {"type": "cubic"}, "Trend type"), ("signal.detrend", (X,), {"bp": 900}, "Breakpoints"),
    ("signal.welch", (X,), {"nperseg": 32, "noverlap": 32}, "noverlap"), ("signal.welch", (X,), {"nperseg": 32, "nfft": 16}, "nfft"),
    ("signal.welch", (X,), {"average": "mode"}, "average"), ("signal.stft", (X,), {"boundary": "round"}, "boundary"),
    ("signal.convolve2d", (X[0], X[0]), {}, "2-dimensional"), ("fft.dct", (X,), {"norm": "most"}, "norm"),
    ("ndimage.map_coordinates", (X, [Y], 1), {}, "length input.ndim"), ("cluster.vq.vq", (X, X[0]), {}, "rank")])
def test_wrong_arguments_are_named(name, args, options, message):
    with pytest.raises(ValueError, match=message):
        find("jitcore.scipy", name)(*args, **options)


def test_what_is_not_there_says_so():
    for name, args, options in (("fft.dct", (X, 3), {}), ("signal.convolve2d", (X, X), {"boundary": "wrap"}),
                                ("ndimage.map_coordinates", (X, [Y, Y], 3), {}), ("ndimage.map_coordinates", (X, [Y, Y], 1, "cubic"), {})):
        with pytest.raises(NotImplementedError):
            find("jitcore.scipy", name)(*args, **options)
