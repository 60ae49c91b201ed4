"""Short rows: each is sorted in shared memory, by a bitonic network in which equal keys order by place. So
the order is stable, and does not depend on how threads run.

In: elements of rows. Out: a `__global__` function that writes them in order, and the places where they were.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.sorting.keys import Encoding
from jitcore.backends.gpu.mapping import round_up
from jitcore.backends.llvm.registers import I32, I64
from jitcore.loopir.expr import Buffer

#: Elements of a row, at most: as many as shared memory has room for. Those of a block at least, of several
#: rows where they are shorter, and of each thread.
LONGEST, _BLOCK, _THREAD = 4096, 1024, 4


def add_network(add, kind: Encoding, source: Buffer, rows: int, n: int, keys: Buffer | None,
                order: Buffer | None) -> None:
    """Adds the function for so many rows of n elements. keys, order: where elements and places go."""
    tile = max(round_up(n), 2)
    slots, wanted = max(tile, _BLOCK), [buffer for buffer in (keys, order) if buffer is not None]
    emit = partial(_sort_tiles, kind=kind, tile=tile, slots=slots, has_keys=keys is not None)
    add("tiles", [source, *wanted], [n, rows], -(-rows * tile // slots), emit, slots // _THREAD)


def _sort_tiles(e: KernelEmitter, kind: Encoding, tile: int, slots: int, has_keys: bool) -> None:
    """Each tile of so many slots is a row, with the last of keys behind its end."""
    b, (source, *written, n, rows) = e.b, e.function.args
    key_kind, threads = ir.IntType(kind.bits), slots // _THREAD
    keys, places = e.share(key_kind, slots), e.share(I32, slots)
    thread, first = e.read_register("tid.x"), b.mul(e.read_register("ctaid.x"), I64(slots))

    def locate(slot):
        """(whether there is an element, where its row begins, its place there) of a slot of the block."""
        number = b.add(first, slot)
        row, place = b.udiv(number, I64(tile)), b.urem(number, I64(tile))
        return b.and_(b.icmp_signed("<", row, rows), b.icmp_signed("<", place, n)), b.mul(row, n), place

    with e.for_range(thread, I64(slots), I64(threads)) as slot:
        exists, row, place = locate(slot)
        held = e.stack_slot(key_kind((1 << (kind.bits - 1)) - 1))
        with e.if_then(exists):
            raw = e.load_bits(source, kind.raw_bits, b.add(row, place))
            e.write_slot(held, kind.encode(b, raw, kind.bits))
        b.store(e.read_slot(held), b.gep(keys, [I64(0), slot]))
        b.store(b.trunc(place, I32), b.gep(places, [I64(0), slot]))
    e.synchronize_block()
    with e.for_range(I64(1), I64(tile.bit_length())) as log:
        size = b.shl(I64(1), log)
        with e.for_range(I64(0), log) as step:
            stride = b.shl(I64(1), b.sub(b.sub(log, I64(1)), step))
            with e.for_range(thread, I64(slots // 2), I64(threads)) as number:
                _exchange(b, keys, places, number, size, stride, tile)
            e.synchronize_block()
    with e.for_range(thread, I64(slots), I64(threads)) as slot:
        exists, row, place = locate(slot)
        with e.if_then(exists):
            found, target = b.load(b.gep(places, [I64(0), slot])), b.add(row, place)
            if has_keys:
                raw = e.load_bits(source, kind.raw_bits, b.add(row, b.sext(found, I64)))
                e.store_bits(raw, written[0], kind.raw_bits, target)
            for order in written[has_keys:]:
                e.store_bits(found, order, 32, target)


def _exchange(b: ir.IRBuilder, keys, places, number: ir.Value, size: ir.Value, stride: ir.Value,
              tile: int) -> None:
    """Puts the pair of this number in order."""
    low = b.add(b.mul(b.udiv(number, stride), b.mul(stride, I64(2))), b.urem(number, stride))
    high = b.add(low, stride)
    slots = [(b.gep(keys, [I64(0), at]), b.gep(places, [I64(0), at])) for at in (low, high)]
    (x, p), (y, q) = [tuple(map(b.load, pair)) for pair in slots]
    is_after = b.or_(b.icmp_signed(">", x, y), b.and_(b.icmp_signed("==", x, y), b.icmp_signed(">", p, q)))
    is_last = b.icmp_signed("==", size, I64(tile))
    is_down = b.and_(b.icmp_signed("!=", b.and_(low, size), I64(0)), b.not_(is_last))
    swaps = b.xor(is_after, is_down)
    pairs = (b.select(swaps, y, x), b.select(swaps, q, p)), (b.select(swaps, x, y), b.select(swaps, p, q))
    for at, (key, place) in zip(slots, pairs):
        b.store(key, at[0])
        b.store(place, at[1])
