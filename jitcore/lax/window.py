"""Windows that slide over an array: their padding, their strided views, and `reduce_window`.

In: an operand and window extents, strides, padding and dilations, one per axis. Out: one value per window.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.lax.define import cast, define
from jitcore.lax.elementwise import rem, select_n
from jitcore.lax.indexing.dimension_numbers import GatherDimensionNumbers
from jitcore.lax.indexing.gather_scatter import gather
from jitcore.lax.indexing.slices import slice
from jitcore.lax.joining import concatenate
from jitcore.lax.pad import pad, pad_ndarray
from jitcore.lax.reduce import MONOIDS, choose_extreme, combine_with_initial, find_monoid, reduce
from jitcore.lax.shape import expand_dims, reshape
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.derivative_rules import jvp_linear, jvp_zero, transpose_unary
from jitcore.tree_util import tree_flatten, tree_leaves, treedef_is_leaf

__all__ = ["padtype_to_pads", "reduce_window", "reduce_window_max", "reduce_window_min", "reduce_window_sum"]


# -- geometry -------------------------------------------------------------------------------------------
def dilated_extent(extent, dilation):
    """Extent after `dilation - 1` gaps between neighbours; an empty axis stays empty."""
    return 0 if extent == 0 else (extent - 1) * dilation + 1


def padtype_to_pads(in_shape, window_shape, window_strides, padding) -> list[tuple[int, int]]:
    """Explicit (before, after) padding for each axis.

    Args:
        in_shape, window_shape: extents, dilation included.
        padding: "VALID" (none), "SAME" (as many outputs as ceil(extent / stride), the odd one after),
            "SAME_LOWER" (the odd one before), or the pairs themselves.
    Raises: RuntimeError for another string."""
    if not isinstance(padding, str):
        return [(operator.index(low), operator.index(high)) for low, high in padding]
    kind = padding.upper()
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}.")
    if kind == "VALID":
        return [(0, 0)] * len(window_shape)
    pads = []
    for extent, window, stride in zip(in_shape, window_shape, window_strides):
        count = (extent + stride - 1) // stride
        total = max((count - 1) * stride + window - extent, 0)
        small = total // 2
        pads.append((small, total - small) if kind == "SAME" else (total - small, small))
    return pads


def count_windows(extent, window, stride):
    """Number of positions of a window, dilation and padding included in the extents; 0 where none fits."""
    return 0 if extent < window else (extent - window) // stride + 1


def window_view(x: np.ndarray, axes, sizes, strides, dilations) -> np.ndarray:
    """A view whose `axes` number window positions, with one axis per window appended at the end."""
    shape, steps, inner = list(x.shape), list(x.strides), []
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations):
        shape[axis] = count_windows(x.shape[axis], dilated_extent(size, dilation), stride)
        steps[axis] = x.strides[axis] * stride
        inner.append(x.strides[axis] * dilation)
    return np.lib.stride_tricks.as_strided(x, (*shape, *sizes), (*steps, *inner), writeable=False)


# -- reduce_window --------------------------------------------------------------------------------------
def _check_per_axis(name: str, values, ndim: int) -> None:
    if len(values) != ndim:
        raise TypeError(f"reduce_window got inconsistent {name} and operand: got {name} {tuple(values)} "
                        f"for an operand of rank {ndim}.")
    if name != "padding" and any(value <= 0 for value in values):
        raise TypeError(
            f"reduce_window {name} must have every element be strictly positive, got {tuple(values)}.")


def _reduce_window_aval(name: str, accepts: str, x: ShapedArray, *, window_dimensions, window_strides,
                        padding, base_dilation, window_dilation) -> ShapedArray:
    if dtypes.kind_of(x.dtype) not in accepts:
        dtypes.reject_narrow(name, x.dtype)
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name}. Accepted dtypes are subtypes of number.")
    facts = {"window_dimensions": window_dimensions, "window_strides": window_strides, "padding": padding,
             "base_dilation": base_dilation, "window_dilation": window_dilation}
    for fact, values in facts.items():
        _check_per_axis(fact, values, x.ndim)
    return x.update(shape=_count_all_windows(x, **facts))


def _count_all_windows(x: ShapedArray, *, window_dimensions, window_strides, padding, base_dilation,
                       window_dilation) -> tuple:
    shape = []
    for axis, (low, high) in enumerate(padding):
        extent = dilated_extent(x.shape[axis], base_dilation[axis]) + low + high
        window = dilated_extent(window_dimensions[axis], window_dilation[axis])
        shape.append(count_windows(extent, window, window_strides[axis]))
    return tuple(shape)


def _view_windows(x, outside, *, window_dimensions, window_strides, padding, base_dilation,
                  window_dilation) -> np.ndarray:
    """The windows of x, padded with `outside`: their axes, then those within a window."""
    config = [(low, high, dilation - 1) for (low, high), dilation in zip(padding, base_dilation)]
    padded = pad_ndarray(x, outside, config)
    return window_view(padded, range(x.ndim), window_dimensions, window_strides, window_dilation)


def _reduce_window(combine: str, x, **geometry):
    monoid = MONOIDS[combine]
    wide = x.astype(np.float32) if monoid.accumulates and dtypes.is_half(x.dtype) else x
    view = _view_windows(wide, monoid.identity(wide.dtype), **geometry)
    inner = tuple(range(x.ndim, 2 * x.ndim))
    return monoid.ufunc.reduce(view, inner, dtype=wide.dtype).astype(x.dtype, copy=False)


def _lower_windows(builder, x, outside, **geometry):
    """The windows of x, padded with `outside`, as a view: their axes, then those within a window."""
    counts, sizes = _count_all_windows(x, **geometry), geometry["window_dimensions"]
    steps = geometry["window_strides"], geometry["window_dilation"]
    config = [(low, high, dilation - 1)
              for (low, high), dilation in zip(geometry["padding"], geometry["base_dilation"])]
    if any(map(any, config)):
        outside = builder.constant(outside, x.dtype)
        x = builder.store(registry["pad"].lower(builder, x, outside, padding_config=config))

    def place(index):
        at, within = index[: x.ndim], index[x.ndim :]
        return tuple(i * stride + k * dilation for i, k, stride, dilation in zip(at, within, *steps))

    return builder.view(x, (*counts, *sizes), place)


def _lower_reduce_window(combine: str, builder, x, **geometry):
    windows = _lower_windows(builder, x, MONOIDS[combine].identity(x.dtype)[()], **geometry)
    return builder.reduce(combine, windows, range(x.ndim, 2 * x.ndim))


def _hlo_windows(b, operands, starts, combine, *, window_dimensions, window_strides, padding, base_dilation,
                 window_dilation):
    """The folds of the windows of arrays by a function of what was folded and of an element."""
    geometry = {"window_dimensions": window_dimensions, "window_strides": window_strides,
                "base_dilation": base_dilation, "window_dilation": window_dilation}
    shape = _count_all_windows(operands[0], padding=padding, **geometry)
    kinds = [((), value.dtype) for value in operands]
    body = b.region([*kinds, *kinds], combine, is_closed=True)
    return b.ops("reduce_window", [*operands, *starts], [(shape, kind) for _, kind in kinds], [body],
                 window_dimensions=window_dimensions, window_strides=window_strides,
                 base_dilations=base_dilation, window_dilations=window_dilation,
                 padding=b.join_pairs(padding))


def _hlo_reduce_window(combine: str, b, x, **geometry):
    monoid = MONOIDS[combine]
    if monoid.accumulates and dtypes.is_half(x.dtype):
        wide = _hlo_reduce_window(combine, b, b.convert(x, dtypes.float32), **geometry)
        return b.convert(wide, x.dtype)
    starts = [b.constant(monoid.identity(x.dtype))]
    return _hlo_windows(b, [x], starts, lambda one, other: [b.map(combine, one, other)], **geometry)[0]


def _hlo_places(b, x, *, extremum: str, **geometry):
    """Padding comes before all elements."""
    dtype = _place_dtype(x.shape)
    places = b.reshape(b.iota((math.prod(x.shape),), dtype, 0), x.shape)
    starts = [b.constant(MONOIDS[extremum].identity(x.dtype)), b.constant(-1, dtype)]
    return _hlo_windows(b, [x, places], starts, choose_extreme(b, extremum), **geometry)[1]


def _add_single_window(size, *, padding, **geometry) -> dict:
    return {"padding": ((0, 0), *padding)} | {name: (1, *values) for name, values in geometry.items()}


# -- derivatives ------------------------------------------------------------------------------------------
def _transpose_window_sum(ct, x, *, window_dimensions, window_strides, padding, base_dilation,
                          window_dilation):
    """Each element of x gets the sum over the windows that it is in: windows on the dilated cotangent."""
    pads = []
    for axis, (before, _) in enumerate(padding):
        reach = dilated_extent(window_dimensions[axis], window_dilation[axis]) - 1
        inside = dilated_extent(x.aval.shape[axis], base_dilation[axis])
        outside = dilated_extent(aval_of(ct).shape[axis], window_strides[axis])
        pads.append((reach - before, inside + before - outside))
    return reduce_window_sum(ct, window_dimensions, base_dilation, pads, window_strides, window_dilation)


def _find_extrema(x, *, extremum: str, **geometry):
    """For each window the place of its first extreme element (or NaN) in flat x; -1 in the padding."""
    places = np.arange(x.size, dtype=_place_dtype(x.shape)).reshape(x.shape)
    better = np.greater if extremum == "max" else np.less
    values = _view_windows(x, MONOIDS[extremum].identity(x.dtype), **geometry)
    places = _view_windows(places, np.array(-1, places.dtype), **geometry)
    best, found = (view[(..., *[0] * x.ndim)].copy() for view in (values, places))
    for offset in np.ndindex(geometry["window_dimensions"]):
        value = values[(..., *offset)]
        wins = better(value, best) | ((value != value) & (best == best))
        np.copyto(best, value, where=wins)
        np.copyto(found, places[(..., *offset)], where=wins)
    return found


def _place_dtype(shape) -> np.dtype:
    return dtypes.int32 if math.prod(shape) < 2**31 else dtypes.int64


def _batch_places(primitive, axis, values, batched, /, *, extremum: str, **geometry):
    (x,) = values
    places = primitive.bind(x, extremum=extremum, **_add_single_window(axis.size, **geometry))
    size = math.prod(aval_of(x).shape[1:])
    return rem(places, np.asarray(size, aval_of(places).dtype)[()])


def _lower_places(builder, x, *, extremum: str, **geometry):
    windows = _lower_windows(builder, x, MONOIDS[extremum].identity(x.dtype)[()], **geometry)
    counts, sizes = windows.shape[: x.ndim], windows.shape[x.ndim :]
    windows = builder.reshape(windows, (*counts, math.prod(sizes)))
    chosen = builder.store(builder.arg_reduce(f"arg{extremum}", windows, x.ndim, dtypes.int32))

    def locate(index, expr):
        """The chosen element on each axis of x, dilated."""
        step, within = builder.dynamic_index(expr, 0, math.prod(sizes) - 1), []
        for size in reversed(sizes):
            within.insert(0, step.mod(size))
            step = step.floordiv(size)
        steps = geometry["window_strides"], geometry["window_dilation"], geometry["padding"]
        return [i * stride + k * dilation - low
                for i, k, stride, dilation, (low, _) in zip(index, within, *steps)]

    def is_inside(index, expr):
        extents = map(dilated_extent, x.shape, geometry["base_dilation"])
        return builder.all_of(list(map(builder.in_range, locate(index, expr), extents)))

    def flatten(index, expr):
        place = builder.zero_index
        for i, extent, dilation in zip(locate(index, expr), x.shape, geometry["base_dilation"]):
            place = place * extent + i.floordiv(dilation)
        return builder.index_value(place, dtype)

    def of_chosen(kind, combine):
        return builder.compute(counts, kind, lambda index: [(chosen, index)], combine, 4 * x.ndim, [chosen])

    dtype = _place_dtype(x.shape)
    outside = builder.constant(-1, dtype)
    return builder.select(of_chosen(dtypes.bool_, is_inside), outside, of_chosen(dtype, flatten))


define("reduce_window_places", impl=_find_extrema, jvp=jvp_zero, batch=_batch_places, lower=_lower_places,
       hlo=_hlo_places,
       aval=lambda x, *, extremum, **geometry: ShapedArray(
           _count_all_windows(x, **geometry), _place_dtype(x.shape)))(_find_extrema)


def _jvp_window_extremum(extremum: str) -> Callable:
    """The tangent of the first extreme element of each window; none from the padding."""

    def rule(primitive, primals, tangents, **geometry):
        (x,), (t,) = primals, tangents
        places = _find_extrema.primitive.bind(x, extremum=extremum, **geometry)
        indices = expand_dims(places, (aval_of(places).ndim,))
        flat = reshape(t, (math.prod(aval_of(x).shape),))
        numbers = GatherDimensionNumbers((), (0,), (0,))
        found = gather(flat, indices, numbers, (1,), mode="fill", fill_value=0)
        return primitive.bind(x, **geometry), found

    return rule


# -- the family -------------------------------------------------------------------------------------------
def _window_reduction(name: str, combine: str, accepts: str, jvp: Callable, transpose=None):
    """The family: each window is folded with the monoid `combine`.

    accepts: dtype kinds; jvp, transpose: rules."""

    def attach(function):
        define(name, impl=functools.partial(_reduce_window, combine), monoid=combine,
               hlo=functools.partial(_hlo_reduce_window, combine),
               lower=functools.partial(_lower_reduce_window, combine),
               family="window reduction", aval=functools.partial(_reduce_window_aval, name, accepts),
               jvp=jvp, transpose=transpose, accepts=accepts, stores_result=True,
               batch=rebind(_add_single_window))(function)

        @functools.wraps(function)
        def public(operand, window_dimensions, window_strides=None, padding="VALID", base_dilation=None,
                   window_dilation=None):
            geometry = _window_geometry(aval_of(operand).shape, window_dimensions, window_strides, padding,
                                        base_dilation, window_dilation)
            return function.primitive.bind(operand, **geometry)

        public.primitive = function.primitive
        return public

    return attach


def _window_geometry(shape, dimensions, strides, padding, base_dilation, window_dilation) -> dict:
    """The parameters of a window reduction, with strings and defaults replaced."""
    ones = (1,) * len(shape)
    dimensions, strides, base_dilation, window_dilation = (
        tuple(map(operator.index, ones if values is None else values))
        for values in (dimensions, strides, base_dilation, window_dilation))
    if not len(dimensions) == len(strides) == len(shape):
        raise TypeError("reduce_window got inconsistent window_strides and window_dimensions: "
                        f"got window_strides {strides} and window_dimensions {dimensions}.")
    windows = list(map(dilated_extent, dimensions, window_dilation))
    return {"window_dimensions": dimensions, "window_strides": strides, "base_dilation": base_dilation,
            "window_dilation": window_dilation,
            "padding": tuple(padtype_to_pads(shape, windows, strides, padding))}


@_window_reduction("reduce_window_sum", "add", "iufc", jvp_linear(), transpose_unary(_transpose_window_sum))
def reduce_window_sum(operand, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                      padding="VALID", base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:
    """Sum of each window. Arguments as in `reduce_window`. Cost: proportional to the window's size."""


@_window_reduction("reduce_window_max", "max", "biuf", _jvp_window_extremum("max"))
def reduce_window_max(operand, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                      padding="VALID", base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:
    """Largest element of each window. Arguments as in `reduce_window`."""


@_window_reduction("reduce_window_min", "min", "biuf", _jvp_window_extremum("min"))
def reduce_window_min(operand, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                      padding="VALID", base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:
    """Smallest element of each window. Arguments as in `reduce_window`."""


_WINDOW_REDUCTIONS = {"add": reduce_window_sum, "max": reduce_window_max, "min": reduce_window_min}


def reduce_window(operand, init_value, computation: Callable, window_dimensions: Sequence[int],
                  window_strides: Sequence[int] | None = None, padding="VALID",
                  base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None):
    """Folds every window of operand with a function of two scalars (or of two pytrees of them), beginning
    with init_value.

    Args:
        operand: an array, or a pytree of arrays of one shape.
        init_value: a scalar for each; padding leaves it as it is.
        computation: (value so far, element) -> value; associative.
        window_dimensions, window_strides: one per axis of operand.
        padding: "VALID", "SAME", "SAME_LOWER" or (before, after) for each axis; a string counts operand's own
            extents, without base_dilation.
        base_dilation, window_dilation: distance of neighbours in operand and in the window.
    Raises: TypeError when the numbers of axes or the structures disagree.
    Cost: one pass for add, max and min in any spelling; else a copy for each element of a window.
    Source: StableHLO specification, reduce_window."""
    leaves, tree = tree_flatten(operand)
    geometry = _window_geometry(aval_of(leaves[0]).shape, window_dimensions, window_strides, padding,
                                base_dilation, window_dilation)
    if treedef_is_leaf(tree):
        dtype = aval_of(operand).dtype
        key, _ = find_monoid(computation, dtype)
        if key in _WINDOW_REDUCTIONS:
            result = _WINDOW_REDUCTIONS[key].primitive.bind(operand, **geometry)
            return combine_with_initial(key, result, init_value, dtype)
    initial, initial_tree = tree_flatten(init_value)
    if initial_tree != tree:
        raise TypeError(f"lax.reduce_window got operands {tree} and init_values {initial_tree} of other "
                        "structure.")
    initial = [cast(value, aval_of(value), aval_of(leaf).dtype, weak=False)
               for value, leaf in zip(initial, leaves)]
    rows = [_lay_out_windows(leaf, value, **geometry) for leaf, value in zip(leaves, initial)]
    is_inside = _lay_out_windows(np.ones(aval_of(leaves[0]).shape, bool), np.False_, **geometry)

    def fold_inside(so_far, element):
        values, is_inside = element
        new = tree_leaves(computation(so_far[0], values))
        kept = [select_n(is_inside, *pair) for pair in zip(tree_leaves(so_far[0]), new)]
        return tree.unflatten(kept), so_far[1]

    operands, beginning = (tree.unflatten(rows), is_inside), (tree.unflatten(initial), np.False_)
    return reduce(operands, beginning, fold_inside, (0,))[0]


def _lay_out_windows(operand, init_value, *, window_dimensions, window_strides, padding, base_dilation,
                     window_dilation) -> Array:
    """The first elements of all windows, the second ones, and so on: shape (size of a window, *result)."""
    operand = pad(operand, init_value,
                  [(low, high, step - 1) for (low, high), step in zip(padding, base_dilation)])
    reach = list(map(dilated_extent, window_dimensions, window_dilation))
    counts = [max(0, (extent - width) // step + 1)
              for extent, width, step in zip(aval_of(operand).shape, reach, window_strides)]
    parts = []
    for places in itertools.product(*map(range, window_dimensions)):
        starts = [place * gap if count else 0 for place, gap, count in zip(places, window_dilation, counts)]
        limits = [start + (count - 1) * step + 1 if count else 0
                  for start, count, step in zip(starts, counts, window_strides)]
        parts.append(expand_dims(slice(operand, starts, limits, window_strides), (0,)))
    return concatenate(parts, 0)
