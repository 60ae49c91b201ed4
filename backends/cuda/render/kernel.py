"""Rendering of kernels: one fused loop nest group becomes one or a few `__global__` functions.

In: a `loopir.Kernel` and its mappings. Out: functions in a module, and for each how it is launched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render import tiles
from jitcore.backends.cuda.render.columns import lay_out_columns
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.items import ItemRenderer
from jitcore.backends.cuda.render.private_updates import find_private_updates, render_private_updates
from jitcore.backends.cuda.render.scans import scan_tiles
from jitcore.backends.cuda.render.team import Team
from jitcore.backends.cuda.render.tensor_cores import TensorRenderer, multiplies_halves
from jitcore.backends.cuda.render.turned import TurnedRenderer, find_turned
from jitcore.backends.cuda.render.updates import find_updates, render_updates
from jitcore.backends.gpu.mapping import (WARP, Function, Mapping, can_add_atomically, has_columns,
                                          is_ordered, list_parts, map_kernel)
from jitcore.backends.llvm.accumulator import Partials, find_blocks
from jitcore.backends.llvm.options import RenderOptions, SizeTable
from jitcore.backends.llvm.registers import I64, element_constant
from jitcore.loopir.expr import Axis, Buffer, Expr
from jitcore.loopir.monoids import scan_start_of
from jitcore.loopir.program import Kernel, Loop, Reduce, Scan
from jitcore.loopir.text import format_kernel
from jitcore.loopir.traversal import block_totals, find_split, flatten, list_buffers, peel


class KernelRenderer(ItemRenderer):
    """Renders one kernel into a module. is_apart: whether no two buffers are the same memory."""

    def __init__(self, module: ir.Module, name: str, kernel: Kernel, options: RenderOptions,
                 is_apart: bool = False):
        self.tile = kernel.tile
        kernel.tile, kernel.others, kernel.far = None, (), ()
        kernel.grain = 1
        super().__init__(module, name, kernel, options)
        self.inlines_math, self.is_apart = self.math_calls <= self.tuning.most_inlined_calls, is_apart
        self.buffers = sorted(list_buffers([kernel]), key=lambda buffer: buffer.name)
        self.functions: list[Function] = []
        self.scratch: list[Buffer] = []  # what the functions of this kernel hand on to each other
        table = SizeTable()
        format_kernel(kernel, table.name, repr, repr)
        for statement in flatten([kernel]):
            if isinstance(statement, Loop):
                table.name(statement.axis.extent)
        self.sizes = list(table.slots)

    def render(self) -> list[Function]:
        """Functions in the order in which they run."""
        split = find_split(self.kernel)
        if split is None:
            for number, (guard, kernel) in enumerate(list_parts(self.kernel)):
                suffix = f"_{number}" if number else ""
                if guard is not None or not self._render_alone(suffix, kernel):
                    self.render_items(suffix, kernel, guard)
        else:
            self._render_split_scan(*split)
        return self.functions

    def begin(self, suffix: str, mapping: Mapping, grid: int | None = None,
              more: Sequence[Buffer] = ()) -> KernelEmitter:
        """Opens a function. grid: blocks of threads, if not the mapping's. more: buffers of its own."""
        name, buffers = f"{self.name}{suffix}", [*self.buffers, *more]
        grid = mapping.grid if grid is None else grid
        self.functions.append(Function(name, buffers, self.sizes, mapping, grid))
        e = KernelEmitter(self.module, name, buffers, self.sizes, self.options, self.contraction,
                          self.is_apart)
        e.inlines_math, e.written = self.inlines_math, self.written
        e.limit_registers(mapping.block)
        return e

    # -- items --------------------------------------------------------------------------------------------
    def render_items(self, suffix: str, part: Kernel, guard: tuple[Expr, bool] | None) -> None:
        """guard: a condition, and whether it has to hold for the kernel to run."""
        mapping = map_kernel(part, self.tuning, self.vector_bytes)
        if mapping.items == 0:
            return
        if mapping.is_across:
            mapping = lay_out_columns(mapping, self.vector_bytes, self.tuning)
        e = self.begin(suffix, mapping)
        if mapping.row is not None:
            e.limit_registers(mapping.block, max(mapping.row.threads // mapping.block, 1))
        self.is_atomic = mapping.kind == "flat" and any(map(can_add_atomically, (self.kernel, part)))
        with contextlib.ExitStack() as stack:
            if guard is not None:
                condition, holds = e.expr(guard[0]), guard[1]
                stack.enter_context(e.if_then(condition if holds else e.b.not_(condition)))
            self._emit_items(e, mapping)
        e.finish()

    def _render_alone(self, suffix: str, kernel: Kernel) -> bool:
        """Whether a kernel is one of those that have rooms of their own."""
        private = find_private_updates(kernel, self.vector_bytes, self.tuning)
        if private is not None:
            render_private_updates(self, suffix, private)
            return True
        if is_ordered(kernel) and not can_add_atomically(kernel):
            updates = find_updates(kernel, self.tuning)
            if updates is not None:
                render_updates(self, updates)
            return updates is not None
        product = tiles.find_product(kernel, self.tuning)
        turned = find_turned(kernel, self.tile, self.vector_bytes, self.tuning)
        if product is not None:
            has_units = self.options.has_tensor_cores and multiplies_halves(product)
            renderer = TensorRenderer if has_units else tiles.TileRenderer
            chosen = renderer.choose_tiles(product, self.tuning)
            mapping = Mapping("tiles", (), [], block=chosen.threads, units=renderer.units)
            e = self.begin(suffix, mapping, chosen.tiling.grid)
            e.limit_registers(chosen.threads, self.tuning.product_threads // chosen.threads)
            renderer(e, product, chosen, self.emit_statements).emit()
        elif turned is not None:
            mapping = Mapping("turned", (), [], block=turned.threads)
            e = self.begin(suffix, mapping, turned.tiling.grid)
            TurnedRenderer(e, turned, self.vector_bytes, self.tuning, self.emit_statements).emit()
        else:
            return False
        e.finish()
        return True

    def _emit_items(self, e: KernelEmitter, mapping: Mapping) -> None:
        """The item of this thread."""
        b, thread, block = e.b, e.read_register("tid.x"), e.read_register("ctaid.x")
        item, divide = b.mul(block, I64(mapping.width)), b.urem if mapping.is_across else b.udiv
        item = b.add(item, divide(thread, I64(mapping.width if mapping.is_across else mapping.team)))
        counts = [e.size(loop.axis.extent) for loop in mapping.loops]
        end = counts[-1] if counts else I64(1)
        if mapping.elements > 1:
            counts[-1] = e.divide_up(end, mapping.elements)
        is_item = b.icmp_signed("<", item, e.multiply(counts))
        if mapping.is_across or any(loop.bounds for loop in mapping.loops):
            item = b.select(is_item, item, I64(0))  # what is read before it is known to be none is there
        e.place_axes([loop.axis for loop in mapping.loops], item, mapping.items, counts)
        self.shared = {}
        for loop in mapping.loops:
            low, high = e.range_of(loop, loop.axis)
            self.shared[loop.axis] = low
            if loop.bounds:
                inside = b.and_(b.icmp_signed("<=", low, e.axis_values[loop.axis]),
                                b.icmp_signed("<", e.axis_values[loop.axis], high))
                is_item = b.and_(is_item, inside)
        if mapping.is_across:
            return self._emit_columns(e, mapping, thread, is_item)
        if mapping.elements > 1:
            return self._emit_lanes(e, mapping, is_item, end)
        team = Team(e, mapping.team, thread) if mapping.team > 1 else None
        with e.if_then(is_item):
            if team is None:
                self.emit_statements(e, mapping.body)
            else:
                self.run_shared(e, team, mapping.body, mapping.row)

    def _emit_columns(self, e: KernelEmitter, mapping: Mapping, thread: ir.Value, is_item: ir.Value) -> None:
        """Items side by side, of threads that lie apart."""
        axis, lanes = mapping.loops[-1].axis, mapping.elements
        e.axis_values[axis] = e.b.mul(e.axis_values[axis], I64(lanes))
        parts = [part for s in mapping.body if isinstance(s, Reduce) for part in s.parts]
        found = [expr.dtype.itemsize + op.startswith("arg") * dtypes.int64.itemsize for _, op, expr in parts]
        team = Team(e, mapping.team, thread, mapping.width, is_item, lanes * max(found, default=0))
        with e.in_lanes(axis, lanes):
            self.run_shared(e, team, mapping.body)

    def _emit_lanes(self, e: KernelEmitter, mapping: Mapping, is_item: ir.Value, end: ir.Value) -> None:
        """Several elements of the last loop; what is left at its end one by one."""
        b, axis, lanes = e.b, mapping.loops[-1].axis, mapping.elements
        first = b.mul(e.axis_values[axis], I64(lanes))
        past, is_even = b.add(first, I64(lanes)), int(axis.extent) % lanes == 0
        is_whole = is_item if is_even else b.and_(is_item, b.icmp_signed("<=", past, end))
        with e.if_then(is_whole), e.in_lanes(axis, lanes):
            e.axis_values[axis] = first
            self.emit_statements(e, mapping.body)
        if is_even:
            return
        with e.if_then(b.and_(is_item, b.icmp_signed(">", past, end))), e.for_range(first, end) as i:
            e.axis_values[axis] = i
            self.emit_statements(e, mapping.body)

    # -- scans --------------------------------------------------------------------------------------------
    def _render_split_scan(self, columns: list[Axis], scan: Scan) -> None:
        """The totals of pieces; for each piece what comes before it; each piece from there."""
        loops, _ = peel(self.kernel.body)
        totals, before = scan.block_results
        parts, numbers, size = Partials(columns), Loop(Axis(totals.shape[0]), []), self.tuning.piece_team
        whole = Mapping("finish", tuple(loops), [], size, 1, size)
        pieces = whole._replace(kind="pieces", loops=(*loops, numbers))
        if has_columns(self.kernel):
            team = self.tuning.column_team
            pieces = Mapping("columns", (numbers, *loops), [], team, 1, WARP * team)
        if pieces.items == 0:
            return
        e, team = self._begin_team("_pieces", pieces)
        reduce, number = block_totals(scan, columns), e.axis_values[numbers.axis]
        self.combine_range(e, team, reduce, *find_blocks(e, scan)(number))
        with e.if_then(team.is_first()):
            parts.write(e, totals, number, e.results[reduce.parts[0][0]])
        e.finish()

        e, team = self._begin_team("_before", whole)
        self._scan_totals(e, team, scan, parts)
        e.finish()

        e, team = self._begin_team("_scan", pieces)
        number = e.axis_values[numbers.axis]
        low, high = find_blocks(e, scan)(number)
        if scan.reverse:  # positions count from the end
            extent = e.size(scan.axis.extent)
            low, high = e.b.sub(extent, high), e.b.sub(extent, low)
        length = min(int(scan.axis.extent), int(scan.block))
        self.share_scan(e, team, scan, low, high, length, parts.read(e, before, number))
        e.finish()

    def _begin_team(self, suffix: str, mapping: Mapping) -> tuple[KernelEmitter, Team]:
        """A function with a block of threads for each item, or for so many items side by side."""
        e = self.begin(suffix, mapping)
        thread, item, is_item = e.read_register("tid.x"), e.read_register("ctaid.x"), None
        if mapping.is_across:
            item = e.b.add(e.b.mul(item, I64(mapping.width)), e.b.urem(thread, I64(mapping.width)))
            is_item = e.b.icmp_signed("<", item, I64(mapping.items))
            item = e.b.select(is_item, item, I64(0))
        e.place_axes([loop.axis for loop in mapping.loops], item, mapping.items)
        across, room = (mapping.width, dtypes.complex128.itemsize) if mapping.is_across else (0, 0)
        return e, Team(e, mapping.team, thread, across, is_item, room)

    def _scan_totals(self, e: KernelEmitter, team: Team, scan: Scan, parts: Partials) -> None:
        """What comes before each piece, from the totals of the pieces."""
        b, dtype, (totals, before) = e.b, scan.value.dtype, scan.block_results
        identity, count = element_constant(dtype, scan_start_of(scan.op, dtype)), e.size(totals.shape[0])

        def place(i):
            return b.sub(b.sub(count, I64(1)), i) if scan.reverse else i

        def read(number):
            return [parts.read(e, totals, place(number))]

        def note(number, values):
            following = b.add(number, I64(1))
            with e.if_then(b.icmp_signed("<", following, count)):
                parts.write(e, before, place(following), *values)

        with e.if_then(team.is_first()):
            parts.write(e, before, place(I64(0)), identity)
        scan_tiles(team, scan.op, dtype, read, note, I64(0), count, None, int(totals.shape[0]), 1,
                   self.tuning.scan_elements)
