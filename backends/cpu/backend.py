"""The CPU backend and its executables: what a call of a compiled program does with ndarrays.

In: a jaxpr without constants; by way of a schedule and machine code, or of a call plan and machine code from
disk. Out: an `Executable`: a function of the input ndarrays for one signature. Outputs and the arena are
allocated outside of kernels (see `runtime.memory`). With a `CallPlan` on disk a process neither schedules a
program nor writes its text: it looks up the code, and calls.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitcore
from jitcore import array
from jitcore.backends.cpu.compiler import CpuTarget, ProgramLayout, choose_target, compile_program
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.mapping.rules import RULES
from jitcore.backends.cpu.native.images import foresee
from jitcore.backends.cpu.native.libraries import NativeProgram, code_cache, find_program
from jitcore.backends.cpu.runtime import launch, threads
from jitcore.backends.cpu.runtime.host_calls import write_steps
from jitcore.backends.cpu.runtime.launch import CallPlan, Output, Run
from jitcore.backends.cpu.runtime.memory import choose_allocator, drop_blocks, foresee_allocator
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.device import Device
from jitcore.dispatch import disk_cache
from jitcore.dispatch.backend import CompileOptions, Executable, NativeCall
from jitcore.dispatch.call_facts import Scalars
from jitcore.dispatch.tracing import has_symbolic_shapes, specialize_jaxpr
from jitcore.events import publishing
from jitcore.events.publishing import span
from jitcore.loopir.expr import Address
from jitcore.loopir.program import Call, Native, Program, Statement, While
from jitcore.loopir.text import show_program
from jitcore.loopir.traversal import flatten, list_buffers, list_outermost
from jitcore.loopir.ways import apply_rules
from jitcore.passes.canonical import LOCAL, program_key
from jitcore.process.lazy import LazyModule
from jitcore.schedule import lower_program
from jitcore.schedule.buffers import plan_arena
from jitcore.schedule.cost import count_flops

roofline = LazyModule("jitcore.backends.cpu.machine.roofline")
timing = LazyModule("jitcore.backends.cpu.timing")

#: Where a program is made from a jaxpr: with other sources, it may be another program.
_SOURCES = ("lax", "loopir", "schedule", "passes", "backends/llvm", "backends/cpu/render")


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
    releases = total > host.MACHINE.tuning.runtime.release_bytes or _may_run_long(program)
    owners = tuple((len(offsets) + place, size.owner) for place, size in enumerate(layout.sizes.slots)
                   if isinstance(size, Address))
    plan = CallPlan(len(program.inputs), outputs, dims, arena_bytes, releases, list_parts(program), owners)
    return plan, offsets


def _may_run_long(program: Program) -> bool:
    return any(isinstance(statement, (While, Call)) for statement in list_outermost(program.steps))


def list_parts(program: Program) -> tuple[str, ...]:
    """Symbols that code finds in tables."""
    calls = [call for call in flatten(program.steps) if isinstance(call, Call)]
    return tuple(sorted({symbol for call in calls for symbol in getattr(call.routine, "parts", ())}))


# -- on disk ------------------------------------------------------------------------------------------------
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
    return repr([disk_cache.stamp_sources(os.path.join(root, name)) for name in _SOURCES])


#: Functions of bound programs that are alive, and what they are made of: for who times their kernels.
_bound: weakref.WeakKeyDictionary[Run, _Prepared] = weakref.WeakKeyDictionary()
publishing.add_timer(lambda is_wanted: timing.switch(_bound, is_wanted))


def _note(run: Run, prepared: _Prepared) -> Run:
    _bound[run] = prepared
    if publishing.is_timing:
        timing.switch({run: prepared}, True)
    return run


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
        return _note(prepared.bind(), prepared)

    def bind_into(self, in_avals: Sequence[ShapedArray], outputs: Sequence[int],
                  scalars: Scalars | None = None) -> Callable | None:
        prepared = self._fixed or self._prepare(specialize_jaxpr(self.closed_jaxpr, in_avals))
        self._latest = prepared
        run = prepared.bind_into(outputs, () if scalars is None else scalars.gives)
        return None if run is None else _note(run, prepared)

    def native_call(self, in_avals: Sequence[ShapedArray]) -> NativeCall | None:
        """How native code calls the program for inputs of these shapes; None where it calls Python."""
        prepared = self._fixed or self._prepare(specialize_jaxpr(self.closed_jaxpr, in_avals))
        return prepared.native_call()

    def store(self) -> tuple[str, bytes] | None:
        """What a process without a compiler opens the program with: a module with `open_program`, and bytes.
        None for shapes that are not known, and for what belongs to this process."""
        bind = None if self._fixed is None else self._fixed.bind
        if not isinstance(bind, partial) or bind.func is not launch.write_call:
            return None
        plan, compiled = bind.args
        if compiled.addresses and compiled.key is None:
            return None
        stored = launch.store_program(plan, compiled.key)
        return None if stored is None else (launch.__name__, stored)

    def texts(self, arguments: Sequence[str] = ()) -> dict[str, Callable[[], str]]:
        """Stages of the program, of the latest signature where shapes are symbolic."""
        latest = self._latest
        if latest is None:
            return {}
        found = {"loop program": lambda: show_program(latest.read_program()),
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
        return {"flops": float(count_flops(program)), "bytes accessed": float(count_bytes(program))}

    def find_least_seconds(self) -> float:
        """The time that the measured roofline of this machine allows; it is measured now, if it never was."""
        program = self._latest.read_program()
        return roofline.measure().allow(program, count_flops(program), count_bytes(program))


def count_bytes(program: Program) -> int:
    """Of arguments and results: each moves once at least."""
    return sum(buffer.nbytes for buffer in {*program.inputs, *program.outputs})


def _write_numba(program: Program, arguments: Sequence[str]) -> str:
    from jitcore.backends.python import write_numba

    return write_numba(program, arguments)


class _Prepared:
    """A program of known shapes that can be called.

    Args:
        bind: gives the function of its input ndarrays.
        program: unless it came from disk as a plan; then it is scheduled when somebody wants to read it."""

    def __init__(self, closed: ClosedJaxpr, options: CompileOptions, compiled: NativeProgram,
                 bind: Callable[[], Run], program: Program | None = None):
        self._closed, self._options, self._program = closed, options, program
        self.compiled, self.bind = compiled, bind
        info = closed.jaxpr.debug_info
        self.origin = ("", "") if info is None else (info.fun_name, info.location)

    def bind_into(self, outputs: Sequence[int], gives: Sequence[type | None]) -> Run | None:
        if not isinstance(self.bind, partial) or self.bind.func is not launch.write_call:
            return None
        plan: CallPlan = self.bind.args[0]
        if gives and not launch.takes_scalars(plan):
            return None
        return None if any(plan.outputs[k].source >= 0 for k in outputs) else self.bind(outputs, gives)

    def native_call(self) -> NativeCall | None:
        """None where Python is called between or within the native steps, or nothing is left to compute."""
        if not isinstance(self.bind, partial) or self.bind.func is not launch.write_call:
            return None
        plan: CallPlan = self.bind.args[0]
        if not self.compiled.addresses or any(output.source >= 0 for output in plan.outputs):
            return None
        outputs = tuple((output.shape, output.dtype) for output in plan.outputs)
        dims = np.array(plan.dims, dtype=np.int64)
        owner = self.compiled, plan.owners
        return NativeCall(self.compiled.addresses[0], dims, outputs, plan.arena_bytes, owner)

    def split(self) -> tuple[list[tuple[int, Statement]], Program, CallPlan, Any] | None:
        """(entry point of each statement of the program, the program, how they are called, what keeps them
        loaded), where the program is one native step; else None."""
        if not isinstance(self.bind, partial) or self.bind.func is not launch.write_call:
            return None
        program = _lower(self._closed, self._options)
        statements = list_outermost(program.steps)
        if len(statements) < 2:
            return list(zip(self.compiled.addresses, statements)), program, self.bind.args[0], self.compiled
        program.steps = [Native([statement]) for statement in statements]
        homes = Counter(buffer for statement in statements for buffer in list_buffers([statement]))
        for buffer, count in homes.items():
            if buffer.kind == "scalar" and count > 1:
                buffer.kind = "temp"
        compiled, layout, _ = compile_program(program, self._options)
        plan, _ = plan_call(program, layout)
        plan.open_parts()
        return list(zip(compiled.addresses, statements)), program, plan, compiled

    def read_program(self) -> Program:
        if self._program is None:
            self._program = _lower(self._closed, self._options)
        return self._program


def _lower(closed: ClosedJaxpr, options: CompileOptions) -> Program:
    target = choose_target(options.thread_work)
    with span("schedule"):
        return apply_rules(lower_program(closed, target, options.donated), RULES, host.MACHINE)


def _load(closed: ClosedJaxpr, options: CompileOptions, key: bytes) -> _Prepared | None:
    """A program that an earlier process scheduled and compiled, or None."""
    stored = launch.find_plan(key)
    if stored is None:
        return None
    plan, code_key = stored
    compiled = NativeProgram() if code_key is None else find_program(code_key, options.opt_level)
    if compiled is None:
        return None
    compiled.plans += 1
    plan.open_parts()
    return _Prepared(closed, options, compiled, partial(launch.write_call, plan, compiled))


def _schedule(closed: ClosedJaxpr, options: CompileOptions, key: bytes | None) -> tuple[_Prepared, bool]:
    """(a program, whether anything was compiled for it)."""
    program = _lower(closed, options)
    _foresee(program)
    compiled, layout, is_new = compile_program(program, options)
    plan, offsets = plan_call(program, layout)
    plan.open_parts()
    if layout.calls_python:
        bind = partial(_write_steps, program, compiled, layout, plan, offsets)
    else:
        bind = partial(launch.write_call, plan, compiled)
        if key is not None and compiled.plans < host.MACHINE.tuning.runtime.max_plans:
            compiled.plans += 1
            launch.store_plan(key, plan, compiled.key)
    return _Prepared(closed, options, compiled, bind, program), is_new


def _foresee(program: Program) -> None:
    """Begins with what is compiled beside the program, if it is not there yet."""
    for symbol in list_parts(program):
        foresee(symbol)
    foresee_allocator(max((buffer.nbytes for buffer in program.outputs), default=0))


def _write_steps(program, compiled, layout, plan: CallPlan, offsets) -> Run:
    """The function for a program that calls Python between or within its native steps."""
    launchers = launch.open_launchers(len(layout.given) + 2)
    sees_exceptions = launchers.kind != "ctypes"  # of callbacks; the only one of this kind does that holds
    releases = plan.releases and (sees_exceptions or not layout.host_calls)
    dims = np.array(plan.dims, dtype=np.int64)
    return write_steps(program, compiled, layout, dims, offsets, plan.arena_bytes,
                       launchers.releasing if releases else launchers.holding)


class CpuBackend:
    """Compiles for the processor of this machine."""

    name = "cpu"
    platform = "cpu"

    def __init__(self):
        array.choose_allocator = choose_allocator

    def devices(self) -> list[Device]:
        return [Device("cpu", device_kind="cpu", backend="cpu")]

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> Executable:
        """The native program of a jaxpr; kernels that differ in sizes only are shared.

        Raises: NativeCodeError where LLVM refuses what was rendered (a defect of jitcore)."""
        if options.codegen != "llvm":
            from jitcore.backends.python import SourceExecutable

            return SourceExecutable(closed_jaxpr, options, CpuTarget)
        return CpuExecutable(closed_jaxpr, options)

    def describe(self) -> dict[str, str]:
        """Facts about this machine for people: processor, vectors, caches, threads. Starts the threads."""
        pool, caches = threads.describe(), host.cache_sizes()
        tbb = f", TBB interface {pool['tbb']}" if pool["tbb"] else ""
        return {
            "processor": host.cpu_name(),
            "vectors": f"{8 * host.native_vector_bytes()} bits",
            "features": " ".join(sorted(host.cpu_features())),
            "caches": ", ".join(f"{level} {size >> 10} KiB" for level, size in caches._asdict().items()),
            "threads": f"{pool['threads']} on {pool['cores']} cores, layer {pool['layer']}{tbb}",
        }

    def measure_roofline(self) -> dict[str, str | int | float]:
        """How fast memory and processor are, measured once: see `machine.roofline`."""
        return roofline.measure()._asdict()

    def make_check(self, arrays, mask, codes, state) -> Callable[..., int] | None:
        return launch.make_check(arrays, mask, codes, state)

    def clear(self) -> None:
        code_cache.clear()
        drop_blocks()
