"""Solutions of linear systems by factorisation, whose derivatives use the factors again.

In: square matrices and right-hand sides with equal batch axes. Out: the solutions. The tangent of
`x = a**-1 @ b` is `a**-1 @ (db - da @ x)`, and the cotangent of b a solution with the transposed matrix: each
costs triangular solutions, to any order of differentiation. The factors themselves are not differentiated.
"""

from __future__ import annotations

from collections.abc import Callable

from jitcore import dtypes
from jitcore.core.jaxpr import DebugInfo
from jitcore.lax.elementwise import conj, neg, sub
from jitcore.lax.linalg import cholesky, lu, triangular_solve
from jitcore.lax.linalg.derivatives import conjugate_transpose, multiply, take_rows, transpose_matrix
from jitcore.lax.shape import stop_gradient
from jitcore.lax.sort import argsort
from jitcore.transforms.custom_calls import JvpCall, Labels
from jitcore.transforms.tangents import is_zero

_LABELS = Labels(("solve_jvp", "solve_transpose"))


def solve(a, b):
    """x with a @ x = b, by LU. a: [..., n, n]; b: [..., n, k]."""
    factors, _, permutation = lu(stop_gradient(a))
    return _solve_factored(_solve_by_lu, a, (factors, permutation), b)


def solve_positive(a, b, *, lower: bool):
    """x with a @ x = b, by Cholesky. a: Hermitian and positive definite, of which one triangle is read."""
    a_read = stop_gradient(a)
    factor = cholesky(a_read if lower else conjugate_transpose(a_read), symmetrize_input=False)
    return _solve_factored(_solve_by_cholesky, a, (factor,), b)


def _solve_factored(solver: Callable, a, factors: tuple, b, transposed: bool = False):
    """x with a @ x = b, or a^T @ x = b. solver: `solver(transposed, *factors, b)` gives x."""
    count = len(factors)

    def run(a, *rest):
        return [solver(transposed, *rest)]

    def jvp(primals, tangents):
        a, factors, da, db = primals[0], primals[1:-1], tangents[0], tangents[-1]
        x = call.bind(*primals)[0]
        right = db
        if not is_zero(da):
            moved = multiply(transpose_matrix(da) if transposed else da, x)
            right = neg(moved) if is_zero(db) else sub(db, moved)
        return [x], [right if is_zero(right) else call.bind(a, *factors, right)[0]]

    def transpose(cotangents, operands):
        a, factors = operands[0], operands[1:-1]
        found = _solve_factored(solver, a, factors, cotangents[0], not transposed)
        return [*[None] * (count + 1), found]

    call = JvpCall(run, jvp, transpose, DebugInfo("solve", "", "custom_jvp", None), _LABELS)
    return call.bind(a, *factors, b)[0]


def _solve_by_lu(transposed: bool, factors, permutation, b):
    if not transposed:
        x = triangular_solve(factors, take_rows(b, permutation), left_side=True, lower=True,
                             unit_diagonal=True)
        return triangular_solve(factors, x, left_side=True)
    x = triangular_solve(factors, b, left_side=True, transpose_a=True)
    x = triangular_solve(factors, x, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)
    return take_rows(x, argsort(permutation, permutation.ndim - 1))


def _solve_by_cholesky(transposed: bool, factor, b):
    if transposed and dtypes.is_complex(b.dtype):  # the transpose of a Hermitian matrix is its conjugate
        return conj(_solve_by_cholesky(False, factor, conj(b)))
    x = triangular_solve(factor, b, left_side=True, lower=True)
    return triangular_solve(factor, x, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
