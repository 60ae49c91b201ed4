"""Rendering of packed stores: the elements where a mask holds go side by side.

In: the stores of a sweep, of which some are packed. Out: instructions. Each mask has a register that counts
how often it held; lanes are moved together register by register, and the whole register is written: what
lies behind the elements that count may take any value, as far as the place of the iteration itself.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.llvm.complex_ops import interleave
from jitcore.backends.llvm.registers import (
    I32,
    I64,
    Pair,
    call_intrinsic,
    from_words,
    lane_count,
    mask_first,
    memory_type,
    part_dtype,
    split_registers,
    to_words,
)
from jitcore.loopir.program import Store

# Bytes of the elements of which a register of lanes is moved together at a time.
_WORD = 8


class Packing:
    """The counts of a sweep's masks. emit_store: what emits the stores that are not packed."""

    def __init__(self, e, stores: list[Store], emit_store: Callable):
        self.e, self.stores, self.emit_store = e, stores, emit_store
        self.counts = {store.mask: e.stack_slot(I64(0)) for store in stores if store.packed}

    def emit(self) -> None:
        """The stores of one iteration, or of the iterations of all lanes."""
        moved: dict = {}  # mask -> where each of its registers goes, and the count afterwards
        for store in self.stores:
            if not store.packed:
                self.emit_store(self.e, store)
            elif self.e.lanes == 1:
                self._append_one(store, moved)
            else:
                self._append_lanes(store, moved)
        for mask, (_, _, count) in moved.items():
            self.e.b.store(count, self.counts[mask])

    def _append_one(self, store: Store, moved: dict) -> None:
        """The element is written in any case; the end moves where its mask holds."""
        e, b = self.e, self.e.b
        if store.mask not in moved:
            held, count = e.expr(store.mask), b.load(self.counts[store.mask])
            moved[store.mask] = (held, [count], b.add(count, b.zext(held, I64)))
        value = e.expr(store.value)
        place = b.add(e.index(store.offset), moved[store.mask][1][0])
        e.write_element(store.buffer, place, value)

    def _append_lanes(self, store: Store, moved: dict) -> None:
        e, b = self.e, self.e.b
        width = min(e.lanes, max(2, e.vector_bytes // _WORD))
        if store.mask not in moved:
            moved[store.mask] = self._count_lanes(store.mask, width)
        masks, starts, _ = moved[store.mask]
        value, start = e.expr_in_lanes(store.value), e.index(store.offset)
        parts = [to_words(b, part) for part in (value if isinstance(value, Pair) else [value])]
        pieces = zip(*(split_registers(b, part, width) for part in parts))
        for piece, own, first in zip(pieces, masks, starts):
            together = [_move_together(b, part, own) for part in piece]
            whole = interleave(b, *together) if len(together) == 2 else together[0]
            self._write(store.buffer, b.add(start, first), whole, own)

    def _count_lanes(self, mask, width: int) -> tuple[list, list, ir.Value]:
        """The mask in registers, how many elements lie before each of them, and after all of them."""
        e, b = self.e, self.e.b
        held = e.expr_in_lanes(mask)
        masks = split_registers(b, held if e.mask is None else b.and_(held, e.mask), width)
        starts = [b.load(self.counts[mask])]
        for own in masks:
            starts.append(b.add(starts[-1], _count_ones(b, own)))
        return masks, starts[:-1], starts[-1]

    def _write(self, buffer, place: ir.Value, whole: ir.Value, own: ir.Value) -> None:
        """Writes a register from a place on; at the end of a row only the elements that count."""
        e, b = self.e, self.e.b
        parts = 2 if buffer.dtype.kind == "c" else 1
        element = memory_type(part_dtype(buffer.dtype))
        align = part_dtype(buffer.dtype).itemsize
        first = b.gep(b.bitcast(e.pointer_of(buffer), element.as_pointer()), [b.mul(place, I64(parts))])
        whole = from_words(b, whole, element)
        if e.mask is None:
            b.store(whole, b.bitcast(first, whole.type.as_pointer()), align=align)
            return
        lanes = whole.type.count
        written = b.mul(_count_ones(b, own), I64(parts))
        e.call_masked("store", [whole, first, I32(align), mask_first(b, written, lanes)])


def _move_together(b: ir.IRBuilder, value: ir.Value, mask: ir.Value) -> ir.Value:
    """The lanes where a mask holds, first."""
    rest = ir.Constant(value.type, ir.Undefined)
    return call_intrinsic(b, "experimental.vector.compress", [value, mask, rest])


def _count_ones(b: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """How many lanes hold, as an i64."""
    bits = b.bitcast(mask, ir.IntType(lane_count(mask)))
    count = call_intrinsic(b, "ctpop", [bits])
    return b.zext(count, I64) if bits.type.width < 64 else count
