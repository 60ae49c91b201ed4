"""Pairs of products with one matrix: which are joined, in which order equations stand then, and results."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import grad, jit, jvp, lax, make_jaxpr, vjp, vmap
from jitcore.backends.cpu import routines
from jitcore.core.check import check_jaxpr
from jitcore.lax.control_flow.callback import io_callback
from jitcore.lax.dot import two_sided_dot
from jitcore.passes import run_pipeline

ROWS, COLUMNS = 700, 301
RNG = np.random.default_rng(5)
MATRIX = RNG.standard_normal((ROWS, COLUMNS))
RIGHT, LEFT = RNG.standard_normal(COLUMNS), RNG.standard_normal(ROWS)


def names(function, *arguments) -> list[str]:
    closed = run_pipeline(make_jaxpr(function)(*arguments))
    check_jaxpr(closed)
    return [eqn.primitive.name for eqn in closed.jaxpr.eqns]


def pair(a, x, y):
    return a @ x, y @ a


def reversed_pair(a, x, y):
    return y @ a, a @ x


def transposed(a, x, y):
    return y @ a, x @ a.T


def chain(a, x, y):
    return (a @ x) @ a


def used_between(a, x, y):
    u = a @ x
    total = jnp.exp(-u * u).sum()
    v = (y + x[0]) @ a
    return total, u, v


def gram(a, x, y):
    return a.T @ (a @ x)


def in_loop(a, x, y):
    def step(carry):
        k, p, q = carry
        return k + 1, 0.01 * (q @ a), 0.01 * (a @ p)

    return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x, y))[1:]


JOINED = (pair, reversed_pair, transposed, chain, used_between, gram)


@pytest.mark.parametrize("function", JOINED)
def test_a_pair_becomes_one_equation(function):
    found = names(function, MATRIX, RIGHT, LEFT)
    assert found.count("two_sided_dot") == 1 and "dot_general" not in found


@pytest.mark.parametrize("function", (*JOINED, in_loop))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_results(function, dtype):
    arguments = [value.astype(dtype) for value in (MATRIX, RIGHT, LEFT)]
    compiled = jit(function)
    found, expected = compiled(*arguments), REFERENCE[function](*(v.astype(np.float64) for v in arguments))
    assert "two_sided_dot" in str(compiled.inspect("optimized jaxpr"))
    for one, other in zip(*(out if isinstance(out, tuple) else (out,) for out in (found, expected))):
        assert one.dtype == dtype
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=300 * np.finfo(dtype).eps * scale)


def loop_in_numpy(a, x, y):
    for _ in range(3):
        x, y = 0.01 * (y @ a), 0.01 * (a @ x)
    return x, y


REFERENCE = {
    pair: pair,
    reversed_pair: reversed_pair,
    transposed: transposed,
    chain: chain,
    gram: gram,
    used_between: lambda a, x, y: (np.exp(-((a @ x) ** 2)).sum(), a @ x, (y + x[0]) @ a),
    in_loop: loop_in_numpy,
}


def needs_first(a, x, y):
    return a @ (y @ a)


def needs_more_of_first(a, x, y):
    return (2 * (a @ x)) @ a


def other_matrix(a, x, y):
    return a @ x, y @ jnp.sin(a)


def effect_between(a, x, y):
    u = a @ x
    io_callback(lambda value: None, None, u[0], ordered=True)
    return u, y @ a


@pytest.mark.parametrize("function", (needs_first, needs_more_of_first, other_matrix, effect_between))
def test_others_stay(function):
    found = names(function, MATRIX, RIGHT, LEFT)
    assert "two_sided_dot" not in found and found.count("dot_general") == 2


def test_three_products():
    found = names(lambda a, x, y: (a @ x, y @ a, a @ (2 * x), (y - 1) @ a), MATRIX, RIGHT, LEFT)
    assert found.count("two_sided_dot") == 2 and "dot_general" not in found


@pytest.mark.parametrize("shape", ((10, 301), (700, 5), (100, 10000), (700, 80000)))
def test_sizes_that_gain_nothing(shape):
    arguments = [np.broadcast_to(0.0, extents) for extents in (shape, shape[1:], shape[:1])]
    assert "two_sided_dot" not in names(pair, *arguments)


def test_gradient():
    """The pass runs after differentiation."""
    found = jit(grad(lambda x: ((MATRIX @ x) ** 2).sum()))(RIGHT)
    np.testing.assert_allclose(found, 2 * MATRIX.T @ (MATRIX @ RIGHT), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("function", (pair, chain))
def test_donated_vectors(function):
    matrix, right, left = MATRIX[:300, :300].copy(), RIGHT[:300].copy(), LEFT[:300].copy()
    expected = jit(function)(matrix, right, left)
    found = jit(function, donate_argnums=(1, 2))(matrix, right.copy(), left.copy())
    for one, other in zip(*(out if isinstance(out, tuple) else (out,) for out in (found, expected))):
        np.testing.assert_array_equal(one, other)


# -- the primitive by itself --------------------------------------------------------------------------------
def check_sums(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(other).max())


@pytest.mark.parametrize("left", (LEFT, None))
def test_primitive(left):
    expected = [MATRIX @ RIGHT, (MATRIX @ RIGHT if left is None else left) @ MATRIX]
    check_sums(two_sided_dot(MATRIX, RIGHT, left), expected)
    check_sums(jit(two_sided_dot)(MATRIX, RIGHT, left), expected)


@pytest.mark.parametrize("left", (LEFT, None))
def test_vmap(left):
    rights = np.stack([RIGHT, RIGHT[::-1]])
    found = vmap(lambda right: two_sided_dot(MATRIX, right, left))(rights)
    expected = [two_sided_dot(MATRIX, right, left) for right in rights]
    check_sums(found, [np.stack(values) for values in zip(*expected)])


@pytest.mark.parametrize("left", (LEFT, None))
def test_derivative(left):
    """In all operands at once, and by the transpose."""
    primals = [MATRIX, RIGHT] if left is None else [MATRIX, RIGHT, left]
    tangents = [RNG.standard_normal(primal.shape) for primal in primals]
    out, tangent = jvp(two_sided_dot, primals, tangents)
    step = 1e-4
    ends = [two_sided_dot(*(p + sign * step * t for p, t in zip(primals, tangents))) for sign in (1, -1)]
    check_sums(out, two_sided_dot(*primals))
    for one, after, before in zip(tangent, *ends):
        slope = (np.asarray(after) - before) / (2 * step)
        np.testing.assert_allclose(one, slope, rtol=0, atol=1e-6 * np.abs(slope).max())
    cotangents = [RNG.standard_normal(value.shape) for value in out]
    pulled = vjp(two_sided_dot, *primals)[1](cotangents)
    found = sum(np.vdot(a, b) for a, b in zip(pulled, tangents))
    np.testing.assert_allclose(found, sum(np.vdot(a, b) for a, b in zip(cotangents, tangent)), rtol=1e-9)


def test_without_routine(monkeypatch):
    monkeypatch.delitem(routines.ROOMS, "two_sided_dot")
    for function in (pair, chain):
        matrix, right = MATRIX[:300, :297], RIGHT[:297]
        compiled = jit(function)
        found = compiled(matrix, right, LEFT[:300])
        assert "sweep" not in compiled.inspect("loop program")
        expected = function(matrix, right, LEFT[:300])
        check_sums(*(out if isinstance(out, tuple) else (out,) for out in (found, expected)))


def test_shapes_must_fit():
    for operands in ((MATRIX, LEFT), (MATRIX, RIGHT, RIGHT), (RIGHT, RIGHT)):
        with pytest.raises(TypeError, match="two_sided_dot requires a matrix"):
            two_sided_dot(*operands)
