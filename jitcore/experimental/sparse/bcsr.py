"""Batches of sparse matrices row by row: `BCSR`, and its functions.

In: dense arrays, or entries. Out: matrices, which are pytrees, and dense results. What computes is `BCOO`;
the two hold the same entries. Source: `jax.experimental.sparse`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import lax
from jitcore.array import Array
from jitcore.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from jitcore.experimental.sparse.matrices import compress_rows, expand_rows
from jitcore.experimental.sparse.operations import bcoo_extract, find_outside, map_batch
from jitcore.experimental.sparse.products import bcoo_dot_general, matmul
from jitcore.experimental.sparse.structure import JAXSparse
from jitcore.lax.define import canonicalize_axis
from jitcore.tree_util import register_pytree_node_class

__all__ = ["BCSR", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract",
           "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense"]


@register_pytree_node_class
class BCSR(JAXSparse):
    """Sparse matrices as entries, row by row, with axes of batches in front and dense axes behind.

    Args:
        args: data, [*batch, nse, *dense]; indices, the columns, [*batch, nse]; indptr, [*batch, rows + 1],
            where each row begins and ends. Entries behind the last row do not count.
        shape: [*batch, rows, columns, *dense]. indices_sorted, unique_indices: accepted.

    Raises: ValueError for parts that do not make an array of that shape."""

    _parts, _facts, n_sparse = ("data", "indices", "indptr"), ("sparse_shape",), 2

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        shape = tuple(map(operator.index, shape))
        self.sparse_shape = shape[self.n_batch : self.n_batch + 2]
        batch, parts = shape[: self.n_batch], (self.data.shape, self.indices.shape, self.indptr.shape)
        fits = len(self.sparse_shape) == 2 and self.shape == shape and self.data.shape[: len(batch)] == batch
        if not fits or parts[1:] != ((*batch, self.nse), (*batch, self.sparse_shape[0] + 1)):
            raise ValueError(f"BCSR: data, indices and indptr of shapes {parts} do not make an array of "
                             f"shape {shape}")

    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return self.indptr.ndim - 1

    @property
    def n_dense(self) -> int:
        """Number of dense axes."""
        return self.data.ndim - self.n_batch - 1

    @property
    def nse(self) -> int:
        """Number of entries, of each matrix of a batch."""
        return self.indices.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (*self.indptr.shape[:-1], *self.sparse_shape, *self.data.shape[self.n_batch + 1 :])

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
                  n_batch: int = 0) -> BCSR:
        """The elements of a dense array that are not zero. See `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCSR:
        """A matrix of `scipy.sparse`. Raises: NotImplementedError for batch and dense axes, which it
        lacks."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse with nonzero n_dense/n_batch")
        mat, dtype = mat.tocsr(), index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(dtype), mat.indptr.astype(dtype)), shape=mat.shape)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> BCSR:
        """The entries of a `BCOO` in the order of rows. Raises: ValueError for no two sparse axes."""
        if mat.n_sparse != 2:
            raise ValueError(f"BCSR has 2 sparse axes, got n_sparse={mat.n_sparse}")
        mat = mat.sort_indices()
        find = map_batch(lambda rows: compress_rows(rows, mat.sparse_shape[0]), mat.n_batch)
        return cls((mat.data, mat.indices[..., 1], find(mat.indices[..., 0])), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The same entries as a `BCOO`."""
        rows = map_batch(lambda indptr: expand_rows(indptr, self.nse), self.n_batch)(self.indptr)
        return BCOO((self.data, jnp.stack([rows, self.indices.astype(rows.dtype)], -1)), shape=self.shape)

    def todense(self) -> Array:
        """The array with its zeros."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Entries of one place added up to one. See `BCOO.sum_duplicates`."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def __matmul__(self, other: Any) -> Array:
        return matmul(self.to_bcoo(), other)


def bcsr_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCSR:
    """The elements of a dense array that are not zero: [*batch, rows, columns, *dense].

    Args, Raises: as for `bcoo_fromdense`. Source: `jax.experimental.sparse.bcsr_fromdense`."""
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(f"bcsr_fromdense: shape {mat.shape} with n_batch={n_batch} and n_dense={n_dense} "
                         "does not leave 2 sparse axes")
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                                         index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """The array with its zeros. Source: `jax.experimental.sparse.bcsr_todense`."""
    return mat.todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """The elements of a dense array at the places of a sparse one: its data.

    Source: `jax.experimental.sparse.bcsr_extract`."""
    mat, indices, indptr = map(jnp.asarray, (mat, indices, indptr))
    dense = mat.shape[indptr.ndim + 1 :]
    places = BCSR((jnp.zeros((*indices.shape, *dense), mat.dtype), indices, indptr), shape=mat.shape)
    return bcoo_extract(places.to_bcoo(), mat).data


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Entries of one place added up to one; nse: as for `bcoo_sum_duplicates`.

    Source: `jax.experimental.sparse.bcsr_sum_duplicates`."""
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: tuple, precision: Any = None,
                     preferred_element_type: Any = None, out_sharding: Any = None) -> Array:
    """The product of a sparse with a dense array: see `bcoo_dot_general`.

    Source: `jax.experimental.sparse.bcsr_dot_general`."""
    lhs = lhs.to_bcoo() if isinstance(lhs, BCSR) else lhs
    return bcoo_dot_general(lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
                            preferred_element_type=preferred_element_type, out_sharding=out_sharding)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays one behind the other along an axis.

    Raises: ValueError for layouts that differ, and for shapes that differ along others.
    Source: `jax.experimental.sparse.bcsr_concatenate`."""
    axis, batch = canonicalize_axis(dimension, operands[0].ndim), operands[0].n_batch
    others = {(mat.n_batch, *mat.shape[:axis], None, *mat.shape[axis + 1 :]) for mat in operands}
    if len(others) != 1:
        raise ValueError(f"bcsr_concatenate: {', '.join(map(repr, operands))} along axis {axis}")
    shape = list(operands[0].shape)
    shape[axis] = sum(mat.shape[axis] for mat in operands)
    data, indices, place = [], [], 0
    for mat in operands:
        values, places = mat.data, mat.to_bcoo().indices
        places = jnp.where(find_outside(places, mat.sparse_shape)[..., None], max(shape), places)
        if axis < batch:  # as many entries as the others have
            more = max(other.nse for other in operands) - mat.nse
            values = jnp.pad(values, [(0, more if n == batch else 0) for n in range(values.ndim)])
            places = jnp.pad(places, [(0, more if n == batch else 0) for n in range(places.ndim)],
                             constant_values=max(shape))
        elif axis < batch + 2:
            places = places + place * np.eye(2, dtype=places.dtype)[axis - batch]
        else:
            around = place, shape[axis] - place - mat.shape[axis]
            values = jnp.pad(values, [around if n == axis - 1 else (0, 0) for n in range(values.ndim)])
        data.append(values)
        indices.append(places)
        place += mat.shape[axis]
    parts = (jnp.concatenate(part, min(axis, batch)) for part in (data, indices))
    return BCSR.from_bcoo(BCOO(tuple(parts), shape=shape))


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> BCSR:
    """The array repeated along further axes: batch axes before its rows, dense ones behind its columns.

    Raises: NotImplementedError for axes between rows and columns, and for rows and columns that are repeated.
    Source: `jax.experimental.sparse.bcsr_broadcast_in_dim`."""
    shape, axes, batch = tuple(shape), list(broadcast_dimensions), mat.n_batch
    first = axes[batch]
    if axes[batch + 1] != first + 1 or shape[first : first + 2] != mat.shape[batch : batch + 2]:
        raise NotImplementedError("bcsr_broadcast_in_dim: rows and columns stay side by side, as many as "
                                  "they are")
    lead, dense = axes[:batch], [axis - 1 for axis in axes[batch + 2 :]]
    data = lax.broadcast_in_dim(mat.data, (*shape[:first], mat.nse, *shape[first + 2 :]),
                                [*lead, first, *dense])
    indices = lax.broadcast_in_dim(mat.indices, (*shape[:first], mat.nse), [*lead, first])
    indptr = lax.broadcast_in_dim(mat.indptr, (*shape[:first], shape[first] + 1), [*lead, first])
    return BCSR((data, indices, indptr), shape=shape)
