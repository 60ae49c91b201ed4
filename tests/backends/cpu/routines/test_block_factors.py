"""LU factors and triangular solutions on one thread, against LAPACK and products in double precision."""

import functools
import itertools
import os
import subprocess
import sys
import zlib

import numpy as np
import pytest
import scipy.linalg

import jitcore.numpy as jnp
import jitcore.scipy.linalg as jsl
from jitcore import jit
from jitcore.lax import linalg

DTYPES = [np.float32, np.float64]
SHAPES = [(24, 24), (31, 31), (48, 48), (49, 49), (96, 96), (97, 100), (150, 30), (30, 150), (61, 48), (48, 61),
          (300, 310)]
RNG = np.random.default_rng(23)


@pytest.fixture(autouse=True)
def own_numbers(request):
    """Each test draws the same numbers, whichever ran before."""
    global RNG
    RNG = np.random.default_rng(zlib.crc32(request.node.name.encode()))


@jit
def factorize(x):
    return tuple(linalg.lu(x))


def draw(shape, dtype) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def run_lu(x) -> list[np.ndarray]:
    results = [np.asarray(got) for got in factorize(x)]
    assert "blocklu_" in factorize.inspect("loop program")
    return results


def multiply_back(factors) -> np.ndarray:
    """L @ U in double precision."""
    rows, count = factors.shape[0], min(factors.shape)
    precise = factors.astype(np.float64)
    lower = np.tril(precise[:, :count], -1) + np.eye(rows, count)
    return lower @ np.triu(precise[:count])


def find_error(x, factors, permutation) -> float:
    """The largest error of a row, beside its largest element."""
    exact = x[permutation].astype(np.float64)
    scale = np.abs(exact).max(axis=1, keepdims=True)
    return (np.abs(multiply_back(factors) - exact) / np.where(scale == 0, 1, scale)).max()


def check_like_lapack(x, same_pivots: bool = True) -> None:
    """The same pivots, multipliers of at most 1, and an error like LAPACK's."""
    error, lapack_error = check_factors(x, same_pivots)
    assert error <= 2 * lapack_error + 4 * np.finfo(x.dtype).eps


def check_factors(x, same_pivots: bool = True) -> tuple[float, float]:
    """The same pivots, multipliers of at most 1, and each element within the bound of any order of sums:
    gamma_n |L| |U| (Higham, Accuracy and Stability of Numerical Algorithms, theorem 9.3).

    Returns: the errors of the factors and of LAPACK's."""
    factors, pivots, permutation = run_lu(x)
    expected, order = factorize_by_lapack(x)
    if same_pivots:
        np.testing.assert_array_equal(pivots, order)
    np.testing.assert_array_equal(permutation, exchange(pivots, len(x)))
    eps = np.finfo(x.dtype).eps
    assert np.abs(np.tril(factors, -1)).max() <= 1 + eps
    bound = 2 * min(x.shape) * eps * multiply_back(np.abs(factors))  # 2: the product here is rounded too
    assert (np.abs(multiply_back(factors) - x[permutation].astype(np.float64)) <= bound).all()
    return find_error(x, factors, permutation), find_error(x, expected, exchange(order, len(x)))


def exchange(pivots, count: int) -> np.ndarray:
    rows = np.arange(count)
    for k, pivot in enumerate(pivots):
        rows[[k, pivot]] = rows[[pivot, k]]
    return rows


def factorize_by_lapack(x) -> tuple[np.ndarray, np.ndarray]:
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (x,))
    return getrf(x)[:2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, dtype):
    check_like_lapack(draw(shape, dtype))


@pytest.mark.parametrize("n", [40, 130])
def test_lu_of_badly_scaled_matrices(n):
    """Pivots are taken for their scale, so that elements grow: the errors of one matrix are up to 20 times
    LAPACK's, or a twentieth of them; those of many are alike."""
    rng, ratios = np.random.default_rng(n), []
    for _ in range(15):
        x, scales = rng.standard_normal((n, n)), 10.0 ** rng.integers(-140, 140, n)
        errors = [check_factors(x * scales[:, None]), check_factors(x * scales)]
        ratios += [error / lapack_error for error, lapack_error in errors]
    assert 0.5 < np.median(ratios) < 1.5
    check_like_lapack(np.vander(np.linspace(0.1, 1, n)), same_pivots=False)


def test_lu_with_pivots_below_the_smallest_normal_number():
    for dtype, scale in ((np.float64, 1e-310), (np.float32, 1e-40)):
        x = draw((50, 50), np.float64) * scale
        factors, pivots, permutation = run_lu(x.astype(dtype))
        assert np.isfinite(factors).all() and np.abs(np.tril(factors, -1)).max() <= 1
        assert pivots[0] == np.abs(x[:, 0]).argmax()
        smallest = np.finfo(dtype).smallest_subnormal
        error = np.abs(multiply_back(factors) - x.astype(dtype)[permutation].astype(np.float64))
        assert error.max() <= 200 * smallest


def test_the_first_of_equal_magnitudes_is_the_pivot():
    x = np.where(draw((70, 70), np.float64) > 0, 1.0, -1.0)
    _, pivots, _ = run_lu(x)
    assert pivots[0] == 0 and pivots[1] == factorize_by_lapack(x)[1][1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_of_singular_matrices(dtype):
    n = 60
    zeros = np.zeros((n, n), dtype)
    factors, pivots, permutation = run_lu(zeros)
    assert not factors.any() and pivots.tolist() == permutation.tolist() == list(range(n))
    column = draw((n, n), dtype)
    column[:, [0, 20, 55]] = 0
    factors, _, permutation = run_lu(column)
    assert np.isfinite(factors).all() and find_error(column, factors, permutation) < 50 * np.finfo(dtype).eps
    low_rank = np.arange(1.0, n + 1)[:, None] * np.ones(n)
    factors, _, permutation = run_lu(low_rank.astype(dtype))
    assert permutation[0] == n - 1 and np.abs(np.triu(factors)[1:]).max() < n * np.finfo(dtype).eps
    assert jit(jnp.linalg.det)(zeros) == 0 and jit(jnp.linalg.slogdet)(zeros)[1] == -np.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_stay_in_their_matrix(value, dtype):
    x, b = draw((3, 70, 70), dtype), draw((3, 70, 20), dtype)
    x[1, 33, 41] = value
    factors, pivots, permutation = run_lu(x)
    for k in (0, 2):
        for got, alone in zip((factors[k], pivots[k], permutation[k]), run_lu(x[k])):
            np.testing.assert_array_equal(got, alone)
    assert not np.isfinite(factors[1]).all()
    assert sorted(permutation[1]) == list(range(70))
    solved = np.asarray(jit(jnp.linalg.solve)(x, b))
    expected = np.linalg.solve(x[1], b[1])
    assert np.isfinite(solved[[0, 2]]).all() and np.isnan(solved[1]).any() == np.isnan(expected).any()
    x[1] = np.nan
    factors, pivots, _ = run_lu(x)
    assert np.isnan(factors[1]).all() and pivots[1].tolist() == list(range(70))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_built_of_factors(dtype):
    n = 75
    a, b = draw((n, n), dtype), draw((n, 40), dtype)
    precise, eps = a.astype(np.float64), np.finfo(dtype).eps
    for function, right, text in ((jnp.linalg.solve, b, "blocktrsm_"), (jnp.linalg.solve, b[:, 0], "trsv_")):
        solve = jit(function)
        x = np.asarray(solve(a, right), np.float64)
        bound = n * eps * (np.abs(precise) @ np.abs(x) + np.abs(right))
        assert (np.abs(precise @ x - right) <= bound).all()
        assert "blocklu_" in solve.inspect("loop program") and text in solve.inspect("loop program")
    inverse = np.asarray(jit(jnp.linalg.inv)(a), np.float64)
    assert np.abs(precise @ inverse - np.eye(n)).max() < n * eps * np.linalg.cond(precise)
    sign, logarithm = map(float, jit(jnp.linalg.slogdet)(a))
    expected = np.linalg.slogdet(precise)
    assert sign == expected[0] and abs(logarithm - expected[1]) < 100 * eps * np.linalg.cond(precise)
    for trans in (0, 1):
        x = np.asarray(jit(lambda a, b, t=trans: jsl.lu_solve(jsl.lu_factor(a), b, t))(a, b), np.float64)
        matrix = precise.T if trans else precise
        assert np.abs(matrix @ x - b).max() <= n * eps * (np.abs(matrix) @ np.abs(x)).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "others"), [(24, 32), (25, 33), (36, 47), (49, 32), (100, 70)])
def test_triangular_solve(n, others, dtype):
    a = (RNG.standard_normal((n, n)) / n + 2 * np.eye(n)).astype(dtype)
    for left, lower, transpose, unit in itertools.product((True, False), repeat=4):
        b = draw((n, others) if left else (others, n), dtype)
        solve = jit(functools.partial(
            linalg.triangular_solve, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit))
        x = np.asarray(solve(a, b), np.float64)
        assert "blocktrsm_" in solve.inspect("loop program")
        t = (np.tril if lower else np.triu)(a).astype(np.float64)
        if unit:
            np.fill_diagonal(t, 1)
        t = t.T if transpose else t
        product, size = (t @ x, np.abs(t) @ np.abs(x)) if left else (x @ t, np.abs(x) @ np.abs(t))
        assert (np.abs(product - b) <= n * np.finfo(dtype).eps * size).all()


def test_triangular_solve_reads_one_triangle_and_leaves_columns_apart():
    n, others = 50, 37
    a, b = draw((n, n), np.float64) / n + np.eye(n), draw((n, others), np.float64)
    for lower in (False, True):
        solve = jit(functools.partial(linalg.triangular_solve, left_side=True, lower=lower))
        expected = np.asarray(solve(a, b))
        spoilt = np.where(np.tri(n, k=0 if lower else -1, dtype=bool) == lower, a, np.nan)
        np.testing.assert_array_equal(solve(spoilt, b), expected)
        one = b.copy()
        one[:, 5] = np.nan
        got = np.asarray(solve(a, one))
        assert np.isnan(got[:, 5]).any()
        np.testing.assert_array_equal(np.delete(got, 5, 1), np.delete(expected, 5, 1))
        a[7, 7] = 0
        assert not np.isfinite(np.asarray(solve(a, b))).all(axis=0).any()
        a[7, 7] = 1


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="names x86 processors")
@pytest.mark.parametrize(("cpu", "features"), [("haswell", "+avx2,+fma,+avx,+sse2"), ("nehalem", "+sse2,+sse4.2")])
def test_narrower_vectors(cpu, features):
    code = """
import numpy as np
import jitcore.numpy as jnp
from jitcore import jit
for dtype in (np.float32, np.float64):
    for n in (24, 53, 110):
        a, b = np.random.default_rng(0).standard_normal((2, n, n)).astype(dtype)
        for right in (b, b[:, 0]):
            x = np.asarray(jit(jnp.linalg.solve)(a, right), float)
            bound = n * np.finfo(dtype).eps * (abs(a.astype(float)) @ abs(x) + abs(right))
            assert (abs(a.astype(float) @ x - right) <= bound).all()
        positive = a @ a.T + n * np.eye(n, dtype=dtype)
        factor = np.asarray(jit(jnp.linalg.cholesky)(positive), float)
        assert abs(factor @ factor.T - positive).max() <= 4 * n * np.finfo(dtype).eps * abs(positive).max()
x = np.arange(100, dtype=np.float16)
np.testing.assert_array_equal(jit(lambda x: x * 3 + 1)(x), x * 3 + 1)
"""
    settings = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features, "JITCORE_CACHE_DIR": ""}
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
