"""Iterative solvers against direct solutions: values, derivatives, preconditioners, pytrees."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import grad, jit
from jitcore.scipy.sparse.linalg import bicgstab, cg, gmres

RNG = np.random.default_rng(0)
NOISE, B = RNG.standard_normal((12, 12)), RNG.standard_normal(12)
GENERAL = NOISE + 8 * np.eye(12)
SYMMETRIC = NOISE @ NOISE.T + 12 * np.eye(12)
SOLVERS = {"cg": (cg, SYMMETRIC), "bicgstab": (bicgstab, GENERAL), "gmres": (gmres, GENERAL)}


@pytest.mark.parametrize("name", SOLVERS)
def test_solution_and_derivatives(name):
    solver, matrix = SOLVERS[name]
    expected = np.linalg.solve(matrix, B)
    solve = lambda A, b: solver(A, b, tol=1e-11)[0]  # noqa: E731
    for run in (solve, jit(solve)):
        np.testing.assert_allclose(run(matrix, B), expected, rtol=1e-8)
        assert run(matrix.astype(np.float32), B.astype(np.float32)).dtype == np.float32
    by_matrix, by_side = jit(grad(lambda A, b: (solve(A, b) ** 2).sum(), (0, 1)))(matrix, B)
    adjoint = np.linalg.solve(matrix.T, 2 * expected)
    np.testing.assert_allclose(by_side, adjoint, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(by_matrix, -np.outer(adjoint, expected), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_operators_guesses_and_preconditioners(name):
    solver, matrix = SOLVERS[name]
    expected, diagonal = np.linalg.solve(matrix, B), np.diag(matrix)
    for options in ({"x0": B}, {"M": np.diag(1 / diagonal)}, {"M": lambda v: v / diagonal}):
        found, info = solver(lambda v: matrix @ v, B, tol=1e-11, **options)
        assert info is None
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert not np.any(solver(matrix, np.zeros(12))[0])
    tree, _ = solver(lambda d: {"a": 2 * d["a"], "b": d["b"] / 4}, {"a": B[:2], "b": B[2:8].reshape(2, 3)})
    np.testing.assert_allclose(tree["b"], 4 * B[2:8].reshape(2, 3), rtol=1e-4)
    system = matrix + 1j * (NOISE - NOISE.T)
    np.testing.assert_allclose(system @ np.asarray(solver(system, B + 1j, tol=1e-10)[0]), B + 1j, rtol=1e-7)
    with pytest.raises(ValueError, match="square matrix"):
        solver(matrix[:3], B)
    with pytest.raises(ValueError, match="matching shapes"):
        solver(matrix, B, B[:3])


class Doubling:
    """What has a shape and `@`, as a matrix has."""

    shape = (3, 3)

    def __matmul__(self, x):
        return 2 * x


@pytest.mark.parametrize("solve", [cg, gmres, bicgstab])
@pytest.mark.parametrize("operator", [Doubling(), 2 * np.eye(3), 2 * jnp.eye(3), lambda x: 2 * x])
def test_operators_on_several_columns(solve, operator):
    b = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(solve(operator, b)[0], b / 2, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("args, kwargs, error, text", [
    ((lambda x: x, {"x": np.zeros(2)}, {"y": np.zeros(2)}), {}, ValueError, "matching tree structure"),
    ((lambda x: x, np.zeros(2), np.zeros((2, 1))), {}, ValueError, "matching shape"),
    ((np.zeros((3, 2)), np.zeros(2)), {}, ValueError, "square matrix"),
    (([[1]], np.zeros(1)), {}, TypeError, "either a function or ndarray"),
])
def test_systems_that_do_not_fit(args, kwargs, error, text):
    with pytest.raises(error, match=text):
        cg(*args, **kwargs)
