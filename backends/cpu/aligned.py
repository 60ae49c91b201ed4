"""Rendering of loops in lanes whose whole vectors begin where memory begins a cache line.

In: a loop in lanes, and a range of it. Out: instructions. What lies before the first line that a result
begins and after the last vector is done under one mask. Results that go past the caches need it
(`stream_stores`); stencils, which read an array at several places beside each other, gain by it: reads that
lie across the end of a line take twice as long, and then those above and below the element do not.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.vectors import emit_first, emit_vectors, end_of_vectors
from jitcore.backends.llvm.lanes import I64
from jitcore.loopir.index import Axis
from jitcore.loopir.program import Store

LINE_BYTES = 64
# Vectors of a range below which one more, for the part before the first line, takes longer than it saves.
MIN_VECTORS = 4


def emit_aligned(e, axis: Axis, store: Store, start: ir.Value, stop: ir.Value, lanes: int,
                 body: Callable[[], None]) -> None:
    """The iterations [start, stop) of a loop, so that whole vectors of `store` begin lines. e: the
    `FunctionEmitter`."""
    b = e.b
    is_short = b.icmp_signed("<", b.sub(stop, start), I64(MIN_VECTORS * lanes))
    first = b.select(is_short, start, find_line(e, store, axis, start, stop, lanes))
    last = end_of_vectors(e, first, stop, lanes)
    emit_vectors(e, axis, first, last, lanes, body)
    emit_edges(e, axis, (start, first), (last, stop), lanes, body)


def find_line(e, store: Store, axis: Axis, start: ir.Value, stop: ir.Value, lanes: int) -> ir.Value:
    """The first position of [start, stop) where the result begins a line (or vector, if that is shorter); one
    where it does not, if none does."""
    b, line = e.b, alignment(store, lanes)
    lead = b.and_(b.neg(count_past(e, store, axis, start, lanes)), I64(line - 1))
    first = b.add(start, b.udiv(lead, I64(store.buffer.dtype.itemsize)))
    return b.select(b.icmp_signed("<", first, stop), first, stop)


def alignment(store: Store, lanes: int) -> int:
    return min(LINE_BYTES, lanes * store.buffer.dtype.itemsize)


def count_past(e, store: Store, axis: Axis, position: ir.Value, lanes: int) -> ir.Value:
    """How many bytes after the start of a line (or vector) a result at a position of the axis is."""
    saved, e.values, e.axis_values[axis] = e.values, dict(e.values), position
    address = e.b.ptrtoint(e.address(store.buffer, store.offset)[0], I64)
    e.values = saved
    return e.b.and_(address, I64(alignment(store, lanes) - 1))


def emit_edges(e, axis: Axis, before: tuple, after: tuple, lanes: int, body: Callable[[], None]) -> None:
    """Two ranges, each under a mask; the code stands there once."""
    b = e.b

    def run_edge(number):
        is_first = b.icmp_signed("==", number, I64(0))
        low, high = (b.select(is_first, *ends) for ends in zip(before, after))
        e.loop(low, high, I64(lanes), lambda i: emit_first(e, axis, i, b.sub(high, i), lanes, body))

    e.loop(I64(0), I64(2), I64(1), run_edge)
