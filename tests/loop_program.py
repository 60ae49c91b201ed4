"""The loop program of a function, which is neither compiled nor run."""

from collections.abc import Callable, Sequence

import jitcore
from jitcore.backends.cpu.compiler import CpuTarget
from jitcore.loopir.program import Program
from jitcore.loopir.text import format_program
from jitcore.schedule import lower_program


def schedule(function: Callable, args: Sequence, donated: Sequence[bool] = ()) -> Program:
    """args: arrays, or what has a shape and a dtype."""
    return lower_program(jitcore.jit(function).trace(*args)._program.compiled_jaxpr, CpuTarget, donated)


def show_loop_program(function: Callable, *args) -> str:
    return format_program(schedule(function, args))
