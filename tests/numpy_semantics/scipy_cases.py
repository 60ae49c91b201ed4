"""SciPy functions as scripts call them: name -> (function, shapes of operands)."""

from __future__ import annotations

import numpy as np
from scipy import fft, integrate, linalg, ndimage, signal, special, stats
from scipy.spatial import distance

VECTOR, MATRIX, SQUARE, CUBE = (6,), (4, 5), (4, 4), (2, 3, 4)


def _positive(a):
    return a @ a.T + 4 * np.eye(len(a), dtype=a.dtype)


def _absolute(found):
    return tuple(np.abs(part) for part in found)


#: Functions of float64 and float32.
FLOAT = {
    **{name: (lambda a, f=getattr(special, name): f(a), MATRIX) for name in
       "erf erfc ndtr log_ndtr expit i0 i0e i1 i1e entr expm1 exp2 cbrt".split()},
    **{name: (lambda a, f=getattr(special, name): f(np.abs(a) + 0.1), MATRIX) for name in
       "gammaln digamma log1p".split()},
    **{name: (lambda a, f=getattr(special, name): f(special.expit(a)), MATRIX) for name in
       "logit ndtri erfinv".split()},
    **{name: (lambda a, b, f=getattr(special, name): f(a, np.abs(b)), MATRIX, MATRIX) for name in
       "xlogy xlog1py rel_entr kl_div".split()},
    "erf of a number": (lambda a: special.erf(a[0]), VECTOR),
    "erf out": (lambda a: special.erf(a, out=a), VECTOR),
    "softmax": (lambda a: special.softmax(a), MATRIX),
    "softmax axis": (lambda a: special.softmax(a, axis=1), MATRIX),
    "log_softmax": (lambda a: special.log_softmax(a, axis=-1), MATRIX),
    "logsumexp": (lambda a: special.logsumexp(a), MATRIX),
    "logsumexp weights": (lambda a, b: special.logsumexp(a, axis=0, b=b * b), MATRIX, MATRIX),
    "logsumexp keepdims": (lambda a: special.logsumexp(a, axis=1, keepdims=True), MATRIX),
    "solve": (lambda a, b: linalg.solve(_positive(a), b), SQUARE, (4,)),
    "solve positive": (lambda a, b: linalg.solve(_positive(a), b, assume_a="pos"), SQUARE, (4, 2)),
    "inv": (lambda a: linalg.inv(_positive(a)), SQUARE),
    "pinv": (lambda a: linalg.pinv(a), MATRIX),
    "cholesky": (lambda a: linalg.cholesky(_positive(a)), SQUARE),
    "cholesky lower": (lambda a: linalg.cholesky(_positive(a), lower=True), SQUARE),
    "cho_solve": (lambda a, b: linalg.cho_solve((linalg.cholesky(_positive(a)), False), b), SQUARE, (4,)),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(_positive(a), b, lower=True), SQUARE, (4,)),
    "solve_triangular transposed": (lambda a, b: linalg.solve_triangular(_positive(a), b, "T"), SQUARE, (4, 3)),
    "lu": (lambda a: linalg.lu(a), SQUARE),
    "lu permuted": (lambda a: linalg.lu(a, permute_l=True), SQUARE),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(_positive(a)), b), SQUARE, (4,)),
    "lu_factor": (lambda a: linalg.lu_factor(a), SQUARE),
    "qr": (lambda a: _absolute(linalg.qr(a)), MATRIX),
    "qr economic": (lambda a: _absolute(linalg.qr(a, mode="economic")), (5, 3)),
    "svd": (lambda a: _absolute(linalg.svd(a, full_matrices=False)), MATRIX),
    "svdvals": (lambda a: linalg.svdvals(a), MATRIX),
    "eigh": (lambda a: linalg.eigh(_positive(a), driver="evd"), SQUARE),
    "eigvalsh": (lambda a: linalg.eigvalsh(_positive(a)), SQUARE),
    "expm": (lambda a: linalg.expm(a), SQUARE),
    "norm": (lambda a: linalg.norm(a), VECTOR),
    "norm of a matrix": (lambda a: (linalg.norm(a), linalg.norm(a, 1), linalg.norm(a.T, 1)), MATRIX),
    "norm axis": (lambda a: linalg.norm(a, axis=1), MATRIX),
    "block_diag": (lambda a, b: linalg.block_diag(a, b, 1.0), (2, 2), (1, 3)),
    "toeplitz": (lambda a, b: (linalg.toeplitz(a), linalg.toeplitz(a, b)), VECTOR, (4,)),
    "circulant": (lambda a: linalg.circulant(a), VECTOR),
    "fft": (lambda a: fft.fft(a), VECTOR),
    "fft n": (lambda a: fft.fft(a, 9, axis=0), MATRIX),
    "rfft irfft": (lambda a: fft.irfft(fft.rfft(a) * 2, 6, norm="ortho"), VECTOR),
    "fft2": (lambda a: fft.ifft2(fft.fft2(a)), CUBE),
    "fftn": (lambda a: fft.fftn(a, (3, 2)), CUBE),
    "fftshift": (lambda a: fft.fftshift(a, axes=1), MATRIX),
    "trapezoid": (lambda a, b: integrate.trapezoid(a, b), VECTOR, VECTOR),
    "cumulative_trapezoid": (lambda a, b: integrate.cumulative_trapezoid(a, b), VECTOR, VECTOR),
    "cumulative_trapezoid axis": (lambda a: integrate.cumulative_trapezoid(a, dx=0.5, axis=0, initial=0), MATRIX),
    "simpson": (lambda a: integrate.simpson(a, dx=0.5), (7,)),
    "simpson even": (lambda a: integrate.simpson(a, dx=0.5), VECTOR),
    "simpson places": (lambda a, b: integrate.simpson(a, x=np.cumsum(b * b + 0.1)), (7,), (7,)),
    "simpson even places": (lambda a, b: integrate.simpson(a, x=np.cumsum(b * b + 0.1)), (8,), (8,)),
    "simpson two": (lambda a, b: integrate.simpson(a, x=b), (2,), (2,)),
    "simpson axis": (lambda a: integrate.simpson(a, axis=0), MATRIX),
    "convolve": (lambda a, b: [signal.convolve(a, b, mode) for mode in ("full", "same", "valid")], VECTOR, (3,)),
    "convolve shorter": (lambda a, b: [signal.convolve(b, a, mode) for mode in ("full", "same", "valid")],
                         VECTOR, (3,)),
    "convolve 2d": (lambda a, b: [signal.convolve(a, b, mode) for mode in ("full", "same", "valid")],
                    MATRIX, (3, 2)),
    "fftconvolve": (lambda a, b: signal.fftconvolve(a, b, "same"), MATRIX, (2, 3)),
    "correlate": (lambda a, b: [signal.correlate(a, b, mode) for mode in ("full", "same")], VECTOR, (3,)),
    "convolve2d": (lambda a, b: [signal.convolve2d(a, b, mode) for mode in ("full", "same", "valid")],
                   MATRIX, (3, 2)),
    "convolve2d boundary": (lambda a, b: [signal.convolve2d(a, b, mode, kind) for mode in ("full", "same")
                                          for kind in ("wrap", "symm")], (6, 7), (3, 4)),
    "lfilter": (lambda a, b, c: signal.lfilter(b, c * c + 0.5, a), (20,), (3,), (2,)),
    "lfilter rows": (lambda a, b: signal.lfilter(b, [1.0, 0.5, 0.1], a, axis=0), (6, 3), (2,)),
    "lfilter one weight": (lambda a: signal.lfilter([0.5], [2.0], a), VECTOR),
    "lfilter state": (lambda a, b: signal.lfilter([0.1, 0.2], [1.0, 0.5], a, zi=b), (9,), (1,)),
    "sobel": (lambda a: [ndimage.sobel(a, k) for k in (0, 1)], MATRIX),
    "laplace": (lambda a: ndimage.laplace(a), MATRIX),
    "uniform_filter": (lambda a: [ndimage.uniform_filter(a, size) for size in (2, 3, (2, 3))], MATRIX),
    "uniform_filter1d": (lambda a: ndimage.uniform_filter1d(a, 4, mode="nearest"), VECTOR),
    "gaussian_filter": (lambda a: ndimage.gaussian_filter(a, 1.5), (9, 10)),
    "gaussian_filter modes": (lambda a: [ndimage.gaussian_filter(a, (0.7, 0), mode=mode, cval=2.0) for mode in
                                         ("reflect", "nearest", "mirror", "wrap", "constant")], (9, 10)),
    "gaussian_filter order": (lambda a: ndimage.gaussian_filter(a, 1.0, order=(0, 1)), (9, 10)),
    "gaussian_filter1d": (lambda a: ndimage.gaussian_filter1d(a, 1.0, axis=0, order=1), (9, 10)),
    "ndimage.convolve": (lambda a, b: ndimage.convolve(a, b), MATRIX, (3, 3)),
    "ndimage.convolve even": (lambda a, b: ndimage.convolve(a, b, mode="wrap"), MATRIX, (2, 4)),
    "ndimage.correlate": (lambda a, b: ndimage.correlate(a, b, mode="mirror", origin=1), MATRIX, (3, 3)),
    "ndimage.correlate1d": (lambda a: ndimage.correlate1d(a, [1, 2, 4, 8]), MATRIX),
    "ndimage.convolve1d": (lambda a: ndimage.convolve1d(a, [1, 2, 4, 8], axis=0), MATRIX),
}

#: Functions of float64 and int64.
DOUBLE = {
    "norm.pdf": (lambda a: (stats.norm.pdf(a), stats.norm.logpdf(a, 1, 2)), MATRIX),
    "norm.cdf": (lambda a: (stats.norm.cdf(a, scale=3), stats.norm.sf(a), stats.norm.logcdf(a)), MATRIX),
    "norm.ppf": (lambda a: stats.norm.ppf(special.expit(a)), MATRIX),
    "cdist": (lambda a, b: [distance.cdist(a, b, metric) for metric in ("euclidean", "sqeuclidean", "cityblock")],
              MATRIX, (3, 5)),
    "savgol_filter": (lambda a: signal.savgol_filter(a, 7, 2), (20,)),
    "savgol_filter axis": (lambda a: signal.savgol_filter(a, 5, 3, deriv=1, delta=0.1, axis=0), (12, 3)),
    "hilbert": (lambda a: signal.hilbert(a), (9,)),
    "hilbert even": (lambda a: np.abs(signal.hilbert(a, axis=0)), (8, 3)),
    "solve of integers": (lambda a: linalg.solve(a.T @ a + 9 * np.eye(4), a[0]), SQUARE),
    "det": (lambda a: linalg.det(a), SQUARE),
    "norm of integers": (lambda a: linalg.norm(a), VECTOR),
    "erf of integers": (lambda a: special.erf(a), VECTOR),
    "simpson of integers": (lambda a: integrate.simpson(a), VECTOR),
    "convolve of integers": (lambda a, b: signal.convolve(a, b, "same"), MATRIX, (3, 3)),
}

#: Functions of float64.
ONLY_DOUBLE = {
    "zscore": (lambda a: (stats.zscore(a), stats.zscore(a, axis=1, ddof=1), stats.zscore(a, axis=None)), MATRIX),
    "distances": (lambda a, b: (distance.euclidean(a, b), distance.sqeuclidean(a, b), distance.cityblock(a, b)),
                  VECTOR, VECTOR),
    "gammainc": (lambda a, b: (special.gammainc(np.abs(a) + 0.1, np.abs(b)),
                               special.gammaincc(np.abs(a) + 0.1, np.abs(b))), MATRIX, MATRIX),
    "betainc": (lambda a, b: special.betainc(np.abs(a) + 0.1, np.abs(b) + 0.1, special.expit(a)), MATRIX, MATRIX),
    "logit near its zero": (lambda a: special.logit(0.5 + 1e-9 * a), VECTOR),
    "transform of a large product": (lambda a, b: signal.convolve(a, b, "same"), (20, 20), (13, 13)),
    "transform of a complex product": (lambda a, b: signal.fftconvolve(a * 1j, b), (20, 20), (13, 13)),
}
