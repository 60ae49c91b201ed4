"""The run time of compiled loops: what the code of a call names, and machine code from disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jitcore.autojitted.entry import _NAMES, ABSENT, MISS
from jitcore.backends.cpu.compiler import find_program
from jitcore.backends.cpu.runtime.executable import _decode, _write_call
from jitcore.dispatch.backend import CompileOptions
from jitcore.process.generated import compile_function
from jitcore.scripts.regions import FromDisk

__all__ = ["ABSENT", "MISS", "define"]


def define(program: FromDisk, constants: list) -> Callable:
    """The function of a program."""
    names = {**_NAMES, "run": open_run(program), "plain": decline, "fail": decline}
    body = "".join(f"        {line}\n" for line in program.lines)
    outer = "".join(f"{key}, " for key in names)
    numbered = "".join(f"c{k}, " for k in range(len(constants)))
    source = f"def make({outer}{numbered}):\n    def call({program.arguments}):\n{body}\n    return call\n"
    return compile_function(source, "make", __name__, "")(*names.values(), *constants)


def decline(*arguments):
    return MISS


def open_run(program: FromDisk) -> Callable:
    plan, code_key = _decode(program.plan)
    compiled = find_program(code_key, CompileOptions(())) if code_key else None
    if compiled is None:
        raise LookupError("its machine code is not on disk")
    plan.open_parts()
    run = _write_call(plan, compiled)
    if program.consts:
        run = partial(run, *program.consts)
    kept = program.kept
    return run if kept is None else lambda *values: run(*[values[i] for i in kept])
