"""Matrices of a known form and further factorisations of `jitcore.scipy.linalg` against SciPy."""

import numpy as np
import pytest
from scipy import linalg as scipy_linalg

from jitcore import jit, vmap
from jitcore.scipy import linalg
from jitcore.test_util import check_grads

rng = np.random.default_rng(0)


def real(*shape):
    return rng.normal(size=shape)


VECTORS = [("toeplitz", (real(4),)), ("toeplitz", (real(4), real(3))), ("toeplitz", (real(3) + 1j * real(3),)), ("circulant", (real(4),)),
           ("hankel", (real(4),)), ("hankel", (real(4), real(6))), ("companion", (real(4),)), ("companion", (real(2),)),
           ("fiedler", (real(4),)), ("leslie", (real(4), real(3))), ("leslie", (real(2), real(1)))]
EXTENTS = [("dft", (n, scale)) for n in (1, 5) for scale in (None, "sqrtn", "n")]
EXTENTS += [("hadamard", (n,)) for n in (1, 2, 8)] + [("helmert", (n, full)) for n in (1, 2, 5) for full in (True, False)]
EXTENTS += [(name, (n,)) for name in ("hilbert", "invhilbert") for n in (1, 4)]
EXTENTS += [(name, (n, kind)) for name in ("pascal", "invpascal") for n in (1, 5) for kind in ("symmetric", "lower", "upper")]


@pytest.mark.parametrize("name, args", VECTORS)
def test_matrix_of_vectors(name, args):
    ours, expected = getattr(linalg, name), getattr(scipy_linalg, name)(*args)
    np.testing.assert_allclose(ours(*args), expected, atol=1e-12)
    np.testing.assert_allclose(jit(ours)(*args), expected, atol=1e-12)
    many = vmap(ours)(*[np.stack([x, 2 * x]) for x in args])
    np.testing.assert_allclose(many[1], getattr(scipy_linalg, name)(*[2 * x for x in args]), atol=1e-12)
    if name in ("toeplitz", "circulant", "hankel", "fiedler"):
        np.testing.assert_allclose(ours(*[np.stack([x, 2 * x]) for x in args]), many, atol=1e-12)
    assert ours(*[x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in args]).dtype in (np.float32, np.complex64)
    check_grads(ours, args, order=1, rtol=1e-3)


@pytest.mark.parametrize("name, args", EXTENTS)
def test_matrix_of_an_extent(name, args):
    out = getattr(linalg, name)(*args)
    assert out.dtype == {"dft": np.complex64, "hadamard": np.int32}.get(name, np.float32)
    np.testing.assert_allclose(out, getattr(scipy_linalg, name)(*args), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("m, n", [(3, 5), (4, 5), (5, 3), (6, 3)])
def test_convolution_matrix(mode, m, n):
    a = real(m)
    np.testing.assert_allclose(linalg.convolution_matrix(a, n, mode), scipy_linalg.convolution_matrix(a, n, mode))
    assert linalg.convolution_matrix(np.arange(3), n, mode).dtype == np.int64


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("a", [real(4, 3), real(3, 4) + 1j * real(3, 4), real(3, 3)])
def test_polar(a, side):
    for one, other in zip(jit(lambda a: linalg.polar(a, side))(a), scipy_linalg.polar(a, side), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("output", ["real", "complex"])
def test_schur(output):
    a = real(4, 4)
    t, z = linalg.schur(a, output)
    np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=1e-12)
    np.testing.assert_allclose(np.tril(np.asarray(t), -2 if output == "real" else -1), 0, atol=1e-12)


def test_expm_frechet():
    a, e = real(3, 3), real(3, 3)
    for one, other in zip(linalg.expm_frechet(a, e), scipy_linalg.expm_frechet(a, e), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    np.testing.assert_allclose(linalg.expm_frechet(a, e, compute_expm=False), scipy_linalg.expm_frechet(a, e)[1], rtol=1e-10)


@pytest.mark.parametrize("name, args", [
    ("companion", ([1.0],)), ("leslie", ([1.0, 2.0], [1.0, 2.0])), ("hadamard", (3,)), ("helmert", (0,)), ("dft", (3, "most")), ("pascal", (3, "both")),
    ("convolution_matrix", ([1.0], 0)), ("convolution_matrix", ([1.0], 2, "most")), ("schur", (real(2, 2), "best")), ("polar", (real(2, 2), "up")),
    ("expm_frechet", (real(2, 2), real(3, 3)))])
def test_wrong_arguments(name, args):
    with pytest.raises(ValueError):
        getattr(linalg, name)(*[np.array(x) if isinstance(x, list) else x for x in args])
