"""Scatters: updates at computed places, of which several may be the same element.

In: a region whose iterations keep their order, and the buffer it updates. Out: kernels. Where many updates
meet in few elements they are combined in parts, each with a copy of the elements of its own; the copies are
combined in order. The number of parts depends on shapes only, so the result does not depend on threads.
"""

from __future__ import annotations

import math

import numpy as np

from jitcore import dtypes
from jitcore.loopir.builder import Builder
from jitcore.loopir.expr import Buffer, Graph, Result, walk
from jitcore.loopir.index import ZERO, Axis, Dynamic, Index, RunTimeSize, constant, linearize
from jitcore.loopir.monoids import identity_of
from jitcore.loopir.program import Kernel, Loop, Reduce, Store
from jitcore.loopir.values import Region, Regions
from jitcore.schedule.fusion import index_over, squeeze
from jitcore.schedule.index_set_splitting import list_columns
from jitcore.schedule.nest import shape_kernel
from jitcore.schedule.unrolling import MAX_UNROLLED_NODES

# Updates that a part should have at least, and updates for each element of its copies.
MIN_PART = 8192
MIN_UPDATES_PER_ELEMENT = 4
MIN_UPDATES_PER_TURN = 2
MAX_PARTS = 32
# Updates of few elements take turns in so many copies, so that one need not wait for the one before it, as
# long as the copies fill no more of the first cache than so many bytes.
MOST_TURNS = 4
TURN_BYTES = 8192
# What is left over for the end is never so little that the number would stand in the program's text.
MIN_REST = 16

# How an update combines with the others of its part.
_WITHIN = {"add": "add", "sub": "add", "mul": "mul", "max": "max", "min": "min"}


def regions_kernels(builder: Builder, joined: Regions, regions: list[Region], buffer: Buffer) -> list[Kernel]:
    """The kernels that store the regions of a value, as they are by now."""
    kernel = _columns_kernel(builder, joined, buffer)
    if kernel is not None:
        return [kernel]
    return [kernel for region in regions for kernel in region_kernels(builder, region, buffer)]


def _columns_kernel(builder: Builder, joined: Regions, buffer: Buffer) -> Kernel | None:
    """One loop that stores columns beside each other, so that whole registers of them are written; None where
    the regions are none, or read what they write."""
    columns = list_columns(joined)
    if columns is None or len(columns) < 2 or any(buffer in column.buffers for column in columns):
        return None
    axes = list(map(Axis, squeeze(joined.shape[:-1])))
    places = index_over(joined.shape[:-1], axes)
    stores = [Store(buffer, linearize((*places, constant(number)), buffer.shape), column.at((*places, ZERO)))
              for number, column in enumerate(columns)]
    if len(walk([store.value for store in stores])) > MAX_UNROLLED_NODES:
        return None
    return shape_kernel(builder.graph, axes, [], stores, builder.new_temp)


def region_kernel(builder: Builder, region: Region, buffer: Buffer) -> Kernel:
    """The loops that store one region."""
    axes = list(map(Axis, squeeze(region.value.shape)))
    store = _store_region(region, buffer, index_over(region.value.shape, axes))
    if region.serial:  # windows are updated one after the other, each as a whole
        found = [atom.expr.axes for atom, _ in store.offset.terms if isinstance(atom, Dynamic)]
        axes.sort(key=lambda axis: not any(axis in axes for axes in found))
    return shape_kernel(builder.graph, axes, [], [store], builder.new_temp, serial=region.serial)


def region_kernels(builder: Builder, region: Region, buffer: Buffer) -> list[Kernel]:
    """The kernels that store one region, in parts where that pays."""
    parts = count_parts(region, buffer) if region.serial else 0
    if not parts:
        return [region_kernel(builder, region, buffer)]
    graph, size, within = builder.graph, math.prod(buffer.shape), _WITHIN[region.combine]
    length = (region.value.shape[0] - MIN_REST) // parts
    turns = count_turns(region, buffer)
    private = builder.new_temp((parts * turns, size), buffer.dtype)
    return [
        _fill(builder, private, graph.const(identity_of(within, buffer.dtype), buffer.dtype)),
        _update_parts(builder, region, buffer, private, Axis(parts), Axis(length)),
        _combine_parts(graph, region, buffer, private, builder.new_temp),
        _update_rest(builder, region, buffer, parts * length),
    ]


def count_parts(region: Region, buffer: Buffer) -> int:
    """Into how many parts the updates are split; 0 for one loop over all of them."""
    shape = (*region.value.shape, *buffer.shape)
    if region.combine not in _WITHIN or dtypes.kind_of(buffer.dtype) not in "iuf":
        return 0
    if not region.value.shape or not all(isinstance(extent, (int, np.integer)) for extent in shape):
        return 0
    updates, size = math.prod(region.value.shape), max(1, math.prod(buffer.shape))
    wanted = max(MIN_UPDATES_PER_ELEMENT, MIN_UPDATES_PER_TURN * count_turns(region, buffer))
    most = min(MAX_PARTS, updates // MIN_PART, updates // (size * wanted))
    most = 1 << most.bit_length() - 1 if most else 0  # as many for each thread
    return most if most >= 2 and region.value.shape[0] >= 2 * (MIN_REST + most) else 0


def count_turns(region: Region, buffer: Buffer) -> int:
    """How many copies of the elements a part has. Rows are long enough for their updates not to meet."""
    nbytes, turns = math.prod(buffer.shape) * buffer.dtype.itemsize, MOST_TURNS
    if squeeze(region.value.shape[1:]):
        return 1
    while turns > 1 and turns * nbytes > TURN_BYTES:
        turns //= 2
    return turns


def _store_region(region: Region, buffer: Buffer, index: tuple) -> Store:
    mask = region.mask(index) if region.mask is not None else None
    place = linearize(region.place(index), buffer.shape)
    return Store(buffer, place, region.value.at(index), mask, region.combine)


def _fill(builder: Builder, buffer: Buffer, value) -> Kernel:
    axes = list(map(Axis, buffer.shape))
    store = Store(buffer, linearize(tuple(map(Index.of, axes)), buffer.shape), value)
    return shape_kernel(builder.graph, axes, [], [store], builder.new_temp)


def _update_parts(builder: Builder, region: Region, buffer: Buffer, private: Buffer, part: Axis,
                  first: Axis) -> Kernel:
    """Each part's updates, in order, into its own copies of the elements."""
    copies, size = private.shape
    turns = copies // part.extent
    axes = [first, *map(Axis, squeeze(region.value.shape[1:]))]
    index = (Index.of(part) * first.extent + Index.of(first), *index_over(region.value.shape[1:], axes[1:]))
    store = _store_region(region, buffer, index)
    store.buffer, store.offset = private, store.offset + Index.of(part) * (turns * size)
    store.combine, store.turns = _WITHIN[region.combine], (turns, size) if turns > 1 else None
    kernel = shape_kernel(builder.graph, axes, [], [store], builder.new_temp, serial=True)
    return Kernel([Loop(part, kernel.body)], kernel.vector, True, RunTimeSize(1), far=kernel.far)


def _combine_parts(graph: Graph, region: Region, buffer: Buffer, private: Buffer, new_temp) -> Kernel:
    parts, size = private.shape
    part, element = Axis(parts), Axis(size)
    offset = Index.of(element)
    result = Result(buffer.dtype, frozenset((element,)), 0)
    total = (result, _WITHIN[region.combine], graph.load(private, Index.of(part) * size + offset))
    store = Store(buffer, offset, graph.result(result), None, region.combine)
    return shape_kernel(graph, [element], [part], [Reduce((part,), [total], []), store], new_temp)


def _update_rest(builder: Builder, region: Region, buffer: Buffer, start: int) -> Kernel:
    """The last updates, into the elements themselves."""
    shape = region.value.shape
    axes = [Axis(shape[0] - start), *map(Axis, squeeze(shape[1:]))]
    index = (Index.of(axes[0]) + start, *index_over(shape[1:], axes[1:]))
    store = _store_region(region, buffer, index)
    return shape_kernel(builder.graph, axes, [], [store], builder.new_temp, serial=True)
