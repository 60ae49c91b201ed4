"""Wide sweeps of the mathematical functions: tens of millions of arguments against a wider format of NumPy's.

float32 is compared with float64 functions of NumPy and SciPy over evenly spread bit patterns, float64 with
80-bit long double where the platform has it. Both references err by less than a hundredth of the bounds.
"""
import numpy as np
import pytest

from jitcore.backends.llvm import mathlib
from jitcore.core.primitive import registry
from tests.backends.llvm.exact_functions import draw_arguments
from tests.backends.llvm.test_mathlib import EXACT, PEER, run

UNARY = tuple(name for name in mathlib.names() if mathlib.FUNCTIONS[name].arity == 1 and name not in EXACT)
WITHOUT_LONG_DOUBLE = tuple(name for name, primitive in registry.items() if "scipy" in primitive.traits)
EXTENDED = tuple(name for name in mathlib.names() if name not in EXACT and name not in WITHOUT_LONG_DOUBLE)
STRIDE, CHUNK = 211, 2 ** 22


def measure_largest(name, got, exact):
    """The largest error in units in the last place of the exact values, which are in a wider format."""
    info, row = np.finfo(got.dtype), mathlib.FUNCTIONS[name]
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        exponent = np.maximum(np.frexp(exact)[1] - 1, info.minexp) - info.nmant
        error = np.abs(got.astype(exact.dtype) - exact)
        ulps = error / np.ldexp(np.ones_like(exact), exponent)
    settled = (got == rounded) | (np.isnan(got) & np.isnan(rounded)) | (error <= row.absolute * info.eps)
    settled |= np.isinf(got) & (np.abs(exact) >= exact.dtype.type(info.max) * (1 - info.eps))
    ulps = np.where(settled & ~np.isfinite(ulps), 0, ulps)
    ulps = np.where(error <= row.absolute * info.eps, 0, ulps)
    return float(np.where(np.isnan(ulps), np.inf, ulps).max())


def call_wider(name, arrays, dtype):
    with np.errstate(all="ignore"):
        return (PEER.get(name) or getattr(np, name, None) or registry[name].impl)(*(a.astype(dtype) for a in arrays))


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_single_precision_over_all_bit_patterns(name):
    for start in range(0, 2 ** 32, STRIDE * CHUNK):
        bits = np.arange(start, min(2 ** 32, start + STRIDE * CHUNK), STRIDE, dtype=np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        if name == "lgamma":
            x = x[::200]  # the reference is Python's, one number at a time
        exact = call_wider(name, [x], np.float64)
        assert measure_largest(name, run(name, x), exact) <= mathlib.FUNCTIONS[name].single


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than float64 here")
@pytest.mark.parametrize("name", EXTENDED)
def test_double_precision_against_long_double(name):
    arrays = draw_arguments(name, np.float64, 300_000)
    exact = call_wider(name, arrays, np.longdouble)
    assert measure_largest(name, run(name, *arrays), exact) <= mathlib.FUNCTIONS[name].double
