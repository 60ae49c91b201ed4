"""Code with hooks: the instructions of a function, with another operation in place of those in which a traced
value means something else.

In: a graph and the hooks. Out: its blocks in an assembler. The hooks are `value in guard` and
`helper @ value`: no call instructions, which differ between versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType

import numpy as np

from jitcore.rewriter.bytecode.assembler import Assembler, Handler, Label
from jitcore.rewriter.bytecode.graph import Block, Graph
from jitcore.rewriter.bytecode.instructions import Branch, ForIter, Instruction, Jump, NoneBranch
from jitcore.rewriter.bytecode.versions import (
    COMPARE_SHIFT,
    COMPARISONS,
    IN_PLACE,
    LOAD_ATTR_SHIFT,
    LOOP_ENDS,
    REMAINDER,
    REMAINDER_IN_PLACE,
)

_UNARY = {"UNARY_NEGATIVE": "neg", "UNARY_POSITIVE": "pos", "UNARY_INVERT": "invert"}


class HookedWriter:
    """Args:
        graph: of the code; out: where the instructions go.
        hooks: `hooks.Hooks`.
        assigned: fast variables that are bound for certain, by block.
    """

    def __init__(self, graph: Graph, out: Assembler, hooks, assigned: dict[int, frozenset[str]]):
        self.graph, self.out, self.hooks, self.assigned = graph, out, hooks, assigned
        self.source: CodeType = graph.code
        self.labels = {number: Label() for number in graph.blocks}
        self.pads: list[tuple[Label, int]] = []

    def write_blocks(self) -> None:
        ordered = self.graph.in_order()
        for block, following in zip(ordered, [*ordered[1:], None]):
            self.write_block(block, None if following is None else following.number)
        self.out.handler = None
        self._write_pads()

    def write_block(self, block: Block, following: int | None) -> None:
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
        return Handler(self.labels[target], depth, pushes_offset)

    def write_instructions(self, block: Block) -> None:
        is_resolved, bound = False, set(self.assigned[block.number])
        for place, instruction in enumerate(block.instructions):
            if instruction.op == "KW_NAMES":  # stands between a call's operands and the call
                self._resolve_callee(block.instructions[place + 1])
                is_resolved = True
            elif id(instruction) in self.graph.callee_depths:
                if not is_resolved:
                    self._resolve_callee(instruction)
                is_resolved = False
            if instruction.op == "POP_TOP" and place and block.instructions[place - 1].op == "PUSH_EXC_INFO":
                self.out.apply(self.hooks.pass_refusal, instruction.position)  # `except:`
            if instruction.op == "DELETE_FAST" and instruction.arg not in bound:
                self.out.add(Instruction("LOAD_FAST", instruction.arg, instruction.position))
                self.out.apply(self.hooks.read_variable(instruction.arg), instruction.position)
                self.out.emit("POP_TOP", 0, instruction.position)
            self._write_instruction(instruction)
            following = block.instructions[place + 1].op if place + 1 < len(block.instructions) else None
            if instruction.op == "PUSH_EXC_INFO" and following != "WITH_EXCEPT_START":
                self.out.apply(self.hooks.enter_handler, instruction.position)
            if instruction.op == "LOAD_FAST" and instruction.arg not in bound:
                self.out.apply(self.hooks.read_variable(instruction.arg), instruction.position)
            elif instruction.op == "STORE_FAST":
                bound.add(instruction.arg)
            elif instruction.op in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                bound.discard(instruction.arg)

    def _resolve_callee(self, call: Instruction) -> None:
        """Lets the hook choose what is called instead of the callable, which lies below its arguments."""
        depth, position = self.graph.callee_depths[id(call)], call.position
        if depth > 1:
            self.out.emit("SWAP", depth, position)
        self.out.apply(self.hooks.resolve, position)
        if depth > 1:
            self.out.emit("SWAP", depth, position)

    def _write_instruction(self, instruction: Instruction) -> None:
        """The instruction itself, or a hook in its place where a traced operand means something else."""
        op, arg, position, hooks = instruction.op, instruction.arg, instruction.position, self.hooks
        names = self.source.co_names
        if op == "UNARY_NOT":
            self.out.apply(hooks.logical_not, position)
        elif op == "GET_ITER":
            self.write_get_iter(position)
        elif op == "CONTAINS_OP":
            self._apply_to_tuple(2, hooks.not_contains if arg else hooks.contains, position)
        elif op == "IS_OP":
            self._apply_to_tuple(2, hooks.is_not if arg else hooks.is_same, position)
        elif op in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            self.out.apply(hooks.choose_caught, position)
            self.out.add(instruction)
        elif op == "WITH_EXCEPT_START":
            self.out.add(instruction)
            self.out.apply(hooks.choose_suppressed, position)
        elif op == "FORMAT_VALUE":  # up to 3.12: 4 where there is a specification, and the conversion
            self._apply_to_tuple(2 if arg & 4 else 1, hooks.format_value(arg & 3), position)
        elif op in ("FORMAT_SIMPLE", "FORMAT_WITH_SPEC"):
            self._apply_to_tuple(1 if op == "FORMAT_SIMPLE" else 2, hooks.format_value(0), position)
        elif op == "CONVERT_VALUE":
            self.out.apply(hooks.convert_value(arg), position)
        elif op == "BUILD_STRING":
            self._apply_to_tuple(arg, hooks.join_parts, position)
        elif op == "BINARY_OP" and arg == REMAINDER:
            self._apply_to_tuple(2, hooks.remainder, position)
        elif op == "BINARY_OP" and arg in IN_PLACE:
            plain = self._skip_where_plain(position)
            self.out.emit("COPY", 2, position)
            self.out.emit("COPY", 2, position)
            self._store(2, hooks.note_in_place, position)
            self.out.place(plain)
            if arg == REMAINDER_IN_PLACE:
                self._apply_to_tuple(2, hooks.remainder_in_place, position)
            else:
                self._apply_to_tuple(2, hooks.operate(arg), position)
        elif op == "BINARY_OP":
            self._apply_to_tuple(2, hooks.operate(arg), position)
        elif op == "COMPARE_OP":
            self._apply_to_tuple(2, hooks.compare(COMPARISONS[arg >> COMPARE_SHIFT]), position)
        elif op in _UNARY:
            self.out.apply(hooks.apply_unary(_UNARY[op]), position)
        elif op == "BINARY_SUBSCR":
            self._apply_to_tuple(2, hooks.read_item, position)
        elif op == "BINARY_SLICE":
            self.out.emit("BUILD_SLICE", 2, position)
            self._apply_to_tuple(2, hooks.read_item, position)
        elif op == "DELETE_SUBSCR":
            self._store(2, hooks.delete_item, position)
        elif op == "DELETE_GLOBAL":
            self.out.load_const(names[arg], position)
            self.out.apply(hooks.delete_global, position)
            self.out.emit("POP_TOP", 0, position)
        elif op == "BEFORE_WITH":
            self.out.apply(hooks.enter_context, position)
            self.out.emit("UNPACK_SEQUENCE", 2, position)
        elif op == "STORE_DEREF":
            self.out.add(Instruction("LOAD_CELL", arg, position))
            self._store(2, hooks.store_cell, position)
        elif op == "DELETE_DEREF":
            self.out.add(Instruction("LOAD_CELL", arg, position))
            self.out.apply(hooks.note_deleted, position)
            self.out.emit("POP_TOP", 0, position)
            self.out.add(instruction)
        elif op == "STORE_GLOBAL":
            self.out.load_const(names[arg], position)
            self._store(2, hooks.store_global, position)
        elif op == "LOAD_ATTR":
            self.out.load_const(names[arg >> LOAD_ATTR_SHIFT], position)
            self._apply_to_tuple(2, hooks.read_attribute, position)
        elif op == "STORE_ATTR":
            self.out.load_const(names[arg], position)
            self._store(3, hooks.store_attribute, position)
        elif op == "DELETE_ATTR":
            self.out.load_const(names[arg], position)
            self._store(2, hooks.delete_attribute, position)
        elif op == "STORE_SUBSCR":
            self._store(3, hooks.store_item, position)
        elif op == "LIST_APPEND":
            self.out.emit("COPY", arg + 1, position)
            self._store(2, hooks.append_item, position)
        elif op == "STORE_SLICE":
            self._store(4, hooks.store_slice, position)
        else:
            self.out.add(instruction)

    def write_get_iter(self, position) -> None:
        """Makes an iterator."""
        self.out.emit("GET_ITER", 0, position)

    def _skip_where_plain(self, position) -> Label:
        """Jumps to a label, which is not placed yet, where the first of two operands is no ndarray."""
        label = Label()
        self.out.emit("COPY", 2, position)
        self.out.load_attribute("__class__", position)
        self.out.load_const(np.ndarray, position)
        self.out.emit("IS_OP", 0, position)
        self.out.branch("FALSE", label, position, exact=True)
        return label

    def _apply_to_tuple(self, count: int, hook, position) -> None:
        self.out.emit("BUILD_TUPLE", count, position)
        self.out.apply(hook, position)

    def _store(self, count: int, hook, position) -> None:
        self._apply_to_tuple(count, hook, position)
        self.out.emit("POP_TOP", 0, position)

    # -- where control goes ----------------------------------------------------------------------------------
    def write_guard(self, block: Block) -> None:
        """What is asked before a branch or a loop's iterator decides: nothing."""

    def write_terminator(self, block: Block, following: int | None) -> None:
        position = block.position
        match block.terminator:
            case Jump(target):
                if target != following:
                    self.out.jump(self.labels[target])
            case ForIter(body, exit_block):
                self.write_guard(block)
                pad = Label()
                self.pads.append((pad, exit_block))
                self.out.emit("FOR_ITER", pad, position)
                if body != following:
                    self.out.jump(self.labels[body], position)
            case Branch(true, false):
                self.write_guard(block)
                self._write_branch(("TRUE", "FALSE"), (true, false), following, position)
            case NoneBranch(none, other):
                self.out.emit("COPY", 1, position)
                self.out.load_const(self.hooks.poison_guard, position)
                self.out.emit("CONTAINS_OP", 0, position)
                self.out.emit("POP_TOP", 0, position)
                self._write_branch(("NONE", "NOT_NONE"), (none, other), following, position)

    def _write_branch(self, kinds: tuple[str, str], targets: Iterable[int], following, position) -> None:
        first, second = targets
        if first == following:
            self.out.branch(kinds[1], self.labels[second], position)
            return
        self.out.branch(kinds[0], self.labels[first], position)
        if second != following:
            self.out.jump(self.labels[second], position)

    def _write_pads(self) -> None:
        """What FOR_ITER expects at its target; then control goes where it would have gone."""
        for pad, target in self.pads:
            self.out.place(pad)
            for name in LOOP_ENDS:
                self.out.emit(name)
            self.out.jump(self.labels[target])
