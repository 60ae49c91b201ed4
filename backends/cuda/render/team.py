"""Threads that share an item: what each finds is combined, in one order.

In: the emitter of a kernel, and values of each thread. Out: instructions: shuffles within a warp, shared
memory and barriers between warps. The order of combination depends on sizes alone, so results have the same
bits in each run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.gpu.mapping import WARP
from jitcore.backends.llvm.accumulator import Accumulator
from jitcore.backends.llvm.registers import I1, I8, I32, I64, Pair, choose, element_constant, map_parts
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.monoids import scan_start_of


class Team:
    """size: how many threads. thread: this one's number in the block. is_across: whether the team's threads
    lie a warp apart, one of each warp. active: whether the item is one; None where it always is."""

    def __init__(self, e: KernelEmitter, size: int, thread: ir.Value, is_across: bool = False,
                 active: ir.Value | None = None):
        self.e, self.size, self.thread = e, size, thread
        self.is_across, self.active = is_across, active
        b = e.b
        self.lane = b.urem(thread, I64(WARP))
        self.warp = b.udiv(thread, I64(WARP))
        self.rank = self.warp if is_across else b.urem(thread, I64(size))
        self.members = I32(-1)  # of the warp, the threads that belong to the team, as bits
        if self.is_in_warp and size < WARP:
            self.members = b.shl(I32((1 << size) - 1), b.trunc(b.sub(self.lane, self.rank), I32))

    @property
    def is_in_warp(self) -> bool:
        return not self.is_across and self.size <= WARP

    def is_first(self) -> ir.Value:
        first = self.e.b.icmp_signed("==", self.rank, I64(0))
        return first if self.active is None else self.e.b.and_(first, self.active)

    def synchronize(self) -> None:
        """What threads of the team have written before can be read behind this."""
        if self.size == 1:
            return
        if self.is_in_warp:
            self.e.synchronize_warp(self.members)
        else:
            self.e.synchronize_block()

    def share(self, start: ir.Value, stop: ir.Value) -> AbstractContextManager[ir.Value]:
        """A loop over the iterations in [start, stop) that are this thread's."""
        b = self.e.b
        stop = stop if self.active is None else b.select(self.active, stop, start)
        return self.e.for_range(b.add(start, self.rank), stop, I64(self.size))

    # -- reductions ---------------------------------------------------------------------------------------
    def combine(self, found: Accumulator) -> ir.Value | Pair:
        """The result of a reduction, of which each thread has found a part; every thread gets it."""
        if self.size == 1:
            return found.read()
        if not found.tracks_index:
            return self._combine([found.read()], [found.dtype], found.merge_parts)[0]
        kinds = [found.dtype, dtypes.int64]
        _, index = self._combine([*found.read_extreme()], kinds, found.merge_parts)
        return emit_operation(self.e.b, "convert", [dtypes.int64], found.result.dtype, [index])

    def _combine(self, values: list, kinds: list, merge: Callable) -> list:
        if self.is_across:
            return self._combine_across(values, kinds, merge)
        values = self._combine_lanes(values, min(self.size, WARP), merge)
        if self.is_in_warp:
            return values
        b, warps = self.e.b, self.size // WARP
        slots = [Slots(self.e, kind, warps) for kind in kinds]
        with self.e.if_then(b.icmp_signed("==", self.lane, I64(0))):
            self._write(slots, self.warp, values)
        self.e.synchronize_block()
        # every warp combines what all warps have found, in each of its groups of so many lanes
        place = b.urem(self.lane, I64(warps))
        return self._combine_lanes([slot.read(b, place) for slot in slots], warps, merge, I32(-1))

    def _combine_lanes(self, values: list, width: int, merge: Callable,
                       members: ir.Value | None = None) -> list:
        """The values of so many lanes side by side; each of them gets the result."""
        members, distance = self.members if members is None else members, width // 2
        while distance:
            others = [self.e.shuffle(value, "bfly", members, distance) for value in values]
            values, distance = merge(values, others), distance // 2
        return values

    def _combine_across(self, values: list, kinds: list, merge: Callable) -> list:
        e = self.e
        slots = [Slots(self.e, kind, self.size * WARP) for kind in kinds]
        self._write(slots, self.thread, values)
        e.synchronize_block()
        total = None
        for number in range(self.size):
            place = e.b.add(self.lane, I64(number * WARP))
            held = [slot.read(e.b, place) for slot in slots]
            total = held if total is None else merge(total, held)
        return total

    # -- scans --------------------------------------------------------------------------------------------
    def scan(self, op: str, dtype, value: ir.Value | Pair, slots: Slots | None) -> tuple:
        """(this thread's value combined with those of the threads before it, the combination of all). slots:
        shared memory of as many elements as there are warps, if there are several."""
        start = element_constant(dtype, scan_start_of(op, dtype))
        merge = functools.partial(_merge, self.e.b, op, dtype)

        def scan_lanes(value, width, members):
            distance = 1
            while distance < width:
                other = self.e.shuffle(value, "up", members, distance)
                lane = self.lane if width == WARP else self.e.b.urem(self.lane, I64(width))
                has_one = self.e.b.icmp_signed(">=", lane, I64(distance))
                value = choose(self.e.b, has_one, merge(other, value), value)
                distance *= 2
            return value

        b, width = self.e.b, min(self.size, WARP)
        value = scan_lanes(value, width, self.members)
        if self.is_in_warp:
            last = b.trunc(b.add(b.sub(self.lane, self.rank), I64(width - 1)), I32)
            return value, self.e.shuffle(value, "idx", self.members, last)
        warps = self.size // WARP
        with self.e.if_then(b.icmp_signed("==", self.lane, I64(WARP - 1))):
            slots.write(b, self.warp, value)
        self.e.synchronize_block()
        held = self.e.stack_slot(start)
        with self.e.if_then(b.icmp_signed("<", self.lane, I64(warps))):
            self.e.write_slot(held, slots.read(b, self.lane))
        totals = self.e.read_slot(held)
        self.e.synchronize_block()  # they are written again in the next round
        totals = scan_lanes(totals, WARP, I32(-1))
        before = self.e.shuffle(totals, "idx", I32(-1), b.trunc(b.sub(self.warp, I64(1)), I32))
        is_later = b.icmp_signed(">", self.warp, I64(0))
        value = choose(b, is_later, merge(before, value), value)
        return value, self.e.shuffle(totals, "idx", I32(-1), I32(warps - 1))

    def scan_range(self, op: str, dtype, start: ir.Value, stop: ir.Value, before: ir.Value | Pair | None,
                   read: Callable, note: Callable) -> None:
        """A scan of the places [start, stop), a round of the team at a time. before: the combination of what
        comes before; None for nothing. read(place): its value. note(place, exists, combine): for the place of
        each thread; `combine()` is the value up to it."""
        e, b = self.e, self.e.b
        identity = element_constant(dtype, scan_start_of(op, dtype))
        total, own = e.stack_slot(identity if before is None else before), e.stack_slot(identity)
        slots, merge = self.share_totals(dtype), functools.partial(_merge, b, op, dtype)

        with e.for_range(start, stop, I64(self.size)) as first:
            place = b.add(first, self.rank)
            exists = b.icmp_signed("<", place, stop)
            e.write_slot(own, identity)
            with e.if_then(exists):
                e.write_slot(own, read(place))
            value, last = self.scan(op, dtype, e.read_slot(own), slots)
            old = e.read_slot(total)
            note(place, exists, lambda: merge(old, value))
            e.write_slot(total, merge(old, last))

    # -- shared memory ------------------------------------------------------------------------------------
    def share_totals(self, dtype) -> Slots | None:
        """What `scan` needs."""
        return None if self.is_in_warp else Slots(self.e, dtype, self.size // WARP)

    def _write(self, slots: list[Slots], place: ir.Value, values: list) -> None:
        for slot, value in zip(slots, values):
            slot.write(self.e.b, place, value)


def _merge(b: ir.IRBuilder, op: str, dtype, x: ir.Value | Pair, y: ir.Value | Pair) -> ir.Value | Pair:
    return emit_operation(b, op, [dtype, dtype], dtype, [x, y], inline=False)


class Slots:
    """Shared memory of a block of threads: so many elements of a dtype."""

    def __init__(self, e: KernelEmitter, dtype, count: int):
        self._arrays = map_parts(lambda part: _define(e, part.type, count), element_constant(dtype, 0))

    def write(self, b: ir.IRBuilder, place: ir.Value, value: ir.Value | Pair) -> None:
        def store(part, array):
            kind = array.type.pointee.element
            b.store(part if part.type == kind else b.zext(part, kind), b.gep(array, [I64(0), place]))

        map_parts(store, value, self._arrays)

    def read(self, b: ir.IRBuilder, place: ir.Value) -> ir.Value | Pair:
        def load(array):
            value = b.load(b.gep(array, [I64(0), place]))
            return b.trunc(value, I1) if array.is_bool else value

        return map_parts(load, self._arrays)


def _define(e: KernelEmitter, kind: ir.Type, count: int) -> ir.GlobalVariable:
    variable = e.share(I8 if kind == I1 else kind, count)
    variable.is_bool = kind == I1
    return variable
