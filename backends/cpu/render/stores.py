"""Rendering of stores: elements, lanes of them, registers that several fill together, and nontemporal ones.

In: the stores of one body, and the emitter of the function around it; for nontemporal stores the loop of a
kernel with `streams`, and a range of it. Out: instructions. Nontemporal stores write whole lines past the
caches: elements before the first line and after the last vector are stored as usual (`vector_loops`), as are
outputs that do not begin lines where the first one does. They reach memory in any order, so that a fence
comes before anybody is told of them.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.mapping.vectors import find_stride
from jitcore.backends.cpu.render.memory_access import (
    pick_lanes,
    register_lanes,
    register_pointer,
)
from jitcore.backends.cpu.render.vector_loops import (
    alignment,
    count_past,
    emit_edges,
    emit_vectors,
    end_of_vectors,
    find_line,
    vector_loop,
)
from jitcore.backends.llvm.options import is_static
from jitcore.backends.llvm.registers import I8, I32, I64, call_function, lane_count, split_registers, widen
from jitcore.backends.llvm.statements import emit_store
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Loop, Store
from jitcore.loopir.traversal import list_reads


def group_stores(e, body: list) -> dict[int, list[Store]]:
    """The stores of a body by where they are made: each at its own place, but for those that fill registers
    together, which are made at the place of the last of them."""
    groups = {number: [s] for number, s in enumerate(body) if isinstance(s, Store)}
    if e.lanes > 1 and e.mask is None:
        for places in _find_interleaved(body, e.vector_axis):
            together = [groups.pop(place)[0] for place in places]
            groups[max(places)] = together
    return groups


def emit_stores(e, stores: list[Store]) -> None:
    """One store, or several that fill registers together."""
    if len(stores) == 1:
        emit_store(e, stores[0])
    elif stores:
        _store_interleaved(e, stores, [e.expr_in_lanes(store.value) for store in stores])


def _find_interleaved(body: list, axis) -> list[list[int]]:
    """Of the stores of a body those that fill a stretch of memory together in lanes of an axis: as many
    places beside each other as the stride has elements, in order."""
    if len(body) < 2 or not all(isinstance(s, Store) and s.mask is None and not s.is_update for s in body):
        return []
    read = list_reads(body)
    found: dict[tuple, dict[int, int]] = {}
    for number, store in enumerate(body):
        stride, first = find_stride(store.offset, axis), store.offset.const
        if stride is None or stride < 0 or not is_static(first) or store.buffer in read:
            continue  # what is not in the program's text may be another number in the next call
        if store.buffer.dtype.kind != "c":
            block = (store.buffer, stride, first // stride, store.offset.terms)
            found.setdefault(block, {})[first % stride] = number
    return [[places[k] for k in range(stride)] for (_, stride, _, _), places in found.items()
            if len(places) == stride]


def _store_interleaved(e, stores: list[Store], values: list[ir.Value]) -> None:
    """Whole registers, in which lanes of all values take turns."""
    b, buffer = e.b, stores[0].buffer
    if buffer.dtype == dtypes.bool_:
        values = [b.zext(value, widen(I8, e.lanes)) for value in values]
    width, start = register_lanes(e, e.lanes, buffer.dtype), e.scalar_index(stores[0].offset)
    pieces = [split_registers(b, value, width) for value in values]
    for group, registers in enumerate(zip(*pieces)):
        for number in range(len(stores)):
            pointer = register_pointer(e, buffer, start, (group * len(stores) + number) * width)
            b.store(_weave(b, registers, number), pointer, align=buffer.dtype.itemsize)


def _weave(b: ir.IRBuilder, registers: tuple, number: int) -> ir.Value:
    """Of the elements of several registers, one of each after the other, those of one register."""
    width = lane_count(registers[0])
    taken = (divmod(number * width + k, len(registers)) for k in range(width))
    return pick_lanes(b, registers, [(turn, lane) for lane, turn in taken])


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
    call_function(b, "llvm.x86.sse.sfence", ir.VoidType(), [])
