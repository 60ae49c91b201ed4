"""Derivatives of matrix decompositions: tangents of the factors.

In: the factors of [..., m, n] matrices and the tangent of the matrix. Out: the tangents of the factors, in
products, triangular solutions and elementwise operations, all linear in the tangent. The rules stand with the
primitives in `linalg.py`. Conventions are JAX's: no care is taken of equal eigenvalues or singular values,
where factors have no derivative.

Source: Giles: Collected matrix derivative results for forward and reverse mode algorithmic differentiation
(2008); Murray: Differentiation of the Cholesky decomposition (2016); de Hoog, Anderssen, Lukas:
Differentiation of matrix functionals using triangular factorization (2011).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import aval_of
from jitcore.core.primitive import registry
from jitcore.lax.dot import batch_matmul
from jitcore.lax.elementwise import (abs_, add, complex_, conj, convert_element_type, div, eq, ge, imag, mul,
                                     neg, real, reciprocal, select, sub)
from jitcore.lax.indexing.dimension_numbers import GatherDimensionNumbers
from jitcore.lax.indexing.gather_scatter import gather
from jitcore.lax.indexing.slices import slice as slice_array
from jitcore.lax.joining import concatenate
from jitcore.lax.pad import pad
from jitcore.lax.reduce import argmax, reduce_sum
from jitcore.lax.shape import broadcast_in_dim, broadcasted_iota, expand_dims, full_like, transpose
from jitcore.transforms.vmap import vmap


# -- matrices -----------------------------------------------------------------------------------------------
def transpose_matrix(x):
    """The last two axes swapped."""
    ndim = aval_of(x).ndim
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def conjugate_transpose(x):
    """The last two axes swapped, complex elements conjugated."""
    return transpose_matrix(conj(x) if dtypes.is_complex(aval_of(x).dtype) else x)


def multiply(first, *others):
    """The product of matrices, from the left."""
    for other in others:
        first = batch_matmul(first, other)
    return first


def _zeros(x):
    return full_like(x, 0)


def keep_triangle(x, lower: bool, diagonal: int = 0):
    """x with zeros above (or below) a diagonal, counted to the right."""
    shape = aval_of(x).shape
    rows, columns = (broadcasted_iota(np.int32, shape, len(shape) - k) for k in (2, 1))
    edge = add(rows, np.int32(diagonal))
    kept = ge(edge, columns) if lower else ge(columns, edge)
    return select(kept, x, _zeros(x))


def _on_diagonal(x):
    shape = aval_of(x).shape
    rows, columns = (broadcasted_iota(np.int32, shape, len(shape) - k) for k in (2, 1))
    return eq(rows, columns)


def _select_diagonal(x, on, off):
    """`on` on the diagonal, `off` elsewhere; arrays like x or numbers."""
    on, off = (full_like(x, value) if isinstance(value, (int, float)) else value for value in (on, off))
    return select(_on_diagonal(x), on, off)


def _diagonal(x):
    """The diagonals of square matrices."""
    return reduce_sum(_select_diagonal(x, x, 0), (aval_of(x).ndim - 1,))


def _spread_rows(values, like):
    """[..., n] as [..., m, n]: the same in each row."""
    shape = aval_of(like).shape
    dims = (*range(len(shape) - 2), len(shape) - 1)
    return broadcast_in_dim(values, (*shape[:-1], aval_of(values).shape[-1]), dims)


def _spread_columns(values, like):
    """[..., m] as [..., m, n]: the same in each column."""
    shape = aval_of(like).shape
    return broadcast_in_dim(values, shape, tuple(range(len(shape) - 1)))


def _columns(x, start: int, stop: int):
    shape = aval_of(x).shape
    return slice_array(x, (*[0] * (len(shape) - 1), start), (*shape[:-1], stop))


def _rows(x, start: int, stop: int):
    shape = aval_of(x).shape
    return slice_array(x, (*[0] * (len(shape) - 2), start, 0), (*shape[:-2], stop, shape[-1]))


def solve_triangular(a, b, *, left: bool, lower: bool, adjoint: bool = False, unit: bool = False):
    """`op(a)**-1 @ b`, or `b @ op(a)**-1`, where op is the conjugate transpose or nothing."""
    return registry["triangular_solve"].bind(a, b, left_side=left, lower=lower, transpose_a=adjoint,
                                             conjugate_a=adjoint, unit_diagonal=unit)


def _cast_like(x, like):
    return convert_element_type(x, aval_of(like).dtype)


# -- triangular factors -------------------------------------------------------------------------------------
def cholesky_tangent(factor, t):
    """The tangent of L with L L^H = a, for the tangent t of a."""
    inner = solve_triangular(factor, t, left=False, lower=True, adjoint=True)
    inner = solve_triangular(factor, inner, left=True, lower=True)
    half = _select_diagonal(inner, div(inner, 2), keep_triangle(inner, True))
    return multiply(factor, half)


def take_columns(x, order):
    """Columns of matrices in another order. order: int[..., n]."""
    return transpose_matrix(take_rows(transpose_matrix(x), order))


def take_rows(x, order):
    """Rows of matrices in another order. order: int[..., m]."""
    if aval_of(x).shape[-2] == 0:
        return x
    numbers = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))

    def take(matrix, order):
        indices = expand_dims(order, (1,))
        return gather(matrix, indices, numbers, (1, matrix.shape[1]), mode="promise_in_bounds",
                      unique_indices=True)

    return over_batch(take, aval_of(x).ndim - 2)(x, order)


def over_batch(function: Callable, count: int) -> Callable:
    """A function of matrices on `count` more leading axes."""
    for _ in range(count):
        function = vmap(function)
    return function


def lu_tangent(factors, permutation, t):
    """The tangent of L and U in one matrix, where `a[permutation] = L @ U`, for the tangent t of a."""
    rows, columns = aval_of(t).shape[-2:]
    rank = min(rows, columns)
    lower = _grow(keep_triangle(_columns(factors, 0, rank), True, -1), rows - rank, axis=-1)
    upper = _grow(keep_triangle(_rows(factors, 0, rank), False), columns - rank, axis=-2)
    if columns > rank:  # ones on the diagonal of the rows that U lacks make it square and invertible
        position = broadcasted_iota(np.int32, aval_of(upper).shape, aval_of(upper).ndim - 2)
        upper = select(ge(position, np.int32(rank)), _select_diagonal(upper, 1, 0), upper)
    lower = _select_diagonal(lower, 1, lower)
    inner = solve_triangular(lower, take_rows(t, permutation), left=True, lower=True, unit=True)
    inner = solve_triangular(upper, inner, left=False, lower=False)
    of_lower = multiply(lower, keep_triangle(inner, True, -1))
    return add(of_lower, multiply(keep_triangle(inner, False), upper))


def _grow(x, count: int, axis: int):
    """x with zeros behind it along one axis."""
    if not count:
        return x
    config = [(0, 0, 0)] * aval_of(x).ndim
    config[axis] = (0, count, 0)
    return pad(x, np.zeros((), aval_of(x).dtype)[()], config)


# -- QR -----------------------------------------------------------------------------------------------------
def qr_tangents(x, q, r, t, full: bool):
    """The tangents of Q and R of x = Q R. full: whether Q is square."""
    rows, columns = aval_of(t).shape[-2:]
    if rows < columns:
        left = _columns(t, 0, rows)
        dq, dr = _thin_qr_tangents(q, _columns(r, 0, rows), left)
        rest = add(multiply(conjugate_transpose(dq), _columns(x, rows, columns)),
                   multiply(conjugate_transpose(q), _columns(t, rows, columns)))
        return dq, concatenate([dr, rest], aval_of(t).ndim - 1)
    if not full or rows == columns:
        return _thin_qr_tangents(q, r, t)
    thin = _columns(q, 0, columns)
    dq, dr = _thin_qr_tangents(thin, _rows(r, 0, columns), t)
    complement = _complement_tangent(thin, _columns(q, columns, rows), dq)
    return concatenate([dq, complement], aval_of(t).ndim - 1), _grow(dr, rows - columns, axis=-2)


def _thin_qr_tangents(q, r, t):
    scaled = solve_triangular(r, t, left=False, lower=False)
    inner = multiply(conjugate_transpose(q), scaled)
    below = keep_triangle(inner, True, -1)
    rotation = sub(below, conjugate_transpose(below))
    if dtypes.is_complex(aval_of(inner).dtype):  # R has a real diagonal, so that the rest turns Q
        turn = sub(inner, _cast_like(real(inner), inner))
        rotation = add(rotation, _select_diagonal(inner, turn, 0))
    dq = add(multiply(q, sub(rotation, inner)), scaled)
    return dq, multiply(sub(inner, rotation), r)


def _complement_tangent(thin, complement, dq):
    """The tangent of the columns that complete Q, as Householder's reflections make them.

    Source: Roberts, Roberts: QR and LQ decomposition matrix backpropagation algorithms (2020) and their
    extension to square Q (arXiv 2409.13374), equations 32 and 33."""
    rows, columns = aval_of(thin).shape[-2:]
    top, bottom = _rows(thin, 0, columns), _rows(thin, columns, rows)
    shifted = _select_diagonal(top, sub(top, full_like(top, 1)), top)
    z = conjugate_transpose(solve(conjugate_transpose(shifted), conjugate_transpose(bottom)))
    d_top, d_bottom = _rows(dq, 0, columns), _rows(dq, columns, rows)
    moved = multiply(add(thin, multiply(complement, z)),
                     conjugate_transpose(sub(d_bottom, multiply(z, d_top))))
    return sub(multiply(dq, conjugate_transpose(z)), moved)


def solve(a, b):
    """`a**-1 @ b` for square matrices, by LU."""
    factors, _, permutation = registry["lu"].bind(a)
    x = solve_triangular(factors, take_rows(b, permutation), left=True, lower=True, unit=True)
    return solve_triangular(factors, x, left=True, lower=False)


# -- eigenvalues and singular values ------------------------------------------------------------------------
def _inverse_differences(values, squares: bool = False):
    """1 / (w[j] - w[i]) at row i and column j, zero on the diagonal; squares: of the squared values."""
    shape = aval_of(values).shape
    down = broadcast_in_dim(values, (*shape, shape[-1]), tuple(range(len(shape))))
    across = transpose_matrix(down)
    differences = sub(across, down)
    if squares:
        differences = mul(add(across, down), differences)
    return sub(reciprocal(_select_diagonal(down, 1, differences)), _select_diagonal(down, 1, 0))


def eigh_tangents(vectors, values, t):
    """The tangents of eigenvectors and eigenvalues of a Hermitian matrix with the tangent t."""
    inner = multiply(conjugate_transpose(vectors), t, vectors)
    factor = _cast_like(_inverse_differences(values), inner)
    of_values = real(inner) if dtypes.is_complex(aval_of(inner).dtype) else inner
    return multiply(vectors, mul(factor, inner)), _diagonal(of_values)


def eigenvalue_tangents(vectors, t):
    """The tangents of the eigenvalues of a general matrix, by its right eigenvectors."""
    found = mul(solve(vectors, t), transpose_matrix(vectors))
    return reduce_sum(found, (aval_of(found).ndim - 1,))


def eigenvector_tangents(values, vectors, t):
    """The tangents of eigenvalues and eigenvectors of a general matrix.

    An eigenvector is determined but for a factor, which LAPACK chooses so that the vector has norm 1 and its
    largest component is real; so does the tangent."""
    inner = multiply(solve(vectors, t), vectors)
    moved = multiply(vectors, mul(_inverse_differences(values), inner))
    shape = aval_of(vectors).shape
    axis = len(shape) - 2
    largest = _spread_rows(argmax(abs_(vectors), axis, np.int32), vectors)
    is_largest = eq(broadcasted_iota(np.int32, shape, axis), largest)

    def at_largest(x):
        return reduce_sum(select(is_largest, x, _zeros(x)), (axis,))

    along = reduce_sum(real(mul(conj(vectors), moved)), (axis,))
    turn = div(at_largest(imag(moved)), at_largest(real(vectors)))
    factor = complex_(neg(along), neg(turn))
    return _diagonal(inner), add(moved, mul(vectors, _spread_rows(factor, vectors)))


def singular_value_tangents(left, right_adjoint, t):
    """The tangent of the singular values of U diag(s) V^H; and U^H t V."""
    inner = multiply(conjugate_transpose(left), t, conjugate_transpose(right_adjoint))
    return _diagonal(real(inner) if dtypes.is_complex(aval_of(inner).dtype) else inner), inner


def svd_tangents(values, left, right_adjoint, t):
    """The tangents of s, U and V^H of a matrix U diag(s) V^H with the tangent t; U and V are thin."""
    rows, columns = aval_of(t).shape[-2:]
    d_values, inner = singular_value_tangents(left, right_adjoint, t)
    right = conjugate_transpose(right_adjoint)
    across, down = (_cast_like(spread(values, inner), inner) for spread in (_spread_rows, _spread_columns))
    factor = _cast_like(_inverse_differences(values, squares=True), inner)
    is_zero = eq(values, _zeros(values))
    inverse = select(is_zero, _zeros(values), reciprocal(select(is_zero, full_like(values, 1), values)))
    scaled = mul(across, inner)
    turn = div(sub(inner, conjugate_transpose(inner)), 2)
    turn = mul(_select_diagonal(turn, turn, 0), _cast_like(_spread_rows(inverse, inner), inner))
    d_left = multiply(left, add(mul(factor, add(scaled, conjugate_transpose(scaled))), turn))
    scaled = mul(down, inner)
    d_right = multiply(right, mul(factor, add(scaled, conjugate_transpose(scaled))))
    if rows > columns:
        moved = multiply(t, right)
        rest = sub(moved, multiply(left, multiply(conjugate_transpose(left), moved)))
        d_left = add(d_left, div(rest, _cast_like(_spread_rows(values, rest), rest)))
    if columns > rows:
        moved = multiply(conjugate_transpose(t), left)
        rest = sub(moved, multiply(right, multiply(right_adjoint, moved)))
        d_right = add(d_right, div(rest, _cast_like(_spread_rows(values, rest), rest)))
    return d_values, d_left, conjugate_transpose(d_right)
