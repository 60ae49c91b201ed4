"""SciPy's functions of numbers that are not finite, of ints of few bits, bools and nothing: errors, dtypes, NaN."""

from __future__ import annotations

import numpy as np
import pytest

from jitcore import autojit
from tests.numpy_semantics.scipy_cases import FLOAT

NAMES = """convolve|convolve shorter|convolve 2d|fftconvolve|correlate|convolve2d|uniform_filter|uniform_filter1d|
    ndimage.correlate|gaussian_filter1d|sobel|rel_entr|kl_div|entr|softmax|softmax axis|log_softmax|logsumexp|inv|pinv|solve|
    solve_triangular|lu|lu_factor|qr|svdvals|eigvalsh|det|expm|cholesky|norm|trapezoid|fft|rfft irfft""".split("|")
KINDS = {
    "nan": lambda x: put(x, np.nan), "inf": lambda x: put(x, np.inf), "int8": lambda x: (x * 60).astype(np.int8),
    "uint16": lambda x: (abs(x) * 60).astype(np.uint16), "bool": lambda x: x > 0, "ints": lambda x: (x * 4).astype(int),
    "nothing": lambda x: x[:0], "floats": lambda x: x.astype(np.float32), "plain": lambda x: x,
}
#: Where NaN comes out of NaN depends on the algorithm of a transform.
SPREAD = {"fft", "rfft irfft", "expm"}


def put(x, value):
    x = x.copy()
    x.ravel()[1::3] = value
    return x


def run(function, operands):
    with np.errstate(all="ignore"):
        try:
            found = function(*operands)
        except Exception as error:
            return None, (type(error), str(error))
    return flatten(found), None


def flatten(found):
    return [part for one in found for part in flatten(one)] if isinstance(found, (list, tuple)) else [found]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name.strip() for name in NAMES if name.strip() in FLOAT])
@pytest.mark.filterwarnings("ignore")
def test_extreme_values(name, kind):
    function, *shapes = FLOAT[name]
    numbers = np.random.default_rng(0)
    operands = [KINDS[kind](numbers.standard_normal(shape)) for shape in shapes]
    if kind in ("nan", "inf") and name in SPREAD:
        return
    (expected, error), (found, own) = run(function, operands), run(autojit(lambda *x: function(*x)), operands)
    assert own == error
    for one, other in zip(expected or [], found or [], strict=True):
        assert (np.asarray(one).dtype, np.shape(one)) == (np.asarray(other).dtype, np.shape(other))
        rtol = 1e-3 if np.asarray(one).dtype.itemsize < 8 else 1e-7
        np.testing.assert_allclose(other, one, rtol, rtol)
