"""Sorting and partitioning.

In: an array and an axis. Out: sorted values or the indices that sort. NaN sorts last.
"""

from __future__ import annotations

import operator

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy.arrays.promotion import borrow_array, convert_dtype, ensure_array, ensure_arrays
from jitcore.numpy.shaping import flip, ravel
from jitcore.numpy.ufuncs import arithmetic


def _prepare(name: str, a, axis) -> tuple[Array, int]:
    a = borrow_array(name, a)
    if axis is None:
        return ravel(a), 0
    return a, canonicalize_axis(axis, a.ndim)


def _check_options(kind, order) -> None:
    if order is not None:
        raise ValueError("'order' argument is not supported: there are no structured arrays.")
    if kind not in (None, "stable", "quicksort", "mergesort", "heapsort"):
        raise ValueError(f"Unsupported sort kind {kind!r}")


def sort(a, axis: int | None = -1, *, kind=None, order=None, stable: bool = True, descending: bool = False):
    """The elements in rising order along an axis (flattened for None). Same as: `numpy.sort`."""
    _check_options(kind, order)
    a, axis = _prepare("sort", a, axis)
    if a.ndim == 0:
        raise ValueError("sort requires an array of at least one dimension")
    out = lax.sort(a, axis, stable)
    return flip(out, axis) if descending else out


def argsort(a, axis: int | None = -1, *, kind=None, order=None, stable: bool = True,
            descending: bool = False, dtype=None):
    """Indices that sort along an axis, in an integer dtype; equal elements keep their order. Same as:
    `numpy.argsort`."""
    found = _find_order(a, axis, kind, order, stable, descending)
    return found if dtype is None else convert_dtype(found, dtypes.canonicalize(dtype))


def _find_order(a, axis: int | None, kind, order, stable: bool, descending: bool) -> Array:
    _check_options(kind, order)
    a, axis = _prepare("argsort", a, axis)
    if not descending:
        return _argsort(a, axis, stable)
    found = _argsort(flip(a, axis), axis, stable)  # reversed twice, so that equal elements keep their order
    return flip(arithmetic.subtract(a.shape[axis] - 1, found), axis)


def _argsort(a, axis: int, is_stable: bool) -> Array:
    positions = lax.broadcasted_iota(dtypes.default_dtype("i"), a.shape, axis)
    return lax.sort((a, positions), axis, is_stable, 1)[1]


def lexsort(keys, axis: int = -1):
    """Indices that sort by the last key, then by the one before it ... Same as: `numpy.lexsort`."""
    keys = list(keys) if isinstance(keys, (tuple, list)) else [keys[i] for i in range(keys.shape[0])]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    keys = ensure_arrays("lexsort", *keys)
    if keys[0].ndim == 0:
        return lax.full((), 0, dtypes.default_dtype("i"))
    axis = canonicalize_axis(axis, keys[0].ndim)
    positions = lax.broadcasted_iota(dtypes.default_dtype("i"), keys[0].shape, axis)
    return lax.sort((*keys[::-1], positions), axis, True, len(keys))[-1]


def partition(a, kth, axis: int = -1):
    """Smaller elements before position kth, larger ones after it: sorted altogether. Same as:
    `numpy.partition`."""
    a, axis = _prepare("partition", a, axis)
    _check_position(kth, a, axis)
    return lax.sort(a, axis, True)


def argpartition(a, kth, axis: int = -1):
    """Indices that `partition`. Same as: `numpy.argpartition`."""
    a, axis = _prepare("argpartition", a, axis)
    _check_position(kth, a, axis)
    return convert_dtype(_argsort(a, axis, True), dtypes.int32)


def _check_position(kth, a, axis: int) -> None:
    for position in kth if isinstance(kth, (tuple, list)) else (kth,):
        canonicalize_axis(operator.index(position), a.shape[axis])


def sort_complex(a):
    """The elements in rising order along the last axis, as complex numbers. Same as: `numpy.sort_complex`."""
    a = ensure_array("sort_complex", a)
    dtype = dtypes.complex_dtype(dtypes.inexact_dtype(a.dtype))
    return sort(convert_dtype(a, dtype), 0 if a.ndim == 1 else -1)


__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex"]
