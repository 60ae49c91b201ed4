"""Stores of regions: kernels that write windows, scattered elements, and rows of a scan's outputs.

In: the regions of a value, and the buffer that they go to. Out: kernels.

Updates at computed places, of which several may be the same element, keep their order. Where many of them
meet in few elements they are combined in parts, each with a copy of the elements of its own; the copies are
combined in order. The number of parts depends on shapes only, so the result does not depend on threads.

What a window leaves of its base, the strips around it, is copied element by element, so that none is first
copied and then overwritten, in one sweep with the window where both walk through the same rows. Rows of a
scan's outputs are computed where they belong; one that a routine, a call or a loop inside works on as a whole
is copied there afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes
from jitcore.lax.indexing.windows import Window
from jitcore.loopir.builder import Builder, is_few
from jitcore.loopir.expr import (ZERO, Axis, Buffer, Dynamic, Graph, Index, Result, RunTimeSize, constant,
                                 linearize, walk)
from jitcore.loopir.monoids import identity_of
from jitcore.loopir.program import Kernel, Loop, Reduce, Store
from jitcore.loopir.traversal import flatten, list_buffers
from jitcore.loopir.values import ROOTS, Region, Regions, Stored, Value
from jitcore.schedule.fusion import index_over, squeeze
from jitcore.schedule.nest import shape_kernel
from jitcore.schedule.tuning import Tuning
from jitcore.schedule.unrolling import Rewrite

# How an update combines with the others of its part.
_WITHIN = {"add": "add", "sub": "add", "mul": "mul", "max": "max", "min": "min"}


def regions_kernels(lowering, joined: Regions, regions: list[Region], buffer: Buffer) -> list[Kernel]:
    """The kernels that store the regions of a value, as they are by now."""
    kernel = _columns_kernel(lowering, joined, buffer)
    if kernel is not None:
        return [kernel]
    return [kernel for region in regions for kernel in region_kernels(lowering, region, buffer)]


def _columns_kernel(lowering, joined: Regions, buffer: Buffer) -> Kernel | None:
    """One loop that stores columns beside each other, so that whole registers of them are written; None where
    the regions are none, or read what they write."""
    columns = joined.list_columns()
    if columns is None or len(columns) < 2 or any(buffer in column.buffers for column in columns):
        return None
    axes = list(map(Axis, squeeze(joined.shape[:-1])))
    places = index_over(joined.shape[:-1], axes)
    stores = [Store(buffer, linearize((*places, constant(number)), buffer.shape), column.at((*places, ZERO)))
              for number, column in enumerate(columns)]
    if len(walk([store.value for store in stores])) > lowering.tuning.max_unrolled_nodes:
        return None
    return shape_kernel(lowering, axes, [], stores)


def region_kernel(lowering, region: Region, buffer: Buffer) -> Kernel:
    """The loops that store one region."""
    axes = list(map(Axis, squeeze(region.value.shape)))
    store = _store_region(region, buffer, index_over(region.value.shape, axes))
    if region.serial:  # windows are updated one after the other, each as a whole
        found = [atom.expr.axes for atom, _ in store.offset.terms if isinstance(atom, Dynamic)]
        axes.sort(key=lambda axis: not any(axis in axes for axes in found))
    return shape_kernel(lowering, axes, [], [store], serial=region.serial)


def region_kernels(lowering, region: Region, buffer: Buffer) -> list[Kernel]:
    """The kernels that store one region, in parts where that pays."""
    tuning = lowering.tuning
    parts = count_parts(region, buffer, tuning) if region.serial else 0
    if not parts:
        return [region_kernel(lowering, region, buffer)]
    graph, size, within = lowering.graph, math.prod(buffer.shape), _WITHIN[region.combine]
    length = (region.value.shape[0] - tuning.min_rest) // parts
    turns = count_turns(region, buffer, tuning)
    private = lowering.new_temp((parts * turns, size), buffer.dtype)
    return [
        _fill(lowering, private, graph.const(identity_of(within, buffer.dtype), buffer.dtype)),
        _update_parts(lowering, region, buffer, private, Axis(parts), Axis(length)),
        _combine_parts(lowering, region, buffer, private),
        _update_rest(lowering, region, buffer, parts * length),
    ]


def count_parts(region: Region, buffer: Buffer, tuning: Tuning) -> int:
    """Into how many parts the updates are split; 0 for one loop over all of them."""
    shape = (*region.value.shape, *buffer.shape)
    if region.combine not in _WITHIN or dtypes.kind_of(buffer.dtype) not in tuning.scatter_kinds:
        return 0
    if not region.value.shape or not all(isinstance(extent, (int, np.integer)) for extent in shape):
        return 0
    updates, size = math.prod(region.value.shape), max(1, math.prod(buffer.shape))
    turns = count_turns(region, buffer, tuning)
    wanted = max(tuning.min_updates_per_element, tuning.min_updates_per_turn * turns)
    most = min(tuning.max_scatter_parts, updates // tuning.min_scatter_part, updates // (size * wanted))
    most = 1 << most.bit_length() - 1 if most else 0  # as many for each thread
    return most if most >= 2 and region.value.shape[0] >= 2 * (tuning.min_rest + most) else 0


def count_turns(region: Region, buffer: Buffer, tuning: Tuning) -> int:
    """How many copies of the elements a part has. Rows are long enough for their updates not to meet."""
    nbytes, turns = math.prod(buffer.shape) * buffer.dtype.itemsize, tuning.max_turns
    if squeeze(region.value.shape[1:]):
        return 1
    while turns > 1 and turns * nbytes > tuning.turn_bytes:
        turns //= 2
    return turns


def _store_region(region: Region, buffer: Buffer, index: tuple) -> Store:
    mask = region.mask(index) if region.mask is not None else None
    place = linearize(region.place(index), buffer.shape)
    return Store(buffer, place, region.value.at(index), mask, region.combine)


def _fill(lowering, buffer: Buffer, value) -> Kernel:
    axes = list(map(Axis, buffer.shape))
    store = Store(buffer, linearize(tuple(map(Index.of, axes)), buffer.shape), value)
    return shape_kernel(lowering, axes, [], [store])


def _update_parts(lowering, region: Region, buffer: Buffer, private: Buffer, part: Axis,
                  first: Axis) -> Kernel:
    """Each part's updates, in order, into its own copies of the elements."""
    copies, size = private.shape
    turns = copies // part.extent
    axes = [first, *map(Axis, squeeze(region.value.shape[1:]))]
    index = (Index.of(part) * first.extent + Index.of(first), *index_over(region.value.shape[1:], axes[1:]))
    store = _store_region(region, buffer, index)
    store.buffer, store.offset = private, store.offset + Index.of(part) * (turns * size)
    store.combine, store.turns = _WITHIN[region.combine], (turns, size) if turns > 1 else None
    kernel = shape_kernel(lowering, axes, [], [store], serial=True)
    return Kernel([Loop(part, kernel.body)], kernel.vector, True, RunTimeSize(1), far=kernel.far)


def _combine_parts(lowering, region: Region, buffer: Buffer, private: Buffer) -> Kernel:
    (parts, size), graph = private.shape, lowering.graph
    part, element = Axis(parts), Axis(size)
    offset = Index.of(element)
    result = Result(buffer.dtype, frozenset((element,)), 0)
    total = (result, _WITHIN[region.combine], graph.load(private, Index.of(part) * size + offset))
    store = Store(buffer, offset, graph.result(result), None, region.combine)
    return shape_kernel(lowering, [element], [part], [Reduce((part,), [total], []), store])


def _update_rest(lowering, region: Region, buffer: Buffer, start: int) -> Kernel:
    """The last updates, into the elements themselves."""
    shape = region.value.shape
    axes = [Axis(shape[0] - start), *map(Axis, squeeze(shape[1:]))]
    index = (Index.of(axes[0]) + start, *index_over(shape[1:], axes[1:]))
    store = _store_region(region, buffer, index)
    return shape_kernel(lowering, axes, [], [store], serial=True)


# -- strips around a window ------------------------------------------------------------------------------
def copy_around(builder: Builder, base: Value, region: Region) -> list[Region] | None:
    """Regions of `base` outside of a window, one for each dimension that the window does not fill; None where
    the region is no window, or so small that copying the whole base is as good."""
    extents, sizes, starts = base.shape, region.value.shape, region.find_start()
    if isinstance(base, ROOTS) or starts is None or not Window(starts, sizes, extents).covers_most:
        return None
    rest = []
    for d, (extent, size) in enumerate(zip(extents, sizes)):
        if extent == size:
            continue
        shape = (*sizes[:d], extent - size, *extents[d + 1 :])

        def place(index, d=d, size=size):
            inside = tuple(i + start for i, start in zip(index[:d], starts[:d]))
            return (*inside, _jump(builder, index[d], starts[d], size), *index[d + 1 :])

        rest.append(Region(builder.view(base, shape, place), place))
    return rest


def _jump(builder: Builder, index: Index, start: Index, size) -> Index:
    """The index itself before the window's start, and moved past its end from there on."""
    g = builder.graph
    here = g.index(index)
    is_past = g.op("ge", here, g.index(start), dtype=dtypes.bool_)
    moved = g.op("select", is_past, g.index(index + size), here, dtype=here.dtype)
    return Index.of(Dynamic(moved))


def join_kernels(graph: Graph, kernels: list[Kernel]) -> list[Kernel]:
    """The kernels of strips and, as the last one, of the window between them; of those that walk through the
    window's rows, one: what a row's lines hold is then written while they are in the cache. No two of the
    kernels write or read what another one writes."""
    *strips, window = kernels
    vectors = {kernel.vector for kernel in kernels}
    joined = [strip for strip in strips if _is_nest(strip) and _is_nest(window)
              and _walk_alike(strip.body[0], window.body[0], vectors)]
    if not joined:
        return kernels
    loop, others = window.body[0], []
    for strip in joined:
        loop = _join_loops(graph, loop, strip.body[0], vectors)
        others += [strip.vector] if strip.vector is not None else []
    whole = Kernel([loop], window.vector, window.parallel, window.grain, others=tuple(others))
    return [*(strip for strip in strips if strip not in joined), whole]


def _is_nest(kernel: Kernel) -> bool:
    """Whether a kernel is loops around stores that may be split over threads as they are."""
    is_loop = len(kernel.body) == 1 and isinstance(kernel.body[0], Loop)
    return is_loop and kernel.parallel and kernel.tile is None and not kernel.far


def _walk_alike(first, second, vectors: set) -> bool:
    """Whether two loops write the same rows in the same iterations."""
    if not (isinstance(first, Loop) and isinstance(second, Loop)) or {first.axis, second.axis} & vectors:
        return False
    if first.bounds or second.bounds:
        return False
    strides = {store.offset.coefficient(loop.axis) for loop in (first, second)
               for s in flatten([loop]) for store in s.stores}
    return first.axis.extent == second.axis.extent and len(strides) == 1 and not strides & {None, 0}


def _join_loops(graph: Graph, window: Loop, strip: Loop, vectors: set) -> Loop:
    """The window's loop with the strip's statements in its body, or in that of a loop inside."""
    (inner,) = Rewrite(graph, {strip.axis: window.axis}).statement(strip).body
    body = list(window.body)
    for place, statement in enumerate(body):
        if _walk_alike(statement, inner, vectors):
            body[place] = _join_loops(graph, statement, inner, vectors)
            return Loop(window.axis, body)
    is_short = isinstance(inner, Loop) and is_few([inner.axis.extent])
    if is_short and all(isinstance(s, Store) for s in inner.body):
        for position in range(inner.axis.extent):
            rewrite = Rewrite(graph, {}, {inner.axis: position})
            body += map(rewrite.statement, inner.body)
    else:
        body.append(inner)
    return Loop(window.axis, body)


# -- rows of a scan's outputs ----------------------------------------------------------------------------
def store_rows(lowering, body: list, rows: Sequence[Stored], stacks: Sequence[Buffer],
               position: Callable[[], Index]) -> None:
    """Completes the statements of a body that has computed the rows.

    Args:
        rows: temporaries that nothing but the body reads. position: where in the stacks the rows belong."""
    for row, stack in zip(rows, stacks):
        users = [number for number, statement in enumerate(body) if row.buffer in list_buffers([statement])]
        if row.shape and all(isinstance(body[number], Kernel) for number in users):
            place = stack, position() * math.prod(row.shape)
            move = Rewrite(lowering.graph, {}, buffers={row.buffer: place})
            for number in users:
                body[number] = move.statement(body[number])
        else:
            region = Region(row, lambda index: (position(), *index))
            body.append(region_kernel(lowering, region, stack))
