"""Rendering of a loop whose results go past the caches.

In: the loop of a kernel with `streams`, and a range of it. Out: instructions. Such stores write whole lines,
which begin where memory begins a line: elements before the first line and after the last vector are stored
as usual, under one mask. Where outputs do not begin lines together, those that do not follow the first are
stored as usual. They reach memory in any order, so that a fence comes before anybody is told of them.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.lanes import I32, I64, iota, splat
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Loop, Store

LINE_BYTES = 64
# Bytes of the shortest register; shorter pieces have no such stores.
MIN_BYTES = 16


def emit_streamed(e, loop: Loop, start: ir.Value, stop: ir.Value, lanes: int, streams: tuple[Buffer, ...],
                  body: Callable[[], None]) -> None:  # fmt: skip
    """The iterations [start, stop) of a loop in lanes. e: the `FunctionEmitter`."""
    b, width = e.b, I64(lanes)
    stores = [s for s in loop.body if s.buffer in streams and lanes * s.buffer.dtype.itemsize >= MIN_BYTES]
    if not stores:
        e.vector_loop(loop.axis, start, stop, [lanes], body)
        return
    # elements up to where the first output begins a line; all of them where none of its elements does
    lead, itemsize = _count_past(e, stores[0], loop.axis, start, lanes), stores[0].buffer.dtype.itemsize
    first = b.add(start, b.udiv(b.and_(b.neg(lead), I64(_alignment(stores[0], lanes) - 1)), I64(itemsize)))
    first = b.select(b.icmp_signed("<", first, stop), first, stop)
    whole = b.add(first, b.mul(b.sdiv(b.sub(stop, first), width), width))
    for store in stores:
        past = _count_past(e, store, loop.axis, first, lanes)
        e.streaming[store.buffer] = _alignment(store, lanes), b.icmp_unsigned("==", past, I64(0))
    align, is_aligned = e.streaming[stores[0].buffer]
    e.streaming[stores[0].buffer] = align, None
    whole = b.select(is_aligned, whole, first)

    def run(i):
        e.axis_values[loop.axis], e.vector_axis, e.lanes = i, loop.axis, lanes
        body()
        e.vector_axis, e.lanes = None, 1

    def run_edge(number):
        is_first = b.icmp_signed("==", number, I64(0))
        low, high = b.select(is_first, start, whole), b.select(is_first, first, stop)
        e.loop(low, high, width, lambda i: run_masked(i, high))

    def run_masked(i, high):
        e.mask = b.icmp_signed("<", b.add(splat(b, i, lanes), iota(lanes)), splat(b, high, lanes))
        run(i)
        e.mask = None

    e.loop(first, whole, width, run)
    e.streaming = {}
    e.loop(I64(0), I64(2), I64(1), run_edge)
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


def _alignment(store: Store, lanes: int) -> int:
    return min(LINE_BYTES, lanes * store.buffer.dtype.itemsize)


def _count_past(e, store: Store, axis, position: ir.Value, lanes: int) -> ir.Value:
    """How many bytes after the start of a line (or vector) a store's element at a position of the axis is."""
    saved, e.values, e.axis_values[axis] = e.values, dict(e.values), position
    address = e.b.ptrtoint(e.address(store.buffer, store.offset)[0], I64)
    e.values = saved
    return e.b.and_(address, I64(_alignment(store, lanes) - 1))


def _fence(b: ir.IRBuilder) -> None:
    """All stores before it are seen before any store after it."""
    name, module = "llvm.x86.sse.sfence", b.module
    callee = module.globals.get(name)
    if callee is None:
        callee = ir.Function(module, ir.FunctionType(ir.VoidType(), []), name)
    b.call(callee, [])
