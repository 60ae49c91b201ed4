"""Threads that share an item: what each finds is combined, in one order.

In: the emitter of a kernel, and values of each thread. Out: instructions: shuffles within a warp, shared
memory and barriers between warps. The order of combination depends on sizes alone, so results have the same
bits in each run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.gpu.mapping import ACCESS_BYTES, WARP, round_up
from jitcore.backends.llvm.accumulator import Accumulator
from jitcore.backends.llvm.registers import (I1, I8, I32, I64, Pair, choose, element_constant, lane_count,
                                             map_parts, widen)
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.monoids import scan_start_of


class Team:
    """size: how many threads. thread: this one's number in the block. across: how far apart the team's
    threads lie, where those side by side belong to other teams; else 0. active: whether the item is one; None
    where it always is. room: bytes of each thread by which teams across combine what they have found.

    Attributes:
        tells_all: whether each thread needs what is combined, or the first one alone."""

    def __init__(self, e: KernelEmitter, size: int, thread: ir.Value, across: int = 0,
                 active: ir.Value | None = None, room: int = 0):
        self.e, self.size, self.thread = e, size, thread
        self.across, self.active, self.room, self.tells_all = across, active, room, False
        b = e.b
        if across:
            self.column, self.rank = b.urem(thread, I64(across)), b.udiv(thread, I64(across))
            self._memory: ir.Value | None = None
            return
        self.lane = b.urem(thread, I64(WARP))
        self.warp = b.udiv(thread, I64(WARP))
        self.rank = b.urem(thread, I64(size))
        self.members = I32(-1)  # of the warp, the threads that belong to the team, as bits
        if self.is_in_warp and size < WARP:
            self.members = b.shl(I32((1 << size) - 1), b.trunc(b.sub(self.lane, self.rank), I32))

    @property
    def is_in_warp(self) -> bool:
        return not self.across and self.size <= WARP

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
        if self.across:
            return self._combine_across(values, kinds, merge)
        values = self.combine_lanes(values, min(self.size, WARP), merge)
        if self.is_in_warp:
            return values
        b, warps = self.e.b, self.size // WARP
        slots = [Slots(self.e, kind, warps) for kind in kinds]
        with self.e.if_then(b.icmp_signed("==", self.lane, I64(0))):
            self._write(slots, self.warp, values)
        self.e.synchronize_block()
        # every warp combines what all warps have found, in each of its groups of so many lanes
        place = b.urem(self.lane, I64(warps))
        return self.combine_lanes([slot.read(b, place) for slot in slots], warps, merge, I32(-1))

    def combine_lanes(self, values: list, width: int, merge: Callable,
                       members: ir.Value | None = None) -> list:
        """The values of so many lanes side by side; each of them gets the result."""
        members, distance = self.members if members is None else members, width // 2
        while distance:
            others = [self.e.shuffle(value, "bfly", members, distance) for value in values]
            values, distance = merge(values, others), distance // 2
        return values

    def _combine_across(self, values: list, kinds: list, merge: Callable) -> list:
        """As a tree: the second half of a team writes what it has, the first one combines it with its own;
        then that is the team."""
        e, b, half = self.e, self.e.b, round_up(self.size) // 2
        slots, held = self._share_room(kinds, lane_count(values[0])), [e.stack_slot(one) for one in values]
        while half:
            is_first, other = b.icmp_signed("<", self.rank, I64(half)), b.add(self.rank, I64(half))
            with e.if_then(b.icmp_unsigned("<", b.sub(self.rank, I64(half)), I64(half))):
                self._write(slots, self.thread, [e.read_slot(one) for one in held])
            e.synchronize_block()
            with e.if_then(b.and_(is_first, b.icmp_signed("<", other, I64(self.size)))):
                others = [slot.read(b, b.add(self.thread, I64(half * self.across))) for slot in slots]
                for one, value in zip(held, merge([e.read_slot(one) for one in held], others)):
                    e.write_slot(one, value)
            half //= 2
        values = [e.read_slot(one) for one in held]
        if not self.tells_all:
            return values
        with e.if_then(b.icmp_signed("==", self.rank, I64(0))):
            self._write(slots, self.thread, values)
        e.synchronize_block()
        return [slot.read(b, self.column) for slot in slots]

    def _share_room(self, kinds: list, lanes: int) -> list[Slots]:
        """Shared memory for values of each thread: the same for one combination after the other."""
        e, threads = self.e, -(-self.size * self.across // WARP) * WARP  # arrays begin where accesses may
        if self._memory is None:
            self._memory = e.share(I8, threads * self.room)
        else:
            e.synchronize_block()  # all have read what is there
        slots, start = [], 0
        for dtype in kinds:
            slots.append(Slots(e, dtype, threads, lanes, (self._memory, start)))
            start += threads * lanes * dtype.itemsize
        return slots

    # -- scans --------------------------------------------------------------------------------------------
    def scan(self, op: str, dtype, values: Sequence[ir.Value | Pair], totals: Totals | None) -> tuple:
        """(for each round what comes before this thread's value in it, the combination of all). values: of
        this thread, one of each round; a round comes behind all of the one before. totals: see
        `share_totals`."""
        b, width = self.e.b, min(self.size, WARP)
        merge, identity = functools.partial(merge_values, b, op, dtype), scan_identity(op, dtype)
        if self.across:
            return self._scan_across(merge, identity, *values, totals)
        lane = self.lane if width == WARP else b.urem(self.lane, I64(width))
        values = self._scan_lanes(merge, values, lane, width, self.members)
        is_first = b.icmp_signed("==", lane, I64(0))
        before = [choose(b, is_first, identity, self.e.shuffle(value, "up", self.members, 1))
                  for value in values]
        if not self.is_in_warp:
            return self._scan_warps(merge, identity, values, before, totals)
        last = b.trunc(b.add(b.sub(self.lane, self.rank), I64(width - 1)), I32)
        total = None
        for number, value in enumerate(values):
            whole = self.e.shuffle(value, "idx", self.members, last)
            before[number] = before[number] if total is None else merge(total, before[number])
            total = whole if total is None else merge(total, whole)
        return before, total

    def _scan_warps(self, merge: Callable, identity, values: list, before: list, totals: Totals) -> tuple:
        """`scan` by several warps, which exchange what the rounds of each are together. One warp could find
        what comes before each of them, but then the others would wait for it a second time."""
        e, b, warps = self.e, self.e.b, self.size // WARP
        count, slots, start = len(values) * warps, totals.slots, totals.take_turns()
        places = [b.add(self.warp, I64(number * warps)) for number in range(len(values))]
        with e.if_then(b.icmp_signed("==", self.lane, I64(WARP - 1))):
            for place, value in zip(places, values):
                slots.write(b, b.add(start, place), value)
        e.synchronize_block()
        held = e.stack_slot(identity)
        with e.if_then(b.icmp_signed("<", self.lane, I64(count))):
            e.write_slot(held, slots.read(b, b.add(start, self.lane)))
        (upto,) = self._scan_lanes(merge, [e.read_slot(held)], self.lane, WARP, I32(-1))
        for number, place in enumerate(places):
            earlier = e.shuffle(upto, "idx", I32(-1), b.trunc(b.sub(place, I64(1)), I32))
            if number == 0:
                earlier = choose(b, b.icmp_signed(">", place, I64(0)), earlier, identity)
            before[number] = merge(earlier, before[number])
        return before, e.shuffle(upto, "idx", I32(-1), I32(count - 1))

    def _scan_across(self, merge: Callable, identity, value, totals: Totals) -> tuple:
        """`scan` of one round by threads that lie apart: each adds up what the others have found."""
        e, b = self.e, self.e.b
        slots, start = totals.slots, totals.take_turns()
        slots.write(b, b.add(start, self.thread), value)
        e.synchronize_block()
        before = total = identity
        for number in range(self.size):
            before = choose(b, b.icmp_signed("==", self.rank, I64(number)), total, before)
            total = merge(total, slots.read(b, b.add(start, b.add(self.column, I64(number * self.across)))))
        return [before], total

    def _scan_lanes(self, merge: Callable, values: Sequence, lane: ir.Value, width: int,
                    members: ir.Value) -> list:
        """Each value combined with those of the lanes before it, of so many side by side."""
        values, distance = list(values), 1
        while distance < width:
            has_one = self.e.b.icmp_signed(">=", lane, I64(distance))
            others = [self.e.shuffle(value, "up", members, distance) for value in values]
            values = [choose(self.e.b, has_one, merge(other, value), value)
                      for other, value in zip(others, values)]
            distance *= 2
        return values

    # -- shared memory ------------------------------------------------------------------------------------
    def share_totals(self, dtype, rounds: int = 1) -> Totals | None:
        """What `scan` needs, of so many rounds."""
        if self.is_in_warp:
            return None
        return Totals(self.e, dtype, self.size * self.across or rounds * (self.size // WARP))

    def _write(self, slots: list[Slots], place: ir.Value, values: list) -> None:
        for slot, value in zip(slots, values):
            slot.write(self.e.b, place, value)


def merge_values(b: ir.IRBuilder, op: str, dtype, x: ir.Value | Pair, y: ir.Value | Pair) -> ir.Value | Pair:
    """What two values of a scan are together."""
    return emit_operation(b, op, [dtype, dtype], dtype, [x, y], inline=False)


def scan_identity(op: str, dtype) -> ir.Value | Pair:
    """What changes no value of a scan."""
    return element_constant(dtype, scan_start_of(op, dtype))


class Totals:
    """Shared memory for what the warps of a team find, twice: while slow threads still read one half, others
    write into the other one, so that one barrier is enough for each time."""

    def __init__(self, e: KernelEmitter, dtype, count: int):
        self.e, self.count, self.slots = e, count, Slots(e, dtype, 2 * count)
        self._start = e.stack_slot(I64(0))

    def take_turns(self) -> ir.Value:
        """Where the half for this time begins."""
        start = self.e.read_slot(self._start)
        self.e.write_slot(self._start, self.e.b.xor(start, I64(self.count)))
        return start


class Slots:
    """Shared memory of a block of threads: so many elements of a dtype, or lanes of them. memory: where they
    lie in other memory, as (memory, bytes)."""

    def __init__(self, e: KernelEmitter, dtype, count: int, lanes: int = 1, memory: tuple | None = None):
        self._is_bool, self._lanes, self._align = dtype == dtypes.bool_, lanes, None
        if lanes > 1:
            self._align = min(ACCESS_BYTES, lanes * dtypes.part_size(dtype))
        start = 0

        def define(part):
            nonlocal start
            kind = widen(I8, lanes) if self._is_bool else part.type
            if memory is None:
                return e.share(kind, count)
            first = e.b.gep(memory[0], [I64(0), I64(memory[1] + start)])
            start += count * lanes * dtypes.part_size(dtype)
            return e.b.bitcast(first, ir.ArrayType(kind, count).as_pointer(first.type.addrspace))

        self._arrays = map_parts(define, element_constant(dtype, 0, lanes))

    def write(self, b: ir.IRBuilder, place: ir.Value, value: ir.Value | Pair) -> None:
        def store(part, array):
            kind = array.type.pointee.element
            part = part if part.type == kind else b.zext(part, kind)
            b.store(part, b.gep(array, [I64(0), place]), align=self._align)

        map_parts(store, value, self._arrays)

    def read(self, b: ir.IRBuilder, place: ir.Value) -> ir.Value | Pair:
        def load(array):
            value = b.load(b.gep(array, [I64(0), place]), align=self._align)
            return b.trunc(value, widen(I1, self._lanes)) if self._is_bool else value

        return map_parts(load, self._arrays)
