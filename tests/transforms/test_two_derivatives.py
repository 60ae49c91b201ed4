"""Second derivatives of functions of arrays, forwards and backwards in every order, against JAX: of linear algebra, of
reductions, scans and loops, at points with zeros and ties."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import hessian, jacfwd, jacrev, jit
from tests.jax_answers import ask

rng = np.random.default_rng(0)
MATRIX = rng.normal(size=(3, 3))
POSITIVE = MATRIX @ MATRIX.T + np.eye(3)
TALL = rng.normal(size=(3, 2))
VECTOR, ZEROS, TIES = rng.normal(size=4), np.array([0.0, 1, 0, 2]), np.array([2.0, 2, 1, 2])
VECTORS = (VECTOR, ZEROS, TIES)
W = np.arange(1.0, 5)

CASES = {
    "inv": (lambda jax, x: (jax.numpy.linalg.inv(x) * W[:3]).sum(), MATRIX, POSITIVE),
    "solve": (lambda jax, x: jax.numpy.linalg.solve(x, W[:3]).sum(), MATRIX),
    "solve matrix": (lambda jax, x: (jax.numpy.linalg.solve(x, x.T[:, :2]) ** 2).sum(), MATRIX),
    "solve positive": (lambda jax, x: jax.scipy.linalg.solve(x @ x.T + np.eye(3), W[:3], assume_a="pos").sum(), MATRIX),
    "lstsq": (lambda jax, x: jax.numpy.linalg.lstsq(x, W[:3])[0].sum(), TALL),
    "pinv": (lambda jax, x: (jax.numpy.linalg.pinv(x) * W[:3]).sum(), TALL),
    "expm": (lambda jax, x: (jax.scipy.linalg.expm(x) * W[:3]).sum(), MATRIX, np.zeros((3, 3))),
    "det": (lambda jax, x: jax.numpy.linalg.det(x), MATRIX, np.eye(3), np.zeros((3, 3))),
    "slogdet": (lambda jax, x: jax.numpy.linalg.slogdet(x)[1], MATRIX),
    "cholesky": (lambda jax, x: (jax.numpy.linalg.cholesky(x) * W[:3]).sum(), POSITIVE),
    "qr": (lambda jax, x: (jax.numpy.linalg.qr(x)[1] * W[:3]).sum(), MATRIX),
    "eigh": (lambda jax, x: (jax.numpy.linalg.eigh(x)[1] ** 2 * W[:3]).sum(), POSITIVE),
    "svd": (lambda jax, x: (jax.numpy.linalg.svd(x, compute_uv=False) * W[:3]).sum(), MATRIX),
    "norms": (lambda jax, x: sum(jax.numpy.linalg.norm(x, o) for o in ("fro", "nuc", 1, 2)), MATRIX),
    "norm": (lambda jax, x: jax.numpy.linalg.norm(x) + jax.numpy.linalg.norm(x, 3), *VECTORS),
    "prod": (lambda jax, x: jax.numpy.prod(x) ** 2 + jax.numpy.cumprod(x) @ W, *VECTORS),
    "spread": (lambda jax, x: jax.numpy.std(x) + jax.numpy.var(x) ** 2 + jax.numpy.ptp(x) ** 2, VECTOR, TIES),
    "largest": (lambda jax, x: jax.numpy.max(x) ** 2 + jax.numpy.median(x) ** 2 + jax.lax.cummax(x) ** 2 @ W, *VECTORS),
    "sort": (lambda jax, x: jax.numpy.sort(x) ** 2 @ W, VECTOR, ZEROS),
    "softmax": (lambda jax, x: jax.nn.softmax(x) ** 2 @ W + jax.nn.logsumexp(x) + jax.lax.cumlogsumexp(x) @ W, *VECTORS),
    "spectrum": (lambda jax, x: (jax.numpy.abs(jax.numpy.fft.fft(x)) ** 3).sum(), VECTOR),
    "scatter": (lambda jax, x: (jax.numpy.zeros(3).at[np.array([0, 0, 1, 2])].add(x**2) ** 2).sum(), VECTOR),
    "scan": (lambda jax, x: jax.lax.scan(lambda c, v: (jax.numpy.sin(c * v), c * v), 1.0, x)[1].sum(), VECTOR, ZEROS),
    "loop": (lambda jax, x: jax.lax.fori_loop(0, 4, lambda i, s: s * x[i] + jax.numpy.sin(s), 1.0), VECTOR),
    "associative": (lambda jax, x: (jax.lax.associative_scan(lambda a, b: a * b, x) ** 2).sum(), VECTOR, ZEROS),
    "branch": (lambda jax, x: jax.lax.cond(x[0] > 0, lambda: (x**3).sum(), lambda: (x**2).prod()), VECTOR, -VECTOR),
    "checkpoint": (lambda jax, x: jax.checkpoint(lambda x: jax.numpy.tanh(x).prod())(x), VECTOR, ZEROS),
    "implicit": (lambda jax, x: jax.lax.custom_root(
        lambda y: y**3 + x * y - 1, jax.numpy.ones_like(x),
        lambda f, y: jax.lax.fori_loop(0, 40, lambda _, y: y - f(y) / (3 * y**2 + jax.numpy.abs(x)), y),
        lambda g, y: y / g(jax.numpy.ones_like(y))).sum(), np.abs(VECTOR)),
    "linear solve": (lambda jax, x: jax.lax.custom_linear_solve(
        lambda y: (x**2 + 1) * y, x, lambda f, b: b / f(jax.numpy.ones_like(b)),
        symmetric=True).sum(), VECTOR),
    "custom jvp": (lambda jax, x: jax.nn.relu(x).sum() ** 2 + jax.scipy.special.xlogy(x, W).sum() ** 2, VECTOR),
}
ORDERS = {
    "fr": lambda f: jacfwd(jacrev(f)), "rf": lambda f: jacrev(jacfwd(f)), "rr": lambda f: jacrev(jacrev(f)),
    "ff": lambda f: jacfwd(jacfwd(f)), "jit": lambda f: jit(hessian(f)),
}


def ask_hessian(jax, function, point):
    with jax.enable_x64(True):
        return np.asarray(jax.hessian(lambda x: function(jax, x))(point))


@pytest.mark.parametrize("name, place", [(name, i) for name, case in CASES.items() for i in range(len(case) - 1)])
def test_like_jax(name, place):
    function, point = CASES[name][0], CASES[name][1 + place]
    wanted = ask(lambda jax: ask_hessian(jax, function, point))
    for order, derive in ORDERS.items():
        got = derive(lambda x: function(jitcore, x))(point)
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6, atol=1e-8, err_msg=order)
