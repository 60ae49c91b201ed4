"""Updates of few elements at computed places that may be made in any order, as of whole numbers that count.

In: a kernel that is loops around one such update. Out: one `__global__` function. Each block of threads has
the elements once more in shared memory, where updates that meet wait for each other least; what a block has
found is then combined with the elements themselves. Blocks are few, and each thread makes many updates, of
several elements of what it reads in one access.
"""

from __future__ import annotations

import contextlib
import functools
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.gpu.mapping import (WARP, Mapping, can_add_atomically, find_lone_store, is_aligned,
                                          is_ordered)
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I32, I64, Pair, element_constant, element_type, map_parts
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.monoids import identity_of
from jitcore.loopir.program import Kernel, Loop, Store


class PrivateUpdates(NamedTuple):
    """loops: around the update. size: of what is updated, in elements. count: of updates. loads: what is read
    of `lanes` updates, neighbours along the last loop, in one access. grid: blocks of threads."""

    loops: tuple[Loop, ...]
    store: Store
    size: int
    count: int
    loads: list[Expr]
    lanes: int
    grid: int


def find_private_updates(kernel: Kernel, access_bytes: int, tuning: Tuning) -> PrivateUpdates | None:
    """The updates that a kernel is, if tables of blocks pay for them."""
    if not (is_ordered(kernel) and can_add_atomically(kernel)):
        return None
    loops, store = find_lone_store(kernel)
    nbytes, count = store.buffer.nbytes, Mapping("flat", tuple(loops), []).items
    size = nbytes // store.buffer.dtype.itemsize
    # each block clears its table, and combines all of it with the elements
    grid = min(tuning.private_blocks, count // max(tuning.private_block, tuning.private_updates * size))
    if any(loop.bounds for loop in loops) or not 0 < nbytes <= tuning.private_bytes or grid < 2:
        return None
    axis = loops[-1].axis
    nodes = walk(store.roots)
    loads = [node for node in nodes if node.op == "load" and node.attr[1].coefficient(axis) == 1]
    lanes = min(access_bytes // max([load.dtype.itemsize for load in loads], default=access_bytes + 1),
                tuning.most_elements)
    while lanes > 1 and not ((len(loops) == 1 or int(axis.extent) % lanes == 0)
                             and all(is_aligned(load.attr[1], axis, lanes) for load in loads)):
        lanes //= 2
    return PrivateUpdates(tuple(loops), store, size, count, loads, max(lanes, 1), grid)


class PrivateRenderer:
    """Emits the body of the function. renderer: the `KernelRenderer`, which knows what comes before loops."""

    def __init__(self, renderer, e: KernelEmitter, updates: PrivateUpdates):
        self.renderer, self.e, self.updates, self.tuning = renderer, e, updates, renderer.tuning
        self.dtype, self.op = updates.store.buffer.dtype, updates.store.combine
        self.identity = element_constant(self.dtype, identity_of(self.op, self.dtype))
        most = self.tuning.private_bytes // updates.store.buffer.nbytes
        self.copies = min(self.tuning.private_copies, most)
        self.axes = [loop.axis for loop in updates.loops]

    def emit(self) -> None:
        e, b, u, threads = self.e, self.e.b, self.updates, self.tuning.private_block
        self.thread, block = e.read_register("tid.x"), e.read_register("ctaid.x")
        self.table = e.share(element_type(self.dtype), self.copies * u.size)
        with e.for_range(self.thread, I64(self.copies * u.size), I64(threads)) as place:
            b.store(self.identity, self._find(place))
        e.synchronize_block()
        self.renderer.hoist(e, [u.store], set(self.axes))
        e.skips_gathers = True
        first, stride = b.add(b.mul(block, I64(threads)), self.thread), threads * u.grid
        whole = u.count // u.lanes
        batch = 1 if self.renderer.math_calls else self.tuning.private_batch
        e.for_batches(first, I64(whole), stride, batch, lambda items: self._update(items, u.lanes))
        if u.count % u.lanes:
            e.for_batches(b.add(first, I64(whole * u.lanes)), I64(u.count), stride, 1,
                          lambda items: self._update(items, 1))
        e.synchronize_block()
        self._combine()

    def _update(self, items: list[ir.Value], lanes: int) -> None:
        """The updates of some items, of so many each. All reads of memory in order come first."""
        e, b, u, known, found = self.e, self.e.b, self.updates, self.e.values, []
        axis, counts = self.axes[-1], e.count_iterations(self.axes)
        counts[-1] = e.divide_up(counts[-1], lanes)
        for item in items:
            e.axis_values, e.values = dict(e.axis_values), dict(known)
            e.place_axes(self.axes, item, u.count, counts)
            e.axis_values[axis] = b.mul(e.axis_values[axis], I64(lanes))
            with e.in_lanes(axis, lanes):
                found.append((e.axis_values, [e.load(*load.attr) for load in u.loads]))
        for places, values in found:
            for lane in range(lanes):
                e.axis_values = places | {axis: b.add(places[axis], I64(lane))}
                e.values = known | {id(load): _pick(b, value, lane, lanes)
                                    for load, value in zip(u.loads, values)}
                self._update_one()
        e.values = known

    def _update_one(self) -> None:
        e, b, store = self.e, self.e.b, self.updates.store
        with contextlib.nullcontext() if store.mask is None else e.if_then(e.expr(store.mask)):
            place = e.index(store.offset)
            if self.copies > 1:
                copy = b.urem(b.udiv(self.thread, I64(WARP)), I64(self.copies))
                place = b.add(place, b.mul(copy, I64(self.updates.size)))
            e.update_atomically(store, self._find(place), e.expr(store.value))

    def _combine(self) -> None:
        """The table with the elements."""
        e, b, u = self.e, self.e.b, self.updates
        with e.for_range(self.thread, I64(u.size), I64(self.tuning.private_block)) as place:
            values = [b.load(self._find(b.add(place, I64(copy * u.size)))) for copy in range(self.copies)]
            total = functools.reduce(lambda x, y: emit_operation(b, self.op, [self.dtype] * 2, self.dtype,
                                                                 [x, y]), values)
            with e.if_then(b.icmp_signed("!=", total, self.identity)):
                pointer = b.gep(e.element_pointer(u.store.buffer), [place])
                e.update_atomically(u.store, pointer, total)

    def _find(self, place: ir.Value) -> ir.Value:
        return self.e.b.gep(self.table, [I64(0), place])


def _pick(b: ir.IRBuilder, value: ir.Value | Pair, lane: int, lanes: int) -> ir.Value | Pair:
    return value if lanes == 1 else map_parts(lambda part: b.extract_element(part, I32(lane)), value)
