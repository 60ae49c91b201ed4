"""Gather and scatter: many slices read from or written into one operand at listed positions.

In: an operand, an array of start positions (its last axis is the index vector) and dimension numbers that say
which axes are which. Out: the slices side by side, or the operand with the updates combined into it.

Both implementations flatten the batch of positions to one axis and address all elements with one indexing
expression: axes along which slices are whole stay slices, the others get an index grid.
"""

from __future__ import annotations

import enum
import functools
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.lax.define import define, to_operands
from jitcore.lax.reduce import highest_value, lowest_value
from jitcore.lax.shape import canonicalize_shape


class GatherScatterMode(enum.Enum):
    """What happens to slices that leave the operand: shifted inside, filled (or dropped), or trusted."""

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3

    @staticmethod
    def from_any(mode) -> GatherScatterMode:
        """The mode named "clip", "fill", "drop" or "promise_in_bounds". Raises: ValueError for another."""
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            raise ValueError(f'Unknown gather mode "{mode}"') from None

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class GatherDimensionNumbers(NamedTuple):
    """Which axis is which in a gather.

    Args:
        offset_dims: axes of the result that run through a slice, increasing.
        collapsed_slice_dims: axes of operand, of slice size 1, that the result lacks.
        start_index_map: axis of operand that each entry of an index vector positions.
        operand_batching_dims: axes of operand that run along with axes of the indices.
        start_indices_batching_dims: those axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axis is which in a scatter; the mirror image of `GatherDimensionNumbers`.

    Args:
        update_window_dims: axes of the updates that run through a slice, increasing.
        inserted_window_dims: axes of operand, of slice size 1, that the updates lack.
        scatter_dims_to_operand_dims: axis of operand that each entry of an index vector positions.
        operand_batching_dims: axes of operand that run along with axes of the indices.
        scatter_indices_batching_dims: those axes of the indices.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


# -- shape rules ----------------------------------------------------------------------------------------
def _check_sorted_unique(name: str, dims, bound, what: str) -> None:
    if list(dims) != sorted(dims):
        raise TypeError(f"{what} in {name} op must be sorted; got {tuple(dims)}")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{what} in {name} op must not repeat; got: {tuple(dims)}.")
    if any(not 0 <= dim < bound for dim in dims):
        raise TypeError(f"{what} in {name} op must lie in [0, {bound}); got {tuple(dims)}")


def _check_common(
    name: str, x: ShapedArray, indices: ShapedArray, dropped, index_map, batching, indices_batching, labels
) -> None:
    if not dtypes.is_integer(indices.dtype):
        raise ValueError("indices must have an integer type")
    if not indices.ndim:
        raise TypeError(f"{name} indices need an axis for the index vector, got a scalar")
    _check_sorted_unique(name, dropped, x.ndim, labels[0])
    _check_sorted_unique(name, batching, x.ndim, "operand_batching_dims")
    if len(index_map) != indices.shape[-1]:
        raise TypeError(
            f"{name.capitalize()} op has {len(index_map)} elements in {labels[1]} and the bound of "
            f"dimension index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. "
            "These two numbers must be equal."
        )
    if len(set(index_map)) != len(index_map):
        raise TypeError(f"{labels[1]} in {name} op must not repeat; got: {tuple(index_map)}.")
    if any(not 0 <= dim < x.ndim for dim in index_map):
        raise TypeError(
            f"Invalid {labels[1]} in {name} op: {tuple(index_map)} for an operand of rank {x.ndim}"
        )
    if set(batching) & (set(dropped) | set(index_map)):
        raise TypeError(
            f"operand_batching_dims in {name} op must be disjoint from {labels[0]} and {labels[1]}; "
            f"got {tuple(batching)}"
        )
    along = [indices.shape[dim] for dim in indices_batching]
    if along != [x.shape[dim] for dim in batching]:
        raise TypeError(
            f"{name.capitalize()} op requires the batching dimensions of operand and indices to agree; "
            f"got {[x.shape[dim] for dim in batching]} and {along}"
        )


def _gather_aval(x: ShapedArray, indices: ShapedArray, *, dimension_numbers, slice_sizes, mode, fill_value,
                 indices_are_sorted, unique_indices) -> ShapedArray:  # fmt: skip
    dnums = dimension_numbers
    _check_common("gather", x, indices, dnums.collapsed_slice_dims, dnums.start_index_map,
                  dnums.operand_batching_dims, dnums.start_indices_batching_dims,
                  ("collapsed_slice_dims", "start_index_map"))  # fmt: skip
    if len(slice_sizes) != x.ndim:
        raise TypeError("Gather op must have one slice size for every input dimension; got: "
                        f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={x.ndim}")  # fmt: skip
    for dim, (size, extent) in enumerate(zip(slice_sizes, x.shape)):
        if size < 0 or size > extent:
            raise TypeError(f"Slice size at index {dim} in gather op is out of range, must be within "
                            f"[0, {extent} + 1), got {size}.")  # fmt: skip
    dropped = (*dnums.collapsed_slice_dims, *dnums.operand_batching_dims)
    for position, dim in enumerate(dropped):
        if not slice_sizes[dim] == 1:
            raise TypeError("Gather op can only collapse slice dims with bound 1, but bound is "
                            f"{slice_sizes[dim]} for index {dim} at position {position}.")  # fmt: skip
    window = [size for dim, size in enumerate(slice_sizes) if dim not in dropped]
    ndim = len(window) + indices.ndim - 1
    _check_sorted_unique("gather", dnums.offset_dims, ndim, "offset_dims")
    if len(dnums.offset_dims) != len(window):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension or "
            f"explicitly collapsed; got len(slice_sizes)={len(slice_sizes)}, offset_dims="
            f"{dnums.offset_dims}, dropped dimensions={dropped}."
        )
    offsets, batch = iter(window), iter(indices.shape[:-1])
    return x.update(shape=tuple(next(offsets if dim in dnums.offset_dims else batch) for dim in range(ndim)))


def _scatter_aval(name: str, accepts: str, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                  dimension_numbers, indices_are_sorted, unique_indices, mode) -> ShapedArray:  # fmt: skip
    dnums = dimension_numbers
    if x.dtype != updates.dtype:
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, "
                        f"got {x.dtype.name}, {updates.dtype.name}.")  # fmt: skip
    if dtypes.kind_of(x.dtype) not in accepts:
        raise TypeError(f"{name} does not accept dtype {x.dtype.name}.")
    _check_common("scatter", x, indices, dnums.inserted_window_dims, dnums.scatter_dims_to_operand_dims,
                  dnums.operand_batching_dims, dnums.scatter_indices_batching_dims,
                  ("inserted_window_dims", "scatter_dims_to_operand_dims"))  # fmt: skip
    ndim = len(dnums.update_window_dims) + indices.ndim - 1
    if updates.ndim != ndim:
        raise TypeError(f"Updates tensor must be of rank {ndim}; got {updates.ndim}.")
    _check_sorted_unique("scatter", dnums.update_window_dims, ndim, "update_window_dims")
    dropped = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    window_dims = [dim for dim in range(x.ndim) if dim not in dropped]
    if len(window_dims) != len(dnums.update_window_dims):
        raise TypeError(
            "Scatter op has window of size "
            f"{len(dnums.update_window_dims) + len(dropped)}; doesn't match operand of rank {x.ndim}."
        )
    for position, dim in zip(dnums.update_window_dims, window_dims):
        if updates.shape[position] > x.shape[dim]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {position}, updates bound is "
                f"{updates.shape[position]}, operand bound is {x.shape[dim]}."
            )
    batch = tuple(extent for dim, extent in enumerate(updates.shape) if dim not in dnums.update_window_dims)
    if batch != indices.shape[:-1]:
        raise TypeError(f"Updates scatter shape {batch} must be that of the indices, {indices.shape[:-1]}.")
    return x.update(weak_type=x.weak_type and updates.weak_type)


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
    dnums, x, indices = dimension_numbers, builder.store(x), builder.store(indices)
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
        return builder.graph.op("select", inside, element, builder.graph.const(fill_value, x.dtype), dtype=x.dtype)

    return builder.compute(shape, x.dtype, lambda index: [(x, locate(index)[0])], combine, 8)


def _lower_scatter(op: str | None, builder, x, indices, updates, *, dimension_numbers, mode, **_):
    dnums, indices, updates = dimension_numbers, builder.store(indices), builder.store(updates)
    window_dims = dnums.update_window_dims
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
    region = builder.region(updates, lambda index: locate(index)[0], mask, op, serial=True)
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
    slices = _read_slices(x, address, slice_sizes)
    if mode is GatherScatterMode.FILL_OR_DROP and not address.inside.all():
        slices[~address.inside] = default_fill(x.dtype) if fill_value is None else fill_value
    dropped = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    window = [size for dim, size in enumerate(slice_sizes) if dim not in dropped]
    slices = slices.reshape((*indices.shape[:-1], *window))
    return slices.transpose(np.argsort(_window_last(slices.ndim, dnums.offset_dims)))


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


@define("gather", impl=_gather, aval=_gather_aval, lower=_lower_gather, hlo="gather", stores_operands=True)
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


_COMBINE_OPS = {"scatter": None, "scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul", "scatter-min": "min", "scatter-max": "max"}


def _scatter_family(name: str, combine: np.ufunc | None, accepts: str):
    """The family: updates are put with `combine`, or replace what was there. accepts: dtype kinds."""

    def attach(function):
        define(
            name,
            impl=functools.partial(_scatter, combine),
            lower=functools.partial(_lower_scatter, _COMBINE_OPS[name]),
            stores_operands=True,
            hlo="scatter",
            family="scatter",
            accepts=accepts,
            aval=functools.partial(_scatter_aval, function.__name__, accepts),
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
