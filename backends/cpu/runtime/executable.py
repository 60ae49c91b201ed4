"""Executables: what a call of a compiled program does with ndarrays, and its plan on disk.

In: a jaxpr; by way of a schedule and machine code, or of a call plan and machine code from disk. Out: a
function of the input ndarrays for one signature. Outputs and the arena are allocated outside of kernels (see
`memory`).

A `CallPlan` is what a call needs to know of a native program, kept on disk beside its code. With one, a
process neither schedules a program nor writes its text: it looks up the code, and calls.
"""

from __future__ import annotations

import functools
import math
import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

import jitcore
from jitcore import dtypes
from jitcore.backends.cpu.compiler import NativeProgram, compile_program, find_program
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.mapping.rules import decide_ways
from jitcore.backends.cpu.native import images
from jitcore.backends.cpu.native.images import foresee
from jitcore.backends.cpu.render.calling_convention import ProgramLayout
from jitcore.backends.cpu.runtime.host_calls import calls_python, write_steps
from jitcore.backends.cpu.runtime.launch import open_launchers
from jitcore.backends.cpu.runtime.memory import choose_allocator, foresee_allocator, write_arena
from jitcore.backends.cpu.target import CpuTarget
from jitcore.core.aval import ShapedArray
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.dispatch import disk_cache
from jitcore.dispatch.backend import CompileOptions, NativeCall
from jitcore.dispatch.tracing import has_symbolic_shapes, specialize_jaxpr
from jitcore.loopir.index import Address
from jitcore.loopir.program import Call, Program, While
from jitcore.loopir.text import format_program
from jitcore.loopir.traversal import flatten, list_outermost
from jitcore.passes.canonical import LOCAL, program_key
from jitcore.schedule import lower_program
from jitcore.schedule.buffers import plan_arena

__all__ = ["CallPlan", "Output", "find_plan", "key_of_plan", "list_parts", "plan_call", "store_plan"]


# Bytes of arrays above which a call lets other Python threads run meanwhile; below, it would cost more than
# it takes.
RELEASE_BYTES = 65536

#: Where a program is made from a jaxpr: with other sources, it may be another program.
_SOURCES = ("lax", "loopir", "schedule")


class Output(NamedTuple):
    """An output: the number of the input whose memory it takes over, or -1 for an array of its own."""

    source: int
    shape: tuple[int, ...]
    dtype: np.dtype


class CallPlan(NamedTuple):
    """What a call allocates and passes on, for inputs of certain shapes.

    dims: what the entry point gets beside arrays. arena_bytes: of temporaries. releases: whether a call lets
    other Python threads run meanwhile. parts: symbols that code finds in tables, opened before a call.
    owners: what addresses among dims belong to; a plan that has any is of this process alone.
    """

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


def plan_call(program: Program, layout: ProgramLayout) -> tuple[CallPlan, list[int]]:
    """(the plan of a program, where in the arena its temporaries lie)."""
    offsets, arena_bytes = [], 0
    if layout.arena:
        offsets, arena_bytes = plan_arena(program, layout.arena, CpuTarget.tuning.cache_line)
    numbers = {buffer: number for number, buffer in enumerate(program.inputs)}
    numbers |= {output: numbers[source] for output, source in program.aliases.items()}
    outputs = tuple(
        Output(numbers.get(buffer, -1), tuple(map(int, buffer.shape)), buffer.dtype)
        for buffer in program.outputs
    )
    dims = (*offsets, *layout.sizes.values({}))
    total = arena_bytes + sum(buffer.nbytes for buffer in layout.given)
    releases = total > RELEASE_BYTES or _may_run_long(program)
    owners = tuple(size.owner for size in layout.sizes.slots if isinstance(size, Address))
    plan = CallPlan(len(program.inputs), outputs, dims, arena_bytes, releases, list_parts(program), owners)
    return plan, offsets


def _may_run_long(program: Program) -> bool:
    return any(isinstance(statement, (While, Call)) for statement in list_outermost(program.steps))


def list_parts(program: Program) -> tuple[str, ...]:
    """Symbols that code finds in tables."""
    calls = [call for call in flatten(program.steps) if isinstance(call, Call)]
    return tuple(sorted({symbol for call in calls for symbol in getattr(call.routine, "parts", ())}))


# -- on disk ------------------------------------------------------------------------------------------------
_KEY_BYTES, _PARTS_SIZE = 32, struct.Struct("<q")


def key_of_plan(closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> bytes | None:
    """The key of the plan of a jaxpr of known shapes; None where it cannot be kept."""
    computed = program_key(closed_jaxpr)
    if computed.startswith(LOCAL):
        return None
    fused = () if options.contract else host.list_fused_operations()  # part of the key of its code
    return host.make_key("plan", _stamp_scheduler(), computed, repr((options, fused)))


@functools.cache
def _stamp_scheduler() -> str:
    root = os.path.dirname(jitcore.__file__)
    return repr([host.stamp_sources(os.path.join(root, name)) for name in _SOURCES])


def find_plan(key: bytes) -> tuple[CallPlan, bytes | None] | None:
    """(a plan, the key of its machine code or None where it has no code), as `store_plan` got them."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(key)
    if stored is None:
        return None
    try:
        return _decode(stored)
    except (ValueError, IndexError):  # what was written is not what is read: it will be replaced
        return None


def store_plan(key: bytes, plan: CallPlan, code_key: bytes | None) -> None:
    cache = disk_cache.open_cache()
    if cache is not None and not plan.owners:
        cache.add(key, _encode(plan, code_key))


def _encode(plan: CallPlan, code_key: bytes | None) -> bytes:
    numbers = [plan.num_inputs, plan.arena_bytes, plan.releases, len(plan.dims), *plan.dims]
    for output in plan.outputs:
        numbers += [output.source, dtypes.SUPPORTED.index(output.dtype), len(output.shape), *output.shape]
    parts = " ".join(plan.parts).encode()
    head = (code_key or bytes(_KEY_BYTES)) + _PARTS_SIZE.pack(len(parts)) + parts
    return head + np.array(numbers, np.int64).tobytes()


def _decode(stored: bytes) -> tuple[CallPlan, bytes | None]:
    """Raises: ValueError or IndexError for bytes that `_encode` did not make."""
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


#: Plans that a process keeps on disk for one machine code: a script has few shapes, a server may have any.
_MAX_PLANS = 8


class CpuExecutable:
    """A compiled jaxpr. `compiles` counts the modules that LLVM translated for it."""

    def __init__(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions):
        self.closed_jaxpr, self.options = closed_jaxpr, options
        self.compiles = 0
        self._fixed = None if has_symbolic_shapes(closed_jaxpr.jaxpr) else self._prepare(closed_jaxpr)
        self._latest = self._fixed

    def _prepare(self, closed: ClosedJaxpr) -> _Prepared:
        key = key_of_plan(closed, self.options)
        found = None if key is None else _load(closed, self.options, key)
        if found is None:
            found, is_new = _schedule(closed, self.options, key)
            self.compiles += is_new
        return found

    def bind(self, in_avals: Sequence[ShapedArray]) -> Callable[..., list[np.ndarray]]:
        prepared = self._fixed or self._prepare(specialize_jaxpr(self.closed_jaxpr, in_avals))
        self._latest = prepared
        return prepared.bind()

    def native_call(self, in_avals: Sequence[ShapedArray]) -> NativeCall | None:
        """How native code calls the program for inputs of these shapes; None where it calls Python."""
        prepared = self._fixed or self._prepare(specialize_jaxpr(self.closed_jaxpr, in_avals))
        return prepared.native_call()

    def texts(self, arguments: Sequence[str] = ()) -> dict[str, Callable[[], str]]:
        """Stages of the program, of the latest signature where shapes are symbolic."""
        latest = self._latest
        if latest is None:
            return {}
        found = {"loop program": lambda: format_program(latest.read_program()),
                 "numba": lambda: _write_numba(latest.read_program(), arguments)}
        library = latest.compiled.library
        if library is not None:
            found |= {"kernel": lambda: library.llvm_ir, "llvm": library.optimized_ir,
                      "assembly": library.assembly}
        return found

    def cost(self) -> dict[str, float]:
        if self._latest is None:
            return {}
        program = self._latest.read_program()
        moved = sum(buffer.nbytes for buffer in {*program.inputs, *program.outputs})
        return {"bytes accessed": float(moved)}


def _write_numba(program: Program, arguments: Sequence[str]) -> str:
    from jitcore.backends.python import write_numba

    return write_numba(program, arguments)


Run = Callable[..., list[np.ndarray]]


class _Prepared:
    """A program of known shapes that can be called.

    Args:
        bind: gives the function of its input ndarrays.
        program: unless it came from disk as a plan; then it is scheduled when somebody wants to read it.
    """

    def __init__(self, closed: ClosedJaxpr, options: CompileOptions, compiled: NativeProgram,
                 bind: Callable[[], Run], program: Program | None = None):
        self._closed, self._options, self._program = closed, options, program
        self.compiled, self.bind = compiled, bind

    def native_call(self) -> NativeCall | None:
        """None where Python is called between or within the native steps, or nothing is left to compute."""
        if not isinstance(self.bind, partial) or self.bind.func is not _write_call:
            return None
        plan: CallPlan = self.bind.args[0]
        if not self.compiled.addresses or any(output.source >= 0 for output in plan.outputs):
            return None
        outputs = tuple((output.shape, output.dtype) for output in plan.outputs)
        dims = np.array(plan.dims, dtype=np.int64)
        owner = self.compiled, plan.owners
        return NativeCall(self.compiled.addresses[0], dims, outputs, plan.arena_bytes, owner)

    def read_program(self) -> Program:
        if self._program is None:
            self._program = _lower(self._closed, self._options)
        return self._program


def _lower(closed: ClosedJaxpr, options: CompileOptions) -> Program:
    return decide_ways(lower_program(closed, CpuTarget, options.donated))


def _load(closed: ClosedJaxpr, options: CompileOptions, key: bytes) -> _Prepared | None:
    """A program that an earlier process scheduled and compiled, or None."""
    stored = find_plan(key)
    if stored is None:
        return None
    plan, code_key = stored
    compiled = NativeProgram() if code_key is None else find_program(code_key, options)
    if compiled is None:
        return None
    compiled.plans += 1
    plan.open_parts()
    return _Prepared(closed, options, compiled, partial(_write_call, plan, compiled))


def _schedule(closed: ClosedJaxpr, options: CompileOptions, key: bytes | None) -> tuple[_Prepared, bool]:
    """(a program, whether anything was compiled for it)."""
    program = _lower(closed, options)
    _foresee(program)
    compiled, layout, is_new = compile_program(program, options)
    plan, offsets = plan_call(program, layout)
    plan.open_parts()
    if calls_python(program, layout):
        bind = partial(_write_steps, program, compiled, layout, plan, offsets)
    else:
        bind = partial(_write_call, plan, compiled)
        if key is not None and compiled.plans < _MAX_PLANS:
            compiled.plans += 1
            store_plan(key, plan, compiled.key)
    return _Prepared(closed, options, compiled, bind, program), is_new


def _foresee(program: Program) -> None:
    """Begins with what is compiled beside the program, if it is not there yet."""
    for symbol in list_parts(program):
        foresee(symbol)
    foresee_allocator(max((buffer.nbytes for buffer in program.outputs), default=0))


def _write_steps(program, compiled, layout, plan: CallPlan, offsets) -> Run:
    """The function for a program that calls Python between or within its native steps."""
    launchers = open_launchers(len(layout.given) + 2)
    launch = launchers.releasing if plan.releases else launchers.holding
    if layout.host_calls and launchers.kind == "ctypes":
        launch = launchers.holding  # the only one of its kind that sees exceptions of callbacks
    dims = np.array(plan.dims, dtype=np.int64)
    return write_steps(program, compiled, layout, dims, offsets, plan.arena_bytes, launch)


def _write_call(plan: CallPlan, compiled: NativeProgram) -> Run:
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
