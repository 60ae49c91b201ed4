"""A program as a device function of `numba.cuda`: what one thread of somebody's kernel computes.

In: a loop program. Out: text, and the function that it defines. Numbers come and are returned by value;
results that are arrays are written into arrays that follow the arguments; what is needed in between is the
thread's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jitcore import dtypes
from jitcore.backends.cuda.numba_code.names import DeviceText
from jitcore.backends.cuda.numba_code.source import join_file
from jitcore.backends.python.operations import type_name
from jitcore.backends.python.writer import Writer, describe_memory
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Program


def make_device_function(program: Program, name: str, arguments: Sequence[str],
                         constants: Mapping[int, np.ndarray]) -> Callable:
    """arguments: names for the inputs; constants: values of those that are no arguments, by their number.

    Raises: NotImplementedError naming what a thread of a GPU does not have."""
    values = {program.inputs[number]: value for number, value in constants.items()}
    writer = _DeviceWriter(program, name, arguments, values)
    text = join_file([f"@cuda.jit(device=True)\n{writer.write_device()}"], writer)
    space = dict(writer.captured)
    exec(compile(text, f"<{name} for numba.cuda>", "exec"), space)
    made = space[name]
    made.text = text
    return made


class _DeviceWriter(DeviceText, Writer):
    """captured: by its name in the text, the value of an input that is no argument."""

    def __init__(self, program: Program, name: str, arguments: Sequence[str],
                 values: Mapping[Buffer, np.ndarray]):
        super().__init__(program, name, arguments)
        self._values, self.captured = values, {self.names.take("C"): value for value in values.values()}
        for buffer in (*program.inputs, *program.outputs):
            if dtypes.is_half(buffer.dtype):
                raise NotImplementedError(f"{name} has arguments or results of {buffer.dtype}, which Numba's "
                                          "kernels do not have")

    def write_device(self) -> str:
        self.block(self.body)
        body, self.lines = self.lines, []
        names = {**self.variables, **self.arrays}
        given = [names[buffer] for buffer in self.program.inputs if buffer not in self._values]
        for (buffer, value), source in zip(self._values.items(), self.captured):
            made = source if buffer in self.variables else f"cuda.const.array_like({source})"
            self.line(f"{names[buffer]} = {made}")
        for buffer in self.program.inputs:
            if buffer in self.variables and buffer not in self._values:
                self.line(f"{names[buffer]} = {type_name(buffer.dtype)}({names[buffer]})")
        for buffer in self.temps:
            if buffer in self.arrays:
                self.line(f"{names[buffer]} = cuda.local.array({describe_memory(buffer)})")
        for buffer, flat in self.flat.items():
            self.line(f"{flat} = {names[buffer]}.reshape(-1)")
        goals = [self.arrays[buffer] for buffer in self.program.outputs if buffer in self.arrays]
        results = [self.variables[buffer] for buffer in self.program.outputs if buffer in self.variables]
        end = [f"    return {', '.join(results)}"] if results else []
        return "\n".join([f"def {self.name}({', '.join([*given, *goals])}):", *self.lines, *body, *end])

    def write_library(self, name: str, function: Callable, inputs: Sequence, outputs: Sequence) -> None:
        raise NotImplementedError(f"{self.name} computes {name} by a library: a thread of a GPU cannot")
