"""What a sparse array consists of: entries and their places, with axes of batches in front and dense axes
behind.

In: values and indices. Out: a pytree of both, which `jit`, `vmap` and `grad` take as they take others. A
batch of sparse arrays has all of them in one, with equal numbers of entries. Entries may repeat, and are
added up then; those whose place lies outside of the array do not count, and fill up lists that are shorter
than others.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.tree_util import tree_leaves

S = TypeVar("S", bound="JAXSparse")


class SparseEfficiencyWarning(UserWarning):
    """A category that programs filter; nothing here warns of it."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A category that programs filter; nothing here warns of it."""


class SparseEfficiencyError(ValueError):
    """What programs catch where a layout cannot be changed cheaply; it is changed here."""


class JAXSparse:
    """A sparse array of any format: a pytree of arrays, `_parts`, and of what is known besides, `_facts`.
    Source: `jax.experimental.sparse.JAXSparse`."""

    __array_priority__ = 100  # ndarray operators give way
    __hash__ = None  # type: ignore[assignment]
    _parts: ClassVar[tuple[str, ...]]
    _facts: ClassVar[tuple[str, ...]]
    shape: tuple[int, ...]
    data: Any
    nse: int
    n_batch = n_dense = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        if not hasattr(self.data, "dtype"):  # a pytree of something else
            return f"{name}({', '.join(map(repr, self.tree_flatten()[0]))})"
        batch = f", n_batch={self.n_batch}" if self.n_batch else ""
        dense = f", n_dense={self.n_dense}" if self.n_dense else ""
        return f"{name}({dtypes.name_of(self.dtype)}{list(self.shape)}, nse={self.nse}{batch}{dense})"

    def tree_flatten(self) -> tuple[tuple, tuple]:
        parts, facts = (tuple(getattr(self, name) for name in names) for names in (self._parts, self._facts))
        return parts, facts

    @classmethod
    def tree_unflatten(cls: type[S], facts: tuple, children: Sequence) -> S:
        self = object.__new__(cls)
        vars(self).update(zip((*cls._parts, *cls._facts), (*children, *facts)))
        return self

    def block_until_ready(self: S) -> S:
        """The array, once its parts are computed."""
        for part in tree_leaves(self):
            part.block_until_ready()
        return self

    @property
    def T(self) -> Any:  # noqa: N802  NumPy's name
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes in another order."""
        raise NotImplementedError(f"transpose of {type(self).__name__}")

    def todense(self) -> Any:
        """The array with its zeros."""
        raise NotImplementedError(f"todense of {type(self).__name__}")


class Coordinates(JAXSparse):
    """A sparse array in coordinate format; `BCOO` is its public form."""

    _parts = "data", "indices"
    _facts = "sparse_shape", "indices_sorted", "unique_indices"

    def __init__(self, args: tuple[Any, Any], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False):
        self.data, self.indices = map(jnp.asarray, args)
        shape = tuple(map(operator.index, shape))
        if self.indices.ndim < 2 or not dtypes.is_integer(self.indices.dtype):
            raise TypeError("BCOO: indices must be integers [*batch, nse, n_sparse], got "
                            f"{aval_of(self.indices).long()}")
        self.sparse_shape = shape[self.n_batch : self.n_batch + self.n_sparse]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        batch = self.n_batch + 1
        is_whole = self.shape == shape and len(self.sparse_shape) == self.n_sparse
        if not is_whole or self.data.shape[:batch] != self.indices.shape[:batch]:
            raise ValueError(f"BCOO: data {aval_of(self.data).long()} and indices "
                             f"{aval_of(self.indices).long()} do not make an array of shape {shape}")

    # -- facts
    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """Number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """Number of dense axes."""
        return self.data.ndim - self.n_batch - 1

    @property
    def nse(self) -> int:
        """Number of entries, of each array of a batch."""
        return self.indices.shape[-2]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (*self.indices.shape[:-2], *self.sparse_shape, *self.data.shape[self.n_batch + 1 :])

    @property
    def aval(self) -> ShapedArray:
        """Of the dense array."""
        return ShapedArray(self.shape, self.dtype)

    def with_data(self: S, data: Any) -> S:
        """Other values at the same places."""
        return self.tree_unflatten(self.tree_flatten()[1], (data, self.indices))

    def with_entries(self: S, data: Any, indices: Any, sparse_shape: Sequence[int], is_sorted: bool = False,
                     is_unique: bool = False) -> S:
        """Other entries, in an array that has these sparse axes."""
        return self.tree_unflatten((tuple(sparse_shape), is_sorted, is_unique), (data, indices))
