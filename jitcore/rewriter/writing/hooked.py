"""Blocks of a graph as code; and code with hooks: another operation in place of those in which a traced value
means something else.

In: a graph and the hooks. Out: its blocks in an assembler. The hooks are `value in guard` and
`helper @ value`: no call instructions, which differ between versions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import CodeType
from typing import NamedTuple

import numpy as np

from jitcore.rewriter.bytecode.assembler import Assembler, Handler, Label
from jitcore.rewriter.bytecode.flow import find_assigned
from jitcore.rewriter.bytecode.graph import Block, Graph
from jitcore.rewriter.bytecode.instructions import (
    Branch,
    ForIter,
    Instruction,
    Jump,
    NoneBranch,
    count_arguments,
    find_first_position,
)
from jitcore.rewriter.bytecode.versions import (
    COMPARE_SHIFT,
    COMPARISONS,
    IN_PLACE,
    LOAD_ATTR_SHIFT,
    LOOP_ENDS,
    REMAINDER,
    REMAINDER_IN_PLACE,
)


class BlockWriter:
    """Writes the blocks of a graph. out: where the instructions go.

    Attributes:
        labels: of the blocks that control goes to; those of blocks that are not written are others' affair.
        base: how much of the stack below lies elsewhere."""

    base = 0

    def __init__(self, graph: Graph, out: Assembler, numbers: Iterable[int]):
        self.graph, self.out = graph, out
        self.labels = {number: Label() for number in numbers}
        self.pads: list[tuple[Label, int]] = []

    def write_blocks(self, blocks: list[Block]) -> None:
        """In this order."""
        for block, following in zip(blocks, [*blocks[1:], None]):
            self.write_block(block, None if following is None else self.labels[following.number])
        self.out.handler = None
        self._write_pads()

    def write_block(self, block: Block, following: Label | None) -> None:
        self.out.place(self.labels[block.number])
        self.out.handler = self.find_handler(block)
        self.write_instructions(block)
        self.write_terminator(block, following)

    def find_handler(self, block: Block) -> Handler | None:
        """Of all that is written for a block, what comes before its instructions too: Python 3.13 looks for
        the handler of an error in a call, or in a generator that a loop asks, at the instruction before."""
        if block.handler is None or block.handler[0] not in self.labels:
            return None
        target, depth, pushes_offset = block.handler
        return Handler(self.labels[target], depth - self.base, pushes_offset)

    def write_instructions(self, block: Block) -> None:
        for instruction in block.instructions:
            self.out.add(instruction)

    def write_guard(self, block: Block) -> None:
        """What is asked before a value, or a loop's iterator, decides: nothing."""

    def write_terminator(self, block: Block, following: Label | None) -> None:
        out, labels, out.position = self.out, self.labels, block.position
        match block.terminator:
            case Jump(target):
                if labels[target] is not following:
                    out.jump(labels[target])
            case ForIter(body, exit_block):
                self.write_guard(block)
                self.pads.append((Label(), exit_block))
                out.emit("FOR_ITER", self.pads[-1][0])
                if labels[body] is not following:
                    out.jump(labels[body])
            case Branch(one, other):
                self.write_guard(block)
                out.branch_both(("TRUE", "FALSE"), (labels[one], labels[other]), following)
            case NoneBranch(one, other):
                self.write_guard(block)
                out.branch_both(("NONE", "NOT_NONE"), (labels[one], labels[other]), following)

    def _write_pads(self) -> None:
        """What FOR_ITER expects at its target; then control goes where it would have gone."""
        self.out.position = None
        for pad, target in self.pads:
            self.out.place(pad)
            for name in LOOP_ENDS:
                self.out.emit(name)
            self.out.jump(self.labels[target])


class _Row(NamedTuple):
    """What is written for an instruction.

    Attributes:
        hook: its name; count: of its operands, more than one in a tuple.
        is_store: whether there is no result; names: by how much the argument is shifted, if it is the place
            of a name that is the last operand."""

    hook: str
    count: int = 1
    is_store: bool = False
    names: int | None = None


_ROWS = {
    "UNARY_NOT": _Row("logical_not"), "BINARY_SUBSCR": _Row("read_item", 2),
    "STORE_SUBSCR": _Row("store_item", 3, True), "DELETE_SUBSCR": _Row("delete_item", 2, True),
    "STORE_SLICE": _Row("store_slice", 4, True), "STORE_GLOBAL": _Row("store_global", 2, True, 0),
    "DELETE_GLOBAL": _Row("delete_global", 1, True, 0),
    "LOAD_ATTR": _Row("read_attribute", 2, False, LOAD_ATTR_SHIFT),
    "STORE_ATTR": _Row("store_attribute", 3, True, 0), "DELETE_ATTR": _Row("delete_attribute", 2, True, 0),
}
_UNARY = {"UNARY_NEGATIVE": "neg", "UNARY_POSITIVE": "pos", "UNARY_INVERT": "invert"}


class HookedWriter(BlockWriter):
    """Args:
        hooks: `hooks.Hooks`.
        assigned: fast variables that are bound for certain, by block.
    """

    def __init__(self, graph: Graph, out: Assembler, hooks, assigned: dict[int, frozenset[str]]):
        super().__init__(graph, out, graph.blocks)
        self.hooks, self.assigned = hooks, assigned
        self.source: CodeType = graph.code

    def write_instructions(self, block: Block) -> None:
        is_resolved, bound = False, set(self.assigned[block.number])
        for place, instruction in enumerate(block.instructions):
            self.out.position = instruction.position
            if instruction.op == "KW_NAMES":  # stands between a call's operands and the call
                self._resolve_callee(block.instructions[place + 1])
                is_resolved = True
            elif id(instruction) in self.graph.callee_depths:
                if not is_resolved:
                    self._resolve_callee(instruction)
                is_resolved = False
            if instruction.op == "POP_TOP" and place and block.instructions[place - 1].op == "PUSH_EXC_INFO":
                self.out.apply(self.hooks.pass_refusal)  # `except:`
            if instruction.op == "DELETE_FAST" and instruction.arg not in bound:
                self.out.load(instruction.arg)
                self._apply(self.hooks.read_variable(instruction.arg), is_store=True)
            self._write_instruction(instruction)
            following = block.instructions[place + 1].op if place + 1 < len(block.instructions) else None
            if instruction.op == "PUSH_EXC_INFO" and following != "WITH_EXCEPT_START":
                self.out.apply(self.hooks.enter_handler)
            if instruction.op == "LOAD_FAST" and instruction.arg not in bound:
                self.out.apply(self.hooks.read_variable(instruction.arg))
            elif instruction.op == "STORE_FAST":
                bound.add(instruction.arg)
            elif instruction.op in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                bound.discard(instruction.arg)

    def _resolve_callee(self, call: Instruction) -> None:
        """Lets the hook choose what is called instead of the callable, which lies below its arguments."""
        depth, self.out.position = self.graph.callee_depths[id(call)], call.position
        if depth > 1:
            self.out.swap(depth)
        self.out.apply(self.hooks.resolve)
        if depth > 1:
            self.out.swap(depth)

    def _apply(self, hook, count: int = 1, *, is_store: bool = False) -> None:
        self.out.apply(hook, count)
        if is_store:
            self.out.pop()

    def _write_instruction(self, instruction: Instruction) -> None:
        """The instruction itself, or a hook in its place where a traced operand means something else."""
        row, write = _ROWS.get(instruction.op), _WRITERS.get(instruction.op)
        self.out.position = instruction.position
        if row is not None:
            if row.names is not None:
                self.out.load_const(self.source.co_names[instruction.arg >> row.names])
            self._apply(getattr(self.hooks, row.hook), row.count, is_store=row.is_store)
        elif write is not None:
            write(self, instruction)
        else:
            self.out.add(instruction)

    # -- instructions that need more than a row --------------------------------------------------------------
    def write_get_iter(self, instruction: Instruction) -> None:
        """Makes an iterator."""
        self.out.add(instruction)

    def _write_test(self, instruction: Instruction) -> None:
        hooks, is_negated = self.hooks, bool(instruction.arg)
        found = {"CONTAINS_OP": (hooks.contains, hooks.not_contains), "IS_OP": (hooks.is_same, hooks.is_not)}
        self.out.apply(found[instruction.op][is_negated], 2)

    def _write_catch(self, instruction: Instruction) -> None:
        self.out.apply(self.hooks.choose_caught)
        self.out.add(instruction)

    def _write_end_of_with(self, instruction: Instruction) -> None:
        self.out.add(instruction)
        self.out.apply(self.hooks.choose_suppressed)

    def _write_format(self, instruction: Instruction) -> None:
        """Up to 3.12: 4 where there is a specification, and the conversion."""
        op, arg = instruction.op, instruction.arg
        is_old = op == "FORMAT_VALUE"
        if not (arg & 4 if is_old else op == "FORMAT_WITH_SPEC"):
            self.out.load_const("")
        self.out.apply(self.hooks.format_value(arg & 3 if is_old else 0), 2)

    def _write_build_string(self, instruction: Instruction) -> None:
        self.out.emit("BUILD_TUPLE", instruction.arg)
        self.out.apply(self.hooks.join_parts)

    def _write_operator(self, instruction: Instruction) -> None:
        number = instruction.arg
        if number in IN_PLACE:
            plain = Label()
            self.out.copy(2)
            self.out.load_attribute("__class__")
            self.out.branch_is(np.ndarray, plain, holds=False)
            self.out.copy(2)
            self.out.copy(2)
            self._apply(self.hooks.note_in_place, 2, is_store=True)
            self.out.place(plain)
        own = {REMAINDER: self.hooks.remainder, REMAINDER_IN_PLACE: self.hooks.remainder_in_place}
        self.out.apply(own.get(number) or self.hooks.operate(number), 2)

    def _write_slice(self, instruction: Instruction) -> None:
        self.out.emit("BUILD_SLICE", 2)
        self.out.apply(self.hooks.read_item, 2)

    def _write_begin_of_with(self, instruction: Instruction) -> None:
        self.out.apply(self.hooks.enter_context)
        self.out.emit("UNPACK_SEQUENCE", 2)

    def _write_store_deref(self, instruction: Instruction) -> None:
        self.out.add(Instruction("LOAD_CELL", instruction.arg, instruction.position))
        self._apply(self.hooks.store_cell, 2, is_store=True)

    def _write_delete_deref(self, instruction: Instruction) -> None:
        self.out.add(Instruction("LOAD_CELL", instruction.arg, instruction.position))
        self._apply(self.hooks.note_deleted, is_store=True)
        self.out.add(instruction)

    def _write_append(self, instruction: Instruction) -> None:
        self.out.copy(instruction.arg + 1)
        self._apply(self.hooks.append_item, 2, is_store=True)

    def write_guard(self, block: Block) -> None:
        if isinstance(block.terminator, NoneBranch):  # raises for a value that cannot be known
            self.out.copy()
            self.out.load_const(self.hooks.poison_guard)
            self.out.emit("CONTAINS_OP")
            self.out.pop()


_Writer = Callable[[HookedWriter, Instruction], None]
_WRITERS: dict[str, _Writer] = {
    "GET_ITER": lambda writer, instruction: writer.write_get_iter(instruction),
    "CONTAINS_OP": HookedWriter._write_test, "IS_OP": HookedWriter._write_test,
    "CHECK_EXC_MATCH": HookedWriter._write_catch, "CHECK_EG_MATCH": HookedWriter._write_catch,
    "WITH_EXCEPT_START": HookedWriter._write_end_of_with, "BEFORE_WITH": HookedWriter._write_begin_of_with,
    "FORMAT_VALUE": HookedWriter._write_format, "FORMAT_SIMPLE": HookedWriter._write_format,
    "FORMAT_WITH_SPEC": HookedWriter._write_format, "BUILD_STRING": HookedWriter._write_build_string,
    "CONVERT_VALUE": lambda writer, instruction: writer.out.apply(
        writer.hooks.convert_value(instruction.arg)),
    "BINARY_OP": HookedWriter._write_operator, "BINARY_SLICE": HookedWriter._write_slice,
    "COMPARE_OP": lambda writer, instruction: writer.out.apply(
        writer.hooks.compare(COMPARISONS[instruction.arg >> COMPARE_SHIFT]), 2),
    **dict.fromkeys(_UNARY, lambda writer, instruction: writer.out.apply(
        writer.hooks.apply_unary(_UNARY[instruction.op]))),
    "STORE_DEREF": HookedWriter._write_store_deref, "DELETE_DEREF": HookedWriter._write_delete_deref,
    "LIST_APPEND": HookedWriter._write_append,
}


@functools.lru_cache(maxsize=1000)
def hook_generator(code: CodeType, path: str, hooks) -> CodeType:
    """The code of a generator function with hooks in place of operations, so that what it calls and stores is
    known as in all traced code. It has one entry: a traced value that decides in it raises, as its frame
    cannot be entered twice. path: of the file; Python calls code of two files equal where it is alike.

    Raises: Unsupported for `yield from`."""
    graph = Graph(code)
    arguments = code.co_varnames[: count_arguments(code)]
    names = [name for name in code.co_varnames if name in arguments or name not in code.co_cellvars]
    out = Assembler(code, names, code.co_freevars, code.co_cellvars)
    out.begin(find_first_position(code), is_generator=True)
    assigned = find_assigned(graph, frozenset(arguments))
    HookedWriter(graph, out, hooks, assigned).write_blocks(graph.in_order())
    return out.assemble(graph.max_depth + 6)
