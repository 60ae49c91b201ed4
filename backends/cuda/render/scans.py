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


def scan_tiles(team: Team, op: str, dtype, read: Callable, note: Callable, start: ir.Value, stop: ir.Value,
               before: ir.Value | Pair | None, length: int, lanes: int, most: int) -> ir.Value | Pair:
    """A scan of the places [start, stop), tile after tile. Returns the combination of all.

    Args:
        read, note: `read(place)` gives the values of as many elements as a thread has side by side, in order;
            `note(place, values)` takes those up to each of them.
        before: the combination of what comes before; None for nothing.
        length: how many places there are at most: a whole number of lanes.
        lanes: elements of a thread side by side. most: those of a thread in a tile."""
    e, b, step = team.e, team.e.b, team.size * lanes
    merge, identity = functools.partial(merge_values, b, op, dtype), scan_identity(op, dtype)
    # the totals of all rounds and warps are as many as one warp combines
    rounds = max(1, min(most // lanes, WARP // max(team.size // WARP, 1), -(-length // step)))
    totals = team.share_totals(dtype, rounds)
    total, size = e.stack_slot(identity if before is None else before), I64(step * rounds)

    def if_there(place, is_whole):
        return contextlib.nullcontext() if is_whole else e.if_then(b.icmp_signed("<", place, stop))

    def read_if_there(place, is_whole):
        if is_whole:
            return read(place)
        slots = [e.stack_slot(identity) for _ in range(lanes)]
        with if_there(place, is_whole):
            for slot, value in zip(slots, read(place)):
                e.write_slot(slot, value)
        return [e.read_slot(slot) for slot in slots]

    def run_tile(first, is_whole):
        own = b.add(first, b.mul(team.rank, I64(lanes)))
        places = [b.add(own, I64(number * step)) for number in range(rounds)]
        upto = [list(itertools.accumulate(values, merge))
                for values in [read_if_there(place, is_whole) for place in places]]
        earlier, last = team.scan(op, dtype, [values[-1] for values in upto], totals)
        old = e.read_slot(total)
        e.write_slot(total, merge(old, last))
        for place, values, one in zip(places, upto, earlier):
            one = merge(old, one)
            values = [merge(one, value) for value in values]
            with if_there(place, is_whole):
                note(place, values)

    whole = b.add(start, b.mul(b.sdiv(b.sub(stop, start), size), size))
    if length >= step * rounds:
        with e.for_range(start, whole, size) as first:
            run_tile(first, True)
    with e.if_then(b.icmp_signed("<", whole, stop)):
        run_tile(whole, False)
    return e.read_slot(total)


def scan_runs(team: Team, op: str, dtype, read: Callable, note: Callable, start: ir.Value, stop: ir.Value,
              before: ir.Value | Pair | None, length: int, most: int) -> None:
    """A scan of the places [start, stop) by threads that lie a warp apart: each adds up places that follow
    each other, and reads them again when it knows what comes before. before, read, note: see `scan_tiles`, of
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
