"""Rendering of loops in lanes: whole vectors, and what they leave under a mask.

In: an axis, a range of it, and what to do for each vector. Out: instructions. While the body is emitted, the
`FunctionEmitter` (e) knows the axis, the number of lanes and the mask, and the position of lane 0.

Aligned loops have whole vectors that begin where memory begins a cache line; what lies before the first line
that a result begins and after the last vector is done under one mask. Results that go past the caches need it
(`stores`); stencils, which read an array at several places beside each other, gain by it: reads that lie
across the end of a line take twice as long, and then those above and below the element do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from jitcore.backends.llvm.registers import I64, mask_first
from jitcore.loopir.expr import Axis
from jitcore.loopir.program import Store


def vector_loop(e, axis: Axis, start: ir.Value, stop: ir.Value, widths: Sequence[int],
                body: Callable[[], None], loops: Sequence[Callable | None] = ()) -> None:
    """`body` for all of [start, stop): whole vectors of each width in turn, then once under a mask for the
    rest. loops: what emits the loop for each width, `e.loop` where it is not told."""
    for number, lanes in enumerate(widths):
        start = emit_whole(e, axis, start, stop, lanes, body, loops[number] if loops else None)
    e.when(e.b.icmp_signed("<", start, stop),
           lambda: emit_first(e, axis, start, e.b.sub(stop, start), lanes, body))


def emit_whole(e, axis: Axis, start: ir.Value, stop: ir.Value, lanes: int, body: Callable[[], None],
               loop: Callable | None = None) -> ir.Value:
    """`body` for the whole vectors of [start, stop). Returns: where they end."""
    end = end_of_vectors(e, start, stop, lanes)
    e.last_vector = e.b.sub(end, I64(lanes)) if e.far else None
    emit_vectors(e, axis, start, end, lanes, body, loop)
    e.last_vector = None
    return end


def end_of_vectors(e, start: ir.Value, stop: ir.Value, lanes: int) -> ir.Value:
    """Where the whole vectors from `start` on end."""
    b, width = e.b, I64(lanes)
    return b.add(start, b.mul(b.sdiv(b.sub(stop, start), width), width))


def emit_vectors(e, axis: Axis, start: ir.Value, stop: ir.Value, lanes: int, body: Callable[[], None],
                 loop: Callable | None = None) -> None:
    """`body` in lanes from each position of [start, stop), a whole number of vectors."""
    (loop or e.loop)(start, stop, I64(lanes), lambda i: emit_vector(e, axis, i, lanes, body))


def emit_vector(e, axis: Axis, position: ir.Value, lanes: int, body: Callable[[], None]) -> None:
    """`body` in lanes from one position."""
    e.axis_values[axis], e.vector_axis, e.lanes = position, axis, lanes
    body()
    e.vector_axis, e.lanes = None, 1


def emit_first(e, axis: Axis, position: ir.Value, count: ir.Value, lanes: int,
               body: Callable[[], None]) -> None:
    """`body` in the first `count` of the lanes from one position."""
    e.mask = mask_first(e.b, count, lanes)
    emit_vector(e, axis, position, lanes, body)
    e.mask = None


LINE_BYTES = 64


def emit_aligned(e, axis: Axis, store: Store, start: ir.Value, stop: ir.Value, lanes: int,
                 body: Callable[[], None]) -> None:
    """The iterations [start, stop) of a loop, so that whole vectors of `store` begin lines. e: the
    `FunctionEmitter`."""
    b = e.b
    is_short = b.icmp_signed("<", b.sub(stop, start), I64(e.tuning.min_peeled_vectors * lanes))
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


def emit_wide(e, axis: Axis, start: ir.Value, stop: ir.Value, widest: int, lanes: int,
              body: Callable[[], None]) -> ir.Value:
    """`body` for groups of `widest` columns, the last of which may lack some, if fewer than `lanes`. Returns:
    the first column that is left."""
    b, end = e.b, emit_whole(e, axis, start, stop, widest, body)
    rest = b.sub(stop, end)
    is_filled = b.icmp_signed(">", rest, I64(widest - lanes))
    e.when(is_filled, lambda: emit_first(e, axis, end, rest, widest, body))
    return b.select(is_filled, stop, end)
