"""Decompositions and solvers: factors multiply to the matrix, conventions are JAX's, failures give NaN."""

import numpy as np
import pytest

from jitcore.lax import linalg as lax
from tests.jax_answers import jax
from tests.lax.oracle import as_list, check_against_jax, random_array

jax_lax = jax.lax

jax_linalg = jax_lax.linalg
RNG = np.random.default_rng(10)
DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (2, 3, 4, 4), (0, 3, 3), (2, 0, 0)]


def tolerance_of(dtype) -> float:
    return 2e-4 if np.dtype(dtype).name in ("float32", "complex64") else 1e-10


def hermitian(shape, dtype, positive: bool = True) -> np.ndarray:
    x = random_array(RNG, shape, dtype)
    adjoint = np.conj(np.swapaxes(x, -1, -2))
    if not positive:
        return (x + adjoint).astype(dtype)
    return (x @ adjoint + 3 * np.eye(shape[-1])).astype(dtype)


def assert_close(actual, wanted, dtype):
    np.testing.assert_allclose(np.asarray(actual), wanted, rtol=tolerance_of(dtype), atol=tolerance_of(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_cholesky(shape, dtype):
    x = hermitian(shape, dtype)
    check_against_jax(lax.cholesky, jax_linalg.cholesky, x, tolerance=tolerance_of(dtype))


def test_cholesky_symmetrizes_or_reads_the_lower_triangle():
    x = hermitian((3, 3), "float64")
    skewed = x + np.triu(np.ones((3, 3)), 1) - np.tril(np.ones((3, 3)), -1)
    assert_close(lax.cholesky(skewed), np.linalg.cholesky(x), "float64")
    lower = np.tril(x) + np.triu(np.full((3, 3), 100.0), 1)
    assert_close(lax.cholesky(lower, symmetrize_input=False), np.linalg.cholesky(x), "float64")


def test_a_matrix_that_is_not_positive_definite_gives_nan_alone():
    good = hermitian((3, 3), "float32")
    out = np.asarray(lax.cholesky(np.stack([good, -good, good])))
    assert np.isnan(out[1][np.tril_indices(3)]).all() and (out[1][np.triu_indices(3, 1)] == 0).all()
    assert_close(out[[0, 2]], np.linalg.cholesky(np.stack([good, good])), "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (3, 5), (2, 5, 3)])
def test_lu(shape, dtype):
    x = random_array(RNG, shape, dtype)
    check_against_jax(lax.lu, jax_linalg.lu, x, tolerance=tolerance_of(dtype))
    factors, _, permutation = (np.asarray(out) for out in lax.lu(x))
    rank = min(shape[-2:])
    lower = np.tril(factors[..., :rank], -1) + np.eye(shape[-2], rank)
    rows = np.take_along_axis(x, permutation[..., None], -2)
    assert_close(lower @ np.triu(factors[..., :rank, :]), rows, dtype)


def test_lu_of_a_singular_matrix():
    factors, pivots, permutation = lax.lu(np.array([[1.0, 2], [2, 4]]))
    assert (
        factors.tolist() == [[2, 4], [0.5, 0]]
        and pivots.tolist() == [1, 1]
        and permutation.tolist() == [1, 0]
    )


@pytest.mark.parametrize("size", [3, 5])
def test_pivots_to_permutation(size):
    pivots = np.array([[1, 2, 2], [0, 1, 2], [2, 2, 2]], np.int32)
    check_against_jax(lambda p: lax.lu_pivots_to_permutation(p, size),
                      lambda p: jax_linalg.lu_pivots_to_permutation(p, size), pivots)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (3, 5), (0, 4, 2)])
def test_qr(shape, dtype, full):
    x = random_array(RNG, shape, dtype)
    check_against_jax(
        lambda x: lax.qr(x, full_matrices=full),
        lambda x: jax_linalg.qr(x, full_matrices=full),
        x,
        tolerance=tolerance_of(dtype),
    )


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 5)])
def test_qr_with_pivoting(shape, full):
    x = random_array(RNG, shape, "float64")
    q, r, p = (np.asarray(out) for out in lax.qr(x, pivoting=True, full_matrices=full))
    assert p.dtype == np.int32
    assert_close(q @ r, np.take_along_axis(x, p[..., None, :], -1), "float64")
    diagonal = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
    assert (np.diff(diagonal) <= 1e-12).all()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_eigh(shape, dtype, lower):
    x = hermitian(shape, dtype, positive=False)
    vectors, values = (np.asarray(out) for out in lax.eigh(x, lower=lower))
    assert vectors.dtype == x.dtype and values.dtype == x.real.dtype
    assert_close(x @ vectors, vectors * values[..., None, :], dtype)
    assert (np.diff(values) >= 0).all()
    triangle = np.tril(x) if lower else np.triu(x)
    assert_close(lax.eigh(triangle, lower=lower, symmetrize_input=False)[1], values, dtype)


def test_subset_of_eigenvalues():
    x = hermitian((4, 4), "float64")
    vectors, values = lax.eigh(x, subset_by_index=(1, 3))
    assert vectors.shape == (4, 2)
    assert_close(values, np.linalg.eigvalsh(x)[1:3], "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_eig(shape, dtype):
    x = random_array(RNG, shape, dtype)
    values, left, right = (np.asarray(out) for out in lax.eig(x))
    assert values.dtype == left.dtype == right.dtype == np.result_type(dtype, np.complex64)
    assert_close(x @ right, right * values[..., None, :], dtype)
    adjoint = np.conj(np.swapaxes(left, -1, -2))
    assert_close(adjoint @ x, values[..., :, None] * adjoint, dtype)
    assert len(lax.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_schur(dtype):
    x = random_array(RNG, (2, 4, 4), dtype)
    t, z = (np.asarray(out) for out in lax.schur(x))
    assert_close(z @ t @ np.conj(np.swapaxes(z, -1, -2)), x, dtype)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (3, 5), (0, 4, 2)])
def test_svd(shape, dtype, full):
    x = random_array(RNG, shape, dtype)
    left, values, right = (np.asarray(out) for out in lax.svd(x, full_matrices=full))
    rank = min(shape[-2:])
    assert left.shape[-1] == (shape[-2] if full else rank) and right.shape[-2] == (
        shape[-1] if full else rank
    )
    assert_close((left[..., :rank] * values[..., None, :]) @ right[..., :rank, :], x, dtype)
    check_against_jax(
        lambda x: lax.svd(x, compute_uv=False),
        lambda x: jax_linalg.svd(x, compute_uv=False),
        x,
        tolerance=tolerance_of(dtype),
    )


@pytest.mark.parametrize("function", ["cholesky", "eigh", "svd", "eig", "schur"])
def test_a_matrix_with_nan_gives_nan_alone(function):
    x = hermitian((2, 3, 3), "float32")
    x[0, 1, 1] = np.nan
    for out in map(np.asarray, as_list(getattr(lax, function)(x))):
        assert np.isnan(out[0]).any() and np.isfinite(out[1]).all()


@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("options", [{}, {"transpose_a": True}, {"transpose_a": True, "conjugate_a": True},
                                     {"unit_diagonal": True}, {"conjugate_a": True}])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_triangular_solve(left_side, lower, options, dtype):
    a = random_array(RNG, (2, 3, 3), dtype) + 3 * np.eye(3, dtype=dtype)
    b = random_array(RNG, (2, 3, 4) if left_side else (2, 4, 3), dtype)
    params = {"left_side": left_side, "lower": lower, **options}
    check_against_jax(lambda a, b: lax.triangular_solve(a, b, **params),
                      lambda a, b: jax_linalg.triangular_solve(a, b, **params), a, b,
                      tolerance=tolerance_of(dtype) * 10)


@pytest.mark.parametrize("left_side", [False, True])
def test_triangular_solve_of_one_vector(left_side):
    a, b = random_array(RNG, (3, 3)) + 3 * np.eye(3, dtype=np.float32), random_array(RNG, (3,))
    check_against_jax(lambda a, b: lax.triangular_solve(a, b, left_side=left_side),
                      lambda a, b: jax_linalg.triangular_solve(a, b, left_side=left_side), a, b,
                      tolerance=1e-4)


def test_triangular_solve_of_a_singular_matrix():
    out = np.asarray(lax.triangular_solve(np.zeros((2, 2)), np.ones((2, 2))))
    assert not np.isfinite(out).any()


X = np.ones((3, 3), np.float32)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: lax.lu(X[0]), TypeError, "Input 0 to lu must have rank at least 2, but got shape"),
    (lambda: lax.svd(X[0]), TypeError, "Input 0 to svd must have rank at least 2, but got shape"),
    (lambda: lax.qr(X.astype(np.int32)), TypeError, "qr does not accept dtype int32 at position 0"),
    (lambda: lax.cholesky(X[:2]), ValueError, "cholesky must have shape"),
    (lambda: lax.eigh(X[:2]), ValueError, "eigh must have shape"),
    (lambda: lax.eigh(X, subset_by_index=(0, 4)), ValueError, "subset_by_index"),
    (lambda: lax.triangular_solve(X, X[:2], left_side=True), ValueError, "Incompatible shapes for arguments"),
    (lambda: lax.lu_pivots_to_permutation(np.array([1, 2, 2]), 2), ValueError, "permutation size 2"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
