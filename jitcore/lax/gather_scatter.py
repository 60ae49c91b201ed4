"""Gather and scatter: many slices read from or written into one operand at listed positions.

In: an operand, an array of start positions (its last axis is the index vector) and dimension numbers that say
which axes are which. Out: the slices side by side, or the operand with the updates combined into it.

Both implementations flatten the batch of positions to one axis and address all elements with one indexing
expression: axes along which slices are whole stay slices, the others get an index grid.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.aval import aval_of
from jitcore.lax.arguments import canonicalize_shape
from jitcore.lax.define import define, to_operands
from jitcore.lax.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather_aval,
    scatter_aval,
)
from jitcore.lax.reduce import highest_value, lowest_value
from jitcore.transforms.batch_rules import make_empty_batch, shift
from jitcore.transforms.batching import batch_values


# -- addressing -----------------------------------------------------------------------------------------
class _Addresses(NamedTuple):
    """Where the slices lie: `grids` index `operand.transpose(order)`; the result has a leading batch axis."""

    order: tuple[int, ...]
    grids: tuple[np.ndarray, ...]
    inside: np.ndarray  # bool[batch]: which slices lie inside the operand


def _address_slices(shape, indices, index_map, batching, indices_batching, sizes, clamp: bool) -> _Addresses:
    """Positions of all slices, flattened over the batch; `clamp` shifts those that are outside inside."""
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
        along = np.arange(batch_shape[axis]).reshape(
            [-1 if i == axis else 1 for i in range(len(batch_shape))]
        )
        starts[dim] = np.broadcast_to(along, batch_shape).reshape(count)
    # an axis along which every slice is whole needs no grid once slices outside are shifted or dropped
    partial = [dim for dim in range(len(shape)) if dim in batching or sizes[dim] != shape[dim]]
    whole = [dim for dim in range(len(shape)) if dim not in partial]
    grids = []
    for position, dim in enumerate(partial):
        start = starts.get(dim, np.zeros(count, np.int64)).reshape([-1] + [1] * len(partial))
        within = np.arange(sizes[dim]).reshape([-1 if i == position else 1 for i in range(len(partial))])
        grids.append(start + within)
    return _Addresses((*partial, *whole), tuple(grids), inside)


def _window_last(ndim: int, window_dims) -> tuple[int, ...]:
    return (*[dim for dim in range(ndim) if dim not in window_dims], *window_dims)


# -- lowering -------------------------------------------------------------------------------------------
def _window_starts(builder, indices, batch, shape, index_map, batching, indices_batching, sizes, clamp: bool):
    """(start index of a slice along each axis of the operand, whether the slice lies inside).

    batch: position of the slice among the slices."""
    starts = [builder.zero_index] * len(shape)
    inside = []
    for position, dim in enumerate(index_map):
        start = indices.at((*batch, builder.zero_index + position))
        last = shape[dim] - sizes[dim]
        inside.append(builder.in_range(builder.raw_index(start), last + 1))
        starts[dim] = builder.dynamic_index(start, 0, last) if clamp else builder.raw_index(start)
    for dim, axis in zip(batching, indices_batching):
        starts[dim] = batch[axis]
    return starts, builder.all_of(inside)


def _split_index(index, window_dims):
    """(position among the slices, position within the slice)."""
    return (tuple(i for dim, i in enumerate(index) if dim not in window_dims),
            tuple(i for dim, i in enumerate(index) if dim in window_dims))  # fmt: skip


def _within_slice(starts, offset, dropped) -> tuple:
    offsets = iter(offset)
    return tuple(start if dim in dropped else start + next(offsets) for dim, start in enumerate(starts))


def _lower_gather(builder, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    dnums, x = dimension_numbers, builder.store(x)
    if dnums.offset_dims:  # else each index vector is read for one element only
        indices = builder.store(indices)
    dropped = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    window = iter([size for dim, size in enumerate(slice_sizes) if dim not in dropped])
    batch_extents = iter(indices.shape[:-1])
    ndim = len(indices.shape) - 1 + len(dnums.offset_dims)
    shape = [next(window if dim in dnums.offset_dims else batch_extents) for dim in range(ndim)]

    def locate(index):
        batch, offset = _split_index(index, dnums.offset_dims)
        starts, inside = _window_starts(
            builder, indices, batch, x.shape, dnums.start_index_map, dnums.operand_batching_dims,
            dnums.start_indices_batching_dims, slice_sizes, clamp=True)  # fmt: skip
        return _within_slice(starts, offset, dropped), inside

    def combine(index, element):
        inside = locate(index)[1] if mode is GatherScatterMode.FILL_OR_DROP else None
        if inside is None:
            return element
        return builder.graph.op(
            "select", inside, element, builder.graph.const(fill_value, x.dtype), dtype=x.dtype
        )

    return builder.compute(shape, x.dtype, lambda index: [(x, locate(index)[0])], combine, 8, [x, indices])


def _lower_scatter(op, builder, x, indices, updates, *, dimension_numbers, mode, unique_indices, **_):
    dnums, window_dims = dimension_numbers, dimension_numbers.update_window_dims
    if window_dims:  # else each index vector is read for one element only
        indices = builder.store(indices)
    dropped = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    extents = iter([updates.shape[dim] for dim in window_dims])
    sizes = [1 if dim in dropped else next(extents) for dim in range(len(x.shape))]

    def locate(index):
        batch, offset = _split_index(index, window_dims)
        starts, inside = _window_starts(
            builder, indices, batch, x.shape, dnums.scatter_dims_to_operand_dims, dnums.operand_batching_dims,
            dnums.scatter_indices_batching_dims, sizes, clamp=mode is GatherScatterMode.CLIP)  # fmt: skip
        return _within_slice(starts, offset, dropped), inside

    mask = None if mode is GatherScatterMode.CLIP else lambda index: locate(index)[1]
    region = builder.region(updates, lambda index: locate(index)[0], mask, op, not unique_indices)
    return builder.regions(x.shape, x.dtype, x, [region])


# -- gather ---------------------------------------------------------------------------------------------
def _gather(
    x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, indices_are_sorted, unique_indices
):
    dnums = dimension_numbers
    address = _address_slices(
        x.shape,
        indices,
        dnums.start_index_map,
        dnums.operand_batching_dims,
        dnums.start_indices_batching_dims,
        slice_sizes,
        clamp=True,
    )
    _check_inside(mode, address, indices, x.shape)
    slices = _read_slices(x, address, slice_sizes)
    if mode is GatherScatterMode.FILL_OR_DROP and not address.inside.all():
        slices[~address.inside] = default_fill(x.dtype) if fill_value is None else fill_value
    dropped = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    window = [size for dim, size in enumerate(slice_sizes) if dim not in dropped]
    slices = slices.reshape((*indices.shape[:-1], *window))
    return slices.transpose(np.argsort(_window_last(slices.ndim, dnums.offset_dims)))


def _check_inside(mode, address: _Addresses, indices, shape) -> None:
    """Raises: IndexError under CHECK, naming the first index whose slice leaves the operand."""
    if mode is GatherScatterMode.CHECK and not address.inside.all():
        first = indices.reshape(address.inside.size, -1)[int(np.argmin(address.inside))]
        raise IndexError(f"index {first.tolist()} is out of bounds for an array of shape {shape}")


def _needs_check(*, mode, **_) -> bool:
    return mode is GatherScatterMode.CHECK


def _read_slices(x, address: _Addresses, sizes) -> np.ndarray:
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


def _batch_gather(primitive, axis, values, batched, *, dimension_numbers, slice_sizes, **params):
    dnums, (operand, indices) = dimension_numbers, batched
    if axis.size == 0:
        params |= {"dimension_numbers": dnums, "slice_sizes": slice_sizes}
        return make_empty_batch(primitive, values, batched, **params)
    along = (0,) if operand and indices else ()
    in_operand, in_indices = (shift if flag else tuple for flag in batched)
    numbers = GatherDimensionNumbers(
        # Of a batch of operands alone, each slice is taken whole along the batch axis.
        offset_dims=(*((0,) if not indices else ()), *shift(dnums.offset_dims)),
        collapsed_slice_dims=in_operand(dnums.collapsed_slice_dims),
        start_index_map=in_operand(dnums.start_index_map),
        operand_batching_dims=(*along, *in_operand(dnums.operand_batching_dims)),
        start_indices_batching_dims=(*along, *in_indices(dnums.start_indices_batching_dims)),
    )
    if operand:
        slice_sizes = (1 if indices else axis.size, *slice_sizes)
    return primitive.bind(*values, dimension_numbers=numbers, slice_sizes=slice_sizes, **params)


@define(
    "gather",
    impl=_gather,
    batch=_batch_gather,
    aval=gather_aval,
    lower=_lower_gather,
    hlo="gather",
    needs_library=_needs_check,
    stored_operands=(0,),
    reads_once=lambda dimension_numbers, **_: () if dimension_numbers.offset_dims else (1,),
)
def gather(
    operand,
    start_indices,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode=None,
    fill_value=None,
) -> Array:
    """Slices of operand at the positions that start_indices lists.

    Args:
        start_indices: integers; the last axis is the index vector, the others number the slices.
        dimension_numbers: see `GatherDimensionNumbers`.
        slice_sizes: extent of a slice along each axis of operand.
        unique_indices, indices_are_sorted: promises about start_indices that a backend may use.
        mode: `GatherScatterMode` or its name; None trusts, and shifts slices inside all the same.
        fill_value: for "fill": scalar put where a slice lies outside; NaN, the smallest signed, the largest
            unsigned integer or True by default.
    Raises: TypeError when shapes and dimension numbers disagree; ValueError for indices that are not integer.
    Source: StableHLO specification, gather."""
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill(aval_of(operand).dtype).item()
    return gather.primitive.bind(
        operand,
        start_indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=canonicalize_shape(slice_sizes),
        mode=mode,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )


# -- scatter --------------------------------------------------------------------------------------------
def _scatter(
    combine: np.ufunc | None,
    x,
    indices,
    updates,
    *,
    dimension_numbers,
    indices_are_sorted,
    unique_indices,
    mode,
):
    dnums = dimension_numbers
    window_dims = dnums.update_window_dims
    dropped = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    extents = iter([updates.shape[dim] for dim in window_dims])
    sizes = [1 if dim in dropped else next(extents) for dim in range(x.ndim)]
    address = _address_slices(
        x.shape, indices, dnums.scatter_dims_to_operand_dims, dnums.operand_batching_dims,
        dnums.scatter_indices_batching_dims, sizes, clamp=mode is GatherScatterMode.CLIP)  # fmt: skip
    _check_inside(mode, address, indices, x.shape)
    slices = (
        updates.transpose(_window_last(updates.ndim, window_dims)).reshape((-1, *sizes))
        if updates.size
        else None
    )
    out = x.copy()
    if slices is not None:
        _write_slices(out, address, slices, combine, keep_all=mode is GatherScatterMode.CLIP)
    return out


def _write_slices(out, address: _Addresses, slices, combine: np.ufunc | None, keep_all: bool) -> None:
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


def _batch_scatter(primitive, axis, values, batched, *, dimension_numbers, **params):
    dnums, indices = dimension_numbers, batched[1]
    along, whole = ((0,), ()) if indices else ((), (0,))
    numbers = ScatterDimensionNumbers(
        update_window_dims=(*whole, *shift(dnums.update_window_dims)),
        inserted_window_dims=shift(dnums.inserted_window_dims),
        scatter_dims_to_operand_dims=shift(dnums.scatter_dims_to_operand_dims),
        operand_batching_dims=(*along, *shift(dnums.operand_batching_dims)),
        scatter_indices_batching_dims=(
            *along, *(shift if indices else tuple)(dnums.scatter_indices_batching_dims)),
    )  # fmt: skip
    values = batch_values(axis, values, batched, [True, indices, True])
    return primitive.bind(*values, dimension_numbers=numbers, **params)


_COMBINE_OPS = {
    "scatter": None,
    "scatter-add": "add",
    "scatter-sub": "sub",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}


def _scatter_family(name: str, combine: np.ufunc | None, accepts: str):
    """The family: updates are put with `combine`, or replace what was there. accepts: dtype kinds."""

    def attach(function):
        define(
            name,
            impl=functools.partial(_scatter, combine),
            lower=functools.partial(_lower_scatter, _COMBINE_OPS[name]),
            batch=_batch_scatter,
            stored_operands=(0,),
            reads_once=lambda dimension_numbers, **_: (1, 2)[bool(dimension_numbers.update_window_dims) :],
            updates_operand=True,
            hlo="scatter",
            needs_library=_needs_check,
            family="scatter",
            accepts=accepts,
            aval=functools.partial(scatter_aval, function.__name__, accepts),
        )(function)

        @functools.wraps(function)
        def public(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                   unique_indices=False, mode=None):  # fmt: skip
            operand, updates = to_operands(function.__name__, (operand, updates))
            return function.primitive.bind(
                operand, scatter_indices, updates, dimension_numbers=dimension_numbers,
                indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                mode=GatherScatterMode.from_any(mode))  # fmt: skip

        return public

    return attach


@_scatter_family("scatter", None, "biufc")
def scatter(operand, scatter_indices, updates, dimension_numbers: ScatterDimensionNumbers, *,
            indices_are_sorted: bool = False, unique_indices: bool = False, mode=None) -> Array:  # fmt: skip
    """operand with slices replaced by updates; of slices that overlap, the last stays.

    Args:
        scatter_indices: integers; the last axis is the index vector, the others number the slices.
        updates: array of operand's dtype; see `ScatterDimensionNumbers` for its axes.
        unique_indices, indices_are_sorted: promises about scatter_indices that a backend may use.
        mode: `GatherScatterMode` or its name; by default slices that leave operand are dropped.
    Raises: TypeError when shapes and dimension numbers disagree; ValueError for indices that are not integer.
    Source: StableHLO specification, scatter."""


@_scatter_family("scatter-add", np.add, "iufc")
def scatter_add(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode=None,
) -> Array:
    """operand with updates added; repeated positions add up. Arguments as in `scatter`."""


@_scatter_family("scatter-sub", np.subtract, "iufc")
def scatter_sub(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode=None,
) -> Array:
    """operand with updates subtracted. Arguments as in `scatter`."""


@_scatter_family("scatter-mul", np.multiply, "iufc")
def scatter_mul(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode=None,
) -> Array:
    """operand multiplied by updates. Arguments as in `scatter`."""


@_scatter_family("scatter-min", np.minimum, "biuf")
def scatter_min(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode=None,
) -> Array:
    """The smaller of operand and updates; NaN if either is. Arguments as in `scatter`."""


@_scatter_family("scatter-max", np.maximum, "biuf")
def scatter_max(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode=None,
) -> Array:
    """The larger of operand and updates; NaN if either is. Arguments as in `scatter`."""
