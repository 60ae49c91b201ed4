"""Stacked outputs of a scan: their rows are computed where they belong."""

import re

import numpy as np
import pytest

from jitcore import grad, jit, lax, numpy as jnp

U = np.random.default_rng(0).integers(-3, 4, (5, 30, 31)).astype(np.float64)


def shift(c):
    return jnp.roll(c, 1, 0)  # another lane's element: no loop in registers


#: Bodies of scans over rows of U, the carry a matrix.
BODIES = {
    "elementwise": lambda c, x: (shift(c) + x, c * x),
    "reduction": lambda c, x: (shift(c) + x, jnp.sum(c * x, 1)),
    "large reduction": lambda c, x: (shift(c) + x, jnp.sum(jnp.abs(c)) + jnp.zeros(3)),
    "running sum": lambda c, x: (shift(c) + x, jnp.cumsum(c, 1)),
    "softmax": lambda c, x: (shift(c) / 8, jnp.exp(x - x.max(1, keepdims=True)) * c),
    "window": lambda c, x: (shift(c), c.at[1:-1, 2:-2].set(x[:-2, 4:] * 2)),
    "update of a few": lambda c, x: (shift(c), (c * 2).at[3, 4].set(x[0, 0])),
    "read again": lambda c, x: (shift(c) + jnp.cumsum(c * x, 0), c * x),
    "several": lambda c, x: (shift(c), (c + x, (c - x)[0], jnp.sum(x), c.T)),
    "carry": lambda c, x: (shift(c) + x, shift(c) + x),
    "twice": lambda c, x: (shift(c), (c * x, c * x)),
    "what was carried": lambda c, x: (shift(c) + x, c),
    "sort": lambda c, x: (shift(c) + x, jnp.sort(c * x, 1)),
    "product": lambda c, x: (shift(c) + x, c @ x.T),
    "choice": lambda c, x: (shift(c), lax.cond(x[0, 0] > 0, lambda: c * 2, lambda: shift(c))),
    "loop inside": lambda c, x: (shift(c), lax.fori_loop(0, 3, lambda i, y: shift(y) + x, c)),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_rows(name, reverse):
    def f(u, c):
        return lax.scan(BODIES[name], c, u, reverse=reverse)

    results, expected = jit(f)(U, U[0]), jit(f, backend="reference")(U, U[0])
    flat = zip([results[0], *_list(results[1])], [expected[0], *_list(expected[1])])
    for result, want in flat:
        np.testing.assert_allclose(result, want, rtol=1e-13, atol=1e-13)


def _list(rows) -> list:
    return list(rows) if isinstance(rows, tuple) else [rows]


@pytest.mark.parametrize("name", ["elementwise", "softmax", "window", "update of a few", "running sum"])
def test_rows_are_not_copied(name):
    """There is memory for the carry and its next value only."""
    f = jit(lambda u, c: lax.scan(BODIES[name], c, u)[1])
    f(U, U[0])
    assert len(re.findall(r"temp f64\[30,31\]", str(f.inspect("loop program")))) <= 2


def test_residuals_of_a_loop():
    def loss(u):
        def step(c, _):
            inner = c[1:-1] * (c[1:-1] - c[:-2]) + 0.1 * jnp.sin(c[2:])
            return c.at[1:-1].set(0.1 * inner), None

        return jnp.sum(lax.scan(step, u, None, length=6)[0] ** 2)

    u = U[0] / 4
    np.testing.assert_allclose(jit(grad(loss))(u), jit(grad(loss), backend="reference")(u), rtol=1e-11,
                               atol=1e-14)
