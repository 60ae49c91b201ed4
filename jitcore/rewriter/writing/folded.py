"""Generators as functions that fold what they yield: `sum(v * v for v in x)` as a loop of its own.

In: the code of a generator, and the builtin that goes through it. Out: the code of a function with the same
parameters and one more, the result of no element (of no use for a list). It has the generator's own loops and
branches; in the place of each yield stands what the builtin does with one element, and at the end the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import CodeType
from typing import Any

from jitcore.rewriter.bytecode.assembler import Assembler, BlockWriter, Handler, Label
from jitcore.rewriter.bytecode.graph import Block, Graph, apply_to_stack, find_reachable, is_site
from jitcore.rewriter.bytecode.instructions import Unsupported, count_arguments, find_first_position
from jitcore.rewriter.bytecode.versions import ADD, IS_SUM_COMPENSATED, MULTIPLY

_OPTIMIZED, _VARIADIC, _OPTIONS, _GENERATOR = 0x01 | 0x02, 0x04, 0x08, 0x20
_RESULT, _ELEMENT, _LOST = "<result>", "<element>", "<lost>"
#: What the handler of a whole generator does: StopIteration in it is a RuntimeError.
_STOPPED = "CALL_INTRINSIC_1", 3


@functools.lru_cache(maxsize=1000)
def count_sites(code: CodeType, path: str) -> int:
    """How many loops and branches a generator has. path: of the file; Python calls code of two files equal
    where it is alike."""
    return sum(map(is_site, Graph(code).blocks.values()))


@functools.lru_cache(maxsize=1000)
def write_fold(code: CodeType, path: str, consumer: Callable) -> CodeType:
    """The code of a generator as that of a function which does what a builtin does with the generator.

    consumer: a key of `FOLDS`. path: as for `count_sites`.

    Raises: Unsupported where the generator is sent values, or handles exceptions."""
    return _FoldWriter(Graph(code), consumer).run()


class _FoldWriter(BlockWriter):
    def __init__(self, graph: Graph, consumer: Callable):
        code, self.consumer = graph.code, consumer
        successors = {number: block.successors for number, block in graph.blocks.items()}
        own = find_reachable(successors, [graph.entry])
        arguments = (*code.co_varnames[: count_arguments(code)], _RESULT)
        self.written = [block for block in graph.in_order() if block.number in own]
        self.is_compensated = consumer is sum and IS_SUM_COMPENSATED
        super().__init__(graph, Assembler(code, arguments, code.co_freevars, code.co_cellvars), own)
        self.argument_count = len(arguments)

    def run(self) -> CodeType:
        out, code = self.out, self.out.code
        out.begin(find_first_position(code))
        if self.consumer is list:
            out.emit("BUILD_LIST")
        if self.is_compensated:
            out.load_const(0.0)
            out.store(_LOST)
        if self.written[0].number != self.graph.entry:
            out.jump(self.labels[self.graph.entry])
        self.write_blocks(self.written)
        flags = code.co_flags & ~(_VARIADIC | _OPTIONS | _GENERATOR) | _OPTIMIZED
        return out.assemble(self.graph.max_depth + 6, co_argcount=self.argument_count, co_flags=flags,
                            co_kwonlyargcount=0, co_posonlyargcount=0)

    def find_handler(self, block: Block) -> Handler | None:
        if block.handler is not None:
            handler = self.graph.blocks[block.handler[0]]
            if _STOPPED not in [(one.op, one.arg) for one in handler.instructions]:
                raise Unsupported("a generator that handles exceptions")
        return None

    def write_instructions(self, block: Block) -> None:
        stack, instructions = list(block.layout), iter(block.instructions)
        for instruction in instructions:
            if instruction.op == "YIELD_VALUE":
                self.out.position = instruction.position
                if [next(instructions, instruction).op for _ in range(2)] != ["RESUME", "POP_TOP"]:
                    raise Unsupported("a generator that is sent values")
                stack.pop()
                FOLDS[self.consumer](self.out, len(stack))
                continue
            if instruction.op == "RETURN_VALUE":
                self._write_result()
            self.out.add(instruction)
            apply_to_stack(instruction, stack)

    def _write_result(self) -> None:
        out = self.out
        out.pop()  # what the generator returns
        if self.is_compensated:
            out.push_callee(finish_sum)
            out.load(_RESULT)
            out.load(_LOST)
            out.call(2)
        elif self.consumer is not list:
            out.load(_RESULT)


# -- what is done with the element on top of the stack; depth: of what lies below ----------------------------
def add(total: Any, lost: Any, element: Any) -> tuple[Any, Any]:
    """One step of `sum` where it is compensated: the new sum, and what additions have lost of it."""
    raise NotImplementedError  # stands in code for what semantics of numbers have in its place


def finish_sum(total: Any, lost: Any) -> Any:
    """Its last step."""
    raise NotImplementedError


def _combine(operation: int) -> Callable[[Assembler, int], None]:
    def combine(out: Assembler, depth: int) -> None:
        out.load(_RESULT)
        out.swap()
        out.emit("BINARY_OP", operation)
        out.store(_RESULT)

    return combine


def _add_compensated(out: Assembler, depth: int) -> None:
    out.store(_ELEMENT)
    out.push_callee(add)
    for name in (_RESULT, _LOST, _ELEMENT):
        out.load(name)
    out.call(3)
    out.emit("UNPACK_SEQUENCE", 2)
    out.store(_RESULT)
    out.store(_LOST)


def _append(out: Assembler, depth: int) -> None:
    """To the list below all else, where comprehensions have theirs."""
    out.emit("LIST_APPEND", depth + 1)


def _stop_at(answer: bool) -> Callable[[Assembler, int], None]:
    def ask(out: Assembler, depth: int) -> None:
        following = Label()
        out.branch("FALSE" if answer else "TRUE", following)
        for _ in range(depth):
            out.pop()
        out.load_const(answer)
        out.emit("RETURN_VALUE")
        out.place(following)

    return ask


def _return(out: Assembler, depth: int) -> None:
    for _ in range(depth):
        out.swap()
        out.pop()
    out.emit("RETURN_VALUE")


def _choose(choose: Callable) -> Callable[[Assembler, int], None]:
    """The first element is better than None."""

    def compare(out: Assembler, depth: int) -> None:
        is_first, following = Label(), Label()
        out.store(_ELEMENT)
        out.load(_RESULT)
        out.branch("NONE", is_first)
        out.push_callee(choose)
        out.load(_RESULT)
        out.load(_ELEMENT)
        out.call(2)
        out.store(_RESULT)
        out.jump(following)
        out.place(is_first)
        out.load(_ELEMENT)
        out.store(_RESULT)
        out.place(following)

    return compare


FOLDS: dict[Callable, Callable[[Assembler, int], None]] = {
    sum: _add_compensated if IS_SUM_COMPENSATED else _combine(ADD), math.prod: _combine(MULTIPLY),
    list: _append, any: _stop_at(True), all: _stop_at(False), next: _return, min: _choose(min),
    max: _choose(max)}
