"""Diagonals, triangles and special matrices.

In: extents, or an array of at least one axis. Out: arrays; masks come from comparing index grids, so that
nothing but the result is stored.
"""

from __future__ import annotations

import operator

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy import reductions
from jitcore.numpy.arrays.promotion import (apply_select, broadcast_array, convert_dtype, ensure_array,
                                            require_static)
from jitcore.numpy.creation import asarray
from jitcore.numpy.indexing import searching
from jitcore.numpy.indexing.reading import get_item
from jitcore.numpy.indexing.update import update_item
from jitcore.numpy.shaping import moveaxis, ravel
from jitcore.numpy.ufuncs import arithmetic, logic

_INDEX = dtypes.int32


def _float_or(dtype):
    return dtypes.default_dtype("f") if dtype is None else dtypes.canonicalize(dtype)


def _compare_grids(rows, columns, k, compare) -> Array:
    """`compare(i + k, j)` of every row i and column j."""
    shape = (rows, columns)
    if all(isinstance(x, int) for x in (rows, columns, k)):
        k = max(-rows, min(k, columns))  # further away nothing changes; this fits into int32
    i = lax.broadcasted_iota(_INDEX, shape, 0)
    j = lax.broadcasted_iota(_INDEX, shape, 1)
    return compare(i if isinstance(k, int) and k == 0 else arithmetic.add(i, k), j)


def eye(N, M=None, k: int = 0, dtype=None, *, device=None):
    """Ones on the k-th diagonal of an N by M matrix of zeros. Same as: `numpy.eye`."""
    rows = require_static("eye", "N", N)
    columns = rows if M is None else require_static("eye", "M", M)
    for extent in (rows, columns):
        if isinstance(extent, int) and extent < 0:
            raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    return convert_dtype(_compare_grids(rows, columns, k, logic.equal), _float_or(dtype))


def identity(n, dtype=None):
    """The identity matrix. Same as: `numpy.identity`."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k: int = 0, dtype=None):
    """Ones at and below the k-th diagonal. Same as: `jax.numpy.tri`; float32 by default."""
    return convert_dtype(_compare_grids(N, N if M is None else M, k, logic.greater_equal),
                         dtypes.float32 if dtype is None else _float_or(dtype))


def _keep_triangle(name: str, m, k, is_lower: bool) -> Array:
    m = ensure_array(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jnp.{name} must be at least 2D")
    mask = _compare_grids(*m.shape[-2:],
                          k if is_lower else arithmetic.subtract(k, 1) if isinstance(k, Array) else k - 1,
                          logic.greater_equal)
    zero = lax.full((), 0, m.dtype) if dtypes.is_key(m.dtype) else m.dtype.type(0)
    mask = broadcast_array(mask, m.shape)
    out = apply_select(mask, m, zero) if is_lower else apply_select(mask, zero, m)
    return convert_dtype(out, m.dtype, m.weak_type)


def tril(m, k: int = 0):
    """m with zeros above the k-th diagonal. Same as: `numpy.tril`."""
    return _keep_triangle("tril", m, k, True)


def triu(m, k: int = 0):
    """m with zeros below the k-th diagonal. Same as: `numpy.triu`."""
    return _keep_triangle("triu", m, k, False)


# -- diagonals ----------------------------------------------------------------------------------------------
def diagonal(a, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """The diagonal of two axes, as the last axis; a square matrix's main one is not weakly typed. Same
    as: `numpy.diagonal`."""
    a = ensure_array("diagonal", a)
    result = _read_diagonal(a, offset, axis1, axis2)
    is_main = a.ndim == 2 and a.shape[0] == a.shape[1] and offset == 0 and a.dtype != dtypes.bool_
    return convert_dtype(result, a.dtype) if is_main else result


def _read_diagonal(a, offset: int, axis1: int, axis2: int) -> Array:
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    count = max(0, min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0)))
    steps = np.arange(count, dtype=np.int32)
    return get_item(a, (Ellipsis, steps - min(offset, 0), steps + max(offset, 0)))


def trace(a, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out=None):
    """Sum of a diagonal. Same as: `numpy.trace`."""
    return reductions.sum(_read_diagonal(ensure_array("trace", a), offset, axis1, axis2), -1, dtype, out)


def diag(v, k: int = 0):
    """The k-th diagonal of a matrix, or the matrix that has the vector v there. Same as: `numpy.diag`."""
    v = ensure_array("diag", v)
    k = operator.index(k)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    extent = v.shape[0] + abs(k)
    rows = np.arange(v.shape[0], dtype=np.int32)
    zeros = lax.full((extent, extent), 0, v.dtype)
    out = update_item(zeros, (rows + max(-k, 0), rows + max(k, 0)), v, is_unique=True)
    return convert_dtype(out, v.dtype, v.weak_type)


def diagflat(v, k: int = 0):
    """The matrix with the flattened v on its k-th diagonal. Same as: `numpy.diagflat`."""
    out = diag(ravel(ensure_array("diagflat", v)), k)
    return convert_dtype(out, out.dtype)


def fill_diagonal(a, val, wrap: bool = False, *, inplace: bool = True):
    """A copy of a with val on its diagonal (`inplace` must be False). Same as: `jax.numpy.fill_diagonal`."""
    if inplace:
        raise NotImplementedError(
            "jnp.fill_diagonal can only be used with inplace=False: arrays are immutable.")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use inplace=False and wrap=False")
    a = ensure_array("fill_diagonal", a)
    if a.ndim < 2 or a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"fill_diagonal takes a matrix, or an array of equal extents, got shape {a.shape}")
    steps = np.arange(min(a.shape), dtype=np.int32)
    values = ravel(asarray(val))
    values = (
        get_item(values, np.resize(np.arange(values.shape[0]), steps.size)) if values.shape[0] > 1 else values
    )
    return update_item(a, (steps,) * a.ndim, values)


def vander(x, N: int | None = None, increasing: bool = False):
    """Powers of x as columns. Same as: `numpy.vander`."""
    x = ensure_array("vander", x)
    count = x.shape[0] if N is None else operator.index(N)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    if count < 0:
        raise ValueError(f"vander of N={count} columns: N must not be negative")
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    powers = powers.astype(x.dtype if dtypes.is_integer(x.dtype) else np.int32)
    return arithmetic.power(lax.reshape(x, (x.shape[0], 1)), asarray(powers))


# -- index arrays -------------------------------------------------------------------------------------------
def _known(arrays) -> tuple:
    return tuple(asarray(np.ascontiguousarray(x).astype(dtypes.default_dtype("i"))) for x in arrays)


def tril_indices(n: int, k: int = 0, m: int | None = None):
    """Indices of the lower triangle. Same as: `numpy.tril_indices`."""
    return _known(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None):
    """Indices of the upper triangle. Same as: `numpy.triu_indices`."""
    return _known(np.triu_indices(n, k, m))


def tril_indices_from(arr, k: int = 0):
    """Indices of the lower triangle of arr. Same as: `numpy.tril_indices_from`."""
    if np.ndim(arr) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return tril_indices(arr.shape[-2], k, arr.shape[-1])


def triu_indices_from(arr, k: int = 0):
    """Indices of the upper triangle of arr. Same as: `numpy.triu_indices_from`."""
    if np.ndim(arr) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return triu_indices(arr.shape[-2], k, arr.shape[-1])


def diag_indices(n: int, ndim: int = 2):
    """Indices of the main diagonal. Same as: `numpy.diag_indices`."""
    n = operator.index(n)
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}")
    return _known(np.diag_indices(n, ndim))


def diag_indices_from(arr):
    """Indices of the main diagonal of arr. Same as: `numpy.diag_indices_from`."""
    if arr.ndim < 2:
        raise ValueError(f"diag_indices_from takes an array of two axes or more, got shape {arr.shape}")
    if len(set(arr.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], arr.ndim)


def mask_indices(n: int, mask_func, k: int = 0, *, size: int | None = None):
    """Indices where `mask_func(ones((n, n)), k)` is not 0. Same as: `numpy.mask_indices`.

    size: length of the results: cut, or filled up with 0."""
    return searching.nonzero(mask_func(lax.full((n, n), 1, _INDEX), k), size=size)


__all__ = ["diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "eye", "fill_diagonal",
           "identity", "mask_indices", "trace", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
           "triu_indices", "triu_indices_from", "vander"]
