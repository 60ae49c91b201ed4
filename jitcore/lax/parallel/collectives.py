"""Collectives: operations over the elements of a named axis of `vmap`, the devices along one of
`shard_map`, or the processes along one of ranks.

In: values of one element and the name of an axis that encloses the code. Out: what all elements give
together: sums and extrema, all values side by side, positions along the axis. The `vmap` of an axis replaces
the primitives; those over axes of a mesh are run by its devices, those over ranks call MPI. Along an axis of
one device nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import Primitive, registry
from jitcore.lax.define import define, product
from jitcore.lax.elementwise import add, convert_element_type, div, eq, mul, select_n
from jitcore.lax.parallel.ranks import (RankAxis, find_effects, is_bound, list_rank_axes, run_all_gather,
                                        run_index, run_max, run_min, run_sum)
from jitcore.lax.reduce import reduce_max, reduce_min, reduce_sum
from jitcore.lax.shape import broadcasted_iota, expand_dims, reshape
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.batching import BatchAxis, MeshAxis, Unmapped, add_axis, list_named_axes, move_axis
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import fill
from jitcore.tree_util import tree_map

__all__ = ["all_gather", "axis_index", "axis_size", "pcast", "pmax", "pmean", "pmin", "psum", "pvary"]

AxisName = Hashable


# -- names --------------------------------------------------------------------------------------------------
def axis_size(axis_name: AxisName):
    """Number of elements along a named axis; of several names (a tuple) their product.

    Raises: NameError when no enclosing `vmap` or `shard_map` has the name."""
    return product(axis.size for axis in find_axes("axis_size", _to_names(axis_name)))


def _to_names(axis_name) -> tuple:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _split_names(axis_name) -> tuple[tuple[int, ...], tuple]:
    """Positions of axes of the value itself, and names."""
    names = _to_names(axis_name)
    positions = tuple(name for name in names if isinstance(name, int))
    return positions, tuple(name for name in names if not isinstance(name, int))


Axis = BatchAxis | MeshAxis | RankAxis


def find_axes(function: str, names: tuple) -> list[Axis]:
    """The named axes. Raises: NameError for a name that nothing enclosing has."""
    known: dict[Hashable, Axis] = {axis.name: axis for axis in list_rank_axes()}
    known |= {axis.name: axis for axis in reversed(list_named_axes())}
    for name in names:
        if name not in known:
            raise NameError(f"Found an unbound axis name: {name}. To fix this, please call {function} under "
                            f"`jitcore.vmap(..., axis_name={name!r})` or `jitcore.shard_map`.")
    return [known[name] for name in names]


def read_axes(function: str, axis_name: AxisName, axis_index_groups=None) -> tuple[list, tuple, int]:
    """The axes, the names of those along which there is something to do, the number of elements."""
    reject_groups(axis_index_groups)
    axes = find_axes(function, _to_names(axis_name))
    named = tuple(axis.name for axis in axes if not _is_single(axis))
    return axes, named, product(axis.size for axis in axes)


def list_sizes(axes: Sequence[Axis]) -> tuple[int, ...]:
    """The extents of several axes that a collective takes one after the other; () where it takes all at once:
    one axis, or those of a mesh."""
    is_whole = len(axes) == 1 or all(isinstance(axis, MeshAxis) for axis in axes)
    return () if is_whole else tuple(axis.size for axis in axes)


def split_axis_into(x, dimension: int, sizes: Sequence[int]):
    """x with an axis of as many elements as all sizes have together as axes of these sizes."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:dimension], *sizes, *shape[dimension + 1 :]))


def merge_axes(x, dimension: int, count: int):
    """x with `count` axes as one."""
    shape = aval_of(x).shape
    merged = product(shape[dimension : dimension + count])
    return reshape(x, (*shape[:dimension], merged, *shape[dimension + count :]))


def _is_single(axis: Axis) -> bool:
    """Whether there is one device along an axis of a mesh, or one process."""
    return not isinstance(axis, BatchAxis) and axis.size == 1


def _find_names(axes: Sequence[Axis], *, tracked: bool) -> tuple:
    """The names of the axes along which there is something to do: those along which values know whether they
    vary, or the others."""
    return tuple(axis.name for axis in axes
                 if getattr(axis, "is_tracked", False) is tracked and not _is_single(axis))


def reject_groups(axis_index_groups) -> None:
    if axis_index_groups is not None:
        raise NotImplementedError(
            "axis_index_groups not supported in vmap collectives or shard_map. Please open a feature request!"
        )


def _find_ranks(axes: Sequence[Axis]) -> tuple:
    return tuple(axis.name for axis in axes if isinstance(axis, RankAxis) and axis.size > 1)


# -- where values vary --------------------------------------------------------------------------------------
def vary(x, axes: Sequence[Axis]):
    """x as a value of its own on each device along these axes."""
    return _vary(x, _find_names(axes, tracked=True))


def _vary(x, names: Sequence[Hashable]):
    missing = tuple(name for name in names if name not in aval_of(x).varying)
    return pvary.primitive.bind(x, axes=missing) if missing else x


def _identity(*values, **_):
    return values[-1]


@define("pvary", impl=_identity, aval=lambda x, *, axes: x, jvp=jvp_linear(), batch=rebind(),
        lower=_identity, hlo=_identity, varying=lambda varying, *, axes: varying | frozenset(axes),
        transpose=transpose_unary(lambda ct, x, *, axes: psum_invariant.bind(ct, axes=axes)))
def pvary(x: Any, axis_name: AxisName):
    """The arrays, which are the same on all devices along the named axes, or in all processes, as values that
    each has by itself.

    Nothing moves. The transpose is the sum over the devices: a derivative by the one array adds up those by
    each."""
    axes = find_axes("pvary", _to_names(axis_name))
    names = _find_names(axes, tracked=True) + _find_ranks(axes)
    return tree_map(lambda leaf: _vary(leaf, names), x)


def pcast(x: Any, axis_name: AxisName, *, to: str):
    """`pvary` for to="varying", the only cast there is."""
    if to != "varying":
        raise NotImplementedError(f"pcast to {to!r} is not supported, only to 'varying'")
    return pvary(x, axis_name)


def _without_axes(varying: frozenset, *, axes) -> frozenset:
    return varying - frozenset(axes)


#: `psum` over axes of a mesh whose values know that its result does not vary, or over ranks: the transpose
#: moves nothing.
psum_invariant = Primitive(
    "psum_invariant", impl=run_sum, aval=lambda x, *, axes: x, jvp=jvp_linear(), batch=rebind(),
    transpose=transpose_unary(lambda ct, x, *, axes: pvary.primitive.bind(ct, axes=axes)), collective=True,
    varying=_without_axes, effects=find_effects)


# -- sums and extrema ---------------------------------------------------------------------------------------
def _reduction_rule(reduce: Callable, repeat: Callable) -> Callable:
    """The rule of a collective that folds with `reduce`; `repeat(x, size)` folds `size` equal values."""

    def rule(primitive, axis, values, batched, *, axes):
        (x,), (has_axis,) = values, batched
        if axis.name not in axes:
            return primitive.bind(x, axes=axes)
        rest = tuple(name for name in axes if name != axis.name)
        out = reduce(x, (0,)) if has_axis else repeat(x, axis.size)
        return Unmapped(primitive.bind(out, axes=rest) if rest else out)

    return rule


def _jvp_extremum(primitive, primals, tangents, *, axes):
    """Of elements that are equally far out, the mean, as along an axis of an array."""
    (x,), (t,) = primals, tangents
    ans = primitive.bind(x, axes=axes)
    wins, zero = eq(x, ans), fill(aval_of(t), 0)
    add_up = psum_invariant if any(map(is_bound, axes)) else psum.primitive
    total = add_up.bind(select_n(wins, zero, t), axes=axes)
    count = add_up.bind(select_n(wins, zero, fill(aval_of(t), 1)), axes=axes)
    return ans, div(total, count)


def _collective_reduction(name: str, run: Callable, reduce: Callable, repeat: Callable, *, jvp: Callable,
                          transpose: Callable | None = None):
    """The family: one value per element is folded to one value for all of them."""

    def attach(function):
        return define(name, impl=run, aval=lambda x, *, axes: x, jvp=jvp, transpose=transpose,
                      batch=_reduction_rule(reduce, repeat), collective=True, varying=_without_axes,
                      effects=find_effects)(function)

    return attach


def _fold_over(function, x, axis_name, axis_index_groups):
    """Applies a collective reduction to each leaf; positions among the names are axes of the leaf itself."""
    reject_groups(axis_index_groups)
    positions, named = _split_names(axis_name)
    axes = find_axes(function.__name__, named)
    ranks, tracked = _find_ranks(axes), _find_names(axes, tracked=True)
    names = tuple(name for name in _find_names(axes, tracked=False) if name not in ranks)
    over_tracked = psum_invariant if function is psum else function.primitive

    def fold(leaf):
        if aval_of(leaf).dtype == dtypes.bool_ and function is psum:
            leaf = convert_element_type(leaf, dtypes.int32)
        if positions:
            ndim = aval_of(leaf).ndim
            leaf = _POSITIONAL[function](leaf, tuple(position % ndim for position in positions))
        if names:
            leaf = function.primitive.bind(leaf, axes=names)
        if ranks:
            leaf = over_tracked.bind(leaf, axes=ranks)
        return over_tracked.bind(vary(leaf, axes), axes=tracked) if tracked else leaf

    return tree_map(fold, x)


def _repeat_sum(x, size):
    return mul(x, np.asarray(size).astype(aval_of(x).dtype)[()])


@_collective_reduction("psum", run_sum, reduce_sum, _repeat_sum, jvp=jvp_linear(),
                       transpose=transpose_unary(lambda ct, x, *, axes: psum.primitive.bind(ct, axes=axes)))
def psum(x: Any, axis_name: AxisName, *, axis_index_groups=None):
    """Sum over all elements of a named axis.

    Args:
        x: pytree of arrays; bools count as int32. The sum of a Python number is known while tracing.
        axis_name: name of an enclosing axis, or a tuple of names; integers among them are axes of x itself.

    Raises: NameError for a name that nothing enclosing has; NotImplementedError for axis_index_groups."""
    if isinstance(x, (int, float, complex)) and axis_index_groups is None:
        return x * axis_size(axis_name)
    return _fold_over(psum, x, axis_name, axis_index_groups)


@_collective_reduction("pmax", run_max, reduce_max, lambda x, size: x, jvp=_jvp_extremum)
def pmax(x: Any, axis_name: AxisName, *, axis_index_groups=None):
    """Largest of all elements of a named axis. Arguments as in `psum`."""
    return _fold_over(pmax, x, axis_name, axis_index_groups)


@_collective_reduction("pmin", run_min, reduce_min, lambda x, size: x, jvp=_jvp_extremum)
def pmin(x: Any, axis_name: AxisName, *, axis_index_groups=None):
    """Smallest of all elements of a named axis. Arguments as in `psum`."""
    return _fold_over(pmin, x, axis_name, axis_index_groups)


_POSITIONAL = {psum: reduce_sum, pmax: reduce_max, pmin: reduce_min}


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups=None):
    """Mean over all elements of a named axis; integers give floats. Arguments as in `psum`."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    positions, named = _split_names(axis_name)
    count = axis_size(named)

    def divide(leaf, whole):
        if isinstance(whole, (int, float, complex)):
            return whole / count
        if not dtypes.is_inexact(aval_of(whole).dtype):
            whole = convert_element_type(whole, dtypes.default_dtype("f"))
        size = count * product(aval_of(leaf).shape[position] for position in positions)
        return div(whole, np.asarray(size).astype(aval_of(whole).dtype)[()])

    return tree_map(divide, x, total)


# -- all values ---------------------------------------------------------------------------------------------
def _all_gather_aval(x: ShapedArray, *, axes, dimension: int, size, tiled: bool) -> ShapedArray:
    if tiled:
        shape = (*x.shape[:dimension], x.shape[dimension] * size, *x.shape[dimension + 1 :])
    else:
        shape = (*x.shape[:dimension], size, *x.shape[dimension:])
    return x.update(shape=shape)


def _batch_all_gather(primitive, axis, values, batched, *, axes, dimension: int, **params):
    (x,), (has_axis,) = values, batched
    if axis.name not in axes:
        return primitive.bind(x, axes=axes, dimension=dimension + 1, **params)
    x = x if has_axis else add_axis(x, axis.size)
    out = move_axis(x, 0, dimension)
    if params["tiled"]:
        shape = aval_of(out).shape
        out = reshape(out, (*shape[:dimension], axis.size * shape[dimension + 1], *shape[dimension + 2 :]))
    return Unmapped(out)


def _transpose_all_gather(ct, x, **params):
    """Each element gets the sum of all cotangents of its own part."""
    return registry["reduce_scatter"].bind(ct, **params)


@define("all_gather", impl=run_all_gather, aval=_all_gather_aval, jvp=jvp_linear(),
        transpose=transpose_unary(_transpose_all_gather), batch=_batch_all_gather,
        collective=True, effects=find_effects)
def all_gather(x: Any, axis_name: AxisName, *, axis_index_groups=None, axis: int = 0, tiled: bool = False):
    """The values of all elements of a named axis, side by side.

    Args:
        x: pytree of arrays.
        axis_name: name of one enclosing axis, or of several, the last one fastest.
        axis: where the values stand in the result: along a new axis, or along one of x when tiled.
        tiled: join the values along an axis that they have.

    Raises: NameError for a name that nothing enclosing has; NotImplementedError for axis_index_groups."""
    axes, names, size = read_axes("all_gather", axis_name, axis_index_groups)
    sizes = list_sizes(axes)

    def gather(leaf):
        dimension = axis % (aval_of(leaf).ndim + (0 if tiled else 1))
        if sizes:
            for one in reversed(axes):
                leaf = all_gather(leaf, one.name, axis=dimension, tiled=tiled)
            return leaf if tiled else merge_axes(leaf, dimension, len(sizes))
        if not names:
            return leaf if tiled else expand_dims(leaf, (dimension,))
        params = {"axes": names, "dimension": dimension, "size": size, "tiled": tiled}
        return all_gather.primitive.bind(vary(leaf, axes), **params)

    return tree_map(gather, x)


# -- positions ----------------------------------------------------------------------------------------------
def _batch_axis_index(primitive, axis, values, batched, *, axes):
    return broadcasted_iota(dtypes.int32, (axis.size,), 0)


@define("axis_index", impl=run_index, aval=lambda *, axes: ShapedArray((), dtypes.int32),
        batch=_batch_axis_index, collective=True,
        varying=lambda varying, *, axes: varying | frozenset(axes))
def axis_index(axis_name: AxisName):
    """Position of the current element along a named axis (int32); of several names, the last one fastest.

    Raises: NameError when no enclosing `vmap` or `shard_map` has the name."""
    index = None
    for axis in find_axes("axis_index", _to_names(axis_name)):
        place = np.int32(0) if _is_single(axis) else axis_index.primitive.bind(axes=(axis.name,))
        index = place if index is None else add(mul(index, np.int32(axis.size)), place)
    return index
