"""Matrix decompositions and solvers over the last two axes; leading axes are a batch.

In: float or complex matrices (32 or 64 bit). Out: the factors, in the order that `jax.lax.linalg` documents.
A matrix for which LAPACK fails (not positive definite, no convergence, NaN) gives NaN; the others of the
batch do not suffer.

Modules:
    checks          What operands of linear algebra have to be.
    derivatives     Derivatives of matrix decompositions: tangents of the factors.
    qr_reflections  QR with pivoting as a loop of Householder's reflections, for backends that have no routine
                    for it.
    reflections     Householder's reflections: products of them, and matrices brought to Hessenberg or
                    tridiagonal form by them.
    solve           Solutions of linear systems by factorisation, whose derivatives use the factors again.
    updates         Products, factors and solutions of matrices of known form: symmetric products, a Cholesky
                    factor after a change of rank one, tridiagonal systems, the polar decomposition; and the
                    names of algorithms.
"""

from __future__ import annotations

import functools

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.lax.define import cast, define, to_operands
from jitcore.lax.elementwise import add, conj, div, neg
from jitcore.lax.linalg import derivatives
from jitcore.lax.linalg.checks import check_matrix
from jitcore.lax.linalg.derivatives import conjugate_transpose, multiply, transpose_matrix
from jitcore.lax.linalg.qr_reflections import expand_qr
from jitcore.lax.linalg.reflections import *  # noqa: F403
from jitcore.lax.linalg.reflections import __all__ as _of_reflections
from jitcore.lax.linalg.updates import *  # noqa: F403
from jitcore.lax.linalg.updates import (EighImplementation, EigImplementation, SvdAlgorithm,
                                        __all__ as _of_updates)
from jitcore.lax.shape import broadcast_in_dim, reshape, squeeze
from jitcore.process.lazy import LazyFunctions
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.batching import move_axis
from jitcore.transforms.derivative_rules import jvp_zero
from jitcore.transforms.tangents import is_zero, zero_like
from jitcore.transforms.transpose import is_linear

__all__ = ["cholesky", "eig", "eigh", "lu", "lu_pivots_to_permutation", "qr", "schur", "svd",
           "triangular_solve", *_of_reflections, *_of_updates]

scipy_linalg = LazyFunctions("scipy.linalg")


# -- what the decompositions share --------------------------------------------------------------------------
def run_per_matrix(function, out_avals: list[ShapedArray], *operands: np.ndarray) -> list[np.ndarray]:
    """Calls function on each matrix of a batch. Where LAPACK fails the outputs of that matrix are NaN.

    Args:
        function: takes one matrix of each operand, returns one array per output.
        out_avals: shapes and dtypes of the outputs, batch included.
        operands: arrays with equal batch axes."""
    batch = operands[0].shape[:-2]
    outs = [np.empty(aval.shape, aval.dtype) for aval in out_avals]
    for index in np.ndindex(*batch):
        try:
            results = function(*[operand[index] for operand in operands])
        except np.linalg.LinAlgError:
            results = [np.nan if dtypes.is_inexact(out.dtype) else -1 for out in outs]
        for out, result in zip(outs, results):
            out[index] = result
    return outs


def _run_batched(batched, x: np.ndarray, out_avals: list[ShapedArray]) -> list[np.ndarray]:
    """`batched` on the whole batch at once; matrix by matrix when LAPACK failed on one of them."""
    try:
        outs = batched(x)
    except np.linalg.LinAlgError:
        return run_per_matrix(batched, out_avals, x)
    return list(outs)


def _matrix_aval(x: ShapedArray, *dims, dtype=None) -> ShapedArray:
    """The aval of an output with x's batch axes and these dims."""
    return ShapedArray((*x.shape[:-2], *dims), dtype or x.dtype, x.weak_type and dtype is None)


def _ndarray_aval(x: np.ndarray) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype)


def _symmetrize(x) -> Array:
    return div(add(x, conjugate_transpose(x)), 2)


# -- Cholesky -----------------------------------------------------------------------------------------------
def _cholesky_aval(x: ShapedArray) -> ShapedArray:
    check_matrix("cholesky", x, square=True)
    return x


def _cholesky(x):
    (out,) = _run_batched(lambda a: [np.linalg.cholesky(a)], x, [_ndarray_aval(x)])
    return np.tril(out)


def _jvp_cholesky(primitive, primals, tangents):
    factor = primitive.bind(*primals)
    return factor, derivatives.cholesky_tangent(factor, *tangents)


@define("cholesky", impl=_cholesky, aval=_cholesky_aval, jvp=_jvp_cholesky, batch=rebind())
def cholesky(x, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with `L @ L^H = x`.

    Args:
        x: [..., n, n], Hermitian and positive definite; a matrix that is not gives NaN.
        symmetrize_input: take (x + x^H) / 2; else only the lower triangle is read."""
    check_matrix("cholesky", aval_of(x), square=True)
    return cholesky.primitive.bind(_symmetrize(x) if symmetrize_input else x)


# -- LU -----------------------------------------------------------------------------------------------------
def _lu_aval(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("lu", x)
    rows, columns = x.shape[-2:]
    return [x, _matrix_aval(x, min(rows, columns), dtype=dtypes.int32),
            _matrix_aval(x, rows, dtype=dtypes.int32)]


def _lu(x):
    (factorize,) = scipy_linalg.get_lapack_funcs(("getrf",), (x,))

    def run(matrix):
        if not matrix.size:
            return matrix, np.zeros(0, np.int32), np.arange(matrix.shape[0])
        factors, pivots, _ = factorize(matrix)
        return factors, pivots, pivots_to_permutation(pivots, matrix.shape[0])

    return run_per_matrix(run, _lu_aval(_ndarray_aval(x)), x)


def pivots_to_permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    """The permutation that row interchanges make. pivots: int[..., k]; returns int32[..., size]."""
    permutation = np.broadcast_to(np.arange(size, dtype=np.int32), (*pivots.shape[:-1], size)).copy()
    for step in range(pivots.shape[-1]):
        other = pivots[..., step, None]
        moved = np.take_along_axis(permutation, other, -1)
        np.put_along_axis(permutation, other, permutation[..., step, None], -1)
        permutation[..., step] = moved[..., 0]
    return permutation


def _jvp_lu(primitive, primals, tangents):
    factors, pivots, permutation = primitive.bind(*primals)
    tangent = derivatives.lu_tangent(factors, permutation, *tangents)
    return [factors, pivots, permutation], [tangent, zero_like(pivots), zero_like(permutation)]


@define("lu", impl=_lu, aval=_lu_aval, jvp=_jvp_lu, batch=rebind(), multiple_results=True)
def lu(x) -> list[Array]:
    """LU decomposition with partial pivoting.

    Returns: (LU in one matrix, pivots int32[..., min(m, n)], int32[..., m] with `x[permutation] = L @ U`)."""
    return lu.primitive.bind(x)


def _permutation_aval(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if not dtypes.is_integer(pivots.dtype) or not pivots.ndim:
        raise TypeError(
            f"Argument to lu_pivots_to_permutation must be a vector of integers, got {pivots.long()}")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing dimension of the "
            f"pivots. Got pivots size {pivots.shape[-1]}")
    return ShapedArray((*pivots.shape[:-1], permutation_size), dtypes.int32)


@define("lu_pivots_to_permutation", aval=_permutation_aval, jvp=jvp_zero, batch=rebind(),
        impl=lambda pivots, *, permutation_size: pivots_to_permutation(pivots, permutation_size))
def lu_pivots_to_permutation(pivots, permutation_size: int) -> Array:
    """The permutation of an `lu`. pivots: int[..., k]; returns int32[..., permutation_size]."""
    return lu_pivots_to_permutation.primitive.bind(pivots, permutation_size=permutation_size)


# -- QR -----------------------------------------------------------------------------------------------------
def _qr_aval(x: ShapedArray, *, pivoting: bool, full_matrices: bool) -> list[ShapedArray]:
    check_matrix("qr", x)
    rows, columns = x.shape[-2:]
    inner = rows if full_matrices else min(rows, columns)
    factors = [_matrix_aval(x, rows, inner), _matrix_aval(x, inner, columns)]
    return [*factors, _matrix_aval(x, columns, dtype=dtypes.int32)] if pivoting else factors


def _qr(x, *, pivoting: bool, full_matrices: bool):
    if not pivoting:
        return np.linalg.qr(x, "complete" if full_matrices else "reduced")
    run = functools.partial(scipy_linalg.qr, mode="full" if full_matrices else "economic", pivoting=True,
                            check_finite=False)
    return run_per_matrix(run, _qr_aval(_ndarray_aval(x), pivoting=True, full_matrices=full_matrices), x)


def _jvp_qr(primitive, primals, tangents, *, pivoting: bool, full_matrices: bool):
    (x,), (t,) = primals, tangents
    outs = primitive.bind(x, pivoting=pivoting, full_matrices=full_matrices)
    if pivoting:
        x, t = (derivatives.take_columns(each, outs[2]) for each in (x, t))
    found = derivatives.qr_tangents(x, outs[0], outs[1], t, full_matrices)
    return outs, [*found, *map(zero_like, outs[2:])]


@define("qr", impl=_qr, aval=_qr_aval, jvp=_jvp_qr, batch=rebind(), multiple_results=True, expand=expand_qr)
def qr(x, *, pivoting: bool = False, full_matrices: bool = True) -> tuple[Array, ...]:
    """QR decomposition: `x = Q @ R`, or `x[:, p] = Q @ R` with pivoting.

    Returns: (Q, R) or (Q, R, p int32[..., n]); Q has m columns, or min(m, n) without full_matrices."""
    return tuple(qr.primitive.bind(x, pivoting=pivoting, full_matrices=full_matrices))


# -- eigenvalues --------------------------------------------------------------------------------------------
def _eigh_aval(x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index) -> list[ShapedArray]:
    check_matrix("eigh", x, square=True)
    size = x.shape[-1]
    start, stop = (0, size) if subset_by_index is None else subset_by_index
    if start < 0 or start > stop or stop > size:
        raise ValueError(f"subset_by_index must be within 0 and {size}, got {subset_by_index}")
    vectors = _matrix_aval(x, size, stop - start)
    values = ShapedArray((*x.shape[:-2], stop - start), dtypes.real_dtype(x.dtype), x.weak_type)
    return [vectors, values]


def _eigh(x, *, lower: bool, sort_eigenvalues: bool, subset_by_index):
    def run(matrices):
        values, vectors = np.linalg.eigh(matrices, "L" if lower else "U")
        return vectors, values

    whole = _eigh_aval(_ndarray_aval(x), lower=lower, sort_eigenvalues=sort_eigenvalues, subset_by_index=None)
    vectors, values = _run_batched(run, x, whole)
    start, stop = subset_by_index or (0, x.shape[-1])
    return [vectors[..., start:stop], values[..., start:stop]]


def _jvp_eigh(primitive, primals, tangents, *, subset_by_index, **params):
    if subset_by_index not in (None, (0, aval_of(primals[0]).shape[-1])):
        raise NotImplementedError("Derivatives not defined for partial eigen decomposition.")
    vectors, values = primitive.bind(*primals, subset_by_index=subset_by_index, **params)
    return [vectors, values], list(derivatives.eigh_tangents(vectors, values, *tangents))


@define("eigh", impl=_eigh, aval=_eigh_aval, jvp=_jvp_eigh, batch=rebind(), multiple_results=True)
def eigh(x, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
         subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of a Hermitian matrix.

    Args:
        lower: which triangle is read when symmetrize_input is False.
        sort_eigenvalues: ascending; they always are.
        subset_by_index: (start, stop) of the eigenvalues wanted. implementation: a hint, without effect.
    Returns: (vectors [..., n, k] as columns, real values [..., k])."""
    check_matrix("eigh", aval_of(x), square=True)
    vectors, values = eigh.primitive.bind(_symmetrize(x) if symmetrize_input else x, lower=lower,
                                          sort_eigenvalues=sort_eigenvalues, subset_by_index=subset_by_index)
    return vectors, values


def _eig_aval(x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
              enable_eigvec_derivs: bool = False) -> list[ShapedArray]:
    check_matrix("eig", x, square=True)
    size, dtype = x.shape[-1], dtypes.complex_dtype(x.dtype)
    count = int(compute_left_eigenvectors) + int(compute_right_eigenvectors)
    return [_matrix_aval(x, size, dtype=dtype), *[_matrix_aval(x, size, size, dtype=dtype)] * count]


def _eig(x, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
         enable_eigvec_derivs: bool = False):
    left, right = compute_left_eigenvectors, compute_right_eigenvectors

    def run(matrix):
        if not np.isfinite(matrix).all():
            raise np.linalg.LinAlgError("LAPACK may not return for a matrix that is not finite")
        result = scipy_linalg.eig(matrix, left=left, right=right, check_finite=False)
        return result if left or right else [result]

    avals = _eig_aval(_ndarray_aval(x), compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    return run_per_matrix(run, avals, x)


def _jvp_eig(primitive, primals, tangents, *, compute_left_eigenvectors: bool,
             compute_right_eigenvectors: bool, enable_eigvec_derivs: bool):
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    if (left or right) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the input that "
            "jitcore cannot check (see the enable_eigvec_derivs argument to lax.linalg.eig). Pass "
            "enable_eigvec_derivs=True to lax.linalg.eig to opt in.")
    (x,), (t,) = primals, tangents
    values, *vectors = primitive.bind(x, compute_left_eigenvectors=left, compute_right_eigenvectors=True,
                                      enable_eigvec_derivs=enable_eigvec_derivs)
    t = cast(t, aval_of(t), aval_of(values).dtype, False)
    if not (left or right):
        return [values], [derivatives.eigenvalue_tangents(vectors[-1], t)]
    d_values, d_right = derivatives.eigenvector_tangents(values, vectors[-1], t)
    outs, found = [values], [d_values]
    if left:
        adjoint = conjugate_transpose(t)
        outs.append(vectors[0])
        found.append(derivatives.eigenvector_tangents(conj(values), vectors[0], adjoint)[1])
    return [*outs, *vectors[-1:] * right], [*found, *[d_right] * right]


@define("eig", impl=_eig, aval=_eig_aval, jvp=_jvp_eig, batch=rebind(), multiple_results=True,
        optional_results={"compute_left_eigenvectors": 1, "compute_right_eigenvectors": 1})
def eig(x, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
        enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None) -> list[Array]:
    """Eigenvalues, then left, then right eigenvectors (as columns) of a general matrix; all complex.

    enable_eigvec_derivs: allow derivatives of eigenvectors, which exist where eigenvalues are distinct and
    the largest component of each vector is unique. implementation: a hint, without effect."""
    return eig.primitive.bind(x, compute_left_eigenvectors=compute_left_eigenvectors,
                              compute_right_eigenvectors=compute_right_eigenvectors,
                              enable_eigvec_derivs=enable_eigvec_derivs)


def _schur_aval(x: ShapedArray, *, compute_schur_vectors: bool) -> list[ShapedArray]:
    check_matrix("schur", x, square=True)
    return [x, x] if compute_schur_vectors else [x]


def _schur(x, *, compute_schur_vectors: bool):
    def run(matrix):
        if not np.isfinite(matrix).all():
            raise np.linalg.LinAlgError("LAPACK may not return for a matrix that is not finite")
        output = "complex" if dtypes.is_complex(matrix.dtype) else "real"
        return scipy_linalg.schur(matrix, output=output, check_finite=False)

    avals = _schur_aval(_ndarray_aval(x), compute_schur_vectors=compute_schur_vectors)
    return run_per_matrix(run, avals, x)


@define("schur", impl=_schur, aval=_schur_aval, batch=rebind(), multiple_results=True,
        optional_results={"compute_schur_vectors": 1})
def schur(x, *, compute_schur_vectors: bool = True) -> tuple[Array, ...]:
    """Schur decomposition `x = Z @ T @ Z^H`. Returns: (T, Z), or (T,) without the vectors."""
    return tuple(schur.primitive.bind(x, compute_schur_vectors=compute_schur_vectors))


# -- singular values ----------------------------------------------------------------------------------------
def _svd_aval(x: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> list[ShapedArray]:
    check_matrix("svd", x)
    rows, columns = x.shape[-2:]
    rank = min(rows, columns)
    values = ShapedArray((*x.shape[:-2], rank), dtypes.real_dtype(x.dtype), x.weak_type)
    if not compute_uv:
        return [values]
    left, right = (rows, columns) if full_matrices else (rank, rank)
    return [values, _matrix_aval(x, rows, left), _matrix_aval(x, right, columns)]


def _svd(x, *, full_matrices: bool, compute_uv: bool):
    def run(matrices):
        if not compute_uv:
            return [np.linalg.svd(matrices, compute_uv=False)]
        left, values, right = np.linalg.svd(matrices, full_matrices)
        return values, left, right

    return _run_batched(run, x,
                        _svd_aval(_ndarray_aval(x), full_matrices=full_matrices, compute_uv=compute_uv))


def _jvp_svd(primitive, primals, tangents, *, full_matrices: bool, compute_uv: bool):
    (x,), (t,) = primals, tangents
    rows, columns = aval_of(x).shape[-2:]
    if compute_uv and full_matrices and rows != columns:
        raise NotImplementedError("Singular value decomposition JVP not implemented for full matrices")
    values, left, right = primitive.bind(x, full_matrices=False, compute_uv=True)
    if not compute_uv:
        return [values], [derivatives.singular_value_tangents(left, right, t)[0]]
    return [values, left, right], list(derivatives.svd_tangents(values, left, right, t))


@define("svd", impl=_svd, aval=_svd_aval, jvp=_jvp_svd, batch=rebind(), multiple_results=True,
        optional_results={"compute_uv": 2})
def svd(x, *, full_matrices: bool = True, compute_uv: bool = True,
        algorithm: SvdAlgorithm | None = None) -> Array | tuple[Array, Array, Array]:
    """Singular value decomposition `x = U @ diag(s) @ V^H`.

    algorithm: a hint, without effect.
    Returns: (U, s, V^H), s real and descending; only s without compute_uv."""
    outs = svd.primitive.bind(x, full_matrices=full_matrices, compute_uv=compute_uv)
    if not compute_uv:
        return outs[0]
    values, left, right = outs
    return left, values, right


# -- solvers ------------------------------------------------------------------------------------------------
def _triangular_solve_aval(a: ShapedArray, b: ShapedArray, *, left_side: bool, lower: bool, transpose_a: bool,
                           conjugate_a: bool, unit_diagonal: bool) -> ShapedArray:
    check_matrix("triangular_solve", a, square=True)
    check_matrix("triangular_solve", b)
    if a.dtype != b.dtype:
        raise TypeError("lax.triangular_solve requires arguments to have the same dtypes, "
                        f"got {a.dtype.name}, {b.dtype.name}.")
    if not a.shape[:-2] == b.shape[:-2] or not b.shape[-2 if left_side else -1] == a.shape[-1]:
        raise ValueError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.")
    return b.update(weak_type=a.weak_type and b.weak_type)


def _triangular_solve(a, b, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
                      unit_diagonal: bool):
    # BLAS, not LAPACK's checked routine: a zero on the diagonal gives inf and NaN
    (solve,) = scipy_linalg.get_blas_funcs(("trsm",), (a, b))
    a = np.conj(a) if conjugate_a else a

    def run(matrix, right):
        if not right.size:
            return [right]
        return [solve(1.0, matrix, right, side=int(not left_side), lower=int(lower), trans_a=int(transpose_a),
                      diag=int(unit_diagonal))]

    return run_per_matrix(run, [_ndarray_aval(b)], a, b)[0]


def _jvp_triangular_solve(primitive, primals, tangents, *, left_side: bool, lower: bool, transpose_a: bool,
                          conjugate_a: bool, unit_diagonal: bool):
    (a, b), (da, db) = primals, tangents

    def run(right):
        return primitive.bind(a, right, left_side=left_side, lower=lower, transpose_a=transpose_a,
                              conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)

    ans = run(b)
    if is_zero(da):
        return ans, run(db)
    da = neg(derivatives.keep_triangle(da, lower, (-1 if lower else 1) * unit_diagonal))
    da = conj(da) if conjugate_a and dtypes.is_complex(aval_of(da).dtype) else da
    da = transpose_matrix(da) if transpose_a else da
    rows, columns = aval_of(b).shape[-2:]
    is_wide = rows < columns if left_side else columns < rows
    if is_zero(db) and is_wide:  # the solution for the square matrix is less work
        return ans, multiply(run(da), ans) if left_side else multiply(ans, run(da))
    moved = multiply(da, ans) if left_side else multiply(ans, da)
    return ans, run(moved if is_zero(db) else add(db, moved))


def _transpose_triangular_solve(primitive, ct, operands, *, transpose_a: bool, **params):
    a, b = operands
    if is_linear(a):
        raise NotImplementedError("triangular_solve is not linear in the matrix")
    return [None, primitive.bind(a, ct, transpose_a=not transpose_a, **params)]


def _batch_triangular_solve(primitive, axis, values, batched, *, left_side: bool, **params):
    a, b = values
    if batched[0]:
        return rebind()(primitive, axis, values, batched, left_side=left_side, **params)
    # One matrix for all elements: their right-hand sides are solved for together.
    place = aval_of(b).ndim - (1 if left_side else 3)
    moved = move_axis(b, 0, place)
    shape = aval_of(moved).shape
    first = place - 1 if left_side else place
    merged = (*shape[:first], shape[first] * shape[first + 1], *shape[first + 2 :])
    out = primitive.bind(a, reshape(moved, merged), left_side=left_side, **params)
    return move_axis(reshape(out, shape), place, 0)


@define("triangular_solve", impl=_triangular_solve, aval=_triangular_solve_aval,
        jvp=_jvp_triangular_solve, transpose=_transpose_triangular_solve,
        batch=_batch_triangular_solve)
def triangular_solve(a, b, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
                     conjugate_a: bool = False, unit_diagonal: bool = False) -> Array:
    """Solves `x @ op(a) = b`, or `op(a) @ x = b` with left_side, for a triangular matrix.

    Args:
        a: [..., n, n]; only the triangle that `lower` names is read.
        b: [..., m, n] ([..., n, m] with left_side), or one axis less for a single right-hand side.
        transpose_a, conjugate_a: op(a) is a transposed, conjugated.
        unit_diagonal: take the diagonal as ones.
    Raises: ValueError when the shapes do not fit."""
    a, b = to_operands("triangular_solve", (a, b))
    a_aval, b_aval = aval_of(a), aval_of(b)
    single = b_aval.ndim == a_aval.ndim - 1
    if single:
        axis = b_aval.ndim if left_side else b_aval.ndim - 1
        dims = [dim for dim in range(b_aval.ndim + 1) if dim != axis]
        b = broadcast_in_dim(b, (*b_aval.shape[:axis], 1, *b_aval.shape[axis:]), dims)
    out = triangular_solve.primitive.bind(a, b, left_side=left_side, lower=lower, transpose_a=transpose_a,
                                          conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)
    return squeeze(out, (axis,)) if single else out
