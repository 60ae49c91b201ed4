"""Statements of the loop program, and its text.

A `Program` is buffers and a list of steps: `Native` blocks of statements and `LibraryCall`s between them.
Statements:
`Kernel` (a fused nest) with `Loop`, `Reduce`, `Scan`, `Repeat`, `Choice` and `Store` inside; `Call` of a
routine;
`While` and `Switch` around them, where a `LibraryCall` may stand too.

Statements run one after the other. In one body an expression is evaluated where it is first needed, once for
all of the body's statements: a load gives what the element held then, also behind a store to it. No element
is first read behind a store to it in the same body (`check`); the loops that follow may read it. Only the
marks about speed let iterations change places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from jitcore import dtypes
from jitcore.loopir.expr import Buffer, Expr, Result, index_exprs, walk
from jitcore.loopir.index import Axis, Index
from jitcore.loopir.ways import format_ways


class Store:
    """`buffer[offset] = value`, where `mask` (if any) holds. combine: None or the scalar op that merges old
    and new. in_order: lanes may store into one element, and do so one after the other.
    turns: (copies, distance) where the buffer holds copies of the elements so far apart, and an update may
    change any of them: updates that follow each other take different ones.
    packed: in a `Reduce` over one axis, the values of the iterations where `mask` holds go side by side, from
    `offset` on, in their order; the places up to the one of the iteration itself may take any value. It may
    be the memory that the values are read from."""

    __slots__ = ("buffer", "offset", "value", "mask", "combine", "in_order", "turns", "packed")

    def __init__(self, buffer: Buffer, offset: Index, value: Expr, mask: Expr | None = None,
                 combine: str | None = None, in_order: bool = False, turns: tuple | None = None,
                 packed: bool = False):
        self.buffer, self.offset, self.value, self.mask, self.combine = buffer, offset, value, mask, combine
        self.in_order, self.turns, self.packed = in_order, turns, packed

    @property
    def is_update(self) -> bool:
        """Whether more happens than that a value is written to the element at `offset`."""
        return self.combine is not None or self.in_order or self.turns is not None or self.packed


class Kernel:
    """One fused loop nest group: what a backend compiles to one kernel.

    body: statements; a leading `Loop` over the outermost axis may be split over threads when `parallel`.
    vector: the axis whose iterations may run in lanes, or None.
    grain: iterations of the outermost loop (blocks, for a split reduction) that one thread should get at
    least.
    tile: (rows, columns), the axes of the two innermost loops where both run in blocks, because some of what
    is read lies along the one and some along the other; `vector` is the columns, and the body is stores.
    far: buffers that are read or updated at places found at run time, and too large for caches.
    others: axes beside `vector` whose iterations may run in lanes, of loops that stand side by side with its.
    ways: what a target's rules decided; see `ways`.
    """

    __slots__ = ("body", "vector", "parallel", "grain", "tile", "far", "others", "ways")

    def __init__(self, body: list, vector: Axis | None = None, parallel: bool = False, grain=1,
                 tile: tuple[Axis, Axis] | None = None, far: tuple[Buffer, ...] = (),
                 others: tuple[Axis, ...] = ()):
        self.body, self.vector, self.parallel, self.grain = body, vector, parallel, grain
        self.tile, self.far, self.others = tile, far, others
        self.ways: dict[str, Any] = {}


class Loop:
    """`for axis in range(extent)`, or `range(low, high)`: int64 expressions of at least 0, and of at most the
    extent, on what is known where the loop begins; None for the end itself. Empty where low >= high."""

    __slots__ = ("axis", "body", "low", "high", "ways")

    def __init__(self, axis: Axis, body: list, low: Expr | None = None, high: Expr | None = None):
        self.axis, self.body, self.low, self.high = axis, body, low, high
        self.ways: dict[str, Any] = {}

    @property
    def bounds(self) -> dict[Axis, tuple[Expr | None, Expr | None]]:
        """(low, high) by axis, where the loop does not run over all of it."""
        return {} if self.low is None and self.high is None else {self.axis: (self.low, self.high)}


class Reduce:
    """Combines values over `axes` (innermost last) into results, one per entry of `parts`; `stores` run
    each iteration.

    parts: (result, op, expr): op is a monoid's name ("add", "mul", "max", "min", "and", "or", "xor"), or
    "argmax"/"argmin": then the result is the first position along the (single) axis where expr is extreme.
    partials: arena buffers, one per part, when the reduction may be split over blocks of the first axis
    (`block` iterations each); the combination order does not depend on the number of threads.
    bounds: axis -> (low, high), where not all of the axis is swept; see `Loop`.
    is_long: whether it adds up so many numbers that it takes short runs of them.
    """

    __slots__ = ("axes", "parts", "stores", "partials", "block", "bounds", "is_long", "ways")

    def __init__(self, axes: tuple[Axis, ...], parts: list, stores: list,
                 bounds: dict[Axis, tuple] | None = None):
        self.axes, self.parts, self.stores, self.bounds = axes, parts, stores, bounds or {}
        self.partials: list[Buffer] | None = None
        self.block = None
        self.is_long = False
        self.ways: dict[str, Any] = {}


class Choice:
    """Inside of kernels: runs `body` where `condition` holds, a bool that is known there, and else `other`,
    which stores the same and defines the same results."""

    __slots__ = ("condition", "body", "other")

    def __init__(self, condition: Expr, body: list, other: list):
        self.condition, self.body, self.other = condition, body, other


class Scan:
    """Running combination along `axis`: `buffer[offset] = accumulator = op(accumulator, value)`.

    partials: arena buffers for the totals of the blocks of `block` iterations that the scan may be split
    into, and for what comes before each, for every iteration of the loops around it; the blocks do not depend
    on the number of threads. is_long: see `Reduce`.
    """

    __slots__ = ("axis", "op", "value", "buffer", "offset", "reverse", "partials", "block", "is_long",
                 "ways")

    def __init__(self, axis: Axis, op: str, value: Expr, buffer: Buffer, offset: Index, reverse: bool):
        self.axis, self.op, self.value, self.buffer, self.offset = axis, op, value, buffer, offset
        self.reverse = reverse
        self.partials: list[Buffer] | None = None
        self.block = None
        self.is_long = False
        self.ways: dict[str, Any] = {}


class Repeat:
    """Runs `body` (stores, repeats) and sets the registers to their `updates`, while `condition` holds.

    registers: `Result`s that start as `initial`. A register whose axes hold a loop's axis has a value for
    each iteration of that loop; where the condition depends on the axis too, each iteration ends by itself.
    trips: rounds to expect, a number that decides about threads only.
    """

    __slots__ = ("registers", "initial", "condition", "body", "updates", "trips")

    def __init__(self, registers: list, initial: list[Expr], condition: Expr, body: list, updates: list[Expr],
                 trips: int):
        self.registers, self.initial, self.condition = registers, initial, condition
        self.body, self.updates, self.trips = body, updates, trips


class While:
    """Runs `cond` (statements), tests the bool in scalar buffer `predicate`, runs `body`, again.

    swaps: pairs of buffers whose memory changes places at the end of each round. After the loop each is at
    home again, and the first of a pair holds what it held then; the second is of no more use.
    """

    __slots__ = ("cond", "predicate", "body", "swaps")

    def __init__(self, cond: list, predicate: Buffer, body: list, swaps: list[tuple[Buffer, Buffer]]):
        self.cond, self.predicate, self.body, self.swaps = cond, predicate, body, swaps


class Switch:
    """Runs the branch whose number is in the int32 scalar buffer `selector` (already in range)."""

    __slots__ = ("selector", "branches")

    def __init__(self, selector: Buffer, branches: list[list]):
        self.selector, self.branches = selector, branches


class Call:
    """A routine of the backend on whole buffers, entered from native code: sorting, matrix products, LAPACK.

    routine: the backend's object; its text names it with all parameters but sizes. Numbers that it has to
    be told at each call and that buffers' extents do not give are its `sizes`.
    function: what it computes, of ndarrays: the inputs, as they lie there, to the outputs in any shape.
    scratch: temporaries that hold nothing before and after.
    epilogue: None, or what is done to the result while it is computed: a `Kernel` of a loop over rows around
    one over columns, run on ranges of both as soon as they are finished.
    """

    __slots__ = ("routine", "function", "inputs", "outputs", "scratch", "epilogue")

    def __init__(self, routine, function: Callable, inputs: list[Buffer], outputs: list[Buffer],
                 scratch: list[Buffer]):
        self.routine, self.function = routine, function
        self.inputs, self.outputs, self.scratch = inputs, outputs, scratch
        self.epilogue: Kernel | None = None


class Native:
    """Consecutive statements that become one native function."""

    __slots__ = ("body",)

    def __init__(self, body: list):
        self.body = body


class LibraryCall:
    """`outputs = function(*inputs)` on ndarrays: BLAS, LAPACK, FFT, sorting, Python callbacks.

    primitive, params: of the equation; function: the primitive's implementation."""

    __slots__ = ("primitive", "params", "function", "inputs", "outputs", "effects")

    def __init__(self, primitive, params: dict, inputs: list[Buffer], outputs: list[Buffer],
                 effects=frozenset()):
        self.primitive, self.params = primitive, params
        self.function = functools.partial(primitive.impl, **params)
        self.inputs, self.outputs, self.effects = inputs, outputs, effects

    @property
    def name(self) -> str:
        return self.primitive.name


class Program:
    """inputs, outputs: buffers in order. temps: buffers of the arena and of the stack. steps: what runs, in
    order. aliases: outputs that live in the memory of a donated input."""

    __slots__ = ("inputs", "outputs", "temps", "steps", "aliases")

    def __init__(self, inputs: list[Buffer], outputs: list[Buffer], temps: list[Buffer], steps: list):
        self.inputs, self.outputs, self.temps, self.steps = inputs, outputs, temps, steps
        self.aliases: dict[Buffer, Buffer] = {}

    def __str__(self) -> str:
        return format_program(self)


def bounds_of(statement) -> dict[Axis, tuple[Expr | None, Expr | None]]:
    """(low, high) of the axes that a statement runs over in part; see `Loop`."""
    return statement.bounds if isinstance(statement, (Loop, Reduce)) else {}


def bound_exprs(statement) -> list[Expr]:
    """The expressions that decide what a statement runs: its loops' bounds, or which of its bodies."""
    if isinstance(statement, Choice):
        return [statement.condition]
    return [end for ends in bounds_of(statement).values() for end in ends if end is not None]


def find_split(kernel: Kernel) -> tuple[list[Axis], Reduce | Scan] | None:
    """(axes of the loops around it, statement) of the sweep that a kernel does in blocks, if it does."""
    axes, statement = [], kernel.body[0]
    while isinstance(statement, Loop):
        axes.append(statement.axis)
        statement = statement.body[0]
    is_split = isinstance(statement, (Reduce, Scan)) and statement.partials
    return (axes, statement) if is_split else None


def block_totals(scan: Scan, columns: Iterable[Axis]) -> Reduce:
    """The first phase of a scan in blocks: their totals, as a reduction in the same blocks. columns: the axes
    around it."""
    result = Result(scan.value.dtype, frozenset(columns), 0)
    reduce = Reduce((scan.axis,), [(result, scan.op, scan.value)], [])
    reduce.partials, reduce.block, reduce.is_long = scan.partials[:1], scan.block, scan.is_long
    return reduce


# -- text -------------------------------------------------------------------------------------------------


def format_program(program: Program, size_name: Callable = str) -> str:
    """The program as indented pseudo-code, one line a statement, names numbered by first appearance.

    size_name: text of an extent, stride or offset. With one that hides sizes, programs that differ in them
    only have
    equal texts, and the text is a key of compiled code."""
    text = _Text(size_name)
    describe = text.buffer
    lines = ["program(" + ", ".join(map(describe, program.inputs)) + ") -> ("
             + ", ".join(map(describe, program.outputs)) + "):"]
    lines += [f"    {describe(buffer)}" for buffer in program.temps]
    lines += [f"    {output!r} overwrites {source!r}" for output, source in program.aliases.items()]
    for step in program.steps:
        if isinstance(step, LibraryCall):
            lines += text.block([step], 1)
        else:
            lines += ["    native:", *text.block(step.body, 2)]
    return "\n".join(lines)


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
        text = " + ".join(
            f"{self.size(c)}*{self.atom(a)}" if c != 1 else self.atom(a) for a, c in index.terms
        )
        return (
            f"{text} + {self.size(index.const)}"
            if text and index.const != 0
            else text or self.size(index.const)
        )

    def atom(self, atom) -> str:
        if isinstance(atom, Axis):
            return self.axis(atom)
        if hasattr(atom, "expr"):
            return self.name(atom.expr)
        sign = "//" if type(atom).__name__ == "FloorDiv" else "%"
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

    def _store(self, s: Store, pad, depth):
        lines = self.bind([s.value, *index_exprs(s.offset)] + ([s.mask] if s.mask is not None else []), pad)
        where = f" where {self.name(s.mask)}" if s.mask is not None else ""
        where += " in order" if s.in_order else ""
        where += " packed" if s.packed else ""
        where += f" by turns in {s.turns[0]} copies of {self.size(s.turns[1])}" if s.turns else ""
        sign = f" {s.combine}=" if s.combine else " ="
        goal = f"{self.place(s.buffer)}[{self.index(s.offset)}]"
        return [*lines, f"{pad}{goal}{sign} {self.name(s.value)}{where}"]

    def _kernel(self, s: Kernel, pad, depth):
        lanes = ([] if s.vector is None else [s.vector]) + [*s.others]
        facts = [f"vector {', '.join(map(self.axis, lanes))}"] * bool(lanes) + [
            f"parallel by {self.size(s.grain)}"
        ] * s.parallel
        facts += [f"tiles {' x '.join(map(self.axis, s.tile))}"] if s.tile else []
        facts += [f"far {', '.join(map(self.place, s.far))}"] if s.far else []
        facts += [format_ways(s.ways)] if s.ways else []
        saved = dict(self.names)
        lines = [
            f"{pad}kernel{' (' + ', '.join(facts) + ')' if facts else ''}:",
            *self.block(s.body, depth + 1),
        ]
        self.names = saved
        return lines

    def _loop(self, s: Loop, pad, depth):
        first = self.bind(bound_exprs(s), pad)
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
        first = self.bind(bound_exprs(s), pad)
        over = ", ".join(self.range(s, axis) for axis in s.axes)
        blocks = self._blocks(s)
        saved = dict(self.names)
        inner = self.bind([expr for _, _, expr in s.parts], pad + "    ")
        parts = [f"{pad}    {result!r} = {op}({result!r}, {self.name(expr)})" for result, op, expr in s.parts]
        stores = self.block(s.stores, depth + 1)
        self.names = saved
        return [*first, f"{pad}reduce {over}{blocks}:{_note(s)}", *inner, *parts, *stores]

    def _blocks(self, s: Reduce | Scan) -> str:
        runs = " in short runs" if s.is_long else ""
        if not s.partials:
            return runs
        return f" in {self.size(s.partials[0].shape[0])} blocks of {self.size(s.block)}{runs}"

    def _scan(self, s: Scan, pad, depth):
        saved = dict(self.names)
        inner = self.bind([s.value], pad + "    ")
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
