"""Rendering of stores: elements, lanes of them, and registers that several stores fill together.

In: the stores of one body, and the emitter of the function around it. Out: instructions.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cpu.strides import find_stride, pick_lanes, register_lanes, register_pointer
from jitcore.backends.llvm.lanes import I8, lane_count, split_registers, widen
from jitcore.backends.llvm.sizes import is_static
from jitcore.backends.llvm.statements import emit_store
from jitcore.loopir.expr import walk
from jitcore.loopir.program import Store
from jitcore.schedule.statements import roots_of


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
    read = {node.attr[0] for node in walk([root for s in body for root in roots_of(s)]) if node.op == "load"}
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
