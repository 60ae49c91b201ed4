"""Long scans in one pass: each block of threads has a tile, and asks the blocks before it what they found.

In: a scan of one row, or of few. Out: two `__global__` functions, of which the first clears the words by
which blocks of the second one tell each other. A block takes the next tile in turn when it begins, so the
blocks of all tiles before are running, and none waits for one that cannot start.

A block tells what its tile is by itself before it waits for anything. 32 tiles are a group, and 32 groups a
section: the block of the last tile of a group tells what the group is by itself, and that of a section what
comes up to its end. What comes before a tile is always that before its section, with the groups before its
own, with the tiles before it in its group: values do not depend on which block was fast, and few blocks wait
for a word that waits for another one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.render.scans import TileScan
from jitcore.backends.cuda.render.team import Slots, Team
from jitcore.backends.gpu.mapping import WARP, Mapping, count_elements
from jitcore.backends.llvm.registers import I1, I32, I64, Pair
from jitcore.loopir.expr import Axis, Buffer
from jitcore.loopir.program import Loop, Scan
from jitcore.loopir.traversal import peel

#: Accesses of a word, by its address.
_READ, _WRITE = ir.FunctionType(I64, [I64]), ir.FunctionType(ir.VoidType(), [I64, I64])


class Request(NamedTuple):
    """What a thread asks for. is_asked: whether it does. pointers: to the words; held: what they were."""

    is_asked: ir.Value
    pointers: list[ir.Value]
    held: list[ir.Value]


def find_lanes(renderer) -> int:
    """Elements of a thread side by side, where a kernel is a scan that goes in one pass; else 0. Tiles of
    single elements would be too small for what they have to wait."""
    (loops, (scan, *others)), tuning = peel(renderer.kernel.body), renderer.tuning
    if others or not isinstance(scan, Scan) or any(loop.bounds for loop in loops):
        return 0
    rows, extent = math.prod(int(loop.axis.extent) for loop in loops), int(scan.axis.extent)
    if rows > tuning.most_look_back_rows or rows * extent < tuning.least_look_back:
        return 0
    lanes = count_elements(scan.axis, [scan], renderer.vector_bytes, tuning)
    return lanes if lanes > 1 else 0


def render_look_back(renderer, lanes: int) -> None:
    """renderer: the `KernelRenderer`, which begins functions."""
    loops, (scan,) = peel(renderer.kernel.body)
    extent, size = int(scan.axis.extent), renderer.tuning.look_back_team
    rest, tile = extent % lanes, TileScan.count_elements(size, lanes, renderer.tuning.scan_elements)
    tiles = -(-(extent - rest) // tile)
    mapping = Mapping("look-back", (*loops, Loop(Axis(tiles), [])), [], size, 1, size)
    count = mapping.items // tiles * find_ends(tiles)[-1] * count_words(scan.value.dtype) + 1
    words = Buffer(f"{renderer.name}_words", (count,), dtypes.int64, "temp")
    renderer.scratch.append(words)

    clear = Mapping("flat", (Loop(Axis(count), []),), [], block=renderer.tuning.block)
    e = renderer.begin("_clear", clear, more=[words])
    item = e.read_item(clear.block)
    with e.if_then(e.b.icmp_signed("<", item, I64(count))):
        e.write_element(words, item, I64(0))
    e.finish()

    e = renderer.begin("_scan", mapping, more=[words])
    team = Team(e, size, e.read_register("tid.x"))
    item = _take_turn(e, team, words)
    row, number = e.b.udiv(item, I64(tiles)), e.b.urem(item, I64(tiles))
    e.place_axes([loop.axis for loop in loops], row, mapping.items // tiles)
    run = renderer.scan_tiles(e, team, scan, extent, lanes)
    told, held = Words(e, team, run, words, row, tiles), e.stack_slot(run.identity)
    # what is no whole number of lanes goes with the tile beside it: it lies at the end of the axis, where a
    # reversed scan begins
    start, stop = (rest, extent) if scan.reverse else (0, extent - rest)
    end = renderer.scan_tiles(e, team, scan, rest, 1) if rest else None
    if start:
        with e.if_then(e.b.icmp_signed("==", number, I64(0))):
            e.write_slot(held, end.run(I64(0), I64(start), None))

    def advance(last):
        first = e.read_slot(held)
        before = run.merge(told.find_before(number, run.merge(first, last)), first)
        e.write_slot(held, run.merge(before, last))
        return before

    is_even = (extent - rest) % tile == 0
    run.run_tile(e.b.add(I64(start), e.b.mul(number, I64(tile))), None if is_even else I64(stop), advance)
    if stop < extent:
        with e.if_then(e.b.icmp_signed("==", number, I64(tiles - 1))):
            end.run(I64(stop), I64(extent), e.read_slot(held))
    e.finish()


def count_words(dtype: np.dtype) -> int:
    """Of one value."""
    return -(-dtype.itemsize // 4)


def find_ends(tiles: int) -> tuple[int, int, int]:
    """Where the values of tiles end, and of groups, and of what comes before sections."""
    groups = -(-tiles // WARP)
    return tiles, tiles + groups, tiles + groups + groups // WARP + 1


def _take_turn(e: KernelEmitter, team: Team, words: Buffer) -> ir.Value:
    """The number of the next tile, which the last word counts: nothing says that blocks start in the order of
    their numbers."""
    turn, b = Slots(e, dtypes.int64, 1), e.b
    with e.if_then(team.is_first()):
        counter = b.gep(e.element_pointer(words), [I64(words.shape[0] - 1)])
        turn.write(b, I64(0), b.atomic_rmw("add", counter, I64(1), "monotonic"))
    team.synchronize()
    return b.zext(b.trunc(turn.read(b, I64(0)), I32), I64)


class Words:
    """What blocks tell each other: of tiles, groups, and sections. A word has 32 bits of a value, and below
    them whether it is there, and is written and read as a whole; so nothing else has to be in order."""

    def __init__(self, e: KernelEmitter, team: Team, scan: TileScan, buffer: Buffer, row: ir.Value,
                 tiles: int):
        self.e, self.team, self.scan, self._each = e, team, scan, count_words(scan.dtype)
        self._groups, self._sections, end = find_ends(tiles)
        self._address = e.b.gep(e.element_pointer(buffer), [e.b.mul(row, I64(end * self._each))])
        self._found = Slots(e, scan.dtype, 1)

    def find_before(self, number: ir.Value, last: ir.Value | Pair) -> ir.Value | Pair:
        """What comes before a tile. last: what it is by itself."""
        e, b, team, merge = self.e, self.e.b, self.team, self.scan.merge
        group, in_group = b.udiv(number, I64(WARP)), b.urem(number, I64(WARP))
        section, in_section = b.udiv(group, I64(WARP)), b.urem(group, I64(WARP))
        with e.if_then(b.icmp_signed("==", team.warp, I64(0))):
            tiles = self._ask(b.sub(number, in_group), team.lane, in_group)
            # lane 0 asks for what is before the section, the others for a group
            is_section = b.icmp_signed("==", team.lane, I64(0))
            groups = b.add(I64(self._groups - 1), b.mul(section, I64(WARP)))
            start = b.select(is_section, b.add(I64(self._sections), section), groups)
            stop = b.select(is_section, section, b.add(in_section, I64(1)))
            before = self._ask(start, team.lane, stop)
            with e.if_then(team.is_first()):
                self._tell(number, last)
            tiles = self._receive(tiles)
            group_total = merge(tiles, last)
            ends_group = b.and_(team.is_first(), b.icmp_signed("==", in_group, I64(WARP - 1)))
            with e.if_then(ends_group):
                self._tell(b.add(I64(self._groups), group), group_total)
            before = self._receive(before)
            with e.if_then(b.and_(ends_group, b.icmp_signed("==", in_section, I64(WARP - 1)))):
                self._tell(b.add(I64(self._sections + 1), section), merge(before, group_total))
            with e.if_then(team.is_first()):
                self._found.write(b, I64(0), merge(before, tiles))
        team.synchronize()
        return self._found.read(b, I64(0))

    def _tell(self, place: ir.Value, value: ir.Value | Pair) -> None:
        b, pointers = self.e.b, self._list_words(place)

        def write(word):
            content = b.or_(b.shl(b.zext(word, I64), I64(32)), I64(1))
            b.asm(_WRITE, "st.relaxed.gpu.global.b64 [$0], $1;", "l,l", [next(pointers), content], True)
            return word

        self.e.map_words(value, write)

    def _ask(self, start: ir.Value, number: ir.Value, stop: ir.Value) -> Request:
        """Reads the words of a number, if it is below `stop`."""
        e = self.e
        pointers = list(self._list_words(e.b.add(start, number)))
        is_asked = e.b.icmp_signed("<", number, stop)
        held = [e.stack_slot(I64(0)) for _ in pointers]
        with e.if_then(is_asked):
            for pointer, slot in zip(pointers, held):
                self._read(pointer, slot)
        return Request(is_asked, pointers, held)

    def _receive(self, request: Request) -> ir.Value | Pair:
        """What the lanes of a warp have asked for, together, once all of it is there."""
        e, b = self.e, self.e.b
        words = []
        for pointer, slot in zip(request.pointers, request.held):
            def is_awaited(slot=slot):
                is_there = b.trunc(e.read_slot(slot), I1)
                return b.and_(request.is_asked, b.not_(is_there))

            e.repeat(is_awaited, functools.partial(self._read, pointer, slot))
            words.append(b.trunc(b.lshr(e.read_slot(slot), I64(32)), I32))
        found = iter(words)
        value = e.map_words(self.scan.identity, lambda word: b.select(request.is_asked, next(found), word))

        def merge(ours, others):
            return [self.scan.merge(one, other) for one, other in zip(ours, others)]

        return self.team.combine_lanes([value], WARP, merge, I32(-1))[0]

    def _read(self, pointer: ir.Value, slot: ir.Value) -> None:
        word = self.e.b.asm(_READ, "ld.relaxed.gpu.global.b64 $0, [$1];", "=l,l", [pointer], True)
        self.e.write_slot(slot, word)

    def _list_words(self, place: ir.Value) -> Iterator[ir.Value]:
        """Where the words of a value are."""
        b = self.e.b
        first = b.mul(place, I64(self._each))
        for number in range(self._each):
            yield b.ptrtoint(b.gep(self._address, [b.add(first, I64(number))]), I64)
