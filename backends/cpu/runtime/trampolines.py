"""The functions of native code that Python calls: launchers of programs, and what makes arrays and numbers.
It is loaded where they are not on disk.

In: nothing. Out: LLVM text, see `launch`: one module for programs of arrays, one for those of numbers alone.
Stage: run time.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.python_objects import CELL, DATA_OFFSET, GENERIC, NDARRAY, TRUE, TYPE_OFFSET
from jitcore.backends.cpu.native.text_writer import RuntimeWriter
from jitcore.backends.cpu.runtime.checks import write_check
from jitcore.backends.cpu.runtime.launch import ARRAY_TEXT, COUNT_TEXT, MAX_ARRAYS, NULL_TEXT, RAISED

__all__ = ["TRAMPOLINES"]


def _render(has_arrays: bool) -> str:
    w = RuntimeWriter()
    _write_launcher(w, "launch_holding", has_arrays, releases_gil=False)
    _write_launcher(w, "launch_releasing", has_arrays, releases_gil=True)
    write_check(w, has_arrays)
    _write_allocators(w, has_arrays)
    return w.text()


def _write_launcher(w: RuntimeWriter, name: str, has_arrays: bool, *, releases_gil: bool) -> None:
    """See `launch.Launchers`."""
    with w.function(f"ptr @{name}(ptr %self, ptr %args, i64 %nargs)", None):
        count = w.sub("%nargs", 2)
        w.require(w.compare("ule", count, MAX_ARRAYS), "refuse_count")
        entry = w.call("PyLong_AsVoidPtr", w.item("%args", 0))
        w.require(w.compare("ne", entry, "null", "ptr"), "refuse_entry")
        dims = w.call("PyLong_AsVoidPtr", w.item("%args", 1))
        with w.when(w.is_null(dims)):
            w.require_no_error("fail")
        table, ints = w.let(f"alloca ptr, i64 {count}"), w.let(f"alloca i64, i64 {count}")
        with w.loop(0, count) as k:
            position = w.add(k, 2)
            array = w.item("%args", position)
            kind = w.field(array, TYPE_OFFSET)
            _find_buffer(w, array, kind, w.element(table, k), w.element(ints, k, "i64"), has_arrays)
        state = w.call("PyEval_SaveThread") if releases_gil else ""
        status = w.let(f"call i64 {entry}(ptr {table}, ptr {dims})")
        if releases_gil:
            w.call("PyEval_RestoreThread", state)
        w.require(w.compare("ne", status, RAISED), "fail")
        w.give_int(status)
        _refuse(w, "refuse_count", "TypeError", COUNT_TEXT, "i64 %nargs")
        w.start_block("refuse_entry")
        w.require_no_error("fail")
        w.do("br label %refuse_null")
        _refuse(w, "refuse_null", "ValueError", NULL_TEXT)
        _refuse(w, "refuse_array", "TypeError", ARRAY_TEXT, f"i64 {position}", f"ptr {kind}")
        w.start_block("fail")
        w.do("ret ptr null")


def _find_buffer(w: RuntimeWriter, array: str, kind: str, place: str, number: str, has_arrays: bool) -> None:
    """Stores the address of an argument's buffer. number: which one an int has. Where there are no arrays, a
    number of ctypes' has its memory where an array has it."""
    with w.cases() as case:
        if has_arrays:
            with case(w.is_type(kind, NDARRAY)):
                w.store(w.field(array, DATA_OFFSET), place, "ptr")
        with case(w.is_type(kind, "PyFloat_Type")):
            w.store(w.at(array, DATA_OFFSET), place, "ptr")
        with case(w.is_type(kind, "PyLong_Type")):
            value = w.call("PyLong_AsLongLong", array)
            with w.when(w.compare("eq", value, -1)):
                w.require_no_error("fail")
            w.store(value, number)
            w.store(number, place, "ptr")
        with case(w.is_type(kind, "PyBool_Type")):
            is_true = w.let(f"icmp eq ptr {array}, {w.symbol(TRUE)}")
            w.store(w.let(f"zext i1 {is_true} to i64"), number)
            w.store(number, place, "ptr")
        if has_arrays:
            with case(w.is_subtype(kind, GENERIC)):
                w.store(w.at(array, DATA_OFFSET), place, "ptr")
        with case(w.is_type(kind, "PyComplex_Type")):
            w.store(w.at(array, DATA_OFFSET), place, "ptr")
        w.require(w.is_subtype(kind, NDARRAY if has_arrays else CELL), "refuse_array")
        w.store(w.field(array, DATA_OFFSET), place, "ptr")


def _refuse(w: RuntimeWriter, label: str, kind: str, text: str, *operands: str) -> None:
    """A block that raises an error."""
    data = text.encode() + b"\0"
    w.declare(f'@{label}_text = private constant [{len(data)} x i8] c"{text}\\00"')
    w.start_block(label)
    error = w.load(w.symbol(f"PyExc_{kind}", "ptr"), "ptr")
    w.call("PyErr_Format", error, f"@{label}_text", *operands)
    w.do("br label %fail")


def _write_allocators(w: RuntimeWriter, has_arrays: bool) -> None:
    """New numbers and arrays. A table of int64 is their `self`: a function and what it is given."""
    with w.function("ptr @make_scalar(ptr %self, ptr %args, i64 %nargs)", None):
        table = w.field("%self", DATA_OFFSET)
        w.do(f"ret ptr {w.let(f'call ptr {w.item(table, 0)}(ptr {w.item(table, 1)}, i64 0)')}")
    if not has_arrays:
        return
    with w.function("ptr @make_empty(ptr %self, ptr %args, i64 %nargs)", None):
        table = w.field("%self", DATA_OFFSET)
        new, dtype, ndim = w.item(table, 0), w.item(table, 1), w.item(table, 2, "i64")
        w.call("Py_IncRef", dtype)
        given = (f"ptr {w.symbol(NDARRAY)}, ptr {dtype}, i32 {w.let(f'trunc i64 {ndim} to i32')}, "
                 f"ptr {w.element(table, 3, 'i64')}, ptr null, ptr null, i32 0, ptr null")
        w.do(f"ret ptr {w.let(f'call ptr {new}({given})')}")


#: The text of all of them, by whether there are arrays.
TRAMPOLINES = {has_arrays: _render(has_arrays) for has_arrays in (False, True)}
