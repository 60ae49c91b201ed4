"""Operations on `BCOO` arrays: functions of `jax.experimental.sparse`, by gathers and scatters of entries.

In: sparse and dense arrays. Out: sparse arrays, or dense ones where the result has no zeros to leave out. All
is made of `jitcore.numpy`, so that derivatives by values, batches and programs come with it. What works on
one sparse array is mapped along its batch axes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore.array import Array
from jitcore.core.trace import Tracer
from jitcore.experimental.sparse.structure import Coordinates, S
from jitcore.lax.define import canonicalize_axis
from jitcore.transforms.vmap import vmap


def is_sparse(x: Any) -> bool:
    return isinstance(x, Coordinates)


def map_batch(function: Callable, depth: int) -> Callable:
    """A function of one sparse array for each of a batch."""
    for _ in range(depth):
        function = vmap(function)
    return function


def columns_of(indices) -> tuple:
    """The places of entries along each sparse axis."""
    return tuple(indices[..., axis] for axis in range(indices.shape[-1]))


def find_outside(indices, sparse_shape: tuple):
    """Which entries do not count, as their place lies outside of the array."""
    return jnp.any((indices < 0) | (indices >= np.asarray(sparse_shape, indices.dtype)), -1)


def scatter(data, indices, sparse_shape: tuple):
    """The dense array of the entries of one sparse array."""
    if not sparse_shape:
        return jnp.sum(data, 0, dtype=data.dtype) if data.dtype != np.bool_ else jnp.any(data, 0)
    zeros = jnp.zeros((*sparse_shape, *data.shape[1:]), data.dtype)
    if data.dtype == np.bool_:
        return zeros.at[columns_of(indices)].max(data, mode="drop")
    return zeros.at[columns_of(indices)].add(data, mode="drop")


def gather(mat, indices):
    """The elements of a dense array at the places of entries; zeros outside of it."""
    if indices.shape[-1] == 0:
        return jnp.broadcast_to(mat, (indices.shape[0], *mat.shape))
    return mat.at[columns_of(indices)].get(mode="fill", fill_value=0)


# -- conversions --------------------------------------------------------------------------------------------
def bcoo_todense(mat: Coordinates) -> Array:
    """The array with its zeros: `BCOO.todense`.

    Source: `jax.experimental.sparse.bcoo_todense`."""
    sparse_shape = mat.sparse_shape
    fill = map_batch(lambda data, indices: scatter(data, indices, sparse_shape), mat.n_batch)
    return fill(mat.data, mat.indices)


def bcoo_extract(sparr: S, arr: Any, *, assume_unique: bool | None = None) -> S:
    """The elements of a dense array at the places of a sparse one's entries.

    Args:
        sparr: says where. arr: of the same shape.
        assume_unique: accepted; entries of one place all get its element.

    Raises: ValueError for different shapes.
    Source: `jax.experimental.sparse.bcoo_extract`."""
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: shapes {sparr.shape} and {arr.shape} differ")
    return sparr.with_data(map_batch(gather, sparr.n_batch)(arr, sparr.indices))


# -- entries ------------------------------------------------------------------------------------------------
def _number_places(indices, sparse_shape: tuple) -> tuple[Any, Any]:
    """Of the entries of one array: their order, and the number of each one's place among those that there
    are, in that order. All places outside of the array are one."""
    limits = np.asarray(sparse_shape, indices.dtype)
    indices = jnp.where(find_outside(indices, sparse_shape)[:, None], limits, indices)
    order = jnp.lexsort(columns_of(indices)[::-1]) if sparse_shape else jnp.arange(indices.shape[0])
    ordered = indices[order]
    is_new = jnp.any(ordered[1:] != ordered[:-1], -1)
    numbers = jnp.concatenate([jnp.zeros(min(1, indices.shape[0]), np.int32),
                               jnp.cumsum(is_new, dtype=np.int32)])
    return order, numbers


def bcoo_sort_indices(mat: S) -> S:
    """The entries in the order of the dense array's elements.

    Source: `jax.experimental.sparse.bcoo_sort_indices`."""
    def sort(data, indices):
        order, _ = _number_places(indices, mat.sparse_shape)
        return data[order], indices[order]

    found = map_batch(sort, mat.n_batch)(mat.data, mat.indices)
    return mat.with_entries(*found, mat.sparse_shape, True, mat.unique_indices)


def bcoo_sum_duplicates(mat: S, nse: int | None = None) -> S:
    """Entries of one place added up to one, in the order of the dense array.

    Args:
        nse: number of entries of the result; further ones are lost. As many as there are places, unless
            given; within a traced function as many as there were entries.

    Source: `jax.experimental.sparse.bcoo_sum_duplicates`."""
    sparse_shape = mat.sparse_shape
    find = map_batch(lambda indices: _number_places(indices, sparse_shape), mat.n_batch)
    order, numbers = find(mat.indices)
    if nse is None:
        nse = mat.nse
        if not isinstance(mat.indices, Tracer):
            outside = np.asarray(find_outside(mat.indices, sparse_shape))
            outside = np.take_along_axis(outside, np.asarray(order), -1)
            nse = int(np.max(np.where(outside, 0, np.asarray(numbers) + 1), initial=0))

    def add_up(data, indices, order, numbers):
        places = jnp.full((nse, len(sparse_shape)), np.asarray(sparse_shape, indices.dtype))
        combine = "max" if data.dtype == np.bool_ else "add"
        zeros = jnp.zeros((nse, *data.shape[1:]), data.dtype)
        total = getattr(zeros.at[numbers], combine)(data[order], mode="drop")
        return total, places.at[numbers].set(indices[order], mode="drop")

    found = map_batch(add_up, mat.n_batch)(mat.data, mat.indices, order, numbers)
    return mat.with_entries(*found, sparse_shape, True, True)


def bcoo_update_layout(mat: S, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = None) -> S:
    """The same array with fewer batch axes or dense axes, which become sparse ones.

    Args:
        n_batch, n_dense: numbers of them, as they are unless given. on_inefficient: accepted.

    Raises: NotImplementedError for more of them.
    Source: `jax.experimental.sparse.bcoo_update_layout`."""
    n_batch = mat.n_batch if n_batch is None else n_batch
    n_dense = mat.n_dense if n_dense is None else n_dense
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        raise NotImplementedError("bcoo_update_layout: sparse axes as batch or dense ones.\nTo fix: make "
                                  "the array anew, "
                                  "by BCOO.fromdense(mat.todense(), n_batch=..., n_dense=...).")
    while mat.n_dense > n_dense:
        mat = _spread_dense(mat)
    while mat.n_batch > n_batch:
        mat = _join_batch(mat)
    return mat


def _spread_dense(mat: S) -> S:
    """The first dense axis as the last sparse one."""
    place = mat.n_batch + 1
    extent, nse = mat.data.shape[place], mat.nse
    lead = mat.indices.shape[:-2]
    data = mat.data.reshape(*lead, nse * extent, *mat.data.shape[place + 1 :])
    indices = jnp.repeat(mat.indices, extent, -2)
    last = jnp.broadcast_to(jnp.tile(jnp.arange(extent, dtype=indices.dtype), nse)[:, None],
                            (*indices.shape[:-1], 1))
    return mat.with_entries(data, jnp.concatenate([indices, last], -1), (*mat.sparse_shape, extent))


def _join_batch(mat: S) -> S:
    """The last batch axis as the first sparse one."""
    place = mat.n_batch - 1
    extent, nse = mat.indices.shape[place], mat.nse
    lead = mat.indices.shape[:place]
    first = jnp.repeat(jnp.arange(extent, dtype=mat.indices.dtype), nse)[:, None]
    indices = mat.indices.reshape(*lead, extent * nse, mat.n_sparse)
    indices = jnp.concatenate([jnp.broadcast_to(first, (*indices.shape[:-1], 1)), indices], -1)
    data = mat.data.reshape(*lead, extent * nse, *mat.data.shape[place + 2 :])
    return mat.with_entries(data, indices, (extent, *mat.sparse_shape))


# -- axes ---------------------------------------------------------------------------------------------------
def bcoo_transpose(mat: S, *, permutation: Sequence[int]) -> S:
    """The array with its axes in another order: those of batches, sparse and dense ones among themselves;
    other orders make batch and dense axes sparse.

    Raises: ValueError for what is no permutation.
    Source: `jax.experimental.sparse.bcoo_transpose`."""
    order = [operator.index(axis) % max(1, mat.ndim) for axis in permutation]
    if sorted(order) != list(range(mat.ndim)):
        raise ValueError(f"transpose: {tuple(permutation)} is no permutation of the axes of an array of "
                         f"shape {mat.shape}")
    ends = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :]
    if sorted(batch) != list(range(ends[0])) or any(axis < ends[1] for axis in dense):
        return bcoo_transpose(bcoo_update_layout(mat, n_batch=0, n_dense=0), permutation=order)
    data = jnp.transpose(mat.data, [*batch, ends[0], *(axis - mat.n_sparse + 1 for axis in dense)])
    indices = jnp.transpose(mat.indices, [*batch, ends[0], ends[0] + 1])
    columns = [axis - ends[0] for axis in sparse]
    return mat.with_entries(data, indices[..., np.asarray(columns, int)],
                            [mat.sparse_shape[c] for c in columns], False,
                            mat.unique_indices)


def bcoo_reduce_sum(mat: S, *, axes: Sequence[int]) -> S:
    """The sum along axes. Entries that come to lie at one place stay apart.

    Raises: AxisError for axes that there are not.
    Source: `jax.experimental.sparse.bcoo_reduce_sum`."""
    chosen = sorted({canonicalize_axis(axis, mat.ndim) for axis in axes})
    if any(axis < mat.n_batch for axis in chosen):
        mat = bcoo_update_layout(mat, n_batch=min(chosen))
    ends = mat.n_batch, mat.n_batch + mat.n_sparse
    data = jnp.sum(mat.data, tuple(axis - mat.n_sparse + 1 for axis in chosen if axis >= ends[1]))
    outside = find_outside(mat.indices, mat.sparse_shape)
    data = jnp.where(outside.reshape(*outside.shape, *[1] * (data.ndim - outside.ndim)),
                     np.zeros((), data.dtype), data)
    kept = [c for c in range(mat.n_sparse) if c + ends[0] not in chosen]
    return mat.with_entries(data, mat.indices[..., np.asarray(kept, int)],
                            [mat.sparse_shape[c] for c in kept])



def complete_shape(size: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """A shape of so many elements, with -1 for the extent that follows."""
    sizes = tuple(map(operator.index, sizes))
    rest = math.prod(extent for extent in sizes if extent != -1)
    return tuple(size // max(1, rest) if extent == -1 else extent for extent in sizes)


def bcoo_reshape(mat: S, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> S:
    """The same elements, in the same order, in another shape. Batch and dense axes that it does not begin and
    end with become sparse ones.

    Raises: ValueError for a shape of another size; NotImplementedError for `dimensions`.
    Source: `jax.experimental.sparse.bcoo_reshape`."""
    if dimensions is not None and list(dimensions) != list(range(mat.ndim)):
        raise NotImplementedError("bcoo_reshape with dimensions: transpose first")
    sizes = tuple(map(operator.index, new_sizes))
    if math.prod(sizes) != mat.size:
        raise ValueError(f"cannot reshape a sparse array of shape {mat.shape} to {sizes}")
    n_batch, n_dense = mat.n_batch, mat.n_dense
    while sizes[:n_batch] != mat.shape[:n_batch]:
        n_batch -= 1
    while n_dense and (n_dense > len(sizes) - n_batch
                       or sizes[len(sizes) - n_dense :] != mat.shape[mat.ndim - n_dense :]):
        n_dense -= 1
    mat = bcoo_update_layout(mat, n_batch=n_batch, n_dense=n_dense)
    shape = sizes[n_batch : len(sizes) - n_dense]
    columns, found = columns_of(mat.indices), []
    outside = find_outside(mat.indices, mat.sparse_shape)
    flat = jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype if math.prod(shape) < 2**31 else np.int64)
    for column, extent in zip(columns, mat.sparse_shape):
        flat = flat * extent + column.astype(flat.dtype)
    for extent in reversed(shape):
        found.append(flat % max(1, extent))
        flat = flat // max(1, extent)
    indices = jnp.stack(found[::-1], -1) if found else jnp.zeros((*mat.indices.shape[:-1], 0), flat.dtype)
    indices = jnp.where(outside[..., None], np.asarray(shape, indices.dtype),
                        indices).astype(mat.indices.dtype)
    data = mat.data if found else jnp.where(outside.reshape(outside.shape + (1,) * n_dense), 0, mat.data)
    return mat.with_entries(data, indices, shape, mat.indices_sorted, mat.unique_indices)


def bcoo_broadcast_in_dim(mat: S, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> S:
    """The array repeated along further axes, which are sparse ones.

    Source: `jax.experimental.sparse.bcoo_broadcast_in_dim`."""
    mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
    sources = {dim: axis for axis, dim in enumerate(broadcast_dimensions)}
    repeated = [dim for dim, extent in enumerate(shape)
                if dim not in sources or (mat.shape[sources[dim]] == 1 and extent != 1)]
    grid = np.stack(np.meshgrid(*(np.arange(shape[dim]) for dim in repeated), indexing="ij"), -1)
    grid = grid.reshape(-1, len(repeated)) if repeated else np.zeros((1, 0), int)
    outside = find_outside(mat.indices, mat.sparse_shape)
    columns = []
    for dim in range(len(shape)):
        if dim in repeated:
            place = jnp.asarray(grid[:, repeated.index(dim)], mat.indices.dtype)
            column = jnp.where(outside[:, None], shape[dim], place[None])
        else:
            column = jnp.broadcast_to(mat.indices[:, sources[dim], None], (mat.nse, len(grid)))
        columns.append(jnp.ravel(column))
    indices = jnp.stack(columns, -1) if columns else jnp.zeros((mat.nse, 0))
    indices = indices.astype(mat.indices.dtype)
    return mat.with_entries(jnp.repeat(mat.data, len(grid), 0), indices, shape, False, mat.unique_indices)


def bcoo_squeeze(mat: S, *, dimensions: Sequence[int]) -> S:
    """The array without these axes, of extent 1.

    Raises: ValueError for another extent.
    Source: `jax.experimental.sparse.bcoo_squeeze`."""
    dropped = {canonicalize_axis(axis, mat.ndim) for axis in dimensions}
    if any(mat.shape[axis] != 1 for axis in dropped):
        raise ValueError(f"squeeze: axes {tuple(dimensions)} of shape {mat.shape} are not all of extent 1")
    return bcoo_reshape(mat, new_sizes=[extent for axis, extent in enumerate(mat.shape)
                                        if axis not in dropped])


def bcoo_concatenate(operands: Sequence[S], *, dimension: int) -> S:
    """Sparse arrays one behind the other along an axis.

    Raises: ValueError for shapes that differ along others.
    Source: `jax.experimental.sparse.bcoo_concatenate`."""
    mats = [bcoo_update_layout(mat, n_batch=0, n_dense=0) for mat in operands]
    axis = canonicalize_axis(dimension, mats[0].ndim)
    others = {(*mat.shape[:axis], *mat.shape[axis + 1 :]) for mat in mats}
    if len(others) > 1:
        raise ValueError(f"bcoo_concatenate: shapes {[mat.shape for mat in mats]} differ beside axis {axis}")
    start, total, parts = 0, sum(mat.shape[axis] for mat in mats), []
    for mat in mats:
        limits = np.asarray(mat.sparse_shape, mat.indices.dtype)
        outside = find_outside(mat.indices, mat.sparse_shape)
        moved = mat.indices.at[:, axis].add(start)
        parts.append(jnp.where(outside[:, None], jnp.asarray(limits).at[axis].set(total), moved))
        start += mat.shape[axis]
    shape = [*mats[0].shape]
    shape[axis] = total
    dtype = jnp.result_type(*(mat.data for mat in mats))
    return mats[0].with_entries(jnp.concatenate([mat.data.astype(dtype) for mat in mats]),
                                jnp.concatenate(parts), shape)


def bcoo_slice(mat: S, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> S:
    """A part of the array; entries beside it do not count any more.

    Source: `jax.experimental.sparse.bcoo_slice`."""
    steps = [1] * mat.ndim if strides is None else list(strides)
    ends = mat.n_batch, mat.n_batch + mat.n_sparse
    cuts = [slice(*cut) for cut in zip(start_indices, limit_indices, steps)]
    batch, sparse, dense = cuts[: ends[0]], cuts[ends[0] : ends[1]], cuts[ends[1] :]
    data, indices = mat.data[(*batch, slice(None), *dense)], mat.indices[tuple(batch)]
    shape, inside, columns = [], True, []
    for column, cut in zip(columns_of(indices), sparse):
        extent = max(0, -(-(cut.stop - cut.start) // cut.step))
        inside = inside & (column >= cut.start) & (column < cut.stop) & ((column - cut.start) % cut.step == 0)
        columns.append((column - cut.start) // cut.step)
        shape.append(extent)
    if columns:
        indices = jnp.where(inside[..., None], jnp.stack(columns, -1), np.asarray(shape, indices.dtype))
        inside = inside.reshape(inside.shape + (1,) * mat.n_dense)
        data = jnp.where(inside, data, np.zeros((), data.dtype))
    return mat.with_entries(data, indices, shape, False, mat.unique_indices)


def bcoo_rev(mat: S, dimensions: Sequence[int]) -> S:
    """The array backwards along these axes.

    Source: `jax.experimental.sparse.bcoo_rev`."""
    axes = [canonicalize_axis(axis, mat.ndim) for axis in dimensions]
    ends = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [axis for axis in axes if axis < ends[0]]
    data = jnp.flip(mat.data, [*batch, *(axis - mat.n_sparse + 1 for axis in axes if axis >= ends[1])])
    indices = jnp.flip(mat.indices, batch)
    for column in (axis - ends[0] for axis in axes if ends[0] <= axis < ends[1]):
        extent, values = mat.sparse_shape[column], indices[..., column]
        indices = indices.at[..., column].set(jnp.where(values < extent, extent - 1 - values, values))
    return mat.with_entries(data, indices, mat.sparse_shape, False, mat.unique_indices)


def bcoo_getitem(mat: S, index: Any) -> S:
    """`mat[index]` for ints, slices, None and Ellipsis.

    Raises: NotImplementedError for others; IndexError for too many, or outside of an axis."""
    entries = list(index) if isinstance(index, tuple) else [index]
    if any(not (e is None or e is Ellipsis or isinstance(e, (slice, int, np.integer))) for e in entries):
        raise NotImplementedError(f"sparse arrays are indexed by ints and slices, got {index!r}.\nTo fix: "
                                  "todense() first.")
    count = sum(e is not None and e is not Ellipsis for e in entries)
    if count > mat.ndim:
        raise IndexError(f"Too many indices: {mat.ndim}-dimensional array indexed with {count}")
    place = entries.index(Ellipsis) if Ellipsis in entries else len(entries)
    entries[place : place + 1] = [slice(None)] * (mat.ndim - count)
    cuts, sizes, reversed_axes = [], [], []
    for axis, entry in enumerate(e for e in entries if e is not None):
        extent = mat.shape[axis]
        if isinstance(entry, slice):
            start, stop, step = entry.indices(extent)
            length = len(range(start, stop, step))
            if step < 0:
                reversed_axes.append(axis)
                start, step = start + (length - 1) * step, -step
            cuts.append((start, start + (length - 1) * step + 1 if length else start, step))
        else:
            entry = operator.index(entry)
            if not -extent <= entry < extent:
                raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {extent}")
            cuts.append((entry % extent, entry % extent + 1, 1))
    found = bcoo_slice(mat, start_indices=[c[0] for c in cuts], limit_indices=[c[1] for c in cuts],
                       strides=[c[2] for c in cuts])
    found = bcoo_rev(found, reversed_axes) if reversed_axes else found
    extents = iter(found.shape)
    sizes = [1 if e is None else next(extents) if isinstance(e, slice) else next(extents) - 1
             for e in entries]
    kept = [size for size, e in zip(sizes, entries) if e is None or isinstance(e, slice)]
    return found if tuple(kept) == found.shape else bcoo_reshape(found, new_sizes=kept)


# -- arithmetic ---------------------------------------------------------------------------------------------
def bcoo_add(x: Any, y: Any) -> Any:
    """The sum of two arrays, of which one is sparse: sparse where both are, else dense."""
    if not (is_sparse(x) and is_sparse(y)):
        return jnp.add(*(a.todense() if is_sparse(a) else a for a in (x, y)))
    if x.shape != y.shape:
        raise ValueError(f"sum of sparse arrays of different shapes, {x.shape} and {y.shape}")
    n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
    x, y = (bcoo_update_layout(mat, n_batch=n_batch, n_dense=n_dense) for mat in (x, y))
    dtype = jnp.result_type(x.data, y.data)
    return x.with_entries(jnp.concatenate([x.data.astype(dtype), y.data.astype(dtype)], n_batch),
                          jnp.concatenate([x.indices, y.indices], n_batch), x.sparse_shape)


def bcoo_multiply_dense(sp_mat: S, v: Any) -> S:
    """The product, element by element, with a dense array that broadcasts to the sparse one's shape.

    Raises: ValueError where it does not.
    Source: `jax.experimental.sparse.bcoo_multiply_dense`."""
    v = jnp.asarray(v)
    if not v.shape:
        return sp_mat.with_data(sp_mat.data * v)
    if jnp.broadcast_shapes(sp_mat.shape, v.shape) != sp_mat.shape:
        raise ValueError(f"product of a sparse array of shape {sp_mat.shape} with a dense one of shape "
                         f"{v.shape}, which does not broadcast to it.\nTo fix: todense() first.")
    v = v.reshape(*[1] * (sp_mat.ndim - v.ndim), *v.shape)
    v = jnp.broadcast_to(v, (*sp_mat.shape[: sp_mat.n_batch], *v.shape[sp_mat.n_batch :]))

    def multiply(data, indices, v):
        single = [extent == 1 for extent in v.shape[: indices.shape[-1]]]
        places = jnp.where(np.asarray(single, bool), 0, indices) if any(single) else indices
        return data * gather(v, places)

    return sp_mat.with_data(map_batch(multiply, sp_mat.n_batch)(sp_mat.data, sp_mat.indices, v))


def bcoo_multiply_sparse(lhs: S, rhs: S) -> S:
    """The product, element by element, of two sparse arrays of one shape, at the places of the first.

    Source: `jax.experimental.sparse.bcoo_multiply_sparse`."""
    if lhs.shape != rhs.shape:
        raise ValueError(f"product of sparse arrays of different shapes, {lhs.shape} and {rhs.shape}")
    n_batch, n_dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    lhs, rhs = (bcoo_update_layout(mat, n_batch=n_batch, n_dense=n_dense) for mat in (lhs, rhs))

    def multiply(data, indices, others, other_indices):
        order, numbers = _number_places(jnp.concatenate([indices, other_indices]), lhs.sparse_shape)
        ids = jnp.zeros_like(numbers).at[order].set(numbers)
        count = data.shape[0]
        totals = jnp.zeros((len(numbers), *others.shape[1:]), others.dtype).at[ids[count:]].add(others)
        return data * totals[ids[:count]]

    return lhs.with_data(map_batch(multiply, n_batch)(lhs.data, lhs.indices, rhs.data, rhs.indices))
