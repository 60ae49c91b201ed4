"""SciPy's functions over handles against SciPy: values, dtypes, kinds of results, errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, ndimage, signal, special, stats
from scipy.spatial import distance

import jitcore
from jitcore.errors import NotTraceable
from tests.numpy_semantics.scipy_cases import DOUBLE, FLOAT, ONLY_DOUBLE
from tests.numpy_semantics.test_functions import make_operand
from tests.numpy_semantics.tracing import check

CASES = [pytest.param(function, shapes, dtype, id=f"{name}-{dtype}")
         for cases, names in ((FLOAT, "f8 f4"), (DOUBLE, "f8 i8"), (ONLY_DOUBLE, "f8"))
         for name, (function, *shapes) in cases.items() for dtype in names.split()]


@pytest.mark.parametrize(("function", "shapes", "dtype"), CASES)
def test_functions_agree_with_scipy(function, shapes, dtype):
    operands = [make_operand(shape, np.dtype(dtype), seed) for seed, shape in enumerate(shapes)]
    check(function, *operands)


def _solve(a, b):
    return linalg.solve(a, b)


def _cholesky(a, b):
    return linalg.cholesky(a)


@pytest.mark.parametrize("function", [_solve, _cholesky])
@pytest.mark.parametrize("bad", [np.zeros((2, 2)), np.full((2, 2), np.nan), -np.eye(2)])
def test_errors_are_those_of_scipy(function, bad):
    compiled = jitcore.autojit(function, strict=True)
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(compiled(good, good[0]), function(good, good[0]), atol=1e-12)
    found, expected = _run(compiled, bad, bad[0]), _run(function, bad, bad[0])
    if isinstance(expected, tuple):
        assert found == expected
    else:
        np.testing.assert_allclose(found, expected, atol=1e-12)


def _run(function, *args):
    try:
        return np.asarray(function(*args))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("function", [
    lambda a: special.struve(1, a), lambda a: ndimage.median_filter(a, 3), lambda a: stats.norm.entropy(a),
    lambda a: ndimage.gaussian_filter(a.astype(int), 1.0), lambda a: linalg.inv(a[None]),
    lambda a: distance.euclidean(a[0].astype(np.float32), a[1]), lambda a: signal.savgol_filter(a, 4, 2),
])
def test_what_is_not_traced_goes_to_scipy(function):
    a = make_operand((5, 5), np.dtype(float), 0)
    with pytest.raises(NotTraceable):
        jitcore.autojit(function, strict=True)(a)


def test_known_arguments_reach_scipy_itself():
    @jitcore.autojit(strict=True)
    def weigh(a):
        return a @ signal.windows.hann(5) + special.comb(5, 2) + linalg.norm([3.0, 4.0])

    a = make_operand((5,), np.dtype(float), 0)
    np.testing.assert_allclose(weigh(a), a @ signal.windows.hann(5) + 15)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_one_triangle_of_a_matrix_is_read(lower, dtype):
    matrix = np.random.default_rng(0).normal(size=(5, 5)).astype(dtype)
    if dtype == "c16":
        matrix = matrix + 1j * matrix[::-1]

    def values(a):
        return linalg.eigvalsh(a, lower=lower), linalg.eigh(a, lower=lower, eigvals_only=True)

    for found, expected in zip(jitcore.autojit(values, strict=True)(matrix), values(matrix)):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.int64, np.int16])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_integers_are_convolved_as_integers(mode, dtype):
    def both(a, b):
        return signal.convolve(a, b, mode), signal.correlate(a, b, mode)

    operands = np.arange(1, 13, dtype=dtype), np.array([3, -1, 2], dtype)
    for found, expected in zip(jitcore.autojit(both, strict=True)(*operands), both(*operands)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
