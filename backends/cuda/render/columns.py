"""Sweeps down columns: items with sweeps inside, of which neighbours in memory belong to neighbouring items.

In: loops around reductions, loops of stores, and stores. Out: `__global__` functions. A block of threads lies
on a few rows of neighbouring columns: each thread has several columns, as many as one access takes, and every
so-manieth row, several of them on their way at a time; then the rows of the block are combined as a tree.

Where there are too few columns to fill a GPU, rows are cut into parts, each of other blocks. A part writes
what it has found, and what needs the result is another function, whose blocks first combine the parts. All
orders depend on sizes alone, so results have the same bits in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.gpu.mapping import ACCESS_BYTES, WARP, Accesses, Mapping, is_aligned, round_up
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.accumulator import Accumulator, Runs
from jitcore.backends.llvm.registers import I1, I8, I64, Pair, element_type, part_dtype, widen
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.expr import Buffer, walk
from jitcore.loopir.program import Loop, Reduce, Store
from jitcore.loopir.traversal import flatten, list_roots


class Columns(NamedTuple):
    """mapping: of one function. groups: of so many columns as a thread has; width, height: threads of a block
    along them, and along the rows. parts: of the rows."""

    mapping: Mapping
    groups: int
    width: int
    height: int
    parts: int

    @property
    def tiles(self) -> int:
        return -(-self.groups // self.width)


def find_columns(mapping: Mapping, access_bytes: int, tuning: Tuning) -> Columns | None:
    """How sweeps that are mapped to columns go by tiles; None for some that do not."""
    loops, body = mapping.loops, mapping.body
    is_fine = mapping.kind == "columns" and not any(loop.bounds for loop in loops) and all(map(_fits, body))
    if not is_fine or not mapping.items:
        return None
    lanes = _count_lanes(loops[-1], body, access_bytes, tuning)
    across = int(loops[-1].axis.extent) // lanes
    rows = max(int(axis.extent) for statement in body for axis in statement.axes)
    groups, threads = mapping.items // lanes, tuning.column_block
    width = -(-across // -(-across // WARP))  # equal tiles
    height = min(threads // width, max(1, rows // tuning.team_work))
    width = max(width, min(groups, threads // height))
    found = Columns(mapping, groups, width, height, 1)
    parts = min(tuning.column_blocks // found.tiles, rows // (height * tuning.team_work))
    parts = parts if parts >= tuning.least_parts else 1
    mapping = mapping._replace(team=height, elements=lanes, block=width * height)
    return found._replace(mapping=mapping, parts=parts)


def _fits(statement) -> bool:
    if isinstance(statement, Reduce):
        return len(statement.axes) == 1 and not statement.stores
    stores = statement.body if isinstance(statement, Loop) else [statement]
    return all(isinstance(s, Store) and not s.packed for s in stores)


def _count_lanes(loop: Loop, body: list, access_bytes: int, tuning: Tuning) -> int:
    """Columns of a thread: those of one access, if all accesses can have as many."""
    axis, stores = loop.axis, [s for s in flatten(body) if isinstance(s, Store)]
    if any(s.is_update or s.mask is not None or axis not in s.offset.axes() for s in stores):
        return 1
    if any(axis in end.axes for statement in body for end in statement.ends):
        return 1
    accesses = [(s.buffer, s.offset) for s in stores]
    accesses += [node.attr for node in walk(list_roots(body)) if node.op == "load"]
    accesses = [(buffer.dtype.itemsize, index) for buffer, index in accesses if axis in index.axes()]
    held = max(sum(expr.dtype.itemsize for expr in s.values) for s in body if isinstance(s, Reduce))
    lanes = min(access_bytes // max(size for size, _ in accesses), tuning.most_elements)
    while lanes > 1 and not (int(axis.extent) % lanes == 0 and lanes * held <= tuning.column_bytes
                             and all(is_aligned(index, axis, lanes) for _, index in accesses)):
        lanes //= 2
    return max(lanes, 1)


class ColumnsRenderer:
    """renderer: the `KernelRenderer`, which begins functions, and emits statements."""

    def __init__(self, renderer, columns: Columns, suffix: str):
        self.renderer, self.columns, self.suffix = renderer, columns, suffix
        self.lanes, self.batch = columns.mapping.elements, renderer.tuning.column_batch
        if renderer.math_calls:
            self.batch = 1  # they wait longer than loads
        self.found: dict[Reduce, list[list[Buffer]]] = {}  # what parts have found, by reduction and its parts

    def render(self) -> None:
        for number, stage in enumerate(self._list_stages()):
            suffix = f"{self.suffix}_{number}" if number else self.suffix
            self._render_stage(suffix, stage, self.columns.parts if _has_sweep(stage) else 1)

    def _list_stages(self) -> list[list]:
        """The statements of each function. All blocks have to be done with a reduction in parts, and with
        what others read, before it goes on."""
        if self.columns.parts == 1:
            return [self.columns.mapping.body]
        stages: list[list] = [[]]
        accesses = Accesses()
        for statement in self.columns.mapping.body:
            waits = accesses.add([statement])
            if stages[-1] and (waits or isinstance(stages[-1][-1], Reduce)):
                stages.append([])
            stages[-1].append(statement)
        return stages

    def _render_stage(self, suffix: str, stage: list, parts: int) -> None:
        renderer, c = self.renderer, self.columns
        used = {node.attr for node in walk(list_roots(stage)) if node.op == "result"}
        needed = [reduce for reduce in self.found if used.intersection(reduce.results)]
        for reduce in [s for s in stage if isinstance(s, Reduce)] if parts > 1 else ():
            self.found[reduce] = self._make_buffers(suffix, reduce)
        passed = [reduce for reduce in self.found if reduce in needed or reduce in stage]
        buffers = [one for reduce in passed for part in self.found[reduce] for one in part]
        e = self.e = renderer.begin(suffix, c.mapping, c.tiles * parts, buffers)
        self.place(parts)
        with e.in_lanes(c.mapping.loops[-1].axis, self.lanes):
            for reduce in needed:
                self._combine_parts(reduce, _has_sweep(stage))
            self._emit(stage, parts)
        e.finish()

    def place(self, parts: int) -> None:
        """Sets the axes of this thread's columns, and where it is."""
        e, b, c = self.e, self.e.b, self.columns
        thread, block = e.read_register("tid.x"), e.read_register("ctaid.x")
        self.thread = thread
        self.across, self.row = b.urem(thread, I64(c.width)), b.udiv(thread, I64(c.width))
        self.part = b.udiv(block, I64(c.tiles)) if parts > 1 else I64(0)
        tile = b.urem(block, I64(c.tiles)) if parts > 1 else block
        group = b.add(b.mul(tile, I64(c.width)), self.across)
        self.is_item = b.icmp_signed("<", group, I64(c.groups))
        self.group = e.least(group, I64(c.groups - 1))  # others read what the last one reads
        axes = [loop.axis for loop in c.mapping.loops]
        counts = e.count_iterations(axes)
        counts[-1] = e.divide_up(counts[-1], self.lanes)
        e.place_axes(axes, self.group, c.groups, counts)
        e.axis_values[axes[-1]] = b.mul(e.axis_values[axes[-1]], I64(self.lanes))
        self.renderer.shared = dict.fromkeys(axes, I64(0))
        self.memory: ir.Value | None = None

    def _emit(self, stage: list, parts: int) -> None:
        e, b, renderer, accesses = self.e, self.e.b, self.renderer, Accesses()
        is_first = b.and_(self.is_item, b.icmp_signed("==", self.row, I64(0)))
        for number, statement in enumerate(stage):
            if accesses.add([statement]):
                e.synchronize_block()
            if isinstance(statement, Store):
                is_lone = b.and_(is_first, b.icmp_signed("==", self.part, I64(0)))
                with e.if_then(is_lone):
                    renderer.emit_statement(e, statement)
                continue
            (axis,) = statement.axes
            low, high = e.range_of(statement, axis)
            if parts > 1:
                length = I64(-(-int(axis.extent) // parts))
                low = b.add(low, b.mul(self.part, length))
                high = e.least(b.add(low, length), high)
            if isinstance(statement, Reduce):
                values = self._sweep(statement, low, high, parts, _has_sweep(stage[number + 1 :]))
                if parts > 1:
                    with e.if_then(is_first):
                        self._write_parts(statement, values)
                else:
                    self._set_results(statement, values)
            else:
                self._run_loop(statement, low, high)

    def _run_loop(self, loop: Loop, low: ir.Value, high: ir.Value) -> None:
        e, renderer = self.e, self.renderer
        renderer.hoist(e, loop.body, {loop.axis})
        stop = e.b.select(self.is_item, high, low)
        with e.for_range(e.b.add(low, self.row), stop, I64(self.columns.height)) as row:
            e.axis_values[loop.axis] = row
            renderer.shared[loop.axis] = I64(0)
            renderer.emit_statements(e, loop.body)
            del renderer.shared[loop.axis]

    # -- reductions ---------------------------------------------------------------------------------------
    def _sweep(self, reduce: Reduce, low: ir.Value, high: ir.Value, parts: int, for_all: bool) -> list[list]:
        """What the block finds in the rows [low, high)."""
        e, (axis,) = self.e, reduce.axes
        self.renderer.mark_long(reduce, self.columns.height * parts)
        found = [Accumulator(self.renderer, e, reduce, part, start=low) for part in reduce.parts]
        self.renderer.hoist_roots(e, reduce.values, reduce.stores, {axis})
        runs = Runs(e, found)

        def take(rows: Sequence[ir.Value]) -> None:
            known = e.values
            for row in rows:
                e.axis_values[axis], e.values = row, dict(known)
                for accumulator in found:
                    accumulator.update()
            e.values = known
            runs.count(len(rows))

        self._share_rows(low, high, take)
        return [self._combine_rows(one, _list_kinds(part), _read(one), for_all)
                for one, part in zip(found, reduce.parts)]

    def _share_rows(self, low: ir.Value, high: ir.Value, take: Callable) -> None:
        """This thread's rows of [low, high)."""
        self.e.for_batches(self.e.b.add(low, self.row), high, self.columns.height, self.batch, take)

    def _combine_rows(self, found: Accumulator, kinds: list[np.dtype], values: list, for_all: bool) -> list:
        """The combination of what the threads of one column have found, for the first of them, or for all."""
        e, b, c = self.e, self.e.b, self.columns
        if c.height == 1:
            return values
        table = self._share(kinds)
        table.write(e, self.thread, values)
        e.synchronize_block()
        half = round_up(c.height) // 2
        while half:
            other = b.add(self.row, I64(half))
            is_mine = b.icmp_signed("<", self.row, I64(half))
            with e.if_then(b.and_(is_mine, b.icmp_signed("<", other, I64(c.height)))):
                others = table.read(e, b.add(self.thread, I64(half * c.width)))
                table.write(e, self.thread, found.merge_parts(table.read(e, self.thread), others))
            half //= 2
            if half or for_all:
                e.synchronize_block()
        return table.read(e, self.across if for_all else self.thread)

    def _share(self, kinds: list[np.dtype]) -> Table:
        """Shared memory for a value of each thread: the same for one value after the other."""
        c = self.columns
        threads = -(-c.width * c.height // WARP) * WARP  # arrays begin at multiples of an access
        sizes = [threads * self.lanes * dtype.itemsize for dtype in kinds]
        if self.memory is None:
            most = max(sum(dtype.itemsize for dtype in _list_kinds(part))
                       for s in c.mapping.body if isinstance(s, Reduce) for part in s.parts)
            self.memory = self.e.share(I8, threads * self.lanes * most)
        else:
            self.e.synchronize_block()  # all have read what is there
        places = [I64(sum(sizes[:number])) for number in range(len(sizes))]
        return Table([self.e.b.gep(self.memory, [I64(0), place]) for place in places], kinds, self.lanes)

    def _set_results(self, reduce: Reduce, values: list[list]) -> None:
        for (result, op, _), found in zip(reduce.parts, values):
            if op.startswith("arg"):
                found = [emit_operation(self.e.b, "convert", [dtypes.int64], result.dtype, [found[1]])]
            self.e.results[result] = found[0]

    # -- parts --------------------------------------------------------------------------------------------
    def _make_buffers(self, suffix: str, reduce: Reduce) -> list[list[Buffer]]:
        """Memory for what each part finds, for each register of each result."""
        c, name = self.columns, f"{self.renderer.name}{suffix}"
        made = [[Buffer(f"{name}_{number}_{register}", (c.parts * c.groups * self.lanes,), dtype, "temp")
                 for register, dtype in enumerate(kinds)]
                for number, kinds in enumerate(map(_list_kinds, reduce.parts))]
        self.renderer.scratch += [buffer for part in made for buffer in part]
        return made

    def _find_tables(self, reduce: Reduce) -> list[Table]:
        return [Table([self.e.pointer_of(buffer) for buffer in buffers], kinds, self.lanes)
                for buffers, kinds in zip(self.found[reduce], map(_list_kinds, reduce.parts))]

    def _find_place(self, part: ir.Value) -> ir.Value:
        return self.e.b.add(self.e.b.mul(part, I64(self.columns.groups)), self.group)

    def _write_parts(self, reduce: Reduce, values: list[list]) -> None:
        for table, found in zip(self._find_tables(reduce), values):
            table.write(self.e, self._find_place(self.part), found)

    def _combine_parts(self, reduce: Reduce, for_all: bool) -> None:
        """The results of a reduction, from what its parts have found."""
        e, values = self.e, []
        for part, table in zip(reduce.parts, self._find_tables(reduce)):
            found = Accumulator(self.renderer, e, reduce, part)
            slots = [e.stack_slot(value) for value in _read(found)]

            def take(parts: Sequence[ir.Value]) -> None:
                for others in [table.read(e, self._find_place(one)) for one in parts]:  # noqa: B023
                    merged = found.merge_parts([e.read_slot(slot) for slot in slots], others)  # noqa: B023
                    for slot, value in zip(slots, merged):  # noqa: B023
                        e.write_slot(slot, value)

            self._share_rows(I64(0), I64(self.columns.parts), take)
            values.append(self._combine_rows(found, _list_kinds(part), [e.read_slot(slot) for slot in slots],
                                             for_all))
        self._set_results(reduce, values)


def _has_sweep(statements: list) -> bool:
    return any(statement.axes for statement in statements)


def _read(found: Accumulator) -> list[ir.Value | Pair]:
    """What an accumulator has found: a value, for the position of an extreme with the place where it is."""
    return [*found.read_extreme()] if found.tracks_index else [found.read()]


def _list_kinds(part: tuple) -> list[np.dtype]:
    """The dtypes of the registers that `_read` gives for a part of a reduction."""
    _, op, expr = part
    kinds = [part_dtype(expr.dtype)] * (2 if expr.dtype.kind == "c" else 1)
    return [*kinds, dtypes.int64] if op.startswith("arg") else kinds


class Table:
    """Memory of values in lanes: an array for each of their registers. pointers: where these begin."""

    def __init__(self, pointers: Sequence[ir.Value], kinds: Sequence[np.dtype], lanes: int):
        self.pointers, self.kinds, self.lanes = pointers, kinds, lanes

    def write(self, e: KernelEmitter, place: ir.Value, values: list[ir.Value | Pair]) -> None:
        registers = [part for value in values for part in (value if isinstance(value, Pair) else (value,))]
        for register, (pointer, align) in zip(registers, self._find(e, place)):
            kind = pointer.type.pointee
            e.b.store(register if register.type == kind else e.b.zext(register, kind), pointer, align=align)

    def read(self, e: KernelEmitter, place: ir.Value) -> list[ir.Value | Pair]:
        found = [e.b.load(pointer, align=align) for pointer, align in self._find(e, place)]
        if self.kinds[0] == dtypes.bool_:
            found[0] = e.b.trunc(found[0], widen(I1, self.lanes))
        is_complex = len(found) == 2 and self.kinds[1] != dtypes.int64
        return [Pair(*found)] if is_complex else found

    def _find(self, e: KernelEmitter, place: ir.Value) -> Iterator[tuple[ir.Value, int]]:
        for pointer, dtype in zip(self.pointers, self.kinds):
            kind = widen(I8 if dtype == dtypes.bool_ else element_type(dtype), self.lanes)
            pointer = e.b.bitcast(pointer, kind.as_pointer(pointer.type.addrspace))
            yield e.b.gep(pointer, [place]), min(ACCESS_BYTES, self.lanes * dtype.itemsize)
