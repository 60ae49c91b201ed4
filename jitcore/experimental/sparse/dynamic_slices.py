"""Parts of sparse arrays at places that are known when a program runs: `bcoo_dynamic_slice`, `bcoo_gather`.

In: sparse arrays and integers. Out: sparse arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import lax
from jitcore.experimental.sparse.operations import (bcoo_reshape, bcoo_squeeze, bcoo_sum_duplicates,
                                                    bcoo_transpose)
from jitcore.experimental.sparse.structure import S
from jitcore.lax import GatherDimensionNumbers, GatherScatterMode
from jitcore.transforms.vmap import vmap

__all__ = ["bcoo_dynamic_slice", "bcoo_gather"]


def bcoo_dynamic_slice(mat: S, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> S:
    """A part of the array that begins at places that may be traced, as `lax.dynamic_slice` has it: places
    from which it would leave the array are moved back.

    Args:
        start_indices: an integer scalar for each axis. slice_sizes: the shape of the part.

    Raises: TypeError for as many as there are no axes, and for extents larger than the array's.
    Source: `jax.experimental.sparse.bcoo_dynamic_slice`.

    Example:
        >>> from jitcore.experimental import sparse
        >>> sparse.bcoo_dynamic_slice(sparse.eye(3), (1, 0), (2, 2)).todense().tolist()
        [[0.0, 1.0], [0.0, 0.0]]"""
    sizes = tuple(map(operator.index, slice_sizes))
    if not len(start_indices) == len(sizes) == mat.ndim:
        raise TypeError(f"bcoo_dynamic_slice: {len(start_indices)} start_indices and {len(sizes)} "
                        f"slice_sizes for an array of shape {mat.shape}")
    if not all(0 <= size <= extent for size, extent in zip(sizes, mat.shape)):
        raise TypeError("slice_sizes must be less than or equal to operand shape, "
                        f"got slice_sizes {sizes} for operand shape {mat.shape}")
    ends = mat.n_batch, mat.n_batch + mat.n_sparse
    starts = [jnp.asarray(start) for start in start_indices]
    batch, sparse, dense = starts[: ends[0]], starts[ends[0] : ends[1]], starts[ends[1] :]
    data = lax.dynamic_slice(mat.data, [*batch, 0, *dense], [*sizes[: ends[0]], mat.nse, *sizes[ends[1] :]])
    indices = lax.dynamic_slice(mat.indices, [*batch, 0, 0], [*sizes[: ends[0]], mat.nse, mat.n_sparse])
    extents = sizes[ends[0] : ends[1]]
    if not sparse:
        return mat.with_entries(data, indices, extents, mat.indices_sorted, mat.unique_indices)
    shape, parts = (np.asarray(x, indices.dtype) for x in (mat.sparse_shape, extents))
    first = jnp.stack(sparse).astype(indices.dtype)
    first = jnp.clip(jnp.where(first < 0, first + shape, first), 0, shape - parts)
    inside = jnp.all((indices >= first) & (indices < first + parts), -1, keepdims=True)
    indices = jnp.where(inside, indices - first, parts)
    data = jnp.where(inside.reshape(*inside.shape[:-1], *(1,) * mat.n_dense), data, np.zeros((), data.dtype))
    found = mat.with_entries(data, indices, extents, False, mat.unique_indices)
    return bcoo_sum_duplicates(found, math.prod(extents)) if mat.nse > math.prod(extents) else found


def bcoo_gather(operand: S, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
                slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
                mode: Any = None, fill_value: Any = None) -> S:
    """Parts of the array at the places that start_indices lists, as `lax.gather` has it.

    Args: as for `lax.gather`. mode: "promise_in_bounds" (the default) or "clip", which do the same here.
        unique_indices, indices_are_sorted, fill_value: accepted.

    Raises: NotImplementedError for other modes, and for axes that run along with those of the indices.
    Source: `jax.experimental.sparse.bcoo_gather`."""
    numbers = dimension_numbers
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if mode not in (GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP):
        raise NotImplementedError(f"bcoo_gather: mode {mode} is not supported")
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather: axes that run along with those of the indices")
    start_indices = jnp.asarray(start_indices)
    lead = start_indices.shape[:-1]

    def take(vector):
        starts: list[Any] = [0] * operand.ndim
        for i, axis in enumerate(numbers.start_index_map):
            starts[axis] = vector[i]
        part = bcoo_dynamic_slice(operand, starts, slice_sizes)
        return bcoo_squeeze(part, dimensions=numbers.collapsed_slice_dims)

    if not lead:
        return take(start_indices)
    found = vmap(take)(start_indices.reshape(-1, start_indices.shape[-1]))
    found = bcoo_reshape(found, new_sizes=(*lead, *found.shape[1:]))
    windows, leading = iter(range(len(lead), found.ndim)), iter(range(len(lead)))
    order = [next(windows) if axis in numbers.offset_dims else next(leading) for axis in range(found.ndim)]
    return found if order == sorted(order) else bcoo_transpose(found, permutation=order)
