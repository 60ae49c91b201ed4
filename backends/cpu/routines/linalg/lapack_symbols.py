"""Where LAPACK is: the addresses of its routines in a library that this process has loaded anyway.

In: a Fortran name, such as "dgetrf". Out: its address, as the symbol "lapack_dgetrf" of native code; and the
width of the integers it takes.

NumPy's wheels carry an OpenBLAS with 64-bit integers and names of its own, newer than SciPy's and with the
pool of threads that the caller's NumPy uses. Where NumPy has another LAPACK, SciPy's is taken, by the
capsules that `scipy.linalg.cython_lapack` and `cython_blas` publish; its integers have 32 bits.
"""

from __future__ import annotations

import ctypes
import functools
import importlib

PREFIX = "lapack_"


@functools.cache
def _open_numpy_library() -> ctypes.CDLL | None:
    """NumPy's extension of LAPACK calls: looking up a name in it searches the library that it links."""
    try:
        module = importlib.import_module("numpy.linalg._umath_linalg")
        library = ctypes.CDLL(module.__file__)
        _ = [library[_numpy_name(name)] for name in ("dgetrf", "dtrsm")]
    except (ImportError, OSError, AttributeError):
        return None
    return library


def _numpy_name(name: str) -> str:
    return f"scipy_{name}_64_"


def integer_bits() -> int:
    """Bits of LAPACK's integers in this process: 64 or 32."""
    return 32 if _open_numpy_library() is None else 64


def find_address(symbol: str) -> int:
    """Where the routine is that native code calls by this symbol."""
    name, library = symbol.removeprefix(PREFIX), _open_numpy_library()
    if library is not None:
        return ctypes.cast(library[_numpy_name(name)], ctypes.c_void_p).value
    return _find_scipy_address(name)


def _find_scipy_address(name: str) -> int:
    for room in ("cython_lapack", "cython_blas"):
        capsule = importlib.import_module(f"scipy.linalg.{room}").__pyx_capi__.get(name)
        if capsule is not None:
            return _read_capsule(capsule)
    raise KeyError(f"SciPy publishes no LAPACK or BLAS routine {name}")


def _read_capsule(capsule) -> int:
    api = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api))
    return get_pointer(capsule, get_name(capsule))
