"""From the loop program to a function of NumPy arrays, as a person would write it.

In: a `loopir` program. Out: `Source`: the text of a Python function, which runs as it stands and under
`numba.njit`. Marks about speed are ignored (`Kernel`'s, `Repeat.trips`, `Store.turns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.python.expressions import Names, count_uses
from jitcore.backends.python.operations import Text, word_name
from jitcore.backends.python.statements import Statements
from jitcore.loopir.expr import Buffer, Expr, Index, number_of
from jitcore.loopir.program import Call, Kernel, LibraryCall, Program, Statement, Store, Switch, While
from jitcore.loopir.traversal import flatten, list_outermost

#: Names that a function uses, or that mean something to readers.
RESERVED = ("np", "math", "special", "objmode", "njit", "range", "abs", "min", "max", "complex", "float",
            "int", "print", "empty", "cmath", "cuda", "divmod")


class Source(NamedTuple):
    """A function as text.

    Attributes:
        helpers: functions that it calls; constants: lines that name numbers.
        library: by name, functions of ndarrays that it calls, which write their results into the last ones.
        name, text: of the function itself."""

    name: str
    helpers: tuple[str, ...]
    constants: tuple[str, ...]
    text: str
    library: dict[str, Callable]


def write_function(program: Program, name: str = "kernel", arguments: Sequence[str] = ()) -> Source:
    """A function of the program's inputs that returns its outputs, in a tuple unless it is one.

    arguments: names for the inputs, as far as they are identifiers."""
    return Writer(program, name, arguments).write()


class Writer(Statements):
    """A function of one thread, and what stands around kernels, one method for each statement."""

    def __init__(self, program: Program, name: str, arguments: Sequence[str]):
        names = Names((*RESERVED, *self.HELPERS, name))
        super().__init__(names)
        self.program, self.name = program, name
        self.library: dict[str, Callable] = {}
        self.body = list_outermost(program.steps)
        statements = flatten(self.body)
        calls = [s for s in statements if isinstance(s, (Call, LibraryCall))]
        self.shown = {buffer for s in calls for buffer in (*s.inputs, *s.outputs)}
        self.shown |= {*program.aliases, *program.aliases.values()}
        self.moving = {buffer for s in statements if isinstance(s, While) for buffer in s.moving}
        self.counters = _find_counters(statements)
        buffers = (*program.inputs, *program.outputs, *program.temps)
        self.empty = {buffer for buffer in buffers if 0 in map(int, buffer.shape)}
        pieces = {buffer for s in statements for buffer in s.block_results}
        self.temps = [buffer for buffer in program.temps if buffer not in pieces]
        for buffer, title in self._title_buffers(arguments):
            taken = names.take(title, first=not title[-1].isdigit() and title not in ("in", "tmp", "out"))
            (self.variables if self.is_variable(buffer) else self.arrays)[buffer] = taken

    def is_variable(self, buffer: Buffer) -> bool:
        """Whether a buffer is a variable of the function, and no array."""
        return (buffer.kind == "scalar" or not buffer.shape) and buffer not in self.shown

    def _title_buffers(self, arguments: Sequence[str]):
        """(buffer, what it is called)."""
        inputs, outputs = self.program.inputs, self.program.outputs
        for number, buffer in enumerate(inputs):
            given = re.sub(r"\W+", "_", arguments[number]).strip("_") if number < len(arguments) else ""
            yield buffer, given if given and not given[0].isdigit() else "const"
        for buffer in outputs:
            yield buffer, "out" if len(outputs) > 1 else "result"
        for buffer in self.temps:
            yield buffer, "s" if buffer.kind == "scalar" else "tmp"

    # -- the function ----------------------------------------------------------------------------------------
    def write(self) -> Source:
        text = self.write_text()
        return Source(self.name, tuple(self.helpers.values()), self.list_constants(), text, self.library)

    def list_constants(self) -> tuple[str, ...]:
        return tuple(f"{name} = {value}" for name, value in self.constants.values())

    def write_text(self) -> str:
        """What becomes of the inputs, memory, the statements, and what is returned."""
        self.block(self.body)
        body, self.lines = self.lines, []
        program, names, used = self.program, {**self.variables, **self.arrays}, "\n".join(body)
        found = [(names[buffer], self.receive(buffer, names[buffer])) for buffer in program.inputs]
        for buffer in (*program.outputs, *self.temps):
            if buffer in self.arrays:
                source = program.aliases.get(buffer)
                made = self.make_memory(buffer, used) if source is None else self.arrays[source]
                found.append((names[buffer], made))
        found += [(flat, f"{self.arrays[buffer]}.reshape(-1)") for buffer, flat in self.flat.items()]
        for name, value in found:
            if value:
                self.line(f"{name} = {value}")
        head, results = f"def {self.name}({', '.join(self.list_parameters(names))}):", self.list_results()
        return "\n".join([head, *self.lines, *body, *([f"    return {results}"] if results else [])])

    def list_parameters(self, names: Mapping[Buffer, str]) -> list[str]:
        return [names[buffer] for buffer in self.program.inputs]

    def receive(self, buffer: Buffer, name: str) -> str:
        """What an input becomes before anything else; "" for what it is."""
        if buffer in self.arrays:
            return ""
        value, is_word = Text(f"{name}[()]"), dtypes.is_half(buffer.dtype)
        return self.operations.from_word(value, buffer.dtype).text if is_word else value.text

    def make_memory(self, buffer: Buffer, used: str) -> str:
        """What makes memory for an output or a temporary; "" for none. used: the text of the statements."""
        return f"np.empty({describe_memory(buffer)})"

    def list_results(self) -> str:
        return ", ".join(map(self._give_back, self.program.outputs)) or "()"

    def _give_back(self, buffer: Buffer) -> str:
        if buffer in self.arrays:
            return self.arrays[buffer]
        name = self.variables[buffer]
        is_word = dtypes.is_half(buffer.dtype)
        return f"np.asarray({self.operations.to_word(Text(name), buffer.dtype) if is_word else name})"

    # -- statements ------------------------------------------------------------------------------------------
    def write_kernel(self, kernel: Kernel) -> None:
        saved = self.known
        self.begin_kernel(kernel.body)
        self.block(kernel.body)
        self.known, self.written = saved, set()

    # -- loops until something holds -----------------------------------------------------------------------
    def write_while(self, s: While) -> None:
        counted = find_counted(s)
        if counted is not None and self.is_variable(counted[0]) and self.is_private(counted[0], s):
            return self.write_counted(s, *counted)
        with self.suite("while True:"):
            self.write_test(s)
            self.block(s.body)
            self.swap(s)

    def write_test(self, s: While) -> None:
        head, first = len(self.lines) - 1, len(self.lines)
        *before, last = s.cond
        self.block(before)
        value = _find_single_store(last, s.predicate)
        if value is not None and s.predicate in self.variables:
            self.known, self.uses = {}, count_uses(last.body)
            self._test(self.expr(value), head, first)
            self.known = {}
        else:
            self.block([last])
            self._test(Text(self.read_number(s.predicate)), head, first)

    def read_number(self, buffer: Buffer) -> str:
        """What a number is called that decides what runs next."""
        return self.place(buffer, Index())

    def is_private(self, counter: Buffer, s: While) -> bool:
        """Whether only a loop reads the variable that counts its rounds."""
        read = {buffer for other in self.list_outside(s) for buffer, _ in other.loads}
        return counter not in read and counter not in self.program.outputs

    def list_outside(self, s: While) -> list[Statement]:
        """The statements that are not part of one."""
        inside = set(flatten([s]))
        return [other for other in flatten(self.body) if other not in inside]

    def write_counted(self, s: While, counter: Buffer, limit: Expr, body: list) -> None:
        name = self.variables[counter]
        start = "" if self._take_back(name, "0") else f"{name}, "
        with self.suite(f"for {name} in range({start}{self.text(limit)}):"):
            self.block(body)
            self.swap(s)

    def _take_back(self, name: str, value: str) -> bool:
        """Removes the line before here that gives a variable a value, if nothing uses that."""
        for number in range(len(self.lines) - 1, -1, -1):
            line = self.lines[number]
            if line == f"{'    ' * self.depth}{name} = {value}":
                del self.lines[number]
                return True
            if re.search(rf"\b{name}\b", line) or line.endswith(":"):
                return False
        return False

    def swap(self, s: While) -> None:
        for first, second in s.swaps:
            names = self.arrays[first], self.arrays[second]
            self.line(f"{', '.join(names)} = {', '.join(reversed(names))}")

    def write_switch(self, s: Switch) -> None:
        selector = self.read_number(s.selector)
        for number, branch in enumerate(s.branches):
            word = "if" if number == 0 else "elif"
            is_last = number and number == len(s.branches) - 1
            with self.suite("else:" if is_last else f"{word} {selector} == {number}:"):
                self.block(branch)

    # -- calls -----------------------------------------------------------------------------------------------
    def write_call(self, s: Call) -> None:
        self.write_library(str(s.routine), s.function, s.inputs, s.outputs)
        if s.epilogue is not None:
            self.block([s.epilogue])

    def write_library_call(self, s: LibraryCall) -> None:
        self.write_library(s.name, s.function, s.inputs, s.outputs)

    def name_library(self, name: str) -> str:
        return self.names.take(re.sub(r"\W+", "_", name).strip("_"), first=True)

    def write_library(self, name: str, function: Callable, inputs: Sequence, outputs: Sequence) -> None:
        name = self.name_library(name)
        self.library[name] = write_results(function, inputs, outputs)
        with self.suite("with objmode():"):
            self.line(f"{name}({', '.join(self.arrays[buffer] for buffer in (*inputs, *outputs))})")


def join_file(imports: Mapping[str, str], library: Sequence[str], constants: Sequence[str],
              functions: Sequence[str]) -> str:
    """A file that a person can copy and run. imports: lines, by what has to stand in the functions for them.
    library: functions that are told of in words."""
    body = "\n\n\n".join(functions)
    lines = [line for word, line in imports.items() if re.search(rf"\b{word}", body)]
    named = [f"# {name}: computed by NumPy or SciPy" for name in library] + list(constants)
    head = "\n".join([*lines, *([""] * bool(named)), *named])
    return f"{head}\n\n\n{body}\n"


def describe_memory(buffer: Buffer) -> str:
    """Shape and type, as arguments of what makes memory."""
    shape = ", ".join(str(int(extent)) for extent in buffer.shape) + ("," if len(buffer.shape) == 1 else "")
    return f"({shape}), {word_name(buffer.dtype)}"


def _find_single_store(statement, buffer: Buffer) -> Expr | None:
    """The value of a kernel that is one store to a buffer."""
    if not isinstance(statement, Kernel) or len(statement.body) != 1:
        return None
    (store,) = statement.body
    is_plain = isinstance(store, Store) and not store.is_update and store.mask is None
    return store.value if is_plain and store.buffer is buffer else None


def _is_step(store: Store) -> bool:
    """Whether a store counts one on."""
    value = store.value
    return (value.op == "add" and value.args[0].op == "load" and value.args[0].attr[0] is store.buffer
            and number_of(value.args[1]) == 1)


def _find_counters(statements: Sequence) -> set[Buffer]:
    """int64 scalars that get literals and are counted on: they do not overflow."""
    stores = [store for s in statements for store in s.stores if store.buffer.dtype == dtypes.int64]
    others = {store.buffer for store in stores if number_of(store.value) is None and not _is_step(store)}
    return {store.buffer for store in stores} - others


def find_counted(s: While) -> tuple[Buffer, Expr, list] | None:
    """(counter, limit, body without the counting) of a loop that counts its rounds up to a number."""
    if len(s.cond) != 1:
        return None
    test = _find_single_store(s.cond[0], s.predicate)
    if test is None or test.op != "lt" or test.args[0].op != "load" or number_of(test.args[1]) is None:
        return None
    counter = test.args[0].attr[0]
    changed = [store for each in flatten(s.body) for store in each.stores if store.buffer is counter]
    last = s.body[-1] if s.body else None
    is_last = isinstance(last, Kernel) and len(changed) == 1 and last.body[-1] is changed[0]
    if not is_last or not _is_step(changed[0]):
        return None
    rest = last.body[:-1]
    return counter, test.args[1], [*s.body[:-1], *([Kernel(rest)] if rest else [])]


def write_results(function: Callable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Callable:
    """`function` on arrays, writing its results into those that follow; 16-bit floats come as words."""
    kinds = [buffer.dtype for buffer in (*inputs, *outputs)]

    def run(*arrays) -> None:
        arrays = [np.asarray(a).view(kind) if dtypes.is_half(kind) else np.asarray(a)
                  for a, kind in zip(arrays, kinds)]
        with np.errstate(all="ignore"):
            results = function(*arrays[: len(inputs)])
        results = (results,) if isinstance(results, (np.ndarray, np.generic)) else results
        for goal, result in zip(arrays[len(inputs) :], results):
            goal[...] = np.asarray(result).reshape(goal.shape)

    return run
