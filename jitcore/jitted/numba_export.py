"""A compiled program as a function that Numba's nopython code may call.

In: a program and the types of its arguments. Out: a function made by `numba.njit`, which allocates the
outputs, writes a table of addresses and calls the program's entry point. Nothing returns to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.core.aval import ShapedArray
from jitcore.dispatch.backend import find_lowering
from jitcore.dispatch.program import Program
from jitcore.dispatch.tracing import SINGLE

_ALIGNMENT = 64


def export(program: Program, avals: Sequence[ShapedArray]) -> Callable:
    """The njit function of the program's leaves, which returns its output, or a tuple of them.

    Raises: NotImplementedError for a program that calls Python or whose backend has no native entry point."""
    # An optional package.
    import numba

    n_consts = len(program.traced.consts)
    all_avals = [*[var.aval for var in program.traced.jaxpr.constvars], *avals]
    find = getattr(program.executable, "native_call", None)
    call = find([all_avals[i] for i in program.kept]) if find else None
    if call is None:
        name = program.traced.fun_name
        raise NotImplementedError(f"{name} calls Python while it runs: Numba cannot call it")
    consts = [np.ascontiguousarray(program.const_values[i]) for i in program.kept if i < n_consts]
    lines, pointers = [], [str(const.ctypes.data) for const in consts]
    for i, aval in enumerate(avals):
        lines += _write_input(f"a{i}", aval)
        if n_consts + i in program.kept:
            pointers.append(f"a{i}.ctypes.data")
    names: dict[str, Any] = {"np": np, "__name__": __name__}
    for k, (shape, dtype) in enumerate(call.outputs):
        names[f"dtype{k}"] = dtype
        lines.append(f"o{k} = np.empty({shape}, dtype{k})")
        pointers.append(f"o{k}.ctypes.data")
    if call.arena_bytes:
        lines.append(f"arena = np.empty({call.arena_bytes + _ALIGNMENT}, np.uint8)")
        pointers.append(f"(arena.ctypes.data + {_ALIGNMENT - 1}) // {_ALIGNMENT} * {_ALIGNMENT}")
    lines.append(f"table = np.empty({max(len(pointers), 1)}, np.int64)")
    lines += [f"table[{i}] = {pointer}" for i, pointer in enumerate(pointers)]
    lines.append(f"entry(table.ctypes.data, {call.dims.ctypes.data})")
    # The arrays must live until the entry point has returned: their sizes are read behind the call.
    kept = [*[f"a{i}" for i in range(len(avals))], *(["arena"] if call.arena_bytes else []), "table"]
    lines.append(f"alive = {' + '.join(f'{name}.size' for name in kept)}")
    results = [f"o{k}[()]" if not shape else f"o{k}" for k, (shape, _) in enumerate(call.outputs)]
    is_single = program.traced.out_structure is SINGLE
    lines.append(f"return {results[0] if is_single else '(' + ''.join(f'{r}, ' for r in results) + ')'}")
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(call.address)
    names |= {"entry": entry}
    arguments = ", ".join(f"a{i}" for i in range(len(avals)))
    source = f"def exported({arguments}):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, "<jitcore njit>", "exec"), names)
    made = numba.njit([tuple(map(_numba_type, avals))])(names["exported"])
    made.__dict__["jitcore_keeps"] = (call, consts, entry)
    return made


def export_device(program: Program) -> Callable:
    """The same program as a device function of `numba.cuda`, of all leaves.

    Raises: ImportError naming what to install; NotImplementedError for what kernels do not have."""
    traced, backend = program.traced, find_lowering("cuda")
    program = Program(traced, (), program.options._replace(keep_unused=True), backend)
    n_consts = len(traced.consts)
    constants = {place: np.asarray(program.const_values[i]) for place, i in enumerate(program.kept)
                 if i < n_consts}
    name = traced.fun_name if traced.fun_name.isidentifier() else "function"
    return backend.make_device_function(program.compiled_jaxpr, name, program.argument_names, constants)


def _numba_type(aval: ShapedArray) -> Any:
    """Numba's type of an argument; arrays of any layout."""
    # An optional package.
    import numba

    scalar = numba.from_dtype(aval.dtype)
    return numba.types.Array(scalar, len(aval.shape), "A") if aval.shape else scalar


def _write_input(name: str, aval: ShapedArray) -> list[str]:
    """Lines that check an argument and make it contiguous."""
    if not aval.shape:
        return [f"{name} = np.array({name})"]
    text = f"this function was compiled for arguments of shape {aval.shape}"
    check = f"if {name}.shape != {aval.shape}: raise ValueError({text!r})"
    return [check, f"{name} = np.ascontiguousarray({name})"]
