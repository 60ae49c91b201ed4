"""Writing LLVM text of functions that Python calls, which read and make its objects.

In: method calls in the order of the code. Out: LLVM text. Stage: run time.
"""

from __future__ import annotations

from jitcore.backends.cpu.runtime.python_objects import ITEMS_OFFSET, SIZE_OFFSET, TYPE_OFFSET
from jitcore.backends.llvm.text_writer import Operand, TextWriter

__all__ = ["ObjectWriter"]

#: What Python's functions take and return.
_SIGNATURES = {
    "PyBool_FromLong": "ptr (i64)", "PyContextVar_Get": "i32 (ptr, ptr, ptr)",
    "PyErr_Format": "ptr (ptr, ptr, ...)", "PyErr_Occurred": "ptr ()",
    "PyEval_RestoreThread": "void (ptr)", "PyEval_SaveThread": "ptr ()",
    "PyFloat_FromDouble": "ptr (double)", "PyList_SetItem": "i32 (ptr, i64, ptr)",
    "PyLong_AsLongLong": "i64 (ptr)", "PyLong_AsLongLongAndOverflow": "i64 (ptr, ptr)",
    "PyLong_AsVoidPtr": "ptr (ptr)", "PyLong_FromLongLong": "ptr (i64)",
    "PyType_IsSubtype": "i32 (ptr, ptr)", "Py_DecRef": "void (ptr)", "Py_IncRef": "void (ptr)",
}


class ObjectWriter(TextWriter):
    """Text of functions `PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t nargs)` and of what
    they call. `require` leaves for a block that the function writes at its end."""

    def call(self, name: str, *operands: str) -> str:
        """Calls one of Python's functions. operands: with their types, as in LLVM's text."""
        result, _, parameters = _SIGNATURES[name].partition(" ")
        self.declare(f"declare {result} @{name}{parameters}")
        kind = f"{result} {parameters}" if "..." in parameters else result
        call = f"call {kind} @{name}({', '.join(operands)})"
        if result == "void":
            self.do(call)
            return ""
        return self.let(call)

    def symbol(self, name: str, kind: str = "i8") -> str:
        """The address of a variable of another library."""
        self.declare(f"@{name} = external global {kind}")
        return f"@{name}"

    def field(self, pointer: str, offset: int, kind: str = "ptr") -> str:
        """What an object holds, so many bytes behind its beginning."""
        return self.load(self.at(pointer, offset), kind)

    def is_null(self, pointer: str) -> str:
        return self.let(f"icmp eq ptr {pointer}, null")

    def is_type(self, kind: str, name: str) -> str:
        """Whether an object's type is the one of this symbol."""
        return self.let(f"icmp eq ptr {kind}, {self.symbol(name)}")

    def is_subtype(self, kind: str, name: str) -> str:
        answer = self.call("PyType_IsSubtype", f"ptr {kind}", f"ptr {self.symbol(name)}")
        return self.let(f"icmp ne i32 {answer}, 0")

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
        value = self.call("PyLong_AsLongLongAndOverflow", f"ptr {item}", f"ptr {overflow}")
        is_right = self.let(f"icmp eq i32 {self.load(overflow, 'i32', 4)}, 0")
        is_small = self.compare("ult", self.add(value, limit), 2 * limit)
        self.require(self.let(f"and i1 {is_right}, {is_small}"), otherwise)
        return value

    def give_int(self, value: Operand) -> None:
        """Ends a function with a new int."""
        self.do(f"ret ptr {self.call('PyLong_FromLongLong', f'i64 {value}')}")
