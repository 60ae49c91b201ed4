"""`BCOO`, the public form of sparse arrays, and how they are made.

In: dense arrays, matrices of SciPy's, entries. Out: a `BCOO`, whose methods are functions of `operations.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import random
from jitcore.array import Array
from jitcore.core import source
from jitcore.core.trace import Tracer
from jitcore.experimental.sparse import operations, products
from jitcore.experimental.sparse.structure import Coordinates
from jitcore.tree_util import register_pytree_node_class


@register_pytree_node_class
class BCOO(Coordinates):
    """A sparse array, or a batch of such, in coordinate format.

    Args:
        args: (data, indices): values [*batch, nse, *dense] of any dtype, and the place of each along the
            sparse axes, integers [*batch, nse, n_sparse]. nse is the number of entries.
        shape: of the array, [*batch, *sparse, *dense].
        indices_sorted, unique_indices: promises about the entries.

    Raises: TypeError, ValueError for data and indices that do not fit together or into the shape.
    Source: `jax.experimental.sparse.BCOO`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> m
        BCOO(float32[2, 2], nse=2)
        >>> m @ jnp.ones(2)
        Array([2., 3.], dtype=float32)"""

    # -- conversions
    @classmethod
    @source.api_boundary
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
                  n_batch: int = 0) -> BCOO:
        """The elements of a dense array that are not zero. See `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCOO:
        """A matrix of `scipy.sparse`. Raises: NotImplementedError for batch and dense axes, which it
        lacks."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], -1).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    def todense(self) -> Array:
        """The array with its zeros; entries that repeat are added up."""
        return operations.bcoo_todense(self)

    def astype(self, dtype: Any) -> BCOO:
        return self.with_data(self.data.astype(dtype))

    # -- entries and axes
    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Entries of one place added up. See `bcoo_sum_duplicates`."""
        return operations.bcoo_sum_duplicates(self, nse)

    def sort_indices(self) -> BCOO:
        """The entries in the order of the dense array."""
        return operations.bcoo_sort_indices(self)

    def update_layout(self, *, n_batch: int | None = None, n_dense: int | None = None,
                      on_inefficient: str | None = None) -> BCOO:
        """Batch and dense axes as sparse ones. See `bcoo_update_layout`."""
        return operations.bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense)

    def reshape(self, *shape: Any) -> BCOO:
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        return operations.bcoo_reshape(self, new_sizes=operations.complete_shape(self.size, sizes))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        order = tuple(range(self.ndim))[::-1] if axes is None else axes
        return operations.bcoo_transpose(self, permutation=order)

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """The sum along axes, a sparse array; of all elements, an Array."""
        axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        total = operations.bcoo_reduce_sum(self, axes=tuple(axes))
        return total if total.ndim else total.todense()

    def __getitem__(self, index: Any) -> Any:
        """Ints and slices of ints. Raises: NotImplementedError for other indices."""
        return operations.bcoo_getitem(self, index)

    # -- arithmetic
    def __neg__(self) -> BCOO:
        return self.with_data(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def __abs__(self) -> BCOO:
        unique = self.sum_duplicates()
        return unique.with_data(jnp.abs(unique.data))

    def __add__(self, other: Any) -> Any:
        return operations.bcoo_add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return operations.bcoo_add(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return operations.bcoo_add(-self, other)

    def __mul__(self, other: Any) -> BCOO:
        if isinstance(other, Coordinates):
            return operations.bcoo_multiply_sparse(self, other)
        return operations.bcoo_multiply_dense(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> BCOO:
        """By numbers and dense arrays; divisors where there is no entry are not looked at."""
        if isinstance(other, Coordinates):
            return NotImplemented
        return operations.bcoo_multiply_dense(self, 1 / other)

    def __pow__(self, other: Any) -> BCOO:
        """Raises: NotImplementedError for powers of which zero has none that is zero."""
        if not isinstance(other, (int, float)) or other <= 0:
            raise NotImplementedError(f"BCOO ** {other!r}: only positive numbers keep zeros")
        unique = self.sum_duplicates()
        return unique.with_data(unique.data ** other)

    def __matmul__(self, other: Any) -> Any:
        return products.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return products.matmul(other, self)


def bcoo_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCOO:
    """The elements of a dense array that are not zero.

    Args:
        mat: [*batch, *sparse, *dense], of any dtype.
        nse: number of entries to keep, of each array of a batch; needed where mat is traced. Further ones are
            lost.
        n_batch, n_dense: numbers of batch and dense axes; an entry holds all of its dense axes.
        index_dtype: of the indices.

    Raises: ValueError for numbers of axes that mat does not have; TypeError for a traced mat without nse.
    Source: `jax.experimental.sparse.bcoo_fromdense`.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental import sparse
        >>> sparse.bcoo_fromdense(jnp.eye(3)).indices.shape
        (3, 2)"""
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(f"BCOO.fromdense: {n_batch=} and {n_dense=} are not for an array of {mat.ndim} axes")
    is_entry = jnp.any(mat != 0, tuple(range(n_batch + n_sparse, mat.ndim)))
    if nse is None:
        if isinstance(mat, Tracer):
            raise TypeError("BCOO.fromdense: the number of entries of a traced array is not known.\nTo fix: "
                            "pass nse.")
        counts = np.asarray(is_entry).reshape(math.prod(mat.shape[:n_batch]), -1).sum(-1)
        nse = int(counts.max(initial=0))
    sparse_shape = mat.shape[n_batch : n_batch + n_sparse]
    nse = operator.index(nse)

    def find(mat, is_entry):
        if not sparse_shape:
            indices = jnp.zeros((nse, 0), index_dtype)
            return jnp.where(jnp.arange(nse).reshape(-1, *[1] * mat.ndim) == 0, mat,
                             0).astype(mat.dtype), indices
        flat = jnp.nonzero(jnp.ravel(is_entry), size=nse, fill_value=is_entry.size)[0]
        places = jnp.stack(jnp.unravel_index(flat, sparse_shape), -1)
        found = jnp.where((flat < is_entry.size)[:, None], places, np.asarray(sparse_shape))
        return operations.gather(mat, found), found.astype(index_dtype)

    data, indices = operations.map_batch(find, n_batch)(mat, is_entry)
    return BCOO.tree_unflatten((sparse_shape, True, True), (data, indices))


def random_bcoo(key: Any, shape: Sequence[int], *, dtype: Any = np.float32, indices_dtype: Any = np.int32,
                nse: int | float = 0.2, n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True,
                sorted_indices: bool = False, generator: Callable = random.uniform, **options: Any) -> BCOO:
    """A sparse array of random values at random places.

    Args:
        key: of `jitcore.random`. shape, dtype: of the array.
        nse: number of entries, or the part of all places that has one where it is below 1.
        n_batch, n_dense: numbers of batch and dense axes.
        unique_indices, sorted_indices: whether places are distinct, and in order.
        generator: `generator(key, shape, dtype, **options)` draws the values.

    Raises: ValueError for more entries than there are places.
    Source: `jax.experimental.sparse.random_bcoo`; the numbers differ from JAX's.

    Example:
        >>> import jitcore
        >>> from jitcore.experimental import sparse
        >>> sparse.random_bcoo(jitcore.random.key(0), (4, 5), nse=3)
        BCOO(float32[4, 5], nse=3)"""
    shape = tuple(map(operator.index, shape))
    n_sparse = len(shape) - n_batch - n_dense
    batch, dense = shape[:n_batch], shape[n_batch + n_sparse :]
    sparse_shape = shape[n_batch : n_batch + n_sparse]
    places = math.prod(sparse_shape)
    count = math.ceil(nse * places) if 0 < nse < 1 else operator.index(nse)
    if unique_indices and count > places:
        raise ValueError(f"random_bcoo: {count} entries at {places} distinct places")
    place_key, value_key = random.split(key)

    def draw(key):
        flat = random.choice(key, places, (count,), replace=not unique_indices)
        flat = jnp.sort(flat) if sorted_indices else flat
        return jnp.stack(jnp.unravel_index(flat, sparse_shape), -1).astype(indices_dtype)

    keys = random.split(place_key, math.prod(batch))
    indices = jnp.stack([draw(keys[i]) for i in range(math.prod(batch))]) if batch else draw(place_key)
    data = generator(value_key, (*batch, count, *dense), dtype, **options)
    return BCOO((data, indices.reshape(*batch, count, n_sparse)), shape=shape, indices_sorted=sorted_indices,
                unique_indices=unique_indices)
