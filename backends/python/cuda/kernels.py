"""Kernels as functions of `numba.cuda`, as a person would write them.

In: kernels of the loop program and their mappings. Out: the text of functions, and how each is launched. An
item that threads share has a block to itself ("rows"), or a column of one ("columns"); what they find is
combined in shared memory, in an order that depends on sizes alone.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from jitcore.backends.gpu.mapping import WARP, Accesses, Mapping, can_add_atomically
from jitcore.backends.python.cuda.functions import REDUCE, REDUCE_PLACES, SCAN, DeviceText
from jitcore.backends.python.expressions import Names
from jitcore.backends.python.operations import NOT, SUM, Text, type_name
from jitcore.backends.python.statements import SHORT, STEMS, Running, is_widened
from jitcore.backends.python.writer import Writer
from jitcore.loopir.expr import Axis, Buffer, Expr, Index, delinearize
from jitcore.loopir.monoids import scan_start_of
from jitcore.loopir.program import Kernel, Loop, Reduce, Roots, Scan, Store
from jitcore.loopir.traversal import flatten, peel

#: What a kernel does only if an expression holds, or only if it does not.
Guard = tuple[Expr, bool] | None


def has_name(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}\b", text) is not None


class Function(NamedTuple):
    """A kernel. launch: the call that runs it."""

    text: str
    launch: str


class KernelWriter(DeviceText):
    """One kernel of a file. local: buffers that only this one knows.

    Attributes:
        thread, team: what numbers the threads of an item, and how many there are.
        column: what a thread asks before it touches anything, where a block has several items.
        extents: what extents are called; shared: (name, value) of shared memory, by dtype and use."""

    def __init__(self, file: Writer, name: str, body: Sequence, local: Sequence[Buffer] = ()):
        super().__init__(Names(file.names.taken))
        self.file, self.name, self.file_names = file, name, file.names
        self.helpers, self.constants, self.tuning = file.helpers, file.constants, file.tuning
        self.arrays = {buffer: name for buffer, name in file.arrays.items() if buffer not in local}
        self.variables = {**file.variables, **{buffer: file.arrays[buffer] for buffer in local}}
        self.counters, self.empty = file.counters, file.empty
        self.thread, self.team, self.column = "", 1, ""
        self.extents = dict(self._find_extents(body))
        self.shared: dict[tuple[str, str], tuple[str, str]] = {}
        self.is_atomic = False

    def _find_extents(self, body: Sequence) -> Iterator[tuple[Axis, str]]:
        """Extents of arrays that axes run over from end to end; the first array's come last."""
        for s in reversed(flatten(body)):
            for buffer, offset in [*s.targets, *reversed(s.loads)]:
                shape = tuple(map(int, buffer.shape)) if buffer in self.arrays else ()
                for number, place in enumerate(delinearize(offset, shape)):
                    axis = place.terms[0][0] if place.terms else None
                    is_all = isinstance(axis, Axis) and place == Index.of(axis)
                    if is_all and int(axis.extent) == shape[number]:
                        yield axis, f"{self.arrays[buffer]}.shape[{number}]"

    def extent(self, axis: Axis) -> str:
        return self.extents.get(axis) or super().extent(axis)

    # -- functions -------------------------------------------------------------------------------------------
    def _open(self, body: Sequence, guard: Guard, others: Sequence[Expr] = ()) -> None:
        """others: expressions that are needed beside those of the body."""
        self.begin_kernel(body, [*others, *([guard[0]] if guard else [])])
        if guard is not None:
            condition = self.expr(guard[0])
            self._leave_if(f"not {condition.at(NOT)}" if guard[1] else condition.text)

    def _leave_if(self, test: str) -> None:
        self.line(f"if {test}:")
        self.line("    return")

    def _close(self, grid: int, block: int | str) -> Function:
        """The function whose body has been written. Its arguments are what that names."""
        first = [f"    {name} = {value}" for name, value in self.shared.values()]
        first += [f"    {flat} = {self.arrays[buffer]}.reshape(-1)" for buffer, flat in self.flat.items()]
        text = "\n".join([*first, *self.lines])
        program, names = self.file.program, {**self.arrays, **self.file.variables}
        order = [names[b] for b in (*program.inputs, *self.file.temps, *program.outputs) if b in names]
        arguments = ", ".join(name for name in order if has_name(text, name))
        return Function(f"def {self.name}({arguments}):\n{text}",
                        f"{self.name}[{grid}, {block}]({arguments})")

    def write_serial(self, bodies: Sequence[Sequence], guard: Guard = None) -> Function:
        """One thread, which runs bodies one after the other."""
        for body in bodies:
            self._open(body, guard)
            self.block(body)
        return self._close(1, 1)

    def write_items(self, kernel: Kernel, mapping: Mapping, guard: Guard) -> Function:
        """Items, each with a thread or a team of its own."""
        loops, body, axes = mapping.loops, mapping.body, [loop.axis for loop in mapping.loops]
        self._open(body, guard, [end for loop in loops for end in loop.ends])
        count = math.prod(int(axis.extent) for axis in axes)
        is_bounded = any(loop.bounds for loop in loops)
        if mapping.kind == "flat" or mapping.is_across and is_bounded:
            self.is_atomic = can_add_atomically(kernel)
            self._place(axes, "cuda.grid(1)")
            with contextlib.ExitStack() as stack:
                for test in self._ask_place(loops):
                    stack.enter_context(self.suite(f"if {test}:", body))
                self.block(body)
            return self._close(-(-count // self.tuning.block), self.tuning.block)
        self.thread = self.names.take("t", first=True)
        if mapping.is_across:
            self.team = mapping.team
            self._place(axes, f"cuda.blockIdx.x * {WARP} + cuda.threadIdx.x")
            (self.column,) = self._ask_place(loops)
            self.line(f"{self.thread} = cuda.threadIdx.y")
            self._share(body)
            return self._close(-(-count // WARP), f"({WARP}, {self.team})")
        self.team = min(max(mapping.team, WARP), self.tuning.piece_team)
        self._place(axes, "cuda.blockIdx.x")
        for test in self._ask_place(loops) if is_bounded else ():
            self._leave_if(f"not {test}")
        self.line(f"{self.thread} = cuda.threadIdx.x")
        self._share(body)
        return self._close(count, self.team)

    def _place(self, axes: Sequence[Axis], place: str) -> None:
        """Names axes, and says where each is at a place in the line of all iterations."""
        names = [self.name_axis(axis) for axis in axes]
        rest = self.names.take("rest", first=True) if len(axes) > 2 else ""
        for number in range(len(axes) - 1, 0, -1):
            left = rest if number > 1 else names[0]
            self.line(f"{left}, {names[number]} = divmod({place}, {self.extent(axes[number])})")
            place = rest
        if len(axes) == 1:
            self.line(f"{names[0]} = {place}")

    def _ask_place(self, loops: Sequence[Loop]) -> Iterator[str]:
        """Tests whether there is an item, each to be made where those before it hold."""
        for loop in loops:
            name, (low, high) = self.axes[loop.axis], self.ends(loop.axis, loop.bounds, SUM)
            if low != "0":
                yield f"{low} <= {name} < {high}"
            elif loop is loops[0] or loop.bounds:
                yield f"{name} < {high}"

    # -- an item of a team -----------------------------------------------------------------------------------
    def _share(self, body: Sequence) -> None:
        """The statements of an item."""
        accesses = Accesses()
        for writer, group in groupby(body, lambda s: _SHARERS.get(type(s), KernelWriter._run_alone)):
            is_alone = writer is KernelWriter._run_alone
            for statements in [list(group)] if is_alone else [[s] for s in group]:
                if accesses.add(statements):
                    self.line("cuda.syncthreads()")
                writer(self, statements if is_alone else statements[0])

    def _run_alone(self, statements: Sequence) -> None:
        column = f" and {self.column}" if self.column else ""
        with self.suite(f"if {self.thread} == 0{column}:", statements):
            self.block(statements)

    def _in_column(self, s: Loop | Reduce) -> contextlib.AbstractContextManager:
        return self.suite(f"if {self.column}:", [s]) if self.column else contextlib.nullcontext()

    @contextlib.contextmanager
    def _spread(self, axes: Sequence[Axis], ends: tuple[str, str], body: Sequence) -> Iterator[None]:
        """A loop over the iterations of axes that are this thread's. ends: of the first one."""
        inner = "".join(f" * {self.extent(axis)}" for axis in axes[1:])
        low, high = (end if end == "0" else f"{end}{inner}" for end in ends)
        start = self.thread if low == "0" else f"{low} + {self.thread}"
        name = self.names.take("place", first=True) if inner else self.name_axis(axes[0])
        with self.suite(f"for {name} in range({start}, {high}, {self.team}):", body):
            if inner:
                self._place(axes, name)
            yield
        for axis in axes:
            del self.axes[axis]

    def _share_loop(self, s: Loop) -> None:
        loops, body = peel([s])
        if any(loop.bounds for loop in loops):
            loops, body = [s], s.body
        axes = [loop.axis for loop in loops]
        with self._in_column(s):
            self.hoist(body, axes)
            with self._spread(axes, self.ends(s.axis, s.bounds, SUM), body):
                self.block(body)

    def _share_reduce(self, s: Reduce, ends: tuple[str, str] | None = None) -> None:
        """ends: of the first axis, where they are those of a piece."""
        running, counts = self.begin_parts(s, False)
        axes = s.axes[:1] if s.bounds else s.axes
        body = [Roots(*s.values), *s.stores]
        with self._in_column(s):
            self.hoist(body, axes)
            inner = body if len(axes) == len(s.axes) else [s]
            with self._spread(axes, ends or self.ends(s.axes[0], s.bounds, SUM), inner):
                self.sweep(s, s.axes[len(axes) :], running, counts, None)
        self._join(s, running)

    def _join(self, s: Reduce, running: Sequence[Running]) -> None:
        """What the threads of a team have found becomes the results."""
        for op, expr, name, dtype, best in running:
            if best is None:
                combined = self.combine(op, dtype, Text("shared[t]"), Text("shared[t + step]")).text
                helper = self._define(f"reduce_{op}", REDUCE, combined=combined)
                self.line(f"{name} = {helper}({name}, {self._name_shared(dtype)}, {self.thread})")
            else:
                helper = self._define(f"reduce_{op}", REDUCE_PLACES, sign=">" if op == "argmax" else "<")
                shared = f"{self._name_shared(expr.dtype)}, {self._name_shared(dtype, 'places')}"
                self.line(f"{name} = {helper}({best}, {name}, {shared}, {self.thread})")
        self.end_parts(s, running)

    def _define(self, name: str, template: str, **words: str) -> str:
        """The name of a device function."""
        for known, text in self.helpers.items():
            if text == template.format(name=known, **words):
                return known
        name = self.file_names.take(name, first=True)
        self.helpers[name] = template.format(name=name, **words)
        return name

    def _name_shared(self, dtype, stem: str = "shared") -> str:
        """Shared memory with an element for each thread of the team."""
        key = type_name(dtype), stem
        if key not in self.shared:
            shape = f"({self.team}, {WARP})" if self.column else self.team
            self.shared[key] = self.names.take(stem, first=True), f"cuda.shared.array({shape}, {key[0]})"
        return f"{self.shared[key][0]}[:, cuda.threadIdx.x]" if self.column else self.shared[key][0]

    def _share_scan(self, s: Scan) -> None:
        """A round for as many numbers as there are threads."""
        dtype, t, extent = s.value.dtype, self.thread, self.extent(s.axis)
        is_wide = is_widened(s.op, dtype) and int(s.axis.extent) > SHORT * self.team
        begin, stem = (self.begin_total, "wide_total") if is_wide else (self.begin, STEMS.get(s.op, s.op))
        first = scan_start_of(s.op, dtype)
        total, shared = begin(dtype, first, stem), self._name_shared(dtype)
        combined = self.combine(s.op, dtype, Text("shared[t - step]"), Text("value")).text
        helper = self._define(f"scan_{s.op}", SCAN, combined=combined)
        self.hoist([s], [s.axis])
        start = self.names.take("start", first=True)
        with self.suite(f"for {start} in range(0, {extent}, {self.team}):", [s]):
            place = self.name_axis(s.axis)
            self.line(f"{place} = {f'{extent} - 1 - {start} - {t}' if s.reverse else f'{start} + {t}'}")
            is_inside = f"if {place} >= 0:" if s.reverse else f"if {place} < {extent}:"
            value = self.begin(dtype, first, "value")
            with self.suite(is_inside, [s]):
                self.line(f"{value} = {self.text(s.value)}")
            self.line(f"{value} = {helper}({value}, {shared}, {t})")
            with self.suite(is_inside, [s]):
                found = self.combine(s.op, dtype, Text(total), Text(value))
                self.assign(s.buffer, s.offset,
                            Text(f"{type_name(dtype)}({found.text})") if is_wide else found)
            self.update(s.op, dtype, total, Text(f"{shared}[{self.team - 1}]"))
            self.line("cuda.syncthreads()")
        del self.axes[s.axis]

    # -- updates ---------------------------------------------------------------------------------------------
    def store(self, s: Store, shift: str = "") -> None:
        if not self.is_atomic:
            return super().store(s, shift)
        array, _, place = self.place(s.buffer, s.offset)[:-1].partition("[")
        place = f"({place})" if ", " in place else place
        name = {"and": "and_", "or": "or_"}.get(s.combine, s.combine)
        self.line(f"cuda.atomic.{name}({array}, {place}, {self.text(s.value)})")


_SHARERS = {Loop: KernelWriter._share_loop, Reduce: KernelWriter._share_reduce,
            Scan: KernelWriter._share_scan}
