"""Radix sort: a stable pass for each digit of the keys, the least significant one first.

In: elements of rows. Out: `__global__` functions that sort them, and the places where they were. `clear`:
zeros where counts will be. `count`: how often each digit of the keys is in each row, in one sweep for all
passes. `scan`: how many lower digits there are. Then for each pass a `scatter`, in which a block of threads
has a tile of one row: elements go to where they belong, by way of shared memory, so that those of one digit
are written side by side. Elements move as they are, and their keys are computed on the way.

An element's rank among equal digits of its tile follows from votes of its warp and from counts of the warps
before. How many are in the tiles before follows from a chain: each tile says what it counts, looks back at
what tiles before say, up to one that knows the sum up to it, and then says that of its own. Sums are of
integers, so no result depends on how threads run. Tiles have numbers in the order in which their blocks
begin: none waits for one that has not begun.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.team import Team
from jitcore.backends.cuda.sorting.keys import DIGIT, Encoding
from jitcore.backends.gpu.mapping import WARP
from jitcore.backends.llvm.registers import I16, I32, I64
from jitcore.loopir.expr import Buffer

#: How many digits there are; a block has a thread for each, at least.
RADIX = 1 << DIGIT
#: Counts of digits in shared memory that a block has, at most: equal digits are counted in several places.
_COUNTS = 32 * RADIX
#: What a tile says of a digit, above a number of 30 bits: how many are in it, or up to it; before, nothing.
_OWN, _ALL, _STATE = 1, 2, 30
#: The lanes of the warp that, like this one, have zero, or another number. LLVM tests the number twice, for
#: the vote and for the answer.
_VOTE = """{
.reg .pred is_set;
setp.ne.b32 is_set, $1, 0;
vote.sync.ballot.b32 $0, is_set, -1;
@!is_set not.b32 $0, $0;
}"""
#: Elements of a row, at most: those that the last tile has no elements for are counted, too.
LONGEST = (1 << _STATE) - (1 << 16)


# -- passes ------------------------------------------------------------------------------------------------
class Step(NamedTuple):
    """One pass. reads_order: whether elements have changed places before; moves_order: whether places go
    along with elements. is_lone: whether a row is one tile: then there is nothing to learn of others."""

    kind: Encoding
    reads_order: bool
    moves_order: bool
    is_lone: bool


def count_tiles(kind: Encoding, n: int) -> int:
    return -(-n // kind.tile)


def list_tables(kind: Encoding, rows: int, n: int) -> list[tuple[tuple, np.dtype]]:
    """Memory for what tiles say of digits, for counts of digits in rows, and for numbers of tiles."""
    return [((_place_tables(kind, rows, n)[-1],), dtypes.int32)]


def _place_tables(kind: Encoding, rows: int, n: int) -> tuple[int, int, int]:
    """Where counts begin, behind what tiles say; where numbers of tiles do; and the end."""
    tiles = count_tiles(kind, n)
    if tiles == 1:
        return 0, 0, 1
    counts = rows * RADIX * tiles
    numbers = counts + rows * RADIX * kind.digits
    return counts, numbers, numbers + kind.digits


def add_passes(add: Callable, kind: Encoding, source: Buffer, rows: int, n: int, keys: list[Buffer],
               orders: list[Buffer], tables: list[Buffer]) -> None:
    """Adds the functions of all passes, for so many rows of n elements. keys, orders: two buffers each, or no
    orders; the last pass, whose number is that of the digits, writes the first ones."""
    tiles, block = count_tiles(kind, n), kind.tuning.digit_block
    counts, numbers, end = _place_tables(kind, rows, n)
    if tiles > 1:
        parts = -(-n // (block * kind.tuning.digit_count_items))
        add("clear", tables, [end], -(-end // block), partial(_clear, block=block), block)
        add("count", [source, *tables], [n, parts, counts], rows * parts, partial(_count, kind=kind), block)
        add("scan", tables, [counts], rows * kind.digits, _scan, RADIX)
    elements, order, left = source, [], kind.digits
    while left:
        left -= 1
        step = Step(kind, bool(order), bool(orders), tiles == 1)
        written, number = [keys[left % 2], *orders[left % 2 :][:1]], kind.digits - 1 - left
        sizes = [n, tiles, number, counts + number * rows * RADIX, numbers + number]
        add(f"scatter{'_more' * step.reads_order}", [elements, *order, *tables, *written], sizes,
            rows * tiles, partial(_scatter, step=step), block)
        elements, *order = written


def _clear(e: KernelEmitter, block: int) -> None:
    tables, end = e.function.args
    item = e.read_item(block)
    with e.if_then(e.b.icmp_signed("<", item, end)):
        e.store_bits(I32(0), tables, 32, item)


def _count(e: KernelEmitter, kind: Encoding) -> None:
    """A part of a row for each block. Lanes side by side count in different places, and so in different
    banks."""
    b, (source, tables, n, parts, counts) = e.b, e.function.args
    block, copies = kind.tuning.digit_block, 1 << (_COUNTS // (RADIX * kind.digits)).bit_length() - 1
    found, size = e.share(I32, kind.digits * RADIX * copies), block * kind.tuning.digit_count_items
    thread, item = e.read_register("tid.x"), e.read_register("ctaid.x")
    row, start = b.udiv(item, parts), b.mul(b.urem(item, parts), I64(size))
    rest, copy = e.least(b.sub(n, start), I64(size)), b.trunc(b.urem(thread, I64(copies)), I32)
    begin = b.add(b.mul(row, n), start)

    def read(place):
        return e.load_bits(source, kind.raw_bits, b.add(begin, place))

    def note(raw):
        for number in range(kind.digits):
            digit = b.add(kind.find_digit(b, raw, I64(number * DIGIT)), I32(number * RADIX))
            b.atomic_rmw("add", _at(b, found, b.add(b.mul(digit, I32(copies)), copy)), I32(1), "monotonic")

    with e.for_range(thread, I64(kind.digits * RADIX * copies), I64(block)) as slot:
        b.store(I32(0), _at(b, found, slot))
    e.synchronize_block()
    batch = block * kind.tuning.digit_batch
    whole = b.mul(b.udiv(rest, I64(batch)), I64(batch))
    with e.for_range(I64(0), whole, I64(batch)) as first:
        # no load waits for another
        for raw in [read(b.add(b.add(first, thread), I64(k))) for k in range(0, batch, block)]:
            note(raw)
    with e.for_range(b.add(whole, thread), rest, I64(block)) as place:
        note(read(place))
    e.synchronize_block()
    with e.for_range(thread, I64(kind.digits * RADIX), I64(block)) as slot:
        total = I32(0)
        for copy in range(copies):
            total = b.add(total, b.load(_at(b, found, b.add(b.mul(slot, I64(copies)), I64(copy)))))
        number, digit = b.udiv(slot, I64(RADIX)), b.urem(slot, I64(RADIX))
        rows = b.udiv(e.read_register("nctaid.x"), parts)
        place = b.add(b.mul(b.add(b.mul(number, rows), row), I64(RADIX)), digit)
        b.atomic_rmw("add", e.find_bits(tables, 32, b.add(counts, place)), total, "monotonic")


def _scan(e: KernelEmitter) -> None:
    """Of each digit of a row: how many lower ones there are."""
    b, (tables, counts) = e.b, e.function.args
    place = b.add(counts, e.read_item(RADIX))
    e.store_bits(_count_lower(e, e.load_bits(tables, 32, place), RADIX), tables, 32, place)


def _count_lower(e: KernelEmitter, count: ir.Value, block: int) -> ir.Value:
    """How many lower digits there are, where each thread has the count of one, and those behind have none."""
    b, team, totals = e.b, Team(e, WARP, e.read_register("tid.x")), e.share(I32, block // WARP)
    (before,), total = team.scan("add", dtypes.int32, [count], None)
    with e.if_then(team.is_first()):
        b.store(total, _at(b, totals, team.warp))
    e.synchronize_block()
    for warp in range(RADIX // WARP):
        is_lower = b.icmp_signed(">", team.warp, I64(warp))
        before = b.add(before, b.select(is_lower, b.load(_at(b, totals, I32(warp))), I32(0)))
    return before


class _Tile:
    """The elements of this block of threads. start: the first one's place in its row; first: among those of
    all rows; is_head: whether it is the row's. A warp has neighbours, and in each of its rounds a lane one of
    so many in order."""

    def __init__(self, e: KernelEmitter, step: Step, tables: ir.Value, sizes: list[ir.Value]):
        self.e, self.step, self.tables = e, step, tables
        self.n, self.tiles, self.pass_number, self.counts, numbers = sizes
        b, self.block = e.b, step.kind.tuning.digit_block
        self.warps = self.block // WARP
        self.thread = b.trunc(e.read_register("tid.x"), I32)
        self.lane, self.warp = b.urem(self.thread, I32(WARP)), b.udiv(self.thread, I32(WARP))
        self.is_digit = b.icmp_unsigned("<", self.thread, I32(RADIX))
        self._counters = e.share(I16, self.warps * RADIX)
        block, row, number = self._draw_number(numbers)
        self.block_number, self.is_head = block, b.icmp_signed("==", number, I32(0))
        self.row, self.start = b.zext(row, I64), b.mul(b.zext(number, I64), I64(step.kind.tile))
        self.first = b.add(b.mul(self.row, self.n), self.start)
        self.count = b.trunc(e.least(b.sub(self.n, self.start), I64(step.kind.tile)), I32)
        #: The first slot of this thread; others are a warp apart.
        self.slot = b.add(b.mul(self.warp, I32(WARP * step.kind.items)), self.lane)

    def _draw_number(self, numbers: ir.Value) -> list[ir.Value]:
        """How many blocks have begun before this one, which says its row and the number of the tile there."""
        e, b = self.e, self.e.b
        if self.step.is_lone:
            block = b.trunc(e.read_register("ctaid.x"), I32)
            return [block, block, I32(0)]
        found, tiles = e.share(I32, 3), b.trunc(self.tiles, I32)
        with e.if_then(b.icmp_signed("==", self.thread, I32(0))):
            block = b.atomic_rmw("add", e.find_bits(self.tables, 32, numbers), I32(1), "monotonic")
            for slot, value in enumerate((block, b.udiv(block, tiles), b.urem(block, tiles))):
                b.store(value, _at(b, found, I32(slot)))
        e.synchronize_block()
        return [b.load(_at(b, found, I32(slot))) for slot in range(3)]

    def tell(self, state: int, value: ir.Value) -> None:
        """Says something of this thread's digit."""
        b, kind = self.e.b, ir.FunctionType(ir.VoidType(), [I64, I32])
        place = self._find_word(self.block_number)
        word = b.xor(b.or_(value, I32(state << _STATE)), self._find_mark())
        b.asm(kind, "st.relaxed.gpu.global.b32 [$0], $1;", "l,r", [place, word], True)

    def hear(self, block: ir.Value) -> tuple[ir.Value, ir.Value]:
        """(state, value) of this thread's digit in a block's tile; 0 for the state where it says nothing."""
        b, kind = self.e.b, ir.FunctionType(I32, [I64])
        word = b.asm(kind, "ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l", [self._find_word(block)], True)
        word = b.xor(word, self._find_mark())
        return b.lshr(word, I32(_STATE)), b.and_(word, I32((1 << _STATE) - 1))

    def _find_word(self, block: ir.Value) -> ir.Value:
        """The address of a word, which is read and written as a whole: so nothing else has to be in order."""
        b = self.e.b
        place = b.add(b.mul(b.sext(block, I64), I64(RADIX)), b.zext(self.thread, I64))
        return b.ptrtoint(self.e.find_bits(self.tables, 32, place), I64)

    def _find_mark(self) -> ir.Value:
        """What the pass before has left in the end, `_ALL`, is nothing in this one: so passes take turns."""
        return self.e.b.shl(self.e.b.trunc(self.pass_number, I32), I32(31))

    def find_counter(self, warp: ir.Value, digit: ir.Value) -> ir.Value:
        """It says where the next element of a warp with a digit goes: at first among those of the digit in
        the warp, then in the tile."""
        b = self.e.b
        return _at(b, self._counters, b.add(b.mul(warp, I32(RADIX)), digit))

    def find_digit(self, raw: ir.Value) -> ir.Value:
        b = self.e.b
        return self.step.kind.find_digit(b, raw, b.mul(self.pass_number, I64(DIGIT)))

    def list_slots(self, first: ir.Value, distance: int) -> list[tuple[ir.Value, ir.Value]]:
        """(slot, whether it has an element) of each round."""
        b, rest = self.e.b, self.e.b.sub(self.count, first)
        return [(b.add(first, I32(k * distance)), b.icmp_signed(">", rest, I32(k * distance)))
                for k in range(self.step.kind.items)]

    def visit(self, slots: list[tuple[ir.Value, ir.Value]], body: Callable[[int, ir.Value], None]) -> None:
        """`body(round, slot)` for slots that have an element: in a whole tile without conditions."""
        b, is_whole = self.e.b, self.e.b.icmp_signed("==", self.count, I32(self.step.kind.tile))
        for is_sure in (True, False):
            with self.e.if_then(is_whole if is_sure else b.not_(is_whole)):
                for number, (slot, exists) in enumerate(slots):
                    with contextlib.nullcontext() if is_sure else self.e.if_then(exists):
                        body(number, slot)

    def read_all(self, bits: int, source: ir.Value) -> list[ir.Value]:
        """What is there for the element of each round, 0 where there is none; no load waits for another."""
        e, slots = self.e, self.list_slots(self.slot, WARP)
        found = [e.stack_slot(ir.IntType(bits)(0)) for _ in slots]

        def read(number: int, slot: ir.Value) -> None:
            e.write_slot(found[number], e.load_bits(source, bits, e.b.add(self.first, e.b.zext(slot, I64))))

        self.visit(slots, read)
        return [e.read_slot(one) for one in found]

    def read_olds(self, order: ir.Value | None) -> list[ir.Value]:
        """Where in its row the element of each round was at first, as an i32."""
        b = self.e.b
        if order is None:
            first = b.add(b.trunc(self.start, I32), self.slot)
            return [b.add(first, I32(k * WARP)) for k in range(self.step.kind.items)]
        return self.read_all(32, order)


def _scatter(e: KernelEmitter, step: Step) -> None:
    b, given = e.b, list(e.function.args)
    source, order = given.pop(0), given.pop(0) if step.reads_order else None
    tables, keys_out, *order_out = given[:-5]
    tile, bits = _Tile(e, step, tables, given[-5:]), step.kind.raw_bits
    tuning = step.kind.tuning
    e.limit_registers(tile.block, tuning.digit_blocks if step.moves_order else tuning.digit_key_blocks)
    held = e.share(ir.IntType(max(bits, 32 * step.moves_order)), step.kind.tile)
    targets = e.share(I32, RADIX)

    def place_of(slot, bits):
        return b.gep(b.bitcast(held, ir.IntType(bits).as_pointer(held.type.addrspace)), [slot])

    for digit in range(0, RADIX, WARP):
        b.store(I16(0), tile.find_counter(tile.warp, b.add(tile.lane, I32(digit))))
    e.synchronize_warp(I32(-1))
    elements = tile.read_all(bits, source)
    ranks = [_rank(tile, raw, exists) for raw, (_, exists) in zip(elements, tile.list_slots(tile.slot, WARP))]
    e.synchronize_block()
    start, count = _find_starts(tile)
    e.synchronize_block()
    ranks = [b.add(rank, b.zext(b.load(tile.find_counter(tile.warp, digit)), I32))
             for digit, rank in [_unpack(b, rank) for rank in ranks]]
    for raw, rank in zip(elements, ranks):
        b.store(raw, place_of(rank, bits))
    if not step.is_lone:
        with e.if_then(tile.is_digit):
            b.store(b.sub(_look_back(tile, count), start), _at(b, targets, tile.thread))
    e.synchronize_block()
    slots = tile.list_slots(tile.thread, tile.block)
    keys = [b.load(place_of(slot, bits)) for slot, _ in slots]
    digits = [tile.find_digit(key) for key in keys]
    if step.moves_order:
        ranks = [_pack(b, digit, rank) for digit, rank in zip(digits, ranks)]
    _put(tile, slots, digits, targets, keys, keys_out)
    if step.moves_order:
        olds = tile.read_olds(order)
        digits, ranks = zip(*[_unpack(b, rank) for rank in ranks])
        e.synchronize_block()
        for old, rank in zip(olds, ranks):
            b.store(old, place_of(rank, 32))
        e.synchronize_block()
        _put(tile, slots, digits, targets, [b.load(place_of(slot, 32)) for slot, _ in slots], *order_out)


def _put(tile: _Tile, slots: list, digits: Sequence[ir.Value], targets, values: list[ir.Value],
         written: ir.Value) -> None:
    """Writes what slots have to where it belongs in the row."""
    e, b, places = tile.e, tile.e.b, [slot for slot, _ in slots]
    if not tile.step.is_lone:
        places = [b.add(slot, b.load(_at(b, targets, digit))) for slot, digit in zip(places, digits)]
    row = e.find_bits(written, values[0].type.width, b.mul(tile.row, tile.n))
    tile.visit(slots, lambda k, _: b.store(values[k], b.gep(row, [b.sext(places[k], I64)])))


def _rank(tile: _Tile, raw: ir.Value, exists: ir.Value) -> ir.Value:
    """A round of a warp: the digit, and how many elements with it the warp has before. Slots without an
    element come last in the tile."""
    e, b, everyone = tile.e, tile.e.b, I32(-1)
    digit = b.select(exists, tile.find_digit(raw), I32(RADIX - 1))
    equal = _match(e, digit)
    below, above = b.sub(b.shl(I32(1), tile.lane), I32(1)), b.shl(I32(-2), tile.lane)
    counter = tile.find_counter(tile.warp, digit)
    rank = b.add(b.zext(b.load(counter), I32), e.call("llvm.ctpop.i32", I32, b.and_(equal, below)))
    e.synchronize_warp(everyone)
    # the last one of each digit counts them
    with e.if_then(b.icmp_signed("==", b.and_(equal, above), I32(0))):
        b.store(b.trunc(b.add(rank, I32(1)), I16), counter)
    e.synchronize_warp(everyone)
    return _pack(b, digit, rank)


def _pack(b: ir.IRBuilder, digit: ir.Value, rank: ir.Value) -> ir.Value:
    """Both in one register; LLVM, if it knew, would keep two."""
    kind = ir.FunctionType(I32, [I32, I32])
    return b.asm(kind, "mad.lo.u32 $0, $1, 65536, $2;", "=r,r,r", [digit, rank], True)


def _unpack(b: ir.IRBuilder, packed: ir.Value) -> tuple[ir.Value, ir.Value]:
    return b.lshr(packed, I32(16)), b.and_(packed, I32(0xFFFF))


def _match(e: KernelEmitter, digit: ir.Value) -> ir.Value:
    """The lanes with the same digit, by a vote for each bit: the instruction `match` takes twice as long."""
    b, equal, vote = e.b, I32(-1), ir.InlineAsm(ir.FunctionType(I32, [I32]), _VOTE, "=r,r", True)
    for bit in range(DIGIT):
        agree = b.call(vote, [b.and_(digit, I32(1 << bit))], attrs=("convergent",))
        equal = b.and_(equal, agree)
    return equal


def _find_starts(tile: _Tile) -> tuple[ir.Value, ir.Value]:
    """Adds up what warps count. Returns: of this thread's digit, where its elements begin in the tile, and
    how many there are, which other tiles are told."""
    e, b, digit, found = tile.e, tile.e.b, tile.thread, tile.e.stack_slot(I32(0))
    places = [tile.find_counter(I32(warp), digit) for warp in range(tile.warps)]

    def read_all():
        return [b.zext(b.load(place), I32) for place in places]

    with e.if_then(tile.is_digit):
        total = functools.reduce(b.add, read_all())
        e.write_slot(found, total)
        if not tile.step.is_lone:
            with e.if_then(b.not_(tile.is_head)):  # what the head of a row counts is not all before the next
                tile.tell(_OWN, total)
    total = e.read_slot(found)
    start = following = _count_lower(e, total, tile.block)
    with e.if_then(tile.is_digit):
        for place, count in zip(places, read_all()):
            b.store(b.trunc(following, I16), place)
            following = b.add(following, count)
    return start, total


def _look_back(tile: _Tile, count: ir.Value) -> ir.Value:
    """Of this thread's digit, which is so often in the tile: where the first one belongs in the row."""
    e, b = tile.e, tile.e.b
    total, at = e.stack_slot(I32(0)), e.stack_slot(b.sub(tile.block_number, I32(1)))
    with e.if_then(tile.is_head):
        place = b.add(tile.counts, b.add(b.mul(tile.row, I64(RADIX)), b.zext(tile.thread, I64)))
        e.write_slot(total, e.load_bits(tile.tables, 32, place))
        e.write_slot(at, I32(-1))

    def step_back():
        block = e.read_slot(at)
        state, value = tile.hear(block)
        is_there = b.icmp_signed("!=", state, I32(0))
        e.write_slot(total, b.add(e.read_slot(total), b.select(is_there, value, I32(0))))
        following = b.select(is_there, b.sub(block, I32(1)), block)
        e.write_slot(at, b.select(b.icmp_signed("==", state, I32(_ALL)), I32(-1), following))

    e.repeat(lambda: b.icmp_signed(">=", e.read_slot(at), I32(0)), step_back)
    before = e.read_slot(total)
    tile.tell(_ALL, b.add(before, count))
    return before


def _at(b: ir.IRBuilder, array: ir.GlobalVariable, slot: ir.Value) -> ir.Value:
    return b.gep(array, [I32(0) if slot.type == I32 else I64(0), slot])
