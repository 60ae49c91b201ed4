"""Shape primitives: broadcasting, reshaping, permuting, joining, and arrays made from nothing.

In: operands and static shapes. Out: arrays whose elements are those of the operands in another arrangement.
Implementations return memory of their own, never a view: an operand may be an ndarray that the caller still
writes to, or a buffer that is donated later.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.lax.arguments import (
    canonicalize_axis,
    canonicalize_shape,
    check_nonnegative,
    product,
    to_ints,
)
from jitcore.lax.define import cast, define
from jitcore.transforms.batch_rules import rebind, shift


# -- lowering -------------------------------------------------------------------------------------------
def _lower_broadcast_in_dim(builder, x, *, shape, broadcast_dimensions, **_):
    def place(index):
        return tuple(builder.zero_index if extent == 1 else index[dim]
                     for dim, extent in zip(broadcast_dimensions, x.shape))  # fmt: skip

    return builder.view(x, shape, place)


def _lower_transpose(builder, x, *, permutation):
    def place(index):
        origin = [None] * len(permutation)
        for position, dim in enumerate(permutation):
            origin[dim] = index[position]
        return tuple(origin)

    return builder.view(x, [x.shape[dim] for dim in permutation], place)


def _lower_reshape(builder, x, *, new_sizes, dimensions=None, **_):
    if dimensions is not None:
        x = _lower_transpose(builder, x, permutation=dimensions)
    return builder.reshape(x, new_sizes)


def _lower_squeeze(builder, x, *, dimensions):
    return builder.reshape(x, [extent for dim, extent in enumerate(x.shape) if dim not in dimensions])


def _lower_rev(builder, x, *, dimensions):
    def place(index):
        return tuple(i * -1 + (extent - 1) if dim in dimensions else i
                     for dim, (i, extent) in enumerate(zip(index, x.shape)))  # fmt: skip

    return builder.view(x, x.shape, place)


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


def own_result(impl):
    """Lets an implementation be written as a view: its result is copied to C-contiguous memory of its own."""

    @functools.wraps(impl)
    def run(*args, **params):
        return np.array(impl(*args, **params), order="C")

    return run


# -- broadcasting ---------------------------------------------------------------------------------------
def _broadcast_in_dim_aval(x: ShapedArray, *, shape, broadcast_dimensions) -> ShapedArray:
    name, dims = "broadcast_in_dim", broadcast_dimensions
    if len(shape) < x.ndim:
        raise TypeError(f"{name} target broadcast shape must have equal or higher rank to the operand shape; "
                        f"got operand ndim {x.ndim} and target broadcast ndim {len(shape)}.")  # fmt: skip
    if len(dims) != x.ndim:
        raise TypeError(f"{name} broadcast_dimensions must have length equal to operand ndim; "
                        f"got broadcast_dimensions {dims} for operand ndim {x.ndim}.")  # fmt: skip
    if not set(dims) <= set(range(len(shape))):
        raise TypeError(f"{name} broadcast_dimensions must be a subset of output dimensions, "
                        f"got {dims} for operand ndim {x.ndim} and shape {shape}.")  # fmt: skip
    if any(first >= second for first, second in zip(dims, dims[1:])):
        raise TypeError(f"{name} broadcast_dimensions must be strictly increasing; "
                        f"got broadcast_dimensions {dims}")  # fmt: skip
    check_nonnegative(name, "shape", shape)
    if not all(extent == 1 or extent == shape[dim] for extent, dim in zip(x.shape, dims)):
        raise TypeError(
            f"{name} operand dimension sizes must either be 1, or be equal to their "
            f"corresponding dimensions in the target broadcast shape; got operand of shape {x.shape}, "
            f"target broadcast shape {shape}, broadcast_dimensions {dims} "
        )
    return x.update(shape=shape)


def _broadcast_in_dim(x, *, shape, broadcast_dimensions):
    expanded = [1] * len(shape)
    for dim, extent in zip(broadcast_dimensions, x.shape):
        expanded[dim] = extent
    return np.broadcast_to(x.reshape(expanded), shape)


@define(
    "broadcast_in_dim",
    lower=_lower_broadcast_in_dim,
    batch=rebind(lambda size, *, shape, broadcast_dimensions: {
        "shape": (size, *shape), "broadcast_dimensions": (0, *shift(broadcast_dimensions))}),
    impl=own_result(_broadcast_in_dim),
    aval=_broadcast_in_dim_aval,
    hlo="broadcast_in_dim",
)
def broadcast_in_dim(operand, shape, broadcast_dimensions: Sequence[int]) -> Array:
    """Repeats operand to a larger shape: its axis i becomes axis `broadcast_dimensions[i]` of the result.

    Args:
        operand: array; each extent is 1 or that of the result.
        shape: of the result.
        broadcast_dimensions: strictly increasing, one per axis of operand.
    Raises: TypeError when the shapes do not fit."""
    shape, dims = canonicalize_shape(shape), to_ints(broadcast_dimensions)
    if isinstance(operand, Array) and operand.shape == shape and dims == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim.primitive.bind(operand, shape=shape, broadcast_dimensions=dims)


def broadcast(operand, sizes) -> Array:
    """Adds leading axes of these sizes, along which the elements repeat."""
    sizes = canonicalize_shape(sizes)
    if not sizes and isinstance(operand, Array):
        return operand
    shape = aval_of(operand).shape
    return broadcast_in_dim(operand, sizes + shape, range(len(sizes), len(sizes) + len(shape)))


def expand_dims(array, dimensions: Sequence[int]) -> Array:
    """Inserts axes of extent 1 at these positions of the result. Raises: ValueError for a repeated axis."""
    shape = aval_of(array).shape
    ndim = len(shape) + len(dimensions)
    added = {canonicalize_axis(dim, ndim) for dim in dimensions}
    if len(added) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    kept = [dim for dim in range(ndim) if dim not in added]
    extents = iter(shape)
    return broadcast_in_dim(array, [1 if dim in added else next(extents) for dim in range(ndim)], kept)


def broadcast_shapes(*shapes) -> tuple:
    """The NumPy broadcast of several shapes. Raises: ValueError when they do not fit."""
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for extents in zip(*padded):
        wide = [extent for extent in extents if not extent == 1]
        if any(not extent == wide[0] for extent in wide):
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={[tuple(shape) for shape in shapes]}"
            )
        result.append(wide[0] if wide else 1)
    return tuple(result)


# -- reshaping ------------------------------------------------------------------------------------------
def _reshape_aval(x: ShapedArray, *, new_sizes, dimensions) -> ShapedArray:
    if any(extent < 0 for extent in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if not product(new_sizes) == x.size:
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} for shape {x.shape}."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError("reshape dimensions must be a permutation of operand dimensions, "
                        f"got dimensions {dimensions} for shape {x.shape}.")  # fmt: skip
    return x.update(shape=new_sizes)


def _reshape(x, *, new_sizes, dimensions):
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _add_batch_size(size, *, new_sizes, dimensions) -> dict:
    dimensions = None if dimensions is None else (0, *shift(dimensions))
    return {"new_sizes": (size, *new_sizes), "dimensions": dimensions}


@define("reshape", lower=_lower_reshape, impl=own_result(_reshape), aval=_reshape_aval, hlo="reshape",
        batch=rebind(_add_batch_size))  # fmt: skip
def reshape(operand, new_sizes, dimensions: Sequence[int] | None = None) -> Array:
    """The same elements, in row-major order, with another shape.

    Args:
        new_sizes: shape of the result; no -1 here.
        dimensions: order in which to read the axes of operand; None for their own order.
    Raises: TypeError when the number of elements differs."""
    new_sizes = canonicalize_shape(new_sizes)
    dims = None if dimensions is None else to_ints(dimensions)
    shape = aval_of(operand).shape
    in_order = dims is None or dims == tuple(range(len(shape)))
    if isinstance(operand, Array) and in_order and shape == new_sizes:
        return operand
    return reshape.primitive.bind(operand, new_sizes=new_sizes, dimensions=None if in_order else dims)


def _transpose_aval(x: ShapedArray, *, permutation) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, "
                        f"got permutation {permutation} for operand shape {x.shape}.")  # fmt: skip
    return x.update(shape=tuple(x.shape[dim] for dim in permutation))


@define(
    "transpose",
    lower=_lower_transpose,
    batch=rebind(lambda size, *, permutation: {"permutation": (0, *shift(permutation))}),
    impl=own_result(lambda x, *, permutation: x.transpose(permutation)),
    aval=_transpose_aval,
    hlo="transpose",
)
def transpose(operand, permutation: Sequence[int]) -> Array:
    """Axis i of the result is axis `permutation[i]` of operand."""
    permutation = to_ints(permutation)
    if isinstance(operand, Array) and permutation == tuple(range(operand.ndim)):
        return operand
    return transpose.primitive.bind(operand, permutation=permutation)


def _squeeze_aval(x: ShapedArray, *, dimensions) -> ShapedArray:
    if any(not x.shape[dim] == 1 for dim in dimensions):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={x.shape} and dimensions={dimensions}")  # fmt: skip
    return x.update(shape=tuple(extent for dim, extent in enumerate(x.shape) if dim not in dimensions))


@define(
    "squeeze",
    lower=_lower_squeeze,
    batch=rebind(lambda size, *, dimensions: {"dimensions": shift(dimensions)}),
    impl=own_result(lambda x, *, dimensions: np.squeeze(x, dimensions)),
    aval=_squeeze_aval,
    hlo="reshape",
)
def squeeze(array, dimensions: Sequence[int]) -> Array:
    """Drops these axes, each of extent 1. Raises: ValueError when one is larger or given twice."""
    ndim = aval_of(array).ndim
    dims = tuple(sorted(canonicalize_axis(dim, ndim) for dim in dimensions))
    if len(set(dims)) != len(dims):
        raise ValueError(f"duplicate axis in squeeze: {tuple(dimensions)}")
    if not dims and isinstance(array, Array):
        return array
    return squeeze.primitive.bind(array, dimensions=dims)


def _check_dimensions(name: str, dims, ndim: int) -> None:
    if len(set(dims)) != len(dims):
        raise TypeError(f"{name} dimensions must be unique, got {dims}.")
    check_nonnegative(name, "dimensions", dims)
    if any(dim >= ndim for dim in dims):
        raise TypeError(f"{name} dimensions must all be less than operand ndim, "
                        f"got dimensions {dims} for operand ndim {ndim}.")  # fmt: skip


def _rev_aval(x: ShapedArray, *, dimensions) -> ShapedArray:
    _check_dimensions("rev", dimensions, x.ndim)
    return x


@define(
    "rev",
    lower=_lower_rev,
    batch=rebind(lambda size, *, dimensions: {"dimensions": shift(dimensions)}),
    impl=own_result(lambda x, *, dimensions: np.flip(x, dimensions)),
    aval=_rev_aval,
    hlo="reverse",
)
def rev(operand, dimensions: Sequence[int]) -> Array:
    """Reverses the order of the elements along these axes."""
    return rev.primitive.bind(operand, dimensions=to_ints(dimensions))


@define("copy", lower=lambda builder, x: x, batch=rebind(), impl=lambda x: x.copy(), aval=lambda x: x)
def copy(x) -> Array:
    """The same values in memory of their own."""
    return copy.primitive.bind(x)


def stop_gradient(x):
    """x itself; a derivative does not flow through it. x: array or pytree."""
    return x


# -- joining and splitting ------------------------------------------------------------------------------
def _concatenate_aval(*avals: ShapedArray, dimension: int) -> ShapedArray:
    first, shapes = avals[0], ", ".join(str(aval.shape) for aval in avals)
    if len({aval.dtype for aval in avals}) > 1:
        raise TypeError("lax.concatenate requires arguments to have the same dtypes, got "
                        f"{', '.join(aval.dtype.name for aval in avals)}. (Tip: jnp.concatenate is a similar "
                        "function that does automatic type promotion on inputs).")  # fmt: skip
    if len({aval.ndim for aval in avals}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}.")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}.")
    rest = [aval.shape[:dimension] + aval.shape[dimension + 1 :] for aval in avals]
    if any(not shape == rest[0] for shape in rest):
        raise TypeError("Cannot concatenate arrays with shapes that differ in dimensions other than the one "
                        "being concatenated: "
                        f"concatenating along dimension {dimension} for shapes {shapes}.")  # fmt: skip
    extent = functools.reduce(operator.add, [aval.shape[dimension] for aval in avals])
    shape = first.shape[:dimension] + (extent,) + first.shape[dimension + 1 :]
    return ShapedArray(shape, first.dtype, all(aval.weak_type for aval in avals))


@define(
    "concatenate",
    lower=_lower_concatenate,
    batch=rebind(lambda size, *, dimension: {"dimension": dimension + 1}),
    impl=lambda *xs, dimension: np.concatenate(xs, dimension),
    aval=_concatenate_aval,
    hlo="concatenate",
)
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
    return concatenate.primitive.bind(*operands, dimension=operator.index(dimension))


def _split_aval(x: ShapedArray, *, sizes, axis: int) -> list[ShapedArray]:
    check_nonnegative("split", "sizes", sizes)
    total = functools.reduce(operator.add, sizes, 0)
    if not total == x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {total} must be equal to dimension {axis} of the operand shape {list(x.shape)}"
        )
    return [x.update(shape=x.shape[:axis] + (size,) + x.shape[axis + 1 :]) for size in sizes]


def _split(x, *, sizes, axis):
    return [part.copy() for part in np.split(x, np.cumsum(sizes)[:-1], axis)]


@define("split", lower=_lower_split, impl=_split, aval=_split_aval, multiple_results=True,
        batch=rebind(lambda size, *, axis, **_: {"axis": axis + 1}))  # fmt: skip
def split(operand, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Consecutive parts of operand along an axis. Raises: ValueError when the sizes do not add up."""
    axis = canonicalize_axis(axis, aval_of(operand).ndim)
    return split.primitive.bind(operand, sizes=canonicalize_shape(sizes), axis=axis)


def _tile_aval(x: ShapedArray, *, reps) -> ShapedArray:
    if len(reps) != x.ndim:
        raise TypeError("reps length must be equal to the ndim of x, "
                        f"got len(reps)={len(reps)} and x.ndim={x.ndim}.")  # fmt: skip
    check_nonnegative("tile", "reps", reps)
    return x.update(shape=tuple(extent * rep for extent, rep in zip(x.shape, reps)))


@define("tile", lower=_lower_tile, impl=lambda x, *, reps: np.tile(x, reps), aval=_tile_aval,
        batch=rebind(lambda size, *, reps: {"reps": (1, *reps)}))  # fmt: skip
def tile(operand, reps: Sequence[int]) -> Array:
    """Repeats operand `reps[i]` times along axis i."""
    return tile.primitive.bind(operand, reps=canonicalize_shape(reps))


# -- arrays from nothing --------------------------------------------------------------------------------
def _iota_aval(*, dtype, shape, dimension: int) -> ShapedArray:
    if dtypes.kind_of(dtype) not in "iufc":
        raise TypeError(f"iota does not accept dtype {np.dtype(dtype).name}. "
                        "Accepted dtypes are subtypes of integer, floating, complexfloating.")  # fmt: skip
    check_nonnegative("iota", "shape", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}")
    return ShapedArray(shape, dtype)


def _iota(*, dtype, shape, dimension):
    counts = np.arange(shape[dimension]).astype(dtype)
    return np.broadcast_to(
        counts.reshape([-1 if dim == dimension else 1 for dim in range(len(shape))]), shape
    )


@define(
    "iota",
    lower=lambda builder, *, dtype, shape, dimension, **_: builder.iota(shape, dtype, dimension),
    impl=own_result(_iota),
    aval=_iota_aval,
    hlo="iota",
)
def broadcasted_iota(dtype, shape, dimension: int) -> Array:
    """Each element is its index along one axis. dtype: of the result, a number type."""
    return broadcasted_iota.primitive.bind(
        dtype=dtypes.canonicalize(dtype), shape=canonicalize_shape(shape), dimension=operator.index(dimension)
    )


def iota(dtype, size: int) -> Array:
    """0, 1, ... size - 1. dtype: of the result."""
    return broadcasted_iota(dtype, (size,), 0)


iota.primitive = broadcasted_iota.primitive


def full(shape, fill_value, dtype=None) -> Array:
    """An array of one value.

    Args:
        fill_value: scalar.
        dtype: of the result; by default fill_value's, weak if that is.
    Raises: TypeError for a fill_value with axes."""
    shape, aval = canonicalize_shape(shape), aval_of(fill_value)
    if aval.shape:
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {aval.shape}.")
    weak = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else dtypes.canonicalize(dtype)
    return _fill(shape, cast(fill_value, aval, dtype, weak))


def _fill(shape: tuple, scalar) -> Array:
    """Broadcasts a scalar; a constant without axes becomes an Array without an equation."""
    if not shape and not isinstance(scalar, Array):
        aval = aval_of(scalar)
        return ConcreteArray(np.array(scalar, aval.dtype), aval.weak_type)
    return broadcast(scalar, shape)


def full_like(x, fill_value, dtype=None, shape=None) -> Array:
    """`full` with the shape and dtype of x (its weak type too) where they are not given."""
    like = aval_of(x)
    shape = like.shape if shape is None else canonicalize_shape(shape)
    aval = aval_of(fill_value)
    if aval.shape:
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {aval.shape}.")
    weak = dtype is None and like.weak_type
    dtype = like.dtype if dtype is None else dtypes.canonicalize(dtype)
    return _fill(shape, cast(fill_value, aval, dtype, weak))


def _lower_dimension_size(builder, *, dim):
    return builder.constant(int(dim), dtypes.default_dtype("i"))


@define("dimension_size", impl=lambda *, dim: np.asarray(int(dim)), lower=_lower_dimension_size,
        aval=lambda *, dim: ShapedArray((), dtypes.default_dtype("i"), True))  # fmt: skip
def dimension_size(dim) -> Array:
    """A symbolic dimension as a number: an integer scalar of weak type, known when sizes are."""
    return dimension_size.primitive.bind(dim=dim)
