"""Kernels that read some arrays along the other axis: these go through tiles in shared memory.

In: a nest of plain stores along columns, of which some loads lie along rows. Out: one `__global__` function.
A block of threads reads a tile of each such load with neighbouring threads along the rows, and stores it with
neighbouring threads along the columns: all accesses of a warp are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import WARP, KernelEmitter
from jitcore.backends.cuda.render.team import Slots
from jitcore.backends.cuda.render.tiling import Tiling
from jitcore.backends.llvm.registers import I64
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.index import Axis
from jitcore.loopir.program import Kernel, Store
from jitcore.loopir.traversal import peel
from jitcore.schedule.nest import is_across

#: Warps of a block; each has so many rows of a tile less than WARP.
WARPS = 8
#: Elements from which on tiles pay, and arrays that go through shared memory, at most.
LEAST, MOST_ARRAYS = 32, 4


class Turned(NamedTuple):
    """loads: what lies along the rows."""

    tiling: Tiling
    body: list[Store]
    loads: list[Expr]


def find_turned(kernel: Kernel, tile: tuple[Axis, Axis] | None) -> Turned | None:
    """tile: the axes of rows and columns, where the schedule says that neighbours lie along both."""
    loops, body = peel(kernel.body)
    if tile is None or tile != tuple(loop.axis for loop in loops[-2:]) or any(loop.bounds for loop in loops):
        return None
    rows, columns = tile
    if min(int(rows.extent), int(columns.extent)) < LEAST:
        return None
    nodes = walk([root for store in body for root in store.roots])
    loads = [node for node in nodes if node.op == "load" and is_across(node.attr[1], rows, columns)]
    is_fine = 0 < len(loads) <= MOST_ARRAYS and not any(store.is_update for store in body)
    written = {store.buffer for store in body}
    if not is_fine or any(load.attr[0] in written for load in loads):
        return None
    return Turned(Tiling(loops[:-2], rows, columns, WARP), body, loads)


class TurnedRenderer:
    """Emits the body of the function. emit_statements: for the stores of one element."""

    def __init__(self, e: KernelEmitter, turned: Turned, emit_statements: Callable):
        self.e, self.turned, self.emit_statements = e, turned, emit_statements
        # rows are one element longer, so that reading across them meets all banks
        self.slots = [Slots(e, load.dtype, WARP * (WARP + 1)) for load in turned.loads]

    def emit(self) -> None:
        e, b, t = self.e, self.e.b, self.turned.tiling
        thread = e.read_register("tid.x")
        lane, warp = b.urem(thread, I64(WARP)), b.udiv(thread, I64(WARP))
        row, column = t.place(e)

        def read(number):
            e.axis_values[t.rows], e.axis_values[t.columns] = b.add(row, lane), b.add(column, number)
            e.when(e.is_inside(t.rows, t.columns), lambda: self._read_all(number, lane))

        def store(number):
            e.axis_values[t.rows], e.axis_values[t.columns] = b.add(row, number), b.add(column, lane)
            e.when(e.is_inside(t.rows, t.columns), lambda: self._store_all(number, lane))

        e.loop(warp, I64(WARP), I64(WARPS), read)
        e.synchronize_block()
        e.loop(warp, I64(WARP), I64(WARPS), store)

    def _at(self, down: ir.Value, across: ir.Value) -> ir.Value:
        return self.e.b.add(self.e.b.mul(down, I64(WARP + 1)), across)

    def _read_all(self, number: ir.Value, lane: ir.Value) -> None:
        for load, slots in zip(self.turned.loads, self.slots):
            slots.write(self.e.b, self._at(number, lane), self.e.load(*load.attr))

    def _store_all(self, number: ir.Value, lane: ir.Value) -> None:
        for load, slots in zip(self.turned.loads, self.slots):
            self.e.values[id(load)] = slots.read(self.e.b, self._at(lane, number))
        self.emit_statements(self.e, self.turned.body)
