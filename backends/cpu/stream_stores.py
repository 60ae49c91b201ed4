"""Rendering of a loop whose results go past the caches.

In: the loop of a kernel with `streams`, and a range of it. Out: instructions. Such stores write whole lines,
which begin where memory begins a line: elements before the first line and after the last vector are stored
as usual (`aligned`). Where outputs do not begin lines together, those that do not follow the first are
stored as usual. They reach memory in any order, so that a fence comes before anybody is told of them.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.aligned import (
    alignment,
    count_past,
    emit_edges,
    find_line,
)
from jitcore.backends.cpu.vectors import emit_vectors, end_of_vectors, vector_loop
from jitcore.backends.llvm.lanes import I32, I64
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Loop

# Bytes of the shortest register; shorter pieces have no such stores.
MIN_BYTES = 16


def emit_streamed(e, loop: Loop, start: ir.Value, stop: ir.Value, lanes: int, streams: tuple[Buffer, ...],
                  body: Callable[[], None]) -> None:
    """The iterations [start, stop) of a loop in lanes. e: the `FunctionEmitter`."""
    b, axis = e.b, loop.axis
    stores = [s for s in loop.body if s.buffer in streams and lanes * s.buffer.dtype.itemsize >= MIN_BYTES]
    if not stores:
        vector_loop(e, axis, start, stop, [lanes], body)
        return
    first = find_line(e, stores[0], axis, start, stop, lanes)
    for store in stores:
        past = count_past(e, store, axis, first, lanes)
        e.streaming[store.buffer] = alignment(store, lanes), b.icmp_unsigned("==", past, I64(0))
    align, is_aligned = e.streaming[stores[0].buffer]
    e.streaming[stores[0].buffer] = align, None
    last = b.select(is_aligned, end_of_vectors(e, first, stop, lanes), first)
    emit_vectors(e, axis, first, last, lanes, body)
    e.streaming = {}
    emit_edges(e, axis, (start, first), (last, stop), lanes, body)
    _fence(b)


def store_past_caches(e, buffer: Buffer, pointer: ir.Value, value: ir.Value) -> None:
    """Stores a whole vector of lanes."""
    b, (align, is_aligned) = e.b, e.streaming[buffer]
    place = b.bitcast(pointer, value.type.as_pointer())

    def store_past():
        store = b.store(value, place, align=align)
        store.set_metadata("nontemporal", b.module.add_metadata([I32(1)]))

    if is_aligned is None:
        store_past()
        return
    with b.if_else(is_aligned, likely=True) as (past, usual):
        with past:
            store_past()
        with usual:
            b.store(value, place, align=buffer.dtype.itemsize)


def _fence(b: ir.IRBuilder) -> None:
    """All stores before it are seen before any store after it."""
    name, module = "llvm.x86.sse.sfence", b.module
    callee = module.globals.get(name)
    if callee is None:
        callee = ir.Function(module, ir.FunctionType(ir.VoidType(), []), name)
    b.call(callee, [])
