"""Rendering of a kernel in tiles: operands that lie across the lanes are read in whole registers too.

In: the loop over the rows of `Kernel.tile` around the one over its columns, which run in lanes, and a range
of rows. Out: instructions. Within a tile, an operand whose neighbours in memory lie along the rows is read
along them, one register for each column, and the square is transposed by shuffles. Tiles begin where memory
begins a cache line, for reads and for writes, and bands of them are narrow enough to stay in the cache.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.render.fetch import prefetch
from jitcore.backends.cpu.render.vector_loops import LINE_BYTES
from jitcore.backends.llvm.complex_ops import separate
from jitcore.backends.llvm.registers import (I1, I32, I64, POINTER, constant, iota, memory_type, part_dtype,
                                             shuffle, splat, widen)
from jitcore.backends.llvm.statements import count_calls
from jitcore.loopir.expr import Buffer, Expr, Index, walk
from jitcore.loopir.program import Loop
from jitcore.loopir.traversal import list_roots
from jitcore.schedule.nest import is_across
from jitcore.schedule.tuning import Tuning

# What the processor exchanges fastest within: pieces of registers of this many bytes.
SEGMENT_BYTES = 16


def emit_tiles(kernel, e, loop: Loop, start: ir.Value, stop: ir.Value) -> None:
    """The rows [start, stop) of a kernel in tiles. kernel: its `KernelRenderer`; loop: that over the rows."""
    tiling = _Tiling(kernel, e, loop, start, stop)
    kernel.hoist(e, tiling.body, set(kernel.kernel.tile))
    tiling.run()


class _Tiling:
    """The tiles of one loop nest."""

    def __init__(self, kernel, e, loop: Loop, start: ir.Value, stop: ir.Value):
        self.kernel, self.e, self.start, self.stop = kernel, e, start, stop
        self.rows, self.columns = kernel.kernel.tile
        self.body = loop.body[0].body
        self.column_start, self.column_stop = e.range_of(loop.body[0], self.columns)
        nodes = walk(list_roots(self.body))
        loads = [node for node in nodes if node.op == "load"]
        self.crossing = [node for node in loads
                         if is_across(node.attr[1], self.rows, self.columns, Tuning.short)]
        self.straight = [node.attr for node in loads if self._goes_straight(node.attr[1])]
        self.lanes = self._count_lanes({node.attr[0] for node in loads} | {s.buffer for s in self.body})
        read = {kernel.table[node.attr[0]] for node in loads}
        self.may_repeat = read.isdisjoint(kernel.table[store.buffer] for store in self.body)
        is_plain = not count_calls(nodes)
        self.is_short = is_plain and len(nodes) <= self.e.tuning.max_unrolled_nodes
        self.scratch: dict[Expr, ir.Value] = {}

    def _goes_straight(self, index: Index) -> bool:
        """Whether each row reads a stretch of memory of its own along the lanes."""
        return (index.coefficient(self.columns) == 1 and self.rows in index.axes()
                and not index.exprs)

    def _count_lanes(self, buffers: set[Buffer]) -> int:
        widest = max(buffer.dtype.itemsize for buffer in buffers)
        return max(2, min(self.e.tuning.max_tile_lanes, self.e.vector_bytes // widest))

    # -- the loops over tiles -----------------------------------------------------------------------------
    def run(self) -> None:
        """Bands of rows; in a band one stretch of columns after the other; in a stretch the tiles below each
        other."""
        e, b, lanes = self.e, self.e.b, I64(self.lanes)
        read, written = self.crossing[0].attr[0], self.body[0].buffer
        band = self._choose_band(*self.crossing[0].attr)
        first = b.sub(self.start, b.and_(b.add(self.start, self._phase(read)), I64(self.lanes - 1)))
        lead = b.and_(b.add(self.column_start, self._phase(written)), I64(self.lanes - 1))
        first_column = b.sub(self.column_start, lead)

        def run_stretch(column, low):
            high = b.add(low, band)
            high = b.select(b.icmp_signed("<", high, self.stop), high, self.stop)
            e.loop(low, high, lanes, lambda row: self._run_tile(row, column))

        def run_band(low):
            e.loop(first_column, self.column_stop, lanes, lambda column: run_stretch(column, low))

        e.loop(first, self.stop, band, run_band)

    def _choose_band(self, buffer: Buffer, index: Index) -> ir.Value:
        """Rows that are written before the next columns: those of one cache line of the operand, where tiles
        then read whole lines; of two lines where columns begin at several places of a line, since tiles next
        to each other share lines. More of them would be too many arrays' rows at a time for the cache."""
        b, size = self.e.b, buffer.dtype.itemsize
        step = b.mul(self.e.size(index.coefficient(self.columns)), I64(size))
        is_even = b.icmp_unsigned("==", b.and_(step, I64(LINE_BYTES - 1)), I64(0))
        one, two = (I64(max(self.lanes, lines * LINE_BYTES // size)) for lines in (1, 2))
        return b.select(is_even, one, two)

    def _clamp(self, first: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
        """A tile that is partly outside of [low, high) moved inside where there is room: elements computed
        twice take less time than stores of some lanes."""
        b = self.e.b
        last = b.sub(high, I64(self.lanes))
        moved = b.select(b.icmp_signed("<", first, low), low, first)
        moved = b.select(b.icmp_signed(">", moved, last), last, moved)
        return b.select(b.icmp_signed(">=", last, low), moved, first)

    def _phase(self, buffer: Buffer) -> ir.Value:
        """How many elements the array's first one lies after an address where tiles begin."""
        b, size = self.e.b, buffer.dtype.itemsize
        number = b.udiv(b.ptrtoint(self.e.pointer_of(buffer), I64), I64(size))
        return b.and_(number, I64(self.lanes - 1))

    def _run_tile(self, row: ir.Value, column: ir.Value) -> None:
        e, b, lanes = self.e, self.e.b, I64(self.lanes)
        if self.may_repeat:
            row = self._clamp(row, self.start, self.stop)
            column = self._clamp(column, self.column_start, self.column_stop)
        fits = [b.icmp_signed(">=", row, self.start), b.icmp_signed("<=", b.add(row, lanes), self.stop),
                b.icmp_signed(">=", column, self.column_start),
                b.icmp_signed("<=", b.add(column, lanes), self.column_stop)]
        is_whole = b.and_(b.and_(fits[0], fits[1]), b.and_(fits[2], fits[3]))
        whole, edge, after = (e.function.append_basic_block(name) for name in ("whole", "edge", "tiled"))
        b.cbranch(is_whole, whole, edge)
        for block, masked in ((whole, False), (edge, True)):
            b.position_at_end(block)
            saved, e.values = e.values, dict(e.values)
            self._fill_tile(row, column, masked)
            e.values, e.mask = saved, None
            b.branch(after)
        b.position_at_end(after)

    # -- one tile -----------------------------------------------------------------------------------------
    def _fill_tile(self, row: ir.Value, column: ir.Value, masked: bool) -> None:
        """All stores of a tile. masked: some of its rows or columns are not the kernel's."""
        e, b, lanes = self.e, self.e.b, self.lanes
        e.axis_values[self.rows], e.axis_values[self.columns] = row, column
        squares = [self._read_square(node, row, column, masked) for node in self.crossing]
        e.vector_axis, e.lanes = self.columns, lanes
        if masked:
            e.mask = self._in_range(column, self.column_start, self.column_stop)
        self.kernel.hoist(e, self.body, {self.rows})
        if self.is_short and not masked:
            for number in range(lanes):
                self._write_row(b.add(row, I64(number)), [square[number] for square in squares])
                self._fetch_row(b.add(row, I64(number)))
        else:
            places = [self._keep_square(*pair) for pair in zip(self.crossing, squares)]
            end = b.add(row, I64(lanes))
            low = b.select(b.icmp_signed(">", row, self.start), row, self.start)
            high = b.select(b.icmp_signed("<", end, self.stop), end, self.stop)
            e.loop(low, high, I64(1), lambda i: self._write_row(
                i, [b.load(b.gep(place, [b.sub(i, row)])) for place in places]))
        e.vector_axis, e.lanes = None, 1

    def _write_row(self, row: ir.Value, registers: list[ir.Value]) -> None:
        e = self.e
        saved, e.values = e.values, dict(e.values)
        e.axis_values[self.rows] = row
        for node, register in zip(self.crossing, registers):
            e.values[id(node)] = self._as_element(node.dtype, register)
        self.kernel.emit_statements(e, self.body)
        e.values = saved

    def _fetch_row(self, row: ir.Value) -> None:
        """Asks for what a later tile reads of a row along the lanes."""
        e, b = self.e, self.e.b
        saved, e.values, lanes, e.lanes = e.values, dict(e.values), e.lanes, 1
        e.axis_values[self.rows] = row
        for buffer, index in self.straight:
            ahead = I64(self.e.tuning.lines_ahead * LINE_BYTES // buffer.dtype.itemsize)
            place = b.gep(e.element_pointer(buffer), [b.add(e.index(index), ahead)])
            prefetch(b, b.bitcast(place, POINTER), is_write=False)
        e.values, e.lanes = saved, lanes

    def _as_element(self, dtype, register: ir.Value):
        if dtype.kind == "c":
            return separate(self.e.b, register)
        return self.e.b.trunc(register, widen(I1, self.lanes)) if dtype == dtypes.bool_ else register

    def _in_range(self, first: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
        """Which of the numbers first, first + 1, ... lie in [low, high)."""
        b, lanes = self.e.b, self.lanes
        numbers = b.add(splat(b, first, lanes), iota(lanes))
        return b.and_(b.icmp_signed(">=", numbers, splat(b, low, lanes)),
                      b.icmp_signed("<", numbers, splat(b, high, lanes)))

    # -- operands across the lanes ------------------------------------------------------------------------
    def _read_square(self, node: Expr, row: ir.Value, column: ir.Value, masked: bool) -> list[ir.Value]:
        """The operand's elements of a tile, a register for each row; parts of a number side by side."""
        e, b, (buffer, index) = self.e, self.e.b, node.attr
        parts, kind = (2 if buffer.dtype.kind == "c" else 1), memory_type(part_dtype(buffer.dtype))
        whole = ir.VectorType(kind, parts * self.lanes)
        start, step = e.index(index), e.size(index.coefficient(self.columns))
        in_rows = self._in_range(row, self.start, self.stop) if masked else None
        registers = []
        for number in range(self.lanes):
            position = b.add(start, b.mul(step, I64(number)))
            first = b.bitcast(b.gep(e.element_pointer(buffer), [position]), kind.as_pointer())
            align = buffer.dtype.itemsize // parts
            if not masked:
                registers.append(b.load(b.bitcast(first, whole.as_pointer()), align=align))
                continue
            is_column = self._is_column(b.add(column, I64(number)))
            lanes = b.and_(in_rows, splat(b, is_column, self.lanes))
            lanes = shuffle(b, lanes, lanes, [k // parts for k in range(parts * self.lanes)])
            zeros = constant(whole, 0)
            registers.append(e.call_masked("load", [first, I32(align), lanes, zeros]))
        return transpose(b, registers, parts, buffer.dtype.itemsize)

    def _is_column(self, column: ir.Value) -> ir.Value:
        b = self.e.b
        is_after = b.icmp_signed(">=", column, self.column_start)
        return b.and_(is_after, b.icmp_signed("<", column, self.column_stop))

    def _keep_square(self, node: Expr, registers: list[ir.Value]) -> ir.Value:
        """Memory from which a loop reads the rows of an operand."""
        e, kind = self.e, registers[0].type
        if node not in self.scratch:
            self.scratch[node] = e.prologue.alloca(kind, size=I32(self.lanes))
        for number, register in enumerate(registers):
            e.b.store(register, e.b.gep(self.scratch[node], [I64(number)]))
        return self.scratch[node]


def transpose(b: ir.IRBuilder, registers: list[ir.Value], parts: int, itemsize: int) -> list[ir.Value]:
    """Lane i of register k becomes lane k of register i. As many registers as lanes, a power of two.

    parts: lanes of LLVM's vector that make one lane. Each step moves one bit of the register's number into
    the lane's number: inside of segments by weaving registers, then whole segments."""
    lanes = len(registers)
    segment = max(1, min(lanes, SEGMENT_BYTES // itemsize))
    distance = segment // 2
    while distance:
        halves = [[lane // segment * segment + half * segment // 2 + lane % segment // 2 + lane % 2 * lanes
                   for lane in range(lanes)] for half in range(2)]
        registers = _exchange(b, registers, distance, [_spread(places, parts) for places in halves])
        distance //= 2
    distance = segment
    while distance < lanes:
        halves = [[(2 * (lane // segment) + half) * segment + lane % segment for lane in range(lanes)]
                  for half in range(2)]
        registers = _exchange(b, registers, distance, [_spread(places, parts) for places in halves])
        distance *= 2
    return registers


def _exchange(b: ir.IRBuilder, registers: list, distance: int, halves: list[list[int]]) -> list:
    """Pairs of registers at a distance, each pair shuffled into two. halves: places for the first, second."""
    result = list(registers)
    for low in range(len(registers)):
        if not low & distance:
            pair = registers[low], registers[low + distance]
            result[low], result[low + distance] = (shuffle(b, *pair, places) for places in halves)
    return result


def _spread(places, parts: int) -> list[int]:
    return [place * parts + part for place in places for part in range(parts)]
