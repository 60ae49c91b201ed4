"""Sorting: tiles in shared memory, then merges of runs, each twice as long as those before; or by digits.

In: an equation `sort` or `top_k`. Out: the routine that computes it, as `__global__` functions. What is
sorted are keys, integers that order as the elements do, with the place of each; elements follow in the end. A
tile is sorted by a bitonic network in which equal keys order by place, and a merge finds for each element by
binary search how many of the other run come first: both are stable, and no result depends on how threads run.
Long rows are sorted by digits (`radix`), where that moves less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.sorting.keys import Encoding, find_element
from jitcore.backends.cuda.sorting.radix import LONGEST, add_passes, list_tables
from jitcore.backends.gpu.mapping import Function, Mapping, round_up
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.contraction import Contraction
from jitcore.backends.llvm.options import RenderOptions
from jitcore.backends.llvm.registers import I32, I64
from jitcore.core.jaxpr import DropVar, Equation
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Call

#: Elements that a block sorts in shared memory, and its threads.
TILE, THREADS = 1024, 256
_PLACE = dtypes.int32.itemsize
_MAPPING = Mapping("sort", (), [], 1, 1, THREADS)


def find_sort(eqn: Equation, tuning: Tuning) -> SortRoutine | None:
    """The routine for an equation; None for what is left to the host: rows that 32 bits do not count."""
    name = eqn.primitive.name
    if name not in ("sort", "top_k") or not eqn.invars[0].aval.shape:
        return None
    axis, shape = eqn.params["axis" if name == "top_k" else "dimension"], eqn.invars[0].aval.shape
    return SortRoutine(eqn, axis, tuning) if int(shape[axis]) < 1 << 31 else None


class Rows(NamedTuple):
    """How many rows there are, of n elements each; inner: how far these are from each other."""

    count: int
    n: int
    inner: int

    @property
    def tile(self) -> int:
        """Elements that are sorted together."""
        return min(TILE, max(round_up(self.n), 2))

    @property
    def merges(self) -> int:
        return (max(self.n - 1, 0) // TILE).bit_length()


def prefers_digits(kind: Encoding, rows: Rows, is_alone: bool) -> bool:
    """Whether sorting by digits moves less than merging runs. is_alone: whether no places are asked for."""
    launch = kind.tuning.launch_bytes
    raw, key, merges = kind.raw_bits // 8, kind.bits // 8 + _PLACE, rows.merges
    moved = 2 * raw + (0 if is_alone else 2 * _PLACE)
    table = sum(math.prod(shape) for shape, _ in list_tables([kind], rows.count, rows.n))
    count = rows.count * rows.n
    by_digits = count * raw + kind.digits * (count * moved + 3 * table * _PLACE + launch) + 3 * launch
    merged = count * (raw + (1 + 2 * merges) * key) + (1 + merges) * launch
    taken = is_alone * (count * (_PLACE + 2 * raw) + launch)
    return merges > 0 and rows.n <= LONGEST and by_digits < merged + taken


def _list_scratch(kinds: list[Encoding], rows: Rows, is_alone: bool = False) -> list[tuple[tuple, np.dtype]]:
    """What sorting needs: two buffers for keys, two for orders, and tables of digits. is_alone: one buffer
    for elements, and no orders, where they are sorted by digits."""
    count, digits = (max(rows.count * rows.n, 1),), [k for k in kinds if prefers_digits(k, rows, is_alone)]
    tables = list_tables(digits, rows.count, rows.n) if digits else []
    if is_alone and digits:
        return [(count, np.dtype(f"i{kinds[0].raw_bits // 8}")), *tables]
    key = np.dtype(f"i{max(kind.bits for kind in kinds) // 8}")
    return [*((count, dtype) for dtype in (key, key, dtypes.int32, dtypes.int32)), *tables]


class SortRoutine:
    """Sorts along an axis. An array is [outer, n, inner], and a row of it one of outer * inner."""

    def __init__(self, eqn: Equation, axis: int, tuning: Tuning):
        shape = tuple(map(int, eqn.invars[0].aval.shape))
        self.axis, self.is_top = axis, eqn.primitive.name == "top_k"
        inner = math.prod(shape[axis + 1 :])
        self.rows = Rows(math.prod(shape[:axis]) * inner, shape[axis], inner)
        self.wanted = [k for k, var in enumerate(eqn.outvars) if not isinstance(var, DropVar)]
        self.taken = eqn.params["k"] if self.is_top else self.rows.n
        keys = eqn.invars[: eqn.params.get("num_keys", 1)]
        # (number of the operand, its keys) from the least significant key on
        self.keys = [(k, Encoding(atom.aval.dtype, tuning, self.is_top, part)) for k, atom in enumerate(keys)
                     for part in range(2 if atom.aval.dtype.kind == "c" else 1)][::-1]
        # elements of the first operand that are sorted by digits go to their result by themselves
        is_whole = keys[0].aval.dtype.kind != "c" and inner == 1 and not self.is_top
        is_alone = len(self.keys) == 1 and self.wanted == [0] and is_whole
        by_digits = prefers_digits(self.keys[-1][1], self.rows, is_alone)
        self.is_direct = is_whole and 0 in self.wanted and by_digits
        self.is_alone = is_alone and self.is_direct

    def __str__(self) -> str:
        what = f"top_k {self.taken}" if self.is_top else f"sort by {len(self.keys)}"
        return f"{what} axis {self.axis}, results {self.wanted}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        return _list_scratch([kind for _, kind in self.keys], self.rows, self.is_alone)

    def render(self, module: ir.Module, name: str, call: Call, options: RenderOptions) -> list[Function]:
        rows, writer = self.rows, _Writer(module, name, options)
        if 0 in (rows.count, rows.n, self.taken):
            return []
        order = self._sort_keys(writer, call)
        moved = rows.count * self.taken
        for k in self.wanted[self.is_direct :]:
            source = order if self.is_top and k == 1 else call.inputs[k]
            size = source.dtype.itemsize
            is_place = source is order
            writer.add(f"take{'_place' if is_place else size}", [order, source, call.outputs[k]],
                       [rows.n, rows.inner, self.taken, moved], -(-moved // THREADS),
                       partial(_take, size=size, is_place=is_place))
        return writer.functions

    def _sort_keys(self, writer: _Writer, call: Call) -> Buffer | None:
        """The order that is found; None where elements alone are sorted."""
        first, end = (1, 1) if self.is_alone else (2, 4)
        keys, orders, tables = call.scratch[:first], call.scratch[first:end], call.scratch[end:]
        for number, (operand, kind) in enumerate(self.keys):
            source = call.inputs[operand]
            if self.is_direct and number == len(self.keys) - 1:
                keys = [call.outputs[0], keys[0]]
                if kind.digits % 2:  # passes take turns, and the last one writes the result
                    keys.reverse()
                add_passes(writer.add, number, kind, source, self.rows, keys, orders, tables)
            else:
                writer.sort_rows(number, kind, source, self.rows, keys, orders, tables)
        return orders[0] if orders else None


def sort_integers(renderer, source: Buffer, limit: int) -> tuple[Buffer, Buffer]:
    """Adds functions to a renderer that sort integers from 0 to a limit. Returns: buffers in which the sorted
    ones, and the places where they were, will be."""
    writer = _Writer(renderer.module, renderer.name, renderer.options)
    kind = Encoding(source.dtype, renderer.tuning, limit=limit)
    rows = Rows(1, math.prod(map(int, source.shape)), 1)
    scratch = [Buffer(f"{renderer.name}_sort{number}", shape, dtype, "temp")
               for number, (shape, dtype) in enumerate(_list_scratch([kind], rows))]
    keys, orders = scratch[:2], scratch[2:4]
    writer.sort_rows(0, kind, source, rows, keys, orders, scratch[4:])
    renderer.scratch += scratch
    renderer.functions += writer.functions
    return keys[0], orders[0]


class _Writer:
    """Defines functions, each once, and notes how they are launched."""

    def __init__(self, module: ir.Module, name: str, options: RenderOptions):
        self.module, self.name, self.options = module, name, options
        self.functions: list[Function] = []

    def add(self, suffix: str, buffers: list[Buffer], sizes: list[int], grid: int,
            emit: Callable[[KernelEmitter], None], block: int = THREADS) -> None:
        name = f"{self.name}_{suffix}"
        if name not in self.module.globals:
            e = KernelEmitter(self.module, name, buffers, sizes, self.options, Contraction())
            e.limit_registers(block)
            emit(e)
            e.finish()
        self.functions.append(Function(name, buffers, sizes, _MAPPING._replace(block=block), grid))

    def sort_rows(self, number: int, kind: Encoding, source: Buffer, rows: Rows, keys: list[Buffer],
                  orders: list[Buffer], tables: list[Buffer]) -> None:
        """Sorts by one key, of this number. keys, orders: two buffers each. The first of the orders holds the
        order so far, unless this is the first key; the first ones hold the result."""
        if prefers_digits(kind, rows, False):
            return add_passes(self.add, number, kind, source, rows, keys, orders, tables)
        tiles, count = rows.count * -(-rows.n // rows.tile), rows.count * rows.n
        self.add(f"tiles{number}", [source, orders[0], keys[0], orders[1]], [rows.n, rows.inner, tiles],
                 -(-tiles * rows.tile // TILE),
                 partial(_sort_tiles, kind=kind, tile=rows.tile, is_first=not number))
        orders.reverse()
        for doubling in range(rows.merges):
            given = [keys[0], orders[0], keys[1], orders[1]]
            self.add(f"merge{kind.bits}", given, [rows.n, count, TILE << doubling], -(-count // THREADS),
                     partial(_merge, bits=kind.bits))
            keys.reverse()
            orders.reverse()


# -- tiles ------------------------------------------------------------------------------------------------
def _sort_tiles(e: KernelEmitter, kind: Encoding, tile: int, is_first: bool) -> None:
    b, (source, order, keys_out, order_out, n, inner, count) = e.b, e.function.args
    key_kind = ir.IntType(kind.bits)
    keys, places = e.share(key_kind, TILE), e.share(I32, TILE)
    thread, first = e.read_register("tid.x"), b.mul(e.read_register("ctaid.x"), I64(TILE))
    per_row = e.divide_up(n, tile)

    def locate(slot):
        """(whether there is an element, its row, its place in the row) of a slot of the block."""
        number = b.add(first, slot)
        which, local = b.udiv(number, I64(tile)), b.urem(number, I64(tile))
        row, start = b.udiv(which, per_row), b.mul(b.urem(which, per_row), I64(tile))
        place = b.add(start, local)
        exists = b.and_(b.icmp_signed("<", which, count), b.icmp_signed("<", place, n))
        return exists, row, start, place, local

    with e.for_range(thread, I64(TILE), I64(THREADS)) as slot:
        exists, row, _, place, local = locate(slot)
        held = e.stack_slot(key_kind((1 << (kind.bits - 1)) - 1))
        with e.if_then(exists):
            at = place if is_first else b.sext(e.load_bits(order, 32, b.add(b.mul(row, n), place)), I64)
            element = kind.find_part(b, find_element(b, row, at, n, inner))
            e.write_slot(held, kind.encode(b, e.load_bits(source, kind.raw_bits, element), kind.bits))
        b.store(e.read_slot(held), b.gep(keys, [I64(0), slot]))
        b.store(b.trunc(local, I32), b.gep(places, [I64(0), slot]))
    e.synchronize_block()
    _run_network(e, keys, places, thread, tile)
    with e.for_range(thread, I64(TILE), I64(THREADS)) as slot:
        exists, row, start, place, _ = locate(slot)
        with e.if_then(exists):
            base = b.mul(row, n)
            found = b.add(start, b.sext(b.load(b.gep(places, [I64(0), slot])), I64))
            old = b.trunc(found, I32) if is_first else e.load_bits(order, 32, b.add(base, found))
            target = b.add(base, place)
            e.store_bits(b.load(b.gep(keys, [I64(0), slot])), keys_out, kind.bits, target)
            e.store_bits(old, order_out, 32, target)


def _run_network(e: KernelEmitter, keys, places, thread: ir.Value, tile: int) -> None:
    """Bitonic sorting of groups of `tile` slots, upwards."""
    b = e.b
    with e.for_range(I64(1), I64(tile.bit_length())) as log:
        size = b.shl(I64(1), log)
        with e.for_range(I64(0), log) as step:
            stride = b.shl(I64(1), b.sub(b.sub(log, I64(1)), step))
            with e.for_range(thread, I64(TILE // 2), I64(THREADS)) as number:
                _exchange(b, keys, places, number, size, stride, tile)
            e.synchronize_block()


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


# -- merges -----------------------------------------------------------------------------------------------
def _merge(e: KernelEmitter, bits: int) -> None:
    b, (keys, order, keys_out, order_out, n, count, width) = e.b, e.function.args
    item = e.read_item(THREADS)
    with e.if_then(b.icmp_signed("<", item, count)):
        row, place = b.udiv(item, n), b.urem(item, n)
        base = b.mul(row, n)
        start = b.mul(b.udiv(place, b.mul(width, I64(2))), b.mul(width, I64(2)))
        middle = e.least(b.add(start, width), n)
        end = e.least(b.add(middle, width), n)
        is_left = b.icmp_signed("<", place, middle)
        key = e.load_bits(keys, bits, item)
        low, high = b.select(is_left, middle, start), b.select(is_left, end, middle)
        before = _search(e, keys, bits, base, key, low, high, is_left)
        own = b.select(is_left, b.sub(place, start), b.sub(place, middle))
        target = b.add(base, b.add(start, b.add(own, b.sub(before, low))))
        e.store_bits(key, keys_out, bits, target)
        e.store_bits(e.load_bits(order, 32, item), order_out, 32, target)


def _search(e: KernelEmitter, keys, bits: int, base, key, low, high, is_left) -> ir.Value:
    """The first place in [low, high) whose key comes behind; equal ones do for an element of the left run."""
    b, ends = e.b, [e.stack_slot(low), e.stack_slot(high)]

    def halve():
        first, last = map(e.read_slot, ends)
        middle = b.lshr(b.add(first, last), I64(1))
        other = e.load_bits(keys, bits, b.add(base, middle))
        comes_first = b.select(is_left, b.icmp_signed("<", other, key), b.icmp_signed("<=", other, key))
        e.write_slot(ends[0], b.select(comes_first, b.add(middle, I64(1)), first))
        e.write_slot(ends[1], b.select(comes_first, last, middle))

    e.repeat(lambda: b.icmp_signed("<", *map(e.read_slot, ends)), halve)
    return e.read_slot(ends[0])


# -- elements ---------------------------------------------------------------------------------------------
def _take(e: KernelEmitter, size: int, is_place: bool) -> None:
    """Elements of so many bytes, or their places, in the order that was found."""
    b, (order, source, target, n, inner, taken, count) = e.b, e.function.args
    item, half = e.read_item(THREADS), 64 if size > 8 else 8 * size
    with e.if_then(b.icmp_signed("<", item, count)):
        row, place = b.udiv(item, taken), b.urem(item, taken)
        found = e.load_bits(order, 32, b.add(b.mul(row, n), place))
        outer, across = b.udiv(row, inner), b.urem(row, inner)
        at = b.add(b.mul(b.add(b.mul(outer, n), b.sext(found, I64)), inner), across)
        to = b.add(b.mul(b.add(b.mul(outer, taken), place), inner), across)
        if is_place:
            e.store_bits(found, target, 32, to)
        parts = 0 if is_place else size * 8 // half
        for part in range(parts):
            place_of = [b.add(b.mul(one, I64(parts)), I64(part)) for one in (at, to)]
            e.store_bits(e.load_bits(source, half, place_of[0]), target, half, place_of[1])
