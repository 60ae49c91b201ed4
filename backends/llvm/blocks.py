"""Sweeps in blocks: how many blocks there are, and the range of each.

In: a reduction or scan that the schedule has split, and the emitter of a function. Out: instructions. On a
processor threads share blocks out; on a GPU each is a team's.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.llvm.registers import I64
from jitcore.loopir.expr import Axis
from jitcore.loopir.program import Loop, Reduce, Scan


def count_positions(e, statement: Loop | Reduce | Scan, axis: Axis) -> ir.Value:
    """How many positions of an axis a statement runs over; less than one for none."""
    low, high = e.range_of(statement, axis)
    return e.b.sub(high, low) if axis in statement.bounds else high


def count_blocks(e, sweep: Reduce | Scan) -> ir.Value:
    """Into how many blocks a sweep is split: as many as its range fills, if that varies."""
    if not sweep.bounds:
        return e.size(sweep.block_results[0].shape[0])
    block = e.size(sweep.block)
    extent = count_positions(e, sweep, sweep.axes[0])
    return e.b.sdiv(e.b.add(extent, e.b.sub(block, I64(1))), block)


def find_blocks(e, sweep: Reduce | Scan) -> Callable[[ir.Value], tuple[ir.Value, ir.Value]]:
    """What gives the range of the block of a number."""
    b, (first, end), length = e.b, e.range_of(sweep, sweep.axes[0]), e.size(sweep.block)

    def find(number: ir.Value) -> tuple[ir.Value, ir.Value]:
        low = b.mul(number, length)
        low = b.add(first, low) if sweep.bounds else low
        high = b.add(low, length)
        return low, b.select(b.icmp_signed("<", high, end), high, end)

    return find
