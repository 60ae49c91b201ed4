"""Keys of sorting, integers that order as elements do; and radix sort: a stable pass for each digit of the
keys, the least significant one first.

In: elements of rows, or an order of them. Out: three `__global__` functions for a pass, in which a block of
threads has a tile of one row. `count`: how often each digit is in each tile. `scan`: of each digit, how many
are in the tiles before. `scatter`: elements go to where they belong, by way of shared memory, so that those
of one digit are written side by side. Elements move as they are, and their keys are computed on the way. An
element's rank among equal digits of its tile follows from votes of its warp and from counts of the warps
before: no order depends on how threads run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import ml_dtypes
import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.scans import TileScan
from jitcore.backends.cuda.render.team import Team
from jitcore.backends.gpu.mapping import LARGEST_BLOCK, WARP, round_up
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I16, I32, I64
from jitcore.loopir.expr import Buffer

#: Bits of a digit.
DIGIT = 8
#: How many digits there are; a block has a thread for each.
RADIX = 1 << DIGIT
WARPS = RADIX // WARP


# -- keys --------------------------------------------------------------------------------------------------
class Encoding:
    """How elements become keys. is_top: the largest come first, and -0.0 is below 0.0. part: of a complex
    number. limit: what the elements are at most, where that is known and none is negative."""

    def __init__(self, dtype: np.dtype, tuning: Tuning, is_top: bool = False, part: int = 0,
                 limit: int | None = None):
        self.tuning = tuning
        self.stride, self.part = (2, part) if dtype.kind == "c" else (1, 0)
        real = dtypes.real_dtype(dtype) if dtype.kind == "c" else dtype
        self.is_float, self.is_top = dtypes.is_floating(real), is_top
        self.is_signed = self.is_float or real.kind == "i"
        self.raw_bits = 8 * real.itemsize
        self.bits = max(32, self.raw_bits)
        self.digits = -(-(self.raw_bits if limit is None else max(limit.bit_length(), 1)) // DIGIT)
        #: Those of one thread, where they are sorted by digits.
        self.items = min(tuning.most_digit_items, 8 * tuning.digit_item_bytes // self.raw_bits)
        if self.is_float:
            info = ml_dtypes.finfo(real)
            self.magnitude = (1 << (info.bits - 1)) - 1
            self.infinity = ((1 << info.nexp) - 1) << info.nmant
            self.nan = self.infinity | 1 << (info.nmant - 1)

    def encode(self, b: ir.IRBuilder, raw: ir.Value, bits: int) -> ir.Value:
        """A signed key of so many bits."""
        kind = ir.IntType(bits)
        if self.raw_bits < bits:
            raw = (b.sext if self.is_signed else b.zext)(raw, kind)
        key = raw
        if self.is_float:
            sign = b.and_(b.ashr(raw, kind(bits - 1)), kind(self.magnitude))
            size = b.and_(raw, kind(self.magnitude))
            key = b.xor(raw, sign)
            if not self.is_top:
                key = b.select(b.icmp_signed("==", size, kind(0)), kind(0), key)
            key = b.select(b.icmp_signed(">", size, kind(self.infinity)), kind(self.nan), key)
        elif not self.is_signed and self.raw_bits == bits:
            key = b.xor(raw, kind(-1 << (bits - 1)))
        return b.not_(key) if self.is_top else key

    def find_digit(self, b: ir.IRBuilder, raw: ir.Value, shift: ir.Value) -> ir.Value:
        """The digit from bit `shift` of the key on, as an i32."""
        kind = raw.type
        key = b.xor(self.encode(b, raw, self.raw_bits), kind(-1 << (self.raw_bits - 1)))
        key = b.lshr(key, shift if kind == I64 else b.trunc(shift, kind))
        key = key if kind == I32 else (b.trunc if self.raw_bits > 32 else b.zext)(key, I32)
        return b.and_(key, I32((1 << DIGIT) - 1))

    def find_part(self, b: ir.IRBuilder, element: ir.Value) -> ir.Value:
        """Where the key of an element is."""
        return element if self.stride == 1 else b.add(b.mul(element, I64(2)), I64(self.part))


def find_element(b: ir.IRBuilder, row: ir.Value, at: ir.Value, n: ir.Value, inner: ir.Value) -> ir.Value:
    """Where the element at a place of a row is, of n each, so far from each other."""
    outer, across = b.udiv(row, inner), b.urem(row, inner)
    return b.add(b.mul(b.add(b.mul(outer, n), at), inner), across)


# -- passes ------------------------------------------------------------------------------------------------
class Step(NamedTuple):
    """One pass. is_first: whether it reads an operand, whose elements may lie apart. reads_order: whether in
    an order; moves_order: whether places go along with elements."""

    kind: Encoding
    is_first: bool
    reads_order: bool
    moves_order: bool


def count_tiles(kind: Encoding, n: int) -> int:
    return -(-n // (RADIX * kind.items))


def list_tables(kinds: list[Encoding], rows: int, n: int) -> list[tuple[tuple, np.dtype]]:
    """Memory for counts of digits in tiles, and in rows."""
    tiles = max(count_tiles(kind, n) for kind in kinds)
    return [((rows * RADIX * count,), dtypes.int32) for count in (tiles, 1)]


def add_passes(add: Callable, key: int, kind: Encoding, source: Buffer, shape: tuple[int, int, int],
               keys: list[Buffer], orders: list[Buffer], tables: list[Buffer]) -> None:
    """Adds the functions of all passes for the key of this number. shape: how many rows, elements of each,
    and how far these are from each other. keys, orders: two buffers each, or no orders; results lie in the
    first ones in the end. The first of the orders says in which one to begin, unless it is the first key."""
    rows, n, inner = shape
    counts, totals = tables
    tiles, elements = count_tiles(kind, n), source
    team = min(round_up(tiles), LARGEST_BLOCK)
    for number in range(kind.digits):
        step = Step(kind, not number, bool(orders) and key + number > 0, bool(orders))
        suffix = f"{key}{'_more' if number else ''}"
        read, written = [elements, *orders[: step.reads_order]], [keys[1], *orders[1:]]
        sizes = [n, inner, tiles, number * DIGIT]
        add(f"count{suffix}", [*read, counts], sizes, rows * tiles, partial(_count, step=step))
        block = team if team > WARP else RADIX
        add(f"scan{tiles}", [counts, totals], [tiles], rows * RADIX * team // block,
            partial(_scan, size=team, block=block, length=tiles), block)
        add(f"scatter{suffix}", [*read, counts, totals, *written], sizes, rows * tiles,
            partial(_scatter, step=step))
        elements = keys[1]
        keys.reverse()
        orders.reverse()


class _Tile:
    """The elements of this block of threads. start: the first one's place in its row; first: among those of
    all rows. A warp has neighbours, and in each of its rounds a lane one of so many in order."""

    def __init__(self, e: KernelEmitter, step: Step, sizes: list[ir.Value]):
        self.e, self.step = e, step
        self.n, self.inner, self.tiles, self.shift = sizes
        b, size = e.b, RADIX * step.kind.items
        block, tiles = b.trunc(e.read_register("ctaid.x"), I32), b.trunc(self.tiles, I32)
        self.row, self.number = b.zext(b.udiv(block, tiles), I64), b.zext(b.urem(block, tiles), I64)
        self.start = b.mul(self.number, I64(size))
        self.first = b.add(b.mul(self.row, self.n), self.start)
        rest = b.sub(self.n, self.start)
        self.count = b.trunc(b.select(b.icmp_signed("<", rest, I64(size)), rest, I64(size)), I32)
        self.thread = b.trunc(e.read_register("tid.x"), I32)
        self.lane = b.urem(self.thread, I32(WARP))
        self.warp = b.udiv(self.thread, I32(WARP))

    def find_slot(self, number: ir.Value) -> ir.Value:
        """The slot of this thread in a round of its warp."""
        b = self.e.b
        own = b.add(b.mul(self.warp, I32(WARP * self.step.kind.items)), self.lane)
        return b.add(own, b.mul(number, I32(WARP)))

    def exists(self, slot: ir.Value) -> ir.Value:
        return self.e.b.icmp_signed("<", slot, self.count)

    def find_digit(self, raw: ir.Value) -> ir.Value:
        return self.step.kind.find_digit(self.e.b, raw, self.shift)

    def find_count(self, digit: ir.Value) -> ir.Value:
        """Where the table has the count of a digit in this tile."""
        b = self.e.b
        return b.add(b.mul(self.find_total(digit), self.tiles), self.number)

    def find_total(self, digit: ir.Value) -> ir.Value:
        return self.e.b.add(self.e.b.mul(self.row, I64(RADIX)), self.e.b.zext(digit, I64))

    def find_place(self, slot: ir.Value) -> ir.Value:
        """Of an element that exists, among those of all rows."""
        return self.e.b.add(self.first, self.e.b.zext(slot, I64))

    def read_all(self, source: ir.Value, order: ir.Value | None) -> list[tuple[ir.Value, ir.Value]]:
        """(slot, element) of each round: no load waits for another. Behind the end it is the last element."""
        found = []
        for number in range(self.step.kind.items):
            slot = self.find_slot(I32(number))
            at = self._find_element(self.bound(slot), order)
            found.append((slot, self.e.load_bits(source, self.step.kind.raw_bits, at)))
        return found

    def find_old(self, place: ir.Value, order: ir.Value | None) -> ir.Value:
        """Where in its row an element was at first."""
        b = self.e.b
        if order is None:
            return b.sub(place, b.mul(self.row, self.n))
        return b.sext(self.e.load_bits(order, 32, place), I64)

    def bound(self, slot: ir.Value) -> ir.Value:
        b = self.e.b
        return b.select(self.exists(slot), slot, b.sub(self.count, I32(1)))

    def _find_element(self, slot: ir.Value, order: ir.Value | None) -> ir.Value:
        """Where the element of a slot lies."""
        b, kind, place = self.e.b, self.step.kind, self.find_place(slot)
        if not self.step.is_first:
            return place
        return kind.find_part(b, find_element(b, self.row, self.find_old(place, order), self.n, self.inner))


def _count(e: KernelEmitter, step: Step) -> None:
    b, (source, *order, counts) = e.b, e.function.args[:-4]
    tile = _Tile(e, step, e.function.args[-4:])
    found = e.share(I32, RADIX)
    b.store(I32(0), _at(b, found, tile.thread))
    elements = tile.read_all(source, *order or [None])
    e.synchronize_block()
    _add_up(tile, elements, lambda digit: _at(b, found, digit))
    e.synchronize_block()
    e.store_bits(b.load(_at(b, found, tile.thread)), counts, 32, tile.find_count(tile.thread))


def _add_up(tile: _Tile, elements: list[tuple[ir.Value, ir.Value]], find: Callable) -> None:
    """Counts digits. find: where the count of a digit is."""
    for slot, raw in elements:
        with tile.e.if_then(tile.exists(slot)):
            tile.e.b.atomic_rmw("add", find(tile.find_digit(raw)), I32(1), "monotonic")


def _scan(e: KernelEmitter, size: int, block: int, length: int) -> None:
    """By so many threads for each digit of each row. length: tiles of a row."""
    b, (counts, totals, tiles) = e.b, e.function.args
    item = b.udiv(e.read_item(block), I64(size))
    first = b.mul(item, tiles)

    def read(place):
        return [e.load_bits(counts, 32, b.add(first, place))]

    def note(place, values):
        (upto,), (own,) = values, read(place)
        e.store_bits(b.sub(upto, own), counts, 32, b.add(first, place))
        with e.if_then(b.icmp_signed("==", b.add(place, I64(1)), tiles)):
            e.store_bits(upto, totals, 32, item)

    team = Team(e, size, e.read_register("tid.x"))
    TileScan(team, "add", dtypes.int32, read, note, length).run(I64(0), tiles, None)


def _scatter(e: KernelEmitter, step: Step) -> None:
    b, given = e.b, list(e.function.args)
    source, order = given.pop(0), given.pop(0) if step.reads_order else None
    counts, totals, keys_out, *order_out = given[:-4]
    tile, size = _Tile(e, step, given[-4:]), RADIX * step.kind.items
    keys, slots = e.share(ir.IntType(step.kind.raw_bits), size), e.share(I16, size)
    following, targets = e.share(I32, WARPS * RADIX), e.share(I32, RADIX)

    def rank_of(warp, digit):
        """Where the next element of a warp with this digit goes in the tile."""
        return _at(b, following, b.add(b.mul(warp, I32(RADIX)), digit))

    for warp in range(WARPS):
        b.store(I32(0), rank_of(I32(warp), tile.thread))
    elements = tile.read_all(source, order)
    before = [e.load_bits(totals, 32, tile.find_total(tile.thread)),
              e.load_bits(counts, 32, tile.find_count(tile.thread))]
    for slot, raw in elements:
        b.store(raw, _at(b, keys, slot))
    e.synchronize_block()
    _add_up(tile, elements, lambda digit: rank_of(tile.warp, digit))
    e.synchronize_block()
    _find_starts(tile, rank_of, targets, *before)
    e.synchronize_block()
    with e.for_range(I64(0), I64(step.kind.items)) as number:
        _rank(tile, b.trunc(number, I32), keys, slots, rank_of)
    e.synchronize_block()
    ranks = [b.add(tile.thread, I32(number * RADIX)) for number in range(step.kind.items)]
    batch = step.kind.tuning.digit_batch
    for first in range(0, step.kind.items, batch):
        _put(tile, ranks[first : first + batch], order, keys, slots, targets, [keys_out, *order_out])


def _put(tile: _Tile, ranks: list[ir.Value], order: ir.Value | None, keys, slots, targets,
         written: list[ir.Value]) -> None:
    """Writes the elements of these ranks in the tile, and their places if asked for, to where they belong."""
    e, b, moved = tile.e, tile.e.b, []
    for rank in ranks:
        slot = b.zext(b.load(_at(b, slots, tile.bound(rank))), I32)
        moved.append((rank, b.load(_at(b, keys, slot)), tile.find_old(tile.find_place(slot), order)))
    for rank, raw, old in moved:
        with e.if_then(tile.exists(rank)):
            place = b.add(rank, b.load(_at(b, targets, tile.find_digit(raw))))
            target = b.add(b.mul(tile.row, tile.n), b.sext(place, I64))
            for pointer, value in zip(written, (raw, b.trunc(old, I32))):
                e.store_bits(value, pointer, value.type.width, target)


def _find_starts(tile: _Tile, rank_of: Callable, targets, in_row: ir.Value, in_tiles: ir.Value) -> None:
    """Of this thread's digit: where the elements of each warp begin in the tile, and how far it is from there
    to where they belong in the row. in_row, in_tiles: how often it is in the row, and in tiles before."""
    e, b, digit = tile.e, tile.e.b, tile.thread
    team = Team(e, RADIX, e.read_register("tid.x"))
    slots = team.share_totals(dtypes.int32)

    def count_before(count):
        (before,), _ = team.scan("add", dtypes.int32, [count], slots)
        return before

    places = [rank_of(I32(warp), digit) for warp in range(WARPS)]
    found, total = [b.load(place) for place in places], I32(0)
    for count in found:
        total = b.add(total, count)
    start = count_before(total)
    b.store(b.sub(b.add(count_before(in_row), in_tiles), start), _at(b, targets, digit))
    for place, count in zip(places, found):
        b.store(start, place)
        start = b.add(start, count)


def _rank(tile: _Tile, number: ir.Value, keys, slots, rank_of: Callable) -> None:
    """A round of a warp: its elements' places in the tile."""
    e, b = tile.e, tile.e.b
    slot, everyone = tile.find_slot(number), I32(-1)
    exists = tile.exists(slot)
    digit = tile.find_digit(b.load(_at(b, keys, slot)))

    def vote(condition):
        return e.call("llvm.nvvm.vote.ballot.sync", I32, everyone, condition)

    equal = vote(exists)
    for bit in range(DIGIT):
        is_set = b.icmp_signed("!=", b.and_(digit, I32(1 << bit)), I32(0))
        found = vote(is_set)
        equal = b.and_(equal, b.select(is_set, found, b.not_(found)))
    below = b.sub(b.shl(I32(1), tile.lane), I32(1))
    before, place = e.call("llvm.ctpop.i32", I32, b.and_(equal, below)), rank_of(tile.warp, digit)
    old = b.load(place)
    e.synchronize_warp(everyone)
    with e.if_then(b.and_(exists, b.icmp_signed("==", before, I32(0)))):
        b.store(b.add(old, e.call("llvm.ctpop.i32", I32, equal)), place)
    e.synchronize_warp(everyone)
    with e.if_then(exists):
        b.store(b.trunc(slot, I16), _at(b, slots, b.add(old, before)))


def _at(b: ir.IRBuilder, array: ir.GlobalVariable, slot: ir.Value) -> ir.Value:
    return b.gep(array, [I32(0), slot])
