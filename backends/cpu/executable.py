"""Executables: what a call of a compiled program does with ndarrays.

In: machine code and the loop program it came from. Out: a function of the input ndarrays for one
signature. Outputs and the arena are allocated by NumPy, outside of kernels, which gives large arrays huge
pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jitcore.backends.cpu.arena import plan_arena, write_arena
from jitcore.backends.cpu.compiler import NativeProgram, compile_program
from jitcore.backends.cpu.host_calls import calls_python, write_steps
from jitcore.backends.cpu.launch import open_launchers
from jitcore.backends.cpu.layout import ProgramLayout
from jitcore.backends.cpu.target import CpuTarget
from jitcore.core.aval import ShapedArray
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.dispatch.abstracted import has_symbolic_shapes, specialize_jaxpr
from jitcore.dispatch.backend import CompileOptions
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Call, LibraryCall, Program, While, format_program
from jitcore.schedule import lower_program

# Bytes of arrays above which a call lets other Python threads run meanwhile; below, it would cost more than
# it takes.
RELEASE_BYTES = 65536


class CpuExecutable:
    """A compiled jaxpr. `compiles` counts the modules that LLVM translated for it."""

    def __init__(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions):
        self.closed_jaxpr, self.options = closed_jaxpr, options
        self.compiles = 0
        self._fixed = None if has_symbolic_shapes(closed_jaxpr.jaxpr) else self._prepare(closed_jaxpr)
        self._latest = self._fixed

    def _prepare(self, closed: ClosedJaxpr) -> tuple[Program, NativeProgram, ProgramLayout]:
        program = lower_program(closed, CpuTarget, self.options.donated)
        compiled, layout, is_new = compile_program(program, self.options)
        self.compiles += is_new
        return program, compiled, layout

    def bind(self, in_avals: Sequence[ShapedArray]) -> Callable[..., list[np.ndarray]]:
        prepared = self._fixed or self._prepare(specialize_jaxpr(self.closed_jaxpr, in_avals))
        self._latest = prepared
        return bind_program(*prepared)

    def texts(self) -> dict[str, str]:
        """Stages of the program, of the latest signature where shapes are symbolic."""
        if self._latest is None:
            return {}
        program, compiled, _ = self._latest
        found = {"loop program": format_program(program)}
        if compiled.library is not None:
            found |= {"kernel": compiled.library.llvm_ir, "llvm": compiled.library.optimized_ir(),
                      "assembly": compiled.library.assembly()}  # fmt: skip
        return found

    def cost(self) -> dict[str, float]:
        if self._latest is None:
            return {}
        program = self._latest[0]
        moved = sum(_nbytes(buffer) for buffer in {*program.inputs, *program.outputs})
        return {"bytes accessed": float(moved)}


def bind_program(
    program: Program, compiled: NativeProgram, layout: ProgramLayout
) -> Callable[..., list[np.ndarray]]:
    """A function of the input ndarrays that allocates outputs, runs the steps, and returns the outputs."""
    offsets, arena_bytes = plan_arena(program, layout.arena)
    dims = np.array([*offsets, *layout.sizes.values({})], dtype=np.int64)
    total = arena_bytes + sum(_nbytes(buffer) for buffer in layout.given)
    launchers = open_launchers()
    has_loop = any(not isinstance(step, LibraryCall) and _may_run_long(step.body) for step in program.steps)
    launch = launchers.releasing if total > RELEASE_BYTES or has_loop else launchers.holding
    if calls_python(program, layout):
        if layout.host_calls and launchers.kind == "ctypes":
            launch = launchers.holding  # the only one of its kind that sees exceptions of callbacks
        return write_steps(program, compiled, layout, dims, offsets, arena_bytes, launch)
    return _write_call(program, compiled, layout, dims, arena_bytes, launch)


def _write_call(program, compiled, layout, dims, arena_bytes, launch) -> Callable:
    """The function for a program of one native step, written out for its numbers of inputs and outputs."""
    inputs = [f"a{k}" for k in range(len(program.inputs))]
    name_of = {buffer: name for buffer, name in zip(program.inputs, inputs)}
    name_of |= {output: name_of[source] for output, source in program.aliases.items()}
    names = {"launch": launch, "empty": np.empty, "dims": dims, "keep": (compiled, layout.sizes)}
    lines, given = [], list(inputs)
    for k, buffer in enumerate(program.outputs):
        if buffer not in name_of:
            name_of[buffer] = f"o{k}"
            names[f"shape{k}"], names[f"dtype{k}"] = tuple(map(int, buffer.shape)), buffer.dtype
            lines.append(f"    o{k} = empty(shape{k}, dtype{k})")
            given.append(f"o{k}")
    take, give = write_arena(arena_bytes, names) if arena_bytes else ([], [])
    lines += [f"    {line}" for line in take]
    given += ["arena"] * bool(arena_bytes)
    if compiled.addresses:
        lines.append(f"    launch({compiled.addresses[0]}, {dims.ctypes.data}, {', '.join(given)})")
    lines += [f"    {line}" for line in give]
    lines.append(f"    return [{', '.join(name_of[buffer] for buffer in program.outputs)}]")
    source = f"def run({', '.join(inputs)}):\n" + "\n".join(lines)
    names["__name__"] = __name__
    exec(compile(source, "<jitcore call>", "exec"), names)
    return names["run"]


def _may_run_long(body: list) -> bool:
    return any(isinstance(statement, (While, Call)) for statement in body)


def _nbytes(buffer: Buffer) -> int:
    count = buffer.dtype.itemsize
    for extent in buffer.shape:
        count *= int(extent)
    return count
