"""Collectives by which the elements of a named axis, or the devices along one, give each other parts of
values: `psum_scatter`, `ppermute`, `all_to_all`.

In: values of one element and the name of an axis that encloses the code. Out: what this element gets. See
`collectives`, which has those whose result is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.lax.define import define
from jitcore.lax.elementwise import convert_element_type, eq, mul, select_n
from jitcore.lax.indexing.slices import dynamic_slice_in_dim, slice_in_dim
from jitcore.lax.joining import concatenate
from jitcore.lax.parallel.collectives import (AxisName, all_gather, axis_index, list_sizes, merge_axes, psum,
                                              read_axes, split_axis_into, vary)
from jitcore.lax.parallel.ranks import find_effects, run_all_to_all, run_ppermute, run_reduce_scatter
from jitcore.lax.reduce import reduce_sum
from jitcore.lax.shape import broadcast, expand_dims, full_like, reshape, squeeze
from jitcore.transforms.batching import add_axis, move_axis
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import fill
from jitcore.tree_util import tree_map


# -- sums, dealt out ----------------------------------------------------------------------------------------
def _psum_scatter_aval(x: ShapedArray, *, axes, dimension: int, size, tiled: bool) -> ShapedArray:
    own = (x.shape[dimension] // size,) if tiled else ()
    return x.update(shape=(*x.shape[:dimension], *own, *x.shape[dimension + 1 :]))


def _batch_psum_scatter(primitive, axis, values, batched, *, axes, dimension: int, size, tiled: bool):
    (x,), (has_axis,) = values, batched
    if axis.name not in axes:
        return primitive.bind(x, axes=axes, dimension=dimension + 1, size=size, tiled=tiled)
    total = reduce_sum(x, (0,)) if has_axis else mul(x, np.asarray(size).astype(aval_of(x).dtype)[()])
    if tiled:
        shape = aval_of(total).shape
        total = reshape(total, (*shape[:dimension], size, shape[dimension] // size, *shape[dimension + 1 :]))
    return move_axis(total, dimension, 0)


@define("reduce_scatter", impl=run_reduce_scatter, aval=_psum_scatter_aval, jvp=jvp_linear(),
        batch=_batch_psum_scatter,
        transpose=transpose_unary(lambda ct, x, **params: all_gather.primitive.bind(ct, **params)),
        collective=True, effects=find_effects)
def psum_scatter(x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups=None,
                 tiled: bool = False):
    """The sum over all elements of a named axis, of which each element gets its part.

    Args:
        x: pytree of arrays.
        axis_name: as for `all_gather`.
        scatter_dimension: the axis of x that is dealt out: into equal parts when tiled, else index by index.
        tiled: whether parts keep that axis.

    Raises: ValueError where that axis cannot be dealt out."""
    axes, names, size = read_axes("psum_scatter", axis_name, axis_index_groups)
    sizes = list_sizes(axes)

    def scatter(leaf):
        shape = aval_of(leaf).shape
        dimension = scatter_dimension % max(len(shape), 1)
        extent = shape[dimension] if shape else 0
        if extent % size if tiled else extent != size:
            need = "be divisible by" if tiled else "be"
            raise ValueError(
                f"psum_scatter over {axis_name!r}: axis {dimension} of the operand of shape {shape} must "
                f"{need} {size}, the size of the named axis")
        if sizes:
            leaf = leaf if tiled else split_axis_into(leaf, dimension, sizes)
            for one in axes:
                leaf = psum_scatter(leaf, one.name, scatter_dimension=dimension, tiled=tiled)
            return leaf
        if not names:
            return leaf if tiled else squeeze(leaf, (dimension,))
        return psum_scatter.primitive.bind(vary(leaf, axes), axes=names, dimension=dimension, size=size,
                                           tiled=tiled)

    return tree_map(scatter, x)


# -- values of others ---------------------------------------------------------------------------------------
def _batch_ppermute(primitive, axis, values, batched, *, axes, perm):
    (x,), (has_axis,) = values, batched
    if axis.name not in axes:
        return primitive.bind(x, axes=axes, perm=perm)
    x = x if has_axis else add_axis(x, axis.size)
    origin_of, gets = dict.fromkeys(range(axis.size), 0), np.zeros(axis.size, bool)
    for origin, target in perm:
        origin_of[target], gets[target] = origin, True
    moved = concatenate([slice_in_dim(x, origin, origin + 1) for origin in origin_of.values()], 0)
    aval = aval_of(moved)
    mask = registry["broadcast_in_dim"].bind(gets, shape=aval.shape, broadcast_dimensions=(0,))
    return select_n(mask, fill(aval, 0), moved)


def _transpose_ppermute(ct, x, *, axes, perm):
    return ppermute.primitive.bind(ct, axes=axes, perm=tuple([(target, origin) for origin, target in perm]))


@define("ppermute", impl=run_ppermute, aval=lambda x, *, axes, perm: x, jvp=jvp_linear(),
        batch=_batch_ppermute, transpose=transpose_unary(_transpose_ppermute), collective=True,
        effects=find_effects)
def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]):
    """The values of other elements of a named axis: those that a pair (origin, target) sends here, else
    zeros.

    Raises: ValueError for an element that is named twice as origin, or as target, or that there is not."""
    axes, names, size = read_axes("ppermute", axis_name)
    pairs = tuple([(int(origin), int(target)) for origin, target in perm])
    for ends in zip(*pairs):
        if len(set(ends)) < len(ends) or not all(0 <= end < size for end in ends):
            raise ValueError(
                f"ppermute sources and destinations must be unique and less than {size}, got {pairs}")

    def permute(leaf):
        if list_sizes(axes):
            return _take_from(leaf, axis_name, dict((target, origin) for origin, target in pairs), size)
        if not names:
            return leaf if pairs else fill(aval_of(leaf), 0)
        return ppermute.primitive.bind(vary(leaf, axes), axes=names, perm=pairs)

    return tree_map(permute, x)


def _take_from(x, axis_name: AxisName, origins: dict[int, int], size: int):
    """Of all elements' values the one that is for this element, or zeros."""
    place = axis_index(axis_name)
    origin = np.array([origins.get(target, 0) for target in range(size)], np.int32)
    origin = dynamic_slice_in_dim(origin, place, 1)[0]
    found = squeeze(dynamic_slice_in_dim(all_gather(x, axis_name), origin, 1), (0,))
    gets = dynamic_slice_in_dim(np.array([target in origins for target in range(size)]), place, 1)
    aval = aval_of(found)
    return select_n(broadcast(squeeze(gets, (0,)), aval.shape), fill(aval, 0), found)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]):
    """`ppermute` by the origin of each element."""
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


# -- all to all ---------------------------------------------------------------------------------------------
def _all_to_all_aval(x: ShapedArray, *, axes, split_axis: int, concat_axis: int, size) -> ShapedArray:
    shape = list(x.shape)
    shape[split_axis] //= size
    shape[concat_axis] *= size
    return x.update(shape=tuple(shape))


def _batch_all_to_all(primitive, axis, values, batched, *, axes, split_axis: int, concat_axis: int, size):
    (x,), (has_axis,) = values, batched
    if axis.name not in axes:
        return primitive.bind(x, axes=axes, split_axis=split_axis + 1, concat_axis=concat_axis + 1, size=size)
    x = x if has_axis else add_axis(x, axis.size)
    shape, at = aval_of(x).shape, split_axis + 1  # the origin is first
    x = reshape(x, (*shape[:at], size, shape[at] // size, *shape[at + 1 :]))
    x = move_axis(move_axis(x, at, 0), 1, concat_axis + 1)  # the target first, the origin before its parts
    shape, at = aval_of(x).shape, concat_axis + 1
    return reshape(x, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))


def _transpose_all_to_all(ct, x, *, split_axis, concat_axis, **params):
    return all_to_all.primitive.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)


@define("all_to_all", impl=run_all_to_all, aval=_all_to_all_aval, jvp=jvp_linear(),
        batch=_batch_all_to_all, transpose=transpose_unary(_transpose_all_to_all), collective=True,
        effects=find_effects)
def all_to_all(x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, *, axis_index_groups=None,
               tiled: bool = False):
    """Each element deals its value out to all elements of a named axis, and puts together what it gets.

    Args:
        x: pytree of arrays.
        axis_name: as for `all_gather`.
        split_axis: of x, that is dealt out: into equal parts when tiled, else index by index.
        concat_axis: along which the parts are put together; when not tiled, where they stand as a new axis.

    Raises: ValueError where that axis cannot be dealt out."""
    axes, names, size = read_axes("all_to_all", axis_name, axis_index_groups)
    sizes = list_sizes(axes)

    def exchange(leaf):
        shape = aval_of(leaf).shape
        split, concat = split_axis % len(shape), concat_axis % len(shape)
        if shape[split] % size if tiled else shape[split] != size:
            raise ValueError("all_to_all requires the size of the mapped axis axis_name to "
                             f"{'divide' if tiled else 'equal'} "
                             f"x.shape[split_axis], but they are {size} and {shape[split]} respectively.")
        if sizes:
            return _exchange_one_by_one(leaf, axes, split, concat, size, tiled)
        leaf, is_new = vary(leaf, axes), not tiled and split != concat
        if is_new:
            concat += split < concat  # it says where the new axis stands once the dealt one is gone
            leaf = expand_dims(leaf, (concat,))
            split += concat <= split
        if names:
            leaf = all_to_all.primitive.bind(leaf, axes=names, split_axis=split, concat_axis=concat,
                                             size=size)
        return squeeze(leaf, (split,)) if is_new else leaf

    return tree_map(exchange, x)


def _exchange_one_by_one(x, axes, split: int, concat: int, size: int, tiled: bool):
    """`all_to_all` over several axes: the number of an element has a digit for each of them, and so have the
    parts; one axis after the other exchanges digits."""
    sizes = list_sizes(axes)
    x = split_axis_into(x, split, (*sizes, aval_of(x).shape[split] // size) if tiled else sizes)
    for place, one in enumerate(axes, split):
        x = all_to_all(x, one.name, place, place)
    x = move_axis(merge_axes(x, split, len(sizes)), split, concat)
    return merge_axes(x, concat, 2) if tiled else x


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups=None):
    """The named axis and an axis of x, of equal extents, trade places.

    Args:
        x: pytree of arrays. axis_name: of `vmap` or a mesh. axis: of x.

    Returns: as x. Raises: ValueError for other extents. Example: with `vmap(f, axis_name="i")`, of a matrix
    `f = lambda row: pswapaxes(row, "i", 0)` gives the transpose. Source: jax.lax.pswapaxes."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: AxisName, source: int):
    """The value that one element of a named axis has, for all of them.

    Args:
        x: pytree of arrays. axis_name: of `vmap` or a mesh. source: the number of the element.

    Returns: as x. Example: with `vmap(f, axis_name="i")`, of `[5, 6]` `f = lambda x: pbroadcast(x, "i", 1)`
    gives `[6, 6]`. Source: jax.lax.pbroadcast."""
    is_source = eq(axis_index(axis_name), np.int32(source))

    def share(leaf):
        aval = aval_of(leaf)
        number = convert_element_type(leaf, np.int8) if aval.dtype == np.bool_ else leaf
        found = psum(select_n(broadcast(is_source, aval.shape), full_like(number, 0), number), axis_name)
        return convert_element_type(found, aval.dtype)

    return tree_map(share, x)
