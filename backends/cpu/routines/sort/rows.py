"""Sorting of rows in machine code: what runs over rows, in pieces, and the sorting of values.

In: a symbol, `jitcore_sort_values_<dtype>`. Out: LLVM text that defines it. Stage: rendering of routines.

    void jitcore_sort_values_float32(in, out, i64 pieces, i64 rows, i64 n, i64 is_shared)
    void jitcore_sort_values_int16(in, out, wide, i64 pieces, i64 rows, i64 n, i64 is_shared)

Elements of fewer bits than keys are sorted in `wide`.
Rows are shared out in pieces; a piece has scratch of its own, so that scratch does not grow with the rows
and stays in a cache. Every function of this family on rows begins with the four numbers, followed by its
own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.native.text_writer import Operand, TextWriter
from jitcore.backends.cpu.routines.sort.encoding import Encoding, is_any, type_of
from jitcore.backends.cpu.routines.sort.keys import key_type
from jitcore.backends.cpu.routines.sort.quicksort import SYMBOL_PREFIX as KEYS_PREFIX
from jitcore.backends.cpu.runtime.threads import BODY_TYPE, PARALLEL_TYPE, SYMBOL as PARALLEL_FOR

VALUES_PREFIX = "jitcore_sort_values_"


_NUMBERS = ("pieces", "rows", "n", "is_shared")


def render_values(symbol: str, tuning: Sort) -> str:
    """The module of `jitcore_sort_values_<dtype>`."""
    encoding = Encoding(np.dtype(symbol.removeprefix(VALUES_PREFIX)))
    w = TextWriter(tuning)
    _write_conversions(w, encoding)
    with write_row_function(w, symbol, ("in", "out", "wide") if encoding.is_wider else ("in", "out")):
        _write_values(w, encoding)
    if encoding.is_float:
        _write_restore(w, encoding)
    return w.text()


@contextmanager
def write_row_function(w: TextWriter, symbol: str, pointers: tuple, numbers: tuple = ()) -> Iterator[None]:
    """The function `symbol` on rows, of which the body that follows treats one: it finds the pointers and
    numbers under their names, %row and %piece besides."""
    numbers = (*_NUMBERS, *numbers)
    arguments = ", ".join([*(f"ptr %{name}" for name in pointers), *(f"i64 %{name}" for name in numbers)])
    with w.function(f"internal void @treat_row({arguments}, i64 %row, i64 %piece)"):
        yield
    with w.function("internal void @treat_pieces(ptr %pointers, ptr %numbers, i64 %start, i64 %stop)"):
        given = [w.load(w.at("%pointers", 8 * k), "ptr") for k in range(len(pointers))]
        values = [w.load(w.at("%numbers", 8 * k)) for k in range(len(numbers))]
        pieces, rows = values[:2]
        with w.loop("%start", "%stop") as piece:
            first = w.div(w.mul(rows, piece), pieces)
            last = w.div(w.mul(rows, w.add(piece, 1)), pieces)
            with w.loop(first, last) as row:
                w.call("treat_row", *given, *values, row, piece)
    with w.function(f"void @{symbol}({arguments})"):
        table, sizes = (w.table(kind, [f"%{name}" for name in names])
                        for kind, names in (("ptr", pointers), ("i64", numbers)))
        elements = w.mul("%rows", "%n")
        share = w.add(w.div(w.mul("%pieces", w.tuning.grain), w.add(elements, 1)), 1)
        grain = w.choose(w.compare("ne", "%is_shared", 0), share, "%pieces")
        with w.when(w.compare("sgt", elements, 0)):
            w.call(PARALLEL_FOR, "@treat_pieces", table, sizes, "%pieces", grain, type=PARALLEL_TYPE)


def sort_keys(w: TextWriter, bits: int, keys: str, n: Operand) -> None:
    """Sorts keys in place, in a row function."""
    w.call(f"{KEYS_PREFIX}{bits}", keys, n, "%is_shared", type="void (ptr, i64, i64)")


def write_lanes(w: TextWriter, start: Operand, stop: Operand, lanes: int, write) -> None:
    """`write(i, lanes)` for all i in the range, by vectors and then one by one."""
    whole = w.add(start, w.let(f"and i64 {w.sub(stop, start)}, {-lanes}"))
    if lanes > 1:
        with w.loop(start, whole, lanes) as i:
            write(i, lanes)
    with w.loop(whole if lanes > 1 else start, stop) as i:
        write(i, 1)


@contextmanager
def write_range_function(w: TextWriter, name: str, count: int) -> Iterator[list[str]]:
    """A function on %start to %stop of a row for `run_range`; gives `count` pointers."""
    with w.function(f"internal void @{name}(ptr %pointers, ptr %numbers, i64 %start, i64 %stop)"):
        yield [w.load(w.at("%pointers", 8 * k), "ptr") for k in range(count)]


def run_range(w: TextWriter, name: str, pointers: list[str]) -> None:
    """In a row function: `name` on the whole row, by several threads if it is long."""
    table = w.table("ptr", pointers)
    grain = w.choose(w.compare("ne", "%is_shared", 0), 4 * w.tuning.grain, "%n")
    with w.cases() as case:
        with case(w.compare("sle", "%n", grain)):
            w.call(name, table, "null", 0, "%n", type=BODY_TYPE)
        w.call(PARALLEL_FOR, f"@{name}", table, "null", "%n", grain, type=PARALLEL_TYPE)


def element(w: TextWriter, pointer: str, index: Operand, bits: int) -> str:
    """The address of an element."""
    return w.at(pointer, w.mul(index, bits // 8))


def _write_values(w: TextWriter, encoding: Encoding) -> None:
    raw_bits, bits = encoding.raw_bits, encoding.bits
    start = w.mul("%row", "%n")
    source, target = (element(w, name, start, raw_bits) for name in ("%in", "%out"))
    keys = element(w, "%wide", w.mul("%piece", "%n"), bits) if encoding.is_wider else target
    is_lost = w.let("alloca i8")
    w.store(0, is_lost, "i8", 1)
    run_range(w, "read", [source, keys, is_lost])
    sort_keys(w, bits, keys, "%n")
    if not encoding.is_same:
        run_range(w, "write", [keys, target])
    if encoding.is_float:
        with w.when(w.compare("ne", w.let(f"zext i8 {w.load(is_lost, 'i8', 1)} to i64"), 0)):
            w.call("restore", source, target, "%n", type="void (ptr, ptr, i64)")


def _write_conversions(w: TextWriter, encoding: Encoding) -> None:
    """Elements to keys, with a note if some lose their bits, and keys to elements."""
    raw_bits, bits, lanes = encoding.raw_bits, encoding.bits, key_type(encoding.bits).lanes
    with write_range_function(w, "read", 3) as (source, keys, is_lost):

        def read(i, lanes):
            x = encoding.load(w, element(w, source, i, raw_bits), lanes)
            w.store(encoding.encode(w, x, lanes), element(w, keys, i, bits), type_of(bits, lanes), bits // 8)
            if encoding.is_float:
                with w.when(is_any(w, encoding.find_lost(w, x, lanes), lanes)):
                    w.do(f"store atomic i8 1, ptr {is_lost} monotonic, align 1")

        write_lanes(w, "%start", "%stop", lanes, read)
    if encoding.is_same:
        return
    with write_range_function(w, "write", 2) as (keys, target):

        def write(i, lanes):
            k = w.load(element(w, keys, i, bits), type_of(bits, lanes), bits // 8)
            x = encoding.decode(w, k, lanes)
            w.store(x, element(w, target, i, raw_bits), type_of(raw_bits, lanes), raw_bits // 8)

        write_lanes(w, "%start", "%stop", lanes, write)


def _write_restore(w: TextWriter, encoding: Encoding) -> None:
    """Puts zeros and NaNs into their places of the sorted row as the row has them, in its order."""
    bits, raw_bits = encoding.bits, encoding.raw_bits
    with w.function("internal void @restore(ptr %in, ptr %out, i64 %n)"):
        zero_place, nan_place = w.let("alloca i64"), w.let("alloca i64")
        w.store(0, zero_place)
        w.store("%n", nan_place)

        def classify(i):
            x = encoding.load(w, element(w, "%in", i, raw_bits), 1)
            k = encoding.encode(w, x, 1)
            return [w.let(f"icmp {relation} i{bits} {k}, {value}")
                    for relation, value in (("slt", 0), ("eq", 0), ("eq", encoding.nan))]

        def put(i, place):
            at = w.load(place)
            x = w.load(element(w, "%in", i, raw_bits), f"i{raw_bits}", raw_bits // 8)
            w.store(x, element(w, "%out", at, raw_bits), f"i{raw_bits}", raw_bits // 8)
            w.store(w.add(at, 1), place)

        with w.loop(0, "%n") as i:
            is_negative, _, is_nan = classify(i)
            w.store(w.add(w.load(zero_place), w.let(f"zext i1 {is_negative} to i64")), zero_place)
            w.store(w.sub(w.load(nan_place), w.let(f"zext i1 {is_nan} to i64")), nan_place)
        with w.loop(0, "%n") as i:
            _, is_zero, is_nan = classify(i)
            with w.when(is_zero):
                put(i, zero_place)
            with w.when(is_nan):
                put(i, nan_place)
