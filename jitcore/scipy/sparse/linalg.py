"""Linear systems solved by products with vectors: conjugate gradients, BiCGSTAB, GMRES.

In: a matrix or a linear function of pytrees of arrays, and a right-hand side. Out: the solution, a pytree
like the right-hand side, and None (where SciPy tells whether it converged). Derivatives by the right-hand
side and by what the function reads are those of the exact solution: each is one more system. Iterations are
`while_loop`s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import lax, numpy as jnp
from jitcore.array import Array
from jitcore.flatten_util import ravel_pytree
from jitcore.tree_util import tree_leaves, tree_structure

__all__ = ["bicgstab", "cg", "gmres"]


def cg(A, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
       maxiter: int | None = None, M=None):
    """The solution of `A x = b` for a symmetric (Hermitian) positive definite A, by conjugate gradients.

    Args:
        A: a matrix, or a function of a pytree like b.
        x0: where to begin, zero by default. M: approximates the inverse of A, as A is given.
        tol, atol: iteration ends where the residual's norm is at most max(tol * |b|, atol).
        maxiter: 10 times the number of unknowns by default.
    Returns: (solution, None). Raises: ValueError for another shape or structure of x0."""
    return _solve_system(_run_cg, A, b, x0, tol, atol, maxiter, M, is_symmetric=True)


def bicgstab(A, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
             maxiter: int | None = None, M=None):
    """The solution of `A x = b` for any regular A, by the stabilized biconjugate gradient method.

    Arguments and result: as of `cg`."""
    return _solve_system(_run_bicgstab, A, b, x0, tol, atol, maxiter, M)


def gmres(A, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, restart: int = 20,
          maxiter: int | None = None, M=None, solve_method: str = "batched"):
    """The solution of `A x = b` for any regular A, by generalized minimal residuals.

    Args:
        restart: dimension of the Krylov space; it is begun anew, from the best solution so far, at most
            maxiter times. solve_method: "batched" or "incremental", which do the same here.
    The other arguments and the result: as of `cg`."""
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")

    def run(*system):
        return _run_gmres(*system, restart)

    return _solve_system(run, A, b, x0, tol, atol, maxiter, M)


# -- what the three share -----------------------------------------------------------------------------------
def _solve_system(run: Callable, A, b, x0, tol, atol, maxiter, M, is_symmetric: bool = False):
    vector, unravel = ravel_pytree(b)
    if x0 is not None:
        if tree_structure(x0) != tree_structure(b):
            raise ValueError("x0 and b must have matching tree structure: "
                             f"{tree_structure(x0)} vs {tree_structure(b)}")
        shapes = [[jnp.shape(leaf) for leaf in tree_leaves(tree)] for tree in (x0, b)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}")
    start = jnp.zeros_like(vector) if x0 is None else ravel_pytree(x0)[0]
    multiply, precondition = (_flatten_operator(operator, unravel) for operator in (A, M))
    rounds = 10 * vector.shape[0] if maxiter is None else maxiter

    def solve(matvec, right_side):
        norm = _norm(right_side)
        return run(matvec, precondition, right_side, start, norm, jnp.maximum(tol * norm, atol), rounds)

    def solve_transposed(matvec, right_side):
        norm = _norm(right_side)
        zero = jnp.zeros_like(right_side)
        return run(matvec, lambda x: x, right_side, zero, norm, jnp.maximum(tol * norm, atol), rounds)

    is_real = vector.dtype.kind != "c"
    backward = solve if is_symmetric and is_real else solve_transposed
    x = lax.custom_linear_solve(multiply, vector, solve, backward, symmetric=is_symmetric and is_real)
    return unravel(x), None


def _flatten_operator(operator, unravel: Callable) -> Callable:
    """A matrix, what has `shape` and `@` as one has, or a function of pytrees, as a function of vectors; the
    identity for None."""
    if operator is None:
        return lambda x: x
    if not callable(operator):
        matrix, shape = operator, getattr(operator, "shape", None)
        if shape is None or not hasattr(operator, "__matmul__"):
            raise TypeError(f"linear operator must be either a function or ndarray, got {operator!r}")
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"linear operator must be a square matrix, but has shape: {tuple(shape)}")
        is_dense = isinstance(matrix, np.ndarray)
        operator = functools.partial(jnp.matmul, matrix) if is_dense else matrix.__matmul__
    return lambda x: ravel_pytree(operator(unravel(x)))[0].astype(x.dtype)


def _norm(x) -> Array:
    return jnp.sqrt(jnp.sum((x * x.conj()).real))


def _divide(x, y):
    """x / y, 0 where y is 0: the search ends there."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y)).astype(jnp.result_type(x, y))


# -- the methods -------------------------------------------------------------------------------------------
def _run_cg(matvec, precondition, b, x, _, tolerance, rounds) -> Array:
    r = b - matvec(x)
    z = precondition(r)

    def goes_on(state):
        _, r, _, _, k = state
        return (_norm(r) > tolerance) & (k < rounds)

    def step(state):
        x, r, p, gamma, k = state
        image = matvec(p)
        alpha = _divide(gamma, jnp.vdot(p, image))
        x, r = x + alpha * p, r - alpha * image
        z = precondition(r)
        new = jnp.vdot(r, z)
        return x, r, z + _divide(new, gamma) * p, new, k + 1

    return lax.while_loop(goes_on, step, (x, r, z, jnp.vdot(r, z), 0))[0]


def _run_bicgstab(matvec, precondition, b, x, _, tolerance, rounds) -> Array:
    r = b - matvec(x)
    shadow, one = r, jnp.ones((), r.dtype)

    def goes_on(state):
        _, r, *_, rho, k = state
        return (_norm(r) > tolerance) & (k < rounds) & (k >= 0)

    def step(state):
        x, r, p, image, alpha, omega, rho, k = state
        new = jnp.vdot(shadow, r)
        beta = _divide(new, rho) * _divide(alpha, omega)
        p = r + beta * (p - omega * image)
        direction = precondition(p)
        image = matvec(direction)
        alpha = _divide(new, jnp.vdot(shadow, image))
        s = r - alpha * image
        second = precondition(s)
        t = matvec(second)
        omega = _divide(jnp.vdot(t, s), jnp.vdot(t, t))
        k = jnp.where((new == 0) | (alpha == 0), -1, k + 1)  # nothing more can be found
        return x + alpha * direction + omega * second, s - omega * t, p, image, alpha, omega, new, k

    zeros = jnp.zeros_like(r)
    return lax.while_loop(goes_on, step, (x, r, zeros, zeros, one, one, one, jnp.int32(0)))[0]


def _run_gmres(matvec, precondition, b, x, norm, tolerance, rounds, restart: int) -> Array:
    size = min(restart, b.shape[0])
    preconditioned = _norm(precondition(b)) * jnp.minimum(1.0, _divide(tolerance, norm)).astype(norm.dtype)

    def extend(j, state):
        """Arnoldi: one more vector of an orthonormal basis, and the column of A in it."""
        basis, columns = state
        w = precondition(matvec(basis[:, j]))
        size_before = _norm(w)
        first = basis.conj().T @ w
        w = w - basis @ first
        second = basis.conj().T @ w  # once more, for what rounding left
        w = w - basis @ second
        length = _norm(w)
        length = jnp.where(length > np.finfo(length.dtype).eps * size_before, length, 0)
        basis = basis.at[:, j + 1].set(_divide(w, length).astype(w.dtype))
        column = (first + second).at[j + 1].set(length.astype(w.dtype))
        return basis, columns.at[:, j].set(column)

    def cycle(state):
        x, r, length, k = state
        basis = jnp.zeros((b.shape[0], size + 1), b.dtype).at[:, 0].set(_divide(r, length).astype(r.dtype))
        columns = jnp.zeros((size + 1, size), b.dtype)
        basis, columns = lax.fori_loop(0, size, extend, (basis, columns))
        right_side = jnp.zeros(size + 1, b.dtype).at[0].set(length.astype(b.dtype))
        found = jnp.linalg.lstsq(columns, right_side)[0]
        x = x + basis[:, :size] @ found
        r = precondition(b - matvec(x))
        return x, r, _norm(r), k + 1

    def goes_on(state):
        _, _, length, k = state
        return (length > preconditioned) & (k < rounds)

    r = precondition(b - matvec(x))
    return lax.while_loop(goes_on, cycle, (x, r, _norm(r), 0))[0]
