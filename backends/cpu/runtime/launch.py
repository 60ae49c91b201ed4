"""Calls of compiled programs from Python: plans, functions that carry them out, and one trampoline for all.

In: what a call of a native program allocates and passes on, from the scheduler or from disk: no compiler is
needed. Out: a function of the input ndarrays. Stage: binding a program to sizes; run time.

Machine code is called by the address of an entry point `int64 entry(i8** buffers, int64* dims)`, the address
of its extents, and the ndarrays whose memory it works on; its status is an int (0: success). The trampoline
is a built-in function of CPython whose body is LLVM code made by this module. It reads each ndarray's data
pointer from the array object itself, which takes a nanosecond where `array.ctypes.data` takes a microsecond.
Whether array objects are laid out as assumed is checked when the trampoline is made; if not, a slower one in
Python takes its place.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu import routines  # noqa: F401  provides symbols of native code on whole buffers
from jitcore.backends.cpu.native import images, libraries
from jitcore.backends.cpu.native.libraries import NativeProgram, find_program
from jitcore.backends.cpu.runtime import threads  # noqa: F401  provides symbols of the pool
from jitcore.backends.cpu.runtime.memory import choose_allocator, write_arena
from jitcore.dispatch import disk_cache

#: Arrays that one call of a native launcher may pass; their table lies on the stack.
MAX_ARRAYS = 4096

#: The status of an entry point that left a Python exception set: it is raised.
RAISED = -(1 << 63)

_TYPE_OFFSET = 8  # PyObject.ob_type
_DATA_OFFSET = 16  # PyArrayObject.data, the first field after PyObject


# -- launchers ----------------------------------------------------------------------------------------------
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
        kind: "native", or "ctypes" where the object layout is unknown or arrays are many."""

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
    """Do ndarrays of this NumPy and CPython hold type and data pointer where the trampoline looks?"""
    probe = np.arange(7.0)[2:5]
    read = ctypes.c_void_p.from_address
    return (
        ctypes.sizeof(ctypes.c_void_p) == 8
        and object.__basicsize__ == _DATA_OFFSET
        and read(id(probe) + _TYPE_OFFSET).value == id(np.ndarray)
        and read(id(probe) + _DATA_OFFSET).value == probe.ctypes.data
    )


def _make_native_launchers() -> Launchers:
    library, _ = libraries.find_or_compile("launch", "", _render_trampolines)
    parameters = "(entry_address, dims_address, *arrays) -> status"
    functions = (library.make_builtin(name, name, name + parameters) for name in library.symbols)
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


# -- plans --------------------------------------------------------------------------------------------------
Run = Callable[..., list[np.ndarray]]


class Output(NamedTuple):
    """An output: the number of the input whose memory it takes over, or -1 for an array of its own."""

    source: int
    shape: tuple[int, ...]
    dtype: np.dtype


class CallPlan(NamedTuple):
    """What a call allocates and passes on, for inputs of certain shapes.

    dims: what the entry point gets beside arrays. arena_bytes: of temporaries. releases: whether a call lets
    other Python threads run meanwhile. parts: symbols that code finds in tables, opened before a call.
    owners: what addresses among dims belong to; a plan that has any is of this process alone."""

    num_inputs: int
    outputs: tuple[Output, ...]
    dims: tuple[int, ...]
    arena_bytes: int
    releases: bool
    parts: tuple[str, ...] = ()
    owners: tuple[object, ...] = ()

    def open_parts(self) -> None:
        for symbol in self.parts:
            images.address_of(symbol)


_KEY_BYTES, _PARTS_SIZE = 32, struct.Struct("<q")


def find_plan(key: bytes) -> tuple[CallPlan, bytes | None] | None:
    """(a plan, the key of its machine code or None where it has no code), as `store_plan` got them."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(key)
    if stored is None:
        return None
    try:
        return decode_plan(stored)
    except (ValueError, IndexError):  # what was written is not what is read: it will be replaced
        return None


def store_plan(key: bytes, plan: CallPlan, code_key: bytes | None) -> None:
    cache = disk_cache.open_cache()
    if cache is not None and not plan.owners:
        cache.add(key, encode_plan(plan, code_key))


def encode_plan(plan: CallPlan, code_key: bytes | None) -> bytes:
    numbers = [plan.num_inputs, plan.arena_bytes, plan.releases, len(plan.dims), *plan.dims]
    for output in plan.outputs:
        numbers += [output.source, dtypes.SUPPORTED.index(output.dtype), len(output.shape), *output.shape]
    parts = " ".join(plan.parts).encode()
    head = (code_key or bytes(_KEY_BYTES)) + _PARTS_SIZE.pack(len(parts)) + parts
    return head + np.array(numbers, np.int64).tobytes()


def decode_plan(stored: bytes) -> tuple[CallPlan, bytes | None]:
    """Raises: ValueError or IndexError for bytes that `encode_plan` did not make."""
    code_key = stored[:_KEY_BYTES]
    try:
        (size,) = _PARTS_SIZE.unpack_from(stored, _KEY_BYTES)
    except struct.error as damage:
        raise ValueError(str(damage)) from None
    start = _KEY_BYTES + _PARTS_SIZE.size
    parts = tuple(stored[start : start + size].decode().split())
    numbers = np.frombuffer(stored, np.int64, offset=start + size).tolist()
    num_inputs, arena_bytes, releases, n_dims, *rest = numbers
    dims, at, outputs = tuple(rest[:n_dims]), n_dims, []
    while at < len(rest):
        source, dtype, ndim = rest[at : at + 3]
        at += 3 + ndim
        shape = tuple(rest[at - ndim : at])
        is_array = 0 <= dtype and len(shape) == ndim and min(shape, default=0) >= 0
        if not (is_array and -1 <= source < num_inputs):
            raise ValueError("the plan of a call is damaged")
        outputs.append(Output(source, shape, dtypes.SUPPORTED[dtype]))
    plan = CallPlan(num_inputs, tuple(outputs), dims, arena_bytes, bool(releases), parts)
    return plan, code_key if any(code_key) else None


def write_call(plan: CallPlan, compiled: NativeProgram) -> Run:
    """The function for a program of one native step, written out for its numbers of inputs and outputs: it
    allocates outputs and arena, and calls."""
    launchers = open_launchers(plan.num_inputs + len(plan.outputs) + 1)
    dims = np.array(plan.dims, dtype=np.int64)
    launch = launchers.releasing if plan.releases else launchers.holding
    names = {"launch": launch, "dims": dims, "keep": (compiled, plan.owners), "__name__": __name__}
    inputs = [f"a{k}" for k in range(plan.num_inputs)]
    lines, given, outputs = [], list(inputs), []
    for k, output in enumerate(plan.outputs):
        if output.source >= 0:
            outputs.append(inputs[output.source])
            continue
        outputs.append(f"o{k}")
        names[f"shape{k}"], names[f"dtype{k}"] = output.shape, output.dtype
        names[f"make{k}"] = choose_allocator(math.prod(output.shape) * output.dtype.itemsize)
        lines.append(f"o{k} = make{k}(shape{k}, dtype{k})")
        given.append(f"o{k}")
    if plan.arena_bytes:
        lines.append(write_arena(plan.arena_bytes, names))
        given.append("arena")
    if compiled.addresses:
        lines.append(f"launch({compiled.addresses[0]}, {dims.ctypes.data}, {', '.join(given)})")
    lines.append(f"return [{', '.join(outputs)}]")
    source = f"def run({', '.join(inputs)}):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, "<jitcore call>", "exec"), names)
    return names["run"]


def open_program(data: bytes) -> Run:
    """A program on disk (see `CpuExecutable.store`), for processes that do without a compiler. Raises:
    LookupError where its machine code is gone."""
    plan, key = decode_plan(data)
    compiled = NativeProgram() if key is None else find_program(key, libraries.DEFAULT_OPT_LEVEL)
    if compiled is None:
        raise LookupError("the machine code of a program is not on disk any more")
    plan.open_parts()
    return write_call(plan, compiled)
