"""From loop program to machine code: rendering, and the caches of compiled code by canonical text.

In: a `loopir.Program` and options. Out: `NativeProgram`, which programs of other sizes may share.
"""

from __future__ import annotations

import hashlib

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import libraries
from jitcore.backends.cpu.render.calling_convention import ProgramLayout
from jitcore.backends.llvm.options import FORMULA_FEATURES, RenderOptions
from jitcore.config import RecentlyUsed
from jitcore.dispatch.backend import CompileOptions
from jitcore.loopir.program import Native, Program
from jitcore.loopir.text import format_program


class NativeProgram:
    """Machine code of the native steps of one canonical program.

    Attributes:
        library: that holds it; None for a program without native steps.
        addresses: an entry point per native step.
        key: under which it is kept on disk, if it is; None without a library.
        plans: how many call plans for it this process has read or written.
    """

    __slots__ = ("library", "addresses", "key", "plans")

    def __init__(self, library: libraries.Library | None = None, key: bytes | None = None):
        self.library, self.key, self.plans = library, key, 0
        names = [] if library is None else [_name_entry(number) for number in range(len(library.symbols))]
        self.addresses = [library.address(name) for name in names]


#: Machine code of programs, by the key of their text.
code_cache = RecentlyUsed()

_NAME = "program"


def _name_entry(number: int) -> str:
    return f"entry{number}"


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
                                   tuple(name for name in FORMULA_FEATURES if name in host.cpu_features()))
    facts = f"{(*render_options, options.opt_level)}{text}"
    key = libraries.make_key(_NAME, facts, opt_level=options.opt_level)
    key = key or hashlib.sha256(facts.encode()).digest()  # where nothing is kept on disk, any digest will do
    found = code_cache.find(key)
    if found is not None:
        return found, layout, False

    def render():
        from jitcore.backends.cpu.render.entry import render_steps  # loads llvmlite

        entries = {_name_entry(number): step for number, step in enumerate(steps)}
        return render_steps(entries, layout, render_options)

    library, is_new = libraries.find_or_compile(_NAME, facts, render, opt_level=options.opt_level)
    compiled = NativeProgram(library, key)
    code_cache.add(key, compiled)
    return compiled, layout, is_new


def find_program(key: bytes, options: CompileOptions) -> NativeProgram | None:
    """The machine code of an earlier `compile_program`, from memory or disk, or None."""
    found = code_cache.find(key)
    if found is None:
        library = libraries.find_stored(_NAME, key, opt_level=options.opt_level)
        if library is None:
            return None
        found = NativeProgram(library, key)
        code_cache.add(key, found)
    return found
