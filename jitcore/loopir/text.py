"""The text of loop programs: what people read, and what code is found again by.

In: a program, or a kernel by itself. Out: indented pseudo-code, one line a statement.
"""

from __future__ import annotations

from collections.abc import Callable

from jitcore import dtypes
from jitcore.hypertext import Shown
from jitcore.loopir.expr import Axis, Buffer, Dynamic, Expr, Index, Mod, walk
from jitcore.loopir.program import (Call, Choice, Kernel, LibraryCall, Loop, Native, Program, Reduce, Repeat,
                                    Scan, Statement, Store, Switch, While)
from jitcore.loopir.traversal import find_split
from jitcore.loopir.ways import format_ways


def format_program(program: Program, size_name: Callable = str) -> str:
    """The program as indented pseudo-code, one line a statement, names numbered by first appearance.

    size_name: text of an extent, stride or offset. With one that hides sizes, programs that differ in them
    only have equal texts, and the text is a key of compiled code."""
    text = _Text(size_name)
    describe = text.buffer
    lines = ["program(" + ", ".join(map(describe, program.inputs)) + ") -> ("
             + ", ".join(map(describe, program.outputs)) + "):"]
    lines += [f"    {describe(buffer)}" for buffer in program.temps]
    lines += [f"    {output!r} overwrites {source!r}" for output, source in program.aliases.items()]
    return "\n".join(lines + text.block(program.steps, 1))


def show_program(program: Program) -> Shown:
    """Its text, which notebooks show as a picture."""
    return Shown(format_program(program), program)


def format_statement(statement: Statement) -> str:
    """A statement by itself."""
    return "\n".join(_Text(str).block([statement], 0))


def format_kernel(kernel: Kernel, size_name: Callable, buffer_name: Callable, number_name: Callable) -> str:
    """A kernel by itself. number_name: text of a constant. How far its outermost loop goes is not told, but
    where each block runs all of it."""
    text = _Text(size_name, buffer_name, number_name)
    if isinstance(kernel.body[0], Loop) and find_split(kernel) is None:
        text.whole = kernel.body[0].axis
    return "\n".join(text.block([kernel], 0))


def _describe_number(expr: Expr) -> str:
    return f"{expr.attr!s}:{dtypes.SHORT_NAMES[expr.dtype]}"


def _note(statement: Loop | Reduce | Scan) -> str:
    """How a statement runs, behind its head."""
    return f"  # {format_ways(statement.ways)}" if statement.ways else ""


class _Text:
    """Renders statements; each expression is bound to a name where it is first needed."""

    def __init__(self, size_name: Callable, buffer_name=repr, number_name=_describe_number):
        self.size, self.place, self.number = size_name, buffer_name, number_name
        self.whole: Axis | None = None  # whose extent is left out
        self.axes: dict[Axis, str] = {}
        self.names: dict[int, str] = {}
        self.count = 0

    def buffer(self, buffer: Buffer) -> str:
        extents = ",".join(map(self.size, buffer.shape))
        return f"{buffer.name}: {buffer.kind} {dtypes.SHORT_NAMES[buffer.dtype]}[{extents}]"

    def axis(self, axis: Axis) -> str:
        return self.axes.setdefault(axis, f"i{len(self.axes)}")

    def index(self, index: Index) -> str:
        parts = [f"{self.size(c)}*{self.atom(a)}" if c != 1 else self.atom(a) for a, c in index.terms]
        return " + ".join(parts if parts and index.const == 0 else [*parts, self.size(index.const)])

    def atom(self, atom) -> str:
        if isinstance(atom, Axis):
            return self.axis(atom)
        if isinstance(atom, Dynamic):
            return self.name(atom.expr)
        sign = "%" if isinstance(atom, Mod) else "//"
        return f"({self.index(atom.index)} {sign} {self.size(atom.size)})"

    def name(self, expr: Expr) -> str:
        if expr.op == "const":
            return self.number(expr)
        if expr.op == "result":
            return repr(expr.attr)
        return self.names.get(id(expr), "?")

    def bind(self, roots, pad: str) -> list[str]:
        lines = []
        for node in walk(roots):
            if id(node) in self.names or node.op in ("const", "result"):
                continue
            name = self.names[id(node)] = f"t{self.count}"
            self.count += 1
            if node.op == "load":
                right = f"{self.place(node.attr[0])}[{self.index(node.attr[1])}]"
            elif node.op == "index":
                right = self.index(node.attr)
            else:
                right = f"{node.op}({', '.join(map(self.name, node.args))})"
            lines.append(f"{pad}{name}: {dtypes.SHORT_NAMES[node.dtype]} = {right}")
        return lines

    def block(self, body: list, depth: int) -> list[str]:
        pad, lines = "    " * depth, []
        for statement in body:
            lines += getattr(self, "_" + type(statement).__name__.lower())(statement, pad, depth)
        return lines

    def _native(self, s: Native, pad, depth):
        return [f"{pad}native:", *self.block(s.body, depth + 1)]

    def _store(self, s: Store, pad, depth):
        lines = self.bind([s.value, *s.offset.exprs] + ([s.mask] if s.mask is not None else []), pad)
        where = f" where {self.name(s.mask)}" if s.mask is not None else ""
        where += " in order" if s.in_order else ""
        where += " packed" if s.packed else ""
        where += f" by turns in {s.turns[0]} copies of {self.size(s.turns[1])}" if s.turns else ""
        sign = f" {s.combine}=" if s.combine else " ="
        goal = f"{self.place(s.buffer)}[{self.index(s.offset)}]"
        return [*lines, f"{pad}{goal}{sign} {self.name(s.value)}{where}"]

    def _kernel(self, s: Kernel, pad, depth):
        lanes = ([] if s.vector is None else [s.vector]) + [*s.others]
        facts = [f"vector {', '.join(map(self.axis, lanes))}"] if lanes else []
        grain = self.size(s.grain)  # told to kernels that run in one piece, too
        facts += [f"parallel by {grain}"] if s.parallel else []
        facts += [f"tiles {' x '.join(map(self.axis, s.tile))}"] if s.tile else []
        facts += [f"far {', '.join(map(self.place, s.far))}"] if s.far else []
        facts += [format_ways(s.ways)] if s.ways else []
        saved = dict(self.names)
        title = f"kernel ({', '.join(facts)})" if facts else "kernel"
        lines = [f"{pad}{title}:", *self.block(s.body, depth + 1)]
        self.names = saved
        return lines

    def _loop(self, s: Loop, pad, depth):
        first = self.bind(s.ends, pad)
        saved = dict(self.names)
        lines = [*first, f"{pad}for {self.range(s, s.axis)}:{_note(s)}", *self.block(s.body, depth + 1)]
        self.names = saved
        return lines

    def range(self, s: Loop | Reduce, axis: Axis) -> str:
        """What an axis runs over; a range within the axis is followed by the extent."""
        name, extent = self.axis(axis), "" if axis is self.whole else self.size(axis.extent)
        low, high = s.bounds.get(axis, (None, None))
        if low is None and high is None:
            return f"{name} in range({extent})" if axis is not self.whole else name
        ends = "0" if low is None else self.name(low), extent if high is None else self.name(high)
        return f"{name} in range({', '.join(ends)}) of {extent}"

    def _choice(self, s: Choice, pad, depth):
        lines = self.bind([s.condition], pad)
        saved = dict(self.names)
        lines += [f"{pad}if {self.name(s.condition)}:", *self.block(s.body, depth + 1)]
        self.names = dict(saved)
        lines += [f"{pad}else:", *self.block(s.other, depth + 1)]
        self.names = saved
        return lines

    def _reduce(self, s: Reduce, pad, depth):
        first = self.bind(s.ends, pad)
        over = ", ".join(self.range(s, axis) for axis in s.axes)
        blocks = self._blocks(s)
        saved = dict(self.names)
        inner = self.bind(s.values, pad + "    ")
        parts = [f"{pad}    {result!r} = {op}({result!r}, {self.name(expr)})" for result, op, expr in s.parts]
        stores = self.block(s.stores, depth + 1)
        self.names = saved
        return [*first, f"{pad}reduce {over}{blocks}:{_note(s)}", *inner, *parts, *stores]

    def _blocks(self, s: Reduce | Scan) -> str:
        runs = " in short runs" if s.is_long else ""
        if not s.block_results:
            return runs
        return f" in {self.size(s.block_results[0].shape[0])} blocks of {self.size(s.block)}{runs}"

    def _scan(self, s: Scan, pad, depth):
        saved = dict(self.names)
        inner = self.bind(s.values, pad + "    ")
        goal = f"{self.place(s.buffer)}[{self.index(s.offset)}]"
        line = f"{pad}    {goal} = acc = {s.op}(acc, {self.name(s.value)})"
        self.names = saved
        way = "reversed " if s.reverse else ""
        over = f"{self.axis(s.axis)} in {way}range({self.size(s.axis.extent)}){self._blocks(s)}"
        return [f"{pad}scan {over}:{_note(s)}", *inner, line]

    def _repeat(self, s: Repeat, pad, depth):
        lines = self.bind(s.initial, pad)
        lines += [f"{pad}{register!r} = {self.name(expr)}" for register, expr in zip(s.registers, s.initial)]
        saved = dict(self.names)
        test = self.bind([s.condition], pad + "    ")
        lines += [f"{pad}repeat:", *test, f"{pad}  while {self.name(s.condition)}:"]
        lines += [*self.block(s.body, depth + 1), *self.bind(s.updates, pad + "    ")]
        new = ", ".join(map(self.name, s.updates))
        self.names = saved
        return [*lines, f"{pad}    {', '.join(map(repr, s.registers))} = {new}"]

    def _call(self, s: Call, pad, depth):
        outs, ins = ", ".join(map(repr, s.outputs)), ", ".join(map(repr, s.inputs))
        scratch = f" using {', '.join(map(repr, s.scratch))}" if s.scratch else ""
        numbers = "".join(f", {self.size(number)}" for number in getattr(s.routine, "sizes", ()))
        line = f"{pad}{outs} = {s.routine}({ins}{numbers}){scratch}"
        if s.epilogue is None:
            return [line]
        return [f"{line}, and of what is finished:", *self.block([s.epilogue], depth + 1)]

    def _librarycall(self, s: LibraryCall, pad, depth):
        outs = ", ".join(map(repr, s.outputs))
        return [f"{pad}call {outs} = {s.name}({', '.join(map(repr, s.inputs))})"]

    def _while(self, s: While, pad, depth):
        swaps = [f"{pad}    swap {a!r}, {b!r}" for a, b in s.swaps]
        return [f"{pad}while:", *self.block(s.cond, depth + 1), f"{pad}  test {s.predicate!r}; do:",
                *self.block(s.body, depth + 1), *swaps]

    def _switch(self, s: Switch, pad, depth):
        lines = [f"{pad}switch {s.selector!r}:"]
        for number, branch in enumerate(s.branches):
            lines += [f"{pad}  case {number}:", *self.block(branch, depth + 1)]
        return lines
