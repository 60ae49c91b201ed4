"""From loop program to machine code: rendering, and the caches of compiled code by canonical text.

In: a `loopir.Program` and options. Out: `NativeProgram`, which programs of other sizes may share, and where
its entry points find what they work on. A program whose code comes from disk loads no compiler.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import libraries
from jitcore.backends.cpu.native.libraries import NAME, NativeProgram, code_cache, name_entry
from jitcore.backends.cpu.routines import find_routine
from jitcore.backends.llvm.options import FORMULA_FEATURES, RenderOptions, SizeTable, has_code
from jitcore.core.jaxpr import Equation
from jitcore.core.source import summarize_source
from jitcore.dispatch.backend import CompileOptions
from jitcore.loopir.program import Kernel, LibraryCall, Native, Program, Statement
from jitcore.loopir.text import format_program
from jitcore.loopir.traversal import flatten, list_writes
from jitcore.schedule.tuning import Tuning


class ProgramLayout:
    """Where buffers and sizes are found: slots of the pointer table and of the array of sizes.

    dims = [offset of each temporary in the arena..., sizes...]; the entry point gets inputs, outputs, what
    library calls between native steps make, the arena if there is one, and the cell of the Python function
    that `host_calls` (number of each library call within a native step) go to, if there are any."""

    def __init__(self, program: Program):
        aliases = program.aliases
        steps = [step for step in program.steps if isinstance(step, LibraryCall)]
        made = {buffer for step in steps for buffer in step.outputs}
        self.made = [buffer for buffer in program.temps if buffer in made]
        outputs = [buffer for buffer in program.outputs if buffer not in aliases]
        self.given = [*program.inputs, *outputs, *self.made]
        self.arena = [buffer for buffer in program.temps if buffer.kind == "temp" and buffer not in made]
        calls = [s for s in flatten(program.steps) if isinstance(s, LibraryCall) and s not in steps]
        self.host_calls = {call: number for number, call in enumerate(calls)}
        self.stack = [buffer for buffer in program.temps if buffer.kind == "scalar"]
        self.table = {buffer: k for k, buffer in enumerate([*self.given, *self.arena, *self.stack])}
        self.table |= {output: self.table[source] for output, source in aliases.items()}
        self.aliases = aliases
        self.kernels: dict[str, Kernel] = {}  # by the name of their function
        self.sizes = SizeTable()
        #: Whether Python is called between or within native steps.
        self.calls_python = bool(self.host_calls) or bool(steps)


def compile_program(program: Program, options: CompileOptions) -> tuple[NativeProgram, ProgramLayout, bool]:
    """(machine code, where its buffers and sizes are, whether anything was compiled now)."""
    layout = ProgramLayout(program)
    text = format_program(program, layout.sizes.name)
    layout.sizes.close()
    steps = [step for step in program.steps if isinstance(step, Native)]
    if not steps:
        return NativeProgram(), layout, False
    render_options = RenderOptions(host.native_vector_bytes(), options.fastmath,
                                   1 if options.parallel is False else options.num_threads, options.contract,
                                   () if options.contract else host.list_fused_operations(),
                                   tuple(name for name in FORMULA_FEATURES if name in host.cpu_features()),
                                   tuning=host.MACHINE.loops)
    facts = f"{(*render_options._replace(tuning=host.MACHINE.tuned), options.opt_level)}{text}"
    key = libraries.make_key(NAME, facts, opt_level=options.opt_level)
    key = key or hashlib.sha256(facts.encode()).digest()  # where nothing is kept on disk, any digest will do
    found = code_cache.find(key)
    if found is not None:
        return found, layout, False

    def render():
        from jitcore.backends.cpu.render.entry import render_steps  # loads llvmlite

        entries = {name_entry(number): step for number, step in enumerate(steps)}
        return render_steps(entries, layout, render_options)

    def describe(symbol: str) -> str:
        kernel = layout.kernels.get(symbol)
        return find_line(program, kernel) if kernel is not None else ""

    library, is_new = libraries.find_or_compile(NAME, facts, render, opt_level=options.opt_level,
                                                describe=describe)
    compiled = NativeProgram(library, key)
    code_cache.add(key, compiled)
    return compiled, layout, is_new


def find_line(program: Program, statement: Statement) -> str:
    """The user's line whose value a statement of a program stores; "" where it is not known."""
    written = list_writes([statement])
    places = [eqn.source_info for buffer, eqn in program.origins.items() if buffer in written]
    return summarize_source(next(filter(None, reversed(places)), None))


@functools.cache
def _list_operations() -> dict[str, frozenset[str]]:
    """`scalar_ops.list_operations`, whose module is code for a compiler that need not be loaded."""
    lines = host.recall("operations", _describe_operations).splitlines()
    return {kind: frozenset(names) for kind, *names in map(str.split, lines)}


def _describe_operations() -> str:
    from jitcore.backends.llvm import scalar_ops

    return "\n".join(" ".join((kind, *sorted(names))) for kind, names in scalar_ops.list_operations().items())


class CpuTarget:
    """The `schedule.target.Target` of this backend."""

    tuning = Tuning()
    find_routine = staticmethod(find_routine)

    @staticmethod
    def can_render(eqn: Equation) -> bool:
        return has_code(eqn, _list_operations)


@functools.cache
def choose_target(thread_work: int | None) -> type[CpuTarget]:
    """The target for programs whose threads get so much work at least."""
    if thread_work is None:
        return CpuTarget
    tuning = dataclasses.replace(CpuTarget.tuning, grain_work=thread_work)
    return type("CpuTarget", (CpuTarget,), {"tuning": tuning})
