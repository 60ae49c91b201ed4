"""Householder's reflections: products of them, and matrices brought to Hessenberg or tridiagonal form by
them.

In: float or complex matrices (32 or 64 bit), [..., m, n], and vectors of scalar factors. Out: matrices;
reflections stand below the diagonal as LAPACK stores them, `H = I - tau v v^H` with a one on top of v. Each
is a loop over columns, so that it has derivatives, batches and runs on every backend. Source: LAPACK, xORGQR,
xORMQR, xGEHRD, xSYTRD. """

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.control_flow.while_loop import fori_loop
from jitcore.lax.define import to_operands
from jitcore.lax.elementwise import complex_, conj, select_n
from jitcore.lax.linalg.checks import check_matrix
from jitcore.lax.linalg.derivatives import conjugate_transpose
from jitcore.lax.shape import broadcast_in_dim, full, full_like, iota, rev
from jitcore.process.lazy import LazyModule
from jitcore.transforms.vmap import vmap

__all__ = ["hessenberg", "householder_product", "ormqr", "tridiagonal"]

jnp = LazyModule("jitcore.numpy")  # whose import gives arrays the operators that are used here


def over_batch(function: Callable, *ranks: int) -> Callable:
    """A function of arrays of these ranks for arrays with equal batch axes in front."""

    def run(*args):
        args = [jnp.asarray(arg) for arg in args]
        batched = function
        for _ in range(aval_of(args[0]).ndim - ranks[0]):
            batched = vmap(batched)
        return batched(*args)

    return run


def keep(which, x):
    """x, and zero elsewhere."""
    return select_n(which, full_like(x, 0), x)


def _read_reflection(a, j):
    """The vector that column j holds."""
    rows = iota(np.int32, a.shape[0])
    return select_n(rows == j, keep(rows > j, a[:, j]), full_like(a[:, 0], 1))


def make_reflection(x, j):
    """(v, tau, beta): the reflection that maps what stands in x from row j on to beta there and zero below.

    As xLARFG, beta is real, and a vector that has this form already stays (tau is 0)."""
    below = keep(iota(np.int32, x.shape[0]) >= j, x)
    length, head = (abs(below) ** 2).sum() ** 0.5, below[j]
    beta = select_n(head.real < 0, -length, length)
    stays = (abs(head) == length) & (head.imag == 0)
    one = full_like(head, 1)
    real_beta = beta if beta.dtype == head.dtype else complex_(beta, full_like(beta, 0))
    real_beta = select_n(stays, real_beta, head)
    tau = keep(~stays, (real_beta - head) / select_n(stays, real_beta, one))
    v = keep(~stays, below / select_n(stays, head - real_beta, one)).at[j].set(1)
    return v, tau, real_beta


def householder_product(a, taus) -> Array:
    """The first columns of a product of reflections.

    Args:
        a: [..., m, n] with m >= n, whose columns hold reflections below the diagonal. taus: [..., k], k <= n.

    Returns: [..., m, n], orthonormal columns. Raises: ValueError for other shapes. Error: a few ulp times m.
    Example: of `a = [[1.0], [0.0]]` and `taus = [2.0]` it is `[[-1.0], [0.0]]`. Source: LAPACK, xORGQR."""
    a, taus = to_operands("householder_product", (a, taus))
    check_matrix("householder_product", aval_of(a))
    (m, n), k = aval_of(a).shape[-2:], aval_of(taus).shape[-1]
    if m < n or k > n:
        raise ValueError(f"householder_product needs m >= n >= k, got shapes {aval_of(a).shape} and "
                         f"{aval_of(taus).shape}")

    def run(a, taus):
        unit = iota(np.int32, m)[:, None] == iota(np.int32, n)
        return _reflect(a, taus, unit.astype(a.dtype), left=True, adjoint=False)

    return over_batch(run, 2, 1)(a, taus)


def _reflect(a, taus, c, *, left: bool, adjoint: bool):
    count = taus.shape[0]

    def step(i, c):
        j = count - 1 - i if left != adjoint else i
        v, tau = _read_reflection(a, j), taus[j]
        tau = conj(tau) if adjoint and np.dtype(tau.dtype).kind == "c" else tau
        if left:
            return c - tau * v[:, None] * (v.conj() @ c)
        return c - tau * (c @ v)[:, None] * v.conj()

    return fori_loop(0, count, step, c)


def ormqr(a, taus, c, *, left: bool = True, transpose: bool = False) -> Array:
    """A matrix times the product Q of reflections, which is not formed.

    Args:
        a: [..., m, n], whose columns hold reflections below the diagonal. taus: [..., k].
        c: [..., m, p], or [..., p, m] unless left.
        left: Q @ c instead of c @ Q. transpose: the conjugate transpose of Q instead of Q.

    Returns: of the shape of c. Raises: ValueError for shapes that do not fit. Error: a few ulp times m.
    Example: of `a = [[1.0], [0.0]]`, `taus = [2.0]` and the unit matrix it is `[[-1, 0], [0, 1]]`.
    Source: LAPACK, xORMQR."""
    a, taus, c = to_operands("ormqr", (a, taus, c))
    check_matrix("ormqr", aval_of(a))
    if aval_of(c).shape[-2 if left else -1] != aval_of(a).shape[-2]:
        raise ValueError(f"ormqr got shapes that do not fit: {aval_of(a).shape} and {aval_of(c).shape}")
    run = functools.partial(_reflect, left=left, adjoint=transpose)
    return over_batch(run, 2, 1, 2)(a, taus, c)


def factor_by_reflections(a) -> tuple[Array, Array]:
    """a = Q @ R as LAPACK packs it: R, below whose diagonal stand the reflections of Q, and their factors.

    Args:
        a: [..., m, n].

    Returns: (packed [..., m, n], taus [..., min(m, n)]). Error: a few ulp times m. Source: LAPACK, xGEQRF."""
    (a,) = to_operands("qr", (a,))
    m, n = aval_of(a).shape[-2:]

    def run(a):
        rows, columns = iota(np.int32, m), iota(np.int32, n)

        def step(j, state):
            a, taus = state
            v, tau, beta = make_reflection(a[:, j], j)
            turned = a - tau.conj() * v[:, None] * (v.conj() @ a)
            stored = select_n(rows > j, a[:, j], v).at[j].set(beta)
            a = select_n(broadcast_in_dim(columns > j, a.shape, (1,)), a, turned)
            return a.at[:, j].set(stored), taus.at[j].set(tau)

        return fori_loop(0, min(m, n), step, (a, full((min(m, n),), 0, a.dtype)))

    return over_batch(run, 2)(a)


def _reduce(a, columns: int):
    """(packed matrix, taus): H^H a H for one reflection after the other, each below the diagonal of its
    column."""
    rows = iota(np.int32, a.shape[0])

    def step(j, state):
        a, taus = state
        v, tau, beta = make_reflection(a[:, j], j + 1)
        stored = select_n(rows > j + 1, a[:, j], v).at[j + 1].set(beta)
        # columns on the left hold reflections already
        work = keep(broadcast_in_dim(rows >= j, a.shape, (1,)), a)
        turned = work - tau * (work @ v)[:, None] * v.conj()
        turned = turned - tau.conj() * v[:, None] * (v.conj() @ turned)
        a = select_n(broadcast_in_dim(rows > j, a.shape, (1,)), a, turned)
        return a.at[:, j].set(stored), taus.at[j].set(tau)

    return fori_loop(0, columns, step, (a, full_like(a[:columns, 0], 0)))


def hessenberg(a) -> tuple[Array, Array]:
    """Reduction to upper Hessenberg form H, zero below the first subdiagonal: a = Q @ H @ Q^H.

    Args:
        a: [..., n, n], n at least 1.

    Returns: (H with the reflections of Q below its first subdiagonal [..., n, n], taus [..., n - 1]).
    Error: a few ulp times n of the norm. Example: a matrix of two rows is H itself. Source: LAPACK,
    xGEHRD."""
    check_matrix("hessenberg", aval_of(a), square=True)
    return over_batch(lambda a: _reduce(a, a.shape[0] - 1), 2)(a)


def tridiagonal(a, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduction of a Hermitian matrix to a real tridiagonal one T: a = Q @ T @ Q^H.

    Args:
        a: [..., n, n], n at least 1, of which one triangle is read. lower: which.

    Returns: (T with the reflections of Q beside it, in the triangle that is read [..., n, n], diagonal [...,
    n], off-diagonal [..., n - 1], taus [..., n - 1]). Error: a few ulp times n of the norm.
    Example: a real matrix of two rows is T itself, of taus `[0.0]`. Source: LAPACK, xSYTRD."""
    check_matrix("tridiagonal", aval_of(a), square=True)

    def run(a):
        if not lower:
            a = rev(a, (0, 1))
        rows = iota(np.int32, a.shape[0])
        below, above = rows[:, None] > rows, rows[:, None] < rows
        diagonal = keep(rows[:, None] == rows, a)
        whole = keep(below, a)
        whole = whole + conjugate_transpose(whole) + (diagonal + conjugate_transpose(diagonal)) / 2
        packed, taus = _reduce(whole, a.shape[0] - 1)
        packed = select_n(above, packed, a)
        d, e = (packed[rows[: -k or None] + k, rows[: -k or None]].real for k in (0, 1))
        found = packed, d, e, taus
        return found if lower else tuple(rev(x, tuple(range(x.ndim))) for x in found)

    return over_batch(run, 2)(a)
