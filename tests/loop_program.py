"""The loop program of a function, which is neither compiled nor run."""

from collections.abc import Callable

import jitcore
from jitcore.backends.cpu.target import CpuTarget
from jitcore.loopir.program import format_program
from jitcore.schedule import lower_program


def show_loop_program(function: Callable, *args) -> str:
    """args: arrays, or what has a shape and a dtype."""
    return format_program(lower_program(jitcore.jit(function).trace(*args)._program.compiled_jaxpr, CpuTarget))
