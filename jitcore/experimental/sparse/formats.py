"""Sparse arrays of a format that is named: without entries, and of ones on a diagonal.

In: shapes, dtypes, the name of a format. Out: arrays of that format, made of the entries of a `BCOO`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore.experimental.sparse.bcoo import BCOO
from jitcore.experimental.sparse.bcsr import BCSR
from jitcore.experimental.sparse.matrices import COO, CSC, CSR
from jitcore.experimental.sparse.structure import JAXSparse

_FORMATS: dict[str, Callable[[BCOO], JAXSparse]] = {
    "bcoo": lambda mat: mat, "bcsr": BCSR.from_bcoo, "coo": COO.of_bcoo, "csr": CSR.of_bcoo,
    "csc": CSC.of_bcoo}


def _find_format(name: str) -> Callable[[BCOO], JAXSparse]:
    if name not in _FORMATS:
        raise ValueError(f"sparse_format={name!r} not recognized; must be one of {list(_FORMATS)}")
    return _FORMATS[name]


def empty(shape: Sequence[int], dtype: Any = None, index_dtype: Any = np.int32, sparse_format: str = "bcoo",
          nse: int = 0, n_batch: int = 0, n_dense: int = 0) -> JAXSparse:
    """A sparse array without entries, or with `nse` that do not count.

    Args:
        shape, dtype: of the array. index_dtype: of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        nse, n_batch, n_dense: numbers of entries, batch and dense axes.

    Raises: ValueError for another format.
    Source: `jax.experimental.sparse.empty`.

    Example:
        >>> from jitcore.experimental import sparse
        >>> sparse.empty((2, 3))
        BCOO(float32[2, 3], nse=0)"""
    convert = _find_format(sparse_format)
    shape = tuple(map(operator.index, shape))
    n_sparse = len(shape) - n_batch - n_dense
    sparse_shape = shape[n_batch : n_batch + n_sparse]
    data = jnp.zeros((*shape[:n_batch], nse, *shape[n_batch + n_sparse :]), dtype)
    indices = jnp.broadcast_to(jnp.asarray(sparse_shape, index_dtype), (*shape[:n_batch], nse, n_sparse))
    return convert(BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=nse <= 1))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = np.int32,  # noqa: N803
        sparse_format: str = "bcoo") -> JAXSparse:
    """The matrix of ones on a diagonal, [N, M].

    Args:
        N, M: numbers of rows and columns; M is N unless given.
        k: which diagonal, 0 the main one. dtype: of its values. index_dtype: of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".

    Raises: ValueError for another format.
    Source: `jax.experimental.sparse.eye`.

    Example:
        >>> from jitcore.experimental import sparse
        >>> sparse.eye(3).nse
        3"""
    convert, rows = _find_format(sparse_format), operator.index(N)
    columns = rows if M is None else operator.index(M)
    first = np.arange(max(0, -k), max(0, -k, min(rows, columns - k)))
    indices = np.stack([first, first + k], -1).astype(index_dtype)
    return convert(BCOO((jnp.ones(len(first), dtype), indices), shape=(rows, columns), indices_sorted=True,
                        unique_indices=True))
