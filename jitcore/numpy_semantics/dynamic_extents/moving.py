"""Elements at their places in another frame.

In: an array and, along one of its axes, which elements are meant. Out: an array in which the same elements
lie at the places that another item names; what lies elsewhere in it is not specified.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.core.trace import JaxprTrace, Tracer, set_current_trace
from jitcore.lax.compress import compress
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Span

T = TypeVar("T")


def move_elements(raw: Array, axis: int, own: Item, wanted: Item) -> Array:
    """The elements of `own` along the axes from `axis` on, at the places of `wanted`: equally many."""
    if own.is_same(wanted):
        return raw
    if isinstance(own, Pick):
        raw, own = compact(raw, axis, own)
    own = own.as_span()
    if isinstance(wanted, Pick):
        return take(raw, axis, _locate(own, number_true(wanted.mask)))
    target = wanted.as_span()
    if own.is_aligned(target):
        return _resize(raw, axis, target.capacity)
    if abs(target.step) != 1:
        return take(raw, axis, _locate(own, target.number_places()))
    # The place there is an affine form of the place here: a shift, or the way backwards.
    factor = own.step * target.step
    shift = own.low - target.low * factor
    places = lax.iota(dtypes.int64, target.capacity)
    if abs(factor) != 1:
        places = lax.mul(places, dtypes.int64.type(factor))
    start = extents.to_raw(shift)
    return take(raw, axis, lax.sub(start, places) if factor == -1 else lax.add(places, start))


def _locate(span: Span, numbers: Array) -> Array:
    """Where the elements of these numbers lie."""
    if span.step != 1:
        numbers = lax.mul(numbers, dtypes.int64.type(span.step))
    return numbers if extents.is_known(span.low, 0) else lax.add(numbers, extents.to_raw(span.low))


def _resize(raw: Array, axis: int, capacity: int) -> Array:
    """The first places of an axis; where it is shorter, zeros follow."""
    missing = capacity - raw.shape[axis]
    if missing > 0:
        config = [(0, missing if i == axis else 0, 0) for i in range(raw.ndim)]
        return lax.pad(raw, raw.dtype.type(0), config)
    return raw if not missing else lax.slice_in_dim(raw, 0, capacity, 1, axis)


def take(raw: Array, axis: int, places: Array) -> Array:
    """The slices at these places of an axis, which the axes of `places` replace; others are clamped."""
    if not raw.shape[axis]:
        shape = raw.shape[:axis] + places.shape + raw.shape[axis + 1 :]
        return lax.full(shape, 0, raw.dtype)
    rest = raw.ndim - axis - 1
    offsets = (*range(axis), *range(axis + places.ndim, axis + places.ndim + rest))
    numbers = lax.GatherDimensionNumbers(offsets, (axis,), (axis,))
    sizes = tuple(1 if i == axis else size for i, size in enumerate(raw.shape))
    indices = lax.reshape(places, (*places.shape, 1))
    return lax.gather(raw, indices, numbers, sizes, mode=lax.GatherScatterMode.CLIP)


def number_true(mask: Array) -> Array:
    """The number of each element where a mask holds, in row-major order: int64, of the mask's shape."""
    flat = lax.convert_element_type(lax.reshape(mask, (mask.size,)), dtypes.int64)
    return lax.reshape(lax.sub(lax.cumsum(flat), dtypes.int64.type(1)), mask.shape)


def run_early(function: Callable[[], T], *values: Any) -> T:
    """Calls a function where all of some values are known first: before the loop that this code is in, unless
    it changes them."""
    traces = [value.owner for value in values if isinstance(value, Tracer)]
    if not traces or not all(isinstance(trace, JaxprTrace) for trace in traces):
        return function()
    with set_current_trace(max(traces, key=lambda trace: trace.level)):
        return function()


def compact(raw: Array, axis: int, pick: Pick) -> tuple[Array, Span]:
    """The picked elements as the first ones along one axis, which replaces those of the mask."""
    return run_early(lambda: _compact(raw, axis, pick), raw, pick.mask)


def _compact(raw: Array, axis: int, pick: Pick) -> tuple[Array, Span]:
    count = pick.capacity
    shape = raw.shape[:axis] + (count,) + raw.shape[axis + len(pick.shape) :]
    span = Span(count, 0, pick.size)
    if not count:
        return lax.reshape(raw, shape), span
    mask = lax.reshape(pick.mask, (count,))
    if len(shape) == 1:
        return compress(lax.reshape(raw, shape), mask), span
    outside = dtypes.int64.type(count)
    numbers = lax.select(mask, number_true(mask), lax.full((count,), outside, dtypes.int64))
    sources = lax.scatter(lax.full((count,), 0, dtypes.int64), lax.reshape(numbers, (count, 1)),
                          lax.iota(dtypes.int64, count), lax.ScatterDimensionNumbers((), (0,), (0,)),
                          unique_indices=True, mode=lax.GatherScatterMode.FILL_OR_DROP)
    return take(lax.reshape(raw, shape), axis, sources), span
