"""Linear algebra (`jitcore.numpy.linalg`): factorisations, solvers, norms.

In: matrices [..., n, m] (stacks where NumPy takes them) of any number type. Out: arrays in the float or
complex dtype that belongs to them. Factorisations are primitives of `lax.linalg`; a matrix that has none
gives NaN.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax import linalg as lax_linalg
from jitcore.lax.define import canonicalize_axis
from jitcore.lax.linalg.reflections import factor_by_reflections
from jitcore.lax.linalg.solve import solve as solve_factoring
from jitcore.numpy import diagonals, products, reductions, shaping
from jitcore.numpy.arrays.dtype_names import finfo
from jitcore.numpy.arrays.promotion import (apply_select, broadcast_array, broadcast_shapes,
                                            canonicalize_axes, convert_dtype, ensure_array, ensure_arrays,
                                            promote_arrays)
from jitcore.numpy.creation import asarray
from jitcore.numpy.determinants import determinant, sign_and_logarithm
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.products import matmul, tensordot, vecdot
from jitcore.numpy.shaping import matrix_transpose
from jitcore.numpy.ufuncs import arithmetic, logic
from jitcore.transforms.custom_derivatives import custom_jvp


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Array
    S: Array
    Vh: Array


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: Array
    logabsdet: Array


def _matrices(name: str, *xs, is_square: bool = False) -> list[Array]:
    """Operands in one float dtype. Raises: ValueError below two axes, or for a matrix that is not square."""
    xs = promote_arrays(name, *xs, to=dtypes.inexact_dtype)
    first = xs[0]
    if first.ndim < 2 or (is_square and first.shape[-1] != first.shape[-2]):
        wanted = "square matrices" if is_square else "at least two dimensions"
        raise ValueError(
            f"Argument to {name} must have {wanted}, i.e. shape [..., n, {'n' if is_square else 'm'}], "
            f"got a of shape {first.shape}.")
    return xs


def _adjoint(x) -> Array:
    return arithmetic.conjugate(matrix_transpose(x))


# -- factorisations -----------------------------------------------------------------------------------------
def cholesky(a, *, upper: bool = False, symmetrize_input: bool = True):
    """The triangular factor L of a Hermitian positive definite matrix, a = L L^H. Same as:
    `numpy.linalg.cholesky`."""
    (a,) = _matrices("cholesky", a, is_square=True)
    factor = lax_linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return _adjoint(factor) if upper else factor


def qr(a, mode: str = "reduced"):
    """a = Q R with orthonormal columns of Q. Same as: `numpy.linalg.qr`.

    mode: "reduced" (which "full" is too), "complete", "r"; "raw" gives the transpose of what LAPACK packs
        both into, and the factors of reflections."""
    (a,) = _matrices("qr", a)
    if mode == "raw":
        packed, taus = factor_by_reflections(a)
        return QRResult(matrix_transpose(packed), taus)
    if mode not in ("reduced", "complete", "full", "r"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = lax_linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(a, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index=None):
    """a = U diag(S) Vh with descending singular values S. Same as: `numpy.linalg.svd`.

    subset_by_index: (start, stop) of the singular values that are wanted; not with full_matrices."""
    (a,) = _matrices("svd", a)
    if subset_by_index is not None:
        start, stop = map(operator.index, subset_by_index)
        if full_matrices and compute_uv or not 0 <= start <= stop <= min(a.shape[-2:]):
            raise ValueError(f"svd: {subset_by_index=} needs full_matrices=False, and bounds from 0 to the "
                             f"number of singular values of an array of shape {a.shape}")
        found = svd(a, False, compute_uv)
        if not compute_uv:
            return found[..., start:stop]
        return SVDResult(found.U[..., start:stop], found.S[..., start:stop], found.Vh[..., start:stop, :])
    if not compute_uv:
        return lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=False)
    return SVDResult(*lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=True))


def svdvals(x, /):
    """Singular values, descending. Same as: `numpy.linalg.svdvals`."""
    return svd(x, compute_uv=False)


def eigh(a, UPLO: str | None = None, symmetrize_input: bool = True):
    """Eigenvalues (ascending) and eigenvectors of a Hermitian matrix. Same as: `numpy.linalg.eigh`.

    UPLO: "L" (default) or "U": which triangle is read when `symmetrize_input` is False."""
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    (a,) = _matrices("eigh", a, is_square=True)
    vectors, values = lax_linalg.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


def eigvalsh(a, UPLO: str | None = "L", *, symmetrize_input: bool = True):
    """Eigenvalues of a Hermitian matrix, ascending. Same as: `numpy.linalg.eigvalsh`."""
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a):
    """Eigenvalues and eigenvectors of a square matrix, complex. Same as: `numpy.linalg.eig`, always
    complex."""
    (a,) = _matrices("eig", a, is_square=True)
    values, vectors = lax_linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(values, vectors)


def eigvals(a):
    """Eigenvalues of a square matrix, complex. Same as: `numpy.linalg.eigvals`, always complex."""
    (a,) = _matrices("eigvals", a, is_square=True)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


# -- determinants and solvers -------------------------------------------------------------------------------
def slogdet(a, *, method: str | None = None):
    """Sign and logarithm of the magnitude of the determinant. Same as: `numpy.linalg.slogdet`."""
    (a,) = _matrices("slogdet", a, is_square=True)
    return SlogdetResult(*sign_and_logarithm(a))


def det(a):
    """Determinant. Same as: `numpy.linalg.det`."""
    (a,) = _matrices("det", a, is_square=True)
    return determinant(a)


def solve(a, b):
    """x with a x = b, for a square matrix a and a vector (b.ndim == 1) or matrices b. Same as:
    `numpy.linalg.solve`."""
    a, b = _matrices("solve", a, b, is_square=True)
    is_vector = b.ndim == 1
    b = lax.expand_dims(b, (1,)) if is_vector else b
    if b.ndim < 1 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"solve: the shapes {a.shape} and {b.shape} do not fit.")
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (broadcast_array(x, (*batch, *x.shape[-2:])) for x in (a, b))
    x = solve_factoring(a, b)
    return get_item(x, (Ellipsis, 0)) if is_vector else x


def inv(a):
    """Inverse of a square matrix. Same as: `numpy.linalg.inv`; a singular one gives infinities or NaN."""
    (a,) = _matrices("inv", a, is_square=True)
    return solve(a, broadcast_array(diagonals.eye(a.shape[-1], dtype=a.dtype), a.shape))


def pinv(a, rtol=None, hermitian: bool = False, *, rcond=None):
    """Pseudo-inverse; singular values up to rtol times the largest count as 0. Same as:
    `numpy.linalg.pinv`.

    rtol: a number, or one for each matrix."""
    (a,) = _matrices("pinv", a)
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 10.0 * max(a.shape[-2:]) * float(finfo(a.dtype).eps)
    if np.ndim(rtol):
        rtol = get_item(ensure_array("pinv", rtol), (Ellipsis, None))
    return _pseudo_inverse(a, rtol)


@functools.partial(custom_jvp, nondiff_argnums=1)
def _pseudo_inverse(a, rtol):
    u, s, vh = svd(a, full_matrices=False)
    limit = arithmetic.multiply(get_item(s, (Ellipsis, slice(0, 1))), rtol)
    s = apply_select(logic.greater(s, limit), s, s.dtype.type(np.inf))
    scaled = arithmetic.divide(_adjoint(u), convert_dtype(lax.expand_dims(s, (s.ndim,)), u.dtype))
    return matmul(_adjoint(vh), scaled)


@_pseudo_inverse.defjvp
def _jvp_pinv(rtol, primals, tangents):
    """Source: Golub, Pereyra: The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate (1973)."""
    (a,), (t,) = primals, tangents
    inverse = _pseudo_inverse(a, rtol)
    adjoint, t_adjoint = _adjoint(inverse), _adjoint(t)
    if a.shape[-2] >= a.shape[-1]:  # products of the smaller matrices first
        of_range = matmul(matmul(inverse, adjoint), t_adjoint)
        of_kernel = matmul(matmul(t_adjoint, adjoint), inverse)
        moved = matmul(matmul(inverse, t), inverse)
        return inverse, (of_range - matmul(matmul(of_range, a), inverse)) + (
            of_kernel - matmul(matmul(inverse, a), of_kernel)) - moved
    of_range = matmul(inverse, matmul(adjoint, t_adjoint))
    of_kernel = matmul(t_adjoint, matmul(adjoint, inverse))
    moved = matmul(inverse, matmul(t, inverse))
    return inverse, (of_range - matmul(of_range, matmul(a, inverse))) + (
        of_kernel - matmul(inverse, matmul(a, of_kernel))) - moved


def lstsq(a, b, rcond=None, *, numpy_resid: bool = False):
    """(x with the least squared residual, residuals, rank, singular values). Same as:
    `numpy.linalg.lstsq`."""
    a, b = _matrices("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(
            f"lstsq takes a matrix and a vector or matrix of as many rows, got {a.shape} and {b.shape}")
    columns = b if b.ndim == 2 else lax.expand_dims(b, (1,))
    if not a.size:
        x = lax.full((a.shape[1], columns.shape[1]), 0, a.dtype)
        s, rank = lax.full((0,), 0, finfo(a.dtype).dtype), lax.full((), 0, dtypes.default_dtype("i"))
        residuals = reductions.sum(arithmetic.square(arithmetic.absolute(columns)), 0)
        if numpy_resid and a.shape[0] <= a.shape[1]:
            residuals = get_item(residuals, slice(0, 0))
        return (shaping.ravel(x) if b.ndim == 1 else x), residuals, rank, s
    u, s, vh = svd(a, full_matrices=False)
    if rcond is None or (isinstance(rcond, (int, float)) and rcond < 0):
        rcond = float(finfo(a.dtype).eps) * (max(a.shape) if rcond is None else 1)
    least = arithmetic.multiply(rcond, get_item(s, slice(0, 1)))
    kept = logic.logical_and(logic.greater(s, 0), logic.greater_equal(s, least))
    safe = apply_select(kept, s, s.dtype.type(1))
    inverse = apply_select(kept, arithmetic.divide(s.dtype.type(1), safe), s.dtype.type(0))
    projected = matmul(_adjoint(u), columns)
    x = matmul(_adjoint(vh),
               arithmetic.multiply(convert_dtype(lax.expand_dims(inverse, (1,)), u.dtype), projected))
    rank = reductions.sum(kept)
    residual = arithmetic.square(arithmetic.absolute(arithmetic.subtract(columns, matmul(a, x))))
    residuals = reductions.sum(residual, 0)
    if numpy_resid and (int(rank) < a.shape[1] or a.shape[0] <= a.shape[1]):
        residuals = get_item(residuals, slice(0, 0))
    return (shaping.ravel(x) if b.ndim == 1 else x), residuals, rank, s


# -- norms --------------------------------------------------------------------------------------------------
def norm(x, ord=None, axis=None, keepdims: bool = False):
    """Norm of vectors (one axis) or matrices (two axes); all elements by default. Same as:
    `numpy.linalg.norm`.

    ord: None, numbers, inf, -inf; for matrices also "fro" and "nuc"."""
    (x,) = promote_arrays("norm", x, to=dtypes.inexact_dtype)
    if axis is None and ord is None:
        return _euclidean(x, None, keepdims)
    axes = canonicalize_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: {axes}")


def _euclidean(x, axes, keepdims: bool) -> Array:
    squares = arithmetic.square(x)
    if dtypes.is_complex(x.dtype):
        squares = arithmetic.add(arithmetic.square(arithmetic.real(x)), arithmetic.square(arithmetic.imag(x)))
    return arithmetic.sqrt(reductions.sum(squares, axes, keepdims=keepdims))


def _vector_norm(x, ord, axes, keepdims: bool) -> Array:
    magnitude = arithmetic.absolute(x)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    if ord == np.inf:
        return reductions.max(magnitude, axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return reductions.min(magnitude, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(logic.not_equal(x, 0), axes, dtype=magnitude.dtype, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(magnitude, axes, keepdims=keepdims)
    if ord == 2:
        return _euclidean(x, axes, keepdims)
    total = reductions.sum(arithmetic.power(magnitude, ord), axes, keepdims=keepdims)
    return arithmetic.power(total, 1.0 / ord)


def _matrix_norm(x, ord, axes, keepdims: bool) -> Array:
    rows, columns = axes
    if ord in (None, "fro"):
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = reductions.sum(arithmetic.absolute(x), summed, keepdims=True)
        out = (reductions.max(sums, other, keepdims=True, initial=0) if ord > 0
               else reductions.min(sums, other, keepdims=True))
        return out if keepdims else lax.squeeze(out, axes)
    if ord in (2, -2, "nuc"):
        values = svd(shaping.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        out = (reductions.sum(values, -1) if ord == "nuc"
               else reductions.max(values, -1, initial=0) if ord == 2 else reductions.min(values, -1))
        return lax.expand_dims(out, sorted(axes)) if keepdims else out
    raise ValueError(f"Invalid order '{ord}' for matrix norm.")


def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2):
    """Norm of vectors along axes (all elements by default). Same as: `numpy.linalg.vector_norm`."""
    x = ensure_array("vector_norm", x)
    if not dtypes.is_inexact(x.dtype):
        dtypes.reject_narrow("vector_norm", x.dtype)
        x = convert_dtype(x, dtypes.canonicalize_for(float, x.dtype))
    return _vector_norm(x, ord, canonicalize_axes(axis, x.ndim), keepdims)


def outer(x1, x2, /):
    """All products of the elements of two vectors. Same as: `numpy.linalg.outer`.

    Raises: ValueError for what is no vector, which `jitcore.numpy.outer` flattens."""
    x1, x2 = ensure_arrays("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer takes two vectors, got arrays of shapes {x1.shape} and {x2.shape}")
    return products.outer(x1, x2)


def cross(x1, x2, /, *, axis: int = -1):
    """Cross products of vectors of three elements along an axis. Same as: `numpy.linalg.cross`.

    Raises: ValueError for vectors of another length."""
    x1, x2 = ensure_arrays("cross", x1, x2)
    lengths = [x.shape[canonicalize_axis(axis, x.ndim)] for x in (x1, x2)]
    if lengths != [3, 3]:
        raise ValueError(f"cross takes vectors of 3 elements, got {lengths[0]} and {lengths[1]}")
    return products.cross(x1, x2, axis=axis)


def matrix_norm(x, /, *, keepdims: bool = False, ord="fro"):
    """Norm of the matrices in the last two axes. Same as: `numpy.linalg.matrix_norm`."""
    return norm(x, ord, (-2, -1), keepdims)


def cond(x, p=None):
    """Condition number: the norm times the norm of the inverse. Same as: `numpy.linalg.cond`."""
    (x,) = _matrices("cond", x)
    if 0 in x.shape:
        raise ValueError(f"cond is not defined for empty arrays, got shape {x.shape}")
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        first, last = get_item(values, (Ellipsis, 0)), get_item(values, (Ellipsis, -1))
        return arithmetic.divide(last, first) if p == -2 else arithmetic.divide(first, last)
    return arithmetic.multiply(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))


def matrix_rank(M, rtol=None, *, hermitian: bool = False, tol=None):
    """Number of singular values above rtol, whose other name is tol. Same as: `jax.numpy.linalg.matrix_rank`.

    Args:
        rtol: by default the largest singular value times the larger extent times the resolution of the dtype.
        hermitian: whether M equals its adjoint, which is not used here.
    Raises: ValueError for both names."""
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    M = ensure_array("matrix_rank", M)
    if M.ndim < 2:
        return convert_dtype(reductions.any(logic.not_equal(M, 0)), dtypes.int32)
    s = svd(M, full_matrices=False, compute_uv=False)
    rtol = tol if rtol is None else rtol
    if rtol is None:
        share = max(M.shape[-2:]) * float(finfo(s.dtype).eps)
        limit = arithmetic.multiply(reductions.max(s, -1, keepdims=True), share)
    else:
        limit = lax.expand_dims(asarray(rtol), (np.ndim(rtol),))
    return reductions.sum(logic.greater(s, limit), -1)


# -- products -----------------------------------------------------------------------------------------------
def matrix_power(a, n: int):
    """a multiplied n times by itself, its inverse for negative n. Same as: `numpy.linalg.matrix_power`."""
    a, n = ensure_array("matrix_power", a), operator.index(n)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise TypeError(f"{a.ndim}-dimensional array given: last 2 dimensions of the array must be square")
    if n == 0:
        return broadcast_array(diagonals.eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = inv(a), -n
    result = None
    while n:
        if n & 1:
            result = a if result is None else matmul(result, a)
        n >>= 1
        a = matmul(a, a) if n else a
    return result


def multi_dot(arrays, *, precision=None):
    """Product of several matrices in the cheapest order; vectors may stand at both ends. Same as:
    `numpy.linalg.multi_dot`."""
    arrays = [ensure_array("multi_dot", x, i) for i, x in enumerate(arrays)]
    if len(arrays) < 2:
        raise ValueError("multi_dot requires at least two inputs")
    labels = "abcdefghijklmnopqrstuvwxyz"
    terms, position = [], 0
    for i, x in enumerate(arrays):
        if x.ndim == 1:
            terms.append(labels[position])
            position += 0 if i == 0 else 1
        elif x.ndim == 2:
            terms.append(labels[position : position + 2])
            position += 1
        else:
            raise ValueError(f"multi_dot: all inputs must be 1D or 2D, got {x.ndim}D")
    left = terms[0][0] if arrays[0].ndim == 2 else ""
    right = terms[-1][-1] if arrays[-1].ndim == 2 else ""
    return products.einsum(f"{','.join(terms)}->{left}{right}", *arrays, precision=precision)


def trace(x, /, *, offset: int = 0, dtype=None):
    """Sum of the diagonal of the last two axes. Same as: `numpy.linalg.trace`."""
    return diagonals.trace(x, offset, -2, -1, dtype)


def diagonal(x, /, *, offset: int = 0):
    """The diagonal of the last two axes. Same as: `numpy.linalg.diagonal`."""
    return diagonals.diagonal(x, offset, -2, -1)


def tensorsolve(a, b, axes=None):
    """x with tensordot(a, x, x.ndim) = b. Same as: `numpy.linalg.tensorsolve`."""
    a, b = promote_arrays("tensorsolve", a, b, to=dtypes.inexact_dtype)
    if axes is not None:
        a = shaping.moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    size = 1
    for extent in shape:
        size = size * extent
    return lax.reshape(solve(lax.reshape(a, (size, size)), lax.reshape(b, (b.size,))), shape)


def tensorinv(a, ind: int = 2):
    """Inverse of tensordot over `ind` axes. Same as: `numpy.linalg.tensorinv`."""
    a = ensure_array("tensorinv", a)
    shape = a.shape[ind:] + a.shape[:ind]
    size = 1
    for extent in a.shape[:ind]:
        size = size * extent
    return lax.reshape(inv(lax.reshape(a, (size, size))), shape)


__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
           "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot",
           "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv",
           "tensorsolve", "trace", "vecdot", "vector_norm"]
