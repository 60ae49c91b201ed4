"""Rendering of `Scan`: running sums and their kin, in registers.

In: a `loopir.Scan` and the emitter of the function around it. Out: instructions. Along the vector axis each
register gets its prefixes by shuffles, in as many steps as the logarithm of its lanes; from register to
register goes one combination with the total so far. Across the vector axis each lane has its own total.
A long scan is done in blocks: first the total of each block, then each block from the total before it. It
goes in rounds of as many blocks as the second caches hold, so that memory is read once.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.render.stores import register_lanes
from jitcore.backends.cpu.render.vector_loops import emit_first, emit_vector, end_of_vectors
from jitcore.backends.llvm.accumulator import Partials, Runs, Total, length_of_run
from jitcore.backends.llvm.registers import (I32, I64, SIZES, choose, element_constant, join_registers,
                                             lane_count, map_parts, shuffle, splat, split_registers)
from jitcore.backends.llvm.scalar_ops import count_math_calls, emit_operation
from jitcore.loopir.monoids import scan_start_of
from jitcore.loopir.program import Scan
from jitcore.schedule.tuning import Tuning


def count_in_round(scan: Scan, threads: int) -> int:
    """Blocks of a round: those of which a third of the threads' second caches holds what is read, beside what
    is written; at least as many as each thread takes."""
    read = sum(buffer.dtype.itemsize for buffer, _ in dict.fromkeys(scan.loads))
    in_cache = host.cache_sizes().l2 // 3 // max(1, Tuning.block_work * read)
    return max(Tuning.grain_blocks, in_cache) * threads


def render_shifted(function: ir.Function) -> ir.Function:
    """The function on a range that begins elsewhere. Instead of the array of sizes it takes an array of two:
    how far the range is shifted, and the address of the sizes."""
    kind = function.function_type
    shifted = ir.Function(function.module, kind, f"{function.name}_shifted")
    shifted.linkage = "internal"
    buffers, pair, start, stop = shifted.args
    b = ir.IRBuilder(shifted.append_basic_block("entry"))
    shift, sizes = (b.load(b.gep(pair, [I64(place)])) for place in range(2))
    b.call(function, [buffers, b.inttoptr(sizes, SIZES), b.add(start, shift), b.add(stop, shift)])
    b.ret_void()
    return shifted


def emit_scan(kernel, e, scan: Scan) -> None:
    """A whole scan. kernel: the `KernelRenderer`, for hoisting and the number of lanes."""
    kernel.hoist(e, [scan], {scan.axis})
    total = RunningTotal(kernel, e, scan)
    total.sweep(I64(0), e.size(scan.axis.extent))


def emit_blocks(kernel, e, scan: Scan, first, past, parts: Partials) -> None:
    """The second phase of a scan in blocks: those of [first, past). Each starts from the totals of all blocks
    before it, combined in order, so that no result depends on how blocks are shared out."""
    b, blocks, length = e.b, e.size(scan.block_results[0].shape[0]), e.size(scan.block)
    extent, (totals, before) = e.size(scan.axis.extent), scan.block_results

    def place_of(i):
        return b.sub(b.sub(blocks, I64(1)), i) if scan.reverse else i

    def find_before():
        total = RunningTotal(kernel, e, scan)

        def add_total(i):
            total.add(parts.read(e, totals, place_of(i)))

        def note(i):
            parts.write(e, before, place_of(i), total.read())
            add_total(i)

        e.loop(I64(0), first, I64(1), add_total)
        e.loop(first, past, I64(1), note)

    def run(i):
        low = b.mul(place_of(i), length)
        end = b.add(low, length)
        high = b.select(b.icmp_signed("<", end, extent), end, extent)
        if scan.reverse:  # positions count from the end
            low, high = b.sub(extent, high), b.sub(extent, low)

        def scan_block():
            kernel.hoist(e, [scan], {scan.axis})
            total = RunningTotal(kernel, e, scan)
            total.add(parts.read(e, before, place_of(i)))
            total.sweep(low, high)

        parts.around(e, scan_block)

    if scan.reverse:
        first, past = b.sub(blocks, past), b.sub(blocks, first)
    parts.around(e, find_before)
    e.loop(first, past, I64(1), run)


class RunningTotal:
    """The combination of all that was met, in a stack slot: in every lane the same along the vector axis,
    else one for each lane. Of a long sum the slot holds the run, and `base` what came before it."""

    def __init__(self, kernel, e, scan: Scan):
        self.e, self.scan, self.dtype = e, scan, scan.value.dtype
        self.lanes = kernel.lanes_of(scan) if kernel.kernel.vector is scan.axis else 1
        # what is dear to combine is combined in as few steps as can be, many lanes in each
        is_dear = count_math_calls(scan.op, self.dtype) > 0
        self.width = e.lanes if self.lanes == 1 else self.lanes if is_dear else (
            register_lanes(e, self.lanes, self.dtype))
        self.identity = element_constant(self.dtype, scan_start_of(scan.op, self.dtype), self.width)
        self.slot = e.stack_slot(self.identity)
        self.total = self.base = None
        if scan.is_long:
            self.total, self.base = Total(e, self.identity), e.stack_slot(self.identity)
            self.run, self.goes_on = length_of_run(scan.value, is_scan=True), True

    def settle(self) -> None:
        """Ends a run."""
        e = self.e
        self.total.add(e.read_slot(self.slot))
        e.write_slot(self.slot, self.identity)
        e.write_slot(self.base, self.total.read())

    def _combine(self, x: ir.Value, y: ir.Value) -> ir.Value:
        kinds = [self.dtype, self.dtype]
        return emit_operation(self.e.b, self.scan.op, kinds, self.dtype, [x, y], inline=False)

    def add(self, value: ir.Value) -> None:
        if lane_count(value) < self.width:
            value = splat(self.e.b, value, self.width)
        self.e.write_slot(self.slot, self._combine(self.e.read_slot(self.slot), value))
        if self.total is not None:
            self.settle()

    def read(self) -> ir.Value:
        """One for each lane of the loops around the scan."""
        value = self.e.read_slot(self.slot if self.base is None else self.base)
        if self.lanes == 1:
            return value
        return map_parts(lambda part: self.e.b.extract_element(part, I32(0)), value)

    def update(self) -> None:
        """The current position: its value, combined with those before it, stored."""
        e, scan = self.e, self.scan
        value = self._combine(e.read_slot(self.slot), e.expr_in_lanes(scan.value))
        e.write_slot(self.slot, value)
        e.store(scan.buffer, scan.offset, self._add_base(value))

    def _add_base(self, value):
        return value if self.base is None else self._combine(self.e.read_slot(self.base), value)

    def sweep(self, start: ir.Value, stop: ir.Value) -> None:
        """The positions [start, stop), counted from the end in a reversed scan."""
        if self.lanes > 1:
            self._sweep_in_lanes(start, stop)
            return
        e, scan = self.e, self.scan
        extent = e.size(scan.axis.extent)

        def run(i):
            e.axis_values[scan.axis] = e.b.sub(e.b.sub(extent, i), I64(1)) if scan.reverse else i
            self.update()

        if e.can_unroll(scan.axis, scan):
            numbers = range(scan.axis.extent)
            e.unroll(scan.axis, numbers[::-1] if scan.reverse else numbers, self.update)
        else:
            self._loop(start, stop, I64(1), run)

    def _loop(self, start: ir.Value, stop: ir.Value, step: ir.Value, body) -> None:
        Runs(self.e, [self]).loop(start, stop, step, body)

    def _sweep_in_lanes(self, start: ir.Value, stop: ir.Value) -> None:
        e, b, lanes, scan = self.e, self.e.b, self.lanes, self.scan
        extent, end = e.size(scan.axis.extent), end_of_vectors(e, start, stop, lanes)

        def run(i):
            low = b.sub(b.sub(extent, i), I64(lanes)) if scan.reverse else i
            emit_vector(e, scan.axis, low, lanes, self._advance)

        def run_rest():
            low = b.sub(extent, stop) if scan.reverse else end
            emit_first(e, scan.axis, low, b.sub(stop, end), lanes, self._advance)

        self._loop(start, end, I64(lanes), run)
        e.when(b.icmp_signed("<", end, stop), run_rest)

    def _advance(self) -> None:
        """One vector of lanes: values, prefixes of each register, total before it, stores."""
        e, b, scan = self.e, self.e.b, self.scan
        value = e.expr_in_lanes(scan.value)
        if e.mask is not None:
            identity = element_constant(self.dtype, scan_start_of(scan.op, self.dtype), self.lanes)
            value = choose(b, e.mask, value, identity)
        registers = split_registers(b, value, self.width)
        last, before, found = 0 if scan.reverse else self.width - 1, None, []
        for register in reversed(registers) if scan.reverse else registers:
            prefixes = self._scan_register(register)
            prefixes = prefixes if before is None else self._combine(before, prefixes)
            before = shuffle(b, prefixes, prefixes, [last] * self.width)
            found.append(prefixes)
        first = e.read_slot(self.slot)
        e.write_slot(self.slot, self._combine(first, before))
        first = self._add_base(first)
        results = [self._combine(first, prefixes) for prefixes in found]
        e.store(scan.buffer, scan.offset, join_registers(b, results[::-1] if scan.reverse else results))

    def _scan_register(self, register: ir.Value) -> ir.Value:
        """Each lane combined with those before it (after it, in a reversed scan)."""
        width, distance = self.width, 1
        while distance < width:
            shift = distance if self.scan.reverse else -distance
            places = [lane + shift if 0 <= lane + shift < width else width + lane for lane in range(width)]
            register = self._combine(shuffle(self.e.b, register, self.identity, places), register)
            distance *= 2
        return register
