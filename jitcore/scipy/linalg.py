"""Dense linear algebra with SciPy's names and arguments (`jitcore.scipy.linalg`).

In: matrices, [..., n, n] where batches make sense. Out: factors and solutions. What `jitcore.numpy.linalg`
has under the same name and arguments stands there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.lax import cond, linalg as lax_linalg, scan
from jitcore.lax.linalg import triangular_solve
from jitcore.lax.linalg.solve import solve_positive
from jitcore.lax.shape import broadcast_in_dim
from jitcore.numpy.arrays.promotion import promote_arrays
from jitcore.scipy import matrix_functions, special_matrices
from jitcore.scipy.matrix_functions import *  # noqa: F403
from jitcore.scipy.special_matrices import *  # noqa: F403
from jitcore.transforms.forward import jvp

__all__ = ["block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "expm", "expm_frechet", "inv",
           "lu", "lu_factor", "lu_solve", "polar", "qr", "schur", "solve", "solve_triangular", "svd",
           *matrix_functions.__all__, *special_matrices.__all__]

_TRANSPOSED = {0: (False, False), "N": (False, False), 1: (True, False), "T": (True, False), 2: (True, True),
               "C": (True, True)}


def _promote(name: str, *args) -> list[Array]:
    return promote_arrays(name, *args, to=dtypes.inexact_dtype)


# -- Cholesky ---------------------------------------------------------------------------------------------
def cholesky(a, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The triangular factor, upper by default, of a positive definite matrix; NaN for another.

    overwrite_a, check_finite: accepted for SciPy's signature, without effect."""
    (a,) = _promote("cholesky", jnp.asarray(a))
    if lower:
        return lax_linalg.cholesky(a, symmetrize_input=False)
    factor = lax_linalg.cholesky(lax_linalg.conjugate_transpose(a), symmetrize_input=False)
    return lax_linalg.conjugate_transpose(factor)


def cho_factor(a, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:
    """(triangular factor, lower), for `cho_solve`."""
    return cholesky(a, lower=lower), lower


def cho_solve(c_and_lower: tuple, b, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """Solves a @ x = b by the factor of a that `cho_factor` gave."""
    factor, lower = c_and_lower
    factor, b = _promote("cho_solve", factor, b)
    if b.ndim == 1 and factor.ndim > 2:
        return cho_solve((factor, lower), b[:, None])[..., 0]
    first = solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(factor, first, trans=2 if lower else 0, lower=lower)


# -- solving ----------------------------------------------------------------------------------------------
def solve_triangular(a, b, trans=0, lower: bool = False, unit_diagonal: bool = False,
                     overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """Solves op(a) @ x = b for a triangular matrix a.

    Args:
        a: [..., n, n], of which one triangle is read.
        b: [n], or [..., n, m].
        trans: 0 or "N" (a itself), 1 or "T" (transposed), 2 or "C" (conjugate transposed).
        lower: whether a's lower triangle is read.
        unit_diagonal: take the diagonal as ones.
    Raises: ValueError for another `trans`."""
    if trans not in _TRANSPOSED:
        raise ValueError(f"Invalid 'trans' value {trans}")
    a, b = _promote("solve_triangular", a, b)
    transpose, conjugate = _TRANSPOSED[trans]
    return _solve_columns(lambda a, b: triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=transpose, conjugate_a=conjugate,
        unit_diagonal=unit_diagonal), a, b)


def _solve_columns(solve: Callable, a: Array, b: Array) -> Array:
    """`solve` of matrices of one batch; b may be one vector."""
    columns = b[:, None] if b.ndim == 1 else b
    batch = jnp.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    x = solve(*(jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, columns)))
    return x[..., 0] if b.ndim == 1 else x


def solve(a, b, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
          debug: bool = False, check_finite: bool = True, assume_a: str = "gen") -> Array:
    """Solves a @ x = b.

    Args:
        assume_a: "pos" for a positive definite matrix, of which `lower` names the triangle that is read;
            "gen", "sym" and "her" use an LU factorisation.
    Raises: ValueError for another `assume_a`."""
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}")
    a, b = _promote("solve", a, b)
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    return _solve_columns(functools.partial(solve_positive, lower=lower), a, b)


def lu_factor(a, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """(both factors in one matrix, pivots), for `lu_solve`."""
    (a,) = _promote("lu_factor", jnp.asarray(a))
    factors, pivots, _ = lax_linalg.lu(a)
    return factors, pivots


def lu_solve(lu_and_piv: tuple, b, trans: int = 0, overwrite_b: bool = False,
             check_finite: bool = True) -> Array:
    """Solves op(a) @ x = b by what `lu_factor` gave; `trans` as in `solve_triangular`.

    Raises: ValueError for another `trans`."""
    factors, pivots = lu_and_piv
    factors, b = _promote("lu_solve", factors, b)
    if factors.ndim == 2 and (not b.ndim or b.shape[0] != factors.shape[-1]):
        raise ValueError(f"lu_solve needs a row of b for each of a, got {factors.shape} and {b.shape}")
    order = lax_linalg.lu_pivots_to_permutation(pivots, factors.shape[-1])
    if trans == 0:
        first = solve_triangular(factors, jnp.take(b, order, 0), lower=True, unit_diagonal=True)
        return solve_triangular(factors, first)
    first = solve_triangular(factors, b, trans=trans)
    x = solve_triangular(factors, first, trans=trans, lower=True, unit_diagonal=True)
    return jnp.take(x, jnp.argsort(order), 0)


# -- factorisations ---------------------------------------------------------------------------------------
def lu(a, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """(P, L, U) with a = P @ L @ U, or (P @ L, U) with permute_l."""
    (a,) = _promote("lu", a)
    factors, _, order = lax_linalg.lu(a)
    rows, columns = a.shape[-2:]
    k = min(rows, columns)
    unit = jnp.broadcast_to(jnp.eye(rows, k, dtype=a.dtype), (*a.shape[:-2], rows, k))
    lower = jnp.tril(factors[..., :, :k], -1) + unit
    upper = jnp.triu(factors)[..., :k, :]
    permutation = jnp.asarray(order[..., None, :] == jnp.arange(rows)[:, None], dtypes.real_dtype(a.dtype))
    if permute_l:
        return jnp.matmul(jnp.asarray(permutation, a.dtype), lower), upper
    return permutation, lower, upper


def qr(a, overwrite_a: bool = False, lwork=None, mode: str = "full", pivoting: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:
    """(Q, R), with the pivots as a third where `pivoting`. mode: "full", "economic", or "r" for (R,).

    Raises: ValueError for another mode."""
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    (a,) = _promote("qr", a)
    factors = lax_linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return factors[1:] if mode == "r" else tuple(factors)


def svd(a, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
        check_finite: bool = True, lapack_driver: str = "gesdd"):
    """(U, singular values, V^H), or the values alone."""
    (a,) = _promote("svd", a)
    return jnp.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def eigh(a, b=None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
         overwrite_b: bool = False, turbo: bool = True, eigvals=None, type: int = 1,
         check_finite: bool = True):
    """(eigenvalues, eigenvectors) of a symmetric or Hermitian matrix, or the values alone.

    Raises: NotImplementedError for a generalised problem (b) or a selection (eigvals)."""
    if b is not None or eigvals is not None or type != 1:
        raise NotImplementedError("Only the b=None, eigvals=None, type=1 case of eigh is implemented")
    (a,) = _promote("eigh", a)
    vectors, values = lax_linalg.eigh(a, lower=lower)
    return values if eigvals_only else (values, vectors)


def inv(a, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Inverse matrix."""
    return jnp.linalg.inv(a)


def det(a, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Determinant."""
    return jnp.linalg.det(a)


def block_diag(*arrays) -> Array:
    """The matrices along the diagonal of one matrix that is 0 elsewhere.

    Raises: ValueError for more than two axes."""
    blocks = [jnp.atleast_2d(array) for array in arrays or ([[]],)]
    if any(block.ndim > 2 for block in blocks):
        raise ValueError("arguments to block_diag must have at most two dimensions")
    dtype = jnp.result_type(*blocks)
    width = sum(block.shape[1] for block in blocks)
    rows, left = [], 0
    for block in blocks:
        right = width - left - block.shape[1]
        rows.append(jnp.pad(jnp.asarray(block, dtype), ((0, 0), (left, right))))
        left += block.shape[1]
    return jnp.concatenate(rows, axis=0)


# -- matrix exponential -----------------------------------------------------------------------------------
_PADE_ORDER = 13
# Largest 1-norm for which the approximant of order 13 is accurate to double precision.
# Source: Higham: The scaling and squaring method for the matrix exponential revisited (2005).
_LARGEST_NORM = 5.371920351148152


def expm(A, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:  # noqa: N803  SciPy's name
    """Matrix exponential, by scaling and squaring with a Padé approximant of order 13.

    Args:
        A: [..., n, n].
        upper_triangular: accepted for JAX's signature, without effect.
        max_squarings: matrices that would need more give NaN.
    Raises: ValueError for a matrix that is not square."""
    (a,) = _promote("expm", A)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError("expected A to be a square matrix")
    norm = jnp.max(jnp.sum(jnp.abs(a), axis=-2), axis=-1, initial=0)
    squarings = jnp.maximum(0, jnp.ceil(jnp.log2(norm / _LARGEST_NORM)))
    scale = jnp.exp2(-squarings)
    result = _approximate_exponential(a * jnp.asarray(_over_matrices(scale, a), a.dtype))

    def square(result, i):
        wanted = squarings > i
        return cond(jnp.any(wanted), lambda: jnp.where(
            _over_matrices(wanted, a), jnp.matmul(result, result), result), lambda: result), None

    result, _ = scan(square, result, jnp.arange(max_squarings))
    return jnp.where(_over_matrices(squarings > max_squarings, a), math.nan, result)


def _over_matrices(value: Array, a: Array) -> Array:
    """One value per matrix, in the shape of the matrices."""
    return broadcast_in_dim(value, a.shape, range(a.ndim - 2))


def _approximate_exponential(a: Array) -> Array:
    """The diagonal Padé approximant: (even - odd)**-1 @ (even + odd) parts of a polynomial.

    Source: Higham, as above, eq. (2.12): powers up to the sixth take six products."""
    n = _PADE_ORDER
    weights = [math.factorial(2 * n - k) * math.comb(n, k) / math.factorial(2 * n) for k in range(n + 1)]
    identity = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    second = jnp.matmul(a, a)
    fourth = jnp.matmul(second, second)
    sixth = jnp.matmul(fourth, second)

    def add_up(first):
        """The sum of the even powers of a, times every other weight from `first` on."""
        low, *high = (weights[k] * power for k, power in zip(
            range(first, n + 1, 2), (identity, second, fourth, sixth, second, fourth, sixth)))
        return jnp.matmul(sixth, sum(high[3:])) + (low + sum(high[:3]))

    even, odd = add_up(0), jnp.matmul(a, add_up(1))
    return jnp.linalg.solve(even - odd, even + odd)


def expm_frechet(A, E, *, method: str | None = None,  # noqa: N803  SciPy's names
                 compute_expm: bool = True) -> Array | tuple[Array, Array]:
    """(`expm(A)`, its derivative in the direction E); the derivative alone unless compute_expm.

    Args:
        A, E: [..., n, n]. method: accepted for SciPy's signature, without effect.

    Raises: ValueError for shapes that differ. Source: scipy.linalg.expm_frechet."""
    a, direction = _promote("expm_frechet", A, E)
    if a.shape != direction.shape:
        raise ValueError(f"expected A and E to be the same shape, got {a.shape} and {direction.shape}")
    exponential, derivative = jvp(expm, (a,), (direction,))
    return (exponential, derivative) if compute_expm else derivative


# -- other factorisations ---------------------------------------------------------------------------------
def polar(a, side: str = "right", *, method: str = "svd", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:
    """(u, p) with orthonormal u and positive semidefinite p: a = u @ p, or p @ u for the side "left".

    Args:
        a: [n, m]. method, eps, max_iterations: accepted for JAX's signature; the factors come from an SVD.

    Raises: ValueError for another side. Source: scipy.linalg.polar."""
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    (a,) = _promote("polar", a)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    unitary = u @ vh
    if side == "right":
        return unitary, jnp.conjugate(jnp.swapaxes(vh, -1, -2)) @ (s[..., :, None] * vh)
    return unitary, (u * s[..., None, :]) @ jnp.conjugate(jnp.swapaxes(u, -1, -2))


def schur(a, output: str = "real") -> tuple[Array, Array]:
    """(t, z) with t upper triangular, in blocks of up to 2 for real matrices, and unitary z: a = z @ t @ z^H.

    Args:
        a: [..., n, n]. output: "complex" makes a complex first, so that t is triangular.

    Raises: ValueError for another output. Source: scipy.linalg.schur."""
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output}.")
    (a,) = _promote("schur", a)
    if output == "complex":
        (a,) = promote_arrays("schur", a, to=lambda dtype: dtypes.result_type(dtype, dtypes.complex64))
    return tuple(lax_linalg.schur(a))
