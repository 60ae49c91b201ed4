"""Joining and splitting along an axis: `concatenate`, `split` and `tile`.

In: operands and static extents. Out: arrays whose elements are those of the operands.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import numpy as np

from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.lax.define import (canonicalize_axis, canonicalize_shape, cast, check_nonnegative, define,
                                join_widths)
from jitcore.lax.shape import expand_dims, reshape, squeeze
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import instantiate, is_zero
from jitcore.transforms.transpose import is_linear


# -- lowering -------------------------------------------------------------------------------------------
def _shift(index, dim: int, offset):
    return (*index[:dim], index[dim] + offset, *index[dim + 1 :])


def _lower_concatenate(builder, *xs, dimension):
    regions, start = [], 0
    for x in xs:
        regions.append(builder.region(x, lambda index, start=start: _shift(index, dimension, start)))
        start = start + x.shape[dimension]
    shape = [start if dim == dimension else extent for dim, extent in enumerate(xs[0].shape)]
    return builder.regions(shape, xs[0].dtype, None, regions)


def _lower_split(builder, x, *, sizes, axis):
    parts, start = [], 0
    for size in sizes:
        shape = [size if dim == axis else extent for dim, extent in enumerate(x.shape)]
        parts.append(builder.view(x, shape, lambda index, start=start: _shift(index, axis, start)))
        start = start + size
    return parts


def _lower_tile(builder, x, *, reps):
    shape = [extent * count for extent, count in zip(x.shape, reps)]
    return builder.view(x, shape, lambda index: tuple(i.mod(extent) for i, extent in zip(index, x.shape)))


def _hlo_concatenate(b, *xs, dimension):
    shape = list(xs[0].shape)
    shape[dimension] = sum(x.shape[dimension] for x in xs)
    return b.op("concatenate", *xs, shape=shape, dimension=dimension)


def _hlo_split(b, x, *, sizes, axis):
    parts, start = [], 0
    for size in sizes:
        starts, limits = [0] * x.ndim, list(x.shape)
        starts[axis], limits[axis] = start, start + size
        parts.append(b.slice(x, starts, limits))
        start += size
    return parts


def _hlo_tile(b, x, *, reps):
    pairs = [extent for pair in zip(reps, x.shape) for extent in pair]
    wide = b.broadcast(x, pairs, range(1, 2 * x.ndim, 2))
    return b.reshape(wide, [extent * count for extent, count in zip(x.shape, reps)])


def _concatenate_aval(*avals: ShapedArray, dimension: int) -> ShapedArray:
    first, shapes = avals[0], ", ".join(str(aval.shape) for aval in avals)
    if len({aval.dtype for aval in avals}) > 1:
        raise TypeError("lax.concatenate requires arguments to have the same dtypes, got "
                        f"{', '.join(aval.dtype.name for aval in avals)}. (Tip: jnp.concatenate is a similar "
                        "function that does automatic type promotion on inputs).")
    if len({aval.ndim for aval in avals}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}.")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}.")
    rest = [aval.shape[:dimension] + aval.shape[dimension + 1 :] for aval in avals]
    if any(not shape == rest[0] for shape in rest):
        raise TypeError("Cannot concatenate arrays with shapes that differ in dimensions other than the one "
                        "being concatenated: "
                        f"concatenating along dimension {dimension} for shapes {shapes}.")
    extent = functools.reduce(operator.add, [aval.shape[dimension] for aval in avals])
    shape = first.shape[:dimension] + (extent,) + first.shape[dimension + 1 :]
    return ShapedArray(shape, first.dtype, all(aval.weak_type for aval in avals))


def _transpose_concatenate(primitive, ct, operands, *, dimension):
    sizes = tuple(aval_of(x.aval if is_linear(x) else x).shape[dimension] for x in operands)
    parts = split.primitive.bind(ct, sizes=sizes, axis=dimension)
    return [part if is_linear(x) else None for part, x in zip(parts, operands)]


@define("concatenate", impl=lambda *xs, dimension: np.concatenate(xs, dimension), aval=_concatenate_aval,
        jvp=jvp_linear(), transpose=_transpose_concatenate, lower=_lower_concatenate, hlo=_hlo_concatenate,
        batch=rebind(lambda size, *, dimension: {"dimension": dimension + 1}), walks=True,
        zeros="kept")
def concatenate(operands: Sequence, dimension: int) -> Array:
    """Joins arrays along an axis that they have.

    Args:
        operands: arrays of one dtype whose shapes agree except along the axis.
        dimension: the axis, counted from the front.
    Raises: ValueError for no operands; TypeError when dtypes or shapes do not agree."""
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    avals = list(map(aval_of, operands))
    wide = join_widths({aval.dtype for aval in avals})
    if len(wide) == 1:
        operands = [cast(x, aval, *wide, aval.weak_type) for x, aval in zip(operands, avals)]
    return concatenate.primitive.bind(*operands, dimension=operator.index(dimension))


def _split_aval(x: ShapedArray, *, sizes, axis: int) -> list[ShapedArray]:
    check_nonnegative("split", "sizes", sizes)
    total = functools.reduce(operator.add, sizes, 0)
    if not total == x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {total} must be equal to dimension {axis} of the operand shape {list(x.shape)}")
    return [x.update(shape=x.shape[:axis] + (size,) + x.shape[axis + 1 :]) for size in sizes]


def _split(x, *, sizes, axis):
    return [part.copy() for part in np.split(x, np.cumsum(sizes)[:-1], axis)]


def _transpose_split(primitive, cts, operands, *, sizes, axis):
    present = [place for place, ct in enumerate(cts) if not is_zero(ct)]
    if len(present) > 1:
        return [concatenate.primitive.bind(*map(instantiate, cts), dimension=axis)]
    (place,) = present
    config = [(0, 0, 0)] * len(operands[0].aval.shape)
    config[axis] = (sum(sizes[:place]), sum(sizes[place + 1 :]), 0)
    zero = np.zeros((), operands[0].aval.dtype)[()]
    return [registry["pad"].bind(cts[place], zero, padding_config=tuple(config))]


@define("split", impl=_split, aval=_split_aval, jvp=jvp_linear(), transpose=_transpose_split,
        batch=rebind(lambda size, *, axis, **_: {"axis": axis + 1}), lower=_lower_split,
        hlo=_hlo_split, multiple_results=True, walks=True, zeros="made")
def split(operand, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Consecutive parts of operand along an axis. Raises: ValueError when the sizes do not add up."""
    axis = canonicalize_axis(axis, aval_of(operand).ndim)
    return split.primitive.bind(operand, sizes=canonicalize_shape(sizes), axis=axis)


def _tile_aval(x: ShapedArray, *, reps) -> ShapedArray:
    if len(reps) != x.ndim:
        raise TypeError("reps length must be equal to the ndim of x, "
                        f"got len(reps)={len(reps)} and x.ndim={x.ndim}.")
    check_nonnegative("tile", "reps", reps)
    return x.update(shape=tuple(extent * rep for extent, rep in zip(x.shape, reps)))


def _transpose_tile(ct, x, *, reps):
    extents = [extent for pair in zip(reps, x.aval.shape) for extent in pair]
    return registry["reduce_sum"].bind(reshape(ct, extents), axes=tuple(range(0, len(extents), 2)))


@define("tile", impl=lambda x, *, reps: np.tile(x, reps), aval=_tile_aval, jvp=jvp_linear(),
        transpose=transpose_unary(_transpose_tile), zeros="kept",
        batch=rebind(lambda size, *, reps: {"reps": (1, *reps)}), lower=_lower_tile,
        hlo=_hlo_tile)
def tile(operand, reps: Sequence[int]) -> Array:
    """Repeats operand `reps[i]` times along axis i."""
    return tile.primitive.bind(operand, reps=canonicalize_shape(reps))


def stack(operands: Sequence, axis: int = 0) -> Array:
    """Joins arrays of one shape and dtype along a new axis.

    Raises: ValueError for no operands and for shapes that differ; TypeError for dtypes that differ."""
    if len(operands) == 0:
        raise ValueError("stack requires a non-empty sequence of arrays")
    axis = canonicalize_axis(axis, len(aval_of(operands[0]).shape) + 1)
    shapes = {tuple(aval_of(x).shape) for x in operands}
    if len(shapes) > 1:
        raise ValueError(f"stack needs operands of one shape, got {sorted(shapes)}")
    return concatenate([expand_dims(x, (axis,)) for x in operands], axis)


def unstack(x, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, which they lack."""
    axis = canonicalize_axis(axis, len(aval_of(x).shape))
    return tuple(squeeze(part, (axis,)) for part in split(x, (1,) * aval_of(x).shape[axis], axis))
