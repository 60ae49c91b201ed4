"""opt_einsum: contractions of Arrays and of traced values, and paths that are found before.

Outside of `jit` it takes Arrays to NumPy, as NumPy's functions do; `backend="jitcore.numpy"` keeps them Arrays."""

from functools import partial

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import Array, grad, jit

opt_einsum = pytest.importorskip("opt_einsum")

random = np.random.default_rng(0)
A, B, C = (random.normal(size=shape) for shape in ((3, 4), (4, 5), (5, 6)))
EXPECTED = A @ B @ C


def chain(a, b, c, backend="auto"):
    return opt_einsum.contract("ij,jk,kl->il", a, b, c, backend=backend)


def test_contract():
    arrays = [jnp.asarray(one) for one in (A, B, C)]
    np.testing.assert_allclose(chain(*arrays), EXPECTED)
    for found in (chain(*arrays, backend="jitcore.numpy"), jit(chain)(A, B, C), jit(partial(chain, backend="jitcore.numpy"))(A, B, C)):
        assert isinstance(found, Array) and found.dtype == np.float64
        np.testing.assert_allclose(found, EXPECTED)
    np.testing.assert_allclose(jit(grad(lambda a: chain(a, B, C).sum()))(A), np.ones((3, 6)) @ (B @ C).T)


def test_expressions():
    expression = opt_einsum.contract_expression("ij,jk,kl->il", A.shape, B.shape, C.shape)
    np.testing.assert_allclose(expression(jnp.asarray(A), jnp.asarray(B), jnp.asarray(C)), EXPECTED)
    np.testing.assert_allclose(jit(expression)(A, B, C), EXPECTED)
    bound = opt_einsum.contract_expression("ij,jk,kl->il", jnp.asarray(A), B.shape, C.shape, constants=[0])
    np.testing.assert_allclose(jit(bound)(jnp.asarray(B), jnp.asarray(C)), EXPECTED)


def test_paths_for_einsum():
    path, _ = opt_einsum.contract_path("ij,jk,kl->il", jnp.asarray(A), jnp.asarray(B), jnp.asarray(C))
    np.testing.assert_allclose(jnp.einsum("ij,jk,kl->il", A, B, C, optimize=path), EXPECTED)
