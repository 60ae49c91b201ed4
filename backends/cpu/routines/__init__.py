"""Routines: native code on whole buffers for primitives that loops would compute badly.

In: an equation. Out: the `Routine` that computes it, or None; and the machine code that routines call.
A primitive's room is found by its name and imported when a program contains it: this loads no compiler.

A routine has `__str__` (its name with all parameters but sizes: part of the key of compiled programs),
`scratch()` (temporaries it needs), and `emit(renderer, call)`, which writes into the entry point of a program
with `renderer.run(symbol, *arguments)`, `run_told`, `address_of(buffer)` and `count(extents)`. Code that many
programs share is a module of its own (`CODE`), compiled once per process at the first use.

Modules:
    code_writer  Writing of scalar code for routines: counted loops, branches, slots of the stack.
    draws        Draws of random numbers as scalar code: calls of the functions whose addresses are in a
                 generator's words.
    fft/         Fourier transforms as native routines.
    linalg/      Decompositions and solvers of matrices as native routines: our own for small ones, else
                 LAPACK's.
    product/     Products of matrices and vectors, and convolutions, as native routines.
    sort/        Sorting of rows, stable orders and the largest elements, as native routines.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import images
from jitcore.backends.cpu.routines.linalg import lapack_symbols

if TYPE_CHECKING:
    from jitcore.core.jaxpr import Equation

#: Module of this package, by primitive: `find_routine(eqn, tuning)`.
ROOMS: dict[str, str] = {
    **dict.fromkeys(("sort", "top_k"), "sort.routine"),
    **dict.fromkeys(("cholesky", "eigh", "lu", "lu_pivots_to_permutation", "qr", "svd", "triangular_solve"),
                    "linalg.routine"),
    "dot_general": "product.matrices_routine",
    "two_sided_dot": "product.two_sided_routine",
    "conv_general_dilated": "product.convolution",
    "fft": "fft.routine",
    "draw": "draws",
}

#: Module of this package, by prefix of symbol: `render(symbol, tuning)` gives the LLVM text that defines it.
CODE: dict[str, str] = {
    "jitcore_sort_": "sort.modules",
    "jitcore_lapack": "linalg.lapack_code",
    "jitcore_product": "product.modules",
    "jitcore_part_": "product.modules",
    "jitcore_fft_": "fft.stages",
}


def find_routine(eqn: Equation):
    """The routine for an equation, or None where loops or its NumPy implementation serve it."""
    room = ROOMS.get(eqn.primitive.name)
    return None if room is None else _import(room).find_routine(eqn, _find_tuning(room))


def _find_tuning(room: str) -> Any:
    return getattr(host.MACHINE.tuning, room.split(".")[0], None)  # of draws there is none


def _import(room: str):
    return importlib.import_module(f"{__name__}.{room}")


_libraries: list = []  # machine code is called for as long as the process lives


def _describe_module(symbol: str) -> dict[str, Any]:
    """What `native` is told of the module that defines a symbol."""
    room = next(room for prefix, room in CODE.items() if symbol.startswith(prefix))
    # Passes would find nothing to do in parts.
    opt_level = 0 if symbol.startswith("jitcore_part_") else None
    render = lambda: _import(room).render(symbol, _find_tuning(room))  # noqa: E731
    return {"name": symbol, "facts": "", "render": render, "opt_level": opt_level}


def _open_symbol(symbol: str) -> int:
    from jitcore.backends.cpu.native import libraries

    library, _ = libraries.find_or_compile(**_describe_module(symbol))
    _libraries.append(library)
    return library.address(symbol)


def _foresee_symbol(symbol: str) -> None:
    from jitcore.backends.cpu.native import libraries

    libraries.compile_ahead(**_describe_module(symbol))


def _open_part(symbol: str) -> int:
    address = _open_symbol(symbol)
    _import("product.parts").enter_part(symbol, address)
    return address


for _prefix in CODE:
    images.provide(_prefix, _open_symbol, _foresee_symbol)
images.provide("jitcore_part_", _open_part, _foresee_symbol)
images.provide("jitcore_parts_", lambda symbol: _import("product.parts").find_table(symbol).ctypes.data)
# Code from disk calls LAPACK without any of the rooms being entered.
images.provide(lapack_symbols.PREFIX, lapack_symbols.find_address)
