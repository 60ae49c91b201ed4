"""Products, factors and solutions of matrices of known form: symmetric products, a Cholesky factor after a
change of rank one, tridiagonal systems, the polar decomposition; and the names of algorithms.

In: float or complex matrices (32 or 64 bit); leading axes are a batch. Out: matrices. Made of other
primitives, so that each has derivatives and runs on every backend.
"""

from __future__ import annotations

import enum

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.core.primitive import registry
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_loop import fori_loop, while_loop
from jitcore.lax.define import to_operands
from jitcore.lax.elementwise import conj, select_n
from jitcore.lax.joining import concatenate
from jitcore.lax.linalg.checks import check_matrix
from jitcore.lax.linalg.derivatives import conjugate_transpose, multiply, transpose_matrix
from jitcore.lax.linalg.reflections import jnp, over_batch
from jitcore.lax.shape import full_like, iota

__all__ = ["EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky_update", "qdwh",
           "symmetric_product", "tridiagonal_solve"]


# -- names of algorithms
# --------------------------------------------------------------------------------------
class EigImplementation(enum.Enum):
    """Who computes `eig`: LAPACK, whichever is asked for. Source: jax.lax.linalg."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How `eigh` is computed: as the backend does it, whichever is asked for. Source: jax.lax.linalg."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """How `svd` is computed: as the backend does it, whichever is asked for. Source: jax.lax.linalg."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# -- products and factors
# -------------------------------------------------------------------------------------
def symmetric_product(a_matrix, c_matrix, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Array:
    """alpha a @ a^T + beta c.

    Args:
        a_matrix: [..., m, n]. c_matrix: [..., m, m], symmetric. symmetrize_output: copy the lower triangle of
            the result to the upper one.

    Returns: [..., m, m]. Raises: ValueError for shapes that do not fit. Error: that of a matrix product.
    Example: of `[[1.0, 2.0]]` and `[[1.0]]` with beta 2 it is `[[7.0]]`. Source: BLAS, xSYRK."""
    a, c = to_operands("symmetric_product", (a_matrix, c_matrix))
    check_matrix("symmetric_product", aval_of(a))
    check_matrix("symmetric_product", aval_of(c), square=True)
    if (*aval_of(a).shape[:-1], aval_of(a).shape[-2]) != aval_of(c).shape:
        raise ValueError(f"symmetric_product got shapes that differ: {aval_of(a).shape}, {aval_of(c).shape}")
    a, c = jnp.asarray(a), jnp.asarray(c)
    product = multiply(a, transpose_matrix(a)) * alpha + c * beta
    if not symmetrize_output:
        return product
    rows = iota(np.int32, product.shape[-1])
    lower = np.broadcast_to(np.arange(len(rows))[:, None] >= np.arange(len(rows)), product.shape)
    return select_n(lower, transpose_matrix(product), product)


def cholesky_update(r_matrix, w_vector) -> Array:
    """The upper triangular R' with R'^H R' = R^H R + w w^H, by rotations, in O(n**2).

    Args:
        r_matrix: [..., n, n], upper triangular with a positive diagonal. w_vector: [..., n].

    Returns: [..., n, n]. Error: a few ulp times n of the norm. Example: of `[[3.0]]` and `[4.0]` it is
    `[[5.0]]`.
    Source: Golub and Van Loan: Matrix Computations, section 6.5.4."""
    r, w = to_operands("cholesky_update", (r_matrix, w_vector))
    check_matrix("cholesky_update", aval_of(r), square=True)
    if aval_of(w).shape != aval_of(r).shape[:-1]:
        raise ValueError(f"cholesky_update got shapes that differ: {aval_of(r).shape}, {aval_of(w).shape}")

    def run(r, w):
        def rotate(k, state):
            r, w = state
            row, top, side = r[k], r[k, k], w[k]
            length = (abs(top) ** 2 + abs(side) ** 2) ** 0.5
            w, row = (top * w - side * row) / length, (top.conj() * row + side.conj() * w) / length
            return r.at[k].set(row), w.at[k].set(0)

        return fori_loop(0, r.shape[0], rotate, (r, conj(w) if dtypes.is_complex(w.dtype) else w))[0]

    return over_batch(run, 2, 1)(r, w)


# -- tridiagonal systems
# --------------------------------------------------------------------------------------
def tridiagonal_solve(dl, d, du, b, *, perturb_singular: bool = False) -> Array:
    """The solution of a tridiagonal system, by elimination with pivoting of rows.

    Args:
        dl, d, du: [..., m]: `dl[i]` is the entry of row i left of the diagonal (`dl[0]` is not read), `du[i]`
            right of it (`du[m - 1]` is not read). b: [..., m, k].
        perturb_singular: whether pivots that vanish are taken as the machine epsilon times the largest entry.

    Returns: [..., m, k]. Raises: ValueError for shapes that do not fit. Error: backward stable, as LU.
    Example: of `dl = [0, 1]`, `d = [2, 2]`, `du = [1, 0]` and `b = [[3], [3]]` it is `[[1], [1]]`.
    Source: LAPACK, xGTSV."""
    dl, d, du, b = to_operands("tridiagonal_solve", (dl, d, du, b))
    shapes = [aval_of(x).shape for x in (dl, d, du)]
    if len(set(shapes)) > 1 or aval_of(b).shape[:-1] != shapes[0]:
        raise ValueError(f"tridiagonal_solve got shapes that do not fit: {shapes}, {aval_of(b).shape}")

    def run(dl, d, du, b):
        if not d.shape[0]:
            return b
        du = du.at[-1].set(0)
        zero = full_like(d[0], 0)

        def eliminate(row, below):
            p, q, r, y = row
            left, middle, right, wanted = below
            swap = abs(left) > abs(p)
            one = (p, q, r, y), (left, middle, right, wanted)
            (p, q, r, y), (p2, q2, r2, y2) = ([_choose(swap, a, b) for a, b in zip(*pair)]
                                              for pair in (one, one[::-1]))
            factor = select_n(p2 == 0, p2 / select_n(p == 0, p, full_like(p, 1)), full_like(p, 0))
            return (q2 - factor * q, r2 - factor * r, zero, y2 - factor * y), (p, q, r, y)

        first = d[0], du[0], zero, b[0]
        last, rows = scan(eliminate, first, (dl[1:], d[1:], du[1:], b[1:]))
        p, q, r, y = (concatenate([many, one[None]], 0) for many, one in zip(rows, last))
        if perturb_singular:
            largest = abs(concatenate([p, q, r], 0)).max()
            least = select_n(largest == 0, largest, full_like(largest, 1)) * np.finfo(p.dtype).eps
            p = select_n(abs(p) < least, p, select_n(p.real < 0, full_like(p, 1), full_like(p, -1)) * least)

        def substitute(known, row):
            p, q, r, y = row
            x = (y - q * known[0] - r * known[1]) / p
            return (x, known[0]), x

        nothing = full_like(b[0], 0)
        return scan(substitute, (nothing, nothing), (p, q, r, y), reverse=True)[1]

    return over_batch(run, 1, 1, 1, 2)(dl, d, du, b)


def _choose(which, x, y):
    return select_n(which, x, y)


# -- polar decomposition
# --------------------------------------------------------------------------------------
def qdwh(x, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
         dynamic_shape: tuple[int, int] | None = None) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u @ h, with orthonormal columns of u and h Hermitian, not negative, by
    Halley's iteration with dynamic weights and QR decompositions.

    Args:
        x: [m, n] of full rank, m >= n. is_hermitian: accepted for JAX's signature, without effect.
        max_iterations: 10 by default. eps: the machine epsilon by default; the iteration ends when u changes
            by less than the cube root of 4 eps of its norm and the bound of the least singular value is 1.
            dynamic_shape: how much of x counts, from its first corner.

    Returns: (u [m, n], h [n, n], iterations int32, whether they converged).
    Raises: ValueError for m < n. Error: a few ulp times n. Example: of `[[-2.0]]` u is `[[-1.0]]` and h
    `[[2.0]]`.
    Source: Nakatsukasa, Bai and Gygi: Optimizing Halley's iteration, SIAM J. Matrix Anal. Appl. 31 (2010)."""
    x = jnp.asarray(x)
    check_matrix("qdwh", aval_of(x))
    m, n = aval_of(x).shape
    if m < n:
        raise ValueError("The input matrix of shape M x N must have M >= N.")
    rows, columns = iota(np.int32, m), iota(np.int32, n)
    counted = True
    if dynamic_shape is not None:
        counted = (rows < dynamic_shape[0])[:, None] & (columns < dynamic_shape[1])
        x = select_n(counted, full_like(x, 0), x)
    real = dtypes.real_dtype(aval_of(x).dtype)
    epsilon = real.type(np.finfo(real).eps)
    limit = real.type((4 * (float(epsilon) if eps is None else eps)) ** (1 / 3))
    unit = (columns[:, None] == columns).astype(aval_of(x).dtype)
    norm = (abs(x).sum(0).max() * abs(x).sum(1).max()) ** 0.5
    start = x / select_n(norm == 0, norm, full_like(norm, 1))

    def iterate(state):
        u, least, _, count = state
        square = least * least
        d = (4 * (1 - square) / (square * square)) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (8 - 4 * d + 8 * (2 - square) / (square * root)) ** 0.5 / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        stacked = concatenate([u * c**0.5, unit], 0)
        q = registry["qr"].bind(stacked, pivoting=False, full_matrices=False)[0]
        new = u * (b / c) + multiply(q[:m], conjugate_transpose(q[m:])) * ((a - b / c) / c**0.5)
        if counted is not True:
            new = select_n(counted, full_like(new, 0), new)
        change = (abs(new - u) ** 2).sum() ** 0.5 > limit * (abs(new) ** 2).sum() ** 0.5
        least = least * (a + b * square) / (1 + c * square)
        least = select_n(least > 1, least, full_like(least, 1))
        return new, least, change | (1 - least > 10 * epsilon), count + 1

    most = 10 if max_iterations is None else max_iterations
    state = start, full_like(norm, epsilon), full_like(norm, True, np.bool_), full_like(columns, 0, shape=())
    u, _, moves, count = while_loop(lambda state: state[2] & (state[3] < most), iterate, state)
    h = multiply(conjugate_transpose(u), x)
    return u, (h + conjugate_transpose(h)) / 2, count, ~moves
