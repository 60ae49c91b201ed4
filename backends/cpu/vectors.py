"""Rendering of loops in lanes: whole vectors, and what they leave under a mask.

In: an axis, a range of it, and what to do for each vector. Out: instructions. While the body is emitted, the
`FunctionEmitter` (e) knows the axis, the number of lanes and the mask, and the position of lane 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from jitcore.backends.llvm.lanes import I64, mask_first
from jitcore.loopir.index import Axis


def vector_loop(
    e, axis: Axis, start: ir.Value, stop: ir.Value, widths: Sequence[int], body: Callable[[], None],
    loops: Sequence[Callable | None] = (),
) -> None:
    """`body` for all of [start, stop): whole vectors of each width in turn, then once under a mask for the
    rest. loops: what emits the loop for each width, `e.loop` where it is not told."""
    for number, lanes in enumerate(widths):
        start = emit_whole(e, axis, start, stop, lanes, body, loops[number] if loops else None)
    e.when(e.b.icmp_signed("<", start, stop),
           lambda: emit_first(e, axis, start, e.b.sub(stop, start), lanes, body))


def emit_whole(
    e, axis: Axis, start: ir.Value, stop: ir.Value, lanes: int, body: Callable[[], None],
    loop: Callable | None = None,
) -> ir.Value:
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


def emit_vectors(
    e, axis: Axis, start: ir.Value, stop: ir.Value, lanes: int, body: Callable[[], None],
    loop: Callable | None = None,
) -> None:
    """`body` in lanes from each position of [start, stop), a whole number of vectors."""
    (loop or e.loop)(start, stop, I64(lanes), lambda i: emit_vector(e, axis, i, lanes, body))


def emit_vector(e, axis: Axis, position: ir.Value, lanes: int, body: Callable[[], None]) -> None:
    """`body` in lanes from one position."""
    e.axis_values[axis], e.vector_axis, e.lanes = position, axis, lanes
    body()
    e.vector_axis, e.lanes = None, 1


def emit_first(
    e, axis: Axis, position: ir.Value, count: ir.Value, lanes: int, body: Callable[[], None]
) -> None:
    """`body` in the first `count` of the lanes from one position."""
    e.mask = mask_first(e.b, count, lanes)
    emit_vector(e, axis, position, lanes, body)
    e.mask = None
