"""From loop program to machine code: rendering, and the caches of compiled code by canonical text.

In: a `loopir.Program` and options. Out: `NativeProgram`, which programs of other sizes may share.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from jitcore.backends.cpu import cpuinfo, native
from jitcore.backends.cpu.layout import ProgramLayout, RenderOptions
from jitcore.concurrency import Lock
from jitcore.dispatch.backend import CompileOptions
from jitcore.dispatch.executables import drop_oldest
from jitcore.loopir.program import Native, Program, format_program


class NativeProgram:
    """Machine code of the native steps of one canonical program. `addresses`: an entry point per native
    step."""

    __slots__ = ("library", "addresses")

    def __init__(self, library: native.Library | None, addresses: list[int]):
        self.library, self.addresses = library, addresses


class _CodeCache:
    """Compiled programs by canonical text: bounded, least recently used first out, thread-safe."""

    def __init__(self):
        self._lock = Lock()
        self._programs: OrderedDict[bytes, NativeProgram] = OrderedDict()

    def find(self, key: bytes) -> NativeProgram | None:
        with self._lock:
            found = self._programs.get(key)
            if found is not None:
                self._programs.move_to_end(key)
            return found

    def add(self, key: bytes, program: NativeProgram) -> None:
        with self._lock:
            self._programs[key] = program
            drop_oldest(self._programs)

    def clear(self) -> None:
        with self._lock:
            self._programs.clear()


code_cache = _CodeCache()


def compile_program(program: Program, options: CompileOptions) -> tuple[NativeProgram, ProgramLayout, bool]:
    """(machine code, where its buffers and sizes are, whether anything was compiled now)."""
    layout = ProgramLayout(program)
    text = format_program(program, layout.sizes.name)
    layout.sizes.close()
    render_options = RenderOptions(
        cpuinfo.native_vector_bytes(),
        options.fastmath,
        1 if options.parallel is False else options.num_threads,
    )
    facts = f"{(*render_options, options.opt_level)}{text}"
    key = hashlib.blake2b(facts.encode(), digest_size=20).digest()
    found = code_cache.find(key)
    if found is not None:
        return found, layout, False
    steps = [step for step in program.steps if isinstance(step, Native)]
    if not steps:
        return NativeProgram(None, []), layout, False
    names = [f"entry{number}" for number in range(len(steps))]

    def render():
        from jitcore.backends.cpu.entry import render_steps  # loads llvmlite

        return render_steps(dict(zip(names, steps)), layout, render_options)

    library, is_new = native.find_or_compile("program", facts, render, opt_level=options.opt_level)
    compiled = NativeProgram(library, [library.address(name) for name in names])
    code_cache.add(key, compiled)
    return compiled, layout, is_new
