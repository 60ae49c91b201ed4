"""The native function that checks calls: whether arrays, codes and the error state are those a program was
made for.

In: what `launch.make_check` writes into a table. Out: LLVM text, one for all signatures. Stage: run time.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.python_objects import (DATA_OFFSET, DTYPE_OFFSET, FLAGS_OFFSET, ITEMS_OFFSET,
                                                        NDARRAY, NDIM_OFFSET, SHAPE_OFFSET)
from jitcore.backends.cpu.native.text_writer import RuntimeWriter
from jitcore.backends.cpu.runtime.launch import MAX_COMPARED

__all__ = ["write_check"]


def write_check(w: RuntimeWriter, has_arrays: bool) -> None:
    """has_arrays: whether it is for calls with arrays, too.

    `is_known(*arrays)`: 0 where they are others, 1 where they are right, 2 where they are, and no two of
    them meet in memory of which one is written.

    A table of int64 is its `self`: how many arrays, the mask of flags, a context variable, a list, whether 2
    is an answer, how many codes; for each of these, where its address should stand, and the address; for each
    array its dtype, flags, bytes, whether it is written, number of axes, extents."""
    with w.function("ptr @is_known(ptr %self, ptr %args, i64 %nargs)", None):
        value, meets = w.variable("null", "ptr"), w.variable(0)
        table = w.field("%self", DATA_OFFSET)
        count, mask, variable, right_values, compares, codes = (
            w.item(table, k, kind) for k, kind in enumerate(("i64", "i64", "ptr", "ptr", "i64", "i64")))
        w.require(w.compare("eq", count, "%nargs"), "fail")
        facts = w.variable(w.element(table, 6, "i64"), "ptr")
        with w.loop(0, codes):
            row = w.load(facts, "ptr")
            w.require(w.compare("eq", w.load(w.load(row, "ptr")), w.item(row, 1, "i64")), "fail")
            w.store(w.element(row, 2, "i64"), facts, "ptr")
        if has_arrays:
            _check_arrays(w, count, mask, facts, meets)
        w.call("PyContextVar_Get", variable, "null", value)
        found = w.load(value, "ptr")
        w.call("Py_DecRef", found)
        w.require(w.let(f"icmp eq ptr {found}, {w.load(w.field(right_values, ITEMS_OFFSET), 'ptr')}"), "fail")
        w.give_int(w.add(1, w.let(f"and i64 {compares}, {w.let(f'xor i64 {w.load(meets)}, 1')}")))
        w.start_block("fail")
        w.give_int(0)


def _check_arrays(w: RuntimeWriter, count: str, mask: str, facts: str, meets: str) -> None:
    places = [w.let(f"alloca [{MAX_COMPARED} x i64]") for _ in range(3)]
    are_few = w.compare("ule", count, MAX_COMPARED)
    with w.loop(0, count) as k:
        array, row = w.item("%args", k), w.load(facts, "ptr")
        axes = _require_facts(w, array, row, mask)
        w.store(w.element(row, w.add(5, axes), "i64"), facts, "ptr")
        with w.when(are_few):
            _compare_places(w, places, meets, k, array, row)


def _require_facts(w: RuntimeWriter, array: str, row: str, mask: str) -> str:
    """Returns: the number of axes."""
    w.require_type(array, NDARRAY, "fail")
    w.require(w.compare("eq", w.field(array, DTYPE_OFFSET, "i64"), w.load(row)), "fail")
    flags = w.let(f"zext i32 {w.field(array, FLAGS_OFFSET, 'i32')} to i64")
    w.require(w.compare("eq", w.let(f"and i64 {flags}, {mask}"), w.item(row, 1, "i64")), "fail")
    axes, shape, right_shape = w.item(row, 4, "i64"), w.field(array, SHAPE_OFFSET), w.element(row, 5, "i64")
    w.require(w.compare("eq", w.let(f"zext i32 {w.field(array, NDIM_OFFSET, 'i32')} to i64"), axes), "fail")
    with w.loop(0, axes) as axis:
        w.require(w.compare("eq", w.item(shape, axis, "i64"), w.item(right_shape, axis, "i64")), "fail")
    return axes


def _compare_places(w: RuntimeWriter, places: list[str], meets: str, k: str, array: str, row: str) -> None:
    """Whether an array meets one of those before it, which must be others."""
    start, written = w.field(array, DATA_OFFSET, "i64"), w.item(row, 3, "i64")
    stop = w.add(start, w.item(row, 2, "i64"))
    for table, value in zip(places, (start, stop, written)):
        w.store(value, w.element(table, k, "i64"))
    with w.loop(0, k) as j:
        w.require(w.let(f"icmp ne ptr {w.item('%args', j)}, {array}"), "fail")
        other_start, other_stop, other_written = (w.item(table, j, "i64") for table in places)
        is_before, is_behind = w.compare("ult", start, other_stop), w.compare("ult", other_start, stop)
        together = w.let(f"zext i1 {w.let(f'and i1 {is_before}, {is_behind}')} to i64")
        met = w.let(f"and i64 {together}, {w.let(f'or i64 {written}, {other_written}')}")
        w.store(w.let(f"or i64 {met}, {w.load(meets)}"), meets)
