"""Writing LLVM text of the run time: calls of Python and of the C library, objects, what threads share.

In: method calls in the order of the code. Out: LLVM text. Stage: run time.
"""

from __future__ import annotations

from typing import Any

from jitcore.backends.cpu.runtime.python_objects import ITEMS_OFFSET, SIZE_OFFSET, TYPE_OFFSET
from jitcore.backends.llvm.text_writer import Operand, TextWriter

__all__ = ["RuntimeWriter"]


class RuntimeWriter(TextWriter):
    """Text of functions `PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t nargs)` and of what
    they call, and of what threads share, whose accesses are atomic, of one order with all others unless said.
    `require` leaves for a block that the function writes at its end."""

    library = TextWriter.library | {
        # Python's
        "PyBool_FromLong": "ptr (i64)", "PyContextVar_Get": "i32 (ptr, ptr, ptr)",
        "PyErr_CheckSignals": "i32 ()", "PyErr_Format": "ptr (ptr, ptr, ...)", "PyErr_Occurred": "ptr ()",
        "PyEval_RestoreThread": "void (ptr)", "PyEval_SaveThread": "ptr ()",
        "PyFloat_FromDouble": "ptr (double)", "PyGILState_Check": "i32 ()", "PyGILState_Ensure": "i32 ()",
        "PyGILState_Release": "void (i32)", "PyList_SetItem": "i32 (ptr, i64, ptr)",
        "PyLong_AsLongLong": "i64 (ptr)", "PyLong_AsLongLongAndOverflow": "i64 (ptr, ptr)",
        "PyLong_AsVoidPtr": "ptr (ptr)", "PyLong_FromLongLong": "ptr (i64)",
        "PyObject_CallObject": "ptr (ptr, ptr)", "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
        "PyTuple_New": "ptr (i64)", "PyTuple_SetItem": "i32 (ptr, i64, ptr)",
        "PyType_IsSubtype": "i32 (ptr, ptr)", "Py_DecRef": "void (ptr)", "Py_IncRef": "void (ptr)",
        # the C library's
        "_longjmp": "void (ptr, i32)", "clock_gettime": "i32 (i32, ptr)",
        "madvise": "i32 (ptr, i64, i32)", "posix_memalign": "i32 (ptr, i64, i64)",
        "pthread_cond_broadcast": "i32 (ptr)", "pthread_cond_signal": "i32 (ptr)",
        "pthread_cond_timedwait": "i32 (ptr, ptr, ptr)", "pthread_cond_wait": "i32 (ptr, ptr)",
        "pthread_create": "i32 (ptr, ptr, ptr, ptr)", "pthread_detach": "i32 (ptr)",
        "pthread_kill": "i32 (i64, i32)", "pthread_mutex_lock": "i32 (ptr)",
        "pthread_mutex_unlock": "i32 (ptr)", "pthread_self": "i64 ()",
        "pthread_sigmask": "i32 (i32, ptr, ptr)", "sched_yield": "i32 ()",
        "sigaction": "i32 (i32, ptr, ptr)", "sigaddset": "i32 (ptr, i32)", "sigemptyset": "i32 (ptr)",
        "signal": "ptr (i32, ptr)", "usleep": "i32 (i32)",
        # LLVM's
        "llvm.aarch64.hint": "void (i32)", "llvm.memcpy.p0.p0.i64": "void (ptr, ptr, i64, i1)",
        "llvm.memmove.p0.p0.i64": "void (ptr, ptr, i64, i1)", "llvm.memset.p0.i64": "void (ptr, i8, i64, i1)",
        "llvm.x86.sse2.pause": "void ()",
    }

    # -- what threads share
    def part(self, pointer: str, field: Any) -> str:
        """Where a field of a structure of `ctypes` is."""
        return self.at(pointer, field.offset)

    def load_atomic(self, pointer: str, kind: str = "i64", order: str = "seq_cst") -> str:
        return self.let(f"load atomic {kind}, ptr {pointer} {order}, align 8")

    def store_atomic(self, value: Operand, pointer: str, kind: str = "i64", order: str = "seq_cst") -> None:
        self.do(f"store atomic {kind} {value}, ptr {pointer} {order}, align 8")

    def add_atomic(self, value: int, pointer: str, order: str = "seq_cst") -> str:
        """Adds to a number. Returns: what it was."""
        return self.let(f"atomicrmw add ptr {pointer}, i64 {value} {order}")

    def replace_atomic(self, pointer: str, old: Operand, new: Operand, kind: str = "i64") -> str:
        """Stores a new value in the place of an old one. Returns: whether it was this one, an i1."""
        pair = self.let(f"cmpxchg ptr {pointer}, {kind} {old}, {kind} {new} seq_cst seq_cst")
        return self.let(f"extractvalue {{ {kind}, i1 }} {pair}, 1")

    # -- Python's objects
    def symbol(self, name: str, kind: str = "i8") -> str:
        """The address of a variable of another library."""
        self.declare(f"@{name} = external global {kind}")
        return f"@{name}"

    def field(self, pointer: str, offset: int, kind: str = "ptr") -> str:
        """What an object holds, so many bytes behind its beginning."""
        return self.load(self.at(pointer, offset), kind)

    def is_type(self, kind: str, name: str) -> str:
        """Whether an object's type is the one of this symbol."""
        return self.compare("eq", kind, self.symbol(name), "ptr")

    def is_subtype(self, kind: str, name: str) -> str:
        return self.compare("ne", self.call("PyType_IsSubtype", kind, self.symbol(name)), 0, "i32")

    def require_type(self, item: str, name: str, otherwise: str) -> None:
        self.require(self.is_type(self.field(item, TYPE_OFFSET), name), otherwise)

    def require_list(self, item: str, size: Operand, otherwise: str) -> str:
        """A list of so many items. Returns: where these are."""
        self.require_type(item, "PyList_Type", otherwise)
        self.require(self.compare("eq", self.field(item, SIZE_OFFSET, "i64"), size), otherwise)
        return self.field(item, ITEMS_OFFSET)

    def require_no_error(self, otherwise: str) -> None:
        self.require(self.is_null(self.call("PyErr_Occurred")), otherwise)

    def read_int(self, item: str, limit: int, overflow: str, otherwise: str) -> str:
        """An int from -limit to limit - 1. overflow: where there is room for an i32."""
        value = self.call("PyLong_AsLongLongAndOverflow", item, overflow)
        is_right = self.compare("eq", self.load(overflow, "i32", 4), 0, "i32")
        is_small = self.compare("ult", self.add(value, limit), 2 * limit)
        self.require(self.let(f"and i1 {is_right}, {is_small}"), otherwise)
        return value

    def give_int(self, value: Operand) -> None:
        """Ends a function with a new int."""
        self.do(f"ret ptr {self.call('PyLong_FromLongLong', value)}")
