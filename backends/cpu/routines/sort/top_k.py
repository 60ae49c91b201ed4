"""The largest elements of rows in machine code.

In: a symbol, `jitcore_sort_top_<dtype>`. Out: LLVM text that defines it. Stage: rendering of routines.

    void jitcore_sort_top_float32(in, values, places, keys, chosen, positions, packed,
                                  i64 pieces, i64 rows, i64 n, i64 is_shared, i64 k, i64 capacity)

Keys are inverted, so that the largest elements have the smallest ones. One pass over a row finds the k-th
smallest key: what is below the best bound so far goes to a buffer, and whenever this is full, its k
smallest keys are kept and the last of them is the new bound. A second pass collects the positions of the k
elements, which are then ordered. All keys have 64 bits, so that one engine serves both.

Scratch per piece: keys[capacity], chosen[k + 1], positions[2 * k + 1] (int32), packed[k]; int64 but one.
"""

from __future__ import annotations

import numpy as np

from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.sort.encoding import Encoding, constant, is_any, type_of
from jitcore.backends.cpu.routines.sort.keys import compress, count_true, key_type
from jitcore.backends.cpu.routines.sort.order import ORDER_PREFIX
from jitcore.backends.cpu.routines.sort.rows import element, sort_keys, write_lanes, write_row_function

TOP_PREFIX = "jitcore_sort_top_"

_POINTERS = ("in", "values", "places", "keys", "chosen", "positions", "packed")


def render_top(symbol: str, tuning: Sort) -> str:
    """The module of `jitcore_sort_top_<dtype>`."""
    w = TextWriter(tuning)
    with write_row_function(w, symbol, _POINTERS, ("k", "capacity")):
        _Selection(w, Encoding(np.dtype(symbol.removeprefix(TOP_PREFIX)), 64)).write()
    return w.text()


class _Selection:
    """Code that finds the largest elements of one row."""

    def __init__(self, w: TextWriter, encoding: Encoding):
        self.w, self.encoding, self.key = w, encoding, key_type(encoding.bits)
        self.source = element(w, "%in", w.mul("%row", "%n"), encoding.raw_bits)
        self.buffer = self._place("%keys", w.mul("%piece", "%capacity"))
        self.chosen = self._place("%chosen", w.mul("%piece", w.add("%k", 1)))
        self.bound = w.let(f"alloca {self.key.scalar}")
        self.count, self.ties = w.let("alloca i64"), w.let("alloca i64")

    def write(self) -> None:
        w = self.w
        first = w.minimum("%n", "%capacity")

        def fill(i, lanes):
            self._store(self._key_at(i, lanes), self._place(self.buffer, i), lanes)

        write_lanes(w, 0, first, self.key.lanes, fill)
        w.store(first, self.count)
        self._tighten()
        whole = w.add(first, w.let(f"and i64 {w.sub('%n', first)}, {-self.key.lanes}"))
        with w.loop(first, whole, self.key.lanes) as i:
            self._gather(i, self.key.lanes)
        with w.loop(whole, "%n") as i:
            self._gather(i, 1)
        self._tighten()
        self._count_ties()
        self._collect()
        self._put_out()

    # -- the k-th smallest key ------------------------------------------------------------------------------
    def _tighten(self) -> None:
        """Keeps the k smallest keys of the buffer, the last of which is the bound."""
        w = self.w
        sort_keys(w, self.key.bits, self.buffer, w.load(self.count))
        w.store("%k", self.count)
        last = self._place(self.buffer, w.sub("%k", 1))
        self._store(self._load(last, 1), self.bound, 1)

    def _gather(self, i: str, lanes: int) -> None:
        """Adds the keys of elements i... that are below the bound."""
        w, kind = self.w, type_of(self.key.bits, lanes)
        keys = self._key_at(i, lanes)
        bound = w.splat(self._load(self.bound, 1), self.key.scalar, lanes)
        is_below = w.let(f"icmp slt {kind} {keys}, {bound}")
        with w.when(is_any(w, is_below, lanes)):
            count, found = w.load(self.count), "1"
            if lanes > 1:
                keys = compress(w, self.key, keys, is_below)
                found = count_true(w, self.key, is_below)
            self._store(keys, self._place(self.buffer, count), lanes)
            count = w.add(count, found)
            w.store(count, self.count)
            with w.when(w.compare("sgt", count, w.sub("%capacity", self.key.lanes))):
                self._tighten()

    # -- the elements ---------------------------------------------------------------------------------------
    def _count_ties(self) -> None:
        """How many of the elements that equal the bound are among the k: all that lie below are."""
        w = self.w
        w.store(0, self.ties)
        bound = self._load(self.bound, 1)
        with w.loop(0, "%k") as i:
            x = self._load(self._place(self.buffer, i), 1)
            is_tie = w.let(f"icmp eq {self.key.scalar} {x}, {bound}")
            w.store(w.add(w.load(self.ties), w.let(f"zext i1 {is_tie} to i64")), self.ties)

    def _collect(self) -> None:
        """Keys and positions of the k elements, in the order of positions."""
        w, lanes = self.w, self.key.lanes
        bound = self._load(self.bound, 1)
        self.found = element(w, "%positions", w.mul("%piece", w.add(w.mul("%k", 2), 1)), 32)
        w.store(0, self.count)

        def collect(i):
            x = self._key_at(i, 1)
            is_below, is_tie = (w.compare(relation, x, bound) for relation in ("slt", "eq"))
            ties, count = w.load(self.ties), w.load(self.count)
            is_first_tie = w.let(f"and i1 {is_tie}, {w.compare('sgt', ties, 0)}")
            is_chosen = w.let(f"or i1 {is_below}, {is_first_tie}")
            self._store(x, self._place(self.chosen, count), 1)
            position = w.let(f"trunc i64 {i} to i32")
            w.store(position, element(w, self.found, count, 32), "i32", 4)
            w.store(w.add(count, w.let(f"zext i1 {is_chosen} to i64")), self.count)
            w.store(w.sub(ties, w.let(f"zext i1 {is_first_tie} to i64")), self.ties)

        whole = w.let(f"and i64 %n, {-lanes}")
        bounds = w.splat(bound, self.key.scalar, lanes)
        with w.loop(0, whole, lanes) as i:
            is_near = w.let(f"icmp sle {self.key.vector} {self._key_at(i, lanes)}, {bounds}")
            with w.when(is_any(w, is_near, lanes)), w.loop(i, w.add(i, lanes)) as j:
                collect(j)
        with w.loop(whole, "%n") as i:
            collect(i)

    def _put_out(self) -> None:
        w, raw_bits = self.w, self.encoding.raw_bits
        order = element(w, self.found, w.add("%k", 1), 32)
        packed = element(w, "%packed", w.mul("%piece", "%k"), 64)
        name = f"{ORDER_PREFIX}int64"
        w.call(name, self.chosen, order, packed, 1, 1, "%k", "%is_shared",
               type="void (ptr, ptr, ptr, i64, i64, i64, i64)")
        start = w.mul("%row", "%k")
        with w.loop(0, "%k") as i:
            rank = w.let(f"zext i32 {w.load(element(w, order, i, 32), 'i32', 4)} to i64")
            position = w.load(element(w, self.found, rank, 32), "i32", 4)
            place = w.add(start, i)
            w.store(position, element(w, "%places", place, 32), "i32", 4)
            from_ = element(w, self.source, w.let(f"zext i32 {position} to i64"), raw_bits)
            x = w.load(from_, f"i{raw_bits}", raw_bits // 8)
            w.store(x, element(w, "%values", place, raw_bits), f"i{raw_bits}", raw_bits // 8)

    # -- keys -----------------------------------------------------------------------------------------------
    def _key_at(self, i: str, lanes: int) -> str:
        """Inverted keys of elements i..."""
        w, encoding = self.w, self.encoding
        bits = encoding.load(w, element(w, self.source, i, encoding.raw_bits), lanes)
        key = encoding.encode(w, bits, lanes, is_total=True)
        return w.let(f"xor {type_of(encoding.bits, lanes)} {key}, {constant(encoding.bits, lanes, -1)}")

    def _place(self, pointer: str, index: str) -> str:
        return element(self.w, pointer, index, self.key.bits)

    def _load(self, pointer: str, lanes: int) -> str:
        return self.w.load(pointer, type_of(self.key.bits, lanes), self.key.bits // 8)

    def _store(self, value: str, pointer: str, lanes: int) -> None:
        self.w.store(value, pointer, type_of(self.key.bits, lanes), self.key.bits // 8)
