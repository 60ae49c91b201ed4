"""Gather and scatter in NumPy: what their primitives run at once.

The batch of positions is flattened to one axis, and all elements are addressed with one indexing expression:
axes along which slices are whole stay slices, the others get an index grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.lax.indexing.dimension_numbers import GatherScatterMode
from jitcore.lax.reduce import highest_value, lowest_value


# -- addressing -----------------------------------------------------------------------------------------
class Addresses(NamedTuple):
    """Where the slices lie: `grids` index `operand.transpose(order)`; the result has a leading batch axis."""

    order: tuple[int, ...]
    grids: tuple[np.ndarray, ...]
    inside: np.ndarray  # bool[batch]: which slices lie inside the operand


def _address_slices(shape, indices, dnums, sizes, clamp: bool) -> Addresses:
    """Positions of all slices, flattened over the batch; `clamp` shifts those that are outside inside."""
    _, _, index_map, batching, indices_batching = dnums
    batch_shape = indices.shape[:-1]
    count = int(np.prod(batch_shape, dtype=np.int64))
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    vectors = indices.reshape(count, indices.shape[-1]).astype(np.int64)
    starts = {dim: vectors[:, position] for position, dim in enumerate(index_map)}
    inside = np.ones(count, bool)
    for dim, start in starts.items():
        last = shape[dim] - sizes[dim]
        inside &= (start >= 0) & (start <= last)
        if clamp:
            starts[dim] = np.clip(start, 0, last)
    for dim, axis in zip(batching, indices_batching):
        form = [-1 if i == axis else 1 for i in range(len(batch_shape))]
        along = np.arange(batch_shape[axis]).reshape(form)
        starts[dim] = np.broadcast_to(along, batch_shape).reshape(count)
    # an axis along which every slice is whole needs no grid once slices outside are shifted or dropped
    partial = [dim for dim in range(len(shape)) if dim in batching or sizes[dim] != shape[dim]]
    whole = [dim for dim in range(len(shape)) if dim not in partial]
    grids = []
    for position, dim in enumerate(partial):
        start = starts.get(dim, np.zeros(count, np.int64)).reshape([-1] + [1] * len(partial))
        within = np.arange(sizes[dim]).reshape([-1 if i == position else 1 for i in range(len(partial))])
        grids.append(start + within)
    return Addresses((*partial, *whole), tuple(grids), inside)


def _window_last(ndim: int, window_dims) -> tuple[int, ...]:
    return (*[dim for dim in range(ndim) if dim not in window_dims], *window_dims)


# -- gather ---------------------------------------------------------------------------------------------
def gather_ndarray(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, indices_are_sorted,
                   unique_indices):
    dnums = dimension_numbers
    address = _address_slices(x.shape, indices, dnums, slice_sizes, clamp=True)
    _check_inside(mode, address, indices, x.shape)
    slices = _read_slices(x, address, slice_sizes)
    if mode is GatherScatterMode.FILL_OR_DROP and not address.inside.all():
        slices[~address.inside] = default_fill(x.dtype) if fill_value is None else fill_value
    window = [size for dim, size in enumerate(slice_sizes) if dim not in dnums.dropped]
    slices = slices.reshape((*indices.shape[:-1], *window))
    return slices.transpose(np.argsort(_window_last(slices.ndim, dnums.offset_dims)))


def _check_inside(mode, address: Addresses, indices, shape) -> None:
    """Raises: IndexError under CHECK, naming the first index whose slice leaves the operand."""
    if mode is GatherScatterMode.CHECK and not address.inside.all():
        first = indices.reshape(address.inside.size, -1)[int(np.argmin(address.inside))]
        raise IndexError(f"index {first.tolist()} is out of bounds for an array of shape {shape}")


def _read_slices(x, address: Addresses, sizes) -> np.ndarray:
    """The slices as an array (batch, *sizes)."""
    count = address.inside.size
    arranged = x.transpose(address.order)
    if not address.grids:
        slices = np.broadcast_to(arranged, (count, *arranged.shape)).copy()
    else:
        slices = arranged[address.grids]
    back = np.argsort(address.order)
    return slices.reshape((count, *[sizes[dim] for dim in address.order])).transpose(0, *(back + 1))


def default_fill(dtype):
    """What a gather puts for a slice outside: NaN, the smallest signed, the largest unsigned one, True."""
    if dtypes.is_inexact(dtype):
        return np.array(np.nan, dtype)
    return lowest_value(dtype) if dtypes.kind_of(dtype) == "i" else highest_value(dtype)


# -- scatter --------------------------------------------------------------------------------------------
def scatter_ndarray(combine: np.ufunc | None, x, indices, updates, *, dimension_numbers, indices_are_sorted,
                    unique_indices, mode):
    dnums = dimension_numbers
    sizes = dnums.slice_sizes(x.ndim, updates.shape)
    address = _address_slices(x.shape, indices, dnums, sizes, clamp=mode is GatherScatterMode.CLIP)
    _check_inside(mode, address, indices, x.shape)
    out = x.copy()
    if updates.size:
        last = _window_last(updates.ndim, dnums.update_window_dims)
        slices = updates.transpose(last).reshape((-1, *sizes))
        _write_slices(out, address, slices, combine, keep_all=mode is GatherScatterMode.CLIP)
    return out


def _write_slices(out, address: Addresses, slices, combine: np.ufunc | None, keep_all: bool) -> None:
    """Combines slices (batch, *sizes) into `out`, in the order of the batch."""
    arranged = out.transpose(address.order)
    values = slices.transpose(0, *(dim + 1 for dim in address.order))
    grids = address.grids
    if not keep_all and not address.inside.all():
        kept = address.inside
        values, grids = values[kept], tuple(grid[kept] if len(grid) == len(kept) else grid for grid in grids)
    if not grids:
        for value in values:
            arranged[...] = value if combine is None else combine(arranged, value)
    elif combine is None:
        arranged[grids] = values
    else:
        combine.at(arranged, grids, values)
