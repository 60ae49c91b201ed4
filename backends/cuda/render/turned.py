"""Kernels that read some arrays along the other axis, by tiles in shared memory.

In: plain stores along columns, of which some loads lie along rows. Out: one `__global__` function. A block of
threads reads a tile of each such load along the rows, and stores it along the columns: all accesses of a warp
are neighbours, of several elements each where rows begin at a multiple of them. Each thread has several
accesses on their way before it needs the first; so that none of them waits for a comparison, threads past the
end read what the last ones read, and store nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.team import Slots
from jitcore.backends.cuda.render.tiles import MOST_PLACES, Tiling
from jitcore.backends.gpu.mapping import WARP, count_elements, is_aligned, round_up
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I32, I64
from jitcore.backends.llvm.statements import count_calls
from jitcore.loopir.expr import Axis, Expr, walk
from jitcore.loopir.program import Kernel, Store
from jitcore.loopir.traversal import list_reads, list_writes, peel
from jitcore.schedule import tuning as scheduling
from jitcore.schedule.nest import is_across

#: Elements along a side of a tile; the smallest one is that of a warp.
_SIDES = (128, 64, WARP)
#: Shared memory that a block has without asking for more.
_SHARED_BYTES = 48 << 10


class Turned(NamedTuple):
    """loads: what lies along the rows. lanes: elements of an access of all others. batch: how many of these a
    thread has on their way."""

    tiling: Tiling
    body: list[Store]
    loads: list[Expr]
    threads: int
    lanes: int
    batch: int


def find_turned(kernel: Kernel, tile: tuple[Axis, Axis] | None, access_bytes: int,
                tuning: Tuning) -> Turned | None:
    """tile: the axes of rows and columns, where the schedule says that neighbours lie along both."""
    loops, body = peel(kernel.body)
    if tile is None or tile != tuple(loop.axis for loop in loops[-2:]) or any(loop.bounds for loop in loops):
        return None
    rows, columns = tile
    extents = int(rows.extent), int(columns.extent)
    if min(extents) < tuning.least_turned or max(extents) > MOST_PLACES:
        return None
    nodes = walk([root for store in body for root in store.roots])
    every = [node for node in nodes if node.op == "load"]
    loads = [node for node in every if is_across(node.attr[1], rows, columns, scheduling.Tuning.short)]
    is_fine = 0 < len(loads) <= tuning.most_turned and not any(store.is_update for store in body)
    written, element = list_writes(body), sum(load.dtype.itemsize for load in loads)
    is_fine = is_fine and WARP * (WARP + 1) * element <= _SHARED_BYTES
    if not is_fine or any(load.attr[0] in written for load in loads):
        return None
    tilings = [Tiling(loops[:-2], rows, columns, side, side) for side in _SIDES]
    tiling = next((one for one in tilings[:-1] if one.width * (one.width + 1) * element <= tuning.turned_bytes
                   and one.grid >= tuning.many_tiles), tilings[-1])
    threads = WARP * tuning.turned_warps
    lanes = count_elements(columns, body, access_bytes, tuning, loads)
    lanes = min(lanes, tiling.width**2 // threads) if int(columns.extent) % lanes == 0 else 1
    others = max(1, len(every) - len(loads))
    batch = round_up(tuning.turned_batch // others) if _may_be_ahead(body, nodes) else 1
    return Turned(tiling, body, loads, threads, lanes, batch)


def _may_be_ahead(body: list[Store], nodes: list[Expr]) -> bool:
    """Whether values may be computed before others are stored: none depends on those, each is to be computed,
    and few enough instructions do it."""
    is_apart = not list_writes(body) & list_reads(body) and all(store.mask is None for store in body)
    return is_apart and not count_calls(nodes)


class TurnedRenderer:
    """Emits the body of the function. emit_statements: for the stores of the elements of one access."""

    def __init__(self, e: KernelEmitter, turned: Turned, access_bytes: int, tuning: Tuning,
                 emit_statements: Callable):
        self.e, self.turned, self.emit_statements = e, turned, emit_statements
        self.access_bytes, self.tuning, self.tiling = access_bytes, tuning, turned.tiling
        # rows are one element longer, so that reading across them meets other banks
        self.pitch = self.tiling.width + 1
        self.thread = e.read_register("tid.x")

    def emit(self) -> None:
        e, t = self.e, self.turned
        self.row, self.column = self.tiling.place(e)
        self.known = e.values
        slots = [Slots(e, load.dtype, self.tiling.width * self.pitch) for load in t.loads]
        for load, slot in zip(t.loads, slots):
            self._fill(load, slot)
        e.synchronize_block()
        self._store(slots)

    def _fill(self, load: Expr, slots: Slots) -> None:
        """The tile of one load: neighbouring threads along the rows."""
        e, b, rows = self.e, self.e.b, self.tiling.rows
        lanes = self._find_lanes(load)
        for places in self._share(lanes, self.tuning.turned_batch):
            held = []
            for column, row in places:
                self._go_to(row, column, lanes, 1)
                with e.in_lanes(rows, lanes):
                    held.append(e.load(*load.attr))
            for (column, row), value in zip(places, held):
                place = b.add(b.mul(column, I64(self.pitch)), row)
                for number, part in enumerate(e.split_lanes(value)):
                    slots.write(b, b.add(place, I64(number)), part)

    def _find_lanes(self, load: Expr) -> int:
        """Elements along the rows that one access reads."""
        rows, most = self.tiling.rows, self.tiling.width**2 // self.turned.threads
        lanes = min(max(self.access_bytes // load.dtype.itemsize, 1), self.tuning.most_elements, most)
        return lanes if int(rows.extent) % lanes == 0 and is_aligned(load.attr[1], rows, lanes) else 1

    def _store(self, slots: list[Slots]) -> None:
        """What is computed from the tiles: neighbouring threads along the columns."""
        e, b, t, lanes = self.e, self.e.b, self.turned, self.turned.lanes
        for places in self._share(lanes, t.batch):
            found = []
            for row, column in places:
                is_inside = self._go_to(row, column, 1, lanes)
                for load, slot in zip(t.loads, slots):
                    parts = [slot.read(b, b.add(b.mul(b.add(column, I64(number)), I64(self.pitch)), row))
                             for number in range(lanes)]
                    e.values[id(load)] = e.join_lanes(parts)
                if len(places) > 1:
                    with e.in_lanes(self.tiling.columns, lanes):
                        for store in t.body:
                            e.expr(store.value)
                found.append((is_inside, e.axis_values, e.values))
            for is_inside, axis_values, values in found:
                e.axis_values, e.values = axis_values, values
                with e.if_then(is_inside), e.in_lanes(self.tiling.columns, lanes):
                    self.emit_statements(e, t.body)

    def _share(self, lanes: int, batch: int) -> Iterator[list[tuple[ir.Value, ir.Value]]]:
        """A loop over the places of a tile that are this thread's, a batch of them at a time: the numbers of
        a line and, along it, of the first of so many elements."""
        b, threads, side = self.e.b, self.turned.threads, self.tiling.width
        rounds = side**2 // (threads * lanes)
        batch = min(batch, rounds)
        with self.e.for_range(I64(0), I64(rounds), I64(batch)) as first:
            numbers = [b.add(b.mul(b.add(first, I64(number)), I64(threads)), self.thread)
                       for number in range(batch)]
            yield [(b.udiv(number, I64(side // lanes)), b.mul(b.urem(number, I64(side // lanes)), I64(lanes)))
                   for number in numbers]

    def _go_to(self, row: ir.Value, column: ir.Value, down: int, across: int) -> ir.Value:
        """Sets the axes to a place of the tile from which so many elements on are read; or, if that is not
        inside, to the last one that is. Returns: whether it is inside. What is known there is found anew."""
        e, b, t = self.e, self.e.b, self.tiling
        e.axis_values, e.values = dict(e.axis_values), dict(self.known)
        is_inside = t.go_to(e, *[b.add(first, b.trunc(place, I32)) for first, place in (
            (self.row, row), (self.column, column))])
        for axis, lanes in ((t.rows, down), (t.columns, across)):
            last = b.sub(e.size(axis.extent), I64(lanes))
            e.axis_values[axis] = e.least(e.axis_values[axis], last)
        return is_inside
