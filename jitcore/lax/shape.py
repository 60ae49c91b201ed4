"""Shape primitives: broadcasting, reshaping, permuting, and arrays made from nothing.

In: operands and static shapes. Out: arrays whose elements are those of the operands in another arrangement.
Implementations return memory of their own, never a view: an operand may be an ndarray that the caller still
writes to, or a buffer that is donated later. `empty` is memory that nothing has been written to, for arrays
that a loop fills.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.core.trace import own_ndarray
from jitcore.lax.define import (canonicalize_axis, canonicalize_shape, cast, check_nonnegative, define,
                                product, to_ints)
from jitcore.transforms.batch_rules import rebind, shift
from jitcore.transforms.batching import Unmapped
from jitcore.transforms.derivative_rules import jvp_linear, jvp_zero, transpose_unary
from jitcore.tree_util import tree_map

__all__ = ["broadcast", "broadcast_in_dim", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota",
           "collapse", "copy", "dimension_size", "expand_dims", "full", "full_like", "iota", "reshape", "rev",
           "squeeze", "stop_gradient", "transpose"]


# -- lowering -------------------------------------------------------------------------------------------
def _lower_broadcast_in_dim(builder, x, *, shape, broadcast_dimensions, **_):
    def place(index):
        return tuple(builder.zero_index if extent == 1 else index[dim]
                     for dim, extent in zip(broadcast_dimensions, x.shape))

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
                     for dim, (i, extent) in enumerate(zip(index, x.shape)))

    return builder.view(x, x.shape, place)


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
                        f"got operand ndim {x.ndim} and target broadcast ndim {len(shape)}.")
    if len(dims) != x.ndim:
        raise TypeError(f"{name} broadcast_dimensions must have length equal to operand ndim; "
                        f"got broadcast_dimensions {dims} for operand ndim {x.ndim}.")
    if not set(dims) <= set(range(len(shape))):
        raise TypeError(f"{name} broadcast_dimensions must be a subset of output dimensions, "
                        f"got {dims} for operand ndim {x.ndim} and shape {shape}.")
    if any(first >= second for first, second in zip(dims, dims[1:])):
        raise TypeError(f"{name} broadcast_dimensions must be strictly increasing; "
                        f"got broadcast_dimensions {dims}")
    check_nonnegative(name, "shape", shape)
    if not all(extent == 1 or extent == shape[dim] for extent, dim in zip(x.shape, dims)):
        raise TypeError(
            f"{name} operand dimension sizes must either be 1, or be equal to their "
            f"corresponding dimensions in the target broadcast shape; got operand of shape {x.shape}, "
            f"target broadcast shape {shape}, broadcast_dimensions {dims} ")
    return x.update(shape=shape)


def _broadcast_in_dim(x, *, shape, broadcast_dimensions):
    expanded = [1] * len(shape)
    for dim, extent in zip(broadcast_dimensions, x.shape):
        expanded[dim] = extent
    return np.broadcast_to(x.reshape(expanded), shape)


def _transpose_broadcast(ct, x, *, shape, broadcast_dimensions):
    repeated = set(range(len(shape)))
    repeated -= {dim for dim, extent in zip(broadcast_dimensions, x.aval.shape) if extent == shape[dim]}
    wide = tuple(dim for dim in sorted(repeated) if not shape[dim] == 1)
    if wide:
        ct = registry["reduce_sum"].bind(ct, axes=wide)
    return reshape(ct, x.aval.shape)


@define(
    "broadcast_in_dim", impl=own_result(_broadcast_in_dim), aval=_broadcast_in_dim_aval, jvp=jvp_linear(),
    transpose=transpose_unary(_transpose_broadcast), zeros="kept", walks=True, same_elements=True,
    batch=rebind(lambda size, *, shape, broadcast_dimensions: {
        "shape": (size, *shape), "broadcast_dimensions": (0, *shift(broadcast_dimensions))}),
    lower=_lower_broadcast_in_dim,
    hlo=lambda b, x, *, shape, broadcast_dimensions: b.broadcast(x, shape, broadcast_dimensions))
def broadcast_in_dim(operand, shape, broadcast_dimensions: Sequence[int]) -> Array:
    """Repeats operand to a larger shape: its axis i becomes axis `broadcast_dimensions[i]` of the result.

    Args:
        operand: array; each extent is 1 or that of the result.
        shape: of the result.
        broadcast_dimensions: one per axis of operand; where they do not increase, the axes are transposed.
    Raises: TypeError when the shapes do not fit, or an axis repeats."""
    shape, dims = canonicalize_shape(shape), to_ints(broadcast_dimensions)
    if list(dims) != sorted(dims) and len(dims) == aval_of(operand).ndim:
        order = sorted(range(len(dims)), key=lambda i: dims[i])
        operand, dims = transpose(operand, order), tuple(sorted(dims))
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


def broadcast_to_rank(x, rank: int) -> Array:
    """x with axes of extent 1 before its own, so that it has at least `rank` of them."""
    shape = aval_of(x).shape
    return reshape(x, (1,) * (rank - len(shape)) + tuple(shape))


def collapse(operand, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The axes from start to before stop, by default all that follow, as one, in the order of rows.

    Raises: ValueError for axes that are not there.
    Example: of an array of shape (2, 3, 4), `collapse(x, 1)` has the shape (2, 12)."""
    shape = aval_of(operand).shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if not start < stop:
        raise ValueError(f"collapse of axes {start_dimension} to {stop_dimension} of shape {shape}")
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def broadcast_shapes(*shapes) -> tuple:
    """The NumPy broadcast of several shapes. Raises: ValueError when they do not fit."""
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for extents in zip(*padded):
        wide = [extent for extent in extents if not extent == 1]
        if any(not extent == wide[0] for extent in wide):
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={[tuple(shape) for shape in shapes]}")
        result.append(wide[0] if wide else 1)
    return tuple(result)


# -- reshaping ------------------------------------------------------------------------------------------
def _reshape_aval(x: ShapedArray, *, new_sizes, dimensions) -> ShapedArray:
    if any(extent < 0 for extent in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if not product(new_sizes) == x.size:
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} for shape {x.shape}.")
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError("reshape dimensions must be a permutation of operand dimensions, "
                        f"got dimensions {dimensions} for shape {x.shape}.")
    return x.update(shape=new_sizes)


def _reshape(x, *, new_sizes, dimensions):
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _hlo_reshape(b, x, *, new_sizes, dimensions):
    return b.reshape(x if dimensions is None else b.transpose(x, dimensions), new_sizes)


def _add_batch_size(size, *, new_sizes, dimensions) -> dict:
    dimensions = None if dimensions is None else (0, *shift(dimensions))
    return {"new_sizes": (size, *new_sizes), "dimensions": dimensions}


def _transpose_reshape(ct, x, *, new_sizes, dimensions):
    if dimensions is None:
        return reshape(ct, x.aval.shape)
    ct = reshape(ct, [x.aval.shape[dim] for dim in dimensions])
    return transpose(ct, invert_permutation(dimensions))


@define("reshape", impl=own_result(_reshape), aval=_reshape_aval, jvp=jvp_linear(),
        transpose=transpose_unary(_transpose_reshape), zeros="kept", batch=rebind(_add_batch_size),
        lower=_lower_reshape, hlo=_hlo_reshape, keeps_order=True, same_elements=True)
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
                        f"got permutation {permutation} for operand shape {x.shape}.")
    return x.update(shape=tuple(x.shape[dim] for dim in permutation))


def invert_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that brings axes back."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


@define("transpose", impl=own_result(lambda x, *, permutation: x.transpose(permutation)),
        aval=_transpose_aval, jvp=jvp_linear(), transpose=transpose_unary(
            lambda ct, x, *, permutation: transpose(ct, invert_permutation(permutation))), zeros="kept",
        batch=rebind(lambda size, *, permutation: {"permutation": (0, *shift(permutation))}),
        lower=_lower_transpose, hlo=lambda b, x, *, permutation: b.transpose(x, permutation),
        same_elements=True)
def transpose(operand, permutation: Sequence[int]) -> Array:
    """Axis i of the result is axis `permutation[i]` of operand."""
    permutation = to_ints(permutation)
    if isinstance(operand, Array) and permutation == tuple(range(operand.ndim)):
        return operand
    return transpose.primitive.bind(operand, permutation=permutation)


def _squeeze_aval(x: ShapedArray, *, dimensions) -> ShapedArray:
    if any(not x.shape[dim] == 1 for dim in dimensions):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={x.shape} and dimensions={dimensions}")
    return x.update(shape=tuple(extent for dim, extent in enumerate(x.shape) if dim not in dimensions))


@define("squeeze", impl=own_result(lambda x, *, dimensions: np.squeeze(x, dimensions)), aval=_squeeze_aval,
        jvp=jvp_linear(), lower=_lower_squeeze, keeps_order=True, same_elements=True,
        transpose=transpose_unary(lambda ct, x, *, dimensions: reshape(ct, x.aval.shape)), zeros="kept",
        batch=rebind(lambda size, *, dimensions: {"dimensions": shift(dimensions)}),
        hlo=lambda b, x, *, dimensions: b.reshape(
            x, [extent for dim, extent in enumerate(x.shape) if dim not in dimensions]))
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
                        f"got dimensions {dims} for operand ndim {ndim}.")


def _rev_aval(x: ShapedArray, *, dimensions) -> ShapedArray:
    _check_dimensions("rev", dimensions, x.ndim)
    return x


@define("rev", impl=own_result(lambda x, *, dimensions: np.flip(x, dimensions)), aval=_rev_aval,
        jvp=jvp_linear(), lower=_lower_rev, walks=True, same_elements=True,
        transpose=transpose_unary(lambda ct, x, *, dimensions: rev(ct, dimensions)), zeros="kept",
        batch=rebind(lambda size, *, dimensions: {"dimensions": shift(dimensions)}),
        hlo=lambda b, x, *, dimensions: b.op("reverse", x, dimensions=dimensions))
def rev(operand, dimensions: Sequence[int]) -> Array:
    """Reverses the order of the elements along these axes."""
    return rev.primitive.bind(operand, dimensions=to_ints(dimensions))


@define("copy", impl=lambda x: x.copy(), aval=lambda x: x, jvp=jvp_linear(),
        transpose=transpose_unary(lambda ct, x: ct), zeros="kept", batch=rebind(),
        lower=lambda builder, x: x, hlo=lambda b, x: x, keeps_order=True, same_elements=True)
def copy(x) -> Array:
    """The same values in memory of their own."""
    return copy.primitive.bind(x)


@define("stop_gradient", impl=lambda x: x.copy(), aval=lambda x: x, jvp=jvp_zero, batch=rebind(),
        lower=lambda builder, x: x, hlo=lambda b, x: x, keeps_order=True)
def stop_gradient(x):
    """x itself, as a constant for every derivative.

    Args:
        x: array or pytree of arrays; integers and bools have no derivative and stay as they are.
    Returns: like x.
    Raises: TypeError for a leaf that is not an array."""
    return tree_map(_stop_gradient, x)


def _stop_gradient(leaf):
    if isinstance(leaf, ConcreteArray) or not dtypes.is_inexact(aval_of(leaf).dtype):
        return own_ndarray(leaf) if isinstance(leaf, np.ndarray) else leaf
    return stop_gradient.primitive.bind(leaf)


# -- arrays from nothing --------------------------------------------------------------------------------
def _iota_aval(*, dtype, shape, dimension: int) -> ShapedArray:
    if dtypes.kind_of(dtype) not in "iufc":
        raise TypeError(f"iota does not accept dtype {np.dtype(dtype).name}. "
                        "Accepted dtypes are subtypes of integer, floating, complexfloating.")
    check_nonnegative("iota", "shape", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}")
    return ShapedArray(shape, dtype)


def _iota(*, dtype, shape, dimension):
    counts = np.arange(shape[dimension]).astype(dtype)
    return np.broadcast_to(counts.reshape([-1 if dim == dimension else 1 for dim in range(len(shape))]),
                           shape)


@define("iota", lower=lambda builder, *, dtype, shape, dimension, **_: builder.iota(shape, dtype, dimension),
        impl=own_result(_iota), aval=_iota_aval, hlo=lambda b, *, dtype, shape, dimension,
        **_: b.iota(shape, dtype, dimension))
def broadcasted_iota(dtype, shape, dimension: int) -> Array:
    """Each element is its index along one axis. dtype: of the result, a number type."""
    return broadcasted_iota.primitive.bind(dtype=dtypes.canonicalize(dtype), shape=canonicalize_shape(shape),
                                           dimension=operator.index(dimension))


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
        hlo=_lower_dimension_size,
        aval=lambda *, dim: ShapedArray((), dtypes.default_dtype("i"), True))
def dimension_size(dim) -> Array:
    """A symbolic dimension as a number: an integer scalar of weak type, known when sizes are."""
    return dimension_size.primitive.bind(dim=dim)


@define("empty", impl=lambda *, shape, dtype, number: np.zeros(shape, dtype),
        aval=lambda *, shape, dtype, number: ShapedArray(tuple(shape), np.dtype(dtype)),
        batch=lambda primitive, axis, values, batched, **params: Unmapped(primitive.bind(**params)),
        lower=lambda builder, *, shape, dtype, number: builder.regions(shape, dtype, None, []),
        hlo=lambda b, *, shape, dtype, number: b.full(0, shape, dtype))
def empty(shape, dtype, *, number: int = 0):
    """An array of any elements. number: arrays of different numbers never are one in memory."""
    return empty.primitive.bind(shape=tuple(shape), dtype=np.dtype(dtype), number=number)
