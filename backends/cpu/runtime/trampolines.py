"""The functions of native code that Python calls: launchers of programs, and what makes arrays and numbers.

In: nothing. Out: LLVM text, one module for the process, see `launch`. Stage: run time.
"""

from __future__ import annotations

from jitcore.backends.cpu.runtime.checks import DATA_OFFSET, GENERIC, NDARRAY, TEXT, TRUE, TYPE_OFFSET
from jitcore.backends.cpu.runtime.list_numbers import LISTS

__all__ = ["ARRAY_TEXT", "COUNT_TEXT", "MAX_ARRAYS", "NULL_TEXT", "RAISED", "TRAMPOLINES"]

#: Arrays that one call of a native launcher may pass; their table lies on the stack.
MAX_ARRAYS = 4096

#: The status of an entry point that left a Python exception set: it is raised.
RAISED = -(1 << 63)


def _text_constant(name: str, text: str) -> str:
    data = text.encode() + b"\0"
    return f'@{name} = private constant [{len(data)} x i8] c"{text}\\00"\n'


COUNT_TEXT = f"launch() takes 2 addresses and at most {MAX_ARRAYS} arrays, got %zd arguments"
NULL_TEXT = "launch() got entry address 0"
ARRAY_TEXT = "launch() argument %zd must be a numpy.ndarray, not %R"

_TRAMPOLINE_HEAD = (
    _text_constant("count_text", COUNT_TEXT)
    + _text_constant("null_text", NULL_TEXT)
    + _text_constant("array_text", ARRAY_TEXT)
    + f"""
@{NDARRAY} = external global i8
@{GENERIC} = external global i8
@{TRUE} = external global i8
@PyFloat_Type = external global i8
@PyComplex_Type = external global i8
@PyLong_Type = external global i8
@PyBool_Type = external global i8
@PyExc_TypeError = external global ptr
@PyExc_ValueError = external global ptr
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i32 @PyType_IsSubtype(ptr, ptr)
"""
)


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
  %ints = alloca i64, i64 %count
  %first = getelementptr ptr, ptr %args, i64 2
  br label %next_array
next_array:
  %k = phi i64 [ 0, %make_table ], [ %following, %keep_data ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %read_array, label %run
read_array:
  %array_slot = getelementptr ptr, ptr %first, i64 %k
  %array = load ptr, ptr %array_slot
  %type_slot = getelementptr i8, ptr %array, i64 {TYPE_OFFSET}
  %type = load ptr, ptr %type_slot
  %is_exact = icmp eq ptr %type, @{NDARRAY}
  br i1 %is_exact, label %read_data, label %check_float
check_float:
  %value_slot = getelementptr i8, ptr %array, i64 {DATA_OFFSET}
  %is_float = icmp eq ptr %type, @PyFloat_Type
  br i1 %is_float, label %read_value, label %check_int
check_int:
  %is_int = icmp eq ptr %type, @PyLong_Type
  br i1 %is_int, label %read_int, label %check_bool
read_int:
  %read = call i64 @PyLong_AsLongLong(ptr %array)
  %is_doubtful = icmp eq i64 %read, -1
  br i1 %is_doubtful, label %check_read, label %keep_int
check_read:
  %read_error = call ptr @PyErr_Occurred()
  %read_is_fine = icmp eq ptr %read_error, null
  br i1 %read_is_fine, label %keep_int, label %fail
check_bool:
  %is_bool = icmp eq ptr %type, @PyBool_Type
  br i1 %is_bool, label %read_bool, label %check_generic
read_bool:
  %is_true = icmp eq ptr %array, @{TRUE}
  %truth = zext i1 %is_true to i64
  br label %keep_int
keep_int:
  %int = phi i64 [ %read, %read_int ], [ %read, %check_read ], [ %truth, %read_bool ]
  %int_slot = getelementptr i64, ptr %ints, i64 %k
  store i64 %int, ptr %int_slot
  br label %keep_data
check_generic:
  %is_generic = call i32 @PyType_IsSubtype(ptr %type, ptr @{GENERIC})
  %is_no_scalar = icmp eq i32 %is_generic, 0
  br i1 %is_no_scalar, label %check_complex, label %read_value
check_complex:
  %is_complex = icmp eq ptr %type, @PyComplex_Type
  br i1 %is_complex, label %read_value, label %check_subclass
read_value:
  br label %keep_data
check_subclass:
  %is_subclass = call i32 @PyType_IsSubtype(ptr %type, ptr @{NDARRAY})
  %is_other = icmp eq i32 %is_subclass, 0
  br i1 %is_other, label %refuse_array, label %read_data
read_data:
  %data_slot = getelementptr i8, ptr %array, i64 {DATA_OFFSET}
  %data = load ptr, ptr %data_slot
  br label %keep_data
keep_data:
  %place = phi ptr [ %data, %read_data ], [ %value_slot, %read_value ], [ %int_slot, %keep_int ]
  %table_slot = getelementptr ptr, ptr %table, i64 %k
  store ptr %place, ptr %table_slot
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


_ALLOCATOR = f"""
define ptr @make_empty(ptr %self, ptr %args, i64 %nargs) {{
  %table_slot = getelementptr i8, ptr %self, i64 {DATA_OFFSET}
  %table = load ptr, ptr %table_slot
  %new = load ptr, ptr %table
  %dtype_slot = getelementptr i64, ptr %table, i64 1
  %dtype = load ptr, ptr %dtype_slot
  call void @Py_IncRef(ptr %dtype)
  %ndim_slot = getelementptr i64, ptr %table, i64 2
  %ndim = load i64, ptr %ndim_slot
  %few = trunc i64 %ndim to i32
  %shape = getelementptr i64, ptr %table, i64 3
  %array = call ptr %new(ptr @{NDARRAY}, ptr %dtype, i32 %few, ptr %shape, ptr null, ptr null, i32 0,
                         ptr null)
  ret ptr %array
}}
"""


_SCALAR_ALLOCATOR = f"""
define ptr @make_scalar(ptr %self, ptr %args, i64 %nargs) {{
  %table_slot = getelementptr i8, ptr %self, i64 {DATA_OFFSET}
  %table = load ptr, ptr %table_slot
  %new = load ptr, ptr %table
  %type_slot = getelementptr i64, ptr %table, i64 1
  %type = load ptr, ptr %type_slot
  %made = call ptr %new(ptr %type, i64 0)
  ret ptr %made
}}
"""


#: Of all of them.
TRAMPOLINES = (
    _TRAMPOLINE_HEAD
    + _render_trampoline("launch_holding", release_gil=False)
    + _render_trampoline("launch_releasing", release_gil=True)
    + TEXT
    + _ALLOCATOR
    + _SCALAR_ALLOCATOR
    + LISTS
)
