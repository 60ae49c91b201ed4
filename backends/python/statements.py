"""Statements of kernels as Python: stores, loops, choices, loops until something holds, reductions and scans.

In: statements. Out: lines. What stands around kernels is `writer`'s. Long sums of floats are made in blocks,
as adding one number after the other loses digits: numbers are added to a `part`, parts to the total, which is
double where they are single. So they are as exact as those of machine code, whose runs are short and whose
totals keep what they round off.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.python.expressions import Expressions, count_uses
from jitcore.backends.python.operations import NOT, SUM, TERNARY, Text, type_name
from jitcore.loopir.expr import Axis, Expr
from jitcore.loopir.monoids import identity_of, scan_start_of
from jitcore.loopir.program import Choice, Loop, Reduce, Repeat, Roots, Scan, Store
from jitcore.loopir.traversal import list_writes

STEMS = {"add": "total", "mul": "product", "max": "largest", "min": "least", "and": "all_", "or": "any_"}
#: Numbers up to which a sum is short; numbers of a block.
SHORT, BLOCK = 1024, 256
#: The dtypes of totals, by that of the numbers; sums of others do not round, or are short of digits anyway.
TOTALS = {np.dtype(kind): np.dtype(total)
          for kind, total in {"f4": "f8", "f8": "f8", "c8": "c16", "c16": "c16"}.items()}


class Blocks(NamedTuple):
    """axis: the outermost loop of a block. length: how many of its iterations a block has, None for all."""

    axis: Axis
    length: int | None


def choose_blocks(axes: Sequence[Axis], parts: Sequence[tuple[str, object]]) -> Blocks | None:
    """The blocks of a sweep over axes, innermost last. parts: operations and dtypes."""
    extents = [int(axis.extent) for axis in axes]
    if math.prod(extents) <= SHORT or not any(_is_rounded(*part) for part in parts):
        return None
    inside, place = 1, len(axes) - 1
    while inside * extents[place] <= BLOCK:
        inside, place = inside * extents[place], place - 1
    length = math.ceil(extents[place] / math.ceil(extents[place] * inside / BLOCK))
    return Blocks(axes[place], length) if length > 1 else Blocks(axes[place + 1], None)


def _is_rounded(op: str, dtype) -> bool:
    return op == "add" and dtype in TOTALS


def is_widened(op: str, dtype) -> bool:
    """Whether the total of many such numbers is wider than they are."""
    return _is_rounded(op, dtype) and TOTALS[dtype] != dtype


class Running(NamedTuple):
    """The value of a reduction so far. name: of its variable; best: of that of the extreme at this place."""

    op: str
    expr: Expr
    name: str
    dtype: np.dtype
    best: str | None = None


class Statements(Expressions):
    """The statements, one method for each."""

    def block(self, body: Sequence) -> None:
        for statement in body:
            getattr(self, _METHODS[type(statement).__name__])(statement)

    def begin_kernel(self, body: Sequence, roots: Sequence[Expr] = ()) -> None:
        """Nothing is named, and what is to come is counted: a body, and expressions beside it."""
        self.known, self.uses = {}, count_uses([*body, *([Roots(*roots)] if roots else [])])
        self.written = list_writes(body)

    def write_loop(self, s: Loop) -> None:
        self.hoist(s.body, [s.axis])
        with self.suite(self.range(s.axis, self.ends(s.axis, s.bounds)), s.body):
            self.block(s.body)
        del self.axes[s.axis]

    def write_choice(self, s: Choice) -> None:
        for head, body in ((f"if {self.text(s.condition)}:", s.body), ("else:", s.other)):
            with self.suite(head, body):
                self.block(body)

    def write_repeat(self, s: Repeat) -> None:
        values = [self.text(expr) for expr in s.initial]
        for register in s.registers:
            self.results.setdefault(register, self.names.take("s"))
        names = ", ".join(self.results[register] for register in s.registers)
        if s.registers:
            self.line(f"{names} = {', '.join(values)}")
        inner = [Roots(s.condition, *s.updates), *s.body]
        self.hoist(inner, (), s.registers)
        with self.suite("while True:", inner):
            head, first = len(self.lines) - 1, len(self.lines)
            self._test(self.expr(s.condition), head, first)
            self.block(s.body)
            if s.registers:
                self.line(f"{names} = {', '.join(self.text(expr) for expr in s.updates)}")

    def _test(self, condition: Text, head: int, first: int) -> None:
        """The test of a loop: in its first line where nothing has to be computed before."""
        if len(self.lines) == first:
            self.lines[head] = self.lines[head].replace("True", condition.text)
        else:
            self.line(f"if not {condition.at(NOT)}:")
            self.line("    break")

    # -- stores, loops ---------------------------------------------------------------------------------------
    def write_store(self, s: Store) -> None:
        if s.mask is None:
            return self.store(s)
        test = self.text(s.mask)
        if test == "True":
            return self.store(s)
        with self.suite(f"if {test}:"):
            self.store(s)

    def store(self, s: Store, shift: str = "") -> None:
        """shift: of a packed store, how many elements stand before this one."""
        value = self.expr(s.value)
        for expr in s.offset.exprs:
            self.expr(expr)
        if s.combine is not None:
            value = self.combine(s.combine, s.buffer.dtype, self.load(s.buffer, s.offset, shift), value)
        self.assign(s.buffer, s.offset, value, shift)

    def combine(self, op: str, dtype, old: Text, new: Text) -> Text:
        return self.operations.write(op, dtype, [dtype, dtype], [old, new], [None, None])

    def ends(self, axis: Axis, bounds: dict, level: int = TERNARY) -> tuple[str, str]:
        """level: how strongly the texts bind."""
        low, high = (None if end is None else self.text(end, level) for end in bounds.get(axis, (None, None)))
        return low or "0", high or self.extent(axis)

    def extent(self, axis: Axis) -> str:
        return str(int(axis.extent))

    def range(self, axis: Axis, ends: tuple[str, str], step: int = 1) -> str:
        return f"for {self.name_axis(axis)} in {write_range(*ends, step)}:"

    @contextlib.contextmanager
    def cut(self, s: Reduce | Scan, ends: tuple[str, str], length: int, step: int = 1) -> Iterator[tuple]:
        """A loop over blocks. Gives the ends of the loop over one of them."""
        start, (low, high) = self.names.take("start", first=True), ends
        end = f"{start} {'+' if step > 0 else '-'} {length}"
        if not (low.isdigit() and high.isdigit() and int(high) % length == 0 == int(low)):
            end = f"{'min' if step > 0 else 'max'}({end}, {high})"
        with self.suite(f"for {start} in {write_range(low, high, step * length)}:", [s]):
            yield start, end

    # -- reductions ------------------------------------------------------------------------------------------
    def begin(self, dtype, value, stem: str, result=None) -> str:
        """A running value, begun. result: what reads it."""
        name = self.results.get(result) or self.names.take(stem, first=True)
        self.line(f"{name} = {self.number(value, dtype).text}")
        return name

    def begin_total(self, dtype, value, stem: str) -> str:
        """A total that is wider than what it is the total of."""
        name = self.names.take(stem, first=True)
        self.line(f"{name} = {type_name(TOTALS[dtype])}({value})")
        return name

    def write_reduce(self, s: Reduce) -> None:
        blocks = choose_blocks(s.axes, [(op, expr.dtype) for _, op, expr in s.parts])
        running, counts = self.begin_parts(s, blocks is not None)
        self.sweep(s, s.axes, running, counts, blocks)
        self.end_parts(s, running)

    def begin_parts(self, s: Reduce, is_long: bool) -> tuple[list[Running], dict[Expr, str]]:
        """(running values, by mask the variables that count its packed stores), begun. is_long: whether
        sums are wide."""
        running = []
        for result, op, expr in s.parts:
            if is_long and is_widened(op, expr.dtype):
                name = self.begin_total(expr.dtype, 0.0, "wide_total")
                running.append(Running(op, expr, name, TOTALS[expr.dtype]))
            elif op.startswith("arg"):
                best = self.begin(expr.dtype, identity_of(op, expr.dtype), "best")
                name = self.begin(result.dtype, 0, "place", result)
                running.append(Running(op, expr, name, result.dtype, best))
            else:
                name = self.begin(result.dtype, identity_of(op, result.dtype), STEMS.get(op, op), result)
                running.append(Running(op, expr, name, result.dtype))
        return running, {s.mask: self.begin(dtypes.int64, 0, "n") for s in s.stores if s.packed}

    def end_parts(self, s: Reduce, running: list[Running]) -> None:
        """What has been found gets the names of the results."""
        for (result, op, _), value in zip(s.parts, running):
            name = value.name
            if value.dtype != result.dtype:
                name = self.results.get(result) or self.names.take(STEMS[op], first=True)
                self.line(f"{name} = {type_name(result.dtype)}({value.name})")
            self.results[result] = name

    def sweep(self, s: Reduce, axes: Sequence[Axis], running: list, counts: dict, blocks: Blocks | None,
               ends: tuple[str, str] | None = None) -> None:
        """The loops over axes. ends: of the first one, where they are not those of its axis."""
        if not axes:
            return self._combine(s, running, counts)
        body = [Roots(*s.values), *s.stores]
        self.hoist(body, axes)
        if blocks is not None and axes[0] is blocks.axis:
            return self._sweep_blocks(s, axes, running, counts, blocks)
        head = self.range(axes[0], ends or self.ends(axes[0], s.bounds))
        with self.suite(head, body if len(axes) == 1 else [s]):
            self.sweep(s, axes[1:], running, counts, blocks)
        del self.axes[axes[0]]

    def _sweep_blocks(self, s: Reduce, axes: Sequence[Axis], running: list, counts: dict,
                      blocks: Blocks) -> None:
        def add_block(ends: tuple[str, str] | None = None) -> None:
            parts = [value._replace(name=self.begin(value.expr.dtype, 0, "part"))
                     if _is_rounded(value.op, value.expr.dtype) else value for value in running]
            self.sweep(s, axes, parts, counts, None, ends)
            for total, part in zip(running, parts):
                if part is not total:
                    self.line(f"{total.name} += {part.name}")

        if blocks.length is None:
            return add_block()
        with self.cut(s, self.ends(blocks.axis, s.bounds), blocks.length) as ends:
            add_block(ends)

    def _combine(self, s: Reduce, running: list, counts: dict) -> None:
        for op, expr, name, dtype, best in running:
            if best is not None:
                place = self.operations.convert(Text(self.axes[s.axes[-1]]), dtypes.int64, dtype)
                self.note_extreme(op, expr, name, best, place.text)
                continue
            self.update(op, expr.dtype, name, self.expr(expr))
        for store in s.stores:
            if not store.packed:
                self.write_store(store)
                continue
            with self.suite(f"if {self.text(store.mask)}:"):
                self.store(store, counts[store.mask])
        for mask, count in counts.items():
            self.line(f"{count} += {self.text(mask)}")

    def update(self, op: str, dtype, name: str, value: Text) -> None:
        """Combines a running value with one more."""
        text = self.combine(op, dtype, Text(name), value).text
        sign = {"add": "+", "mul": "*"}.get(op)
        is_short = sign and text == f"{name} {sign} {value.at(TERNARY)}"
        self.line(f"{name} {sign}= {value.text}" if is_short else f"{name} = {text}")

    def note_extreme(self, op: str, expr: Expr, name: str, best: str, position: str) -> None:
        """The first place of an extreme; NaN is the most extreme."""
        value = self.expr(expr)
        text = value.text if value.text.isidentifier() else self.give_name(value).text
        better = f"{text} {'>' if op == 'argmax' else '<'} {best}"
        if dtypes.kind_of(expr.dtype) in "fc":
            better = f"({better} or {text} != {text}) and {best} == {best}"
        with self.suite(f"if {better}:"):
            self.line(f"{best}, {name} = {text}, {position}")

    # -- scans -----------------------------------------------------------------------------------------------
    def write_scan(self, s: Scan) -> None:
        dtype, extent = s.value.dtype, int(s.axis.extent)
        start, step = scan_start_of(s.op, dtype), -1 if s.reverse else 1
        ends = (str(extent - 1), "-1") if s.reverse else ("0", str(extent))
        blocks = choose_blocks([s.axis], [(s.op, dtype)])
        is_wide = blocks is not None and is_widened(s.op, dtype)
        begin = self.begin_total if is_wide else self.begin
        total = begin(dtype, start, "wide_total" if is_wide else STEMS.get(s.op, s.op))
        self.hoist([s], [s.axis])
        if blocks is None:
            return self._run(s, total, ends, step, Text(total))
        with self.cut(s, ends, blocks.length, step) as ends:
            part = self.begin(dtype, start, "part")
            found = Text(f"{total} + {part}", SUM)
            self._run(s, part, ends, step, Text(f"{type_name(dtype)}({found.text})") if is_wide else found)
            self.line(f"{total} += {part}")

    def _run(self, s: Scan, total: str, ends: tuple[str, str], step: int, found: Text) -> None:
        """The loop of a scan, which stores what is found after each number."""
        with self.suite(self.range(s.axis, ends, step), [s]):
            self.line(f"{total} = {self.combine(s.op, s.value.dtype, Text(total), self.expr(s.value)).text}")
            self.assign(s.buffer, s.offset, found)
        del self.axes[s.axis]


_METHODS = {"Kernel": "write_kernel", "Loop": "write_loop", "Choice": "write_choice", "Store": "write_store",
            "Reduce": "write_reduce", "Scan": "write_scan", "Repeat": "write_repeat", "While": "write_while",
            "Switch": "write_switch", "Call": "write_call", "LibraryCall": "write_library_call"}


def write_range(low: str, high: str, step: int = 1) -> str:
    ends = [high] if low == "0" and step == 1 else [low, high]
    return f"range({', '.join([*ends, *([str(step)] if step != 1 else [])])})"
