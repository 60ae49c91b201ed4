"""Loop invariants: what leaves loops, what stays, and that programs stay right."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax, make_jaxpr, tree
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import list_equations
from jitcore.passes import run_pipeline

X, M = np.linspace(0.5, 1.5, 30), np.linspace(0.0, 0.04, 900).reshape(30, 30)


def iterate(x, body, n=5):
    """Applies a body to ones."""
    return lax.while_loop(lambda s: s[1] < n, lambda s: (body(s[0]), s[1] + 1), (jnp.ones_like(x), 0))[0]


def scan(x, body, n=5):
    steps = jnp.linspace(0.0, 1.0, n, dtype=x.dtype)
    return lax.scan(lambda y, step: (body(y) + step, y.sum()), jnp.ones_like(x), steps)


#: Program -> primitives that its last loop does not have any more, and some that it has.
PROGRAMS = {
    "power": (lambda x, m: iterate(x, lambda y: 0.5 * y + x**1.7), "pow", "mul"),
    "chain": (lambda x, m: iterate(x, lambda y: y * jnp.tanh(x) + jnp.maximum(jnp.exp(x), 1.2)),
              "exp tanh max", "mul"),
    "many cheap": (lambda x, m: iterate(x, lambda y: y + (x + 1) / (x + 2) * (x - 3) / (x * x + 1)),
                   "div sub", "add"),
    "few cheap": (lambda x, m: iterate(x, lambda y: y + 2 * x), "", "mul"),
    "product": (lambda x, m: iterate(x, lambda y: m @ y + m @ x), "", "dot_general"),
    "sorted": (lambda x, m: iterate(x, lambda y: jnp.sort(-x) * y), "sort", "mul"),
    "of a carry": (lambda x, m: lax.fori_loop(0, 4, lambda i, s: (s[0] + jnp.exp(s[1]), s[1]), (x, x * 2))[0],
                   "exp", "add"),
    "in two loops": (lambda x, m: iterate(x, lambda y: iterate(x, lambda z: z * 0.5 + jnp.log(x)) + y),
                     "log", "mul"),
    "scan": (lambda x, m: scan(x, lambda y: y * jnp.exp(-x)), "exp", "mul"),
    "constants": (lambda x, m: iterate(x, lambda y: y * 0.1 + jnp.log(1 + jnp.arange(30.0, dtype=x.dtype))),
                  "log", "add"),
    "interp": (lambda x, m: iterate(x, lambda y: 0.5 * jnp.interp(0.9 * x + 0.1, x, y)),
               "scan", "gather mul"),
    "differs": (lambda x, m: iterate(x, lambda y: jnp.exp(-y) + x), "", "exp"),
}


def list_in_loop(closed) -> set[str]:
    """Primitives in the last loop of a program."""
    loop = [eqn for eqn in closed.eqns if eqn.primitive.name in ("while", "scan")][-1]
    body = loop.params["body_jaxpr" if loop.primitive.name == "while" else "jaxpr"]
    return {eqn.primitive.name for eqn in list_equations(body.jaxpr)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_invariants_leave_loops(name):
    program, gone, left = PROGRAMS[name]
    closed = make_jaxpr(program)(X, M)
    optimized = run_pipeline(closed)
    found = list_in_loop(optimized)
    assert found.isdisjoint(gone.split()) and found.issuperset(left.split()), found
    expected = run_jaxpr_numpy(closed, [X, M])
    for one, right in zip(run_jaxpr_numpy(optimized, [X, M]), expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-14)
    for one, right in zip(tree.leaves(jit(program)(X, M)), expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-12)


def test_products_leave_loops():
    closed = run_pipeline(make_jaxpr(PROGRAMS["product"][0])(X, M))
    assert [eqn.primitive.name for eqn in closed.eqns].count("dot_general") == 1


def test_loops_that_may_not_end_stay():
    """A loop without iterations does not run what is in it."""

    def find_end(x):
        return lax.while_loop(lambda z: z[0] > -1.0, lambda z: z + 1.0, x)

    def program(x, n):
        return lax.while_loop(lambda s: s[1] < n, lambda s: (s[0] + find_end(x), s[1] + 1), (x, 0))[0]

    np.testing.assert_array_equal(jit(program)(X, 0), X)


def test_callbacks_stay():
    """One that nobody calls may raise."""
    calls = []

    def call(x):
        calls.append(x)
        return x

    def program(x, n):
        shape = jitcore.ShapeDtypeStruct(x.shape, x.dtype)
        return lax.fori_loop(0, n, lambda i, s: (s[0] + jitcore.pure_callback(call, shape, s[1]), s[1]), (x, x))[0]

    jit(program)(X, 0).block_until_ready()
    assert not calls


def test_large_results_stay():
    """They would go through memory in each iteration; sums of them do not."""
    big = np.ones((1500, 1500))
    for body, leaves in ((lambda s: s * jnp.exp(big), False), (lambda s: s + jnp.exp(big).sum(0), True)):
        closed = make_jaxpr(lambda x, body=body: iterate(x, body))(big)
        assert ("exp" not in list_in_loop(run_pipeline(closed))) is leaves


def test_loops_over_nothing():
    """Values of no elements take no time: dividing their cost by their number ended the compile."""
    x = np.zeros(0)
    assert jit(lambda x: iterate(x, lambda y: y + (x + 1) / (x + 2) * (x - 3)))(x).shape == (0,)
    assert jit(jnp.searchsorted)(np.arange(5.0), x).shape == (0,)
