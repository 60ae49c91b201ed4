"""Determinants and their derivatives, by LU decomposition.

In: square matrices [..., n, n] of one float or complex dtype. Out: determinants, or signs and logarithms.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax import linalg as lax_linalg
from jitcore.lax.linalg.derivatives import take_rows
from jitcore.lax.linalg.solve import solve
from jitcore.numpy import diagonals, reductions
from jitcore.numpy.arrays.promotion import apply_select, broadcast_array, convert_dtype
from jitcore.numpy.cumulative import cumprod
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.ufuncs import arithmetic, logic
from jitcore.transforms.custom_derivatives import custom_jvp
from jitcore.transforms.custom_rule_checks import SymbolicZero


@custom_jvp
def sign_and_logarithm(a) -> tuple[Array, Array]:
    """The sign of the determinant, and the logarithm of its magnitude."""
    diagonal, parity = _lu_diagonal(a)
    magnitude = arithmetic.absolute(diagonal)
    is_zero = reductions.any(logic.equal(diagonal, 0), -1)
    one = diagonal.dtype.type(1)
    safe = apply_select(logic.equal(diagonal, 0), one, diagonal)
    units = arithmetic.divide(safe, convert_dtype(arithmetic.absolute(safe), diagonal.dtype))
    sign = arithmetic.multiply(convert_dtype(parity, diagonal.dtype), reductions.prod(units, -1))
    sign = apply_select(is_zero, diagonal.dtype.type(0), sign)
    return sign, reductions.sum(arithmetic.log(magnitude), -1)


@sign_and_logarithm.defjvp
def _jvp_slogdet(primals, tangents):
    """d log |det a| = trace(a**-1 da); the sign of a real determinant is constant."""
    (a,), (t,) = primals, tangents
    sign, logarithm = sign_and_logarithm(a)
    t = diagonals.trace(solve(a, t), 0, -2, -1)
    if not dtypes.is_complex(a.dtype):
        return (sign, logarithm), (SymbolicZero.from_primal_value(sign), t)
    size = arithmetic.real(t)
    turn = arithmetic.subtract(t, convert_dtype(size, t.dtype))
    return (sign, logarithm), (arithmetic.multiply(turn, sign), size)


def _lu_diagonal(a) -> tuple[Array, Array]:
    """(diagonal of U, +1 or -1 by the number of row exchanges)."""
    factors, pivots, _ = lax_linalg.lu(a)
    diagonal = diagonals.diagonal(factors, axis1=-2, axis2=-1)
    steps = np.arange(a.shape[-1], dtype=np.int32)
    exchanges = reductions.sum(logic.not_equal(pivots, steps), -1)
    return diagonal, arithmetic.subtract(1, arithmetic.multiply(2, arithmetic.bitwise_and(exchanges, 1)))


def determinant(a) -> Array:
    """The determinant."""
    return _expand(a) if a.shape[-1] in (1, 2, 3) else _multiply_pivots(a)


def _expand(a):
    """By the rule of Sarrus, for up to three rows."""
    n = a.shape[-1]
    entry = [[get_item(a, (Ellipsis, i, j)) for j in range(n)] for i in range(n)]
    if n == 1:
        return entry[0][0]
    if n == 2:
        return entry[0][0] * entry[1][1] - entry[0][1] * entry[1][0]
    return sum(entry[0][j] * (entry[1][(j + 1) % 3] * entry[2][(j + 2) % 3]
                              - entry[1][(j + 2) % 3] * entry[2][(j + 1) % 3]) for j in range(3))


@custom_jvp
def _multiply_pivots(a):
    diagonal, parity = _lu_diagonal(a)
    return arithmetic.multiply(convert_dtype(parity, a.dtype), reductions.prod(diagonal, -1))


@_multiply_pivots.defjvp
def _jvp_det(primals, tangents):
    """d det a = trace(adjugate(a) @ da)."""
    (a,), (t,) = primals, tangents
    return _multiply_pivots(a), diagonals.trace(_multiply_adjugate(a, t), 0, -2, -1)


def _multiply_adjugate(a, b):
    """adjugate(a) @ b = det(a) * a**-1 @ b, also where a has no inverse.

    A matrix of rank n - 1 has a zero in the last pivot alone. With the reciprocal of the others' product in
    its place, triangular solutions give the last row of the result right away, and the other rows after a
    multiplication with det(a). The adjugate of a matrix of less rank is zero."""
    factors, pivots, permutation = lax_linalg.lu(a)
    n = a.shape[-1]
    exchanges = reductions.sum(logic.not_equal(pivots, np.arange(n, dtype=np.int32)), -1, keepdims=True)
    is_odd = arithmetic.bitwise_and(exchanges, 1)
    sign = convert_dtype(arithmetic.subtract(1, arithmetic.multiply(2, is_odd)), a.dtype)
    products = arithmetic.multiply(cumprod(diagonals.diagonal(factors, axis1=-2, axis2=-1), -1), sign)
    determinant = get_item(products, (Ellipsis, slice(n - 1, n), None))
    others = get_item(products, (Ellipsis, slice(n - 2, n - 1), None))
    is_last = np.arange(n) == n - 1
    is_corner = is_last[:, None] & is_last
    factors = apply_select(is_corner, broadcast_array(arithmetic.reciprocal(others), a.shape), factors)
    ones = lax.full((*a.shape[:-1], 1), 1, a.dtype)
    probe = lax_linalg.triangular_solve(factors, ones, left_side=True)
    has_full_rank = reductions.all(logic.isfinite(probe), -2, keepdims=True)
    zero = a.dtype.type(0)
    x = take_rows(apply_select(has_full_rank, b, zero), permutation)
    x = lax_linalg.triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)
    x = apply_select(is_last[:, None], x, arithmetic.multiply(x, determinant))
    x = lax_linalg.triangular_solve(factors, x, left_side=True)
    return apply_select(has_full_rank, x, zero)
