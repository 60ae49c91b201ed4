"""Gather and scatter: many slices read from or written into one operand at listed positions.

In: an operand, an array of start positions (its last axis is the index vector) and dimension numbers that say
which axes are which. Out: the slices side by side, or the operand with the updates combined into it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.core.symbolic import DimExpr
from jitcore.core.trace import Tracer, to_numpy
from jitcore.lax.bits import or_
from jitcore.lax.define import canonicalize_shape, define, product, to_operands
from jitcore.lax.elementwise import div, eq, mul, ne, neg, select_n
from jitcore.lax.indexing.dimension_numbers import (GatherDimensionNumbers, GatherScatterMode,
                                                    ScatterDimensionNumbers, gather_aval, scatter_aval)
from jitcore.lax.indexing.gather_numpy import default_fill, gather_ndarray, scatter_ndarray
from jitcore.lax.shape import empty, full, iota, reshape
from jitcore.transforms.batch_rules import make_empty_batch, shift
from jitcore.transforms.batching import batch_values
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.transforms.tangents import fill, instantiate, is_zero
from jitcore.transforms.transpose import is_linear

__all__ = ["gather", "scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub"]


# -- lowering -------------------------------------------------------------------------------------------
def _find_place(builder, index, indices, shape, dnums, sizes, clamp: bool):
    """(the place in an operand of this shape of an element of the slices, whether its slice lies inside).

    index: of the element, in a gather's result or a scatter's updates."""
    window_dims, _, index_map, batching, indices_batching = dnums
    batch = tuple(i for dim, i in enumerate(index) if dim not in window_dims)
    offsets = iter([index[dim] for dim in window_dims])
    starts = [builder.zero_index] * len(shape)
    inside = []
    for position, dim in enumerate(index_map):
        start = indices.at((*batch, builder.zero_index + position))
        last = shape[dim] - sizes[dim]
        inside.append(builder.in_range(builder.raw_index(start), last + 1))
        starts[dim] = builder.dynamic_index(start, 0, last) if clamp else builder.raw_index(start)
    for dim, axis in zip(batching, indices_batching):
        starts[dim] = batch[axis]
    place = [start if dim in dnums.dropped else start + next(offsets) for dim, start in enumerate(starts)]
    return tuple(place), builder.all_of(inside)


def _lower_gather(builder, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    dnums, x = dimension_numbers, builder.store(x)
    if dnums.offset_dims:  # else each index vector is read for one element only
        indices = builder.store(indices)

    def locate(index):
        return _find_place(builder, index, indices, x.shape, dnums, slice_sizes, clamp=True)

    def combine(index, element):
        inside = locate(index)[1] if mode is GatherScatterMode.FILL_OR_DROP else None
        if inside is None:
            return element
        fill_element = builder.graph.const(fill_value, x.dtype)
        return builder.graph.op("select", inside, element, fill_element, dtype=x.dtype)

    shape = dnums.result_shape(slice_sizes, indices.shape)
    return builder.compute(shape, x.dtype, lambda index: [(x, locate(index)[0])], combine, 8, [x, indices])


def _lower_scatter(op, builder, x, indices, updates, *, dimension_numbers, mode, unique_indices, **_):
    dnums = dimension_numbers
    if dnums.update_window_dims:  # else each index vector is read for one element only
        indices = builder.store(indices)
    sizes = dnums.slice_sizes(len(x.shape), updates.shape)
    # The place of a single window is found as a gather finds it, so that both are known to be the same.
    is_single = all(isinstance(n, int) and n == 1 for n in indices.shape[:-1])
    clamp = is_single or mode is GatherScatterMode.CLIP

    def locate(index):
        return _find_place(builder, index, indices, x.shape, dnums, sizes, clamp)

    mask = None if mode is GatherScatterMode.CLIP else lambda index: locate(index)[1]
    serial = not (unique_indices or is_single)
    region = builder.region(updates, lambda index: locate(index)[0], mask, op, serial)
    return builder.regions(x.shape, x.dtype, x, [region])


# -- StableHLO ------------------------------------------------------------------------------------------
def _hlo_inside(b, indices, shape, index_map, sizes):
    """Whether the slice that each index vector names lies inside of an operand of this shape."""
    limits = [shape[dim] - sizes[dim] for dim in index_map]
    last = np.minimum(np.asarray(limits, np.int64), np.iinfo(indices.dtype).max).astype(indices.dtype)
    bounds = [b.broadcast(b.constant(bound), indices.shape, (indices.ndim - 1,))
              for bound in (np.zeros_like(last), last)]
    inside = b.map("and", b.compare("GE", indices, bounds[0]), b.compare("LE", indices, bounds[1]))
    return b.reduce("and", inside, (indices.ndim - 1,))


def _hlo_gather(b, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, indices_are_sorted, **_):
    dnums = dimension_numbers
    shape = dnums.result_shape(slice_sizes, indices.shape)
    numbers = b.join_fields("gather", offset_dims=dnums.offset_dims,
                            collapsed_slice_dims=dnums.collapsed_slice_dims,
                            operand_batching_dims=dnums.operand_batching_dims,
                            start_indices_batching_dims=dnums.start_indices_batching_dims,
                            start_index_map=dnums.start_index_map, index_vector_dim=indices.ndim - 1)
    found = b.op("gather", x, b.index(indices), shape=shape, dimension_numbers=numbers,
                 slice_sizes=slice_sizes, indices_are_sorted=bool(indices_are_sorted))
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return found
    inside = _hlo_inside(b, indices, x.shape, dnums.start_index_map, slice_sizes)
    batch_dims = [dim for dim in range(len(shape)) if dim not in dnums.offset_dims]
    return b.choose(b.broadcast(inside, shape, batch_dims), found, b.constant(fill_value, x.dtype))


def _hlo_scatter(op, b, x, indices, updates, *, dimension_numbers, mode, indices_are_sorted, unique_indices):
    dnums, places = dimension_numbers, b.index(indices)
    if mode is GatherScatterMode.CLIP:
        sizes = dnums.slice_sizes(x.ndim, updates.shape)
        limits = [x.shape[dim] - sizes[dim] for dim in dnums.scatter_dims_to_operand_dims]
        last = b.constant(np.asarray(limits, np.int64), places.dtype)
        zero = b.full(0, places.shape, places.dtype)
        places = b.op("clamp", zero, places, b.broadcast(last, places.shape, (places.ndim - 1,)),
                      shape=places.shape)
    if op == "sub":
        op, updates = "add", b.map("neg", updates)
    numbers = b.join_fields("scatter", update_window_dims=dnums.update_window_dims,
                            inserted_window_dims=dnums.inserted_window_dims,
                            input_batching_dims=dnums.operand_batching_dims,
                            scatter_indices_batching_dims=dnums.scatter_indices_batching_dims,
                            scatter_dims_to_operand_dims=dnums.scatter_dims_to_operand_dims,
                            index_vector_dim=indices.ndim - 1)
    scalar = ((), x.dtype)
    body = b.region([scalar, scalar], lambda old, new: [new if op is None else b.map(op, old, new)],
                    is_closed=True)
    return b.ops("scatter", [x, places, updates], [(x.shape, x.dtype)], [body],
                 scatter_dimension_numbers=numbers, indices_are_sorted=bool(indices_are_sorted),
                 unique_indices=bool(unique_indices))[0]


# -- gather ---------------------------------------------------------------------------------------------
def _needs_check(*, mode, **_) -> bool:
    return mode is GatherScatterMode.CHECK


def _batch_numbers(dnums, operand: bool, indices: bool):
    """The dimension numbers of a batch, whose axis is the first one of what differs within it."""
    window_dims, dropped, index_map, batching, indices_batching = dnums
    along = (0,) if operand and indices else ()
    in_operand, in_indices = (shift if flag else tuple for flag in (operand, indices))
    # Of a batch of operands alone, each slice is taken whole along the batch axis.
    whole = () if indices else (0,)
    return type(dnums)((*whole, *shift(window_dims)), in_operand(dropped), in_operand(index_map),
                       (*along, *in_operand(batching)), (*along, *in_indices(indices_batching)))


def _batch_gather(primitive, axis, values, batched, *, dimension_numbers, slice_sizes, **params):
    operand, indices = batched
    if axis.size == 0:
        params |= {"dimension_numbers": dimension_numbers, "slice_sizes": slice_sizes}
        return make_empty_batch(primitive, values, batched, **params)
    if operand:
        slice_sizes = (1 if indices else axis.size, *slice_sizes)
    numbers = _batch_numbers(dimension_numbers, operand, indices)
    return primitive.bind(*values, dimension_numbers=numbers, slice_sizes=slice_sizes, **params)


def _zero_fill(mode, dtype):
    """The `fill_value` of a gather of derivatives: where a slice lies outside, they are zero."""
    return np.zeros((), dtype).item() if mode is GatherScatterMode.FILL_OR_DROP else None


def _jvp_gather(primitive, primals, tangents, **params):
    (x, indices), (t, _) = primals, tangents
    fill_value = _zero_fill(params["mode"], aval_of(t).dtype)
    return primitive.bind(x, indices, **params), primitive.bind(
        t, indices, **(params | {"fill_value": fill_value}))


def _transpose_gather(ct, x, indices, *, dimension_numbers, slice_sizes, fill_value, **params):
    return scatter_add.primitive.bind(
        fill(x.aval, 0), indices, ct, dimension_numbers=dimension_numbers.invert(), **params)


def _gather_keys(keys, indices, fill_value: int, **where) -> Array:
    """Keys where slices are inside, else the one whose words are `fill_value`."""
    aval = aval_of(keys)
    found = gather(keys, indices, mode="clip", **where)
    inside = gather(full(aval.shape, True, dtypes.bool_), indices, mode="fill", fill_value=False, **where)
    return select_n(inside, full(aval_of(found).shape, fill_value, aval.dtype), found)


@define("gather", impl=gather_ndarray, aval=gather_aval, jvp=_jvp_gather,
        transpose=transpose_unary(_transpose_gather), zeros="made", batch=_batch_gather, lower=_lower_gather,
        hlo=_hlo_gather, needs_library=_needs_check, stored_operands=(0,),
        reads_once=lambda dimension_numbers, **_: () if dimension_numbers.offset_dims else (1,))
def gather(operand, start_indices, dimension_numbers: GatherDimensionNumbers, slice_sizes, *,
           unique_indices: bool = False, indices_are_sorted: bool = False, mode=None,
           fill_value=None) -> Array:
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
    elif dtypes.is_key(aval_of(operand).dtype):
        return _gather_keys(operand, start_indices, -1 if fill_value is None else fill_value,
                            dimension_numbers=dimension_numbers, slice_sizes=slice_sizes)
    elif fill_value is None:
        fill_value = default_fill(aval_of(operand).dtype).item()
    return gather.primitive.bind(operand, start_indices, dimension_numbers=dimension_numbers,
                                 slice_sizes=canonicalize_shape(slice_sizes), mode=mode,
                                 fill_value=fill_value, indices_are_sorted=indices_are_sorted,
                                 unique_indices=unique_indices)


# -- scatter --------------------------------------------------------------------------------------------
def _batch_scatter(primitive, axis, values, batched, *, dimension_numbers, **params):
    numbers = _batch_numbers(dimension_numbers, True, batched[1])
    values = batch_values(axis, values, batched, [True, batched[1], True])
    return primitive.bind(*values, dimension_numbers=numbers, **params)


_COMBINE_OPS = {"scatter": None, "scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul",
                "scatter-min": "min", "scatter-max": "max"}


# -- derivatives of scatters ----------------------------------------------------------------------------
def read_back(x, indices, updates_shape, *, dimension_numbers, mode, **promises):
    """The slices of x that updates of this shape are put to; zero for those that are dropped."""
    x_aval = aval_of(x)
    return gather.primitive.bind(x, indices, dimension_numbers=dimension_numbers.invert(), mode=mode,
                                 slice_sizes=dimension_numbers.slice_sizes(x_aval.ndim, updates_shape),
                                 fill_value=_zero_fill(mode, x_aval.dtype), **promises)


def writes_once(indices, *, dimension_numbers, unique_indices, mode, **_) -> bool:
    """Whether no two slices overlap: by promise, because there is one for each part of the operand, or
    because the places are known and distinct."""
    shape, apart = aval_of(indices).shape, dimension_numbers.scatter_indices_batching_dims
    if unique_indices or all(n == 0 or n == 1 for dim, n in enumerate(shape[:-1]) if dim not in apart):
        return True
    thin = set(dimension_numbers.scatter_dims_to_operand_dims) <= set(dimension_numbers.inserted_window_dims)
    if isinstance(indices, Tracer) or apart or not thin or mode is GatherScatterMode.CLIP:
        return False
    places = to_numpy(indices).reshape(-1, shape[-1])
    return len(np.unique(places, axis=None if shape[-1] == 1 else 0)) == len(places)


def _find_last_writers(x_shape, indices, updates_shape, **params):
    """Which elements of the updates stay, of those that a scatter puts to the same place."""
    size = product(updates_shape)
    dtype = dtypes.int32 if not isinstance(size, DimExpr) and size < 1 << 31 else dtypes.int64
    numbers = reshape(iota(dtype, size), updates_shape)
    owners = scatter.primitive.bind(empty(x_shape, dtype), indices, numbers, **params)
    return eq(read_back(owners, indices, updates_shape, **params), numbers)


def _transpose_scatter(primitive, ct, operands, **params):
    x, indices, updates = operands
    updates_aval = updates.aval if is_linear(updates) else aval_of(updates)
    zeros = fill(updates_aval, 0)
    x_ct = primitive.bind(ct, indices, zeros, **params) if is_linear(x) else None
    if not is_linear(updates):
        return [x_ct, None, None]
    updates_ct = read_back(ct, indices, updates_aval.shape, **params)
    if not writes_once(indices, **params):
        stays = _find_last_writers(aval_of(ct).shape, indices, updates_aval.shape, **params)
        updates_ct = select_n(stays, zeros, updates_ct)
    return [x_ct, None, updates_ct]


def _transpose_scatter_sum(derivative) -> Callable:
    """The rule of scatter-add and scatter-sub; `derivative` is applied to the cotangent of the updates."""

    def rule(primitive, ct, operands, **params):
        x, indices, updates = operands
        updates_ct = None
        if is_linear(updates):
            updates_ct = derivative(read_back(ct, indices, updates.aval.shape, **params))
        return [ct if is_linear(x) else None, None, updates_ct]

    return rule


def _reject_repeated_factors(indices, **params) -> None:
    if not writes_once(indices, **params):
        raise NotImplementedError("scatter_mul gradients are only implemented if `unique_indices=True`")


def _jvp_scatter_mul(primitive, primals, tangents, **params):
    (x, indices, updates), (x_t, _, updates_t) = primals, tangents
    ans = primitive.bind(x, indices, updates, **params)
    base = fill(aval_of(ans), 0) if is_zero(x_t) else primitive.bind(x_t, indices, updates, **params)
    if is_zero(updates_t):
        return ans, base
    _reject_repeated_factors(indices, **params)
    change = mul(read_back(x, indices, aval_of(updates).shape, **params), updates_t)
    return ans, scatter_add.primitive.bind(base, indices, change, **params)


def _transpose_scatter_mul(primitive, ct, operands, **params):
    x, indices, updates = operands
    if is_linear(x):
        return [primitive.bind(ct, indices, updates, **params), None, None]
    _reject_repeated_factors(indices, **params)
    factors = read_back(x, indices, updates.aval.shape, **params)
    return [None, None, mul(read_back(ct, indices, updates.aval.shape, **params), factors)]


def _jvp_scatter_extremum(primitive, primals, tangents, **params):
    """The mean of the tangents of all that are equal to the result, as for other extrema."""
    (x, indices, updates), (x_t, _, updates_t) = primals, map(instantiate, tangents)
    ans = primitive.bind(x, indices, updates, **params)
    aval, updates_aval = aval_of(ans), aval_of(updates)
    x_wins = _equal_or_nan(x, ans)
    updates_win = _equal_or_nan(updates, read_back(ans, indices, updates_aval.shape, **params))

    def add_winners(of_x, of_updates):
        base = select_n(x_wins, fill(aval, 0), of_x)
        return scatter_add.primitive.bind(
            base, indices, select_n(updates_win, fill(updates_aval, 0), of_updates), **params)

    count = add_winners(fill(aval, 1), fill(updates_aval, 1))
    return ans, div(add_winners(x_t, updates_t), count)


def _equal_or_nan(x, y):
    return or_(eq(x, y), ne(x, x))


def _scatter_family(name: str, combine: np.ufunc | None, accepts: str, *, jvp: Callable,
                    transpose: Callable | None = None):
    """The family: updates are put with `combine`, or replace what was there. accepts: dtype kinds."""

    def attach(function):
        define(name, impl=functools.partial(scatter_ndarray, combine), jvp=jvp, transpose=transpose,
               batch=_batch_scatter, lower=functools.partial(_lower_scatter, _COMBINE_OPS[name]),
               hlo=functools.partial(_hlo_scatter, _COMBINE_OPS[name]), needs_library=_needs_check,
               reads_once=lambda dimension_numbers, **_: (1, 2)[bool(dimension_numbers.update_window_dims) :],
               stored_operands=(0,), updates_operand=True, in_step=() if combine else (2,),
               stores_result=True, zeros=None if combine else "made", family="scatter", accepts=accepts,
               aval=functools.partial(scatter_aval, function.__name__, accepts))(function)

        @functools.wraps(function)
        def public(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                   unique_indices=False, mode=None):
            operand, updates = to_operands(function.__name__, (operand, updates))
            return function.primitive.bind(
                operand, scatter_indices, updates, dimension_numbers=dimension_numbers,
                indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                mode=GatherScatterMode.from_any(mode))

        return public

    return attach


@_scatter_family("scatter", None, "biufcVk", jvp=jvp_linear(0, 2), transpose=_transpose_scatter)
def scatter(operand, scatter_indices, updates, dimension_numbers: ScatterDimensionNumbers, *,
            indices_are_sorted: bool = False, unique_indices: bool = False, mode=None) -> Array:
    """operand with slices replaced by updates; of slices that overlap, the last stays.

    Args:
        scatter_indices: integers; the last axis is the index vector, the others number the slices.
        updates: array of operand's dtype; see `ScatterDimensionNumbers` for its axes.
        unique_indices, indices_are_sorted: promises about scatter_indices that a backend may use.
        mode: `GatherScatterMode` or its name; by default slices that leave operand are dropped.
    Raises: TypeError when shapes and dimension numbers disagree; ValueError for indices that are not integer.
    Source: StableHLO specification, scatter."""


@_scatter_family("scatter-add", np.add, "iufc", jvp=jvp_linear(0, 2),
                 transpose=_transpose_scatter_sum(lambda ct: ct))
def scatter_add(operand, scatter_indices, updates, dimension_numbers: ScatterDimensionNumbers, *,
                indices_are_sorted: bool = False, unique_indices: bool = False, mode=None) -> Array:
    """operand with updates added; repeated positions add up. Arguments as in `scatter`."""


@_scatter_family("scatter-sub", np.subtract, "iufc", jvp=jvp_linear(0, 2),
                 transpose=_transpose_scatter_sum(neg))
def scatter_sub(operand, scatter_indices, updates, dimension_numbers: ScatterDimensionNumbers, *,
                indices_are_sorted: bool = False, unique_indices: bool = False, mode=None) -> Array:
    """operand with updates subtracted. Arguments as in `scatter`."""


@_scatter_family("scatter-mul", np.multiply, "iufc", jvp=_jvp_scatter_mul, transpose=_transpose_scatter_mul)
def scatter_mul(operand, scatter_indices, updates, dimension_numbers: ScatterDimensionNumbers, *,
                indices_are_sorted: bool = False, unique_indices: bool = False, mode=None) -> Array:
    """operand multiplied by updates. Arguments as in `scatter`."""


@_scatter_family("scatter-min", np.minimum, "biuf", jvp=_jvp_scatter_extremum)
def scatter_min(operand, scatter_indices, updates, dimension_numbers: ScatterDimensionNumbers, *,
                indices_are_sorted: bool = False, unique_indices: bool = False, mode=None) -> Array:
    """The smaller of operand and updates; NaN if either is. Arguments as in `scatter`."""


@_scatter_family("scatter-max", np.maximum, "biuf", jvp=_jvp_scatter_extremum)
def scatter_max(operand, scatter_indices, updates, dimension_numbers: ScatterDimensionNumbers, *,
                indices_are_sorted: bool = False, unique_indices: bool = False, mode=None) -> Array:
    """The larger of operand and updates; NaN if either is. Arguments as in `scatter`."""
