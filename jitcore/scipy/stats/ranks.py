"""Ranks and summaries of samples.

In: samples along an axis. Out: their ranks, their most frequent value, the error of their mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.numpy.arrays.promotion import ensure_array
from jitcore.scipy.stats.support import promote

__all__ = ["ModeResult", "mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """Result of `mode`."""

    mode: Array
    count: Array


def _check_policy(nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"Illegal nan_policy value {nan_policy!r}; expected one of 'propagate', 'omit', 'raise'")
    if nan_policy != "propagate":
        raise NotImplementedError(f"nan_policy {nan_policy!r} is not there; it is 'propagate'")


def mode(a, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """(the most frequent value, the least of these; how often it is there) along an axis, or of all for None.

    Raises: NotImplementedError for a nan_policy other than "propagate". Source: scipy.stats.mode."""
    _check_policy(nan_policy)
    a = ensure_array("mode", a)
    axis = axis if a.ndim else None
    ndim = a.ndim
    moved = jnp.ravel(a) if axis is None else jnp.moveaxis(a, axis, -1)
    if not moved.shape[-1]:
        nothing = moved.shape[:-1] if not keepdims else (1,) * ndim if axis is None else tuple(
            1 if i == axis % ndim else extent for i, extent in enumerate(a.shape))
        return ModeResult(jnp.full(nothing, jnp.nan, dtypes.default_dtype("f")), jnp.zeros(nothing))
    moved = jnp.sort(moved, -1)
    counts = _count_before(moved, side="right") - _count_before(moved, side="left")
    counts = jnp.asarray(counts, dtypes.default_dtype("i"))
    place = jnp.argmax(counts, -1, keepdims=True)
    found, count = (jnp.take_along_axis(x, place, -1) for x in (moved, counts))
    if not keepdims:
        return ModeResult(found[..., 0], count[..., 0])
    return ModeResult(*(jnp.reshape(x, (1,) * ndim) if axis is None else jnp.moveaxis(x, -1, axis)
                        for x in (found, count)))


def _count_before(sorted_, side: str) -> Array:
    """How many elements of the sorted last axis are below each of them, or not above it."""
    n = sorted_.shape[-1]
    rows = jnp.reshape(sorted_, (math.prod(sorted_.shape[:-1]), n))
    counts = jnp.vectorize(lambda row: jnp.searchsorted(row, row, side), signature="(n)->(n)")(rows)
    return jnp.reshape(counts, sorted_.shape)


def rankdata(a, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """Ranks, which begin at 1, along an axis, or of all elements in a vector for None.

    method: what equal elements get: "average", "min", "max", "dense" (no rank is left out), "ordinal" (in
        turn).
    Returns: NaN where there is a NaN. Raises: ValueError for another method. Source: scipy.stats.rankdata."""
    _check_policy(nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    a = ensure_array("rankdata", a)
    moved = jnp.ravel(a) if axis is None else jnp.moveaxis(a, axis, -1)
    order = jnp.argsort(moved, -1)
    place = jnp.argsort(order, -1)
    if method != "ordinal":
        rows = jnp.take_along_axis(moved, order, -1)
        low, high = _count_before(rows, "left") + 1, _count_before(rows, "right")
        is_new = jnp.diff(rows, axis=-1) != 0
        dense = jnp.concatenate([jnp.zeros_like(low[..., :1]), jnp.cumsum(is_new, -1)], -1) + 1
        ranks = {"min": low, "max": high, "dense": dense, "average": (low + high) / 2}[method]
        ranks = jnp.take_along_axis(ranks, place, -1)
    else:
        ranks = place + 1
    ranks = jnp.asarray(ranks, dtypes.default_dtype("f"))
    if dtypes.is_inexact(a.dtype):
        ranks = jnp.where(jnp.isnan(moved).any(-1, keepdims=True), jnp.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, axis)


def sem(a, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """Standard error of the mean along an axis, or of all elements for None: deviation over the root of n.

    Args:
        ddof: what is taken from n in the deviation. nan_policy: "omit" leaves out what is NaN.
    Raises: ValueError for another nan_policy. Source: scipy.stats.sem."""
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"{nan_policy} is not supported")
    (a,) = promote("sem", a, complex_too=True)
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(a), axis, keepdims=keepdims)
        return jnp.nanstd(a, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(jnp.asarray(count, a.dtype))
    n = a.size if axis is None else a.shape[axis]
    return jnp.std(a, axis, ddof=ddof, keepdims=keepdims) / math.sqrt(n)
