"""Scans by tiles: a team reads a tile, combines what its threads have, and writes what comes up to each
place.

In: a team, what reads and writes places, and what comes before a tile. Out: instructions. A tile is several
rounds, in each of which a thread has elements side by side: all are read before the first result is needed,
and the threads exchange what they found once.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cuda.render.team import Team, merge_values, scan_identity
from jitcore.backends.gpu.mapping import WARP
from jitcore.backends.llvm.registers import I64, Pair


class TileScan:
    """A scan by one team.

    Attributes:
        lanes: elements of a thread side by side. A range holds whole numbers of them.
        read, note: `read(place)` gives the values of as many elements, in order, and `note(place, values)`
            takes those up to each of them.
        size: elements of a tile.
    """

    def __init__(self, team: Team, op: str, dtype, read: Callable, note: Callable, length: int,
                 lanes: int = 1, most: int = 1):
        """length: places of a range at most. most: elements of a thread in a tile."""
        self.team, self.dtype, self.op, self.read, self.note, self.lanes = team, dtype, op, read, note, lanes
        self.merge = functools.partial(merge_values, team.e.b, op, dtype)
        self.identity = scan_identity(op, dtype)
        self.length, self._step = length, team.size * lanes
        most_rounds = self.count_elements(team.size, lanes, most) // self._step
        self._rounds = max(1, min(most_rounds, -(-length // self._step)))
        self.size = self._step * self._rounds
        self._totals = team.share_totals(dtype, self._rounds)

    @staticmethod
    def count_elements(team: int, lanes: int, most: int) -> int:
        """Elements of a tile of a long range. The totals of all rounds and warps are as many as one warp
        combines."""
        return team * lanes * max(1, min(most // lanes, WARP // max(team // WARP, 1)))

    def run(self, start: ir.Value, stop: ir.Value, before: ir.Value | Pair | None) -> ir.Value | Pair:
        """The places [start, stop), tile after tile. before: the combination of what comes before; None for
        nothing. Returns that of all."""
        e, b = self.team.e, self.team.e.b
        total = e.stack_slot(self.identity if before is None else before)

        def advance(last):
            old = e.read_slot(total)
            e.write_slot(total, self.merge(old, last))
            return old

        size = I64(self.size)
        whole = b.add(start, b.mul(b.sdiv(b.sub(stop, start), size), size))
        if self.length >= self.size:
            with e.for_range(start, whole, size) as first:
                self.run_tile(first, None, advance)
        with e.if_then(b.icmp_signed("<", whole, stop)):
            self.run_tile(whole, stop, advance)
        return e.read_slot(total)

    def run_tile(self, first: ir.Value, stop: ir.Value | None, advance: Callable) -> None:
        """The tile that begins at a place. stop: where the places end; None if they do not in this tile.
        `advance(last)` gives what comes before the tile; last: the combination of it."""
        b, merge = self.team.e.b, self.merge
        own = b.add(first, b.mul(self.team.rank, I64(self.lanes)))
        places = [b.add(own, I64(number * self._step)) for number in range(self._rounds)]
        upto = [list(itertools.accumulate(values, merge))
                for values in [self._read_if_there(place, stop) for place in places]]
        earlier, last = self.team.scan(self.op, self.dtype, [values[-1] for values in upto], self._totals)
        before = advance(last)
        for place, values, one in zip(places, upto, earlier):
            one = merge(before, one)
            values = [merge(one, value) for value in values]
            with self._if_there(place, stop):
                self.note(place, values)

    def _read_if_there(self, place: ir.Value, stop: ir.Value | None) -> list:
        if stop is None:
            return self.read(place)
        e = self.team.e
        slots = [e.stack_slot(self.identity) for _ in range(self.lanes)]
        with self._if_there(place, stop):
            for slot, value in zip(slots, self.read(place)):
                e.write_slot(slot, value)
        return [e.read_slot(slot) for slot in slots]

    def _if_there(self, place: ir.Value, stop: ir.Value | None) -> contextlib.AbstractContextManager:
        e = self.team.e
        return contextlib.nullcontext() if stop is None else e.if_then(e.b.icmp_signed("<", place, stop))


def scan_runs(team: Team, op: str, dtype, read: Callable, note: Callable, start: ir.Value, stop: ir.Value,
              before: ir.Value | Pair | None, length: int, most: int) -> None:
    """A scan of the places [start, stop) by threads that lie a warp apart: each adds up places that follow
    each other, and reads them again when it knows what comes before. before, read, note: see `TileScan`, of
    one element. length: how many places any team has at most; most: places of a thread in a tile."""
    e, b = team.e, team.e.b
    merge, identity = functools.partial(merge_values, b, op, dtype), scan_identity(op, dtype)
    total, own = e.stack_slot(identity if before is None else before), e.stack_slot(identity)
    totals, run = team.share_totals(dtype), min(most, -(-length // team.size))

    def add(place):
        e.write_slot(own, merge(e.read_slot(own), *read(place)))

    with e.for_range(I64(0), I64(length), I64(team.size * run)) as tile:  # of teams with fewer places, too
        first = b.add(b.add(start, tile), b.mul(team.rank, I64(run)))
        end = b.select(team.active, e.least(b.add(first, I64(run)), stop), first)
        e.write_slot(own, identity)
        with e.for_range(first, end) as place:
            add(place)
        (earlier,), last = team.scan(op, dtype, [e.read_slot(own)], totals)
        old = e.read_slot(total)
        e.write_slot(total, merge(old, last))
        e.write_slot(own, merge(old, earlier))
        with e.for_range(first, end) as place:
            add(place)
            note(place, [e.read_slot(own)])
