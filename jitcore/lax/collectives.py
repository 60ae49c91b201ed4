"""Collectives: operations over the elements of a named axis of `vmap`.

In: values of one element and the name of an axis that encloses the code. Out: what all elements give
together: sums and extrema, all values side by side, positions along the axis. The primitives exist in traces
only: the `vmap` of the axis replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.lax.arguments import product
from jitcore.lax.define import define
from jitcore.lax.elementwise import add, convert_element_type, div, eq, mul, select_n
from jitcore.lax.index import dynamic_slice_in_dim
from jitcore.lax.reduce import reduce_max, reduce_min, reduce_sum
from jitcore.lax.shape import broadcasted_iota, reshape
from jitcore.transforms.batching import Unmapped, add_axis, list_named_axes, move_axis
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import fill
from jitcore.tree_util import tree_map

AxisName = Hashable


# -- names --------------------------------------------------------------------------------------------------
def axis_size(axis_name: AxisName):
    """Number of elements along a named axis; of several names (a tuple) their product.

    Raises: NameError when no enclosing `vmap` has the name."""
    return product(_find_sizes("axis_size", _to_names(axis_name)))


def _to_names(axis_name) -> tuple:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _split_names(axis_name) -> tuple[tuple[int, ...], tuple]:
    """Positions of axes of the value itself, and names."""
    names = _to_names(axis_name)
    positions = tuple(name for name in names if isinstance(name, int))
    return positions, tuple(name for name in names if not isinstance(name, int))


def _find_sizes(function: str, names: tuple) -> list:
    """The sizes of named axes. Raises: NameError for a name that nothing enclosing has."""
    known = {}
    for axis in reversed(list_named_axes()):
        known[axis.name] = axis.size
    for name in names:
        if name not in known:
            raise NameError(
                f"Found an unbound axis name: {name}. To fix this, please call {function} under "
                f"`jitcore.vmap(..., axis_name={name!r})`."
            )
    return [known[name] for name in names]


def _reject_groups(axis_index_groups) -> None:
    if axis_index_groups is not None:
        raise NotImplementedError(
            "axis_index_groups not supported in vmap collectives. Please open a feature request!"
        )


def _run_outside(*values, axes, **params):
    raise NameError(f"unbound axis name: {axes[0]}")


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
    total = psum.primitive.bind(select_n(wins, zero, t), axes=axes)
    count = psum.primitive.bind(select_n(wins, zero, fill(aval_of(t), 1)), axes=axes)
    return ans, div(total, count)


def _collective_reduction(name: str, reduce: Callable, repeat: Callable, *, jvp: Callable,
                          transpose: Callable | None = None):  # fmt: skip
    """The family: one value per element is folded to one value for all of them."""

    def attach(function):
        return define(name, impl=_run_outside, aval=lambda x, *, axes: x, jvp=jvp, transpose=transpose,
                      batch=_reduction_rule(reduce, repeat), collective=True)(function)  # fmt: skip

    return attach


def _fold_over(function, x, axis_name, axis_index_groups):
    """Applies a collective reduction to each leaf; positions among the names are axes of the leaf itself."""
    _reject_groups(axis_index_groups)
    positions, named = _split_names(axis_name)
    _find_sizes(function.__name__, named)

    def fold(leaf):
        if aval_of(leaf).dtype == dtypes.bool_ and function is psum:
            leaf = convert_element_type(leaf, dtypes.int32)
        if positions:
            ndim = aval_of(leaf).ndim
            leaf = _POSITIONAL[function](leaf, tuple(position % ndim for position in positions))
        return function.primitive.bind(leaf, axes=named) if named else leaf

    return tree_map(fold, x)


def _repeat_sum(x, size):
    return mul(x, np.asarray(size).astype(aval_of(x).dtype)[()])


@_collective_reduction("psum", reduce_sum, _repeat_sum, jvp=jvp_linear(),
                       transpose=transpose_unary(lambda ct, x, *, axes: psum.primitive.bind(ct, axes=axes))
                       )  # fmt: skip
def psum(x: Any, axis_name: AxisName, *, axis_index_groups=None):
    """Sum over all elements of a named axis.

    Args:
        x: pytree of arrays; bools count as int32. The sum of a Python number is known while tracing.
        axis_name: name of an enclosing axis, or a tuple of names; integers among them are axes of x itself.

    Raises: NameError for a name that nothing enclosing has; NotImplementedError for axis_index_groups.
    """
    if isinstance(x, (int, float, complex)) and axis_index_groups is None:
        return x * axis_size(axis_name)
    return _fold_over(psum, x, axis_name, axis_index_groups)


@_collective_reduction("pmax", reduce_max, lambda x, size: x, jvp=_jvp_extremum)
def pmax(x: Any, axis_name: AxisName, *, axis_index_groups=None):
    """Largest of all elements of a named axis. Arguments as in `psum`."""
    return _fold_over(pmax, x, axis_name, axis_index_groups)


@_collective_reduction("pmin", reduce_min, lambda x, size: x, jvp=_jvp_extremum)
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


def _transpose_all_gather(ct, x, *, axes, dimension: int, size, tiled: bool):
    """Each element gets the sum of all cotangents of its own part."""
    total, index = psum.primitive.bind(ct, axes=axes), axis_index.primitive.bind(axes=axes)
    extent = x.aval.shape[dimension] if tiled else 1
    start = mul(index, np.int32(extent))
    part = dynamic_slice_in_dim(total, start, extent, dimension, allow_negative_indices=False)
    return reshape(part, x.aval.shape)


@define("all_gather", impl=_run_outside, aval=_all_gather_aval, jvp=jvp_linear(),
        transpose=transpose_unary(_transpose_all_gather), batch=_batch_all_gather,
        collective=True)  # fmt: skip
def all_gather(x: Any, axis_name: AxisName, *, axis_index_groups=None, axis: int = 0, tiled: bool = False):
    """The values of all elements of a named axis, side by side.

    Args:
        x: pytree of arrays.
        axis_name: name of one enclosing axis.
        axis: where the values stand in the result: along a new axis, or along one of x when tiled.
        tiled: join the values along an axis that they have.

    Raises: NameError for a name that nothing enclosing has; NotImplementedError for axis_index_groups or
        several names.
    """
    _reject_groups(axis_index_groups)
    names = _to_names(axis_name)
    if len(names) != 1:
        raise NotImplementedError("all_gather over several named axes is not supported")
    (size,) = _find_sizes("all_gather", names)

    def gather(leaf):
        dimension = axis % (aval_of(leaf).ndim + (0 if tiled else 1))
        return all_gather.primitive.bind(leaf, axes=names, dimension=dimension, size=size, tiled=tiled)

    return tree_map(gather, x)


# -- positions ----------------------------------------------------------------------------------------------
def _batch_axis_index(primitive, axis, values, batched, *, axes):
    return broadcasted_iota(dtypes.int32, (axis.size,), 0)


@define("axis_index", impl=_run_outside, aval=lambda *, axes: ShapedArray((), dtypes.int32),
        batch=_batch_axis_index, collective=True)  # fmt: skip
def axis_index(axis_name: AxisName):
    """Position of the current element along a named axis (int32); of several names, the last one fastest.

    Raises: NameError when no enclosing `vmap` has the name."""
    names = _to_names(axis_name)
    sizes = _find_sizes("axis_index", names)
    index = axis_index.primitive.bind(axes=names[:1])
    for name, size in zip(names[1:], sizes[1:]):
        index = add(mul(index, np.int32(size)), axis_index.primitive.bind(axes=(name,)))
    return index
