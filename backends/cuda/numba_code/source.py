"""Programs as files for `numba.cuda`: kernels, and a function of the host that launches them.

In: a loop program. Out: `File`: text that a person reads, copies out and runs, on a GPU or in Numba's
simulator. Written by `numba_kernels` (functions), `numba_functions` (what kernels call), and the writer of
`backends.python`, whose statements around kernels are the host's here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cuda.numba_code.kernels import Function, KernelWriter, has_name
from jitcore.backends.cuda.numba_code.names import DEVICE_HELPERS
from jitcore.backends.cuda.render.mapping import list_parts, map_kernel
from jitcore.backends.python.operations import type_name
from jitcore.backends.python.sweeps import write_range
from jitcore.backends.python.writer import Writer, describe_memory, find_counted, write_results
from jitcore.loopir.expr import Buffer, Expr, number_of
from jitcore.loopir.program import Kernel, Program, Reduce, Store, Switch, While
from jitcore.loopir.traversal import find_split, flatten, list_buffers


class File(NamedTuple):
    """text: with a function `run` of the program's inputs that returns its outputs, arrays of the device, in
    a tuple unless it is one. library: by name, functions of ndarrays that the text calls and leaves out."""

    text: str
    library: dict[str, Callable]


def write_file(program: Program, arguments: Sequence[str] = ()) -> File:
    """arguments: names for the inputs, as far as they are identifiers.

    Raises: NotImplementedError naming a function that kernels of Numba do not have."""
    writer = _HostWriter(program, "run", arguments)
    text = writer.write_host()
    functions = [*(f"@cuda.jit\n{function.text}" for function in writer.functions), text]
    return File(join_file(functions, writer), writer.library)


def join_file(functions: Sequence[str], writer: Writer) -> str:
    """A file of functions: before them what they import, the numbers that they name, and what they call."""
    device = [f"@cuda.jit(device=True)\n{helper.strip()}" for helper in writer.helpers.values()]
    body = "\n\n\n".join([*device, *functions])
    imports = [f"import {name}" for name in ("cmath", "math") if re.search(rf"\b{name}\.", body)]
    imports += ["import numpy as np", "from numba import cuda"]
    named = [f"# {name}(inputs...): computed by NumPy or SciPy" for name in writer.library]
    named += [f"{name} = {value}" for name, value in writer.constants.values()]
    head = "\n".join([*imports, *([""] * bool(named)), *named])
    return f"{head}\n\n\n{body}\n"


class _HostWriter(Writer):
    """What runs on the host: memory, launches, loops and choices between them.

    Attributes:
        starts: numbers that loops count from, by counter: these are variables of the host.
        users: the statements of kernels that touch a buffer, by their ids.
    """

    HELPERS = DEVICE_HELPERS
    has_pieces = True

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
    def write_host(self) -> str:
        self.block(self.body)
        body, self.lines = self.lines, []
        program, used = self.program, "\n".join(body)
        inputs = {buffer: self.variables.get(buffer) or self.arrays[buffer] for buffer in program.inputs}
        for buffer, name in inputs.items():
            kind = type_name(buffer.dtype) if buffer in self.variables else "cuda.to_device"
            self.line(f"{name} = {kind}({name})")
        for buffer in [*program.outputs, *self.temps]:
            name, source = self.arrays.get(buffer, ""), program.aliases.get(buffer)
            if source is not None:
                self.line(f"{name} = {self.arrays[source]}")
            elif name and (buffer in program.outputs or has_name(used, name)):
                self.line(f"{name} = cuda.device_array({describe_memory(buffer)})")
        results = ", ".join(self.arrays[buffer] for buffer in program.outputs) or "()"
        return "\n".join(
            [f"def run({', '.join(inputs.values())}):", *self.lines, *body, f"    return {results}"]
        )

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
        split = find_split(kernel)
        if split and isinstance(split[1], Reduce) and int(split[1].partials[0].shape[0]):
            yield _Task(body[:1], lambda w: w.write_pieces(body[0]), "_pieces")
            yield _Task(body, lambda w: w.write_finish(body[0], body[1:]), "_finish")
        elif body:
            for guard, part in list_parts(Kernel(body, kernel.vector, kernel.parallel)):
                mapping = map_kernel(part)
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
