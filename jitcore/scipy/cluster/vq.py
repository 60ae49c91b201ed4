"""Vector quantisation with SciPy's names and arguments (`jitcore.scipy.cluster.vq`).

In: observations and a code book. Out: for each observation the nearest code, and how far it is.
"""

from __future__ import annotations

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import promote_arrays

__all__ = ["vq"]


def vq(obs, code_book, check_finite: bool = True) -> tuple[Array, Array]:
    """(number of the nearest code, distance from it) of each observation.

    Args:
        obs: [n, features], or [n] numbers. code_book: [codes, features], or [codes].
        check_finite: for SciPy's signature, without effect.

    Raises: ValueError for numbers of axes or features that do not agree.
    Example: `vq(jnp.array([[0.2], [3.0]]), jnp.array([[0.0], [2.5]]))` is `([0, 1], [0.2, 0.5])`.
    Source: scipy.cluster.vq.vq."""
    obs, code_book = promote_arrays("vq", obs, code_book, to=dtypes.inexact_dtype)
    if obs.ndim != code_book.ndim or obs.ndim not in (1, 2):
        raise ValueError("Observation and code_book should have the same rank, 1 or 2")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.shape[1] != code_book.shape[1]:
        raise ValueError(f"obs and code_book have {obs.shape[1]} and {code_book.shape[1]} features")
    distances = jnp.linalg.norm(obs[:, None] - code_book[None], axis=-1)
    return jnp.argmin(distances, -1), jnp.min(distances, -1)
