"""Python's objects as native code sees them: where it finds their fields, and functions made of it.

In: addresses of native code. Out: built-in functions; whether objects are laid out as assumed; NumPy's C
functions. Stage: run time.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["find_numpy_table", "layout_is_known", "make_builtin"]

#: The symbol of the type of ndarrays.
NDARRAY = "jitcore_ndarray_type"

TYPE_OFFSET = 8  # PyObject.ob_type
DATA_OFFSET = 16  # PyArrayObject.data, the first field after PyObject
NDIM_OFFSET, SHAPE_OFFSET, DTYPE_OFFSET, FLAGS_OFFSET = 24, 32, 56, 64  # its nd, dimensions, descr, flags
CODE_OFFSET, ITEMS_OFFSET = 48, 24  # PyFunctionObject.func_code, PyListObject.ob_item
_METH_FASTCALL = 0x0080


def layout_is_known() -> bool:
    """Do objects of this NumPy and CPython hold what native code reads where it looks?"""
    probe, items = np.arange(24.0).reshape(4, 6)[1:3, 2:5], [object()]
    read, read_int = ctypes.c_void_p.from_address, ctypes.c_int.from_address
    return (
        ctypes.sizeof(ctypes.c_void_p) == 8
        and object.__basicsize__ == DATA_OFFSET
        and read(id(probe) + TYPE_OFFSET).value == id(np.ndarray)
        and read(id(probe) + DATA_OFFSET).value == probe.ctypes.data
        and read_int(id(probe) + NDIM_OFFSET).value == 2
        and (ctypes.c_int64 * 2).from_address(read(id(probe) + SHAPE_OFFSET).value)[:] == [2, 3]
        and read(id(probe) + DTYPE_OFFSET).value == id(probe.dtype)
        and read_int(id(probe) + FLAGS_OFFSET).value == probe.flags.num
        and read(id(layout_is_known) + CODE_OFFSET).value == id(layout_is_known.__code__)
        and read(read(id(items) + ITEMS_OFFSET).value).value == id(items[0])
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


def find_numpy_table():
    """NumPy's table of C functions, or None where it has no memory handlers."""
    umath = getattr(np, "_core", None) or np.core
    umath = umath._multiarray_umath
    if tuple(map(int, np.__version__.split(".")[:2])) < (1, 22):
        return None
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get_pointer(umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
