"""Every elementwise ufunc of floats, of signed zeros, NaN, infinities and subnormal numbers, as `autojit` and as
NumPy: values with the signs of zeros, dtypes, and whether the result is a scalar or an array."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import jitcore

VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, np.nan, np.inf, -np.inf, 5e-324, -1e-45, 2.2250738585072014e-308, 3.4e38, 1e300]
#: How a value is given: as numbers, as arrays without axes, as arrays of lengths with and without whole vectors.
FORMS = {
    "float": float, "float32": np.float32, "float64": np.float64, "0-d": np.array,
    "0-d float32": lambda value: np.array(value, np.float32),
    **{f"{n} {dtype.__name__}": lambda value, n=n, dtype=dtype: np.full(n, value, dtype)
       for n in (1, 3, 17) for dtype in (np.float32, np.float64)},
}
UFUNCS = sorted({value.__name__ for value in vars(np).values() if type(value) is np.ufunc and value.signature is None
                 and any(set(types.partition("->")[0]) == {"d"} for types in value.types)})


def is_own_difference(name: str, operands: list[np.ndarray]) -> np.ndarray:
    """Where NumPy's loops differ among themselves: `fmax` and `fmin` of zeros of both signs give the first in its
    scalar loops of doubles, the second in those of vectors; a scalar exponent 0.5 is `sqrt`, one in an array `pow`."""
    if name in ("fmax", "fmin"):
        return (operands[0] == 0) & (operands[1] == 0)
    if name == "power":
        return (operands[1] == 0.5) & (np.signbit(operands[0]))
    return np.zeros(np.broadcast_shapes(*(x.shape for x in operands)), bool)


def assert_like(want, got, operands, name: str) -> None:
    if isinstance(want, tuple):
        assert type(got) is tuple and len(got) == len(want)
        for one, other in zip(want, got):
            assert_like(one, other, operands, name)
        return
    assert type(got) is type(want), (name, operands, type(got), type(want))
    want, got = np.asarray(want), np.asarray(got)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), (name, operands)
    counted = ~is_own_difference(name, operands)
    want, got = want[counted], got[counted]
    text = f"{name} {operands}: {got}, not {want}"
    if want.dtype.kind != "f":
        assert np.array_equal(want, got), text
        return
    is_nan = np.isnan(want)
    assert np.array_equal(is_nan, np.isnan(got)), text
    want, got = want[~is_nan], got[~is_nan]
    assert np.array_equal(np.signbit(want), np.signbit(got)), text
    np.testing.assert_array_max_ulp(want, got, 4)


@pytest.mark.parametrize("name", UFUNCS)
def test_special_values(name):
    ufunc = getattr(np, name)
    parameters = ", ".join("ab"[: ufunc.nin])
    compiled = jitcore.autojit(eval(f"lambda {parameters}: np.{name}({parameters})", {"np": np}))
    cases = [(value,) for value in VALUES] if ufunc.nin == 1 else [(a, b) for a in VALUES for b in VALUES]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for make in FORMS.values():
            for case in cases:
                given = [make(value) for value in case]
                operands = [np.asarray(value) for value in given]
                assert_like(ufunc(*given), compiled(*given), operands, name)
        for dtype in (np.float32, np.float64):  # neighbours are other values
            given = [np.array(column, dtype) for column in zip(*cases)]
            assert_like(ufunc(*given), compiled(*given), given, name)
