"""Slices: static ones, dynamic ones whose position is a value, and updates of a slice.

In: an operand and positions, static or traced. Out: the part, or the operand with the part replaced.
A static slice must fit; a dynamic one is shifted until it does (its start is clamped).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.symbolic import DimExpr
from jitcore.core.trace import Tracer, to_numpy
from jitcore.lax.define import canonicalize_axis, canonicalize_shape, define, to_operands
from jitcore.lax.elementwise import add, convert_element_type, lt, select_n
from jitcore.lax.indexing.dimension_numbers import (GatherDimensionNumbers, GatherScatterMode,
                                                    ScatterDimensionNumbers)
from jitcore.lax.indexing.gather_scatter import gather, scatter
from jitcore.lax.joining import concatenate
from jitcore.lax.pad import pad
from jitcore.lax.shape import own_result, reshape, squeeze
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.batching import batch_values
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import fill
from jitcore.transforms.transpose import is_linear

__all__ = ["dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
           "dynamic_update_slice", "dynamic_update_slice_in_dim", "index_in_dim", "slice", "slice_in_dim"]


def check_slice_sizes(sizes, shape) -> None:
    """Raises: TypeError when a size is negative or larger than its extent."""
    if any(size > extent for size, extent in zip(sizes, shape)):
        raise TypeError("slice slice_sizes must be less than or equal to operand shape, "
                        f"got slice_sizes {tuple(sizes)} for operand shape {shape}.")
    if any(size < 0 for size in sizes):
        raise TypeError("slice slice_sizes must be greater than or equal to zero, "
                        f"got slice_sizes of {tuple(sizes)}.")


# -- static slices --------------------------------------------------------------------------------------
def _slice_aval(x: ShapedArray, *, start_indices, limit_indices, strides) -> ShapedArray:
    for name, values in (("start_indices", start_indices), ("limit_indices", limit_indices),
                         ("strides", strides)):
        if values is not None and len(values) != x.ndim:
            raise TypeError(f"slice {name} must have one entry for each dimension of the operand, "
                            f"got {name} {values} for operand shape {x.shape}.")
    if any(start < 0 for start in start_indices):
        raise TypeError("slice start_indices must be greater than or equal to zero, "
                        f"got start_indices of {start_indices}.")
    if any(limit > extent for limit, extent in zip(limit_indices, x.shape)):
        raise TypeError("slice limit_indices must be less than or equal to operand shape, "
                        f"got limit_indices {limit_indices} for operand shape {x.shape}.")
    if any(limit < start for start, limit in zip(start_indices, limit_indices)):
        raise TypeError("slice limit_indices must be greater than or equal to start_indices, "
                        f"got start_indices {start_indices} and limit_indices {limit_indices}.")
    if strides is None:
        return x.update(shape=tuple(limit - start for start, limit in zip(start_indices, limit_indices)))
    if any(stride <= 0 for stride in strides):
        raise TypeError(f"slice strides must be positive, got {strides}")
    bounds = zip(start_indices, limit_indices, strides)
    return x.update(shape=tuple((limit - start + stride - 1) // stride for start, limit, stride in bounds))


def _slice(x, *, start_indices, limit_indices, strides):
    return x[tuple(map(_python_slice, start_indices, limit_indices, strides or (None,) * x.ndim))]


def _lower_slice(builder, x, *, start_indices, limit_indices, strides):
    steps = strides or (1,) * len(start_indices)
    shape = [(limit - start + step - 1) // step
             for start, limit, step in zip(start_indices, limit_indices, steps)]
    return builder.view(
        x, shape, lambda index: tuple(i * step + start for i, step, start in zip(index, steps, start_indices))
    )


def _clamped_starts(builder, starts, extents, sizes, in_bounds) -> list:
    """Start positions as indices that keep a window of `sizes` inside `extents`."""
    return [builder.raw_index(start.at(())) if is_inside else builder.dynamic_index(
            start.at(()), 0, extent - size) for start, extent, size, is_inside in zip(
            starts, extents, sizes, in_bounds or (False,) * len(extents))]


def _hlo_slice(b, x, *, start_indices, limit_indices, strides):
    return b.slice(x, start_indices, limit_indices, strides)


def _hlo_dynamic_slice(b, x, *starts, slice_sizes, in_bounds=None):
    starts = map(b.index, starts)
    return b.op("dynamic_slice", x, *starts, shape=slice_sizes, slice_sizes=slice_sizes)


def _hlo_dynamic_update_slice(b, x, update, *starts, in_bounds=None):
    return b.op("dynamic_update_slice", x, update, *map(b.index, starts))


def _lower_dynamic_slice(builder, x, *starts, slice_sizes, in_bounds=None):
    starts = list(map(builder.store, starts))
    in_bounds = None if builder.speculates else in_bounds

    def place(index):
        begin = _clamped_starts(builder, starts, x.shape, slice_sizes, in_bounds)
        return tuple(i + start for i, start in zip(index, begin))

    return builder.view(x, slice_sizes, place, starts)


def _lower_dynamic_update_slice(builder, x, update, *starts, in_bounds=None):
    in_bounds = None if builder.speculates else in_bounds

    def place(index):
        begin = _clamped_starts(builder, starts, x.shape, update.shape, in_bounds)
        return tuple(i + start for i, start in zip(index, begin))

    return builder.regions(x.shape, x.dtype, x, [builder.region(update, place)])


_python_slice = slice  # the builtin; `slice` below is the lax function


def _keep_batch(size, *, start_indices, limit_indices, strides) -> dict:
    return {"start_indices": (0, *start_indices), "limit_indices": (size, *limit_indices),
            "strides": None if strides is None else (1, *strides)}


def _transpose_slice(ct, x, *, start_indices, limit_indices, strides):
    steps = strides or (1,) * len(start_indices)
    # Behind the last element of the slice stands what the step leaps over, and what lies outside.
    config = tuple((start, extent - start - _spread(size, step), step - 1) for start, extent, size, step in
                   zip(start_indices, x.aval.shape, aval_of(ct).shape, steps))
    return pad.primitive.bind(ct, np.zeros((), x.aval.dtype)[()], padding_config=config)


def _spread(count, step):
    """Extent of this number of elements at this distance."""
    return count if step == 1 else (count - 1) * step + 1 if count != 0 else 0


@define("slice", impl=own_result(_slice), aval=_slice_aval, jvp=jvp_linear(), hlo=_hlo_slice,
        transpose=transpose_unary(_transpose_slice), zeros="made", batch=rebind(_keep_batch),
        lower=_lower_slice, walks=True, same_elements=True)
def slice(operand, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Array:
    """The part of operand from start_indices up to limit_indices, one of each per axis, in steps of strides.

    Raises: TypeError when it does not lie inside operand."""
    return slice.primitive.bind(operand, start_indices=canonicalize_shape(start_indices),
                                limit_indices=canonicalize_shape(limit_indices),
                                strides=None if strides is None else canonicalize_shape(strides))


def slice_in_dim(operand, start_index: int | None, limit_index: int | None, stride: int = 1,
                 axis: int = 0) -> Array:
    """`operand[start_index:limit_index:stride]` along one axis; negative positions count from the end."""
    shape = aval_of(operand).shape
    axis = canonicalize_axis(axis, len(shape))
    extent = shape[axis]
    start, limit = (default if given is None else given + extent if given < 0 else given
                    for given, default in ((start_index, 0), (limit_index, extent)))
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, limit, operator.index(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at a static index of one axis. Raises: IndexError when the axis has no such index."""
    shape = aval_of(operand).shape
    axis = canonicalize_axis(axis, len(shape))
    index, extent = operator.index(index), shape[axis]
    if not (-extent <= index and index < extent):
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {extent}")
    start = index + extent if index < 0 else index
    result = slice_in_dim(operand, start, start + 1, 1, axis)
    return result if keepdims else squeeze(result, (axis,))


# -- dynamic slices -------------------------------------------------------------------------------------
def _check_start_indices(name: str, x: ShapedArray, indices: Sequence[ShapedArray]) -> None:
    if len(indices) != x.ndim:
        raise TypeError(f"{name} start_indices must have one entry for each dimension of the operand, "
                        f"got {len(indices)} start_indices for operand shape {x.shape}.")
    if not all(dtypes.is_integer(index.dtype) for index in indices) or len({i.dtype for i in indices}) > 1:
        raise TypeError(f"index arguments to {name} must be integers of the same type, "
                        f"got: {', '.join(index.dtype.name for index in indices)}")
    if any(index.shape for index in indices):
        raise TypeError(
            f"{name} start_indices must be scalars, got shapes {[index.shape for index in indices]}")


def _dynamic_slice_aval(x: ShapedArray, *indices: ShapedArray, slice_sizes, in_bounds=None) -> ShapedArray:
    if len(slice_sizes) != x.ndim:
        raise TypeError("slice slice_sizes must have one entry for each dimension of the operand, "
                        f"got slice_sizes {slice_sizes} for operand shape {x.shape}.")
    check_slice_sizes(slice_sizes, x.shape)
    _check_start_indices("dynamic_slice", x, indices)
    return x.update(shape=slice_sizes)


def _clamped_window(shape, indices, sizes) -> tuple:
    starts = [max(0, min(int(index), extent - size)) for index, extent, size in zip(indices, shape, sizes)]
    return tuple(_python_slice(start, start + size) for start, size in zip(starts, sizes))


# in_bounds: what the compiler found out (`passes.intervals`): for each axis, whether the slice lies inside
# along it without being shifted. It is no part of what is traced, and rules other than of lowering drop it:
# where a batch shares a loop or a branch, it need not hold for every element.
def _dynamic_slice(x, *indices, slice_sizes, in_bounds=None):
    return x[_clamped_window(x.shape, indices, slice_sizes)]


# What a gather or scatter needs besides to act as a dynamic slice or its update.
_AT_CLAMPED_STARTS = {"mode": GatherScatterMode.CLIP, "indices_are_sorted": False, "unique_indices": False}


def _stack_starts(axis, starts, batched):
    """The start positions of each element of a batch, [batch, axes of the operand]."""
    starts = batch_values(axis, starts, batched)
    return concatenate([reshape(start, (axis.size, 1)) for start in starts], 1)


def _first_start(starts):
    """The start along a batch axis that is taken whole."""
    dtype = aval_of(starts[0]).dtype if starts else dtypes.int32
    return np.zeros((), dtype)[()]


def _batch_dynamic_slice(primitive, axis, values, batched, *, slice_sizes, in_bounds=None):
    (x, *starts), (x_batched, *start_flags) = values, batched
    if not any(start_flags):
        return primitive.bind(x, _first_start(starts), *starts, slice_sizes=(axis.size, *slice_sizes))
    dims = tuple(range(len(starts)))
    return gather.primitive.batch(gather.primitive, axis, [x, _stack_starts(axis, starts, start_flags)],
                                  [x_batched, True], dimension_numbers=GatherDimensionNumbers(dims, (), dims),
                                  slice_sizes=slice_sizes, fill_value=None, **_AT_CLAMPED_STARTS)


def _transpose_dynamic_slice(ct, x, *starts, slice_sizes, in_bounds=None):
    return dynamic_update_slice.primitive.bind(fill(x.aval, 0), ct, *starts)


@define("dynamic_slice", impl=own_result(_dynamic_slice), aval=_dynamic_slice_aval, jvp=jvp_linear(0),
        transpose=transpose_unary(_transpose_dynamic_slice), zeros="made", batch=_batch_dynamic_slice,
        lower=_lower_dynamic_slice, hlo=_hlo_dynamic_slice, same_elements=True)
def dynamic_slice(operand, start_indices, slice_sizes, *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The part of operand of a static size at a position that may be traced.

    Args:
        start_indices: integer scalars, one per axis, or one array of them; negative ones count from the end.
        slice_sizes: extents of the result.
        allow_negative_indices: False (for all, or per axis) leaves the test for negative indices out.
    Returns: a slice that lies inside: starts are clamped.
    Raises: TypeError when slice_sizes exceed operand's shape; ValueError for another number of indices."""
    indices = normalize_start_indices("dynamic_slice", operand, start_indices, allow_negative_indices)
    return dynamic_slice.primitive.bind(operand, *indices, slice_sizes=canonicalize_shape(slice_sizes))


def _dynamic_update_slice_aval(x: ShapedArray, update: ShapedArray, *indices: ShapedArray,
                               in_bounds=None) -> ShapedArray:
    if x.ndim != update.ndim:
        raise TypeError("dynamic_update_slice update must have the same rank as operand, "
                        f"got update shape {update.shape} for operand shape {x.shape}.")
    if any(small > large for small, large in zip(update.shape, x.shape)):
        raise TypeError("dynamic_update_slice update shape must be smaller than operand shape, "
                        f"got update shape {update.shape} for operand shape {x.shape}.")
    if x.dtype != update.dtype:
        raise TypeError("lax.dynamic_update_slice requires arguments to have the same dtypes, "
                        f"got {x.dtype.name}, {update.dtype.name}.")
    _check_start_indices("dynamic_update_slice", x, indices)
    return x.update(weak_type=x.weak_type and update.weak_type)


def _dynamic_update_slice(x, update, *indices, in_bounds=None):
    out = x.copy()
    out[_clamped_window(x.shape, indices, update.shape)] = update
    return out


def _batch_dynamic_update_slice(primitive, axis, values, batched, *, in_bounds=None):
    (x, update, *starts), start_flags = values, batched[2:]
    x, update = batch_values(axis, [x, update], batched[:2])
    if not any(start_flags):
        return primitive.bind(x, update, _first_start(starts), *starts)
    dims = tuple(range(len(starts)))
    return scatter.primitive.batch(
        scatter.primitive, axis, [x, _stack_starts(axis, starts, start_flags), update], [True] * 3,
        dimension_numbers=ScatterDimensionNumbers(dims, (), dims), **_AT_CLAMPED_STARTS)


def _transpose_dynamic_update_slice(primitive, ct, operands, *, in_bounds=None):
    x, update, *starts = operands
    aval = update.aval if is_linear(update) else aval_of(update)
    x_ct = primitive.bind(ct, fill(aval, 0), *starts) if is_linear(x) else None
    update_ct = None
    if is_linear(update):
        update_ct = dynamic_slice.primitive.bind(ct, *starts, slice_sizes=aval.shape)
    return [x_ct, update_ct, *[None] * len(starts)]


@define("dynamic_update_slice", impl=_dynamic_update_slice, aval=_dynamic_update_slice_aval,
        jvp=jvp_linear(0, 1), transpose=_transpose_dynamic_update_slice, batch=_batch_dynamic_update_slice,
        lower=_lower_dynamic_update_slice, hlo=_hlo_dynamic_update_slice, stored_operands=(0,),
        updates_operand=True, walks=True, in_step=(1,), zeros="made")
def dynamic_update_slice(operand, update, start_indices, *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """operand with the part at start_indices replaced by update.

    Args:
        update: array of operand's dtype and rank, nowhere larger.
        start_indices, allow_negative_indices: as in `dynamic_slice`; clamped so that update fits.
    Raises: TypeError when update does not fit."""
    operand, update = to_operands("dynamic_update_slice", (operand, update))
    indices = normalize_start_indices("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return dynamic_update_slice.primitive.bind(operand, update, *indices)


# -- start indices --------------------------------------------------------------------------------------
def normalize_start_indices(name: str, operand, start_indices, allow_negative) -> list:
    """Start indices as scalars of one dtype, negative ones counted from the end of operand's axes.

    Raises: ValueError for another number of indices than axes; TypeError for dtypes that are not integer."""
    shape = aval_of(operand).shape
    indices = _as_scalars(start_indices)
    if len(indices) != len(shape):
        raise ValueError("Length of slice indices must match number of operand dimensions "
                         f"({len(indices)} vs {shape})")
    avals = [aval_of(index) for index in indices]
    if not all(dtypes.is_integer(aval.dtype) for aval in avals):
        raise TypeError(f"index arguments to {name} must be integers of the same type, "
                        f"got: {', '.join(aval.dtype.name for aval in avals)}")
    if isinstance(allow_negative, bool):
        allow_negative = [allow_negative] * len(shape)
    indices = [wrap_negative_index(index, extent) if allowed else index
               for index, extent, allowed in zip(indices, shape, allow_negative)]
    target = _common_index_dtype(indices)
    return [
        convert_element_type(index, target)
        if isinstance(index, Tracer)
        else np.asarray(min(int(index), int(np.iinfo(target).max))).astype(target)[()]  # clamped anyway
        for index in indices]


def _as_scalars(start_indices) -> list:
    """The scalars of a sequence, or the elements of a vector (one slice each)."""
    if isinstance(start_indices, Tracer):
        (count,) = start_indices.shape
        return [reshape(slice(start_indices, (i,), (i + 1,)), ()) for i in range(count)]
    return list(to_numpy(start_indices) if isinstance(start_indices, Array) else start_indices)


def _common_index_dtype(indices) -> np.dtype:
    """The dtype that holds every index: that of the traced ones, wide enough for the known ones."""
    traced = [index.dtype for index in indices if isinstance(index, Tracer)]
    known = [int(index) for index in indices if not isinstance(index, Tracer)]
    fits = all(-(2**31) <= index < 2**31 for index in known)
    return dtypes.result_type(*traced, *([] if traced and fits else [dtypes.int32 if fits else dtypes.int64]))


def wrap_negative_index(index, extent):
    """index + extent where index is negative: computed now if it is known, by equations if traced."""
    if not isinstance(index, Tracer) and not isinstance(extent, DimExpr):
        index = int(to_numpy(index))
        return index + extent if index < 0 else index
    dtype = aval_of(index).dtype
    if dtypes.kind_of(dtype) == "u":
        return index
    if not isinstance(extent, DimExpr) and extent > np.iinfo(dtype).max:
        dtype = dtypes.int64 if extent > np.iinfo(np.int32).max else dtypes.int32
        index = convert_element_type(index, dtype)
    return select_n(lt(index, 0), index, add(convert_element_type(index, dtype), extent))


# -- one axis -------------------------------------------------------------------------------------------
def _starts_in_dim(operand, start_index, axis: int) -> tuple[list, int]:
    ndim = aval_of(operand).ndim
    axis = canonicalize_axis(axis, ndim)
    starts = [0] * ndim
    starts[axis] = start_index
    return starts, axis


def dynamic_slice_in_dim(operand, start_index, slice_size: int, axis: int = 0, *,
                         allow_negative_indices: bool = True) -> Array:
    """`dynamic_slice` along one axis, whole along the others."""
    starts, axis = _starts_in_dim(operand, start_index, axis)
    shape = aval_of(operand).shape
    sizes = (*shape[:axis], slice_size, *shape[axis + 1 :])
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand, index, axis: int = 0, keepdims: bool = True, *,
                         allow_negative_indices: bool = True) -> Array:
    """The slice at one (possibly traced) index of an axis; keepdims: keep that axis with extent 1."""
    axis = canonicalize_axis(axis, aval_of(operand).ndim)
    result = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return result if keepdims else squeeze(result, (axis,))


def dynamic_update_slice_in_dim(operand, update, start_index, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """`dynamic_update_slice` that moves along one axis."""
    starts, _ = _starts_in_dim(operand, start_index, axis)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand, update, index, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """operand with the slice at one index of an axis replaced by update, which may lack that axis."""
    shape, update_shape = aval_of(operand).shape, aval_of(update).shape
    axis = canonicalize_axis(axis, len(shape))
    if len(update_shape) != len(shape):
        if len(update_shape) + 1 != len(shape):
            raise TypeError("dynamic_update_index_in_dim update must have operand's rank or one less, "
                            f"got update shape {update_shape} for operand shape {shape}.")
        update = reshape(update, (*update_shape[:axis], 1, *update_shape[axis:]))
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)
