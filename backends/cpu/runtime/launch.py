"""Calls of compiled kernels from Python: one trampoline for all of them.

In: the address of an entry point `int64 entry(i8** buffers, int64* dims)`, the address of its extents, and
the ndarrays whose memory it works on. Out: the entry point's status as an int (0: success). Stage: run time.

The trampoline is a built-in function of CPython whose body is LLVM code made by this module.
It reads each ndarray's data pointer from the array object itself, which takes a nanosecond where
`array.ctypes.data` takes a microsecond. Whether array objects are laid out as assumed is checked when the
trampoline is made; if not, a slower one in Python takes its place.

Beside it, in the same module: a built-in function that knows calls again (`make_check`).
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from jitcore.backends.cpu.native import images, libraries
from jitcore.dispatch.backend import ArrayFacts

__all__ = ["MAX_ARRAYS", "RAISED", "Launchers", "make_check", "make_builtin", "open_launchers"]

#: Arrays that one call of a native launcher may pass; their table lies on the stack.
MAX_ARRAYS = 4096

#: The status of an entry point that left a Python exception set: it is raised.
RAISED = -(1 << 63)

#: Arrays of a call whose places are compared with each other.
MAX_COMPARED = 16

_CONTIGUOUS = 3  # flags of an ndarray whose elements lie side by side, in one order or the other
_TYPE_OFFSET = 8  # PyObject.ob_type
_DATA_OFFSET = 16  # PyArrayObject.data, the first field after PyObject
_NDIM_OFFSET, _SHAPE_OFFSET, _DTYPE_OFFSET, _FLAGS_OFFSET = 24, 32, 56, 64  # its nd, dimensions, descr, flags
_CODE_OFFSET, _ITEMS_OFFSET = 48, 24  # PyFunctionObject.func_code, PyListObject.ob_item
_METH_FASTCALL = 0x0080


class Launchers(NamedTuple):
    """Two functions `launch(entry_address, dims_address, *arrays) -> int`.

    Each calls `int64 entry(i8** buffers, int64* dims)` with the data pointers of the arrays, in order, and
    returns its status. Arrays may be of any ndarray subclass, dtype and layout: what the entry point assumes
    about them is the caller's to check, and so is that both addresses are valid.

    Raises: TypeError for fewer than two arguments, an address that is not an int, an argument that is not an
        ndarray, or more than MAX_ARRAYS of them where the kind is native; ValueError for entry address 0.

    Attributes:
        holding: keeps the GIL; for programs of a few microseconds.
        releasing: lets other Python threads run meanwhile (10 ns more when none waits).
        kind: "native", or "ctypes" where the object layout is unknown or arrays are many.
    """

    holding: Callable[..., int]
    releasing: Callable[..., int]
    kind: str


def open_launchers(count: int = 0) -> Launchers:
    """The process's launchers of calls with so many arrays; the first call loads them. Cost: 0.4 ms; 15 ms
    when they must be compiled."""
    with images.link_lock:
        return _make_launchers(count <= MAX_ARRAYS)


@functools.cache
def _make_launchers(has_few: bool) -> Launchers:
    if has_few and _layout_is_known():
        return _make_native_launchers()
    return Launchers(_make_ctypes_launcher(ctypes.PYFUNCTYPE), _make_ctypes_launcher(ctypes.CFUNCTYPE),
                     "ctypes")


def _layout_is_known() -> bool:
    """Do objects of this NumPy and CPython hold what native code reads where it looks?"""
    probe, items = np.arange(24.0).reshape(4, 6)[1:3, 2:5], [object()]
    read, read_int = ctypes.c_void_p.from_address, ctypes.c_int.from_address
    return (
        ctypes.sizeof(ctypes.c_void_p) == 8
        and object.__basicsize__ == _DATA_OFFSET
        and read(id(probe) + _TYPE_OFFSET).value == id(np.ndarray)
        and read(id(probe) + _DATA_OFFSET).value == probe.ctypes.data
        and read_int(id(probe) + _NDIM_OFFSET).value == 2
        and (ctypes.c_int64 * 2).from_address(read(id(probe) + _SHAPE_OFFSET).value)[:] == [2, 3]
        and read(id(probe) + _DTYPE_OFFSET).value == id(probe.dtype)
        and read_int(id(probe) + _FLAGS_OFFSET).value == probe.flags.num
        and read(id(_layout_is_known) + _CODE_OFFSET).value == id(_layout_is_known.__code__)
        and read(read(id(items) + _ITEMS_OFFSET).value).value == id(items[0])
    )


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("ml_name", ctypes.c_char_p),
        ("ml_meth", ctypes.c_void_p),
        ("ml_flags", ctypes.c_int),
        ("ml_doc", ctypes.c_char_p),
    )


@functools.cache
def _define_method(name: str, address: int, doc: str) -> _MethodDef:
    """Kept for good: CPython reads it for as long as one of its functions lives."""
    return _MethodDef(name.encode(), address, _METH_FASTCALL, doc.encode())


def make_builtin(name: str, address: int, doc: str, owner: Any = None) -> Callable:
    """A built-in function of Python around native code `PyObject *(PyObject *self, PyObject *const *args,
    Py_ssize_t nargs)`, which has to stay loaded. owner: what it gets as `self`; None for NULL."""
    new_function = ctypes.pythonapi.PyCFunction_NewEx
    new_function.restype = ctypes.py_object
    new_function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    method = ctypes.addressof(_define_method(name, address, doc))
    return new_function(method, None if owner is None else id(owner), None)


@functools.cache
def _open_library() -> libraries.Library:
    return libraries.find_or_compile("launch", "", _render_trampolines)[0]


def make_check(arrays: Sequence[ArrayFacts], mask: int, codes: Sequence[tuple[FunctionType, CodeType]],
               state: tuple[ContextVar, list]) -> Callable[..., int] | None:
    """As `Backend.make_check` says; None where it would not be native. Its caller keeps what it is given, but
    for the tables. Cost: 20 ns and 5 ns an array."""
    if open_launchers(len(arrays)).kind != "native":
        return None
    variable, items = state
    are_read = not any(facts.is_written for facts in arrays)
    lie_close = all(facts.flags & _CONTIGUOUS for facts in arrays)
    compares = len(arrays) <= MAX_COMPARED and (are_read or lie_close)
    table = [len(arrays), mask, id(variable), id(items), compares, len(codes)]
    for function, code in codes:
        table += [id(function) + _CODE_OFFSET, id(code)]
    for dtype, shape, flags, is_written in arrays:
        nbytes = math.prod(shape) * dtype.itemsize
        table += [id(dtype), flags, nbytes, is_written, len(shape), *shape]
    return make_builtin("is_known", _open_library().address("is_known"), "is_known(*arrays) -> int",
                        np.array(table, np.int64))


def _make_native_launchers() -> Launchers:
    library = _open_library()
    functions = [
        make_builtin(name, library.address(name), f"{name}(entry_address, dims_address, *arrays) -> status")
        for name in ("launch_holding", "launch_releasing")
    ]
    return Launchers(*functions, "native")


_NDARRAY = "jitcore_ndarray_type"

# A statically linked interpreter need not export its functions to LLVM.
images.provide("Py", images.find_in_process)
images.provide(_NDARRAY, lambda _: id(np.ndarray))


def _text_constant(name: str, text: str) -> str:
    data = text.encode() + b"\0"
    return f'@{name} = private constant [{len(data)} x i8] c"{text}\\00"\n'


_COUNT_TEXT = f"launch() takes 2 addresses and at most {MAX_ARRAYS} arrays, got %zd arguments"
_NULL_TEXT = "launch() got entry address 0"
_ARRAY_TEXT = "launch() argument %zd must be a numpy.ndarray, not %R"

_TRAMPOLINE_HEAD = (
    _text_constant("count_text", _COUNT_TEXT)
    + _text_constant("null_text", _NULL_TEXT)
    + _text_constant("array_text", _ARRAY_TEXT)
    + f"""
@{_NDARRAY} = external global i8
@PyExc_TypeError = external global ptr
@PyExc_ValueError = external global ptr
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i32 @PyType_IsSubtype(ptr, ptr)
"""
)


def _render_trampolines() -> str:
    return (
        _TRAMPOLINE_HEAD
        + _render_trampoline("launch_holding", release_gil=False)
        + _render_trampoline("launch_releasing", release_gil=True)
        + _CHECK
    )


# A table of int64 is its `self`: how many arrays, the mask of flags, a context variable, a list, whether 2 may be
# the answer, how many codes; for each of these, where its address should stand, and the address; for each array
# its dtype, flags, bytes, whether it is written, number of axes, extents.
_CHECK = f"""
define ptr @is_known(ptr %self, ptr %args, i64 %nargs) {{
enter:
  %value_slot = alloca ptr
  %meets = alloca i64
  %starts = alloca [{MAX_COMPARED} x i64]
  %stops = alloca [{MAX_COMPARED} x i64]
  %writes = alloca [{MAX_COMPARED} x i64]
  %table_slot = getelementptr i8, ptr %self, i64 {_DATA_OFFSET}
  %table = load ptr, ptr %table_slot
  %count = load i64, ptr %table
  %mask_slot = getelementptr i64, ptr %table, i64 1
  %mask = load i64, ptr %mask_slot
  %variable_slot = getelementptr i64, ptr %table, i64 2
  %variable = load ptr, ptr %variable_slot
  %list_slot = getelementptr i64, ptr %table, i64 3
  %list = load ptr, ptr %list_slot
  %compares_slot = getelementptr i64, ptr %table, i64 4
  %compares = load i64, ptr %compares_slot
  %are_few = icmp ule i64 %count, {MAX_COMPARED}
  store i64 0, ptr %meets
  %codes_slot = getelementptr i64, ptr %table, i64 5
  %codes = load i64, ptr %codes_slot
  %codes_table = getelementptr i64, ptr %table, i64 6
  %count_is_right = icmp eq i64 %count, %nargs
  br i1 %count_is_right, label %next_code, label %finish
next_code:
  %c = phi i64 [ 0, %enter ], [ %following_c, %check_code ]
  %code_row = phi ptr [ %codes_table, %enter ], [ %next_code_row, %check_code ]
  %more_codes = icmp ult i64 %c, %codes
  br i1 %more_codes, label %check_code, label %next_array
check_code:
  %code_slot = load ptr, ptr %code_row
  %code = load i64, ptr %code_slot
  %right_code_slot = getelementptr i64, ptr %code_row, i64 1
  %right_code = load i64, ptr %right_code_slot
  %next_code_row = getelementptr i64, ptr %code_row, i64 2
  %following_c = add i64 %c, 1
  %has_code = icmp eq i64 %code, %right_code
  br i1 %has_code, label %next_code, label %finish
next_array:
  %k = phi i64 [ 0, %next_code ], [ %following, %end_array ], [ %following, %next_other ]
  %row = phi ptr [ %code_row, %next_code ], [ %next_row, %end_array ], [ %next_row, %next_other ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %check_type, label %check_state
check_type:
  %array_slot = getelementptr ptr, ptr %args, i64 %k
  %array = load ptr, ptr %array_slot
  %type_slot = getelementptr i8, ptr %array, i64 {_TYPE_OFFSET}
  %type = load ptr, ptr %type_slot
  %is_array = icmp eq ptr %type, @{_NDARRAY}
  br i1 %is_array, label %check_dtype, label %finish
check_dtype:
  %dtype_slot = getelementptr i8, ptr %array, i64 {_DTYPE_OFFSET}
  %dtype = load i64, ptr %dtype_slot
  %right_dtype = load i64, ptr %row
  %has_dtype = icmp eq i64 %dtype, %right_dtype
  br i1 %has_dtype, label %check_flags, label %finish
check_flags:
  %flags_slot = getelementptr i8, ptr %array, i64 {_FLAGS_OFFSET}
  %all_flags = load i32, ptr %flags_slot
  %wide_flags = zext i32 %all_flags to i64
  %flags = and i64 %wide_flags, %mask
  %right_flags_slot = getelementptr i64, ptr %row, i64 1
  %right_flags = load i64, ptr %right_flags_slot
  %has_flags = icmp eq i64 %flags, %right_flags
  br i1 %has_flags, label %check_axes, label %finish
check_axes:
  %axes_slot = getelementptr i8, ptr %array, i64 {_NDIM_OFFSET}
  %axes = load i32, ptr %axes_slot
  %wide_axes = zext i32 %axes to i64
  %right_axes_slot = getelementptr i64, ptr %row, i64 4
  %right_axes = load i64, ptr %right_axes_slot
  %has_axes = icmp eq i64 %wide_axes, %right_axes
  %shape_slot = getelementptr i8, ptr %array, i64 {_SHAPE_OFFSET}
  %shape = load ptr, ptr %shape_slot
  %right_shape = getelementptr i64, ptr %row, i64 5
  br i1 %has_axes, label %next_axis, label %finish
next_axis:
  %axis = phi i64 [ 0, %check_axes ], [ %following_axis, %check_extent ]
  %more_axes = icmp ult i64 %axis, %right_axes
  br i1 %more_axes, label %check_extent, label %end_array
check_extent:
  %extent_slot = getelementptr i64, ptr %shape, i64 %axis
  %extent = load i64, ptr %extent_slot
  %right_extent_slot = getelementptr i64, ptr %right_shape, i64 %axis
  %right_extent = load i64, ptr %right_extent_slot
  %has_extent = icmp eq i64 %extent, %right_extent
  %following_axis = add i64 %axis, 1
  br i1 %has_extent, label %next_axis, label %finish
end_array:
  %next_row = getelementptr i64, ptr %right_shape, i64 %right_axes
  %following = add i64 %k, 1
  br i1 %are_few, label %read_place, label %next_array
read_place:
  %data_slot = getelementptr i8, ptr %array, i64 {_DATA_OFFSET}
  %start = load i64, ptr %data_slot
  %bytes_slot = getelementptr i64, ptr %row, i64 2
  %bytes = load i64, ptr %bytes_slot
  %stop = add i64 %start, %bytes
  %written_slot = getelementptr i64, ptr %row, i64 3
  %written = load i64, ptr %written_slot
  %start_slot = getelementptr i64, ptr %starts, i64 %k
  store i64 %start, ptr %start_slot
  %stop_slot = getelementptr i64, ptr %stops, i64 %k
  store i64 %stop, ptr %stop_slot
  %write_slot = getelementptr i64, ptr %writes, i64 %k
  store i64 %written, ptr %write_slot
  br label %next_other
next_other:
  %j = phi i64 [ 0, %read_place ], [ %following_j, %compare_places ]
  %more_others = icmp ult i64 %j, %k
  br i1 %more_others, label %check_other, label %next_array
check_other:
  %other_slot = getelementptr ptr, ptr %args, i64 %j
  %other = load ptr, ptr %other_slot
  %is_same = icmp eq ptr %other, %array
  br i1 %is_same, label %finish, label %compare_places
compare_places:
  %other_start_slot = getelementptr i64, ptr %starts, i64 %j
  %other_start = load i64, ptr %other_start_slot
  %other_stop_slot = getelementptr i64, ptr %stops, i64 %j
  %other_stop = load i64, ptr %other_stop_slot
  %other_write_slot = getelementptr i64, ptr %writes, i64 %j
  %other_written = load i64, ptr %other_write_slot
  %is_before = icmp ult i64 %start, %other_stop
  %is_behind = icmp ult i64 %other_start, %stop
  %is_together = and i1 %is_before, %is_behind
  %together = zext i1 %is_together to i64
  %any_written = or i64 %written, %other_written
  %met = and i64 %together, %any_written
  %met_before = load i64, ptr %meets
  %met_now = or i64 %met, %met_before
  store i64 %met_now, ptr %meets
  %following_j = add i64 %j, 1
  br label %next_other
check_state:
  store ptr null, ptr %value_slot
  %failed = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %value_slot)
  %value = load ptr, ptr %value_slot
  call void @Py_DecRef(ptr %value)
  %items_slot = getelementptr i8, ptr %list, i64 {_ITEMS_OFFSET}
  %items = load ptr, ptr %items_slot
  %right_value = load ptr, ptr %items
  %has_value = icmp eq ptr %value, %right_value
  br label %finish
finish:
  %is_right = phi i1 [ %has_value, %check_state ], [ false, %enter ], [ false, %check_code ],
                     [ false, %check_type ], [ false, %check_dtype ], [ false, %check_flags ],
                     [ false, %check_axes ], [ false, %check_extent ], [ false, %check_other ]
  %met_at_all = load i64, ptr %meets
  %not_met = xor i64 %met_at_all, 1
  %apart = and i64 %compares, %not_met
  %good = add i64 %apart, 1
  %answer = select i1 %is_right, i64 %good, i64 0
  %result = call ptr @PyLong_FromLongLong(i64 %answer)
  ret ptr %result
}}
"""


def _render_trampoline(name: str, *, release_gil: bool) -> str:
    """LLVM text of `PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t nargs)`."""
    save = "%state = call ptr @PyEval_SaveThread()" if release_gil else ""
    restore = "call void @PyEval_RestoreThread(ptr %state)" if release_gil else ""
    return f"""
define ptr @{name}(ptr %self, ptr %args, i64 %nargs) {{
enter:
  %count = sub i64 %nargs, 2
  %count_is_wrong = icmp ugt i64 %count, {MAX_ARRAYS}
  br i1 %count_is_wrong, label %refuse_count, label %read_entry
read_entry:
  %entry_object = load ptr, ptr %args
  %entry = call ptr @PyLong_AsVoidPtr(ptr %entry_object)
  %entry_is_null = icmp eq ptr %entry, null
  br i1 %entry_is_null, label %refuse_entry, label %read_dims
read_dims:
  %dims_slot = getelementptr ptr, ptr %args, i64 1
  %dims_object = load ptr, ptr %dims_slot
  %dims = call ptr @PyLong_AsVoidPtr(ptr %dims_object)
  %dims_is_null = icmp eq ptr %dims, null
  br i1 %dims_is_null, label %check_dims, label %make_table
check_dims:
  %dims_error = call ptr @PyErr_Occurred()
  %dims_is_fine = icmp eq ptr %dims_error, null
  br i1 %dims_is_fine, label %make_table, label %fail
make_table:
  %table = alloca ptr, i64 %count
  %first = getelementptr ptr, ptr %args, i64 2
  br label %next_array
next_array:
  %k = phi i64 [ 0, %make_table ], [ %following, %read_data ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %read_array, label %run
read_array:
  %array_slot = getelementptr ptr, ptr %first, i64 %k
  %array = load ptr, ptr %array_slot
  %type_slot = getelementptr i8, ptr %array, i64 {_TYPE_OFFSET}
  %type = load ptr, ptr %type_slot
  %is_exact = icmp eq ptr %type, @{_NDARRAY}
  br i1 %is_exact, label %read_data, label %check_subclass
check_subclass:
  %is_subclass = call i32 @PyType_IsSubtype(ptr %type, ptr @{_NDARRAY})
  %is_other = icmp eq i32 %is_subclass, 0
  br i1 %is_other, label %refuse_array, label %read_data
read_data:
  %data_slot = getelementptr i8, ptr %array, i64 {_DATA_OFFSET}
  %data = load ptr, ptr %data_slot
  %table_slot = getelementptr ptr, ptr %table, i64 %k
  store ptr %data, ptr %table_slot
  %following = add i64 %k, 1
  br label %next_array
run:
  {save}
  %status = call i64 %entry(ptr %table, ptr %dims)
  {restore}
  %has_raised = icmp eq i64 %status, {RAISED}
  br i1 %has_raised, label %fail, label %finish
finish:
  %result = call ptr @PyLong_FromLongLong(i64 %status)
  ret ptr %result
refuse_count:
  %count_type = load ptr, ptr @PyExc_TypeError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %count_type, ptr @count_text, i64 %nargs)
  br label %fail
refuse_entry:
  %entry_error = call ptr @PyErr_Occurred()
  %entry_is_zero = icmp eq ptr %entry_error, null
  br i1 %entry_is_zero, label %refuse_null, label %fail
refuse_null:
  %null_type = load ptr, ptr @PyExc_ValueError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %null_type, ptr @null_text)
  br label %fail
refuse_array:
  %position = add i64 %k, 2
  %array_type = load ptr, ptr @PyExc_TypeError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %array_type, ptr @array_text, i64 %position, ptr %type)
  br label %fail
fail:
  ret ptr null
}}
"""


def _make_ctypes_launcher(function_type) -> Callable[..., int]:
    """The same function in Python; `function_type` says whether the call keeps the GIL."""
    prototype = function_type(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    entries: dict[int, Callable[..., int]] = {}

    def launch(*arguments):
        count = len(arguments) - 2
        if count < 0:
            raise TypeError(_COUNT_TEXT.replace("%zd", str(len(arguments))))
        address, dims_address, *arrays = arguments
        for given in (address, dims_address):
            if not isinstance(given, int):
                raise TypeError(f"launch() takes addresses as int, not {type(given)}")
        if address == 0:
            raise ValueError(_NULL_TEXT)
        for position, array in enumerate(arrays, 2):
            if not isinstance(array, np.ndarray):
                raise TypeError(_ARRAY_TEXT.replace("%zd", str(position)).replace("%R", repr(type(array))))
        table = (ctypes.c_void_p * max(count, 1))(*(array.ctypes.data for array in arrays))
        entry = entries.get(address) or entries.setdefault(address, prototype(address))
        return entry(table, dims_address)

    return launch
