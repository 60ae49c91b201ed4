"""Items that threads share: how a team runs the statements of one, loop by loop.

In: statements of a kernel, and a team. Out: code in which each thread has a part of every loop, and what the
threads of a reduction or a scan find is combined.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.rows import HeldRow
from jitcore.backends.cuda.render.scans import scan_runs, scan_tiles
from jitcore.backends.cuda.render.team import Team
from jitcore.backends.gpu.mapping import Accesses, count_elements
from jitcore.backends.gpu.rows import Row
from jitcore.backends.llvm.accumulator import Accumulator
from jitcore.backends.llvm.options import RenderOptions
from jitcore.backends.llvm.registers import I1, I64, Pair, element_constant
from jitcore.backends.llvm.statements import StatementRenderer
from jitcore.loopir.expr import Axis, walk
from jitcore.loopir.monoids import is_summed
from jitcore.loopir.program import Kernel, Loop, Reduce, Scan, Store
from jitcore.loopir.traversal import list_roots, peel

#: Numbers of so many bytes that one thread adds up without short runs.
LONG_SUM = {4: 128, 8: 2048}


class ItemRenderer(StatementRenderer):
    """Renders statements of a kernel as the threads of a team run them.

    Attributes:
        is_atomic: whether updates may be made in any order.
        shared: loops whose iterations are shared out among threads, and where each begins."""

    def __init__(self, module: ir.Module, name: str, kernel: Kernel, options: RenderOptions):
        super().__init__(module, name, kernel, options)
        self.is_atomic, self.tuning = False, options.tuning
        self.shared: dict[Axis, ir.Value] = {}

    def run_shared(self, e: KernelEmitter, team: Team, body: list, row: Row | None = None) -> None:
        """The statements of an item. row: what the team keeps in registers."""
        accesses, held = Accesses(), None if row is None else HeldRow(e, team, row)
        for number, statement in enumerate(body):
            if accesses.add([statement]):
                team.synchronize()
            team.tells_all = any(later.axes for later in body[number + 1 :])
            if held is not None and statement in held.row.sweeps:
                self._sweep_row(e, team, held, statement)
            elif isinstance(statement, Loop):
                self._share_loop(e, team, statement)
            elif isinstance(statement, Reduce) and any(store.packed for store in statement.stores):
                self._share_packed(e, team, statement)
            elif isinstance(statement, Reduce):
                self._share_reduce(e, team, statement)
            elif isinstance(statement, Scan):
                extent = statement.axis.extent
                self.share_scan(e, team, statement, I64(0), e.size(extent), int(extent))
            else:
                with e.if_then(team.is_first()):
                    self.emit_statement(e, statement)

    def _share_loop(self, e: KernelEmitter, team: Team, loop: Loop) -> None:
        loops, body = peel([loop])
        axes = [inner.axis for inner in loops]
        if len(loops) > 1 and not any(inner.bounds for inner in loops):
            with self._share_nest(e, team, axes):
                self._emit_in_part(e, dict.fromkeys(axes, I64(0)), body)
            return
        self.hoist(e, loop.body, {loop.axis})
        low, high = e.range_of(loop, loop.axis)
        is_plain = not loop.bounds and all(isinstance(s, Store) for s in loop.body)
        is_along = is_plain and not team.across
        lanes = count_elements(loop.axis, loop.body, self.vector_bytes, self.tuning) if is_along else 1
        for _ in self._run_along(e, team, loop.axis, low, high, lanes):
            self._emit_in_part(e, {loop.axis: low}, loop.body)

    def _run_along(self, e: KernelEmitter, team: Team, axis: Axis, low: ir.Value, high: ir.Value,
                   lanes: int) -> Iterator[int]:
        """Each thread's part of the range [low, high): so many elements at a time, the rest one by one. Gives
        how many at a time, for the code of both."""
        b, whole = e.b, low
        if lanes > 1:
            count = b.sdiv(b.sub(high, low), I64(lanes))
            with team.share(I64(0), count) as i:
                e.axis_values[axis] = b.add(low, b.mul(i, I64(lanes)))
                with e.in_lanes(axis, lanes):
                    yield lanes
            whole = b.add(low, b.mul(count, I64(lanes)))
        with team.share(whole, high) as i:
            e.axis_values[axis] = i
            yield 1

    def _sweep_row(self, e: KernelEmitter, team: Team, held: HeldRow, sweep: Loop | Reduce) -> None:
        """A sweep along a row of which each thread has a few rounds, one after the other."""
        row, found, stores = held.row, [], sweep.body if isinstance(sweep, Loop) else sweep.stores
        if isinstance(sweep, Reduce):
            self.mark_long(sweep, team.size * row.lanes)
            found = [Accumulator(self, e, sweep, part, lanes=row.lanes) for part in sweep.parts]
        self.hoist(e, [sweep], {row.axis})

        def emit() -> None:
            for accumulator in found:
                accumulator.update()
            self._emit_in_part(e, {row.axis: I64(0)}, stores)

        held.run(list_roots([sweep]), emit)
        self._combine(e, team, found)

    def _emit_in_part(self, e: KernelEmitter, shared: dict[Axis, ir.Value], body: list) -> None:
        """Statements in loops of which each thread of a team has a part."""
        self.shared |= shared
        self.emit_statements(e, body)
        for axis in shared:
            del self.shared[axis]

    @contextlib.contextmanager
    def _share_nest(self, e: KernelEmitter, team: Team, axes: list[Axis]) -> Iterator[None]:
        """A loop over all places of several axes, neighbours along the last one by neighbouring threads."""
        with team.share(I64(0), e.multiply(e.count_iterations(axes))) as place:
            e.place_axes(axes, place, math.prod(int(axis.extent) for axis in axes))
            yield

    # -- reductions ---------------------------------------------------------------------------------------
    def _share_reduce(self, e: KernelEmitter, team: Team, reduce: Reduce) -> None:
        if len(reduce.axes) == 1 or reduce.bounds:
            return self.combine_range(e, team, reduce, *e.range_of(reduce, reduce.axes[0]))
        found = [Accumulator(self, e, reduce, part) for part in reduce.parts]
        self.hoist_roots(e, reduce.values, reduce.stores, set(reduce.axes))
        with self._share_nest(e, team, list(reduce.axes)):
            for accumulator in found:
                accumulator.update()
            self.emit_statements(e, reduce.stores)
        self._combine(e, team, found)

    def _combine(self, e: KernelEmitter, team: Team, found: list[Accumulator]) -> None:
        """What the threads of a team have found becomes the results."""
        for accumulator in found:
            e.results[accumulator.result] = team.combine(accumulator)

    def _share_packed(self, e: KernelEmitter, team: Team, reduce: Reduce) -> None:
        """A sweep whose stores put elements side by side, a round of the team at a time."""
        b, axis = e.b, reduce.axes[0]
        found = [Accumulator(self, e, reduce, part) for part in reduce.parts]
        packed = [store for store in reduce.stores if store.packed]
        counts = {store.mask: e.stack_slot(I64(0)) for store in packed}
        held = {mask: e.stack_slot(I1(0)) for mask in counts}
        slots = team.share_totals(dtypes.int64)
        values = [e.stack_slot(element_constant(store.buffer.dtype, 0)) for store in packed]
        start, stop = e.range_of(reduce, axis)
        with e.for_range(start, stop, I64(team.size)) as first:
            e.axis_values[axis] = b.add(first, team.rank)
            for slot in held.values():
                e.write_slot(slot, I1(0))
            with e.if_then(b.icmp_signed("<", e.axis_values[axis], stop)):
                for accumulator in found:
                    accumulator.update()
                for mask, slot in held.items():
                    e.write_slot(slot, e.expr(mask))
                for store, slot in zip(packed, values):
                    e.write_slot(slot, e.expr(store.value))
                self.emit_statements(e, [store for store in reduce.stores if not store.packed])
            places = {}
            for mask, slot in held.items():
                one = b.zext(e.read_slot(slot), I64)
                (before,), all_of_them = team.scan("add", dtypes.int64, [one], slots)
                old = e.read_slot(counts[mask])
                places[mask] = b.add(old, before)
                e.write_slot(counts[mask], b.add(old, all_of_them))
            if team.is_in_warp:  # elements may go to where others of this round were read; warps have waited
                team.synchronize()
            for store, slot in zip(packed, values):
                place = b.add(e.index(store.offset), places[store.mask])
                with e.if_then(e.read_slot(held[store.mask])):
                    e.write_element(store.buffer, place, e.read_slot(slot))
        self._combine(e, team, found)

    def combine_range(self, e: KernelEmitter, team: Team, reduce: Reduce, low: ir.Value,
                      high: ir.Value) -> None:
        """The results of a reduction with the first axis in [low, high)."""
        axis, starts = reduce.axes[0], [start for start, _ in reduce.bounds.values()]
        is_plain = len(reduce.axes) == 1 and not (any(starts) or reduce.finds_places or team.across)
        lanes = count_elements(axis, [reduce], self.vector_bytes, self.tuning) if is_plain else 1
        self.mark_long(reduce, team.size * lanes)
        found = [Accumulator(self, e, reduce, part, start=low) for part in reduce.parts]
        if lanes == 1:
            stop = high if team.active is None else e.b.select(team.active, high, low)
            with self._in_rounds(e, team, reduce) if is_plain or team.across else contextlib.nullcontext():
                self.sweep_reduce(e, reduce, found, e.b.add(low, team.rank), stop, I64(team.size))
        else:
            self._sweep_lanes(e, team, reduce, found, low, high, lanes)
        self._combine(e, team, found)

    def _in_rounds(self, e: KernelEmitter, team: Team, reduce: Reduce) -> contextlib.AbstractContextManager:
        """Rounds of a thread's part of a reduction are written out together, if one is many operations, or
        goes down columns."""
        nodes, axis, rounds = list(walk(reduce.values)), reduce.axes[0], self.tuning.rounds
        nbytes = sum(node.dtype.itemsize for node in nodes)
        is_long = len(nodes) >= self.tuning.least_unrolled and nbytes <= self.tuning.most_unrolled_bytes
        if team.across:  # mathematical functions wait longer than loads
            rounds, is_long = self.tuning.column_batch, len(reduce.axes) == 1 and not self.math_calls
        if not is_long:
            return contextlib.nullcontext()

        def read(place):
            e.axis_values[axis] = place
            for node in nodes:
                if node.op == "load" and axis in node.axes:
                    e.expr(node)

        return e.in_rounds(rounds, read)

    def _sweep_lanes(self, e: KernelEmitter, team: Team, reduce: Reduce, found: list[Accumulator],
                     low: ir.Value, high: ir.Value, lanes: int) -> None:
        """A sweep along one axis, several elements of each thread at a time."""
        wide = [Accumulator(self, e, reduce, part, lanes=lanes) for part in reduce.parts]
        self.hoist_roots(e, reduce.values, reduce.stores, set(reduce.axes))
        axis = reduce.axes[0]
        for width in self._run_along(e, team, axis, low, high, lanes):
            for accumulator in wide if width > 1 else found:
                accumulator.update()
            self._emit_in_part(e, {axis: low}, reduce.stores)
        for one, several in zip(found, wide):
            one.combine(several.read())

    def emit_reduce(self, e: KernelEmitter, reduce: Reduce) -> None:
        self.mark_long(reduce, 1)
        super().emit_reduce(e, reduce)

    def mark_long(self, reduce: Reduce, shares: int) -> None:
        """Whether each share of a reduction is a long sum."""
        first, *others = [int(axis.extent) for axis in reduce.axes]
        count = math.prod(others) * (min(first, int(reduce.block)) if reduce.block_results else first)
        sizes = [dtypes.part_size(expr.dtype) for _, op, expr in reduce.parts if is_summed(op, expr.dtype)]
        reduce.is_long = bool(sizes) and count > LONG_SUM[min(sizes)] * shares

    # -- scans and updates --------------------------------------------------------------------------------
    def share_scan(self, e: KernelEmitter, team: Team, scan: Scan, start: ir.Value, stop: ir.Value,
                   length: int, before: ir.Value | Pair | None = None) -> None:
        """The positions [start, stop), counted from the end in a reversed scan. length: how many they are at
        most. before: the combination of what comes before."""
        self.hoist(e, [scan], {scan.axis})
        if team.across:
            read, note = self._reach_places(e, scan, 1)
            return scan_runs(team, scan.op, scan.value.dtype, read, note, start, stop, before, length,
                             self.tuning.scan_run)
        b, lanes = e.b, count_elements(scan.axis, [scan], self.vector_bytes, self.tuning)
        if int(scan.axis.extent) % lanes == 0:
            self._scan_tiles(e, team, scan, start, stop, before, length, lanes)
            return
        # what is no whole number of lanes lies at the end of the axis, where a reversed scan begins
        rest = b.srem(b.sub(stop, start), I64(lanes))
        middle = b.add(start, rest) if scan.reverse else b.sub(stop, rest)
        parts = [(length, lanes), (lanes - 1, 1)][:: -1 if scan.reverse else 1]
        before = self._scan_tiles(e, team, scan, start, middle, before, *parts[0])
        self._scan_tiles(e, team, scan, middle, stop, before, *parts[1])

    def _scan_tiles(self, e: KernelEmitter, team: Team, scan: Scan, start: ir.Value, stop: ir.Value,
                    before: ir.Value | Pair | None, length: int, lanes: int) -> ir.Value | Pair:
        return scan_tiles(team, scan.op, scan.value.dtype, *self._reach_places(e, scan, lanes), start, stop,
                          before, length, lanes, self.tuning.scan_elements)

    def _reach_places(self, e: KernelEmitter, scan: Scan, lanes: int) -> tuple[Callable, Callable]:
        """(what reads, what writes so many elements from a position on, in the scan's order)"""
        order = -1 if scan.reverse else 1

        def at(place):
            end = e.size(scan.axis.extent)
            place = e.b.sub(e.b.sub(end, place), I64(lanes)) if scan.reverse else place
            return e.at(scan.axis, place, lanes)

        def read(place):
            with at(place):
                return e.split_lanes(e.expr_in_lanes(scan.value))[::order]

        def note(place, values):
            with at(place):
                e.store(scan.buffer, scan.offset, e.join_lanes(values[::order]))

        return read, note

    def emit_statement(self, e: KernelEmitter, statement) -> None:
        if not isinstance(statement, Store):
            return super().emit_statement(e, statement)
        if not self.is_atomic:
            return self._emit_once(e, statement)
        with contextlib.nullcontext() if statement.mask is None else e.if_then(e.expr(statement.mask)):
            self._emit_atomic(e, statement)

    def _emit_once(self, e: KernelEmitter, store: Store) -> None:
        """What all iterations of a shared loop would store into one element, the first of them stores."""
        firsts = [e.b.icmp_signed("==", e.axis_values[axis], start) for axis, start in self.shared.items()
                  if axis not in store.offset.axes()]
        with e.if_then(functools.reduce(e.b.and_, firsts)) if firsts else contextlib.nullcontext():
            super().emit_statement(e, store)

    def _emit_atomic(self, e: KernelEmitter, store: Store) -> None:
        pointer = e.b.gep(e.element_pointer(store.buffer), [e.index(store.offset)])
        e.update_atomically(store, pointer, e.expr(store.value))
