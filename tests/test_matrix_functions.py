"""`jitcore.scipy.linalg`: functions of matrices, Sylvester's equation and special forms, against SciPy."""

import numpy as np
import pytest
import scipy.linalg as theirs

import jitcore.numpy as jnp
from jitcore import jit, vmap
from jitcore.scipy import linalg as ours
from jitcore.test_util import check_grads

RNG = np.random.default_rng(0)


def random(*shape, dtype=np.float64):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def assert_close(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_fiedler_companion(n):
    a = random(n + 1)
    assert_close(jit(ours.fiedler_companion)(a), theirs.fiedler_companion(a))
    assert_close(vmap(ours.fiedler_companion)(np.stack([a, a + 1]))[1], theirs.fiedler_companion(a + 1))
    assert ours.fiedler_companion(np.ones((2, 1))).shape == (2, 0, 0)
    with pytest.raises(ValueError, match="nonzero length"):
        ours.fiedler_companion(np.ones(0))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_hessenberg(n, dtype):
    a = random(n, n, dtype=dtype)
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    for found, expected in zip(jit(lambda a: ours.hessenberg(a, calc_q=True))(a), theirs.hessenberg(a, calc_q=True)):
        assert_close(found, expected, tolerance)
    assert_close(ours.hessenberg(np.stack([a, 2 * a]))[1], 2 * theirs.hessenberg(a), tolerance)


@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("mode, shape", [("left", (3, 4)), ("right", (4, 5)), ("left", (3,)), ("right", (5,))])
def test_qr_multiply(mode, shape, pivoting):
    for a in (random(5, 3), random(5, 3, dtype=np.complex128)):
        c = random(*shape)
        expected = theirs.qr_multiply(a, c, mode, pivoting=pivoting)
        for one, other in zip(jit(lambda a, c: ours.qr_multiply(a, c, mode, pivoting))(a, c), expected, strict=True):
            assert_close(one, other)
    with pytest.raises(ValueError, match="either 'left' or 'right'"):
        ours.qr_multiply(a, c, "up")


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_square_roots_and_functions(dtype):
    a = random(5, 5, dtype=dtype)
    root = jit(ours.sqrtm)(a)
    assert_close(root @ root, a)
    positive = a @ np.conj(a.T) + np.eye(5)
    assert_close(ours.sqrtm(np.stack([a, positive]))[1], theirs.sqrtm(positive))
    assert_close(jit(lambda a: ours.funm(a, jnp.exp))(a), theirs.expm(a))
    value, error = ours.funm(a, jnp.exp, disp=False)
    assert error < 1e-6 and ours.sqrtm(np.zeros((0, 0))).shape == (0, 0)
    check_grads(lambda a: jnp.abs(ours.sqrtm(a)), (positive,), order=2, rtol=1e-3)
    assert ours.sqrtm(np.float32(np.eye(2))).dtype == np.complex64
    with pytest.raises(ValueError, match="square"):
        ours.sqrtm(np.ones((2, 3)))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_sylvester(dtype):
    a, b, c = random(4, 4, dtype=dtype), random(3, 3, dtype=dtype), random(4, 3, dtype=dtype)
    x = jit(ours.solve_sylvester)(a, b, c)
    assert x.dtype == dtype
    assert_close(a @ x + x @ b, c)
    assert_close(vmap(ours.solve_sylvester, (None, None, 0))(a, b, np.stack([c, 2 * c]))[1], 2 * x)
    check_grads(ours.solve_sylvester, (a, b, c), order=2, rtol=1e-3)
    assert np.isnan(ours.solve_sylvester(np.eye(2), -np.eye(2), np.ones((2, 2)))).all()
    assert ours.solve_sylvester(np.zeros((0, 0)), b, np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        ours.solve_sylvester(a, b, c.T)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_complex_schur_form(n):
    a = random(n, n)
    t, z = jit(ours.rsf2csf)(*theirs.schur(a))
    assert_close(z @ t @ np.conj(z.T), a)
    assert_close(z @ np.conj(z.T), np.eye(n))
    assert not np.tril(t, -1).any()


def test_tridiagonal_eigenvalues():
    d, e = random(6), random(5)
    values, vectors = jit(ours.eigh_tridiagonal)(d, e)
    expected = theirs.eigh_tridiagonal(d, e)
    assert_close(values, expected[0])
    assert_close(np.abs(vectors), np.abs(expected[1]))
    assert_close(ours.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 3)), expected[0][1:4])
    check_grads(lambda d, e: ours.eigh_tridiagonal(d, e, eigvals_only=True), (d, e), order=2, rtol=1e-3)
    with pytest.raises(NotImplementedError, match="depends on values"):
        ours.eigh_tridiagonal(d, e, select="v")
