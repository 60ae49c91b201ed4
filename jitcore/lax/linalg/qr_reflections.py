"""QR with pivoting as a loop of Householder's reflections, for backends that have no routine for it.

In: the type of a matrix, or a batch. Out: the jaxpr that decomposes it: the primitive's expansion.
Source: LAPACK, xGEQP3 and xLARFG, whose signs these are.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from jitcore.config import config
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.control_flow.while_loop import fori_loop
from jitcore.lax.elementwise import select_n
from jitcore.lax.linalg.reflections import keep, make_reflection
from jitcore.lax.shape import broadcast_in_dim, full_like, iota
from jitcore.transforms.vmap import vmap


def expand_qr(avals: Sequence[ShapedArray], params: dict) -> ClosedJaxpr | None:
    """The jaxpr of an application; None without pivoting, which every backend has a routine for."""
    return _trace(avals[0], params["full_matrices"], config.trace_key) if params["pivoting"] else None


@functools.lru_cache(maxsize=64)
def _trace(aval: ShapedArray, full_matrices: bool, trace_key) -> ClosedJaxpr:
    run = functools.partial(qr_by_reflections, full_matrices=full_matrices)
    for _ in aval.shape[:-2]:
        run = vmap(run)
    return ClosedJaxpr(*trace_to_jaxpr(lambda x: list(run(x)), [aval]))


def qr_by_reflections(x, full_matrices: bool):
    """Q, R and the order of the columns: of those that are left, the longest is always next."""
    m, n = x.shape
    rows, columns = iota(np.int32, m), iota(np.int32, n)

    def reflect(j, state):
        q, r, order = state
        lengths = (abs(keep(broadcast_in_dim(rows >= j, (m, n), (0,)), r)) ** 2).sum(0)
        longest = select_n(columns >= j, full_like(lengths, -1), lengths).argmax().astype(np.int32)
        swap = columns.at[j].set(longest).at[longest].set(j)
        r, order = r[:, swap], order[swap]
        v, tau, _ = make_reflection(r[:, j], j)
        q = q - tau * (q @ v)[:, None] * v.conj()
        return q, r - tau.conj() * v[:, None] * (v.conj() @ r), order

    square = broadcast_in_dim(rows, (m, m), (0,)) == rows
    q, r, order = fori_loop(0, min(m, n), reflect, (square.astype(x.dtype), x, columns))
    kept = m if full_matrices else min(m, n)
    return q[:, :kept], keep(broadcast_in_dim(rows, (m, n), (0,)) <= columns, r)[:kept], order
