"""`custom_root` and `custom_linear_solve`: derivatives from the equation, in every mode, as JAX defines them."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from jax import lax as jax_lax

import jitcore
from jitcore import grad, hessian, jit, jvp, lax, numpy as jnp, vmap

RNG = np.random.default_rng(31)
A = RNG.standard_normal((3, 3)) + 4 * np.eye(3)
B = np.array([1.0, -2.0, 0.5])


def newton(f, x0):
    def step(state):
        x, _ = state
        fx, slope = jvp(f, (x,), (jnp.ones_like(x),))
        return x - fx / slope, x

    return lax.while_loop(lambda state: jnp.abs(state[0] - state[1]) > 1e-9, step, (x0, x0 + 1.0))[0]


def cube_root(a):
    return lax.custom_root(lambda x: x**3 - a, jnp.asarray(2.0, a.dtype), newton,
                           lambda g, y: y / g(jnp.ones_like(y)))


@pytest.mark.parametrize("transform", [lambda f: f, jit], ids=["eager", "compiled"])
def test_derivatives_of_a_root(transform):
    a = np.float64(5.0)
    np.testing.assert_allclose(transform(cube_root)(a), a ** (1 / 3), rtol=1e-12)
    np.testing.assert_allclose(transform(grad(cube_root))(a), a ** (-2 / 3) / 3, rtol=1e-10)
    np.testing.assert_allclose(grad(transform(cube_root))(a), a ** (-2 / 3) / 3, rtol=1e-10)
    np.testing.assert_allclose(transform(grad(grad(cube_root)))(a), -2 * a ** (-5 / 3) / 9, rtol=1e-8)
    _, tangent = jvp(transform(cube_root), (a,), (np.float64(2.0),))
    np.testing.assert_allclose(tangent, 2 * a ** (-2 / 3) / 3, rtol=1e-10)


def test_roots_of_a_batch():
    a = np.array([1.0, 5.0, 20.0])
    wanted = a ** (-2 / 3) / 3
    np.testing.assert_allclose(vmap(grad(cube_root))(a), wanted, rtol=1e-10)
    np.testing.assert_allclose(jit(grad(lambda a: vmap(cube_root)(a).sum()))(a), wanted, rtol=1e-10)


def test_root_of_a_pytree_with_auxiliary_results():
    def root(package, a, b):
        f = lambda x: {"p": x["p"] ** 2 - a * x["q"], "q": x["q"] - b}  # noqa: E731
        guess = {"p": package.sqrt(a * b), "q": b}
        solve = lambda f, x: (x, package.asarray(3.0))  # noqa: E731

        def tangent_solve(g, y):
            zero = package.zeros_like(y["p"])
            one = package.ones_like(zero)
            by_p, by_q = g({"p": one, "q": zero}), g({"p": zero, "q": one})
            q = y["q"] / by_q["q"]
            return {"p": (y["p"] - by_q["p"] * q) / by_p["p"], "q": q}

        library = lax if package is jnp else jax_lax
        found, aux = library.custom_root(f, guess, solve, tangent_solve, has_aux=True)
        assert aux == 3.0
        return found["p"] * found["q"]

    a, b = np.float64(2.0), np.float64(3.0)
    with jax.enable_x64(True):
        wanted = jax.grad(functools.partial(root, jax.numpy), (0, 1))(a, b)
    np.testing.assert_allclose(grad(functools.partial(root, jnp), (0, 1))(a, b), wanted, rtol=1e-10)


def solve_system(a, b):
    return lax.custom_linear_solve(
        lambda x: a @ x, b, lambda _, y: jnp.linalg.inv(a) @ y, lambda _, y: jnp.linalg.inv(a).T @ y)


@pytest.mark.parametrize("transform", [lambda f: f, jit], ids=["eager", "compiled"])
def test_derivatives_of_a_linear_solution(transform):
    ours = lambda a, b: (solve_system(a, b) ** 2).sum()  # noqa: E731
    wanted = lambda a, b: (jnp.linalg.solve(a, b) ** 2).sum()  # noqa: E731
    for found, value in zip(transform(grad(ours, (0, 1)))(A, B), grad(wanted, (0, 1))(A, B)):
        np.testing.assert_allclose(found, value, rtol=1e-9)
    np.testing.assert_allclose(transform(hessian(ours))(A, B), hessian(wanted)(A, B), rtol=1e-8, atol=1e-12)
    many = np.stack([B, 2 * B, B[::-1]])
    found = transform(grad(lambda a, b: vmap(ours, (None, 0))(a, b).sum()))(A, many)
    np.testing.assert_allclose(
        found, grad(lambda a, b: vmap(wanted, (None, 0))(a, b).sum())(A, many), rtol=1e-9
    )


def test_matrices_of_a_batch():
    many = np.stack([A, A.T, A + np.eye(3)])
    found = jit(grad(lambda a: (vmap(solve_system, (0, None))(a, B) ** 2).sum()))(many)
    wanted = grad(lambda a: (vmap(jnp.linalg.solve, (0, None))(a, B) ** 2).sum())(many)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def conjugate_gradients(matvec, b):
    def step(state):
        x, r, p, rr = state
        ap = matvec(p)
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        return x, r, r + (r @ r) / rr * p, r @ r

    return lax.while_loop(lambda state: state[3] > 1e-24, step, (jnp.zeros_like(b), b, b, b @ b))[0]


def test_symmetric_system_without_a_matrix():
    d = np.array([3.0, 1.0, 2.0, 5.0])

    def solve(d, b):
        return lax.custom_linear_solve(lambda x: d * x + x.sum(), b, conjugate_gradients, symmetric=True)

    matrix = lambda d: jnp.diag(d) + jnp.ones((4, 4), d.dtype)  # noqa: E731
    b = np.array([1.0, 0.5, -1.0, 2.0])
    wanted = grad(lambda d, b: (jnp.linalg.solve(matrix(d), b) ** 2).sum(), (0, 1))(d, b)
    for found, value in zip(jit(grad(lambda d, b: (solve(d, b) ** 2).sum(), (0, 1)))(d, b), wanted):
        np.testing.assert_allclose(found, value, rtol=1e-8)


def test_errors_are_those_of_jax():
    identity = lambda f, x: x  # noqa: E731
    pair = lambda x: (x, x)  # noqa: E731
    for library in (lax, jax_lax):
        with pytest.raises(TypeError, match=r"f\(\) output pytree structure must match initial_guess"):
            library.custom_root(pair, 1.0, identity, identity)
        with pytest.raises(TypeError, match=r"solve\(\) output pytree structure must match b"):
            library.custom_linear_solve(lambda x: x, 1.0, lambda f, x: (x,))
        with pytest.raises(ValueError, match=r"matvec\(\) output shapes must match b"):
            library.custom_linear_solve(lambda x: x[:2], B, identity)
        with pytest.raises(ValueError, match="pytree tuple with auxiliary output was expected"):
            library.custom_root(lambda x: x, 1.0, identity, identity, has_aux=True)


def test_reverse_mode_needs_the_transposed_solver():
    one_way = lambda b: lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda f, y: y / 2.0).sum()  # noqa: E731
    np.testing.assert_allclose(jvp(one_way, (B,), (B,))[1], B.sum() / 2)
    with pytest.raises(
        TypeError, match="transpose_solve required for backwards mode automatic differentiation"
    ):
        grad(one_way)(B)


def test_the_algorithm_is_not_differentiated():
    """The solver calls back into Python, which has no derivative."""

    def solve(_, y):
        return jitcore.pure_callback(
            lambda y: np.linalg.solve(A, y), jitcore.ShapeDtypeStruct((3,), y.dtype), y
        )

    def run(b):
        return (lax.custom_linear_solve(lambda x: A @ x, b, solve) ** 2).sum()

    _, tangent = jvp(run, (B,), (np.ones(3),))
    np.testing.assert_allclose(
        tangent, 2 * np.linalg.solve(A, B) @ np.linalg.solve(A, np.ones(3)), rtol=1e-10
    )


def test_guesses_and_numbers_of_32_bits_take_the_64_that_they_meet():
    def root(a):
        return lax.custom_root(lambda y: y**3 + a * y - 1, jnp.ones(2), newton_of_vectors,
                               lambda g, y: y / g(jnp.ones(2)))

    def newton_of_vectors(f, y):
        return lax.fori_loop(0, 40, lambda _, y: y - f(y) / jvp(f, (y,), (jnp.ones_like(y),))[1], y)

    a = np.array([1.0, 2.0])
    found = root(a)
    assert found.dtype == np.float64
    np.testing.assert_allclose(grad(lambda a: root(a).sum())(a), -found / (3 * found**2 + a), rtol=1e-9)
    b = jnp.ones(3)
    solution = lax.custom_linear_solve(lambda x: A @ x, b, lambda _, b: jnp.linalg.solve(A, b))
    assert solution.dtype == np.float64
    np.testing.assert_allclose(solution, np.linalg.solve(A, np.ones(3)), rtol=1e-9)
