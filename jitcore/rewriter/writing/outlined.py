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
from types import CodeType, FunctionType
from typing import Any

from jitcore.rewriter.bytecode.assembler import Assembler, BlockWriter, Handler, Label
from jitcore.rewriter.bytecode.graph import Block
from jitcore.rewriter.bytecode.instructions import INDEX, LIMIT, PAIRS, Raw, read_handlers, read_raw
from jitcore.rewriter.bytecode.versions import SUBTRACT
from jitcore.rewriter.writing.outlining import Outline, OutlinedLoop

_OPTIMIZED, _NESTED = 0x01 | 0x02, 0x10
ITERABLE = "iterable_of_loop"


def list_parameters(loop: OutlinedLoop) -> tuple[str, ...]:
    """The names of the parameters of a loop's function."""
    own = [ITERABLE] * loop.takes_iterable + [LIMIT] * loop.is_limited
    return (*loop.parameters, *own, *list_columns(loop))


def list_columns(loop: OutlinedLoop) -> list[str]:
    """Names of the columns that the elements of a loop are made of."""
    count = 0 if loop.make_element is None else loop.make_element.__code__.co_argcount - 1
    return [f"column{number}_of_loop" for number in range(count)]


def write_loop(outline: Outline, loop: OutlinedLoop, unbound: Any) -> CodeType:
    """The code of a loop as a function. unbound: what stands for a variable without a value."""
    return _LoopWriter(outline, loop, unbound).run()


class _LoopWriter(BlockWriter):
    def __init__(self, outline: Outline, loop: OutlinedLoop, unbound: Any):
        self.loop, self.unbound, self.base = loop, unbound, loop.depth
        self.stopped = Label()
        out = Assembler(outline.code, list_parameters(loop), loop.free, loop.cells)
        super().__init__(outline.graph, out, (*loop.loop.body, *(one.block for one in loop.exits)))

    def run(self) -> CodeType:
        loop, out, code = self.loop, self.out, self.out.code
        out.begin((loop.line, loop.line, 0, 0))
        for name in sorted(loop.unsure):
            out.unbind_if(name, self.unbound)
        for name in loop.grown:
            out.emit("BUILD_LIST")
            out.store(name)
        if loop.make_element is not None:
            out.load_const(-1)
            out.store(INDEX)
        if loop.takes_iterable:
            if loop.is_once:
                out.load_const(None)  # in the place of an iterator
            out.load(ITERABLE)
        for instruction in loop.head:
            out.add(instruction)
        blocks = sorted((self.graph.blocks[number] for number in loop.loop.body), key=lambda one: one.order)
        start = loop.loop.header if loop.head_block is None else loop.head_block
        if blocks[0].number != start:
            out.jump(self.labels[start])
        self.write_blocks(blocks)
        out.position = (loop.line, loop.line, 0, 0)
        for number, one in enumerate(loop.exits):
            out.place(self.labels[one.block])
            for _ in range(one.depth):
                out.pop()
            self._write_exit(number)
        if loop.is_limited:
            out.place(self.stopped)
            self._write_exit(len(loop.exits))
        out.write_unbound()
        flags = code.co_flags & ~(0x04 | 0x08 | 0x40 | _NESTED) | _OPTIMIZED | (_NESTED if loop.free else 0)
        depth = self.graph.max_depth + len(loop.results) + len(list_columns(loop)) + 6
        count = len(list_parameters(loop))
        return out.assemble(depth, co_argcount=count, co_flags=flags, co_kwonlyargcount=0,
                            co_posonlyargcount=0)

    def find_handler(self, block: Block) -> Handler | None:
        is_inside = block.handler is not None and block.handler[0] in self.loop.loop.body
        return super().find_handler(block) if is_inside else None

    def write_instructions(self, block: Block) -> None:
        if self.loop.is_limited and block.number == self.loop.head_block:
            out = self.out
            out.position = (self.loop.line, self.loop.line, 0, 0)
            out.load(LIMIT)
            out.branch("FALSE", self.stopped)
            out.load(LIMIT)
            out.load_const(1)
            out.emit("BINARY_OP", SUBTRACT)
            out.store(LIMIT)
        header = self.graph.blocks[self.loop.loop.header]
        if self.loop.make_element is not None and block.number == header.terminator.body:
            self._write_element(self.loop.make_element)
        super().write_instructions(block)

    def _write_element(self, make_element: FunctionType) -> None:
        """Makes of the number of an iteration, which lies on the stack, its element."""
        out = self.out
        out.position = (self.loop.line, self.loop.line, 0, 0)
        out.store(INDEX)
        out.push_callee(make_element)
        for name in (*list_columns(self.loop), INDEX):
            out.load(name)
        out.call(make_element.__code__.co_argcount)

    def _write_exit(self, number: int) -> None:
        """The results, and by which exit the loop was left."""
        out, loop = self.out, self.loop
        for depth, name in enumerate(loop.results):
            if name in loop.unsure_results:
                out.load_or(name, self.unbound, depth)
            else:
                out.load(name)
        is_numbered = len(loop.exits) + loop.is_limited > 1
        if is_numbered:
            out.load_const(number)
        out.emit("BUILD_TUPLE", len(loop.results) + is_numbered)
        out.emit("RETURN_VALUE")


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
        self.out = Assembler(code, code.co_varnames, code.co_freevars, code.co_cellvars)
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
        self.stack_size = code.co_stacksize

    def run(self) -> CodeType:
        for item in self.raw:
            self._write_place(item.offset, item)
            self._write(item)
        self.out.write_unbound()
        return self.out.assemble(self.stack_size)

    def _write_place(self, offset: int, item: Raw) -> None:
        """The label of an offset, and the gates of the loops that begin there."""
        self.out.handler = self.handler_of.get(item.offset)
        self.out.place(self.labels[offset])
        # Its own iterations go to a loop's header behind its gate, and before the gates of loops in it.
        ordered = sorted(self.gates.get(offset, ()), key=lambda loop: loop.loop.iterates)
        for loop in ordered:
            if loop.loop.iterates:
                self._place_inner(offset)
            self.out.position = (loop.line, loop.line, 0, 0)
            self._write_gate(loop)
        if ordered:
            self._place_inner(offset)
        self.out.position = item.position

    def _place_inner(self, offset: int) -> None:
        if offset not in self.placed:
            self.placed.add(offset)
            self.out.place(self.inner[offset])

    def _write(self, item: Raw) -> None:
        if item.name in PAIRS and item.offset + 1 in self.gates:
            first, second = PAIRS[item.name]
            self.out.emit(first, item.arg >> 4)
            self._write_place(item.offset + 1, item)
            self.out.emit(second, item.arg & 15)
        elif item.target is None:
            self.out.emit(item.name, item.arg)
        else:
            goes_back = item.target <= item.offset
            self.out.emit(item.name, (self.inner if goes_back else self.labels)[item.target])

    def _write_gate(self, loop: OutlinedLoop) -> None:
        out, depth, count = self.out, loop.depth + loop.takes_iterable, len(list_parameters(loop))
        itself, declined = Label(), Label()
        out.load_const(self.questions[loop.number])
        out.load_attribute("is_open")
        out.branch("FALSE", itself, exact=True)
        out.push_callee(self.calls[loop.number])
        for place, name in enumerate(loop.parameters):
            out.load_or(name, self.unbound, depth + 2 + place)
        if loop.takes_iterable:
            out.copy(count + 2)
        out.call(count)
        out.copy()
        out.branch_is(self.declined, declined)
        if loop.takes_iterable:
            out.swap()
            out.pop()
        self._write_results(loop)
        out.place(declined)
        out.pop()
        out.place(itself)
        self.stack_size = max(self.stack_size, depth + 6 + max(count, len(loop.results) + 1))

    def _write_results(self, loop: OutlinedLoop) -> None:
        out, n_exits = self.out, len(loop.exits)
        out.emit("UNPACK_SEQUENCE", len(loop.results) + (n_exits > 1))
        for name in loop.results:
            out.store(name)
            if name in loop.unsure_results:
                out.unbind_if(name, self.unbound)
        for number, one in enumerate(loop.exits):
            following = Label()
            if number + 1 < n_exits:
                out.copy()
                out.branch_is(number, following, holds=False)
            if n_exits > 1:
                out.pop()
            for _ in range(one.depth):
                out.load_const(None)
            goes_back = one.offset < loop.offset
            out.jump((self.inner if goes_back else self.labels)[one.offset])
            out.place(following)
