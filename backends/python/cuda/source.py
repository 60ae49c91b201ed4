"""Programs for `numba.cuda`: as files of kernels with a function of the host that launches them, and as a
device function, which one thread of somebody's kernel calls.

In: a loop program. Out: `File`, text that a person reads, copies out and runs, on a GPU or in Numba's
simulator; or the function that a text defines. Kernels are `kernels`' work; the statements around them are
those of `backends.python`, on the host.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.gpu.mapping import list_parts, map_kernel
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.python.cuda.functions import DEVICE_HELPERS, DeviceText
from jitcore.backends.python.cuda.kernels import Function, KernelWriter, has_name
from jitcore.backends.python.operations import type_name
from jitcore.backends.python.statements import write_range
from jitcore.backends.python.writer import Writer, describe_memory, find_counted, join_file, write_results
from jitcore.loopir.expr import Buffer, Expr, number_of
from jitcore.loopir.program import Kernel, Program, Store, Switch, While
from jitcore.loopir.traversal import flatten, list_buffers

_IMPORTS = {rf"{name}\.": f"import {name}" for name in ("cmath", "math")} | {
    "": "import numpy as np", "cuda": "from numba import cuda"}


class File(NamedTuple):
    """text: with a function `run` of the program's inputs that returns its outputs, arrays of the device, in
    a tuple unless it is one. library: by name, functions of ndarrays that the text calls and leaves out."""

    text: str
    library: dict[str, Callable]


def write_file(program: Program, arguments: Sequence[str] = ()) -> File:
    """arguments: names for the inputs, as far as they are identifiers.

    Raises: NotImplementedError naming a function that kernels of Numba do not have."""
    writer = _HostWriter(program, "run", arguments)
    text = writer.write_text()
    kernels = [f"@cuda.jit\n{function.text}" for function in writer.functions]
    return File(_join_file(writer, [*kernels, text]), writer.library)


def _join_file(writer: Writer, functions: Sequence[str]) -> str:
    device = [f"@cuda.jit(device=True)\n{helper.strip()}" for helper in writer.helpers.values()]
    library = [f"{name}(inputs...)" for name in writer.library]
    return join_file(_IMPORTS, library, writer.list_constants(), [*device, *functions])


class _HostWriter(Writer):
    """What runs on the host: memory, launches, loops and choices between them.

    Attributes:
        starts: numbers that loops count from, by counter: these are variables of the host.
        users: the statements of kernels that touch a buffer, by their ids."""

    HELPERS = DEVICE_HELPERS
    tuning = Tuning()

    def __init__(self, program: Program, name: str, arguments: Sequence[str]):
        super().__init__(program, name, arguments)
        self.functions: list[Function] = []
        self.users: dict[Buffer, set[int]] = {}
        statements = flatten(self.body)
        for kernel in statements:
            for s in kernel.body if isinstance(kernel, Kernel) else ():
                for buffer in list_buffers([s]):
                    self.users.setdefault(buffer, set()).add(id(s))
        self.told = {s.predicate for s in statements if isinstance(s, While)}
        self.told |= {s.selector for s in statements if isinstance(s, Switch)}

    def is_variable(self, buffer: Buffer) -> bool:
        """Inputs that are numbers, and counters of the host's loops."""
        is_passed = buffer in self.program.inputs and not dtypes.is_half(buffer.dtype)
        return super().is_variable(buffer) and (is_passed or buffer in self.starts)

    @functools.cached_property
    def starts(self) -> dict[Buffer, int]:
        found = {}
        for s in flatten(self.body):
            counted = find_counted(s) if isinstance(s, While) else None
            if counted is None or not super().is_variable(counted[0]) or not self.is_private(counted[0], s):
                continue
            stores = [store for other in self.list_outside(s) for store in other.stores
                      if store.buffer is counted[0]]
            if len(stores) == 1 and number_of(stores[0].value) is not None:
                found[counted[0]] = int(number_of(stores[0].value))
        return found

    # -- the function ----------------------------------------------------------------------------------------
    def receive(self, buffer: Buffer, name: str) -> str:
        return f"{type_name(buffer.dtype) if buffer in self.variables else 'cuda.to_device'}({name})"

    def make_memory(self, buffer: Buffer, used: str) -> str:
        is_used = buffer in self.program.outputs or has_name(used, self.arrays[buffer])
        return f"cuda.device_array({describe_memory(buffer)})" if is_used else ""

    # -- kernels ---------------------------------------------------------------------------------------------
    def block(self, body: Sequence) -> None:
        """What one thread does, kernel after kernel, is one function."""
        tasks = [task for s in body for task in (self._plan(s) if isinstance(s, Kernel) else [s])]
        for is_alone, group in groupby(tasks, lambda task: isinstance(task, _Task) and task.write is None):
            if is_alone:
                bodies = [task.body for task in group]
                write = functools.partial(KernelWriter.write_serial, bodies=bodies)
                self._launch(_Task([s for part in bodies for s in part], write))
                continue
            for task in group:
                if isinstance(task, _Task):
                    self._launch(task)
                else:
                    super().block([task])

    def _plan(self, kernel: Kernel) -> Iterator[_Task]:
        """The functions that a kernel becomes."""
        body = [s for s in kernel.body if not (isinstance(s, Store) and s.buffer in self.starts)]
        if body:
            for guard, part in list_parts(Kernel(body, kernel.vector, kernel.parallel)):
                mapping = map_kernel(part, self.tuning)
                if any(store.packed for s in flatten(part.body) for store in s.stores):
                    mapping = mapping._replace(kind="flat")  # their order counts: an item is one thread's
                is_alone = mapping.kind in ("one", "serial") or not mapping.loops and mapping.kind == "flat"
                write = functools.partial(KernelWriter.write_items, kernel=part, mapping=mapping, guard=guard)
                if is_alone:
                    write = functools.partial(KernelWriter.write_serial, bodies=[part.body], guard=guard)
                if mapping.items:
                    yield _Task(part.body, None if is_alone and guard is None else write)

    def _launch(self, task: _Task) -> None:
        name = self.names.take("kernel") + task.suffix
        function = task.write(KernelWriter(self, name, task.body, self._find_local(task.body)))
        self.functions.append(function)
        self.line(function.launch)

    def _find_local(self, body: Sequence) -> list[Buffer]:
        """The numbers that one function alone touches, and first writes."""
        own, found = {id(s) for s in body}, []
        for buffer in self.temps:
            users = self.users.get(buffer)
            if buffer.kind != "scalar" or buffer in self.told | self.shown or not users or not users <= own:
                continue
            first = next(s for s in body if id(s) in users)
            if isinstance(first, Store) and first.mask is None and buffer not in dict(first.loads):
                found.append(buffer)
        return found

    # -- what runs next --------------------------------------------------------------------------------------
    def write_test(self, s: While) -> None:
        self.block(s.cond)
        self.line(f"if not {self.arrays[s.predicate]}.copy_to_host()[()]:")
        self.line("    break")

    def write_counted(self, s: While, counter: Buffer, limit: Expr, body: list) -> None:
        name = self.variables[counter]
        with self.suite(f"for {name} in {write_range(str(self.starts[counter]), self.text(limit))}:"):
            self.block(body)
            self.swap(s)

    def read_number(self, buffer: Buffer) -> str:
        if buffer in self.variables:
            return self.variables[buffer]
        name = self.names.take("number", first=True)
        self.line(f"{name} = {self.arrays[buffer]}.copy_to_host()[()]")
        return name

    def write_library(self, name: str, function: Callable, inputs: Sequence, outputs: Sequence) -> None:
        name = self.name_library(name)
        self.library[name] = _make_results(function, inputs, outputs)
        call = f"{name}({', '.join(f'{self.arrays[buffer]}.copy_to_host()' for buffer in inputs)})"
        goals = ", ".join(self.arrays[buffer] for buffer in outputs)
        call = f"map(cuda.to_device, {call})" if len(outputs) > 1 else f"cuda.to_device({call})"
        self.line(f"{goals} = {call}" if outputs else call)


class _Task(NamedTuple):
    """A kernel to write. body: what it runs. write: None for what one thread runs, statement by statement."""

    body: list
    write: Callable[[KernelWriter], Function] | None = None
    suffix: str = ""


def _make_results(function: Callable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Callable:
    """`function` on arrays, of which 16-bit floats come and go as words."""
    write = write_results(function, inputs, outputs)

    def run(*arrays):
        kinds = [np.uint16 if dtypes.is_half(buffer.dtype) else buffer.dtype for buffer in outputs]
        found = [np.empty(tuple(map(int, buffer.shape)), kind) for buffer, kind in zip(outputs, kinds)]
        write(*arrays, *found)
        return found[0] if len(found) == 1 else found

    return run


# -- device functions ----------------------------------------------------------------------------------------
def make_device_function(program: Program, name: str, arguments: Sequence[str],
                         constants: Mapping[int, np.ndarray]) -> Callable:
    """A function of one thread. Numbers come and are returned by value; results that are arrays are written
    into arrays that follow the arguments; what is needed in between is the thread's own. arguments: names for
    the inputs; constants: values of those that are no arguments, by their number.

    Raises: NotImplementedError naming what a thread of a GPU does not have."""
    writer = _DeviceWriter(program, name, arguments)
    writer.captured = {program.inputs[number]: writer.names.take("C") for number in constants}
    text = _join_file(writer, [f"@cuda.jit(device=True)\n{writer.write_text()}"])
    space = dict(zip(writer.captured.values(), constants.values()))
    exec(compile(text, f"<{name} for numba.cuda>", "exec"), space)
    made = space[name]
    made.text = text
    return made


class _DeviceWriter(DeviceText, Writer):
    """captured: what the value of an input that is no argument is called above the function."""

    captured: dict[Buffer, str]

    def __init__(self, program: Program, name: str, arguments: Sequence[str]):
        super().__init__(program, name, arguments)
        for buffer in (*program.inputs, *program.outputs):
            if dtypes.is_half(buffer.dtype):
                raise NotImplementedError(f"{name} has arguments or results of {buffer.dtype}, which Numba's "
                                          "kernels do not have")

    def list_parameters(self, names: Mapping[Buffer, str]) -> list[str]:
        given = [buffer for buffer in self.program.inputs if buffer not in self.captured]
        return [names[buffer] for buffer in (*given, *self.program.outputs)
                if buffer in given or buffer in self.arrays]

    def receive(self, buffer: Buffer, name: str) -> str:
        value = self.captured.get(buffer)
        if buffer in self.arrays:
            return f"cuda.const.array_like({value})" if value else ""
        return value or f"{type_name(buffer.dtype)}({name})"

    def make_memory(self, buffer: Buffer, used: str) -> str:
        return "" if buffer in self.program.outputs else f"cuda.local.array({describe_memory(buffer)})"

    def list_results(self) -> str:
        return ", ".join(self.variables[b] for b in self.program.outputs if b in self.variables)

    def write_library(self, name: str, function: Callable, inputs: Sequence, outputs: Sequence) -> None:
        raise NotImplementedError(f"{self.name} computes {name} by a library: a thread of a GPU cannot")
