"""The code of loops as functions, and of the function that calls them.

In: an `Outline`. Out: for a loop a code object whose parameters are what goes into it, and which returns a
tuple of what comes out of it, with the number of the exit behind where there are several; for the function
its own code with a gate before each loop:

    if gate.is_open:
        found = call(parameters ...)
        if found is not DECLINED:
            results ... = found
            go where the loop would have gone
    the loop itself

All else of the function's code is as it was, so that a loop that no function takes over runs as it did.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from jitcore.rewriter.bytecode.assembler import Assembler, Handler, Label, encode_handlers, encode_positions
from jitcore.rewriter.bytecode.graph import Block
from jitcore.rewriter.bytecode.instructions import (
    PAIRS,
    Branch,
    ForIter,
    Jump,
    NoneBranch,
    Position,
    Raw,
    read_handlers,
    read_raw,
)
from jitcore.rewriter.bytecode.versions import HAS_CHECKED_LOAD, HAS_PRECALL, LOOP_ENDS, NULL_BELOW
from jitcore.rewriter.writing.outlining import Outline, OutlinedLoop

_OPTIMIZED, _NESTED = 0x01 | 0x02, 0x10
_CHECKED_LOAD = "LOAD_FAST_CHECK" if HAS_CHECKED_LOAD else "LOAD_FAST"
ITERABLE = "iterable_of_loop"


def list_parameters(loop: OutlinedLoop) -> tuple[str, ...]:
    """The names of the parameters of a loop's function."""
    return (*loop.parameters, ITERABLE) if loop.takes_iterable else loop.parameters


def write_loop(outline: Outline, loop: OutlinedLoop, unbound: Any) -> CodeType:
    """The code of a loop as a function. unbound: what stands for a variable without a value."""
    return _LoopWriter(outline, loop, unbound).run()


class _LoopWriter:
    def __init__(self, outline: Outline, loop: OutlinedLoop, unbound: Any):
        self.graph, self.loop, self.unbound = outline.graph, loop, unbound
        code, names = outline.code, list_parameters(loop)
        self.out = Assembler(code, names, loop.free, loop.cells)
        self.labels = {number: Label() for number in (*loop.loop.body, *(one.block for one in loop.exits))}
        self.pads: list[tuple[Label, int]] = []
        self.absent: list[tuple[Label, Label]] = []  # where a variable has no value; where that is known

    def run(self) -> CodeType:
        loop, out, code = self.loop, self.out, self.out.code
        start = (loop.line, loop.line, 0, 0)
        out.begin(start)
        for name in sorted(loop.unsure):
            bound = Label()
            self._load(name, start)
            out.load_const(self.unbound, start)
            out.emit("IS_OP", 0, start)
            out.branch("FALSE", bound, start, exact=True)
            self._delete(name, start)
            out.place(bound)
        if loop.takes_iterable:
            out.load(ITERABLE, start)
        for instruction in loop.head:
            out.add(instruction)
        blocks = sorted((self.graph.blocks[number] for number in loop.loop.body), key=lambda one: one.order)
        if blocks[0].number != loop.loop.header:
            out.jump(self.labels[loop.loop.header], start)
        for block, following in zip(blocks, [*blocks[1:], None]):
            self._write_block(block, None if following is None else following.number)
        self._write_ends(start)
        flags = code.co_flags & ~(0x04 | 0x08 | 0x40 | _NESTED) | _OPTIMIZED | (_NESTED if loop.free else 0)
        n = len(list_parameters(loop))
        return out.assemble(self.graph.max_depth + len(loop.results) + 4, co_argcount=n, co_flags=flags,
                            co_kwonlyargcount=0, co_posonlyargcount=0)

    # -- variables -------------------------------------------------------------------------------------------
    def _load(self, name: str, position: Position) -> None:
        if name in self.loop.cells:
            self.out.emit("LOAD_DEREF", name, position)
        else:
            self.out.load(name, position)

    def _delete(self, name: str, position: Position) -> None:
        if name in self.loop.cells:
            self.out.emit("DELETE_DEREF", name, position)
        else:
            self.out.emit("DELETE_FAST", self.out.variable(name), position)

    # -- blocks ----------------------------------------------------------------------------------------------
    def _write_block(self, block: Block, following: int | None) -> None:
        out, labels, position = self.out, self.labels, block.position
        out.place(labels[block.number])
        out.handler = None
        if block.handler is not None and block.handler[0] in self.loop.loop.body:
            target, depth, pushes_offset = block.handler
            out.handler = Handler(labels[target], depth - self.loop.depth, pushes_offset)
        for instruction in block.instructions:
            out.add(instruction)
        match block.terminator:
            case Jump(target):
                if target != following:
                    out.jump(labels[target], position)
            case ForIter(body, exit_block):
                pad = Label()
                self.pads.append((pad, exit_block))
                out.emit("FOR_ITER", pad, position)
                if body != following:
                    out.jump(labels[body], position)
            case Branch(one, other) | NoneBranch(one, other):
                is_none = isinstance(block.terminator, NoneBranch)
                kinds = ("NONE", "NOT_NONE") if is_none else ("TRUE", "FALSE")
                if one == following:
                    out.branch(kinds[1], labels[other], position)
                else:
                    out.branch(kinds[0], labels[one], position)
                    if other != following:
                        out.jump(labels[other], position)

    def _write_ends(self, position: Position) -> None:
        """What stands behind the loop: the ends of its iterators, its exits, variables without a value."""
        out, loop = self.out, self.loop
        out.handler = None
        for pad, target in self.pads:
            out.place(pad)
            for name in LOOP_ENDS:
                out.emit(name, 0, position)
            out.jump(self.labels[target], position)
        for number, one in enumerate(loop.exits):
            out.place(self.labels[one.block])
            for _ in range(one.depth):
                out.emit("POP_TOP", 0, position)
            for depth, name in enumerate(loop.results):
                known, absent = Label(), Label()
                if name in loop.unsure_results:
                    out.handler = Handler(absent, depth, False)
                    self.absent.append((absent, known))
                self._load(name, position)
                out.handler = None
                out.place(known)
            if len(loop.exits) > 1:
                out.load_const(number, position)
            out.emit("BUILD_TUPLE", len(loop.results) + (len(loop.exits) > 1), position)
            out.emit("RETURN_VALUE", 0, position)
        for absent, known in self.absent:
            out.place(absent)
            out.emit("POP_TOP", 0, position)
            out.load_const(self.unbound, position)
            out.jump(known, position)


# -- the function around ------------------------------------------------------------------------------------
class Gate:
    """What the function asks before a loop. is_open: a bool."""

    __slots__ = ("is_open",)

    def __init__(self):
        self.is_open = False


def write_gates(outline: Outline, calls: Sequence[Callable], gates: Sequence[Gate], declined: Any,
                unbound: Any) -> CodeType:
    """The code of the function with a gate before each loop.

    Args:
        calls: for each loop what its gate calls; it may return `declined`.
        gates: one for each loop.
    """
    return _GateWriter(outline, calls, gates, declined, unbound).run()


class _GateWriter:
    def __init__(self, outline: Outline, calls, gates, declined, unbound):
        self.outline, self.calls, self.questions = outline, calls, gates
        self.declined, self.unbound = declined, unbound
        self.code = code = outline.code
        self.out = Assembler(code, ())
        self.raw = list(read_raw(code))
        offsets = [item.offset for item in self.raw]
        self.labels = {offset: Label() for offset in offsets}
        #: Behind the gates: where loops go back to.
        self.inner = dict(self.labels)
        self.placed: set[int] = set()
        self.gates: dict[int, list[OutlinedLoop]] = {}
        for loop in outline.loops:
            self.gates.setdefault(loop.offset, []).append(loop)
            self.labels.setdefault(loop.offset, Label())
            self.inner[loop.offset] = Label()
        self.handler_of: dict[int, Handler] = {}
        for found in read_handlers(code):
            first, last = (bisect.bisect_left(offsets, place) for place in (found.start, found.stop))
            for offset in offsets[first:last]:
                self.handler_of[offset] = Handler(self.labels[found.target], found.depth, found.pushes_offset)
        self.absent: list[tuple[Label, Label, Position]] = []
        self.places = _number_variables(code)
        self.stack_size = code.co_stacksize

    def run(self) -> CodeType:
        for item in self.raw:
            self._write_place(item.offset, item)
            self._write(item)
        self.out.handler = None
        for absent, known, position in self.absent:
            self.out.place(absent)
            self.out.emit("POP_TOP", 0, position)
            self.out.load_const(self.unbound, position)
            self.out.jump(known, position)
        data, positions, ranges = self.out.encode()
        return self.code.replace(
            co_code=data, co_consts=tuple(self.out.consts), co_names=self.out.names,
            co_stacksize=self.stack_size,
            co_linetable=encode_positions(self.code.co_firstlineno, positions),
            co_exceptiontable=encode_handlers(ranges))

    def _write_place(self, offset: int, item: Raw) -> None:
        """The label of an offset, and the gates of the loops that begin there."""
        self.out.handler = self.handler_of.get(item.offset)
        self.out.place(self.labels[offset])
        # Its own iterations go to a loop's header behind its gate, and before the gates of loops in it.
        ordered = sorted(self.gates.get(offset, ()), key=lambda loop: loop.loop.iterates)
        for loop in ordered:
            if loop.loop.iterates:
                self._place_inner(offset)
            self._write_gate(loop, (loop.line, loop.line, 0, 0))
        if ordered:
            self._place_inner(offset)

    def _place_inner(self, offset: int) -> None:
        if offset not in self.placed:
            self.placed.add(offset)
            self.out.place(self.inner[offset])

    def _write(self, item: Raw) -> None:
        if item.name in PAIRS and item.offset + 1 in self.gates:
            first, second = PAIRS[item.name]
            self.out.emit(first, item.arg >> 4, item.position)
            self._write_place(item.offset + 1, item)
            self.out.emit(second, item.arg & 15, item.position)
        elif item.target is None:
            self.out.emit(item.name, item.arg, item.position)
        else:
            goes_back = item.target <= item.offset
            label = (self.inner if goes_back else self.labels)[item.target]
            self.out.emit(item.name, label, item.position)

    def _write_gate(self, loop: OutlinedLoop, position: Position) -> None:
        out, depth = self.out, loop.depth + loop.takes_iterable
        itself, declined = Label(), Label()
        out.load_const(self.questions[loop.number], position)
        out.load_attribute("is_open", position)
        out.branch("FALSE", itself, position, exact=True)
        if NULL_BELOW:
            out.emit("PUSH_NULL", 0, position)
        out.load_const(self.calls[loop.number], position)
        if not NULL_BELOW:
            out.emit("PUSH_NULL", 0, position)
        for count, name in enumerate(loop.parameters):
            self._load(name, depth + 2 + count, position)
        count = len(loop.parameters)
        if loop.takes_iterable:
            out.emit("COPY", count + 3, position)
        count += loop.takes_iterable
        if HAS_PRECALL:
            out.emit("PRECALL", count, position)
        out.emit("CALL", count, position)
        out.emit("COPY", 1, position)
        out.load_const(self.declined, position)
        out.emit("IS_OP", 0, position)
        out.branch("TRUE", declined, position, exact=True)
        if loop.takes_iterable:
            out.emit("SWAP", 2, position)
            out.emit("POP_TOP", 0, position)
        self._write_results(loop, position)
        out.place(declined)
        out.emit("POP_TOP", 0, position)
        out.place(itself)
        self.stack_size = max(self.stack_size, depth + 6 + max(count, len(loop.results) + 1))

    def _write_results(self, loop: OutlinedLoop, position: Position) -> None:
        out, n_exits = self.out, len(loop.exits)
        out.emit("UNPACK_SEQUENCE", len(loop.results) + (n_exits > 1), position)
        for name in loop.results:
            done = Label()
            if name in loop.unsure_results:
                bound = Label()
                out.emit("COPY", 1, position)
                out.load_const(self.unbound, position)
                out.emit("IS_OP", 0, position)
                out.branch("FALSE", bound, position, exact=True)
                self._delete(name, position)
                out.jump(done, position)
                out.place(bound)
            self._use("STORE", name, position)
            out.place(done)
        for number, one in enumerate(loop.exits):
            following = Label()
            if number + 1 < n_exits:
                out.emit("COPY", 1, position)
                out.load_const(number, position)
                out.emit("IS_OP", 0, position)
                out.branch("FALSE", following, position, exact=True)
            if n_exits > 1:
                out.emit("POP_TOP", 0, position)
            for _ in range(one.depth):
                out.load_const(None, position)
            goes_back = one.offset < loop.offset
            out.jump((self.inner if goes_back else self.labels)[one.offset], position)
            out.place(following)

    # -- variables -------------------------------------------------------------------------------------------
    def _load(self, name: str, depth: int, position: Position) -> None:
        """Loads a variable, or what stands for its lack of a value. depth: of the stack."""
        around, absent, known = self.out.handler, Label(), Label()
        self.out.handler = Handler(absent, depth, False)
        self.absent.append((absent, known, position))
        self._use("LOAD", name, position)
        self.out.handler = around
        self.out.place(known)

    def _delete(self, name: str, position: Position) -> None:
        """Lets a variable have no value, whether it has one or not; removes the value on top of the stack."""
        self._use("STORE", name, position)
        self._use("DELETE", name, position)

    def _use(self, what: str, name: str, position: Position) -> None:
        if name in self.code.co_cellvars:
            op = f"{what}_DEREF"
        else:
            op = _CHECKED_LOAD if what == "LOAD" else f"{what}_FAST"
        self.out.emit(op, self.places[name], position)


def _number_variables(code: CodeType) -> dict[str, int]:
    """The numbers by which instructions of a code object know its variables."""
    count = len({*code.co_varnames, *code.co_cellvars}) + len(code.co_freevars)
    return {code._varname_from_oparg(number): number for number in range(count)}
