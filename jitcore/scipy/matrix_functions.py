"""Functions of matrices and what they are made of, under SciPy's names (`jitcore.scipy.linalg`): Schur forms,
square roots, Sylvester's equation, Hessenberg forms, eigenvalues of tridiagonal matrices.

In: matrices, [..., n, n]. Out: matrices. Loops over columns or diagonals, with products of matrices inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.array import Array
from jitcore.lax import linalg as lax_linalg
from jitcore.lax.linalg.reflections import over_batch
from jitcore.lax.shape import stop_gradient
from jitcore.numpy.arrays.promotion import promote_arrays
from jitcore.transforms.custom_derivatives import custom_jvp

__all__ = ["eigh_tridiagonal", "funm", "hessenberg", "qr_multiply", "rsf2csf", "solve_sylvester", "sqrtm"]


def _promote(name: str, *args) -> list[Array]:
    return promote_arrays(name, *args, to=dtypes.inexact_dtype)


def _promote_squares(name: str, *args) -> list[Array]:
    arrays = _promote(name, *args)
    for a in arrays:
        if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise ValueError(f"expected {name} to be given square matrices, got shape {a.shape}")
    return arrays


def _adjoint(a) -> Array:
    return jnp.conjugate(jnp.swapaxes(a, -1, -2))


def _complex_schur(a) -> tuple[Array, Array]:
    """(T, Z) with a triangular T, which is no function of `a` to derivatives."""
    return tuple(lax_linalg.schur(stop_gradient(jnp.asarray(a, dtypes.complex_dtype(a.dtype)))))


# -- orthogonal forms
# -----------------------------------------------------------------------------------------
def hessenberg(a, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """The upper Hessenberg form h of a matrix: a = q @ h @ q^H.

    Args:
        a: [..., n, n]. calc_q: whether to return (h, q). overwrite_a, check_finite: accepted, without effect.

    Returns: h [..., n, n], and unitary q of its shape. Error: a few ulp times n of the norm.
    Raises: ValueError for a matrix that is not square. Example: a matrix of two rows is its own form.
    Source: scipy.linalg.hessenberg."""
    (a,) = _promote_squares("hessenberg", a)
    n = a.shape[-1]
    unit = jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
    if n < 3:
        return (a, unit) if calc_q else a
    packed, taus = lax_linalg.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    inner = lax_linalg.householder_product(packed[..., 1:, :-1], taus)
    return h, unit.at[..., 1:, 1:].set(inner)


def qr_multiply(a, c, mode: str = "right", pivoting: bool = False, conjugate: bool = False,
                overwrite_a: bool = False, overwrite_c: bool = False) -> tuple[Array, ...]:
    """The QR decomposition of a matrix, and a product with its Q.

    Args:
        a: [..., m, n]. c: a vector, or [..., k, p] for the mode "left", [..., p, m] for "right"; k is min(m,
            n).
        mode: "left" for Q @ c, "right" for c @ Q. pivoting: whether to return the order of the columns too.
        conjugate: Q conjugated. overwrite_a, overwrite_c: accepted, without effect.

    Returns: (product, R [..., k, n]) and, pivoting, the order int32[..., n].
    Raises: ValueError for another mode. Error: a few ulp times m.
    Example: of the unit matrix and c it is (c, the unit matrix) but for signs. Source:
    scipy.linalg.qr_multiply."""
    if mode not in ("left", "right"):
        raise ValueError(f"Mode argument should be either 'left' or 'right', got {mode!r}")
    a, c = _promote("qr_multiply", a, c)
    q, r, *order = lax_linalg.qr(a, pivoting=pivoting, full_matrices=False)
    q = jnp.conjugate(q) if conjugate else q
    return (q @ c if mode == "left" else c @ q), r, *order


def rsf2csf(T, Z, check_finite: bool = True) -> tuple[Array, Array]:  # noqa: N803  SciPy's names
    """The complex Schur form of a real one, by a rotation for each block of two.

    Args:
        T: [..., n, n], in blocks of up to 2; Z: [..., n, n], unitary. check_finite: accepted, without effect.

    Returns: (triangular T, Z), complex, with the same Z @ T @ Z^H. Raises: ValueError for other shapes.
    Error: a few ulp times n of the norm. Example: a triangular T stays as it is. Source:
    scipy.linalg.rsf2csf."""
    t, z = _promote_squares("rsf2csf", T, Z)
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}")
    shape = jnp.broadcast_shapes(t.shape, z.shape)
    t, z = (jnp.asarray(jnp.broadcast_to(x, shape), dtypes.complex_dtype(x.dtype)) for x in (t, z))
    return over_batch(_rotate_to_triangle, 2, 2)(t, z)


def _rotate_to_triangle(t: Array, z: Array) -> tuple[Array, Array]:
    n = t.shape[0]
    if n < 2:
        return t, z
    real = dtypes.real_dtype(t.dtype)
    epsilon = real.type(np.finfo(real).eps)

    def rotate(i, state):
        t, z = state
        m = n - 1 - i
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        (a, b), (c, d) = block
        half = (a - d) / 2
        root = jnp.sqrt(half * half + b * c)
        mu = half + jnp.where(jnp.real(half * jnp.conjugate(root)) < 0, -root, root)
        wanted = jnp.abs(c) > epsilon * (jnp.abs(a) + jnp.abs(d))
        r = jnp.sqrt(jnp.square(jnp.abs(mu)) + jnp.square(jnp.abs(c)))
        cosine = jnp.where(wanted, mu / jnp.where(wanted, r, 1), 1)
        sine = jnp.where(wanted, c / jnp.where(wanted, r, 1), 0)
        turn = jnp.stack([jnp.stack([jnp.conjugate(cosine), sine]), jnp.stack([-sine, cosine])])
        rows = turn @ lax.dynamic_slice(t, (m - 1, 0), (2, n))
        t = lax.dynamic_update_slice(t, rows, (m - 1, 0))
        back = _adjoint(turn)
        t = lax.dynamic_update_slice(t, lax.dynamic_slice(t, (0, m - 1), (n, 2)) @ back, (0, m - 1))
        z = lax.dynamic_update_slice(z, lax.dynamic_slice(z, (0, m - 1), (n, 2)) @ back, (0, m - 1))
        return t.at[m, m - 1].set(0), z

    t, z = lax.fori_loop(0, n - 1, rotate, (t, z))
    return jnp.triu(t), z


# -- functions of triangular matrices
# -------------------------------------------------------------------------
def _fill_diagonals(t: Array, first: Array, fill: Callable) -> Array:
    """A triangular matrix [n, n] with `first` on its diagonal, one diagonal after the other.

    fill: `fill(found)` gives all entries, of which those count that need only the diagonals so far."""
    n = t.shape[-1]
    place = np.arange(n) - np.arange(n)[:, None]

    def step(p, found):
        return jnp.where(place == p, fill(found), found)

    return lax.fori_loop(1, max(n, 1), step, jnp.where(place == 0, first[..., None, :], 0))


def funm(A, func: Callable, disp: bool = True):  # noqa: N803  SciPy's name
    """A function of a matrix with distinct eigenvalues, by Parlett's recurrence on its Schur form.

    Args:
        A: [n, n]. func: a function of arrays of complex numbers. disp: without it, (result, estimated error).

    Returns: complex [n, n]. Raises: ValueError for a matrix that is not square.
    Error: grows with 1 / the least distance of eigenvalues. Example: `funm(A, jnp.exp)` is `expm(A)`.
    Source: scipy.linalg.funm; Golub and Van Loan, algorithm 9.1.1."""
    (a,) = _promote_squares("funm", A)
    if a.ndim != 2:
        raise ValueError(f"expected A to be a matrix, got shape {a.shape}")
    t, z = _complex_schur(a)
    eigenvalues = jnp.diagonal(t)
    gaps = eigenvalues[None, :] - eigenvalues[:, None]
    safe = jnp.where(gaps == 0, 1, gaps)
    f = _fill_diagonals(t, func(eigenvalues), lambda f: (t @ f - f @ t) / safe)
    result = z @ f @ _adjoint(z)
    if disp:
        return result
    n, tolerance = a.shape[-1], np.finfo(t.dtype).eps
    upper = jnp.triu(jnp.ones((n, n), bool), 1)
    least = jnp.min(jnp.abs(jnp.where(upper, jnp.where(gaps == 0, 0, gaps), 1)), initial=1)
    norm = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), 0), initial=0)
    error = jnp.minimum(1, jnp.maximum(tolerance, tolerance / jnp.where(least == 0, tolerance, least) * norm))
    return result, jnp.where(jnp.all(jnp.isfinite(result)), error, jnp.inf)


def sqrtm(A, blocksize: int = 1) -> Array:  # noqa: N803  SciPy's name
    """The principal square root of a matrix, from its Schur form.

    Args:
        A: [..., n, n]. blocksize: accepted for SciPy's signature, without effect.

    Returns: complex [..., n, n]; NaN or infinite where there is none. Raises: ValueError for a matrix that is
    not square. Error: a few ulp times n of the norm. Derivatives solve Sylvester's equation.
    Example: of `[[4.0, 1.0], [0.0, 9.0]]` it is `[[2, 0.2], [0, 3]]`. Source: scipy.linalg.sqrtm; Björck and
    Hammarling: A Schur method for the square root of a matrix (1983)."""
    (a,) = _promote_squares("sqrtm", A)
    return _sqrtm(jnp.asarray(a, dtypes.complex_dtype(a.dtype)))


@custom_jvp
def _sqrtm(a):
    t, z = _complex_schur(a)
    r = _root_of_triangle(t)
    return z @ r @ _adjoint(z)


@_sqrtm.defjvp
def _sqrtm_jvp(primals, tangents):
    root = _sqrtm(*primals)
    return root, _solve_sylvester(0.0, root, root, *tangents)


def _root_of_triangle(t: Array) -> Array:
    first = jnp.sqrt(jnp.diagonal(t, axis1=-2, axis2=-1))
    sums = first[..., :, None] + first[..., None, :]
    sums = jnp.where(sums == 0, 1, sums)
    return _fill_diagonals(t, first, lambda r: (t - r @ r) / sums)


# -- Sylvester's equation
# -------------------------------------------------------------------------------------
def solve_sylvester(A, B, C, *, method: str = "schur", tol: float = 1e-8) -> Array:  # noqa: N803  SciPy's names
    """X with A @ X + X @ B = C, by Schur forms of A and B.

    Args:
        A: [..., m, m]. B: [..., n, n]. C: [..., m, n]. method: "schur" or "eigen", which give the same here.
        tol: where an eigenvalue of A and one of B add up to less, there is no unique solution: NaN.

    Returns: [..., m, n]. Raises: ValueError for another method or shapes that do not fit. Error: backward
    stable.
    Example: of `[[1.0]]`, `[[2.0]]` and `[[6.0]]` it is `[[2.0]]`. Source: Bartels and Stewart: Solution of
    the matrix equation AX + XB = C, Communications of the ACM 15 (1972)."""
    if method not in ("schur", "eigen"):
        raise ValueError(f"Unrecognized method {method}: it is 'schur' or 'eigen'")
    a, b, c = _promote("solve_sylvester", A, B, C)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-2:] != (c.shape[-2],) * 2 or b.shape[-2:] != (c.shape[-1],) * 2:
        raise ValueError(f"Incompatible shapes of A, B, C: {a.shape}, {b.shape}, {c.shape}")
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, c))
    return _solve_sylvester(tol, a, b, c)


def _solve_sylvester(tol: float, a, b, c) -> Array:
    """The solution as that of a linear system, by which it is differentiated."""
    def solve_transposed(_, c):
        return _run_sylvester(jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2), c, tol)

    return lax.custom_linear_solve(lambda x: a @ x + x @ b, c, lambda _, c: _run_sylvester(a, b, c, tol),
                                   solve_transposed)


def _run_sylvester(a, b, c, tol: float) -> Array:
    (r, u), (s, v) = _complex_schur(a), _complex_schur(b)
    sums = jnp.diagonal(r, axis1=-2, axis2=-1)[..., :, None] + jnp.diagonal(s, axis1=-2, axis2=-1)[..., None,
                                                                                                   :]
    right = _adjoint(u) @ jnp.asarray(c, r.dtype) @ v
    y = over_batch(_solve_columns, 2, 2, 2)(r, s, right)
    x = u @ y @ _adjoint(v)
    x = x if dtypes.is_complex(c.dtype) else jnp.real(x)
    unique = jnp.min(jnp.abs(sums), (-1, -2), initial=jnp.inf)[..., None, None] >= tol
    return jnp.where(unique, x, math.nan)


def _solve_columns(r: Array, s: Array, right: Array) -> Array:
    unit = jnp.eye(r.shape[0], dtype=r.dtype)

    def solve(j, y):
        wanted = right[:, j] - y @ s[:, j]  # columns from j on are 0 yet
        column = lax_linalg.triangular_solve(r + s[j, j] * unit, wanted[:, None], left_side=True)
        return y.at[:, j].set(column[:, 0])

    return lax.fori_loop(0, s.shape[0], solve, jnp.zeros_like(right))


# -- tridiagonal matrices
# -------------------------------------------------------------------------------------
def eigh_tridiagonal(d, e, *, eigvals_only: bool = False, select: str = "a", select_range=None,
                     tol: float | None = None, key=None):
    """Eigenvalues, ascending, and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
        d: real [n], the diagonal. e: [n - 1], beside it. eigvals_only: whether to return the values alone.
        select: "a" for all, "i" for those numbered from select_range[0] to select_range[1], static integers.
        tol, key: accepted for JAX's signature, not needed.

    Returns: (values [k], vectors [n, k] as columns). Raises: ValueError for another `select` or shapes that
    do not fit; NotImplementedError for "v", whose results have no fixed number. Error and cost: those of
    `eigh` of the whole matrix. Example: of `[1.0, 3.0]` and `[0.0]` the values are `[1, 3]`.
    Source: scipy.linalg.eigh_tridiagonal."""
    d, e = _promote("eigh_tridiagonal", d, e)
    d = jnp.real(d)
    n = d.shape[-1]
    if d.ndim != 1 or e.shape != (max(n - 1, 0),):
        raise ValueError(f"Expected vectors of n and n - 1 elements, got shapes {d.shape} and {e.shape}")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(select='v') gives as many as depends on values")
    if select not in ("a", "i"):
        raise ValueError(f"'select' must be one of 'a', 'i', 'v'; got {select!r}")
    subset = None if select == "a" else (int(select_range[0]), int(select_range[1]) + 1)
    matrix = jnp.diag(jnp.asarray(d, e.dtype)) + jnp.diag(e, -1) + jnp.diag(jnp.conjugate(e), 1)
    vectors, values = lax_linalg.eigh(matrix)
    if subset is not None:
        vectors, values = vectors[:, subset[0]:subset[1]], values[subset[0]:subset[1]]
    return values if eigvals_only else (values, vectors)
