"""Sorting: tiles in shared memory, then merges of runs, each twice as long as those before.

In: an equation `sort` or `top_k`. Out: the routine that computes it, as `__global__` functions. What is
sorted are keys, integers that order as the elements do, with the place of each; elements follow in the end. A
tile is sorted by a bitonic network in which equal keys order by place, and a merge finds for each element by
binary search how many of the other run come first: both are stable, and no result depends on how threads run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import ml_dtypes
import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.emitter import KernelEmitter, define_kernel
from jitcore.backends.cuda.mapping import Function, Mapping, round_up
from jitcore.backends.llvm.contraction import Contraction
from jitcore.backends.llvm.lanes import I32, I64
from jitcore.backends.llvm.options import RenderOptions
from jitcore.core.jaxpr import DropVar, Equation
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Call

#: Elements that a block sorts in shared memory, and its threads.
TILE, THREADS = 1024, 256
_MAPPING = Mapping("sort", (), [], 1, 1, THREADS)


def find_sort(eqn: Equation) -> SortRoutine | None:
    """The routine for an equation; None for what is left to the host: rows that 32 bits do not count."""
    name, shape = eqn.primitive.name, eqn.invars[0].aval.shape
    if name not in ("sort", "top_k") or not shape:
        return None
    axis = eqn.params["axis" if name == "top_k" else "dimension"]
    return SortRoutine(eqn, axis) if int(shape[axis]) < 1 << 31 else None


class SortRoutine:
    """Sorts along an axis. An array is [outer, n, inner], and a row of it one of outer * inner."""

    def __init__(self, eqn: Equation, axis: int):
        shape = tuple(map(int, eqn.invars[0].aval.shape))
        self.axis, self.is_top = axis, eqn.primitive.name == "top_k"
        self.n, self.inner = shape[axis], math.prod(shape[axis + 1 :])
        self.rows = math.prod(shape[:axis]) * self.inner
        self.wanted = [k for k, var in enumerate(eqn.outvars) if not isinstance(var, DropVar)]
        self.taken = eqn.params["k"] if self.is_top else self.n
        keys = eqn.invars[: eqn.params.get("num_keys", 1)]
        # (number of the operand, part of it) from the least significant key on
        self.keys = [(k, part) for k, atom in enumerate(keys)
                     for part in range(2 if atom.aval.dtype.kind == "c" else 1)][::-1]  # fmt: skip
        widest = max(_Encoding(atom.aval.dtype, self.is_top).bits for atom in keys)
        self.key_dtype = np.dtype(f"i{widest // 8}")

    def __str__(self) -> str:
        what = f"top_k {self.taken}" if self.is_top else f"sort by {len(self.keys)}"
        return f"{what} axis {self.axis}, results {self.wanted}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        count = (max(self.rows * self.n, 1),)
        return [(count, dtype) for dtype in (self.key_dtype, self.key_dtype, dtypes.int32, dtypes.int32)]

    def render(self, module: ir.Module, name: str, call: Call, options: RenderOptions) -> list[Function]:
        if 0 in (self.rows, self.n, self.taken):
            return []
        writer = _Writer(module, name, options)
        keys, other_keys, order, other_order = call.scratch
        tile = min(TILE, max(round_up(self.n), 2))
        sizes = [self.n, self.inner]
        for number, (operand, part) in enumerate(self.keys):
            source = call.inputs[operand]
            kind = _Encoding(source.dtype, self.is_top, part, self.key_dtype.itemsize * 8)
            rows = _Rows(self.rows, self.n, self.inner, tile)
            keys, other_keys, order, other_order = writer.sort_rows(
                kind, source, rows, not number, [keys, other_keys, order, other_order])  # fmt: skip
        moved = self.rows * self.taken
        for k in self.wanted:
            source = order if self.is_top and k == 1 else call.inputs[k]
            size = source.dtype.itemsize
            is_place = source is order
            writer.add(f"take{'_place' if is_place else size}", [order, source, call.outputs[k]],
                       [*sizes, self.taken, moved], -(-moved // THREADS),
                       partial(_Writer.take, size=size, is_place=is_place))  # fmt: skip
        return writer.functions


def sort_integers(renderer, count: int, buffers: list[Buffer]) -> tuple[Buffer, Buffer]:
    """Adds functions to a renderer that sort integers. buffers: these, two more like them, and two of int32
    for places. Returns: those in which the sorted ones, and the places where they were, will be."""
    source, *scratch = buffers
    writer = _Writer(renderer.module, renderer.name, renderer.options)
    kind = _Encoding(source.dtype, False, 0, 8 * source.dtype.itemsize)
    rows = _Rows(1, count, 1, min(TILE, max(round_up(count), 2)))
    keys, _, order, _ = writer.sort_rows(kind, source, rows, True, scratch)
    renderer.functions += writer.functions
    return keys, order


class _Rows(NamedTuple):
    """How many rows there are, of n elements each; inner: how far these are from each other. tile: elements
    that are sorted together."""

    count: int
    n: int
    inner: int
    tile: int


class _Encoding:
    """How elements become keys. is_top: the largest come first, and -0.0 is below 0.0. part: of a complex
    number."""

    def __init__(self, dtype: np.dtype, is_top: bool, part: int = 0, bits: int = 0):
        self.stride, self.part = (2, part) if dtype.kind == "c" else (1, 0)
        real = dtypes.real_dtype(dtype) if dtype.kind == "c" else dtype
        self.is_float, self.is_top = dtypes.is_floating(real), is_top
        self.is_signed = self.is_float or real.kind == "i"
        self.raw_bits = 8 * real.itemsize
        self.bits = bits or max(32, self.raw_bits)
        if self.is_float:
            info = ml_dtypes.finfo(real)
            self.magnitude = (1 << (info.bits - 1)) - 1
            self.infinity = ((1 << info.nexp) - 1) << info.nmant
            self.nan = self.infinity | 1 << (info.nmant - 1)

    def encode(self, b: ir.IRBuilder, raw: ir.Value) -> ir.Value:
        kind = ir.IntType(self.bits)
        if self.raw_bits < self.bits:
            raw = (b.sext if self.is_signed else b.zext)(raw, kind)
        key = raw
        if self.is_float:
            sign = b.and_(b.ashr(raw, kind(self.bits - 1)), kind(self.magnitude))
            size = b.and_(raw, kind(self.magnitude))
            key = b.xor(raw, sign)
            if not self.is_top:
                key = b.select(b.icmp_signed("==", size, kind(0)), kind(0), key)
            key = b.select(b.icmp_signed(">", size, kind(self.infinity)), kind(self.nan), key)
        elif not self.is_signed and self.raw_bits == self.bits:
            key = b.xor(raw, kind(-1 << (self.bits - 1)))
        return b.not_(key) if self.is_top else key


class _Writer:
    """Defines functions, each once, and notes how they are launched."""

    def __init__(self, module: ir.Module, name: str, options: RenderOptions):
        self.module, self.name, self.options = module, name, options
        self.functions: list[Function] = []
        self.e: KernelEmitter | None = None

    def add(self, suffix: str, buffers: list[Buffer], sizes: list[int], grid: int, emit: Callable) -> None:
        name = f"{self.name}_{suffix}"
        if name not in self.module.globals:
            function = define_kernel(self.module, name, len(buffers), len(sizes), False)
            self.e = KernelEmitter(function, [], [], self.options, Contraction())
            emit(self)
            self.e.b.ret_void()
            self.e.finish()
        self.functions.append(Function(name, buffers, sizes, _MAPPING, grid))

    def sort_rows(self, kind: _Encoding, source: Buffer, rows: _Rows, is_first: bool,
                  buffers: list[Buffer]) -> list[Buffer]:  # fmt: skip
        """Sorts by one key. buffers: two for keys and two for orders, of which the third holds the order so
        far, unless this is the first key. Returns: these, the first and the third with the result."""
        keys, other_keys, order, other_order = buffers
        tiles, count = rows.count * -(-rows.n // rows.tile), rows.count * rows.n
        emit = partial(_Writer.sort_tiles, kind=kind, tile=rows.tile, is_first=is_first)
        self.add(f"tiles{len(self.functions)}", [source, order, keys, other_order],
                 [rows.n, rows.inner, tiles], -(-tiles * rows.tile // TILE), emit)  # fmt: skip
        order, other_order = other_order, order
        width, emit = rows.tile, partial(_Writer.merge, bits=kind.bits)
        while width < rows.n:
            given = [keys, order, other_keys, other_order]
            self.add("merge", given, [rows.n, count, width], -(-count // THREADS), emit)
            keys, other_keys, order, other_order = other_keys, keys, other_order, order
            width *= 2
        return [keys, other_keys, order, other_order]

    def _at(self, pointer: ir.Value, bits: int, place: ir.Value) -> ir.Value:
        return self.e.b.gep(self.e.b.bitcast(pointer, ir.IntType(bits).as_pointer()), [place])

    def _load(self, pointer: ir.Value, bits: int, place: ir.Value) -> ir.Value:
        return self.e.b.load(self._at(pointer, bits, place))

    # -- tiles --------------------------------------------------------------------------------------------
    def sort_tiles(self, kind: _Encoding, tile: int, is_first: bool) -> None:
        e, b = self.e, self.e.b
        source, order, keys_out, order_out, n, inner, count = e.function.args
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

        def gather(slot):
            exists, row, _, place, local = locate(slot)
            held = e.stack_slot(key_kind((1 << (kind.bits - 1)) - 1))

            def read():
                at = place if is_first else b.sext(self._load(order, 32, b.add(b.mul(row, n), place)), I64)
                outer, across = b.udiv(row, inner), b.urem(row, inner)
                element = b.add(b.mul(b.add(b.mul(outer, n), at), inner), across)
                if kind.stride == 2:
                    element = b.add(b.mul(element, I64(2)), I64(kind.part))
                e.write_slot(held, kind.encode(b, self._load(source, kind.raw_bits, element)))

            e.when(exists, read)
            b.store(e.read_slot(held), b.gep(keys, [I64(0), slot]))
            b.store(b.trunc(local, I32), b.gep(places, [I64(0), slot]))

        def put(slot):
            exists, row, start, place, _ = locate(slot)

            def write():
                base = b.mul(row, n)
                found = b.add(start, b.sext(b.load(b.gep(places, [I64(0), slot])), I64))
                old = b.trunc(found, I32) if is_first else self._load(order, 32, b.add(base, found))
                target = b.add(base, place)
                b.store(b.load(b.gep(keys, [I64(0), slot])), self._at(keys_out, kind.bits, target))
                b.store(old, self._at(order_out, 32, target))

            e.when(exists, write)

        e.loop(thread, I64(TILE), I64(THREADS), gather)
        e.synchronize_block()
        self._run_network(keys, places, thread, tile)
        e.loop(thread, I64(TILE), I64(THREADS), put)

    def _run_network(self, keys, places, thread: ir.Value, tile: int) -> None:
        """Bitonic sorting of groups of `tile` slots, upwards."""
        e, b = self.e, self.e.b

        def exchange(number, size, stride):
            low = b.add(b.mul(b.udiv(number, stride), b.mul(stride, I64(2))), b.urem(number, stride))
            high = b.add(low, stride)
            slots = [(b.gep(keys, [I64(0), at]), b.gep(places, [I64(0), at])) for at in (low, high)]
            (x, p), (y, q) = [tuple(map(b.load, pair)) for pair in slots]
            is_after = b.or_(b.icmp_signed(">", x, y),
                             b.and_(b.icmp_signed("==", x, y), b.icmp_signed(">", p, q)))  # fmt: skip
            is_last = b.icmp_signed("==", size, I64(tile))
            is_down = b.and_(b.icmp_signed("!=", b.and_(low, size), I64(0)), b.not_(is_last))
            swaps = b.xor(is_after, is_down)
            for at, (key, place) in zip(slots, ((b.select(swaps, y, x), b.select(swaps, q, p)),
                                                (b.select(swaps, x, y), b.select(swaps, p, q)))):  # fmt: skip
                b.store(key, at[0])
                b.store(place, at[1])

        def stage(step, size, log):
            stride = b.shl(I64(1), b.sub(b.sub(log, I64(1)), step))
            e.loop(thread, I64(TILE // 2), I64(THREADS), lambda number: exchange(number, size, stride))
            e.synchronize_block()

        def phase(log):
            size = b.shl(I64(1), log)
            e.loop(I64(0), log, I64(1), lambda step: stage(step, size, log))

        e.loop(I64(1), I64(tile.bit_length()), I64(1), phase)

    # -- merges -------------------------------------------------------------------------------------------
    def merge(self, bits: int) -> None:
        e, b = self.e, self.e.b
        keys, order, keys_out, order_out, n, count, width = e.function.args
        item = e.read_item(THREADS)

        def run():
            row, place = b.udiv(item, n), b.urem(item, n)
            base = b.mul(row, n)
            start = b.mul(b.udiv(place, b.mul(width, I64(2))), b.mul(width, I64(2)))
            middle = self._least(b.add(start, width), n)
            end = self._least(b.add(middle, width), n)
            is_left = b.icmp_signed("<", place, middle)
            key = self._load(keys, bits, item)
            low, high = b.select(is_left, middle, start), b.select(is_left, end, middle)
            before = self._search(keys, bits, base, key, low, high, is_left)
            own = b.select(is_left, b.sub(place, start), b.sub(place, middle))
            target = b.add(base, b.add(start, b.add(own, b.sub(before, low))))
            b.store(key, self._at(keys_out, bits, target))
            b.store(self._load(order, 32, item), self._at(order_out, 32, target))

        e.when(b.icmp_signed("<", item, count), run)

    def _search(self, keys, bits: int, base, key, low, high, is_left) -> ir.Value:
        """The first place in [low, high) whose key comes behind; equal ones do for an element of the left
        run."""
        e, b = self.e, self.e.b
        ends = [e.stack_slot(low), e.stack_slot(high)]

        def halve():
            first, last = map(e.read_slot, ends)
            middle = b.lshr(b.add(first, last), I64(1))
            other = self._load(keys, bits, b.add(base, middle))
            comes_first = b.select(is_left, b.icmp_signed("<", other, key), b.icmp_signed("<=", other, key))
            e.write_slot(ends[0], b.select(comes_first, b.add(middle, I64(1)), first))
            e.write_slot(ends[1], b.select(comes_first, last, middle))

        e.repeat(lambda: b.icmp_signed("<", *map(e.read_slot, ends)), halve)
        return e.read_slot(ends[0])

    def _least(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.e.b.select(self.e.b.icmp_signed("<", x, y), x, y)

    # -- elements -----------------------------------------------------------------------------------------
    def take(self, size: int, is_place: bool) -> None:
        """Elements of so many bytes, or their places, in the order that was found."""
        e, b = self.e, self.e.b
        order, source, target, n, inner, taken, count = e.function.args
        item, half = e.read_item(THREADS), 64 if size > 8 else 8 * size

        def run():
            row, place = b.udiv(item, taken), b.urem(item, taken)
            found = self._load(order, 32, b.add(b.mul(row, n), place))
            outer, across = b.udiv(row, inner), b.urem(row, inner)
            at = b.add(b.mul(b.add(b.mul(outer, n), b.sext(found, I64)), inner), across)
            to = b.add(b.mul(b.add(b.mul(outer, taken), place), inner), across)
            if is_place:
                return b.store(found, self._at(target, 32, to))
            parts = size * 8 // half
            for part in range(parts):
                place_of = [b.add(b.mul(one, I64(parts)), I64(part)) for one in (at, to)]
                b.store(self._load(source, half, place_of[0]), self._at(target, half, place_of[1]))

        e.when(b.icmp_signed("<", item, count), run)
