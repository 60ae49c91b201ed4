"""Gather and scatter: their dimension numbers, their modes and their shape rules.

In: avals and parameters of a gather or scatter. Out: the result's aval, or an error naming what disagrees.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from jitcore import dtypes
from jitcore.core.jaxpr import ShapedArray

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers"]


class GatherScatterMode(enum.Enum):
    """What happens to slices that leave the operand: shifted inside, filled (or dropped), trusted, refused.

    CHECK raises IndexError; indexing chooses it where `config.check_bounds` is on."""

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    CHECK = 4

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


_MODES = {None: GatherScatterMode.FILL_OR_DROP, "clip": GatherScatterMode.CLIP,
          "fill": GatherScatterMode.FILL_OR_DROP, "drop": GatherScatterMode.FILL_OR_DROP,
          "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS, "check": GatherScatterMode.CHECK}


class GatherDimensionNumbers(NamedTuple):
    """Which axis is which in a gather.

    Args:
        offset_dims: axes of the result that run through a slice, increasing.
        collapsed_slice_dims: axes of operand, of slice size 1, that the result lacks.
        start_index_map: axis of operand that each entry of an index vector positions.
        operand_batching_dims: axes of operand that run along with axes of the indices.
        start_indices_batching_dims: those axes of the indices."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    @property
    def dropped(self) -> tuple[int, ...]:
        """Axes of operand that a slice lacks."""
        return *self.collapsed_slice_dims, *self.operand_batching_dims

    def result_shape(self, slice_sizes, indices_shape) -> tuple:
        window = iter([size for dim, size in enumerate(slice_sizes) if dim not in self.dropped])
        batch, dims = iter(indices_shape[:-1]), range(len(self.offset_dims) + len(indices_shape) - 1)
        return tuple(next(window if dim in self.offset_dims else batch) for dim in dims)

    def invert(self) -> ScatterDimensionNumbers:
        """Of the scatter that puts the slices back where they come from."""
        return ScatterDimensionNumbers(*self)


class ScatterDimensionNumbers(NamedTuple):
    """Which axis is which in a scatter; the mirror image of `GatherDimensionNumbers`.

    Args:
        update_window_dims: axes of the updates that run through a slice, increasing.
        inserted_window_dims: axes of operand, of slice size 1, that the updates lack.
        scatter_dims_to_operand_dims: axis of operand that each entry of an index vector positions.
        operand_batching_dims: axes of operand that run along with axes of the indices.
        scatter_indices_batching_dims: those axes of the indices."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    @property
    def dropped(self) -> tuple[int, ...]:
        """Axes of operand that a slice lacks."""
        return *self.inserted_window_dims, *self.operand_batching_dims

    def invert(self) -> GatherDimensionNumbers:
        """Of the gather that reads the slices that were written."""
        return GatherDimensionNumbers(*self)

    def slice_sizes(self, ndim: int, updates_shape) -> tuple:
        """Extents of one slice along each of the operand's `ndim` axes."""
        extents = iter([updates_shape[dim] for dim in self.update_window_dims])
        return tuple(1 if dim in self.dropped else next(extents) for dim in range(ndim))


# -- shape rules ----------------------------------------------------------------------------------------
def _check_sorted_unique(name: str, dims, bound, what: str) -> None:
    if list(dims) != sorted(dims):
        raise TypeError(f"{what} in {name} op must be sorted; got {tuple(dims)}")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{what} in {name} op must not repeat; got: {tuple(dims)}.")
    if any(not 0 <= dim < bound for dim in dims):
        raise TypeError(f"{what} in {name} op must lie in [0, {bound}); got {tuple(dims)}")


def _check_common(name: str, x: ShapedArray, indices: ShapedArray, dropped, index_map, batching,
                  indices_batching, labels) -> None:
    if not dtypes.is_integer(indices.dtype):
        raise ValueError("indices must have an integer type")
    if not indices.ndim:
        raise TypeError(f"{name} indices need an axis for the index vector, got a scalar")
    _check_sorted_unique(name, dropped, x.ndim, labels[0])
    _check_sorted_unique(name, batching, x.ndim, "operand_batching_dims")
    if len(index_map) != indices.shape[-1]:
        raise TypeError(f"{name.capitalize()} op has {len(index_map)} elements in {labels[1]} and the bound "
                        f"of dimension index_vector_dim={indices.ndim - 1} of indices is "
                        f"{indices.shape[-1]}. These two numbers must be equal.")
    if len(set(index_map)) != len(index_map):
        raise TypeError(f"{labels[1]} in {name} op must not repeat; got: {tuple(index_map)}.")
    if any(not 0 <= dim < x.ndim for dim in index_map):
        raise TypeError(f"Invalid {labels[1]} in {name} op: {tuple(index_map)} for an operand of rank "
                        f"{x.ndim}")
    if set(batching) & (set(dropped) | set(index_map)):
        raise TypeError(f"operand_batching_dims in {name} op must be disjoint from {labels[0]} and "
                        f"{labels[1]}; got {tuple(batching)}")
    along = [indices.shape[dim] for dim in indices_batching]
    if along != [x.shape[dim] for dim in batching]:
        raise TypeError(f"{name.capitalize()} op requires the batching dimensions of operand and indices to "
                        f"agree; got {[x.shape[dim] for dim in batching]} and {along}")


def gather_aval(x: ShapedArray, indices: ShapedArray, *, dimension_numbers, slice_sizes, mode, fill_value,
                 indices_are_sorted, unique_indices) -> ShapedArray:
    dnums = dimension_numbers
    _check_common("gather", x, indices, dnums.collapsed_slice_dims, dnums.start_index_map,
                  dnums.operand_batching_dims, dnums.start_indices_batching_dims,
                  ("collapsed_slice_dims", "start_index_map"))
    if len(slice_sizes) != x.ndim:
        raise TypeError("Gather op must have one slice size for every input dimension; got: "
                        f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={x.ndim}")
    for dim, (size, extent) in enumerate(zip(slice_sizes, x.shape)):
        if size < 0 or size > extent:
            raise TypeError(f"Slice size at index {dim} in gather op is out of range, must be within "
                            f"[0, {extent} + 1), got {size}.")
    for position, dim in enumerate(dnums.dropped):
        if not slice_sizes[dim] == 1:
            raise TypeError("Gather op can only collapse slice dims with bound 1, but bound is "
                            f"{slice_sizes[dim]} for index {dim} at position {position}.")
    window = [dim for dim in range(x.ndim) if dim not in dnums.dropped]
    _check_sorted_unique("gather", dnums.offset_dims, len(window) + indices.ndim - 1, "offset_dims")
    if len(dnums.offset_dims) != len(window):
        raise TypeError("All components of the offset index in a gather op must either be a offset dimension "
                        f"or explicitly collapsed; got len(slice_sizes)={len(slice_sizes)}, offset_dims="
                        f"{dnums.offset_dims}, dropped dimensions={dnums.dropped}.")
    return x.update(shape=dnums.result_shape(slice_sizes, indices.shape))


def scatter_aval(name: str, accepts: str, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                  dimension_numbers, indices_are_sorted, unique_indices, mode) -> ShapedArray:
    dnums = dimension_numbers
    if x.dtype != updates.dtype:
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, "
                        f"got {x.dtype.name}, {updates.dtype.name}.")
    if dtypes.kind_of(x.dtype) not in accepts:
        dtypes.reject_narrow(name, x.dtype)
        raise TypeError(f"{name} does not accept dtype {x.dtype.name}.")
    _check_common("scatter", x, indices, dnums.inserted_window_dims, dnums.scatter_dims_to_operand_dims,
                  dnums.operand_batching_dims, dnums.scatter_indices_batching_dims,
                  ("inserted_window_dims", "scatter_dims_to_operand_dims"))
    ndim = len(dnums.update_window_dims) + indices.ndim - 1
    if updates.ndim != ndim:
        raise TypeError(f"Updates tensor must be of rank {ndim}; got {updates.ndim}.")
    _check_sorted_unique("scatter", dnums.update_window_dims, ndim, "update_window_dims")
    dropped = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    window_dims = [dim for dim in range(x.ndim) if dim not in dropped]
    if len(window_dims) != len(dnums.update_window_dims):
        raise TypeError(
            "Scatter op has window of size "
            f"{len(dnums.update_window_dims) + len(dropped)}; doesn't match operand of rank {x.ndim}.")
    for position, dim in zip(dnums.update_window_dims, window_dims):
        if updates.shape[position] > x.shape[dim]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {position}, updates bound is "
                f"{updates.shape[position]}, operand bound is {x.shape[dim]}.")
    batch = tuple(extent for dim, extent in enumerate(updates.shape) if dim not in dnums.update_window_dims)
    if batch != indices.shape[:-1]:
        raise TypeError(f"Updates scatter shape {batch} must be that of the indices, {indices.shape[:-1]}.")
    return x.update(weak_type=x.weak_type and updates.weak_type)
