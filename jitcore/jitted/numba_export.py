"""A compiled program as a function that Numba's nopython code may call.

In: a program and the types of its arguments. Out: a function made by `numba.njit`, which allocates the
outputs, writes a table of addresses and calls the program's entry point. Nothing returns to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.core.jaxpr import ShapedArray
from jitcore.dispatch.backend import find_lowering
from jitcore.dispatch.program import Program
from jitcore.dispatch.tracing import SINGLE
from jitcore.process.lazy import LazyModule

numba = LazyModule("numba")

_ALIGNMENT = 64


class NativeCaller:
    """Source of a function that calls the entry point of a program. In it the outputs are o0, o1, ...

    Args: avals of the program's leaves; title: what messages call it.

    Attributes:
        names: what the source refers to; kept: what has to live as long as the function.

    Raises: NotImplementedError for a program that calls Python or whose backend has no native entry point."""

    def __init__(self, program: Program, avals: Sequence[ShapedArray], title: str):
        all_avals = [*[var.aval for var in program.traced.jaxpr.constvars], *avals]
        find = getattr(program.executable, "native_call", None)
        call = find([all_avals[i] for i in program.kept]) if find else None
        if call is None:
            raise NotImplementedError(f"{title} calls Python while it runs: Numba cannot call it")
        entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(call.address)
        self.program, self.title, self.call = program, title, call
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"np": np, "__name__": __name__, "entry": entry}
        self.kept: list[Any] = [call, entry]

    def write_call(self, name_input: Callable[[int], str]) -> None:
        """Adds the call. name_input: gives the variable of a leaf, a contiguous ndarray, or its address."""
        n_consts, pointers, alive = len(self.program.traced.consts), [], ["table"]
        for i in self.program.kept:
            if i < n_consts:
                self.kept.append(np.ascontiguousarray(self.program.const_values[i]))
                pointers.append(str(self.kept[-1].ctypes.data))
                continue
            given = name_input(i - n_consts)
            alive += [given] if given.isidentifier() else []
            pointers.append(f"{given}.ctypes.data" if given.isidentifier() else given)
        for k, (shape, dtype) in enumerate(self.call.outputs):
            self.names[f"dtype{k}"] = dtype
            self.lines.append(f"o{k} = np.empty({shape}, dtype{k})")
            pointers.append(f"o{k}.ctypes.data")
        if self.call.arena_bytes:
            alive.append("arena")
            self.lines.append(f"arena = np.empty({self.call.arena_bytes + _ALIGNMENT}, np.uint8)")
            pointers.append(f"(arena.ctypes.data + {_ALIGNMENT - 1}) // {_ALIGNMENT} * {_ALIGNMENT}")
        self.lines.append(f"table = np.empty({max(len(pointers), 1)}, np.int64)")
        self.lines += [f"table[{i}] = {pointer}" for i, pointer in enumerate(pointers)]
        self.lines.append(f"entry(table.ctypes.data, {self.call.dims.ctypes.data})")
        # The arrays must live until the entry point has returned: their sizes are read behind the call.
        self.lines.append(f"alive = {' + '.join(f'{name}.size' for name in alive)}")

    def make_function(self, parameters: Sequence[str], types: tuple) -> Callable:
        """The function by `numba.njit`. types: Numba's of its arguments."""
        # An optional package.
        body = "".join(f"    {line}\n" for line in self.lines)
        exec(compile(f"def exported({', '.join(parameters)}):\n{body}", "<jitcore njit>", "exec"), self.names)
        made = numba.njit([types])(self.names["exported"])
        made.__dict__["jitcore_keeps"] = self.kept
        return made


def export(program: Program, avals: Sequence[ShapedArray]) -> Callable:
    """The njit function of the program's leaves, which returns its output, or a tuple of them.

    Raises: NotImplementedError, as `NativeCaller`."""
    caller = NativeCaller(program, avals, program.traced.fun_name)
    arguments = [f"a{i}" for i in range(len(avals))]
    for name, aval in zip(arguments, avals):
        caller.lines += _write_input(name, aval)
    caller.write_call(arguments.__getitem__)
    results = [f"o{k}[()]" if not shape else f"o{k}" for k, (shape, _) in enumerate(caller.call.outputs)]
    is_single, listed = program.traced.out_structure is SINGLE, "".join(f"{r}, " for r in results)
    caller.lines.append(f"return {results[0] if is_single else f'({listed})'}")
    return caller.make_function(arguments, tuple(map(_numba_type, avals)))


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
    scalar = numba.from_dtype(aval.dtype)
    return numba.types.Array(scalar, len(aval.shape), "A") if aval.shape else scalar


def _write_input(name: str, aval: ShapedArray) -> list[str]:
    """Lines that check an argument and make it contiguous."""
    if not aval.shape:
        return [f"{name} = np.array({name})"]
    text = f"this function was compiled for arguments of shape {aval.shape}"
    check = f"if {name}.shape != {aval.shape}: raise ValueError({text!r})"
    return [check, f"{name} = np.ascontiguousarray({name})"]
