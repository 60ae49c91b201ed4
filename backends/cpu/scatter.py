"""Rendering of stores whose lanes may hit one element: places and values in lanes, updates one by one.

In: a `loopir.Store` that keeps the order of its iterations, and the emitter of a vector loop. Out:
instructions. What can be computed for all lanes at once is, and goes through the stack to scalar updates in
the order of the lanes.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.lanes import I64, call_intrinsic, lane_count, map_parts, splat
from jitcore.backends.cpu.scalar_ops import emit_operation
from jitcore.loopir.program import Store


def emit_ordered_store(e, store: Store) -> None:
    """One update after the other, for the lanes whose masks hold. e: the `FunctionEmitter`."""
    b, lanes = e.b, e.lanes
    values, places = e.stack_slot(e.expr_in_lanes(store.value)), e.index(store.offset)
    places = e.stack_slot(splat(b, places, lanes) if lane_count(places) == 1 else places)
    mask = e.mask
    if store.mask is not None:
        own = e.expr_in_lanes(store.mask)
        mask = own if mask is None else b.and_(mask, own)

    def update_all():
        for lane in range(lanes):
            _update(e, store, values, places, I64(lane))

    if mask is None:
        return update_all()
    bits_type = ir.IntType(lanes)
    bits = b.bitcast(mask, bits_type)
    all_hold = b.icmp_unsigned("==", bits, bits_type(-1))
    e.when(all_hold, update_all)
    e.when(b.not_(all_hold), lambda: _update_some(e, store, values, places, bits))


def _update_some(e, store: Store, values, places, bits: ir.Value) -> None:
    """The lanes whose bits are set, lowest first."""
    b, left = e.b, e.stack_slot(bits)
    count = call_intrinsic(b, "ctpop", [bits])
    count = b.zext(count, I64) if bits.type.width < 64 else count

    def run(_):
        now = b.load(left)
        lane = call_intrinsic(b, "cttz", [now, ir.IntType(1)(1)], now.type, [now.type])
        _update(e, store, values, places, b.zext(lane, I64) if now.type.width < 64 else lane)
        b.store(b.and_(now, b.sub(now, now.type(1))), left)

    e.loop(I64(0), count, I64(1), run)


def _update(e, store: Store, values, places, lane: ir.Value) -> None:
    b, dtype = e.b, store.buffer.dtype
    value, place = map_parts(lambda slot: _read_lane(e, slot, lane), values), _read_lane(e, places, lane)
    if store.combine is not None:
        old = e.read_element(store.buffer, place)
        value = emit_operation(b, store.combine, [dtype, dtype], dtype, [old, value])
    e.write_element(store.buffer, place, value)


def _read_lane(e, slot: ir.Value, lane: ir.Value) -> ir.Value:
    """One lane of a vector on the stack; bits are not stored one by one."""
    vector = slot.type.pointee
    if vector.element == ir.IntType(1):
        return e.b.extract_element(e.b.load(slot), e.b.trunc(lane, ir.IntType(32)))
    return e.b.load(e.b.gep(e.b.bitcast(slot, vector.element.as_pointer()), [lane]))
