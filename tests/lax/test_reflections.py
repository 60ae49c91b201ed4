"""Householder's reflections, tridiagonal systems, updates and the polar decomposition, against JAX and SciPy."""

import numpy as np
import pytest
import scipy.linalg

from jitcore import jit, vmap
from jitcore.lax import linalg
from jitcore.test_util import check_grads
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

RNG = np.random.default_rng(4)
DTYPES = ["float32", "float64", "complex128"]


def tolerance_of(dtype) -> float:
    return 3e-4 if dtype == "float32" else 1e-10


def factor(m, n, dtype):
    (reflections, taus), _ = scipy.linalg.qr(random_array(RNG, (m, n), dtype), mode="raw")
    return np.ascontiguousarray(reflections), taus


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (2, 4, 4), (2, 2), (1, 1), (0, 3, 3)])
def test_hessenberg_and_tridiagonal(shape, dtype):
    x = random_array(RNG, shape, dtype)
    check_against_jax(linalg.hessenberg, jax.lax.linalg.hessenberg, x, tolerance=tolerance_of(dtype))
    x = x + np.conj(np.swapaxes(x, -1, -2))
    for lower in (True, False):
        check_against_jax(lambda x: linalg.tridiagonal(x, lower=lower),
                          lambda x: jax.lax.linalg.tridiagonal(x, lower=lower), x, tolerance=tolerance_of(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n", [(5, 3), (4, 4), (3, 1)])
def test_products_of_reflections(m, n, dtype):
    a, taus = factor(m, n, dtype)
    check_against_jax(linalg.householder_product, jax.lax.linalg.householder_product, a, taus,
                      tolerance=tolerance_of(dtype))
    for left in (True, False):
        c = random_array(RNG, (m, 4) if left else (4, m), dtype)
        for transpose in (True, False):
            check_against_jax(lambda *args: linalg.ormqr(*args, left=left, transpose=transpose),
                              lambda *args: jax.lax.linalg.ormqr(*args, left=left, transpose=transpose), a, taus, c,
                              tolerance=tolerance_of(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_solve(dtype):
    dl, d, du = (random_array(RNG, (2, 6), dtype) for _ in range(3))
    b = random_array(RNG, (2, 6, 3), dtype)
    for middle in (d, 0 * d):  # the second only by pivoting
        x = jit(linalg.tridiagonal_solve)(dl, middle, du, b)
        for i in range(2):
            matrix = np.diag(middle[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1)
            np.testing.assert_allclose(matrix @ x[i], b[i], atol=tolerance_of(dtype) * np.abs(x).max())
    dl[:, -1] = d[:, -1] = 0  # the last row
    assert np.isfinite(linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=True)).all()
    assert not np.isfinite(linalg.tridiagonal_solve(dl, d, du, b)).all()
    with pytest.raises(ValueError, match="do not fit"):
        linalg.tridiagonal_solve(dl, d, du, b[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_updates(dtype):
    x, w = random_array(RNG, (2, 4, 6), dtype), random_array(RNG, (2, 4), dtype)
    square = x @ np.conj(np.swapaxes(x, -1, -2))
    r = np.conj(np.swapaxes(np.linalg.cholesky(square), -1, -2))
    new = np.asarray(jit(linalg.cholesky_update)(r, w))
    wanted = square + w[..., :, None] * np.conj(w[..., None, :])
    np.testing.assert_allclose(np.conj(np.swapaxes(new, -1, -2)) @ new, wanted, atol=30 * tolerance_of(dtype))
    assert not np.tril(new, -1).any()
    if dtype != "complex128":
        check_against_jax(
            lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True),
            lambda a, c: jax.lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True), x, square,
            tolerance=10 * tolerance_of(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_polar_decomposition(dtype):
    x = random_array(RNG, (5, 3), dtype)
    for scale in (1, 1e-5):
        u, h, count, converged = jit(linalg.qdwh)(x * np.dtype(dtype).type(scale))
        expected = scipy.linalg.polar(x)
        assert converged and 0 < count <= 8
        np.testing.assert_allclose(u, expected[0], atol=tolerance_of(dtype))
        np.testing.assert_allclose(h / scale, expected[1], atol=10 * tolerance_of(dtype))
    padded = np.pad(x, ((0, 2), (0, 1)))
    np.testing.assert_allclose(linalg.qdwh(padded, dynamic_shape=(5, 3))[0][:5, :3], expected[0], atol=tolerance_of(dtype))
    with pytest.raises(ValueError, match="M >= N"):
        linalg.qdwh(x.T)


def test_derivatives_and_batches():
    x, w = RNG.normal(size=(4, 4)), RNG.normal(size=4)
    check_grads(linalg.hessenberg, (x,), order=1, rtol=1e-3)
    check_grads(lambda x: linalg.tridiagonal(x + x.T)[1:3], (x,), order=1, rtol=1e-3)
    check_grads(linalg.tridiagonal_solve, (w, w + 1, x[0], x), order=2, rtol=1e-3)
    check_grads(linalg.cholesky_update, (np.linalg.cholesky(x @ x.T).T, w), order=1, rtol=1e-3)
    check_grads(linalg.householder_product, factor(4, 3, "float64"), order=1, rtol=1e-3)
    np.testing.assert_allclose(vmap(linalg.hessenberg)(np.stack([x, x + 1]))[0][1], linalg.hessenberg(x + 1)[0], atol=1e-12)
