"""Sparse matrices in SciPy's older formats: `COO`, `CSR` and `CSC`, their products, and what makes them.

In: dense matrices, or entries. Out: matrices, which are pytrees, and dense results. All is computed by way of
`BCOO`, from which they differ in what they hold. Source: `jax.experimental.sparse`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

import jitcore.numpy as jnp
from jitcore.array import Array
from jitcore.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from jitcore.experimental.sparse.structure import JAXSparse
from jitcore.tree_util import register_pytree_node_class

__all__ = ["COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense", "csr_fromdense",
           "csr_matmat", "csr_matvec", "csr_todense"]

M = TypeVar("M", bound="_Matrix")


class _Matrix(JAXSparse):
    """Values and two arrays that say where they stand."""

    _facts = ("shape",)
    data: Array

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        vars(self).update(zip(self._parts, map(jnp.asarray, args)), shape=tuple(map(operator.index, shape)))

    @property
    def nse(self) -> int:
        """Number of entries."""
        return self.data.shape[0]

    @classmethod
    def fromdense(cls: type[M], mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> M:
        """The entries of a dense matrix that are not zero; `nse`, which traced ones need: how many."""
        return cls.of_bcoo(bcoo_fromdense(jnp.asarray(mat), nse=nse, index_dtype=index_dtype))

    @classmethod
    def of_bcoo(cls: type[M], mat: BCOO) -> M:
        """Of entries in the order of rows."""
        raise NotImplementedError

    def to_bcoo(self) -> BCOO:
        """The matrix in the format that computes."""
        raise NotImplementedError

    def todense(self) -> Array:
        """The matrix with its zeros."""
        return self.to_bcoo().todense()

    def transpose(self, axes: Any = None) -> _Matrix:
        """The matrix with its axes exchanged. Raises: NotImplementedError for other orders."""
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"transpose of a matrix to axes {axes}")
        return self._transpose()

    def _transpose(self) -> _Matrix:
        raise NotImplementedError

    def __matmul__(self, other: Any) -> Array:
        if isinstance(other, (_Matrix, BCOO)):
            raise NotImplementedError("products of two sparse matrices: BCOO has them")
        return self.to_bcoo() @ other


@register_pytree_node_class
class COO(_Matrix):
    """A matrix as entries, each with its row and its column.

    Args:
        args: data, row, col, [nse] each; entries of one place are added up, those outside do not count.
        shape: of the matrix. rows_sorted, cols_sorted: accepted."""

    _parts = "data", "row", "col"
    row: Array
    col: Array

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False,
                 cols_sorted: bool = False):
        super().__init__(args, shape=shape)

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> COO:
        return cls((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        return BCOO((self.data, jnp.stack([self.row, self.col], -1)), shape=self.shape)

    def _transpose(self) -> COO:
        return COO((self.data, self.col, self.row), shape=self.shape[::-1])


def compress_rows(places: Array, extent: int) -> Array:
    """Where the entries of each row begin, and the last ones end: [extent + 1]."""
    counts = jnp.zeros(extent, places.dtype).at[places].add(1, mode="drop")
    return jnp.concatenate([jnp.zeros(1, places.dtype), jnp.cumsum(counts, dtype=places.dtype)])


def expand_rows(indptr: Array, count: int) -> Array:
    """The row of each entry; those behind the last are in none."""
    places = jnp.arange(count, dtype=indptr.dtype)
    return (jnp.searchsorted(indptr, places, side="right") - 1).astype(indptr.dtype)


@register_pytree_node_class
class CSR(_Matrix):
    """A matrix as entries, row by row.

    Args:
        args: data and indices (the columns), [nse]; indptr, [rows + 1], where each row begins and ends.
        shape: of the matrix."""

    _parts = "data", "indices", "indptr"
    indices: Array
    indptr: Array

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> CSR:
        row, column = mat.indices[:, 0], mat.indices[:, 1]
        return cls((mat.data, column, compress_rows(row, mat.shape[0])), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        row = expand_rows(self.indptr, self.nse)
        return BCOO((self.data, jnp.stack([row, self.indices.astype(row.dtype)], -1)), shape=self.shape)

    def _transpose(self) -> CSC:
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Matrix):
    """A matrix as entries, column by column: as `CSR`, with rows and columns exchanged."""

    _parts = "data", "indices", "indptr"
    indices: Array
    indptr: Array

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        return CSR.fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype)._transpose()

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> CSC:
        return CSR.of_bcoo(mat.T.sort_indices())._transpose()

    def to_bcoo(self) -> BCOO:
        return self._transpose().to_bcoo().T

    def _transpose(self) -> CSR:
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


# -- functions ----------------------------------------------------------------------------------------------
def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """`COO.fromdense`. Source: `jax.experimental.sparse.coo_fromdense`."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """`CSR.fromdense`. Source: `jax.experimental.sparse.csr_fromdense`."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Array:
    """`COO.todense`. Source: `jax.experimental.sparse.coo_todense`."""
    return mat.todense()


def csr_todense(mat: CSR) -> Array:
    """`CSR.todense`. Source: `jax.experimental.sparse.csr_todense`."""
    return mat.todense()


def _multiply(mat: _Matrix, other: Any, ndim: int, transpose: bool) -> Array:
    other = jnp.asarray(other)
    if other.ndim != ndim:
        raise ValueError(f"expected an operand of {ndim} axes, got shape {other.shape}")
    return (mat.T if transpose else mat) @ other


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """A matrix, or its transpose, times a vector. Source: `jax.experimental.sparse.coo_matvec`."""
    return _multiply(mat, v, 1, transpose)


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """A matrix, or its transpose, times a vector. Source: `jax.experimental.sparse.csr_matvec`."""
    return _multiply(mat, v, 1, transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:  # noqa: N803  JAX's name
    """A matrix, or its transpose, times a dense one. Source: `jax.experimental.sparse.coo_matmat`."""
    return _multiply(mat, B, 2, transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:  # noqa: N803  JAX's name
    """A matrix, or its transpose, times a dense one. Source: `jax.experimental.sparse.csr_matmat`."""
    return _multiply(mat, B, 2, transpose)
