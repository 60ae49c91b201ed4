"""Stable orders in machine code: the positions that sort rows, and elements put in an order.

In: a symbol. Out: LLVM text that defines it. Stage: rendering of routines.

    void jitcore_sort_order_<dtype>(keys, order, packed, i64 pieces, i64 rows, i64 n, i64 is_shared)
    void jitcore_sort_refine_<dtype>(the same)
    void jitcore_sort_take_<bytes>(in, order, out, i64 outer, i64 n, i64 inner, i64 is_shared)

An order is an array of 32-bit positions. `order` makes the one that sorts rows of keys; `refine` sorts the
rows in a given order by keys that are more significant. Both sort numbers of 64 bits, a word of a key and a
position. `take` reads the elements of axis n of an array [outer, n, inner] in an order of this shape.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.sort.encoding import Encoding, constant, is_any, type_of
from jitcore.backends.cpu.routines.sort.keys import key_type
from jitcore.backends.cpu.routines.sort.rows import (element, run_range, sort_keys, write_lanes,
                                                     write_range_function, write_row_function)
from jitcore.backends.cpu.runtime.threads import PARALLEL_TYPE, SYMBOL as PARALLEL_FOR

ORDER_PREFIX, REFINE_PREFIX, TAKE_PREFIX = "jitcore_sort_order_", "jitcore_sort_refine_", "jitcore_sort_take_"


def render_order(symbol: str, tuning: Sort) -> str:
    """The module of `jitcore_sort_order_<dtype>` or `jitcore_sort_refine_<dtype>`."""
    is_first = symbol.startswith(ORDER_PREFIX)
    dtype = np.dtype(symbol.removeprefix(ORDER_PREFIX if is_first else REFINE_PREFIX))
    w = TextWriter(tuning)
    _Order(w, dtype, is_first).write(symbol)
    return w.text()


class _Order:
    """Code that sorts a row's order by its keys.

    A key is a list of words, the most significant first. Rows of packed words and places are sorted by the
    first word; then, within each run of equal words, by the second one, and so on. A place is a position in
    the order so far, so what is equal keeps its order; without an order, it is the position in the row.

    is_first: whether there is no order yet."""

    def __init__(self, w: TextWriter, dtype: np.dtype, is_first: bool):
        self.w, self.is_first = w, is_first
        self.parts = 2 if dtypes.is_complex(dtype) else 1
        self.encoding = Encoding(dtypes.real_dtype(dtype) if self.parts == 2 else dtype)
        highest = self.encoding.bits // 32 - 1
        self.words = [(part, word) for part in range(self.parts) for word in range(highest, -1, -1)]

    def write(self, symbol: str) -> None:
        self._write_pack()
        self._write_unpack()
        for number in range(1, len(self.words)):
            self._write_sort_run(number)
            self._write_split_runs(number)
        w = self.w
        with write_row_function(w, symbol, ("keys", "order", "packed")):
            start, own = w.mul("%row", "%n"), w.mul("%piece", "%n")
            keys = element(w, "%keys", w.mul(start, self.parts), self.encoding.raw_bits)
            order = element(w, "%order", start, 32)
            packed = element(w, "%packed", own, 64)
            differs = w.let("alloca i8")
            w.store(0, differs, "i8", 1)
            run_range(w, "pack", [keys, order, packed, differs])
            with w.when(w.compare("ne", w.let(f"zext i8 {w.load(differs, 'i8', 1)} to i64"), 0)):
                sort_keys(w, 64, packed, "%n")  # else it is sorted: equal words, rising places
            if len(self.words) > 1:
                self._call("split_runs1", packed, "%n", keys, order)
            if not self.is_first:
                run_range(w, "look_up", [packed, order])
            run_range(w, "unpack", [packed, order])

    # -- the first word -------------------------------------------------------------------------------------
    def _write_pack(self) -> None:
        """All places with the first word of their keys; notes whether words differ."""
        w = self.w
        with write_range_function(w, "pack", 4) as (keys, order, packed, differs):
            first = self._word_of(0, keys, order, "0", 1)

            def pack(i, lanes):
                kind = type_of(64, lanes)
                word = self._word_of(0, keys, order, i, lanes)
                self._store_packed(element(w, packed, i, 64), word, self._places_from(i, lanes), lanes)
                mask = w.let(f"icmp ne {kind} {word}, {w.splat(first, 'i64', lanes)}")
                with w.when(is_any(w, mask, lanes)):
                    w.do(f"store atomic i8 1, ptr {differs} monotonic, align 1")

            lanes = key_type(64).lanes if self.is_first and self.parts == 1 else 1
            write_lanes(w, "%start", "%stop", lanes, pack)

    def _places_from(self, i: str, lanes: int) -> str:
        if lanes == 1:
            return i
        numbers, first = key_type(64).lane_numbers(), self.w.splat(i, "i64", lanes)
        return self.w.let(f"add {type_of(64, lanes)} {first}, {numbers}")

    def _store_packed(self, target: str, word: str, place: str, lanes: int) -> None:
        w, kind = self.w, type_of(64, lanes)
        upper = w.let(f"shl {kind} {word}, {constant(64, lanes, 32)}")
        w.store(w.let(f"or {kind} {upper}, {place}"), target, kind)

    def _word_of(self, number: int, keys: str, order: str, place: str, lanes: int) -> str:
        """A word of the keys at places: a number of 64 bits whose lower half orders as a signed one."""
        w, encoding, (part, word) = self.w, self.encoding, self.words[number]
        if not self.is_first:
            position = w.load(element(w, order, place, 32), "i32", 4)
            place = w.let(f"zext i32 {position} to i64")
        index = w.add(w.mul(place, self.parts), part) if self.parts > 1 else place
        key = encoding.encode(w, encoding.load(w, element(w, keys, index, encoding.raw_bits), lanes), lanes)
        kind = type_of(64, lanes)
        if encoding.bits == 32:
            return w.let(f"sext {type_of(32, lanes)} {key} to {kind}")
        if word == 1:
            return w.let(f"ashr {kind} {key}, {constant(64, lanes, 32)}")
        return w.let(f"xor {kind} {key}, {constant(64, lanes, 1 << 31)}")

    # -- further words --------------------------------------------------------------------------------------
    def _write_split_runs(self, number: int) -> None:
        """`split_runs<number>`: sorts by the word of this number where the word before is equal."""
        w = self.w
        with w.function(f"internal void @split_runs{number}({_RUN})"):
            start, run_word = w.let("alloca i64"), w.let("alloca i64")
            w.store(0, start)
            w.store(w.let(f"ashr i64 {w.load('%packed')}, 32"), run_word)

            def end_run(stop):
                first = w.load(start)
                length = w.sub(stop, first)
                with w.when(w.compare("sgt", length, 1)):
                    run = element(w, "%packed", first, 64)
                    self._call(f"sort_run{number}", run, length, "%keys", "%order")

            with w.loop(1, "%n") as i:
                word = w.let(f"ashr i64 {w.load(element(w, '%packed', i, 64))}, 32")
                with w.when(w.compare("ne", word, w.load(run_word))):
                    end_run(i)
                    w.store(i, start)
                    w.store(word, run_word)
            end_run("%n")

    def _write_sort_run(self, number: int) -> None:
        """`sort_run<number>`: sorts a run by the word of this number and those after it."""
        w = self.w
        with w.function(f"internal void @sort_run{number}({_RUN})"):
            with w.loop(0, "%n") as i:
                at = element(w, "%packed", i, 64)
                place = w.let(f"and i64 {w.load(at)}, {_PLACES}")
                self._store_packed(at, self._word_of(number, "%keys", "%order", place, 1), place, 1)
            is_pair = w.compare("eq", "%n", 2)
            with w.when(is_pair):
                second = element(w, "%packed", 1, 64)
                both = w.load("%packed"), w.load(second)
                is_rising = w.compare("slt", *both)
                w.store(w.choose(is_rising, *both), "%packed")
                w.store(w.choose(is_rising, *both[::-1]), second)
            with w.when(w.let(f"xor i1 {is_pair}, true")):
                sort_keys(w, 64, "%packed", "%n")
            if number + 1 < len(self.words):
                self._call(f"split_runs{number + 1}", "%packed", "%n", "%keys", "%order")

    def _call(self, name: str, packed: str, n: str, keys: str, order: str) -> None:
        self.w.call(name, packed, n, keys, order, "%is_shared", type="void (ptr, i64, ptr, ptr, i64)")

    # -- the result -----------------------------------------------------------------------------------------
    def _write_unpack(self) -> None:
        """`look_up`: places become positions, by the order so far. `unpack`: positions become the order."""
        w = self.w
        with write_range_function(w, "look_up", 2) as (packed, order), w.loop("%start", "%stop") as i:
            at = element(w, packed, i, 64)
            place = w.let(f"and i64 {w.load(at)}, {_PLACES}")
            position = w.load(element(w, order, place, 32), "i32", 4)
            w.store(w.let(f"zext i32 {position} to i64"), at)
        with write_range_function(w, "unpack", 2) as (packed, order):

            def unpack(i, lanes):
                both = w.load(element(w, packed, i, 64), type_of(64, lanes))
                position = w.let(f"trunc {type_of(64, lanes)} {both} to {type_of(32, lanes)}")
                w.store(position, element(w, order, i, 32), type_of(32, lanes), 4)

            write_lanes(w, "%start", "%stop", key_type(64).lanes, unpack)


# What functions on runs of packed words and places are given.
_RUN = "ptr %packed, i64 %n, ptr %keys, ptr %order, i64 %is_shared"
_PLACES = (1 << 32) - 1


def render_take(symbol: str, tuning: Sort) -> str:
    """The module of `jitcore_sort_take_<bytes>`."""
    size = int(symbol.removeprefix(TAKE_PREFIX))
    w = TextWriter(tuning)
    with w.function("internal void @take(ptr %pointers, ptr %numbers, i64 %start, i64 %stop)"):
        source, order, target = (w.load(w.at("%pointers", 8 * k), "ptr") for k in range(3))
        n, inner = (w.load(w.at("%numbers", 8 * k)) for k in range(2))
        past = w.add(w.div(w.sub("%stop", 1), n), 1)
        with w.loop(w.div("%start", n), past) as o:
            base = w.mul(o, n)
            first = w.maximum(base, "%start")
            last = w.minimum(w.add(base, n), "%stop")

            def copy(place, column):
                position = w.let(f"zext i32 {w.load(w.at(order, w.mul(place, 4)), 'i32', 4)} to i64")
                element_place = w.add(w.mul(w.add(base, position), inner), column)
                x = w.load(w.at(source, w.mul(element_place, size)), f"i{8 * size}", size)
                w.store(x, w.at(target, w.mul(place, size)), f"i{8 * size}", size)

            is_row = w.compare("eq", inner, 1)
            with w.when(is_row), w.loop(first, last) as i:
                copy(i, 0)
            with w.when(w.let(f"xor i1 {is_row}, true")), w.loop(first, last) as i:
                line = w.mul(i, inner)
                with w.loop(0, inner) as column:
                    copy(w.add(line, column), column)

    arguments = "ptr %in, ptr %order, ptr %out, i64 %outer, i64 %n, i64 %inner, i64 %is_shared"
    with w.function(f"void @{symbol}({arguments})"):
        table, sizes = w.table("ptr", ["%in", "%order", "%out"]), w.table("i64", ["%n", "%inner"])
        total = w.mul("%outer", "%n")
        share = w.add(w.div(tuning.grain, w.add("%inner", 1)), 1)
        grain = w.choose(w.compare("ne", "%is_shared", 0), share, total)
        with w.when(w.compare("sgt", w.mul(total, "%inner"), 0)):
            w.call(PARALLEL_FOR, "@take", table, sizes, total, grain, type=PARALLEL_TYPE)
    return w.text()
